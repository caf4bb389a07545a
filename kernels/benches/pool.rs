//! Throughput of the block pool's operations.
//!
//! `cargo bench --package espalier-kernels --features benches --bench pool`

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Pool, PoolOptions};

const BLOCK_SIZE: usize = 16;

fn pool_of(block_count: u32) -> Pool {
    let block_size = BLOCK_SIZE as u32;
    let options = PoolOptions { block_count, block_size, sequence_count: 64, ..PoolOptions::default() };
    Pool::new(options).expect("the options are in range")
}

fn prompt(block_count: usize) -> Vec<i32> {
    (0..(block_count * BLOCK_SIZE + 1) as i32).collect()
}

fn reserve(pool: &mut Pool, sequence: i32, positions: std::ops::Range<usize>) {
    let sequences = vec![sequence; positions.len()];
    let positions: Vec<i32> = positions.map(|position| position as i32).collect();
    pool.reserve(&sequences, &positions).expect("there are enough blocks");
}

/// Caches this prompt, computed in sequence 0, in a pool.
fn cached(pool: &mut Pool, prompt: &[i32]) {
    pool.begin(0, prompt, RequestKeys::default()).expect("the sequence is empty");
    pool.match_prefix(0).expect("the request has begun");
    reserve(pool, 0, 0..prompt.len());
    pool.cache(0, prompt).expect("the tokens are those of the prompt");
}

/// One more token on a sequence with 100 blocks; every 16th allocates a block.
fn reserve_one_token(criterion: &mut Criterion) {
    let mut pool = pool_of(8192);
    reserve(&mut pool, 0, 0..1600);
    let mut position = 1600;
    let mut group = criterion.benchmark_group("reserve");
    group.throughput(Throughput::Elements(1));
    group.bench_function("one token, decoding", |bencher| {
        bencher.iter(|| {
            if position == 100_000 {
                pool.remove(0, 1600, -1).expect("the sequence is known");
                position = 1600;
            }
            position += 1;
            black_box(pool.reserve(&[0], &[position]).expect("there are enough blocks").cells[0])
        });
    });
    let mut pool = pool_of(8192);
    reserve(&mut pool, 0, 0..32_000);
    let positions = [32_000, 32_001, 32_002, 32_003];
    group.bench_function("four tokens on 32,000, three rejected", |bencher| {
        bencher.iter(|| {
            black_box(pool.reserve(&[0; 4], &positions).expect("there are enough blocks").cells[0]);
            pool.remove(0, 32_001, -1).expect("the sequence is known");
        });
    });
    group.finish();
}

/// Begin (which hashes), match, end and release. Per block.
fn match_a_prompt(criterion: &mut Criterion) {
    let mut pool = pool_of(8192);
    let prompt = prompt(100);
    cached(&mut pool, &prompt);
    let mut group = criterion.benchmark_group("attach");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 blocks, with begin and end", |bencher| {
        bencher.iter(|| {
            pool.begin(1, &prompt, RequestKeys::default()).expect("the sequence is empty");
            let matched = pool.match_prefix(1).expect("the request has begun").blocks.len();
            assert_eq!(matched, 100);
            pool.end(1).expect("the sequence is known");
            pool.remove(1, 0, -1).expect("the sequence is known");
        });
    });
    pool.begin(1, &prompt, RequestKeys::default()).expect("the sequence is empty");
    group.bench_function("100 blocks, attach and give up", |bencher| {
        bencher.iter(|| {
            black_box(pool.match_prefix(1).expect("the request has begun").blocks.len());
            pool.remove(1, 0, -1).expect("the sequence is known");
        });
    });
    group.finish();
}

/// 100 blocks released and allocated again. Per block.
fn free_and_reallocate(criterion: &mut Criterion) {
    let mut pool = pool_of(128);
    let (sequences, positions): (Vec<i32>, Vec<i32>) = (0..100).map(|block| (0, block * 16)).unzip();
    let mut group = criterion.benchmark_group("free and reallocate");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 blocks", |bencher| {
        bencher.iter(|| {
            black_box(pool.reserve(&sequences, &positions).expect("there are enough blocks").cells[0]);
            pool.remove(0, 0, -1).expect("the sequence is known");
        });
    });
    group.finish();
}

/// 100 cached blocks evicted. Per block.
fn evict(criterion: &mut Criterion) {
    let prompt = prompt(100);
    let mut full = pool_of(101);
    cached(&mut full, &prompt);
    full.end(0).expect("the sequence is known");
    full.remove(0, 0, -1).expect("the sequence is known");
    let (sequences, positions): (Vec<i32>, Vec<i32>) = (0..101).map(|block| (1, block * 16)).unzip();
    let mut group = criterion.benchmark_group("evict");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 blocks", |bencher| {
        let take_all = |pool: &mut Pool| {
            pool.reserve(&sequences, &positions).expect("there are enough blocks").cells.len()
        };
        bencher.iter_batched_ref(|| full.clone(), take_all, BatchSize::SmallInput);
    });
    group.finish();
}

/// Begin, compute and cache a new prompt: the life of every block. Per block.
fn cache_a_prompt(criterion: &mut Criterion) {
    let mut pool = pool_of(1000);
    let mut prompt = prompt(100);
    let mut group = criterion.benchmark_group("publish");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 blocks, from begin to end", |bencher| {
        bencher.iter(|| {
            prompt[0] = prompt[0].wrapping_add(1);
            cached(&mut pool, &prompt);
            pool.end(0).expect("the sequence is known");
            pool.remove(0, 0, -1).expect("the sequence is known");
        });
    });
    group.finish();
}

/// The first stop of one of 255 requests that have the first half of 512 blocks in common.
fn next_stop(criterion: &mut Criterion) {
    let options = PoolOptions {
        block_count: 8192,
        block_size: BLOCK_SIZE as u32,
        sequence_count: 255,
        parts: PoolOptions::CELLS | PoolOptions::STATE,
        snapshot_interval: 2048,
        snapshot_bytes: 1 << 30,
        ..PoolOptions::default()
    };
    let mut pool = Pool::new(options).expect("the options are in range");
    for sequence in 0..255 {
        let mut prompt = prompt(512);
        prompt[256 * BLOCK_SIZE..].fill(-1 - sequence);
        pool.begin(sequence, &prompt, RequestKeys::default()).expect("the sequence is empty");
    }
    let mut group = criterion.benchmark_group("next stop");
    group.throughput(Throughput::Elements(1));
    group.bench_function("one of 255 sequences of 512 blocks", |bencher| {
        bencher.iter(|| black_box(pool.next_stop(0, black_box(0))));
    });
    group.finish();
}

criterion_group!(
    benches,
    reserve_one_token,
    match_a_prompt,
    free_and_reallocate,
    evict,
    cache_a_prompt,
    next_stop
);
criterion_main!(benches);
