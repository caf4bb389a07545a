//! Allocation of cells for tokens.

use espalier_kernels::pool::extra_keys::RequestKeys;
use espalier_kernels::pool::pool::{Pool, PoolError, PoolOptions};

use crate::support::*;

fn cells(pool: &mut Pool, places: &[(i32, i32)]) -> Result<Vec<u32>, PoolError> {
    let (sequences, positions): (Vec<i32>, Vec<i32>) = places.iter().copied().unzip();
    Ok(pool.reserve(&sequences, &positions)?.cells.clone())
}

#[test]
fn the_same_place_is_the_same_cell() {
    let mut pool = pool_of_ten();
    let places = [(0, 0), (1, 0), (0, 1), (1, 17)];
    let expected = Ok(vec![0, 16, 1, 33]);
    assert_eq!(cells(&mut pool, &places), expected);
    assert_eq!(cells(&mut pool, &places), expected);
    assert_eq!(pool.statistics().blocks_used, 3);
}

#[test]
fn two_tokens_never_get_one_cell() {
    let mut pool = pool_of_ten();
    for places in [&[(0, 0), (0, 0)][..], &[(0, 5), (1, 5), (0, 6), (1, 7), (0, 5)]] {
        assert_eq!(cells(&mut pool, places), Err(PoolError::Invalid), "{places:?}");
    }
    assert_eq!(pool.statistics().blocks_used, 0);
}

#[test]
fn a_block_that_is_needed_twice_is_counted_once() {
    let mut pool = pool_of(2);
    assert_eq!(cells(&mut pool, &[(0, 0), (1, 0), (0, 1), (1, 1)]), Ok(vec![0, 16, 1, 17]));
}

#[test]
fn positions_may_begin_anywhere_and_go_backwards() {
    let mut pool = pool_of_ten();
    let last = i32::MAX;
    assert_eq!(cells(&mut pool, &[(0, last), (0, 100), (0, 3)]), Ok(vec![15, 20, 35]));
    assert_eq!(held(&pool, 0), [3, 2, 1]);
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(pool.statistics().blocks_used, 0);
}

#[test]
fn a_refused_reservation_changes_nothing() {
    let mut pool = pool_of_ten();
    for places in [&[(0, 0), (8, 0)][..], &[(0, 0), (-1, 0)], &[(0, 0), (0, -1)]] {
        assert_eq!(cells(&mut pool, places), Err(PoolError::Invalid));
    }
    assert_eq!(pool.reserve(&[0], &[]), Err(PoolError::Invalid));
    let too_many: Vec<(i32, i32)> = (0..11).map(|index| (index % 3, index / 3 * 16)).collect();
    assert_eq!(cells(&mut pool, &too_many), Err(PoolError::Short));
    assert_eq!(pool.statistics().blocks_used, 0);
    assert_eq!(free_order(&pool), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(pool.statistics().refused_reserves, 1);
    assert_eq!(cells(&mut pool, &too_many[..10]).map(|cells| cells.len()), Ok(10));
}

#[test]
fn matched_blocks_are_read_only() {
    let mut pool = pool_of_ten();
    prefill(&mut pool, 0, &tokens(1, 33));
    begin(&mut pool, 1, &tokens(1, 33), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).blocks.len(), 2);
    assert_eq!(cells(&mut pool, &[(1, 20)]), Ok(vec![3 * 16 + 4]));
    assert_eq!(held(&pool, 1), [1, 2, 4]);
    // A second call returns the same.
    assert_eq!(cells(&mut pool, &[(1, 20)]), Ok(vec![3 * 16 + 4]));
    assert_eq!(pool.match_prefix(1), Err(PoolError::Invalid));
}

#[test]
fn cached_blocks_are_read_only() {
    let mut pool = pool_of_ten();
    prefill(&mut pool, 0, &tokens(1, 16));
    assert_eq!(reserve(&mut pool, 0, 15..16), Ok(vec![2]));
}

#[test]
fn options_out_of_range_are_refused() {
    let good = options(10);
    let refused = [
        PoolOptions { block_count: 0, ..good },
        PoolOptions { block_size: 0, ..good },
        PoolOptions { block_size: 24, ..good },
        PoolOptions { block_size: 8192, ..good },
        PoolOptions { sequence_count: 0, ..good },
        PoolOptions { sequence_count: 65537, ..good },
        PoolOptions { block_count: 1 << 27, ..good },
        PoolOptions { parts: 2, ..good },
    ];
    for options in refused {
        assert!(matches!(Pool::new(options), Err(PoolError::Invalid)), "{options:?}");
    }
    for block_size in [1, 4096] {
        assert!(Pool::new(PoolOptions { block_size, sequence_count: 65536, ..good }).is_ok());
    }
}

#[test]
fn a_pool_of_single_cells_works() {
    let mut pool = Pool::new(PoolOptions { block_size: 1, ..options(10) }).expect("in range");
    begin(&mut pool, 0, &[1, 2, 3], RequestKeys::default());
    assert!(match_prefix(&mut pool, 0).blocks.is_empty());
    assert_eq!(cells(&mut pool, &[(0, 0), (0, 1), (0, 2)]), Ok(vec![0, 1, 2]));
    assert_eq!(numbers(&pool.cache(0, &[1, 2, 3]).expect("the tokens agree")), [1, 2, 3]);
    begin(&mut pool, 1, &[1, 2, 3], RequestKeys::default());
    assert_eq!(numbers(&match_prefix(&mut pool, 1).blocks), [1, 2]);
}

/// As many blocks as the tokens need, but not at their indexes: the tokens lie elsewhere.
#[test]
fn a_sequence_without_its_first_block_is_not_resumed() {
    let mut pool = pool_of_ten();
    let prompt = tokens(1, 3 * BLOCK_SIZE);
    assert_eq!(reserve(&mut pool, 0, BLOCK_SIZE..3 * BLOCK_SIZE), Ok(vec![1, 2]));
    let resume = |pool: &mut Pool| pool.resume(0, 2 * BLOCK_SIZE, &prompt, RequestKeys::default());
    assert_eq!(resume(&mut pool), Err(PoolError::Invalid));
    assert_eq!(pool.remove(0, 0, -1), Ok(()));
    assert_eq!(reserve(&mut pool, 0, 0..2 * BLOCK_SIZE).map(|fresh| fresh.len()), Ok(2));
    assert_eq!(resume(&mut pool), Ok(()));
}
