//! Time of one delta-net layer on one thread: our kernel, and upstream's steps with the same vector operations.
//!
//! Upstream gathers the states of the batch (`get_rows`), copies each to the operation's output, passes over it four
//! times for each token, and copies it back to the cache (`cpy`). `ESPALIER_ISA=` selects the instruction set of both.
//! An element is a value of a state and a token; bytes are those of the states, read and written once.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use espalier_kernels::gdn::batch::Batch;
use espalier_kernels::gdn::compute;
use espalier_kernels::gdn::problem::Problem;
use espalier_kernels::share::Share;
use espalier_kernels::simd::isa::Isa;
use espalier_kernels::simd::{Simd, Work};

/// Size of the heads of Qwen 3.5 and of Qwen3-Next, and half of the number.
const SIZE: usize = 128;
const HEADS: usize = 16;
const KEY_HEADS: usize = 8;

/// A batch of sequences with as many tokens each.
struct Shape {
    name: &'static str,
    seqs: usize,
    tokens: usize,
}

const SHAPES: [Shape; 5] = [
    Shape { name: "1 sequence", seqs: 1, tokens: 1 },
    Shape { name: "8 sequences", seqs: 8, tokens: 1 },
    Shape { name: "32 sequences", seqs: 32, tokens: 1 },
    Shape { name: "prompt of 64", seqs: 1, tokens: 64 },
    Shape { name: "prompt of 512", seqs: 1, tokens: 512 },
];

/// Memory of a problem. Each row of Q and K has length 1, so that states stay finite.
struct Tensors {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    gate: Vec<f32>,
    beta: Vec<f32>,
    states: Vec<f32>,
    gathered: Vec<f32>,
    updated: Vec<f32>,
    sources: Vec<i32>,
    out: Vec<f32>,
    scratch: Vec<f32>,
}

/// Values in the state of a head, and of a sequence.
const MATRIX: usize = SIZE * SIZE;
const STATE: usize = HEADS * MATRIX;

impl Tensors {
    fn new(shape: &Shape) -> Tensors {
        let tokens = shape.seqs * shape.tokens;
        let units = || vec![1.0 / (SIZE as f32).sqrt(); tokens * KEY_HEADS * SIZE];
        let states = || vec![0.01; shape.seqs * STATE];
        Tensors {
            q: units(),
            k: units(),
            v: vec![0.1; tokens * HEADS * SIZE],
            gate: vec![-0.1; tokens * HEADS],
            beta: vec![0.5; tokens * HEADS],
            states: states(),
            gathered: states(),
            updated: states(),
            sources: (0..shape.seqs as i32).collect(),
            out: vec![0.0; tokens * HEADS * SIZE],
            scratch: vec![0.0; SIZE],
        }
    }

    fn problem(&mut self, shape: &Shape) -> Problem {
        let row = 4 * SIZE as u64;
        let (of_keys, of_values) = (row * KEY_HEADS as u64, row * HEADS as u64);
        let tokens = shape.tokens as u64;
        Problem {
            q: self.q.as_ptr().cast(),
            k: self.k.as_ptr().cast(),
            v: self.v.as_ptr().cast(),
            gate: self.gate.as_ptr(),
            beta: self.beta.as_ptr(),
            states: self.states.as_mut_ptr(),
            out: self.out.as_mut_ptr(),
            batch: Batch {
                sources: self.sources.as_ptr(),
                tokens: shape.tokens as u32,
                seqs: shape.seqs as u32,
                first: 0,
                moved: shape.seqs as u32,
                cells: shape.seqs as u32,
                planes: 1,
            },
            q_head: row,
            q_token: of_keys,
            q_seq: of_keys * tokens,
            k_head: row,
            k_token: of_keys,
            k_seq: of_keys * tokens,
            v_head: row,
            v_token: of_values,
            v_seq: of_values * tokens,
            size: SIZE as u32,
            gate_size: 1,
            heads: HEADS as u32,
            key_heads: KEY_HEADS as u32,
        }
    }
}

/// Upstream's steps.
struct Stock<'a> {
    shape: &'a Shape,
    tensors: &'a mut Tensors,
}

impl Work for Stock<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Stock { shape, tensors } = self;
        for (row, source) in tensors.gathered.chunks_exact_mut(STATE).zip(&tensors.sources) {
            row.copy_from_slice(&tensors.states[*source as usize * STATE..][..STATE]);
        }
        for seq in 0..shape.seqs {
            for head in 0..HEADS {
                // SAFETY: `Work::run` is called with the instruction set `S`.
                unsafe { stock_head::<S>(tensors, shape, seq, head) };
            }
        }
        tensors.states.copy_from_slice(&tensors.updated);
    }
}

/// The loop of `ggml_compute_forward_gated_delta_net_one_chunk` for one sequence and head.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
unsafe fn stock_head<S: Simd>(tensors: &mut Tensors, shape: &Shape, seq: usize, head: usize) {
    let place = seq * STATE + head * MATRIX;
    let state = &mut tensors.updated[place..][..MATRIX];
    state.copy_from_slice(&tensors.gathered[place..][..MATRIX]);
    let scale = 1.0 / (SIZE as f32).sqrt();
    for token in seq * shape.tokens..(seq + 1) * shape.tokens {
        let keys = (token * KEY_HEADS + head % KEY_HEADS) * SIZE;
        let (q, k) = (&tensors.q[keys..][..SIZE], &tensors.k[keys..][..SIZE]);
        let position = token * HEADS + head;
        let v = &tensors.v[position * SIZE..][..SIZE];
        let out = &mut tensors.out[position * SIZE..][..SIZE];
        let decay = tensors.gate[position].exp();
        // SAFETY: per this function's contract the processor has `S`; all rows have `SIZE` values, a multiple of
        // `LANES`.
        unsafe {
            scale_all::<S>(state, decay);
            for (row, state) in state.chunks_exact(SIZE).enumerate() {
                tensors.scratch[row] = (v[row] - dot::<S>(state, k)) * tensors.beta[position];
            }
            for (row, state) in state.chunks_exact_mut(SIZE).enumerate() {
                add_scaled::<S>(state, k, tensors.scratch[row]);
            }
            for (row, state) in state.chunks_exact(SIZE).enumerate() {
                out[row] = dot::<S>(state, q) * scale;
            }
        }
    }
}

/// # Safety
///
/// The processor has the instruction set `S`, and the length is a multiple of `LANES`; here and below.
#[inline(always)]
unsafe fn scale_all<S: Simd>(all: &mut [f32], factor: f32) {
    for lanes in all.chunks_exact_mut(S::LANES) {
        // SAFETY: per this function's contract the processor has `S`, and there are `LANES` values.
        unsafe { S::store(lanes.as_mut_ptr(), S::mul(S::load(lanes.as_ptr()), S::splat(factor))) };
    }
}

/// # Safety
///
/// As [`scale_all`].
#[inline(always)]
unsafe fn add_scaled<S: Simd>(to: &mut [f32], from: &[f32], factor: f32) {
    for (to, from) in to.chunks_exact_mut(S::LANES).zip(from.chunks_exact(S::LANES)) {
        // SAFETY: per this function's contract the processor has `S`, and there are `LANES` values.
        unsafe {
            let sum = S::mul_add(S::load(from.as_ptr()), S::splat(factor), S::load(to.as_ptr()));
            S::store(to.as_mut_ptr(), sum);
        }
    }
}

/// As upstream's, with four sums at once.
///
/// # Safety
///
/// As [`scale_all`], for a multiple of four vectors.
#[inline(always)]
unsafe fn dot<S: Simd>(a: &[f32], b: &[f32]) -> f32 {
    // SAFETY: per this function's contract the processor has `S`, and there are four vectors in each step.
    unsafe {
        let mut sums = [S::splat(0.0); 4];
        for (a, b) in a.chunks_exact(4 * S::LANES).zip(b.chunks_exact(4 * S::LANES)) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let (a, b) = (a.as_ptr().add(i * S::LANES), b.as_ptr().add(i * S::LANES));
                *sum = S::mul_add(S::load(a), S::load(b), *sum);
            }
        }
        S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])))
    }
}

fn recurrence(criterion: &mut Criterion) {
    for shape in &SHAPES {
        let mut tensors = Tensors::new(shape);
        let mut group = criterion.benchmark_group(shape.name);
        let values = (shape.seqs * STATE) as u64;
        group.throughput(Throughput::ElementsAndBytes {
            elements: values * shape.tokens as u64,
            bytes: 2 * 4 * values,
        });
        group.bench_function(BenchmarkId::from_parameter("in place"), |bencher| {
            let problem = tensors.problem(shape);
            bencher.iter(|| {
                // SAFETY: the tensors have the sizes in the problem.
                let is_computed = unsafe { compute(black_box(&problem), Share { thread: 0, threads: 1 }) };
                assert!(is_computed);
            });
        });
        group.bench_function(BenchmarkId::from_parameter("four passes"), |bencher| {
            bencher.iter(|| Isa::chosen().run(Stock { shape, tensors: black_box(&mut tensors) }));
        });
    }
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
    targets = recurrence
}
criterion_main!(benches);
