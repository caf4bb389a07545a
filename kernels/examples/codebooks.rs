//! Computes the tables of the cache types and prints the file that contains them:
//!
//! ```text
//! cargo run --release --package espalier-kernels --example codebooks > kernels/src/kv_quant/levels.rs
//! ```
//!
//! The only assumption about the data is that it is N(0, 1). The result does not depend on the machine: functions are
//! `libm`'s, which is plain Rust, and the encoder writes the same bytes on all processors.

use std::fmt::Write as _;

use espalier_kernels::kv_quant::path::{Table, codeword};
use espalier_kernels::simd::isa::Isa;
use espalier_kernels::simd::{Simd, Work};

fn main() {
    print!("{}", text(ROUNDS));
}

/// Number of times that the training data are encoded for the committed tables.
pub const ROUNDS: usize = 100;

/// Returns the whole file, with the trellis tables after `rounds` encodings of the training data.
pub fn text(rounds: usize) -> String {
    let turbo =
        [("TURBO2", 4), ("TURBO3", 8), ("TURBO4", 16)].map(|(name, n)| (name, rounded(&lloyd_max(n))));
    let tcq = [("TCQ2", 2), ("TCQ3", 3)].map(|(name, bits)| (name, rounded(&trellis(bits, rounds))));
    let mut text = HEAD.to_string();
    for (name, table) in turbo.iter().chain(&tcq) {
        write_table(&mut text, name, table);
    }
    text
}

const HEAD: &str =
    "//! What each window stands for. Written by kernels/examples/codebooks.rs; do not edit.\n";

/// Integer levels, and the number of level units in one standard deviation.
struct Rounded {
    levels: Vec<i8>,
    spread: f64,
}

fn write_table(text: &mut String, name: &str, table: &Rounded) {
    let Rounded { levels, spread } = table;
    let count = levels.len();
    let rows: String = levels.chunks(16).map(|row| format!("    {},\n", list(row))).collect();
    let of_name = name.to_lowercase();
    let reason = "writing to a string succeeds";
    writeln!(
        text,
        "\n/// Levels of `{of_name}`.\n#[rustfmt::skip]\npub const {name}: [i8; {count}] = [\n{rows}];"
    )
    .expect(reason);
    writeln!(
        text,
        "/// How many of them lie in a standard deviation.\npub const {name}_SPREAD: f32 = {spread:.3};"
    )
    .expect(reason);
}

fn list(row: &[i8]) -> String {
    row.iter().map(i8::to_string).collect::<Vec<_>>().join(", ")
}

/// Rounds levels to integers, with the largest magnitude, up to 127, that minimises the rounding error.
fn rounded(levels: &[f64]) -> Rounded {
    let largest = levels.iter().map(|level| level.abs()).fold(0.0, f64::max);
    let error = |top: u32| {
        let spread = f64::from(top) / largest;
        let of = |level: &f64| (libm::round(level * spread) / spread - level).powi(2);
        levels.iter().map(of).sum::<f64>()
    };
    let top = (100..=127).fold(127, |best, top| if error(top) < error(best) { top } else { best });
    let spread = f64::from(top) / largest;
    Rounded { levels: levels.iter().map(|level| libm::round(level * spread) as i8).collect(), spread }
}

/// The quantizer of minimum mean square error for N(0, 1): each level is the mean of the values nearest to it.
fn lloyd_max(count: usize) -> Vec<f64> {
    const STEPS: usize = 20_000;
    let mut levels: Vec<f64> = (0..count).map(|at| (at as f64 + 0.5) / count as f64 * 4.0 - 2.0).collect();
    for _ in 0..STEPS {
        let between = |at: usize| match at {
            0 => f64::NEG_INFINITY,
            at if at == count => f64::INFINITY,
            at => (levels[at - 1] + levels[at]) / 2.0,
        };
        levels = (0..count).map(|at| mean_between(between(at), between(at + 1))).collect();
    }
    levels
}

/// Returns the mean of N(0, 1) between two values.
fn mean_between(low: f64, high: f64) -> f64 {
    let density = |x: f64| libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
    let below = |x: f64| libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0;
    (density(low) - density(high)) / (below(high) - below(low))
}

/// Values in a block of the training data.
const BLOCK: usize = 128;
/// Number of blocks.
const BLOCKS: usize = 8192;
/// The generalized Lloyd algorithm (Linde-Buzo-Gray) on the best codewords of normal values.
fn trellis(bits: usize, rounds: usize) -> Vec<f64> {
    let mut random = Normal { state: 1 };
    let mut table = Table::new(bits, &vec![0; 64 << bits]);
    for state in 0..table.levels().len() {
        table.set(state, random.next() as f32);
    }
    let values: Vec<f32> = (0..BLOCK * BLOCKS).map(|_| random.next() as f32).collect();
    let mut windows = vec![0; values.len()];
    for _ in 0..rounds {
        encode(bits, &table, &values, &mut windows);
        let mut sums = vec![(0.0, 0u32); table.levels().len()];
        for (value, window) in values.iter().zip(&windows) {
            let (sum, count) = &mut sums[usize::from(*window)];
            (*sum, *count) = (*sum + f64::from(*value), *count + 1);
        }
        for (state, (sum, count)) in sums.into_iter().enumerate().filter(|(_, (_, count))| *count > 0) {
            table.set(state, (sum / f64::from(count)) as f32);
        }
    }
    table.levels().iter().copied().map(f64::from).collect()
}

/// Encodes each block independently, a part of them on each core.
fn encode(bits: usize, table: &Table, values: &[f32], windows: &mut [u16]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let part = BLOCKS.div_ceil(threads) * BLOCK;
    std::thread::scope(|scope| {
        for (values, windows) in values.chunks(part).zip(windows.chunks_mut(part)) {
            scope.spawn(move || Isa::chosen().run(Encode { bits, table, values, windows }));
        }
    });
}

struct Encode<'a> {
    bits: usize,
    table: &'a Table,
    values: &'a [f32],
    windows: &'a mut [u16],
}

impl Work for Encode<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for (values, windows) in self.values.chunks_exact(BLOCK).zip(self.windows.chunks_exact_mut(BLOCK)) {
            // SAFETY: `Work::run` is called with the instruction set `S`.
            unsafe {
                match self.bits {
                    2 => codeword::<S, 2>(self.table, values, windows),
                    _ => codeword::<S, 3>(self.table, values, windows),
                }
            }
        }
    }
}

/// Reproducible normal random numbers: SplitMix64, Box-Muller.
struct Normal {
    state: u64,
}

impl Normal {
    fn next(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * angle)
    }

    /// Returns a number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
