//! One rule at a time, on a mock pool that is set up by the test.

use std::collections::BTreeMap;
use std::ops::Range;

use espalier_kernels::scheduler::{
    Action, Capacity, Group, Offer, QueuePosition, Request, RequestSize, Stage, Wait, WindowNeeds, decide,
    order,
};

/// The blocks of a group, and the number of them that each sequence holds. None of them is shared.
#[derive(Default)]
struct MockBlocks {
    count: u64,
    held: BTreeMap<i32, u64>,
}

impl MockBlocks {
    fn new(count: u64, held: &[(i32, u64)]) -> MockBlocks {
        MockBlocks { count, held: held.iter().copied().collect() }
    }
    fn held(&self, sequence: i32) -> u64 {
        self.held.get(&sequence).copied().unwrap_or_default()
    }
}

/// Blocks of ten positions.
#[derive(Default)]
struct MockPool {
    full: MockBlocks,
    /// Blocks that each sequence needs besides, because some of its blocks are closed.
    closed: u64,
    offers: BTreeMap<i32, Offer>,
    /// Whether no sequence holds a block alone.
    are_shared: bool,
    /// Layers with a window of which each sequence needs four blocks, and a batch one more.
    windows: Option<MockBlocks>,
}

impl MockPool {
    fn blocks(&self, group: Group) -> Option<&MockBlocks> {
        match group {
            Group::Full => Some(&self.full),
            Group::Window => self.windows.as_ref(),
        }
    }
}

impl WindowNeeds for MockBlocks {
    fn batch(&self) -> u64 {
        1
    }
    fn needed(&self, sequence: i32, _: u64, further_choices: u64) -> u64 {
        4 - self.held(sequence) + 4 * further_choices
    }
}

impl Capacity for MockPool {
    fn block_count(&self) -> u64 {
        self.full.count
    }
    fn free(&self, group: Group) -> u64 {
        self.blocks(group).map_or(0, |blocks| blocks.count - blocks.held.values().sum::<u64>())
    }
    fn block_size(&self) -> u64 {
        10
    }
    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64 {
        positions.end.div_ceil(10).saturating_sub(self.full.held(sequence))
    }
    fn held(&self, group: Group, sequence: i32) -> u64 {
        self.blocks(group).map_or(0, |blocks| blocks.held(sequence))
    }
    fn held_alone(&self, group: Group, sequence: i32) -> u64 {
        if self.are_shared { 0 } else { self.held(group, sequence) }
    }
    fn needed(&self, _: i32, size: RequestSize) -> u64 {
        size.in_full_blocks(10) + self.closed
    }
    fn offer(&self, sequence: i32, end: u64) -> Offer {
        let nothing = Offer { blocks: end.div_ceil(10), ..Offer::default() };
        self.offers.get(&sequence).copied().unwrap_or(nothing)
    }
    fn windows(&self) -> Option<&dyn WindowNeeds> {
        self.windows.as_ref().map(|windows| windows as &dyn WindowNeeds)
    }
}

/// A pool that has more than enough blocks of the other layers.
fn with_windows(block_count: u64, held: &[(i32, u64)]) -> MockPool {
    MockPool { windows: Some(MockBlocks::new(block_count, held)), ..mock_pool(100, held) }
}

fn mock_pool(block_count: u64, held: &[(i32, u64)]) -> MockPool {
    MockPool { full: MockBlocks::new(block_count, held), ..MockPool::default() }
}

/// Returns the waiting request that arrived `sequence`th, and needs positions up to `end`.
fn waits(sequence: i32, end: u64) -> Request {
    Request {
        arrival: sequence as u64,
        priority: 0,
        sequence,
        stage: Stage::Waits,
        preemptible: true,
        first: 0,
        end,
        further_choices: 0,
    }
}

fn runs(sequence: i32, end: u64) -> Request {
    Request { stage: Stage::Runs, ..waits(sequence, end) }
}

fn action(pool: &MockPool, requests: &[Request], retained: &[i32]) -> Action {
    decide(pool, requests, retained, true).action
}

fn place(priority: i32, arrival: u64, sequence: i32) -> QueuePosition {
    QueuePosition { priority, arrival, sequence }
}

#[test]
fn requests_are_ordered_by_priority_then_arrival_then_sequence() {
    let in_order = [
        place(i32::MIN, u64::MAX, 9),
        place(-1, 8, 8),
        place(0, 0, 7),
        place(0, 5, -1),
        place(0, 5, 1),
        place(0, 5, 2),
        place(1, 4, 0),
    ];
    let reversed: Vec<QueuePosition> = in_order.iter().rev().copied().collect();
    assert_eq!(order(&reversed), [6, 5, 4, 3, 2, 1, 0]);
    let rotated = [&in_order[3..], &in_order[..3]].concat();
    assert_eq!(order(&rotated), [4, 5, 6, 0, 1, 2, 3]);
    assert_eq!(order(&in_order), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn equal_places_keep_their_order() {
    assert_eq!(order(&[]), [0; 0]);
    let (early, late) = (place(0, 1, 0), place(0, 2, 0));
    assert_eq!(order(&[late, early, late, early, late]), [1, 3, 0, 2, 4]);
}

#[test]
fn a_request_is_admitted_and_preempted_by_its_place() {
    let late = Request { arrival: 7, ..waits(0, 20) };
    let twin = Request { arrival: 7, ..waits(1, 20) };
    let urgent = Request { arrival: 9, priority: -1, ..waits(2, 20) };
    for (requests, admitted, preempted) in
        [([late, twin], 0, 1), ([twin, late], 1, 0), ([late, urgent], 1, 0), ([urgent, late], 0, 1)]
    {
        let places = requests.map(|request| QueuePosition::from(&request));
        assert_eq!(order(&places), [admitted, preempted]);
        let pool = mock_pool(4, &[]);
        assert_eq!(action(&pool, &requests, &[]), Action::Admit { index: admitted, tokens: 0 });
        let running = requests.map(|request| Request { stage: Stage::Runs, end: 30, ..request });
        let pool = mock_pool(
            4,
            &[(0, 2), (1, 2), (2, 2)].map(|(sequence, blocks)| {
                let runs = running.iter().any(|request| request.sequence == sequence);
                (sequence, if runs { blocks } else { 0 })
            }),
        );
        assert_eq!(action(&pool, &running, &[]), Action::Preempt { index: preempted });
    }
}

#[test]
fn the_first_arrival_is_admitted_first() {
    let pool = mock_pool(4, &[]);
    let requests = [waits(3, 40), waits(1, 40), waits(2, 40)];
    assert_eq!(action(&pool, &requests, &[]), Action::Admit { index: 1, tokens: 0 });
}

#[test]
fn priority_precedes_arrival() {
    let pool = mock_pool(4, &[]);
    let urgent = Request { priority: -1, ..waits(9, 40) };
    assert_eq!(action(&pool, &[waits(1, 40), urgent], &[]), Action::Admit { index: 1, tokens: 0 });
}

#[test]
fn no_request_bypasses_the_queue_head() {
    let pool = mock_pool(4, &[(0, 2)]);
    let decision = decide(&pool, &[runs(0, 20), waits(1, 30), waits(2, 10)], &[], true);
    assert_eq!(decision.action, Action::Nothing);
    assert_eq!(decision.waits, [None, Some(Wait::Blocks), Some(Wait::Queue)]);
}

#[test]
fn blocks_that_running_requests_need_are_not_admitted_to_others() {
    let pool = mock_pool(4, &[(0, 1)]);
    assert_eq!(action(&pool, &[runs(0, 30), waits(1, 10)], &[]), Action::Admit { index: 1, tokens: 0 });
    let decision = decide(&pool, &[runs(0, 40), waits(1, 10)], &[], true);
    assert_eq!((decision.action, decision.waits[1]), (Action::Nothing, Some(Wait::Blocks)));
}

#[test]
fn further_choices_need_a_block_each() {
    let pool = mock_pool(4, &[]);
    let family = |further_choices| Request { further_choices, ..waits(0, 20) };
    assert_eq!(action(&pool, &[family(2)], &[]), Action::Admit { index: 0, tokens: 0 });
    assert_eq!(action(&pool, &[family(3)], &[]), Action::Refuse { index: 0, blocks: 5 });
}

#[test]
fn retained_sequences_are_evicted_before_requests_wait_or_are_preempted() {
    let pool = mock_pool(4, &[(0, 2), (7, 0), (8, 2)]);
    assert_eq!(action(&pool, &[runs(0, 20), waits(1, 10)], &[7, 8]), Action::Evict { index: 1 });
    assert_eq!(action(&pool, &[runs(0, 30)], &[7, 8]), Action::Evict { index: 1 });
}

/// Two retained sequences hold the same blocks.
#[test]
fn retained_sequences_that_share_all_blocks_are_evicted_if_no_request_runs() {
    let shared = |held: &[(i32, u64)]| MockPool { are_shared: true, ..mock_pool(6, held) };
    let pool = shared(&[(6, 0), (7, 2), (8, 2)]);
    assert_eq!(action(&pool, &[waits(1, 30)], &[6, 7, 8]), Action::Evict { index: 1 });
    let pool = shared(&[(0, 1), (7, 2), (8, 2)]);
    assert_eq!(action(&pool, &[runs(0, 10), waits(1, 30)], &[7, 8]), Action::Nothing);
}

/// It cannot be preempted, and the retained sequences hold the same blocks.
#[test]
fn retained_sequences_are_evicted_before_a_running_request_is_refused() {
    let cannot = Request { preemptible: false, ..runs(0, 30) };
    let pool = MockPool { are_shared: true, ..mock_pool(4, &[(0, 2), (6, 0), (7, 2)]) };
    assert_eq!(action(&pool, &[cannot], &[6, 7]), Action::Evict { index: 1 });
    let pool = mock_pool(2, &[(0, 2), (6, 0)]);
    assert_eq!(action(&pool, &[cannot], &[6]), Action::Refuse { index: 0, blocks: 3 });
}

/// One sequence frees blocks of windows alone, the other one blocks of the other layers alone.
#[test]
fn retained_sequences_are_evicted_for_the_group_that_is_short() {
    let windows = |count, held: &[(i32, u64)]| Some(MockBlocks::new(count, held));
    let (of_window, of_others) = (7, 8);
    let pool = mock_pool(4, &[(0, 2), (of_others, 2)]);
    let pool = MockPool { windows: windows(20, &[(0, 2), (of_window, 2)]), ..pool };
    assert_eq!(action(&pool, &[runs(0, 30)], &[of_window, of_others]), Action::Evict { index: 1 });
    let pool = mock_pool(20, &[(0, 3), (of_others, 2)]);
    let pool = MockPool { windows: windows(6, &[(0, 2), (of_window, 2)]), ..pool };
    assert_eq!(action(&pool, &[runs(0, 30)], &[of_others, of_window]), Action::Evict { index: 1 });
    // A waiting request may need either.
    let requests = [runs(0, 30), waits(1, 30)];
    assert_eq!(action(&pool, &requests[1..], &[of_others]), Action::Evict { index: 0 });
}

#[test]
fn the_last_request_is_preempted() {
    let pool = mock_pool(4, &[(0, 2), (1, 2)]);
    assert_eq!(action(&pool, &[runs(0, 30), runs(1, 20)], &[]), Action::Preempt { index: 1 });
    assert_eq!(action(&pool, &[runs(0, 20), runs(1, 30)], &[]), Action::Preempt { index: 1 });
    let cannot = Request { preemptible: false, ..runs(1, 30) };
    assert_eq!(action(&pool, &[runs(0, 20), cannot], &[]), Action::Preempt { index: 0 });
}

#[test]
fn a_request_that_outgrows_the_pool_alone_is_refused() {
    let pool = mock_pool(4, &[(0, 4)]);
    assert_eq!(action(&pool, &[runs(0, 50)], &[]), Action::Refuse { index: 0, blocks: 5 });
    let family = [runs(0, 40), runs(1, 30)].map(|one| Request { preemptible: false, ..one });
    let pool = mock_pool(4, &[(0, 2), (1, 2)]);
    assert_eq!(action(&pool, &family, &[]), Action::Refuse { index: 1, blocks: 3 });
}

/// Two running requests with three blocks each need one more each, and one for the batch.
#[test]
fn a_shortage_of_blocks_of_windows_evicts_retained_sequences_and_then_preempts() {
    let running = [runs(0, 30), runs(1, 30)];
    let pool = with_windows(10, &[(0, 3), (1, 3), (7, 2)]);
    assert_eq!(action(&pool, &running, &[5, 7]), Action::Evict { index: 1 });
    let held = [(0, 3), (1, 3)];
    assert_eq!(action(&with_windows(9, &held), &running, &[]), Action::Nothing);
    assert_eq!(action(&with_windows(8, &held), &running, &[]), Action::Preempt { index: 1 });
    assert_eq!(decide(&with_windows(8, &held), &running, &[], false).action, Action::Preempt { index: 1 });
    let cannot = running.map(|request| Request { preemptible: false, ..request });
    assert_eq!(action(&with_windows(8, &held), &[running[0], cannot[1]], &[]), Action::Preempt { index: 0 });
    assert_eq!(action(&with_windows(8, &held), &cannot, &[]), Action::Refuse { index: 1, blocks: 3 });
    // It holds several blocks at one index, and begins again without them.
    assert_eq!(action(&with_windows(4, &[(0, 3)]), &[runs(0, 30)], &[]), Action::Preempt { index: 0 });
}

#[test]
fn a_request_is_admitted_with_the_blocks_of_its_windows() {
    let requests = [runs(0, 30), waits(1, 30)];
    let admitted = Action::Admit { index: 1, tokens: 0 };
    assert_eq!(action(&with_windows(9, &[(0, 3)]), &requests, &[]), admitted);
    let decision = decide(&with_windows(8, &[(0, 3)]), &requests, &[], true);
    assert_eq!((decision.action, decision.waits[1]), (Action::Nothing, Some(Wait::Blocks)));
    assert_eq!(action(&with_windows(8, &[(0, 3), (7, 1)]), &requests, &[7]), Action::Evict { index: 0 });
    let family = [runs(0, 30), Request { further_choices: 1, ..waits(1, 30) }];
    assert_eq!(action(&with_windows(13, &[(0, 3)]), &family, &[]), admitted);
    assert_eq!(action(&with_windows(12, &[(0, 3)]), &family, &[]), Action::Nothing);
    // Alone, with one for the batch.
    assert_eq!(action(&with_windows(5, &[]), &requests[1..], &[]), Action::Admit { index: 0, tokens: 0 });
    assert_eq!(action(&with_windows(4, &[]), &requests[1..], &[]), Action::Nothing);
    assert_eq!(action(&with_windows(0, &[]), &requests[1..], &[]), Action::Nothing);
}

/// Its tokens fit into four full blocks, and some of its blocks are closed: it begins again in full ones.
#[test]
fn a_request_that_outgrows_the_pool_with_closed_blocks_is_preempted() {
    let pool = MockPool { closed: 1, ..mock_pool(4, &[(0, 4)]) };
    assert_eq!(action(&pool, &[runs(0, 41)], &[]), Action::Refuse { index: 0, blocks: 6 });
    let fits = Request { further_choices: 1, ..runs(0, 30) };
    assert_eq!(action(&pool, &[fits], &[]), Action::Preempt { index: 0 });
    let cannot = Request { preemptible: false, ..fits };
    assert_eq!(action(&pool, &[cannot], &[]), Action::Refuse { index: 0, blocks: 5 });
}

/// Its matched blocks end inside of an image, of which a part would take a block more.
#[test]
fn a_match_that_takes_more_blocks_than_the_pool_has_is_left_out() {
    let mut pool = mock_pool(4, &[]);
    pool.offers.insert(0, Offer { tokens: 5, blocks: 4, waits_for: None });
    assert_eq!(action(&pool, &[waits(0, 30)], &[]), Action::Admit { index: 0, tokens: 5 });
    let choices = Request { further_choices: 1, ..waits(0, 30) };
    assert_eq!(action(&pool, &[choices], &[]), Action::Admit { index: 0, tokens: 0 });
}

/// The retained sequence is in closed blocks, so that the rest does not fit behind it.
#[test]
fn a_retained_sequence_is_evicted_if_its_request_fits_without_it() {
    let pool = MockPool { closed: 1, ..mock_pool(4, &[(1, 3), (2, 1)]) };
    let resumed = Request { first: 25, ..waits(1, 40) };
    assert_eq!(action(&pool, &[resumed], &[2, 1]), Action::Evict { index: 1 });
    let begins = Request { first: 0, ..resumed };
    assert_eq!(action(&pool, &[begins], &[2]), Action::Refuse { index: 0, blocks: 5 });
}

#[test]
fn a_request_that_holds_blocks_twice_is_preempted_before_it_is_refused() {
    let pool = mock_pool(4, &[(0, 4)]);
    // It needs a fifth block, although its tokens fit into four.
    struct Twice(MockPool);
    impl Capacity for Twice {
        fn block_count(&self) -> u64 {
            self.0.block_count()
        }
        fn free(&self, _: Group) -> u64 {
            0
        }
        fn block_size(&self) -> u64 {
            10
        }
        fn missing(&self, _: i32, _: Range<u64>) -> u64 {
            1
        }
        fn held(&self, group: Group, sequence: i32) -> u64 {
            self.0.held(group, sequence)
        }
        fn held_alone(&self, group: Group, sequence: i32) -> u64 {
            self.0.held(group, sequence)
        }
        fn offer(&self, sequence: i32, end: u64) -> Offer {
            self.0.offer(sequence, end)
        }
    }
    let decision = decide(&Twice(pool), &[runs(0, 40)], &[], true);
    assert_eq!(decision.action, Action::Preempt { index: 0 });
}

#[test]
fn a_request_waits_for_a_prefix_while_others_are_admitted() {
    let mut pool = mock_pool(4, &[(0, 1)]);
    pool.offers.insert(1, Offer { tokens: 10, blocks: 1, waits_for: Some(0) });
    let decision = decide(&pool, &[runs(0, 20), waits(1, 20), waits(2, 10)], &[], true);
    assert_eq!(decision.action, Action::Admit { index: 2, tokens: 0 });
    assert_eq!(decision.waits[1], Some(Wait::Prefix));
    // Its owner was preempted meanwhile: only running requests are waited for.
    let decision = decide(&pool, &[waits(1, 20)], &[], true);
    assert_eq!(decision.action, Action::Admit { index: 0, tokens: 10 });
}

#[test]
fn a_request_that_does_not_fit_is_not_considered_again() {
    let pool = mock_pool(4, &[]);
    assert_eq!(decide(&pool, &[waits(0, 10)], &[], false).action, Action::Nothing);
    // But running requests always have their blocks.
    let pool = mock_pool(4, &[(0, 2), (1, 2)]);
    assert_eq!(decide(&pool, &[runs(0, 30), runs(1, 20)], &[], false).action, Action::Preempt { index: 1 });
}

#[test]
fn a_retained_sequence_counts_only_its_missing_blocks() {
    let pool = mock_pool(4, &[(0, 1), (1, 2)]);
    let resumed = Request { first: 20, ..waits(1, 30) };
    assert_eq!(action(&pool, &[runs(0, 10), resumed], &[1]), Action::Admit { index: 1, tokens: 20 });
    let resumed = Request { first: 20, ..waits(1, 40) };
    assert_eq!(action(&pool, &[runs(0, 10), resumed], &[1]), Action::Evict { index: 0 });
}
