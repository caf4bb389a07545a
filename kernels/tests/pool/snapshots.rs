//! Snapshots: their budget, the order in which they are evicted, and their stages.

use std::collections::BTreeSet;

use espalier_kernels::pool::contents::Contents;
use espalier_kernels::pool::extra_keys::{ExtraKeys, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::hash::sha256;
use espalier_kernels::pool::pool::{Pool, PoolError};
use espalier_kernels::pool::snapshots::{Demand, NoSnapshot, Reason, SnapshotId, Snapshots};
use espalier_kernels::pool::statistics::Statistics;

use crate::support::*;

/// Snapshots of one byte each, without a pool.
struct Fixture {
    snapshots: Snapshots,
    contents: Contents,
}

impl Fixture {
    fn new(budget: u64) -> Fixture {
        Fixture { snapshots: Snapshots::new(budget), contents: Contents::new(sha256) }
    }

    fn find_victims(&self, bytes: u64, replaced: Option<SnapshotId>) -> Option<Vec<SnapshotId>> {
        self.find_victims_for(Reason::Branch, bytes, replaced)
    }

    fn find_victims_for(
        &self,
        reason: Reason,
        bytes: u64,
        replaced: Option<SnapshotId>,
    ) -> Option<Vec<SnapshotId>> {
        let demand = Demand { bytes, reason, replaced, kept: BTreeSet::new() };
        self.snapshots.find_victims(&demand, |_| true)
    }

    /// Begins a snapshot. Returns it and those that were evicted for it; `None`: it was refused.
    fn begin(&mut self, reason: Reason) -> Option<(SnapshotId, Vec<SnapshotId>)> {
        let victims = self.find_victims_for(reason, 1, None)?;
        victims.iter().for_each(|victim| assert!(self.snapshots.remove(*victim).is_some()));
        let token: i32 = self.snapshots.ids().map(|id| id.0 as i32).sum();
        let content = self.contents.refer(None, &[token], ExtraKeys::default());
        let id = self.snapshots.begin(content, 1, reason);
        assert!(self.snapshots.used() <= self.snapshots.budget());
        Some((id, victims))
    }

    /// Adds a snapshot. Returns those that were evicted for it, as integers.
    fn add(&mut self, reason: Reason) -> Vec<u32> {
        let (id, victims) = self.begin(reason).expect("there are enough bytes");
        self.snapshots.complete(id);
        victims.iter().map(|victim| victim.0).collect()
    }

    fn hit(&mut self, id: u32) {
        self.snapshots.record_hit(SnapshotId(id));
    }
}

#[test]
fn reasons_have_the_values_of_the_abi() {
    for (number, reason) in (0..).zip(Reason::ALL) {
        assert_eq!((reason as u32, Reason::from_number(number)), (number, Some(reason)));
    }
    assert_eq!(Reason::from_number(6), None);
}

#[test]
fn the_snapshot_that_was_used_longest_ago_is_evicted() {
    let mut fixture = Fixture::new(3);
    let evicted = [(); 6].map(|()| fixture.add(Reason::Branch));
    assert_eq!(evicted, [vec![], vec![], vec![], vec![1], vec![2], vec![3]]);
    assert_eq!((fixture.snapshots.len(), fixture.snapshots.used()), (3, 3));
}

#[test]
fn a_hit_protects_from_snapshots_that_are_never_hit() {
    let mut fixture = Fixture::new(3);
    (0..3).for_each(|_| drop(fixture.add(Reason::Branch)));
    fixture.hit(1);
    let evicted = [(); 5].map(|()| fixture.add(Reason::Branch));
    assert_eq!(evicted, [[2], [3], [4], [5], [6]]);
}

/// So a new snapshot always finds one to evict that is not protected.
#[test]
fn at_most_four_fifths_are_protected() {
    let mut fixture = Fixture::new(5);
    (0..5).for_each(|_| drop(fixture.add(Reason::Branch)));
    (1..=5).for_each(|id| fixture.hit(id));
    // The one whose hit is the oldest is not protected any more.
    assert_eq!(fixture.add(Reason::Branch), [1]);
    assert_eq!(fixture.add(Reason::Branch), [6]);
    fixture.hit(7);
    assert_eq!(fixture.add(Reason::Branch), [2]);
}

/// After a change of workload nothing is hit: the new snapshots are evicted before they are used again.
#[test]
fn protected_snapshots_that_are_no_longer_hit_are_evicted() {
    let mut fixture = Fixture::new(5);
    (0..5).for_each(|_| drop(fixture.add(Reason::Branch)));
    (1..=4).for_each(|id| fixture.hit(id));
    let mut rounds = 0;
    loop {
        let (system, _) = fixture.begin(Reason::SystemPrompt).expect("there are enough bytes");
        fixture.snapshots.complete(system);
        fixture.add(Reason::PromptEnd);
        fixture.add(Reason::Tail);
        if fixture.snapshots.is_ready(system) {
            break;
        }
        rounds += 1;
        assert!(rounds < 10, "new snapshots never stay");
    }
    assert!(rounds > 3, "protected for {rounds} rounds only");
}

#[test]
fn a_snapshot_whose_cells_are_gone_is_evicted_first() {
    let mut pool = pool_with_states(6, 2);
    let gone = tokens(1, 17);
    prefill(&mut pool, 0, &gone);
    let (first, _) = save(&mut pool, 0, &gone[..16], Reason::Branch);
    begin(&mut pool, 1, &gone, RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 1), 1);
    let prompt = tokens(2, 40);
    prefill(&mut pool, 2, &prompt);
    let (second, evicted) = save(&mut pool, 2, &prompt[..16], Reason::Branch);
    assert_eq!(evicted, []);
    (0..2).for_each(|sequence| finish(&mut pool, sequence));
    evict(&mut pool, Group::Full, 0, 1);
    // The first one was hit, and the second one was not.
    assert_eq!(save(&mut pool, 2, &prompt[..32], Reason::Branch).1, [first]);
    assert!(pool.snapshots().is_ready(second));
}

/// The budget is in bytes of states. Without cells a small state would keep the tokens of a long prompt alive.
#[test]
fn snapshots_whose_cells_are_gone_do_not_pile_up() {
    let mut pool = pool_with_states(4, 1000);
    for kind in 1..50 {
        let prompt = tokens(kind, 64);
        prefill(&mut pool, 0, &prompt);
        save(&mut pool, 0, &prompt[..48], Reason::Branch);
        finish(&mut pool, 0);
    }
    assert_eq!((pool.statistics().snapshots, pool.blocks().contents.len()), (1, 4));
}

/// Families of prompts that take turns: each prompt takes a snapshot at its end, and is hit where its family branches.
#[test]
fn ends_of_prompts_are_evicted_before_branches() {
    let mut fixture = Fixture::new(4);
    (0..3).for_each(|_| drop(fixture.add(Reason::Branch)));
    assert_eq!(fixture.add(Reason::PromptEnd), []);
    let evicted = [(); 3].map(|()| fixture.add(Reason::PromptEnd));
    assert_eq!(evicted, [[4], [5], [6]]);
    // One that was hit is used as a branch is, and evicts one if it has to.
    fixture.hit(7);
    assert_eq!(fixture.add(Reason::PromptEnd), [1]);
    assert_eq!(fixture.add(Reason::Branch), [8]);
}

/// A tail that two requests continue from is used more than once.
#[test]
fn a_tail_that_one_request_continued_from_is_evicted_first() {
    let mut fixture = Fixture::new(3);
    (0..2).for_each(|_| drop(fixture.add(Reason::Tail)));
    fixture.add(Reason::Branch);
    fixture.hit(2);
    fixture.snapshots.supersede(SnapshotId(2));
    assert_eq!(fixture.add(Reason::Tail), [2]);
    // Not before the request has a tail of its own, and then only if no other one has continued from it.
    fixture.hit(1);
    assert_eq!(fixture.add(Reason::Tail), [3]);
    fixture.hit(1);
    fixture.snapshots.supersede(SnapshotId(1));
    let evicted = [(); 3].map(|()| fixture.add(Reason::Tail));
    assert_eq!(evicted, [[4], [5], [6]]);
}

/// Past turns are hit once each. If that protected them, they would evict the last turns.
#[test]
fn conversations_keep_their_last_turns() {
    const USERS: i32 = 4;
    let mut pool = pool_with_states(1000, 12);
    let mut texts = [const { Vec::new() }; USERS as usize];
    for turn in 0..10 {
        for (user, text) in (0..).zip(&mut texts) {
            let kind = 100 * user + 2 * turn;
            let hits = converse(&mut pool, user, text, kind);
            assert_eq!(hits, (text.len() - TURN) / BLOCK_SIZE, "user {user}, turn {turn}");
        }
    }
}

#[test]
fn a_tail_is_not_superseded_by_one_that_could_not_be_written() {
    let mut pool = pool_with_states(100, 3);
    let mut text = Vec::new();
    converse(&mut pool, 0, &mut text, 1);
    let first = *pool.snapshots().ids().collect::<Vec<_>>().last().expect("the first turn has a tail");
    let next = joined(&[&text, &tokens(9, 30)]);
    assert_eq!(prefill_with_stops(&mut pool, 0, &next), text.len() / BLOCK_SIZE);
    let end = next.len() / BLOCK_SIZE * BLOCK_SIZE;
    let grant = pool.begin_snapshot(0, &next[..end], SNAPSHOT_BYTES, Reason::Tail).expect("enough bytes");
    assert_eq!(pool.end_snapshot(grant.id, false), Ok(()));
    finish(&mut pool, 0);
    for kind in [6, 7] {
        prefill(&mut pool, kind, &tokens(kind, 17));
        save(&mut pool, kind, &tokens(kind, 16), Reason::Branch);
    }
    assert!(pool.snapshots().is_ready(first), "the end of the first prompt is older");
}

/// Tokens of a message and its answer.
const TURN: usize = 90 + 30;

/// Computes a message and its answer, which are appended to the conversation. Returns the number of matched blocks.
fn converse(pool: &mut Pool, sequence: i32, text: &mut Vec<i32>, kind: i32) -> usize {
    text.extend(tokens(kind, 90));
    let hits = prefill_with_stops(pool, sequence, text);
    let computed = text.len();
    text.extend(tokens(kind + 1, 30));
    assert!(reserve(pool, sequence, computed..text.len()).is_ok());
    let end = text.len() / BLOCK_SIZE * BLOCK_SIZE;
    assert!(pool.cache(sequence, &text[..end]).is_ok());
    save(pool, sequence, &text[..end], Reason::Tail);
    finish(pool, sequence);
    hits
}

#[test]
fn a_budget_for_one_is_a_plain_lru() {
    let mut fixture = Fixture::new(1);
    assert_eq!(fixture.add(Reason::Branch), []);
    fixture.hit(1);
    assert_eq!(fixture.add(Reason::PromptEnd), [1]);
}

/// They are guesses, and a long prompt takes many.
#[test]
fn a_snapshot_at_an_interval_evicts_nothing_better() {
    let mut fixture = Fixture::new(4);
    (0..3).for_each(|_| drop(fixture.add(Reason::Branch)));
    assert_eq!(fixture.add(Reason::Interval), []);
    assert_eq!(fixture.add(Reason::Interval), [4]);
    assert_eq!(fixture.add(Reason::Tail), [5]);
    assert_eq!(fixture.begin(Reason::Interval), None);
}

#[test]
fn snapshots_at_intervals_are_evicted_before_others_until_they_are_hit() {
    let mut fixture = Fixture::new(4);
    for reason in [Reason::Branch, Reason::Interval, Reason::Interval, Reason::Tail] {
        assert_eq!(fixture.add(reason), []);
    }
    fixture.hit(2);
    let evicted = [(); 3].map(|()| fixture.add(Reason::Branch));
    assert_eq!(evicted, [[3], [1], [4]]);
}

#[test]
fn snapshots_in_use_are_not_evicted() {
    let mut fixture = Fixture::new(2);
    (0..2).for_each(|_| drop(fixture.add(Reason::Branch)));
    fixture.snapshots.pin(SnapshotId(1));
    assert_eq!(fixture.add(Reason::Branch), [2]);
    // While one is written, and another one is restored, there is none.
    let (id, victims) = fixture.begin(Reason::Branch).expect("one is not in use");
    assert_eq!((id, victims), (SnapshotId(4), vec![SnapshotId(3)]));
    assert!(fixture.snapshots.is_being_written(id) && !fixture.snapshots.is_ready(id));
    assert_eq!(fixture.begin(Reason::Branch), None);
    fixture.snapshots.unpin(SnapshotId(1));
    assert_eq!(fixture.add(Reason::Branch), [1]);
}

#[test]
fn as_many_are_evicted_as_are_needed() {
    let mut fixture = Fixture::new(4);
    (0..4).for_each(|_| drop(fixture.add(Reason::Branch)));
    let ids = |ids: &[u32]| Some(ids.iter().map(|id| SnapshotId(*id)).collect::<Vec<_>>());
    assert_eq!(fixture.find_victims(3, None), ids(&[1, 2, 3]));
    assert_eq!(fixture.find_victims(2, Some(SnapshotId(3))), ids(&[3, 1]));
    assert_eq!(fixture.find_victims(4, None), ids(&[1, 2, 3, 4]));
    assert_eq!(fixture.find_victims(5, None), None);
    assert_eq!(fixture.find_victims(u64::MAX, None), None);
}

/// A sequence 0 with a cached prompt of `blocks` blocks and one token.
fn pool_with_prompt(blocks: usize, snapshots: u64) -> (Pool, Vec<i32>) {
    let mut pool = pool_with_states(40, snapshots);
    let prompt = tokens(1, blocks * BLOCK_SIZE + 1);
    prefill(&mut pool, 0, &prompt);
    (pool, prompt)
}

#[test]
fn there_is_one_snapshot_of_a_content() {
    let (mut pool, prompt) = pool_with_prompt(2, 4);
    let mut begin = || pool.begin_snapshot(0, &prompt[..32], SNAPSHOT_BYTES, Reason::Branch);
    let grant = begin().expect("there are enough bytes");
    // Also while it is written.
    assert_eq!(begin(), Err(NoSnapshot::Exists));
    assert_eq!(pool.end_snapshot(grant.id, true), Ok(()));
    assert_eq!(pool.end_snapshot(grant.id, true), Err(PoolError::Invalid));
    let again = pool.begin_snapshot(0, &prompt[..32], SNAPSHOT_BYTES, Reason::Branch);
    assert_eq!(again, Err(NoSnapshot::Exists));
    let statistics = pool.statistics();
    assert_eq!((statistics.snapshots, statistics.snapshot_bytes), (1, SNAPSHOT_BYTES));
}

#[test]
fn a_snapshot_that_was_not_written_is_gone() {
    let (mut pool, prompt) = pool_with_prompt(2, 1);
    for _ in 0..2 {
        let grant = pool.begin_snapshot(0, &prompt[..32], SNAPSHOT_BYTES, Reason::Branch);
        let grant = grant.expect("there are enough bytes");
        assert_eq!(pool.end_snapshot(grant.id, false), Ok(()));
        assert_eq!((pool.statistics().snapshots, pool.statistics().snapshot_bytes), (0, 0));
    }
}

#[test]
fn a_refused_snapshot_changes_nothing() {
    let (mut pool, prompt) = pool_with_prompt(4, 2);
    let (first, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    save(&mut pool, 0, &prompt[..32], Reason::Branch);
    begin(&mut pool, 1, &prompt[..17], RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).snapshot, Some(first));
    let before = pool.statistics();
    let mut refused = |tokens: &[i32], bytes: u64| {
        let refused = pool.begin_snapshot(0, tokens, bytes, Reason::Branch);
        (refused.map(|grant| grant.id), pool.statistics())
    };
    // One of them may be evicted, but the other one is being restored.
    let (reason, after) = refused(&prompt[..48], 2 * SNAPSHOT_BYTES);
    assert_eq!((reason, after.refused_snapshots), (Err(NoSnapshot::Short), 1));
    for (count, bytes, expected) in [
        (48, 3 * SNAPSHOT_BYTES, NoSnapshot::Short),
        (48, 0, NoSnapshot::Invalid),
        (0, SNAPSHOT_BYTES, NoSnapshot::NotAtBoundary),
        (17, SNAPSHOT_BYTES, NoSnapshot::NotAtBoundary),
        (32, SNAPSHOT_BYTES, NoSnapshot::Exists),
    ] {
        assert_eq!(refused(&prompt[..count], bytes).0, Err(expected), "{count} tokens, {bytes} bytes");
    }
    assert_eq!(refused(&tokens(2, 32), SNAPSHOT_BYTES).0, Err(NoSnapshot::Invalid));
    let after = pool.statistics();
    assert_eq!(after.refused_snapshots, 2);
    assert_eq!(Statistics { refused_snapshots: 0, ..after }, before);
}

#[test]
fn only_cached_tokens_of_a_request_are_saved() {
    let mut pool = pool_with_states(10, 4);
    let prompt = tokens(1, 40);
    let refused = |pool: &mut Pool, sequence: i32| {
        let refused = pool.begin_snapshot(sequence, &prompt[..16], SNAPSHOT_BYTES, Reason::Branch);
        assert_eq!(refused, Err(NoSnapshot::Invalid));
    };
    for sequence in [-1, 0, 8] {
        refused(&mut pool, sequence);
    }
    begin(&mut pool, 0, &prompt, RequestKeys::default());
    refused(&mut pool, 0);
    assert!(reserve(&mut pool, 0, 0..16).is_ok());
    refused(&mut pool, 0);
    assert!(pool.cache(0, &prompt[..16]).is_ok());
    save(&mut pool, 0, &prompt[..16], Reason::Branch);
}

#[test]
fn a_tail_replaces_the_one_before_it_in_the_same_answer() {
    let (mut pool, prompt) = pool_with_prompt(1, 10);
    let text = joined(&[&prompt, &tokens(2, 100)]);
    assert!(reserve(&mut pool, 0, 17..117).is_ok());
    let tail = |pool: &mut Pool, blocks: usize| {
        assert!(pool.cache(0, &text[..blocks * BLOCK_SIZE]).is_ok());
        save(pool, 0, &text[..blocks * BLOCK_SIZE], Reason::Tail)
    };
    let (first, evicted) = tail(&mut pool, 2);
    assert_eq!(evicted, []);
    let (second, evicted) = tail(&mut pool, 3);
    assert_eq!(evicted, [first]);
    assert_eq!(pool.statistics().evicted_snapshots, 0);
    // A tail that was hit is kept.
    begin(&mut pool, 1, &joined(&[&text[..48], &[1]]), RequestKeys::default());
    assert_eq!(match_and_restore(&mut pool, 1), 3);
    let (third, evicted) = tail(&mut pool, 4);
    assert_eq!(evicted, []);
    assert!(pool.snapshots().is_ready(second) && pool.snapshots().is_ready(third));
    // Also one that is being restored, and one of another answer.
    begin(&mut pool, 2, &joined(&[&text[..64], &[1]]), RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 2).snapshot, Some(third));
    assert_eq!(tail(&mut pool, 5).1, []);
    prefill(&mut pool, 3, &tokens(3, 17));
    assert_eq!(save(&mut pool, 3, &tokens(3, 16), Reason::Tail).1, []);
}

/// The request waits for free blocks while the answer goes on. Otherwise it would compute that answer again.
#[test]
fn a_tail_that_a_waiting_request_can_match_is_not_replaced() {
    for budget in [1, 10] {
        let (mut pool, prompt) = pool_with_prompt(1, budget);
        let text = joined(&[&prompt, &tokens(2, 100)]);
        assert!(reserve(&mut pool, 0, 17..117).is_ok());
        assert!(pool.cache(0, &text[..2 * BLOCK_SIZE]).is_ok());
        let (first, _) = save(&mut pool, 0, &text[..2 * BLOCK_SIZE], Reason::Tail);
        begin(&mut pool, 1, &joined(&[&text[..2 * BLOCK_SIZE], &[1]]), RequestKeys::default());
        assert!(pool.cache(0, &text[..3 * BLOCK_SIZE]).is_ok());
        let second = pool.begin_snapshot(0, &text[..3 * BLOCK_SIZE], SNAPSHOT_BYTES, Reason::Tail);
        match budget {
            1 => assert_eq!(second, Err(NoSnapshot::Short)),
            _ => assert_eq!(second.expect("there are enough bytes").evicted, []),
        }
        assert!(pool.snapshots().is_ready(first), "a budget for {budget}");
        assert_eq!(match_and_restore(&mut pool, 1), 2);
    }
}

#[test]
fn a_snapshot_is_pinned_until_it_is_restored() {
    let (mut pool, prompt) = pool_with_prompt(2, 1);
    let (snapshot, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    for sequence in 1..3 {
        begin(&mut pool, sequence, &prompt[..17], RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, sequence).snapshot, Some(snapshot));
    }
    for (sequence, pins) in [(1, 2), (2, 1)] {
        assert_eq!(pool.snapshots().pins(snapshot), pins);
        let refused = pool.begin_snapshot(0, &prompt[..32], SNAPSHOT_BYTES, Reason::Branch);
        assert_eq!(refused, Err(NoSnapshot::Short));
        assert_eq!(pool.restored(sequence, snapshot, true), Ok(()));
        assert_eq!(pool.restored(sequence, snapshot, true), Err(PoolError::Invalid));
    }
    assert_eq!(pool.statistics().snapshot_hits, 2);
    assert_eq!(save(&mut pool, 0, &prompt[..32], Reason::Branch).1, [snapshot]);
    assert_eq!(pool.statistics().evicted_snapshots, 1);
}

/// The request waits for free blocks meanwhile. Otherwise it would compute what it has waited for.
#[test]
fn a_snapshot_that_a_waiting_request_can_match_is_not_evicted() {
    let mut pool = pool_with_states(20, 1);
    let common = tokens(1, 50);
    let [one, other] = [(2, 60), (3, 10)].map(|(kind, own)| joined(&[&common, &tokens(kind, own)]));
    begin(&mut pool, 0, &one, RequestKeys::default());
    begin(&mut pool, 1, &other, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 0).blocks, []);
    assert!(reserve(&mut pool, 0, 0..110).is_ok());
    assert!(pool.cache(0, &one).is_ok());
    let (awaited, _) = save(&mut pool, 0, &one[..48], Reason::Awaited);
    let refused = pool.begin_snapshot(0, &one[..96], SNAPSHOT_BYTES, Reason::PromptEnd);
    assert_eq!(refused, Err(NoSnapshot::Short));
    assert_eq!(match_and_restore(&mut pool, 1), 3);
    assert_eq!(save(&mut pool, 0, &one[..96], Reason::PromptEnd).1, [awaited]);
}

#[test]
fn a_request_that_ends_does_not_pin() {
    let (mut pool, prompt) = pool_with_prompt(1, 1);
    let (snapshot, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).snapshot, Some(snapshot));
    finish(&mut pool, 1);
    assert_eq!(pool.snapshots().pins(snapshot), 0);
    assert_eq!(pool.restored(1, snapshot, true), Err(PoolError::Invalid));
    // Nor does one that is matched again: it has one pin.
    begin(&mut pool, 1, &prompt, RequestKeys::default());
    assert_eq!(match_prefix(&mut pool, 1).snapshot, Some(snapshot));
    assert_eq!(pool.remove(1, 0, -1), Ok(()));
    assert_eq!(match_prefix(&mut pool, 1).snapshot, Some(snapshot));
    assert_eq!(pool.snapshots().pins(snapshot), 1);
}

/// Both requests compute the prompt then, and the state is saved again.
#[test]
fn a_snapshot_that_could_not_be_restored_is_removed() {
    let (mut pool, prompt) = pool_with_prompt(1, 1);
    let (snapshot, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    for sequence in 1..3 {
        begin(&mut pool, sequence, &prompt, RequestKeys::default());
        assert_eq!(match_prefix(&mut pool, sequence).snapshot, Some(snapshot));
    }
    // The second one fails first, and the first one is still restoring it.
    for sequence in [2, 1] {
        assert_eq!(pool.restored(sequence, snapshot, false), Ok(()));
        assert_eq!(pool.restored(sequence, snapshot, false), Err(PoolError::Invalid));
        assert_eq!((pool.statistics().snapshots, pool.statistics().snapshot_hits), (0, 0));
    }
    assert_eq!([-1, 8].map(|sequence| pool.restored(sequence, snapshot, true)), [Err(PoolError::Invalid); 2]);
    for sequence in 1..3 {
        assert_eq!(pool.remove(sequence, 0, -1), Ok(()));
        assert_eq!(match_prefix(&mut pool, sequence).blocks, []);
    }
    assert!(save(&mut pool, 0, &prompt[..16], Reason::Branch).0 != snapshot);
}

#[test]
fn a_snapshot_keeps_its_content_and_not_its_cells() {
    let (mut pool, prompt) = pool_with_prompt(3, 1);
    save(&mut pool, 0, &prompt[..32], Reason::Branch);
    finish(&mut pool, 0);
    evict_all(&mut pool, 0);
    assert_eq!(pool.statistics().blocks_evictable, 0);
    // The content of the second block, and of the first one, which is its parent.
    assert_eq!(pool.blocks().contents.len(), 2);
    prefill(&mut pool, 1, &tokens(2, 17));
    save(&mut pool, 1, &tokens(2, 16), Reason::Branch);
    assert_eq!(pool.blocks().contents.len(), 1);
}

#[test]
fn clearing_removes_all_snapshots() {
    let (mut pool, prompt) = pool_with_prompt(2, 1);
    let (first, _) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    let (second, _) = save(&mut pool, 0, &prompt[..32], Reason::Branch);
    pool.clear();
    let statistics = pool.statistics();
    assert_eq!((statistics.snapshots, statistics.snapshot_bytes, statistics.evicted_snapshots), (0, 0, 1));
    prefill(&mut pool, 0, &prompt);
    let (third, evicted) = save(&mut pool, 0, &prompt[..16], Reason::Branch);
    assert!(![first, second].contains(&third), "an id is used again");
    assert_eq!(evicted, []);
}
