//! For every arrival pattern, all requests are answered, in order, and find the blocks that were reserved for them.

use proptest::prelude::*;

use crate::simulated_server::{Job, MOST_IMAGES, SimulatedServer, whole};

fn any_job() -> impl Strategy<Value = Job> {
    let choices = prop_oneof![8 => Just(1usize), 1 => 2..4usize];
    let patience = prop_oneof![4 => Just(None), 1 => (0..40usize).prop_map(Some)];
    let sizes = (1..60usize, 0..=MOST_IMAGES, 1..40usize, choices);
    let manners = (0..3u32, prop_oneof![6 => Just(0i32), 1 => -1..2i32], any::<bool>(), patience);
    (0..30usize, 1..4i32, sizes, manners).prop_map(|(comes, family, sizes, manners)| {
        let (prompt, images, answer, choices) = sizes;
        let (batch_key, priority, keeps, patience) = manners;
        Job { comes, family, prompt, images, answer, choices, batch_key, priority, keeps, patience }
    })
}

fn run(mut server: SimulatedServer, blocks: usize, slots: usize, tokens: usize, mut jobs: Vec<Job>) {
    jobs.retain(|job| whole(job) <= blocks && job.choices <= slots);
    jobs.sort_by_key(|job| job.comes);
    let work: usize = jobs.iter().map(|job| (job.prompt + job.answer) * job.choices).sum();
    // The queue head makes progress in each step, and each block that it allocates costs the others at most all they
    // had.
    let most_steps = 100 + 20 * work;
    let wanted: usize = jobs.iter().map(|job| job.choices).sum();
    jobs.into_iter().enumerate().for_each(|(number, job)| server.add(number, job));
    while !server.is_done() {
        assert!(server.step < most_steps, "not done after {most_steps} steps");
        server.run_step(tokens);
    }
    assert!(server.answered.len() <= wanted);
    assert!(server.answered.len() == wanted || !server.left.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered(
        blocks in 4..24usize,
        slots in 1..6usize,
        tokens in 1..40usize,
        closes in any::<bool>(),
        jobs in prop::collection::vec(any_job(), 1..14),
    ) {
        let server = SimulatedServer::new(blocks, slots).closing_blocks(closes);
        run(server, blocks, slots, tokens, jobs);
    }

    /// Every state that is restored was saved after the very tokens that the cells are of.
    #[test]
    fn every_request_is_answered_if_sequences_have_states(
        blocks in 4..24usize,
        slots in 1..6usize,
        tokens in 1..40usize,
        closes in any::<bool>(),
        snapshots in 0..5u64,
        jobs in prop::collection::vec(any_job(), 1..14),
    ) {
        let server = SimulatedServer::with_states(blocks, slots, snapshots).closing_blocks(closes);
        run(server, blocks, slots, tokens, jobs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// The blocks of the layers with a window are enough for all requests that the scheduler admits. With few more
    /// windows than slots, sequences that were cut and continued several times take too many of them.
    #[test]
    fn every_request_is_answered_if_layers_have_windows(
        blocks in 4..24usize,
        slots in 1..6usize,
        tokens in 1..40usize,
        closes in any::<bool>(),
        window in 1..30u32,
        more_windows in 0..8usize,
        jobs in prop::collection::vec(any_job(), 1..14),
    ) {
        let windows = slots + more_windows;
        let server = SimulatedServer::with_windows(blocks, slots, windows, window, tokens);
        run(server.closing_blocks(closes), blocks, slots, tokens, jobs);
    }
}

/// A prompt of 25 tokens, whose last boundary is after 24, and an answer of one token.
fn prompt(comes: usize, family: i32) -> Job {
    Job {
        comes,
        family,
        prompt: 25,
        images: 0,
        answer: 1,
        choices: 1,
        batch_key: 0,
        priority: 0,
        keeps: false,
        patience: None,
    }
}

/// Runs these jobs and returns the server.
fn answered(mut server: SimulatedServer, jobs: Vec<Job>) -> SimulatedServer {
    jobs.into_iter().enumerate().for_each(|(number, job)| server.add(number, job));
    while !server.is_done() {
        assert!(server.step < 1000, "not done");
        server.run_step(100);
    }
    server
}

/// A job with an image that ends with the first token of its third block: closed there, the sixteen blocks of a pool
/// have 61 tokens.
fn with_image(prompt: usize, answer: usize) -> Job {
    Job { family: 2, prompt, images: 1, answer, ..self::prompt(0, 2) }
}

/// Only if no block is closed.
#[test]
fn a_prompt_with_an_image_that_fits_is_answered() {
    let server = answered(SimulatedServer::new(16, 1).closing_blocks(true), vec![with_image(62, 1)]);
    assert_eq!((server.answered, server.computed), (vec![0], 63));
}

/// It begins in closed blocks. When these are all there are it is preempted, computed again in full ones, and continues.
#[test]
fn an_answer_about_an_image_fills_the_pool() {
    let server = answered(SimulatedServer::new(16, 1).closing_blocks(true), vec![with_image(20, 44)]);
    assert_eq!((server.answered, server.computed), (vec![0], 61 + 64));
}

/// Each choice takes a block more.
#[test]
fn choices_about_an_image_are_answered_if_they_fit() {
    let job = Job { choices: 4, ..with_image(51, 1) };
    let server = answered(SimulatedServer::new(16, 4).closing_blocks(true), vec![job]);
    assert_eq!(server.answered.len(), 4);
}

/// The first one stops where the others can match what it computes, and they wait for it.
#[test]
fn a_prefix_in_flight_is_computed_once_if_sequences_have_states() {
    let server = answered(SimulatedServer::with_states(64, 4, 2), vec![prompt(0, 1); 4]);
    assert_eq!((server.found, server.computed), (3 * 24, 26 + 3 * 2));
    let server = answered(SimulatedServer::with_states(64, 4, 0), vec![prompt(0, 1); 4]);
    assert_eq!((server.found, server.computed), (0, 4 * 26));
}

/// A prompt has left cached blocks and states behind them. Shorter ones that arrive at once need a state before those:
/// one computes their blocks again, and the others wait for it.
#[test]
fn cached_blocks_are_computed_again_once_if_sequences_have_states() {
    let short = Job { prompt: 13, ..prompt(20, 1) };
    let jobs = vec![prompt(0, 1), short.clone(), short.clone(), short];
    let server = answered(SimulatedServer::with_states(64, 4, 8), jobs);
    assert_eq!((server.found, server.computed), (2 * 12, 26 + 14 + 2 * 2));
}

/// The first one computes the prefix; the others wait and match it with its window.
#[test]
fn a_prefix_in_flight_is_computed_once_if_layers_have_windows() {
    let server = answered(SimulatedServer::with_windows(64, 4, 4, 6, 100), vec![prompt(0, 1); 4]);
    assert_eq!((server.found, server.computed), (3 * 24, 26 + 3 * 2));
}

/// Each prompt continues the one before it up to the middle of a block that is cached with an answer, where the
/// sequence has two blocks from then on: in the end more than a window takes. It is preempted and begins again, so the
/// blocks that are reserved for windows can be short, and that ends.
#[test]
fn a_sequence_with_too_many_blocks_of_its_window_begins_again() {
    let jobs = (0..).zip([21, 26, 31, 37, 42, 47, 53]).map(|(number, length)| Job {
        prompt: length,
        answer: 4,
        keeps: true,
        ..prompt(20 * number, 1)
    });
    let server = answered(SimulatedServer::with_windows(64, 1, 1, 26, 100), jobs.collect());
    assert_eq!(server.answered.len(), 7);
    assert!(server.window_shortages > 0, "no block of a window was short");
}

/// Prompts that are asked once do not evict the state of one that was asked twice.
#[test]
fn a_budget_of_two_keeps_what_was_hit() {
    let families = [1, 1, 2, 3, 5, 7, 1];
    let jobs = (0..).zip(families).map(|(number, family)| prompt(20 * number, family)).collect();
    let server = answered(SimulatedServer::with_states(64, 1, 2), jobs);
    assert_eq!(server.found, 2 * 24);
}

/// Four prompts, five times one after the other.
#[test]
fn hits_follow_the_budget() {
    let found = [0, 1, 2, 4, 16].map(|snapshots| {
        let jobs = (0..20).map(|number| prompt(20 * number, number as i32 % 4 + 1)).collect();
        answered(SimulatedServer::with_states(64, 1, snapshots), jobs).found
    });
    assert_eq!(found, [0, 0, 0, 16 * 24, 16 * 24]);
}

/// The case of the audit: an endless stream of requests of five blocks, four slots, sixteen blocks, and one request
/// that needs eleven. It is admitted once the requests have finished that were running when it arrived.
#[test]
fn a_large_prompt_waits_only_for_requests_that_were_running() {
    let small = |comes| Job {
        comes,
        family: comes as i32 + 10,
        prompt: 8,
        images: 0,
        answer: 12,
        choices: 1,
        batch_key: 0,
        priority: 0,
        keeps: false,
        patience: None,
    };
    let mut server = SimulatedServer::new(16, 4);
    (0..8).for_each(|number| server.add(number, small(0)));
    server.add(8, Job { prompt: 40, answer: 4, family: 3, ..small(1) });
    (9..60).for_each(|number| server.add(number, small(1)));
    while !server.answered.contains(&(8 * 8)) {
        assert!(server.step < 1000, "the large one was never answered");
        server.run_step(16);
    }
    let later = server.answered.iter().filter(|arrival| **arrival > 8 * 8).count();
    assert_eq!(later, 0, "bypassed by {later}");
}

/// A long stream with one batch key, and a steady arrival of requests with another one: each is answered while the
/// stream continues, and the stream continues beside them.
#[test]
fn batch_keys_take_turns() {
    let short = |comes, batch_key| Job {
        comes,
        family: comes as i32 + 10,
        prompt: 4,
        images: 0,
        answer: 2,
        choices: 1,
        batch_key,
        priority: 0,
        keeps: false,
        patience: None,
    };
    let mut server = SimulatedServer::new(64, 4);
    server.add(0, Job { answer: 100, ..short(0, 0) });
    (1..40).for_each(|number| server.add(number, short(4 * number, 1 + number as u32 % 2)));
    while !server.answered.contains(&0) {
        assert!(server.step < 400, "the stream was never answered");
        server.run_step(16);
    }
    assert!(server.answered.len() > 20, "{} answered beside the stream", server.answered.len() - 1);
}
