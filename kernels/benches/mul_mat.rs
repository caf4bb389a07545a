//! Time of one product with q8_0 weights on one thread, for 1 to 512 tokens.
//!
//! The weights are more than a cache has. `ESPALIER_ISA=` selects the instruction set. An element is a multiplication;
//! bytes are those of the weights.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use espalier_kernels::mul_mat::{BLOCK, BLOCK_BYTES, Problem, compute};
use espalier_kernels::share::Share;

/// Values in a row of the weights, and number of rows.
const SIZE: usize = 2048;
const ROWS: usize = 49_152;

const TOKENS: [usize; 6] = [1, 4, 8, 16, 32, 512];

/// Returns rows of q8_0 whose scales are 1/64.
fn rows(count: usize) -> Vec<u8> {
    let quants = (0..BLOCK).map(|i| i as u8 * 7);
    let block: Vec<u8> = 0x2400u16.to_le_bytes().into_iter().chain(quants).collect();
    assert_eq!(block.len(), BLOCK_BYTES);
    block.repeat(count * SIZE / BLOCK)
}

fn products(criterion: &mut Criterion) {
    let weights = rows(ROWS);
    let mut group = criterion.benchmark_group("q8_0");
    for tokens in TOKENS {
        let (activations, mut out) = (rows(tokens), vec![0.0; tokens * ROWS]);
        let problem = Problem {
            weights: weights.as_ptr().cast(),
            activations: activations.as_ptr().cast(),
            out: out.as_mut_ptr(),
            weights_row: (SIZE / BLOCK * BLOCK_BYTES) as u64,
            activations_token: (SIZE / BLOCK * BLOCK_BYTES) as u64,
            out_token: 4 * ROWS as u64,
            size: SIZE as u32,
            rows: ROWS as u32,
            tokens: tokens as u32,
        };
        let elements = (tokens * ROWS * SIZE) as u64;
        group.throughput(Throughput::ElementsAndBytes { elements, bytes: weights.len() as u64 });
        group.bench_function(BenchmarkId::from_parameter(format!("{tokens} tokens")), |bencher| {
            bencher.iter(|| {
                // SAFETY: the tensors have the sizes in the problem.
                let is_computed = unsafe { compute(black_box(&problem), Share { thread: 0, threads: 1 }) };
                assert!(is_computed);
            });
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
    targets = products
}
criterion_main!(benches);
