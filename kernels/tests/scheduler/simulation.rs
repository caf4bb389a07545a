//! For every arrival pattern, all requests are answered, in order, and find the blocks that were reserved for them.

use proptest::prelude::*;

use crate::simulated_server::{Job, SimulatedServer, whole};

fn any_job() -> impl Strategy<Value = Job> {
    let choices = prop_oneof![8 => Just(1usize), 1 => 2..4usize];
    let patience = prop_oneof![4 => Just(None), 1 => (0..40usize).prop_map(Some)];
    let sizes = (1..60usize, 1..40usize, choices);
    let manners = (0..3u32, prop_oneof![6 => Just(0i32), 1 => -1..2i32], any::<bool>(), patience);
    (0..30usize, 1..4i32, sizes, manners).prop_map(|(comes, family, sizes, manners)| {
        let (prompt, answer, choices) = sizes;
        let (batch_key, priority, keeps, patience) = manners;
        Job { comes, family, prompt, answer, choices, batch_key, priority, keeps, patience }
    })
}

fn run(blocks: usize, slots: usize, tokens: usize, mut jobs: Vec<Job>) {
    jobs.retain(|job| whole(job) <= blocks && job.choices <= slots);
    jobs.sort_by_key(|job| job.comes);
    let work: usize = jobs.iter().map(|job| (job.prompt + job.answer) * job.choices).sum();
    // The queue head makes progress in each step, and each block that it allocates costs the others at most all they
    // had.
    let most_steps = 100 + 20 * work;
    let mut server = SimulatedServer::new(blocks, slots);
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
        jobs in prop::collection::vec(any_job(), 1..14),
    ) {
        run(blocks, slots, tokens, jobs);
    }
}

/// The case of the audit: an endless stream of requests of five blocks, four slots, sixteen blocks, and one request
/// that needs eleven. It is admitted once the requests have finished that were running when it arrived.
#[test]
fn a_large_prompt_waits_only_for_requests_that_were_running() {
    let small = |comes| Job {
        comes,
        family: comes as i32 + 10,
        prompt: 8,
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
