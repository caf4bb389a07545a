//! Contents and blocks alone, without sequences.

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::block_pool::BlockPool;
use espalier_kernels::pool::contents::{Contents, SequenceId};
use espalier_kernels::pool::events::Events;
use espalier_kernels::pool::extra_keys::ExtraKeys;
use espalier_kernels::pool::groups::{Group, Groups};
use espalier_kernels::pool::hash::{BlockHash, sha256};
use espalier_kernels::pool::snapshots::SnapshotId;

fn always_the_same(_: Option<&BlockHash>, _: &[i32], _: &[u8]) -> BlockHash {
    BlockHash([7; 32])
}

/// Whichever of them is freed, the others are still found.
#[test]
fn contents_with_one_hash_are_found_when_another_one_leaves() {
    for leaving in 0..3 {
        let mut contents = Contents::new(always_the_same);
        let all = [0, 1, 2].map(|token| contents.refer(None, &[token], ExtraKeys::default()));
        contents.release(all[leaving]);
        assert_eq!(contents.len(), 2);
        for staying in (0..3).filter(|staying| *staying != leaving) {
            let again = contents.refer(None, &[staying as i32], ExtraKeys::default());
            assert_eq!(again, all[staying], "without {leaving}");
        }
    }
}

#[test]
fn an_in_flight_block_belongs_to_its_first_sequence() {
    let mut contents = Contents::new(sha256);
    let content = contents.refer(None, &[1], ExtraKeys::default());
    let (first, second) = (SequenceId(0), SequenceId(1));
    contents.mark_in_flight(content, first);
    contents.mark_in_flight(content, second);
    assert_eq!(contents.in_flight_for(content), Some(first));
    contents.end_in_flight(content, second);
    assert_eq!(contents.in_flight_for(content), Some(first));
    contents.end_in_flight(content, first);
    assert_eq!(contents.in_flight_for(content), None);
}

/// A chain as long as a context is freed without recursion.
#[test]
fn a_long_chain_leaves_at_once() {
    let mut contents = Contents::new(sha256);
    let mut last = contents.refer(None, &[0], ExtraKeys::default());
    for token in 1..200_000 {
        let next = contents.refer(Some(last), &[token], ExtraKeys::default());
        contents.release(last);
        last = next;
    }
    assert_eq!(contents.len(), 200_000);
    contents.release(last);
    assert!(contents.is_empty());
}

#[test]
fn a_content_counts_those_that_follow_it() {
    let mut contents = Contents::new(sha256);
    let first = contents.refer(None, &[1], ExtraKeys::default());
    let one = contents.refer(Some(first), &[2], ExtraKeys::default());
    let other = contents.refer(Some(first), &[3], ExtraKeys::default());
    // The same one again does not count as another child.
    assert_eq!(contents.refer(Some(first), &[3], ExtraKeys::default()), other);
    assert_eq!([first, one, other].map(|id| contents.children(id)), [2, 0, 0]);
    assert_eq!([first, one, other].map(|id| contents.references(id)), [3, 1, 2]);
    contents.release(other);
    assert_eq!(contents.children(first), 2);
    contents.release(other);
    assert_eq!(contents.children(first), 1);
    contents.release(first);
    contents.release(one);
    assert!(contents.is_empty());
}

#[test]
fn a_content_has_one_snapshot_and_lives_as_long_as_that() {
    let mut contents = Contents::new(sha256);
    let content = contents.refer(None, &[1], ExtraKeys::default());
    let (first, second) = (SnapshotId(1), SnapshotId(2));
    assert!(contents.add_snapshot(content, first));
    assert!(!contents.add_snapshot(content, second));
    assert!(!contents.remove_snapshot(content, second));
    contents.release(content);
    assert_eq!((contents.len(), contents.snapshot(content)), (1, Some(first)));
    assert!(contents.remove_snapshot(content, first));
    assert!(contents.is_empty());
}

#[test]
fn a_block_is_cached_at_most_once_until_it_is_allocated_again() {
    let mut blocks =
        BlockPool::new(Groups::new(1, 0), 16, Events::new(0), sha256).expect("there is enough memory");
    let [one, other] = [1, 2].map(|token| blocks.contents.refer(None, &[token; 16], ExtraKeys::default()));
    assert_eq!(blocks.take(Group::Full), Some(BlockId(1)));
    assert!(blocks.cache(Group::Full, BlockId(1), one, 0));
    assert!(!blocks.cache(Group::Full, BlockId(1), other, 0));
    assert_eq!((blocks.content(Group::Full, BlockId(1)), blocks.counters.cached_blocks), (Some(one), 1));
    blocks.release(Group::Full, &[BlockId(1)]);
    assert_eq!(blocks.take(Group::Full), Some(BlockId(1)));
    assert!(blocks.cache(Group::Full, BlockId(1), other, 0));
    assert_eq!(blocks.contents.blocks(Group::Full, one), []);
    assert_eq!(blocks.take(Group::Full), None);
}
