//! Throughput of attention on one thread, and the peak throughput of that thread.
//!
//! `cargo xtask bench attention` reads these results; `ESPALIER_ISA=` selects the instruction set. An element is one
//! useful multiply-add, so `Gelem/s` times two is GFLOP/s; bytes are those of K and V that are read.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use espalier_kernels::attention::kv_type::KvType;
use espalier_kernels::attention::problem::{BLOCK_SIZE, Cells, Problem};
use espalier_kernels::attention::{Memory, Share, compute, merge, work_size};
use espalier_kernels::simd::isa::Isa;
use espalier_kernels::simd::{MAX_LANES, Simd, Work};

/// `tokens` that each attend to `cells`: the same ones, or each its own.
struct Shape {
    name: &'static str,
    tokens: u32,
    cells: u32,
    is_shared: bool,
}

const SHAPES: [Shape; 7] = [
    Shape { name: "1 sequence, 1.5k", tokens: 1, cells: 1536, is_shared: true },
    Shape { name: "1 sequence, 8k", tokens: 1, cells: 8192, is_shared: true },
    Shape { name: "1 sequence, 32k", tokens: 1, cells: 32_768, is_shared: true },
    Shape { name: "16 sequences, own 1.5k", tokens: 16, cells: 1536, is_shared: false },
    Shape { name: "16 sequences, one 1.5k", tokens: 16, cells: 1536, is_shared: true },
    Shape { name: "prompt of 512 on 1.5k", tokens: 512, cells: 1536, is_shared: true },
    Shape { name: "prompt of 512 on 16k", tokens: 512, cells: 16_384, is_shared: true },
];

const HEADS: u32 = 8;
const KV_HEADS: u32 = 2;
/// Bits of a word of the block bitmap.
const WORD: u32 = 32;

/// Memory of a problem; every value is small and finite.
struct Tensors {
    q: Vec<f32>,
    k: Vec<u8>,
    v: Vec<u8>,
    blocks: Vec<u32>,
    out: Vec<f32>,
}

impl Shape {
    /// Returns the number of cells of all tokens.
    fn all_cells(&self) -> u32 {
        if self.is_shared { self.cells } else { self.cells * self.tokens }
    }

    /// Returns the number of bitmap words for a token.
    fn words(&self) -> u32 {
        self.all_cells().div_ceil(WORD * BLOCK_SIZE as u32)
    }

    /// Returns the block bitmap of each token.
    fn blocks(&self) -> Vec<u32> {
        let blocks = self.cells / BLOCK_SIZE as u32;
        let mut bits = vec![0; (self.words() * self.tokens) as usize];
        for token in 0..self.tokens {
            let first = if self.is_shared { 0 } else { token * blocks };
            for block in first..first + blocks {
                bits[(token * self.words() + block / WORD) as usize] |= 1 << (block % WORD);
            }
        }
        bits
    }

    fn tensors(&self, kind: KvType, size: u32) -> Tensors {
        let row = kind.row_bytes(size as usize).expect("sizes are whole blocks");
        let cache = || vec![0x11; row * (self.all_cells() * KV_HEADS) as usize];
        let numbers = || vec![0.01; (self.tokens * HEADS * size) as usize];
        Tensors { q: numbers(), k: cache(), v: cache(), blocks: self.blocks(), out: numbers() }
    }

    fn problem(&self, tensors: &mut Tensors, kind: KvType, size: u32) -> Problem {
        let row = kind.row_bytes(size as usize).expect("sizes are whole blocks") as u64;
        let (cell, q_row) = (row * u64::from(KV_HEADS), 4 * u64::from(size));
        let cache = Cells {
            k: tensors.k.as_ptr().cast(),
            v: tensors.v.as_ptr().cast(),
            blocks: tensors.blocks.as_ptr(),
            k_cell: cell,
            k_head: row,
            v_cell: cell,
            v_head: row,
            blocks_token: 4 * u64::from(self.words()),
            key_type: kind.number(),
            value_type: kind.number(),
            count: self.all_cells(),
            ..Cells::NONE
        };
        Problem {
            q: tensors.q.as_ptr().cast(),
            sinks: std::ptr::null(),
            out: tensors.out.as_mut_ptr(),
            q_token: q_row * u64::from(HEADS),
            q_head: q_row,
            q_stream: 0,
            cells: [cache, Cells::NONE],
            key_size: size,
            value_size: size,
            tokens: self.tokens,
            heads: HEADS,
            kv_heads: KV_HEADS,
            streams: 1,
            kv_streams: 1,
            scale: 0.1,
            max_bias: 0.0,
            softcap: 0.0,
        }
    }

    fn throughput(&self, kind: KvType, size: u32) -> Throughput {
        let row = kind.row_bytes(size as usize).expect("sizes are whole blocks") as u64;
        let elements = 2 * u64::from(size) * u64::from(self.tokens * HEADS) * u64::from(self.cells);
        let bytes = 2 * row * u64::from(KV_HEADS) * u64::from(self.all_cells());
        Throughput::ElementsAndBytes { elements, bytes }
    }
}

fn attention(criterion: &mut Criterion) {
    for size in [64, 128] {
        for (name, kind) in [("F16", KvType::F16), ("Q8_0", KvType::Q8_0), ("Q4_0", KvType::Q4_0)] {
            let mut group = criterion.benchmark_group(format!("head {size}, {name}"));
            for shape in &SHAPES {
                let mut tensors = shape.tensors(kind, size);
                let problem = shape.problem(&mut tensors, kind, size);
                let mut work = vec![0u8; work_size(&problem, 1)];
                group.throughput(shape.throughput(kind, size));
                group.bench_function(BenchmarkId::from_parameter(shape.name), |bencher| {
                    bencher.iter(|| {
                        let share = Share { thread: 0, threads: 1 };
                        // SAFETY: the tensors and the memory have the sizes in the problem.
                        unsafe {
                            let memory = Memory::new(&problem, share, work.as_mut_ptr());
                            compute(&problem, share, &memory);
                            merge(&problem, share, &memory);
                        }
                    });
                });
            }
        }
    }
}

/// Multiply-adds on registers, with enough of them in flight to saturate the processor.
struct Products(usize);

/// Number of independent accumulators.
const AT_ONCE: usize = 12;

impl Work for Products {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> f32 {
        // SAFETY: `Work::run` is called with the instruction set `S`.
        unsafe {
            let factor = S::splat(black_box(0.999));
            let mut sums = [S::splat(black_box(1.0)); AT_ONCE];
            for _ in 0..self.0 {
                for sum in &mut sums {
                    *sum = S::mul_add(*sum, factor, factor);
                }
            }
            sums.into_iter().map(|sum| S::sum(sum)).sum()
        }
    }
}

/// Number of lanes of the instruction set in use.
struct Lanes;

impl Work for Lanes {
    type Output = usize;

    unsafe fn run<S: Simd>(self) -> usize {
        S::LANES
    }
}

fn machine(criterion: &mut Criterion) {
    const ROUNDS: usize = 1_000_000;
    const COPIED: usize = 256 << 20;
    let mut group = criterion.benchmark_group("machine");
    let isa = Isa::chosen();
    let lanes = isa.run(Lanes);
    assert!(lanes <= MAX_LANES);
    group.throughput(Throughput::Elements((ROUNDS * AT_ONCE * lanes) as u64));
    group.bench_function("products in registers", |bencher| bencher.iter(|| isa.run(Products(ROUNDS))));
    let (from, mut to) = (vec![1u8; COPIED], vec![0u8; COPIED]);
    group.throughput(Throughput::ElementsAndBytes { elements: 1, bytes: COPIED as u64 });
    group.bench_function("copy", |bencher| {
        bencher.iter(|| black_box(&mut to).copy_from_slice(black_box(&from)));
    });
}

fn config() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = machine, attention
}
criterion_main!(benches);
