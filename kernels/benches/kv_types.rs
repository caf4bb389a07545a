//! Encoding time per block of each type, and decoding throughput, on one thread.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use espalier_kernels::attention::decoder;
use espalier_kernels::kv_quant::{DenseType, encoder};

/// Number of values encoded at once: 16 blocks of 128.
const VALUES: usize = 2048;

/// Not normally distributed, but with the same spread.
fn values() -> Vec<f32> {
    (0..VALUES).map(|at| ((at * 7919 % 2003) as f32 / 1001.0 - 1.0) * 1.7).collect()
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode 128 values");
    let (from, mut to) = (values(), vec![0; VALUES]);
    for kind in DenseType::ALL {
        group.throughput(Throughput::Elements(128));
        let bytes = 128 / kind.block.values() * kind.bytes();
        let name = BenchmarkId::new(kind.code.name(), kind.block.values());
        let mut at = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                at = (at + 128) % VALUES;
                encoder::encode(kind, black_box(&from[at..at + 128]), &mut to[..bytes]);
            });
        });
    }
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    let (from, mut to) = (values(), vec![0.0; VALUES]);
    for kind in DenseType::ALL {
        let mut blocks = vec![0; VALUES / kind.block.values() * kind.bytes()];
        encoder::encode(kind, &from, &mut blocks);
        group.throughput(Throughput::Elements(VALUES as u64));
        let name = BenchmarkId::new(kind.code.name(), kind.block.values());
        group.bench_function(name, |bencher| {
            bencher.iter(|| decoder::decode(kind, black_box(&blocks), black_box(&mut to)));
        });
    }
    group.finish();
}

criterion_group!(benches, encode, decode);
criterion_main!(benches);
