//! One rule at a time, on a mock pool that is set up by the test.

use std::collections::BTreeMap;
use std::ops::Range;

use espalier_kernels::scheduler::{Action, Offer, Request, Room, Stage, Wait, decide};

/// Blocks of ten positions; a sequence holds the number of blocks in `held`, and no blocks are shared.
#[derive(Default)]
struct MadeUp {
    block_count: u64,
    held: BTreeMap<i32, u64>,
    offers: BTreeMap<i32, Offer>,
}

impl Room for MadeUp {
    fn block_count(&self) -> u64 {
        self.block_count
    }
    fn free(&self) -> u64 {
        self.block_count - self.held.values().sum::<u64>()
    }
    fn block_size(&self) -> u64 {
        10
    }
    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64 {
        positions.end.div_ceil(10).saturating_sub(self.held(sequence))
    }
    fn held(&self, sequence: i32) -> u64 {
        self.held.get(&sequence).copied().unwrap_or_default()
    }
    fn held_alone(&self, sequence: i32) -> u64 {
        self.held(sequence)
    }
    fn offer(&self, sequence: i32, end: u64) -> Offer {
        let nothing = Offer { blocks: end.div_ceil(10), ..Offer::default() };
        self.offers.get(&sequence).copied().unwrap_or(nothing)
    }
}

fn room(block_count: u64, held: &[(i32, u64)]) -> MadeUp {
    MadeUp { block_count, held: held.iter().copied().collect(), ..MadeUp::default() }
}

/// Returns the waiting request that arrived `sequence`th, and needs positions up to `end`.
fn waits(sequence: i32, end: u64) -> Request {
    Request {
        arrival: sequence as u64,
        priority: 0,
        sequence,
        stage: Stage::Waits,
        may_give_way: true,
        first: 0,
        end,
        siblings: 0,
    }
}

fn runs(sequence: i32, end: u64) -> Request {
    Request { stage: Stage::Runs, ..waits(sequence, end) }
}

fn action(room: &MadeUp, requests: &[Request], kept: &[i32]) -> Action {
    decide(room, requests, kept, true).action
}

#[test]
fn the_first_that_came_goes_first() {
    let pool = room(4, &[]);
    let requests = [waits(3, 40), waits(1, 40), waits(2, 40)];
    assert_eq!(action(&pool, &requests, &[]), Action::Admit { index: 1, tokens: 0 });
}

#[test]
fn priority_goes_before_arrival() {
    let pool = room(4, &[]);
    let urgent = Request { priority: -1, ..waits(9, 40) };
    assert_eq!(action(&pool, &[waits(1, 40), urgent], &[]), Action::Admit { index: 1, tokens: 0 });
}

#[test]
fn nobody_overtakes_the_first_that_waits_for_room() {
    let pool = room(4, &[(0, 2)]);
    let decision = decide(&pool, &[runs(0, 20), waits(1, 30), waits(2, 10)], &[], true);
    assert_eq!(decision.action, Action::Nothing);
    assert_eq!(decision.waits, [None, Some(Wait::Room), Some(Wait::Line)]);
}

#[test]
fn what_running_requests_were_promised_is_not_given_away() {
    let pool = room(4, &[(0, 1)]);
    assert_eq!(action(&pool, &[runs(0, 30), waits(1, 10)], &[]), Action::Admit { index: 1, tokens: 0 });
    let decision = decide(&pool, &[runs(0, 40), waits(1, 10)], &[], true);
    assert_eq!((decision.action, decision.waits[1]), (Action::Nothing, Some(Wait::Room)));
}

#[test]
fn siblings_need_a_block_each() {
    let pool = room(4, &[]);
    let family = |siblings| Request { siblings, ..waits(0, 20) };
    assert_eq!(action(&pool, &[family(2)], &[]), Action::Admit { index: 0, tokens: 0 });
    assert_eq!(action(&pool, &[family(3)], &[]), Action::Refuse { index: 0 });
}

#[test]
fn what_is_kept_goes_before_anybody_waits_or_gives_way() {
    let pool = room(4, &[(0, 2), (7, 0), (8, 2)]);
    assert_eq!(action(&pool, &[runs(0, 20), waits(1, 10)], &[7, 8]), Action::Drop { index: 1 });
    assert_eq!(action(&pool, &[runs(0, 30)], &[7, 8]), Action::Drop { index: 1 });
}

#[test]
fn the_last_that_came_gives_way() {
    let pool = room(4, &[(0, 2), (1, 2)]);
    assert_eq!(action(&pool, &[runs(0, 30), runs(1, 20)], &[]), Action::GiveWay { index: 1 });
    assert_eq!(action(&pool, &[runs(0, 20), runs(1, 30)], &[]), Action::GiveWay { index: 1 });
    let cannot = Request { may_give_way: false, ..runs(1, 30) };
    assert_eq!(action(&pool, &[runs(0, 20), cannot], &[]), Action::GiveWay { index: 0 });
}

#[test]
fn who_outgrows_the_pool_alone_is_refused() {
    let pool = room(4, &[(0, 4)]);
    assert_eq!(action(&pool, &[runs(0, 50)], &[]), Action::Refuse { index: 0 });
    let family = [runs(0, 40), runs(1, 30)].map(|one| Request { may_give_way: false, ..one });
    let pool = room(4, &[(0, 2), (1, 2)]);
    assert_eq!(action(&pool, &family, &[]), Action::Refuse { index: 1 });
}

#[test]
fn who_holds_blocks_twice_begins_anew_before_it_is_refused() {
    let mut pool = room(4, &[(0, 4)]);
    pool.held.insert(0, 4);
    // It needs a fifth block, although its tokens fit into four.
    struct Twice(MadeUp);
    impl Room for Twice {
        fn block_count(&self) -> u64 {
            self.0.block_count
        }
        fn free(&self) -> u64 {
            0
        }
        fn block_size(&self) -> u64 {
            10
        }
        fn missing(&self, _: i32, _: Range<u64>) -> u64 {
            1
        }
        fn held(&self, sequence: i32) -> u64 {
            self.0.held(sequence)
        }
        fn held_alone(&self, sequence: i32) -> u64 {
            self.0.held(sequence)
        }
        fn offer(&self, sequence: i32, end: u64) -> Offer {
            self.0.offer(sequence, end)
        }
    }
    let decision = decide(&Twice(pool), &[runs(0, 40)], &[], true);
    assert_eq!(decision.action, Action::GiveWay { index: 0 });
}

#[test]
fn a_prefix_is_waited_for_and_others_go_on() {
    let mut pool = room(4, &[(0, 1)]);
    pool.offers.insert(1, Offer { tokens: 10, blocks: 1, waits_for: Some(0) });
    let decision = decide(&pool, &[runs(0, 20), waits(1, 20), waits(2, 10)], &[], true);
    assert_eq!(decision.action, Action::Admit { index: 2, tokens: 0 });
    assert_eq!(decision.waits[1], Some(Wait::Prefix));
    // Its owner was preempted meanwhile: only running requests are waited for.
    let decision = decide(&pool, &[waits(1, 20)], &[], true);
    assert_eq!(decision.action, Action::Admit { index: 0, tokens: 10 });
}

#[test]
fn who_was_asked_in_vain_is_not_asked_again() {
    let pool = room(4, &[]);
    assert_eq!(decide(&pool, &[waits(0, 10)], &[], false).action, Action::Nothing);
    // But running requests always have their blocks.
    let pool = room(4, &[(0, 2), (1, 2)]);
    assert_eq!(decide(&pool, &[runs(0, 30), runs(1, 20)], &[], false).action, Action::GiveWay { index: 1 });
}

#[test]
fn who_kept_a_text_pays_for_the_rest_only() {
    let pool = room(4, &[(0, 1), (1, 2)]);
    let goes_on = Request { first: 20, ..waits(1, 30) };
    assert_eq!(action(&pool, &[runs(0, 10), goes_on], &[1]), Action::Admit { index: 1, tokens: 20 });
    let goes_on = Request { first: 20, ..waits(1, 40) };
    assert_eq!(action(&pool, &[runs(0, 10), goes_on], &[1]), Action::Drop { index: 0 });
}
