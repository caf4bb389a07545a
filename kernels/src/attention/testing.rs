//! Attention problems for tests: their memory, and the expected results.

use std::ffi::c_void;

use super::division::padded;
use super::encoding::Lines;
use super::guarded::Guarded;
use super::kv_type::{Floating, KvType, Quantized};
use super::problem::{BLOCK_SIZE, Cells, Problem};
use super::tile::Tile;
use crate::simd::half;
use crate::simd::isa::Isa;
use crate::simd::{Simd, Work};

/// Returns a small problem, for its sizes only: its pointers are null.
pub fn problem() -> Problem {
    problem_of(100)
}

/// The same with `count` cells.
pub fn problem_of(count: u32) -> Problem {
    let kind = KvType::F16.number();
    Problem {
        q: std::ptr::null(),
        sinks: std::ptr::null(),
        out: std::ptr::null_mut(),
        q_token: 0,
        q_head: 0,
        q_stream: 0,
        cells: [Cells { count, key_type: kind, value_type: kind, ..Cells::NONE }, Cells::NONE],
        key_size: 64,
        value_size: 64,
        tokens: 1,
        heads: 4,
        kv_heads: 2,
        streams: 1,
        kv_streams: 1,
        scale: 0.125,
        max_bias: 0.0,
        softcap: 0.0,
    }
}

/// Reproducible random numbers: SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64-bit number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns an integer below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns one of the elements.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns a normally distributed number: Box-Muller.
    pub fn gaussian(&mut self) -> f32 {
        let mut uniform = || (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (1.0 - uniform(), uniform());
        ((-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()) as f32
    }

    /// Returns an approximately normally distributed number, around 0.
    pub fn normal(&mut self) -> f32 {
        let sum: f64 = (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum();
        (sum - 6.0) as f32
    }
}

/// A problem with its memory.
pub struct Case {
    /// Sizes; the pointers are filled in by [`Case::problem`].
    pub sizes: Problem,
    pub q: Guarded<f32>,
    pub sinks: Option<Guarded<f32>>,
    pub cells: [Memory; 2],
}

/// The memory of some cells.
pub struct Memory {
    pub k: Guarded<u8>,
    pub v: Guarded<u8>,
    pub mask: Option<Guarded<u16>>,
    pub blocks: Option<Guarded<u32>>,
}

impl Case {
    /// Creates random contents for `sizes`.
    pub fn new(sizes: Problem, random: &mut Random) -> Case {
        let rows = sizes.tokens as usize * (sizes.heads * sizes.streams) as usize;
        let q: Vec<f32> = (0..rows * sizes.key_size as usize).map(|_| random.normal()).collect();
        let sinks =
            (random.below(3) == 0).then(|| (0..sizes.heads).map(|_| random.normal()).collect::<Vec<f32>>());
        Case {
            sizes,
            q: Guarded::new(&q),
            sinks: sinks.map(|all| Guarded::new(&all)),
            cells: sizes.cells.map(|cells| Memory::new(&sizes, &cells, random)),
        }
    }

    /// Returns the problem, with `out` as its output.
    pub fn problem(&self, out: &mut [f32]) -> Problem {
        let sizes = self.sizes;
        let q_row = 4 * u64::from(sizes.key_size);
        let cells = |at: usize| self.cells[at].cells(&sizes, &sizes.cells[at]);
        Problem {
            q: self.q.as_ptr().cast::<c_void>(),
            sinks: pointer(self.sinks.as_ref()),
            out: out.as_mut_ptr(),
            q_token: q_row,
            q_head: q_row * u64::from(sizes.tokens),
            q_stream: q_row * u64::from(sizes.tokens * sizes.heads),
            cells: [cells(0), cells(1)],
            ..sizes
        }
    }

    /// Returns the number of floats in the output.
    pub fn out_length(&self) -> usize {
        super::division::out_rows(&self.sizes) * self.sizes.value_size as usize
    }

    /// Computes the result in f64.
    pub fn reference(&self) -> Vec<Expected> {
        let sizes = self.sizes;
        let decoded = [0, 1].map(|at| self.cells[at].decoded(&sizes, &sizes.cells[at]));
        let mut out = Vec::new();
        for stream in 0..sizes.streams as usize {
            for token in 0..sizes.tokens as usize {
                for head in 0..sizes.heads as usize {
                    out.extend(self.reference_row(&decoded, Row { stream, token, head }));
                }
            }
        }
        out
    }

    fn reference_row(&self, decoded: &[[Vec<f32>; 2]; 2], row: Row) -> Vec<Expected> {
        let sizes = self.sizes;
        let value = sizes.value_size as usize;
        let mut scores = Vec::new();
        let mut rounded = 0.0f64;
        for (at, [all_k, all_v]) in decoded.iter().enumerate() {
            for cell in (0..sizes.cells[at].count as usize).filter(|cell| self.sees(at, row, *cell)) {
                let first = self.row_of(at, row, cell);
                let k = &all_k[first * sizes.key_size as usize..][..sizes.key_size as usize];
                rounded = rounded.max(self.rounded_score(at, row, k));
                scores.push((&all_v[first * value..][..value], self.score(at, row, cell, k)));
            }
        }
        let sink = self.sinks.as_ref().map_or(f64::NEG_INFINITY, |sinks| f64::from(sinks[row.head]));
        let largest = scores.iter().map(|(_, score)| *score).fold(sink, f64::max);
        let mut sum = if sink == f64::NEG_INFINITY { 0.0 } else { (sink - largest).exp() };
        let (mut out, mut sizes_of) = (vec![0.0; value], vec![0.0; value]);
        // The product of a weight and its cell's scale is rounded relative to the largest product.
        let (mut largest_weight, mut largest_value, count) = (0.0f64, 0.0f64, scores.len() as f64);
        for (v, score) in scores {
            let weight = (score - largest).exp();
            sum += weight;
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight * f64::from(*v));
            sizes_of.iter_mut().zip(v).for_each(|(size, v)| *size += weight * f64::from(v.abs()));
            largest_weight = largest_weight.max(weight);
            largest_value = v.iter().map(|v| f64::from(v.abs())).fold(largest_value, f64::max);
        }
        let has_quantized_v =
            sizes.cells.iter().any(|cells| matches!(kind(cells.value_type), KvType::Quantized(_)));
        let of_weights = match has_quantized_v {
            true => ROUNDED * largest_weight * largest_value * count.sqrt(),
            false => 0.0,
        };
        let expected = |(out, size): (&f64, &f64)| match sum {
            0.0 => Expected { value: 0.0, slack: 0.0 },
            _ => Expected { value: out / sum, slack: (2.0 * rounded * size + of_weights) / sum },
        };
        out.iter().zip(&sizes_of).map(expected).collect()
    }

    /// Returns by how much quantizing Q to int16 may change a score.
    fn rounded_score(&self, at: usize, row: Row, k: &[f32]) -> f64 {
        if matches!(kind(self.sizes.cells[at].key_type), KvType::Floating(_)) {
            return 0.0;
        }
        let largest = self.q_of(row).iter().fold(0.0f32, |largest, q| largest.max(q.abs()));
        let length = k.iter().map(|k| f64::from(*k).powi(2)).sum::<f64>().sqrt();
        ROUNDED * f64::from(largest) * length * f64::from(self.sizes.scale)
    }

    fn q_of(&self, row: Row) -> &[f32] {
        let (sizes, key) = (self.sizes, self.sizes.key_size as usize);
        let q = (row.stream * sizes.heads as usize + row.head) * sizes.tokens as usize + row.token;
        &self.q[q * key..][..key]
    }

    fn score(&self, at: usize, row: Row, cell: usize, k: &[f32]) -> f64 {
        let sizes = self.sizes;
        let dot: f64 = self.q_of(row).iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
        let mut score = dot * f64::from(sizes.scale);
        if sizes.softcap != 0.0 {
            let cap = f64::from(sizes.softcap);
            score = cap * (score / cap).tanh();
        }
        score + f64::from(self.mask_of(at, row, cell) * sizes.slope(row.head))
    }

    /// Returns the index of the row of K and V that a row of Q reads for a cell.
    fn row_of(&self, at: usize, row: Row, cell: usize) -> usize {
        let sizes = self.sizes;
        let stream = row.stream / (sizes.streams / sizes.kv_streams) as usize;
        (stream * sizes.cells[at].count as usize + cell) * sizes.kv_heads as usize + row.head / sizes.group()
    }

    fn mask_of(&self, at: usize, row: Row, cell: usize) -> f32 {
        let Some(mask) = &self.cells[at].mask else { return 0.0 };
        let cells = &self.sizes.cells[at];
        let stream = row.stream % cells.mask_streams as usize;
        let row = stream * self.sizes.tokens as usize + row.token;
        half::to_f32(mask[row * cells.count as usize + cell])
    }

    fn sees(&self, at: usize, row: Row, cell: usize) -> bool {
        let words = words(&self.sizes.cells[at]);
        let block = cell / BLOCK_SIZE;
        let blocks = self.cells[at].blocks.as_ref();
        let has = blocks.is_none_or(|blocks| blocks[row.token * words + block / 32] >> (block % 32) & 1 == 1);
        has && self.mask_of(at, row, cell) != f32::NEG_INFINITY
    }
}

/// An expected value of the output.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Computed in f64.
    pub value: f64,
    /// Allowed error from rounding to int16, if a type is quantized.
    pub slack: f64,
}

/// Six times the standard deviation of the error of rounding to a multiple of 1/32767, which is sqrt(1/12) of it.
const ROUNDED: f64 = 6.0 * 0.288_675 / 32767.0;

/// A row of Q and of the output.
#[derive(Clone, Copy)]
struct Row {
    stream: usize,
    token: usize,
    head: usize,
}

impl Memory {
    /// Creates random contents: a mask in half the cases, which hides some runs of cells and some cells.
    fn new(sizes: &Problem, cells: &Cells, random: &mut Random) -> Memory {
        let (tokens, count) = (sizes.tokens as usize, cells.count as usize);
        let rows = count * (sizes.kv_heads * sizes.kv_streams) as usize;
        let mut values = |number, size| encoded(kind(number), rows * size as usize, random);
        let k = values(cells.key_type, sizes.key_size);
        let v = values(cells.value_type, sizes.value_size);
        let blocks = (random.below(2) == 0)
            .then(|| (0..tokens * words(cells)).map(|_| random.next() as u32).collect::<Vec<u32>>());
        let mask = (random.below(2) == 0).then(|| {
            let rows = tokens * cells.mask_streams as usize;
            (0..rows).flat_map(|_| mask_row(count, random)).collect::<Vec<u16>>()
        });
        Memory {
            k: Guarded::new(&k),
            v: Guarded::new(&v),
            mask: mask.map(|all| Guarded::new(&all)),
            blocks: blocks.map(|all| Guarded::new(&all)),
        }
    }

    /// Returns `cells` with pointers and strides.
    fn cells(&self, sizes: &Problem, cells: &Cells) -> Cells {
        let of = |number: i32, size: u32| kind(number).row_bytes(size as usize).unwrap() as u64;
        let (key, value) = (of(cells.key_type, sizes.key_size), of(cells.value_type, sizes.value_size));
        let (count, heads) = (u64::from(cells.count), u64::from(sizes.kv_heads));
        Cells {
            k: self.k.as_ptr().cast(),
            v: self.v.as_ptr().cast(),
            mask: pointer(self.mask.as_ref()).cast(),
            blocks: pointer(self.blocks.as_ref()),
            k_cell: key * heads,
            k_head: key,
            k_stream: key * heads * count,
            v_cell: value * heads,
            v_head: value,
            v_stream: value * heads * count,
            mask_token: 2 * count,
            mask_stream: 2 * count * u64::from(sizes.tokens),
            blocks_token: 4 * words(cells) as u64,
            ..*cells
        }
    }

    /// Decodes K and V.
    fn decoded(&self, sizes: &Problem, cells: &Cells) -> [Vec<f32>; 2] {
        let sizes = [sizes.key_size, sizes.value_size].map(|size| size as usize);
        [decoded(kind(cells.key_type), &self.k, sizes[0]), decoded(kind(cells.value_type), &self.v, sizes[1])]
    }
}

fn kind(number: i32) -> KvType {
    KvType::from_number(number).unwrap()
}

/// Returns the number of bitmap words for each token.
fn words(cells: &Cells) -> usize {
    cells.tile_count().div_ceil(32)
}

fn pointer<T: Copy>(all: Option<&Guarded<T>>) -> *const T {
    all.map_or(std::ptr::null(), |all| all.as_ptr())
}

/// Returns the number of random cases; `ESPALIER_CASES` overrides it.
pub fn cases(usual: u64) -> u64 {
    std::env::var("ESPALIER_CASES")
        .map_or(usual, |number| number.parse().expect("ESPALIER_CASES is a number"))
}

/// Returns random values of a type, in a moderate range.
pub fn encoded(kind: KvType, values: usize, random: &mut Random) -> Vec<u8> {
    let (block, bytes) = kind.block();
    let mut all = Vec::with_capacity(values / block * bytes);
    for _ in 0..values / block {
        match kind {
            KvType::Floating(Floating::F32) => all.extend(random.normal().to_le_bytes()),
            KvType::Floating(Floating::Bf16) => {
                all.extend(((random.normal().to_bits() >> 16) as u16).to_le_bytes())
            }
            KvType::Floating(Floating::F16) => all.extend(small_half(random, 15).to_le_bytes()),
            KvType::Quantized(kind) => {
                let exponent = if matches!(kind, Quantized::Dense(_)) { 14 } else { 11 };
                all.extend(small_half(random, exponent).to_le_bytes());
                let has_min = matches!(kind, Quantized::Q4_1 | Quantized::Q5_1);
                if has_min {
                    all.extend(small_half(random, 14).to_le_bytes());
                }
                let rest = bytes - if has_min { 4 } else { 2 };
                all.extend((0..rest).map(|_| random.next() as u8));
            }
        }
    }
    all
}

/// Returns a half-precision float below two to the power of `exponent - 14`.
fn small_half(random: &mut Random, exponent: usize) -> u16 {
    let sign = (random.next() & 0x8000) as u16;
    sign | ((exponent - random.below(4)) << 10) as u16 | (random.next() & 1023) as u16
}

fn mask_row(cells: usize, random: &mut Random) -> Vec<u16> {
    let (from, to) = (random.below(cells + 1), random.below(cells + 1));
    let hidden = from.min(to)..from.max(to);
    let value = |cell: usize, random: &mut Random| match random.below(8) {
        _ if hidden.contains(&cell) => half::NEGATIVE_INFINITY,
        0 => half::NEGATIVE_INFINITY,
        1 => small_half(random, 15) | 0x8000,
        _ => 0,
    };
    (0..cells).map(|cell| value(cell, random)).collect()
}

/// Decodes rows of `size` values.
pub fn decoded(kind: KvType, bytes: &[u8], size: usize) -> Vec<f32> {
    decoded_on(Isa::Scalar, kind, bytes, size)
}

/// The same on an instruction set that this processor has.
pub fn decoded_on(isa: Isa, kind: KvType, bytes: &[u8], size: usize) -> Vec<f32> {
    isa.run(Decode { kind, bytes, size })
}

struct Decode<'a> {
    kind: KvType,
    bytes: &'a [u8],
    size: usize,
}

impl Work for Decode<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Vec<f32> {
        let Decode { kind, bytes, size } = self;
        let stride = kind.row_bytes(size).unwrap();
        let cells = bytes.len() / stride;
        let padded = padded(size as u32);
        let mut to = vec![f32::NAN; cells * padded];
        let lines = Lines { first: bytes.as_ptr(), stride, ahead: 0 };
        let tile = Tile { lines, cells, size, kind };
        // SAFETY: there is space for each padded row.
        unsafe { tile.decode::<S>(to.as_mut_ptr()) };
        assert!(to.chunks_exact(padded).all(|row| row[size..].iter().all(|one| *one == 0.0)));
        to.chunks_exact(padded).flat_map(|row| &row[..size]).copied().collect()
    }
}
