//! A simulated server of only the pool and the scheduler: jobs arrive, are admitted, compute a few tokens per step, are
//! preempted, share blocks, leave retained sequences behind and continue them, and disconnect. With states, it stops at
//! the boundaries that the pool names, and saves and restores the states of sequences there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use espalier_kernels::pool::extra_keys::{Extra, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::pool::{Next, Pool, PoolOptions, PrefixMatch};
use espalier_kernels::pool::snapshots::{Reason, SnapshotId};
use espalier_kernels::scheduler::{Action, Capacity, Request, RequestSize, Stage, Wait, decide};

pub const BLOCK: usize = 4;

/// Number of images that a prompt has at most.
pub const MOST_IMAGES: usize = 3;

/// The request of a client.
#[derive(Clone, Debug)]
pub struct Job {
    /// Step in which it arrives.
    pub comes: usize,
    /// Prompts of a family share a prefix.
    pub family: i32,
    pub prompt: usize,
    /// Number of images in it; of a prompt that is too short for all, the first ones.
    pub images: usize,
    pub answer: usize,
    pub choices: usize,
    /// Only jobs with one batch key are computed in one step.
    pub batch_key: u32,
    pub priority: i32,
    /// Whether its sequence is retained in its slot afterwards.
    pub keeps: bool,
    /// Number of steps after which the client disconnects.
    pub patience: Option<usize>,
}

/// Returns the maximum number of blocks that a job ever needs at once: its prompt with a block for each further choice,
/// or one choice to its end. Choices that do not fit together preempt each other. Blocks that are closed do not count:
/// without them it is answered too.
pub fn whole(job: &Job) -> usize {
    let begin = (job.prompt + 1).div_ceil(BLOCK) + job.choices - 1;
    begin.max((job.prompt + job.answer).div_ceil(BLOCK))
}

/// Returns the images of a job: those of a family are the same, at the same places.
fn keys(job: &Job) -> RequestKeys {
    let extra = |number: usize| Extra {
        first: (job.family as usize + 13 * number) as u32,
        length: 7,
        key: vec![job.family as u8, number as u8],
    };
    let is_in_prompt = |extra: &Extra| extra.first as usize + extra.length as usize <= job.prompt;
    RequestKeys {
        extras: (0..job.images).map(extra).filter(is_in_prompt).collect(),
        ..RequestKeys::default()
    }
}

struct Run {
    job: Job,
    arrival: usize,
    /// Prompt and output.
    text: Vec<i32>,
    computed: usize,
    stage: Stage,
    /// The step in which it was computed last, or admitted.
    last_step: usize,
    begun: bool,
    /// Other choices that have not begun, or the slot of the first choice.
    children: Vec<usize>,
    /// It continues from another choice's prompt, once that is computed.
    awaits_first_choice: bool,
    is_child: bool,
    begin_step: usize,
}

impl Run {
    /// Returns whether the last generated token is to be computed next.
    fn generates(&self) -> bool {
        self.computed + 1 >= self.text.len()
    }

    /// Returns the end of the positions it needs blocks for: its next token, or its prompt and the first token after
    /// it.
    fn end(&self) -> usize {
        let next = if self.generates() { self.text.len() } else { self.text.len() + 1 };
        next.min(self.job.prompt + self.job.answer).max(self.computed)
    }
}

/// The sequence that an idle slot retains, or that the waiting request in the slot is going to continue.
struct Retained {
    /// The step in which its request ended.
    step: usize,
    /// All of its tokens are computed.
    text: Vec<i32>,
    keys: RequestKeys,
}

/// The simulated server.
pub struct SimulatedServer {
    options: PoolOptions,
    pool: Pool,
    slots: Vec<Option<Run>>,
    retained: BTreeMap<usize, Retained>,
    queue: Vec<(usize, Job)>,
    pub step: usize,
    /// Indexes of the jobs that have finished.
    pub answered: Vec<usize>,
    pub left: Vec<usize>,
    /// Number of tokens that admitted jobs found in the cache.
    pub found: usize,
    /// Number of tokens that were computed.
    pub computed: usize,
    /// Number of preemptions and evictions while the running requests needed more blocks of windows than were free.
    pub window_shortages: usize,
    has_state: bool,
    /// For each snapshot the tokens before it.
    states: BTreeMap<SnapshotId, Vec<i32>>,
}

impl SimulatedServer {
    pub fn new(blocks: usize, slots: usize) -> SimulatedServer {
        let (block_count, sequence_count) = (blocks as u32, slots as u32);
        let block_size = BLOCK as u32;
        Self::of(PoolOptions { block_count, block_size, sequence_count, ..PoolOptions::default() })
    }

    /// Sequences have states, of one byte each, and the budget is for this number of snapshots.
    pub fn with_states(blocks: usize, slots: usize, snapshots: u64) -> SimulatedServer {
        Self::of(PoolOptions {
            block_count: blocks as u32,
            block_size: BLOCK as u32,
            sequence_count: slots as u32,
            parts: PoolOptions::CELLS | PoolOptions::STATE,
            snapshot_interval: 4 * BLOCK as u32,
            snapshot_bytes: snapshots,
            ..PoolOptions::default()
        })
    }

    /// Some layers have a window of this number of tokens, with the blocks of `windows` windows, which are at least as
    /// many as the slots, and of a step with up to `tokens` tokens of prompts.
    pub fn with_windows(
        blocks: usize,
        slots: usize,
        windows: usize,
        window: u32,
        tokens: usize,
    ) -> SimulatedServer {
        let (block_size, batch_tokens) = (BLOCK as u32, tokens as u32);
        let window_block_count =
            PoolOptions::blocks_of_windows(window, block_size, windows as u32, batch_tokens) as u32;
        Self::of(PoolOptions {
            block_count: blocks as u32,
            block_size,
            sequence_count: slots as u32,
            parts: PoolOptions::CELLS | PoolOptions::WINDOW,
            window,
            window_block_count,
            batch_tokens,
            ..PoolOptions::default()
        })
    }

    /// The same server with `closes`: a block is closed where an image ends.
    pub fn closing_blocks(self, closes: bool) -> SimulatedServer {
        Self::of(PoolOptions { closes_blocks: u32::from(closes), ..self.options })
    }

    fn of(options: PoolOptions) -> SimulatedServer {
        SimulatedServer {
            options,
            pool: Pool::new(options).expect("the options are in range"),
            slots: (0..options.sequence_count).map(|_| None).collect(),
            retained: BTreeMap::new(),
            queue: Vec::new(),
            step: 0,
            answered: Vec::new(),
            left: Vec::new(),
            found: 0,
            computed: 0,
            window_shortages: 0,
            has_state: options.parts & PoolOptions::STATE != 0,
            states: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, number: usize, job: Job) {
        self.queue.push((number, job));
    }

    /// Returns whether every job was answered or disconnected.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.slots.iter().all(Option::is_none)
    }

    pub fn run_step(&mut self, tokens: usize) {
        self.launch();
        self.disconnect_clients();
        self.cache();
        self.schedule();
        self.compute(tokens);
        self.step += 1;
    }

    /// In arrival order: the first job that does not find enough slots blocks the rest.
    fn launch(&mut self) {
        while let Some((number, job)) = self.queue.first().cloned() {
            let free: Vec<usize> = (0..self.slots.len()).filter(|slot| self.slots[*slot].is_none()).collect();
            if job.comes > self.step || free.len() < job.choices {
                return;
            }
            self.queue.remove(0);
            for (at, slot) in free[..job.choices].iter().enumerate() {
                let text: Vec<i32> =
                    (0..job.prompt as i32).map(|token| job.family * (1 + token / 9)).collect();
                let held = if at == 0 { self.common_with_retained(*slot, &job, &text) } else { 0 };
                match held {
                    0 => self.evict_retained(*slot),
                    _ => self.remove_from(*slot, held),
                }
                self.slots[*slot] = Some(Run {
                    arrival: number * 8 + at,
                    text,
                    computed: held,
                    stage: Stage::Waits,
                    last_step: 0,
                    begun: false,
                    children: if at == 0 { free[1..job.choices].to_vec() } else { Vec::new() },
                    awaits_first_choice: at > 0,
                    is_child: at > 0,
                    begin_step: self.step,
                    job: job.clone(),
                });
            }
        }
    }

    /// Returns the number of tokens of the slot's retained sequence that a prompt continues, as in the server: at least
    /// half of the prompt, not all of it, and none of an image that is computed next; 0: it does not continue it.
    fn common_with_retained(&self, slot: usize, job: &Job, text: &[i32]) -> usize {
        let Some(retained) = self.retained.get(&slot).filter(|_| !self.has_state) else { return 0 };
        let (own, other) = (keys(job).extras, &retained.keys.extras);
        let same = own.iter().zip(other).take_while(|(one, other)| one == other).count();
        let differing = own.get(same).into_iter().chain(other.get(same)).map(|extra| extra.first as usize);
        let common = text.iter().zip(&retained.text).take_while(|(one, other)| one == other).count();
        let common = differing.min().unwrap_or(usize::MAX).min(common).min(text.len() - 1);
        let covers = |extra: &Extra| {
            let first = extra.first as usize;
            (first..first + extra.length as usize).contains(&common)
        };
        let is_likely = 2 * common >= text.len() && !own.iter().any(covers);
        if is_likely && self.has_window_before(slot, common) { common } else { 0 }
    }

    fn has_window_before(&self, slot: usize, tokens: usize) -> bool {
        let layout = self.pool.layout(slot as i32).expect("the sequence exists");
        let window = self.pool.window_before(layout, tokens as u64);
        let table = self.pool.table_in(Group::Window, slot as i32).expect("the sequence exists");
        table.indexes(window.start as u32..window.end as u32).len() == window.len()
    }

    /// A request that was going to continue the sequence looks for cached blocks instead.
    fn evict_retained(&mut self, slot: usize) {
        if self.retained.remove(&slot).is_none() {
            return;
        }
        if let Some(run) = &mut self.slots[slot] {
            (run.computed, run.begun) = (0, false);
            assert_eq!(self.pool.end(slot as i32), Ok(()));
        }
        self.remove_from(slot, 0);
    }

    /// Returns the slots with retained sequences in the order in which these are evicted: those of idle slots, the
    /// oldest first, then those of waiting requests, the last in the queue first.
    fn retained_slots(&self) -> Vec<usize> {
        let (mut waiting, mut idle): (Vec<usize>, Vec<usize>) =
            self.retained.keys().copied().partition(|slot| self.slots[*slot].is_some());
        idle.sort_by_key(|slot| (self.retained[slot].step, *slot));
        let place = |slot: &usize| self.slots[*slot].as_ref().map(|run| (run.job.priority, run.arrival));
        waiting.sort_by_key(|slot| Reverse(place(slot)));
        [idle, waiting].concat()
    }

    fn groups(&self) -> impl Iterator<Item = Group> + use<> {
        let has_window = self.pool.has_window();
        Group::ALL.into_iter().filter(move |group| *group == Group::Full || has_window)
    }

    /// Removes all positions from this one on.
    fn remove_from(&mut self, slot: usize, first: usize) {
        for group in self.groups() {
            assert_eq!(self.pool.remove_in(group, slot as i32, first as i32, -1), Ok(()));
        }
    }

    fn slide(&mut self, slot: usize, computed: usize) {
        if self.pool.has_window() {
            assert!(self.pool.slide(slot as i32, computed as u64).is_ok());
        }
    }

    fn disconnect_clients(&mut self) {
        for slot in 0..self.slots.len() {
            let gone = self.slots[slot].as_ref().is_some_and(|run| {
                !run.is_child && run.job.patience.is_some_and(|steps| self.step >= run.begin_step + steps)
            });
            if gone {
                let arrival = self.slots[slot].as_ref().map_or(0, |run| run.arrival);
                self.left.push(arrival / 8);
                (0..self.slots.len())
                    .filter(|other| {
                        self.slots[*other].as_ref().is_some_and(|run| run.arrival / 8 == arrival / 8)
                    })
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|slot| self.release(slot, false));
            }
        }
    }

    fn release(&mut self, slot: usize, keeps: bool) {
        let Some(run) = self.slots[slot].take() else { return };
        self.retained.remove(&slot);
        let cached = self.pool.cache(slot as i32, &run.text[..run.computed]);
        assert!(cached.is_ok() || !run.begun, "{cached:?}");
        self.slide(slot, run.computed);
        assert_eq!(self.pool.end(slot as i32), Ok(()));
        if keeps {
            let text = run.text[..run.computed].to_vec();
            self.retained.insert(slot, Retained { step: self.step, text, keys: keys(&run.job) });
        } else {
            self.remove_from(slot, 0);
        }
    }

    fn cache(&mut self) {
        for slot in 0..self.slots.len() {
            let run = self.slots[slot].as_ref().filter(|run| run.stage == Stage::Runs);
            let Some(run) = run else { continue };
            let (tokens, generates, begun) = (run.text[..run.computed].to_vec(), run.generates(), run.begun);
            if begun {
                assert!(self.pool.cache(slot as i32, &tokens).is_ok());
                self.save(slot as i32, &tokens, generates);
            }
            self.slide(slot, tokens.len());
        }
    }

    /// Takes a snapshot if the sequence is at a stop, or at a boundary of its answer. Snapshots that are refused cost
    /// computation only.
    fn save(&mut self, sequence: i32, tokens: &[i32], generates: bool) {
        let Some(before) = tokens.len().checked_sub(1) else { return };
        let next = self.pool.next_stop(sequence, before as u64);
        let stop = next.filter(|stop| stop.tokens == tokens.len() as u64);
        let reason = match stop {
            Some(stop) => stop.reason,
            None if generates => Reason::Tail,
            None => return,
        };
        let Ok(grant) = self.pool.begin_snapshot(sequence, tokens, 1, reason) else { return };
        for evicted in &grant.evicted {
            assert!(self.states.remove(evicted).is_some(), "{evicted:?} does not exist");
        }
        self.states.insert(grant.id, tokens.to_vec());
        assert!(self.has_state && self.states.len() as u64 <= self.pool.snapshots().budget());
        assert_eq!(self.pool.end_snapshot(grant.id, true), Ok(()));
    }

    fn requests(&mut self) -> (Vec<usize>, Vec<Request>) {
        let mut places = Vec::new();
        let mut requests = Vec::new();
        for (slot, run) in self.slots.iter_mut().enumerate() {
            // A choice that has not begun is counted in `further_choices` of its first one.
            let Some(run) = run.as_mut().filter(|run| !run.awaits_first_choice) else { continue };
            if !run.begun && run.stage == Stage::Waits {
                let size = RequestSize { end: run.end() as u64, further_choices: run.children.len() as u64 };
                let begun =
                    self.pool.begin_of_size(slot as i32, run.computed, &run.text, keys(&run.job), size);
                assert_eq!(begun, Ok(()));
                run.begun = true;
            }
            places.push(slot);
            requests.push(Request {
                arrival: run.arrival as u64,
                priority: run.job.priority,
                sequence: slot as i32,
                stage: run.stage,
                preemptible: true,
                first: run.computed as u64,
                end: run.end() as u64,
                further_choices: run.children.len() as u64,
            });
        }
        (places, requests)
    }

    fn schedule(&mut self) {
        for _ in 0..1000 {
            let (places, requests) = self.requests();
            let retained: Vec<i32> = self.retained_slots().into_iter().map(|slot| slot as i32).collect();
            let decision = decide(&self.pool, &requests, &retained, true);
            let takes_back = matches!(decision.action, Action::Preempt { .. } | Action::Evict { .. });
            self.window_shortages += usize::from(takes_back && self.lacks_window_blocks(&requests));
            match decision.action {
                Action::Nothing => return self.check_no_request_is_stuck(),
                Action::Admit { index, tokens } => {
                    self.check_order(&requests, &decision.waits, index);
                    self.admit(places[index], tokens as usize);
                }
                Action::Preempt { index } => self.preempt(places[index]),
                Action::Evict { index } => self.evict_retained(retained[index] as usize),
                Action::Refuse { index, .. } => {
                    panic!("refused, though it fits alone: {:?}", requests[index])
                }
            }
        }
        panic!("the scheduler does not come to an end");
    }

    /// Returns whether the running requests need more blocks of windows than are free.
    fn lacks_window_blocks(&self, requests: &[Request]) -> bool {
        let Some(windows) = self.pool.windows() else { return false };
        let running: Vec<&Request> = requests.iter().filter(|request| request.stage == Stage::Runs).collect();
        let need =
            |request: &&Request| windows.needed(request.sequence, request.first, request.further_choices);
        let demand: u64 = running.iter().map(need).sum();
        !running.is_empty() && self.pool.free(Group::Window) < demand + windows.batch()
    }

    /// Checks that if no request runs, one was admitted.
    fn check_no_request_is_stuck(&self) {
        let runs = |run: &&Run| run.stage == Stage::Runs || run.awaits_first_choice;
        let waiting = self.slots.iter().flatten().filter(|run| !runs(run)).count();
        let running = self.slots.iter().flatten().filter(runs).count();
        assert!(waiting == 0 || running > 0, "{waiting} requests wait and none runs");
    }

    /// Checks that only a request that waits for a prefix is bypassed.
    fn check_order(&self, requests: &[Request], waits: &[Option<Wait>], admitted: usize) {
        let place = |request: &Request| (request.priority, request.arrival);
        for (index, request) in requests.iter().enumerate() {
            if request.stage == Stage::Runs || place(request) >= place(&requests[admitted]) {
                continue;
            }
            assert_eq!(waits[index], Some(Wait::Prefix), "bypassed");
        }
    }

    fn admit(&mut self, slot: usize, tokens: usize) {
        let prefix_match =
            self.pool.match_up_to(slot as i32, tokens as u64).expect("it has computed nothing");
        if self.retained.remove(&slot).is_some() {
            assert_eq!((prefix_match.blocks.len(), prefix_match.next), (0, Next::Compute));
        } else {
            self.take_match(slot, tokens, &prefix_match);
        }
        let run = self.slots[slot].as_mut().expect("it is in a slot");
        run.computed = tokens;
        run.stage = Stage::Runs;
        run.last_step = self.step;
    }

    fn take_match(&mut self, slot: usize, tokens: usize, prefix_match: &PrefixMatch) {
        let run = self.slots[slot].as_ref().expect("it is in a slot");
        let layout = self.pool.layout(slot as i32).expect("the sequence exists");
        assert_eq!(prefix_match.blocks.len(), layout.needed_blocks(tokens as u64));
        assert_eq!(prefix_match.snapshot.is_some(), self.has_state && tokens > 0);
        if let Some(snapshot) = prefix_match.snapshot {
            assert_eq!(self.states[&snapshot], run.text[..tokens], "{snapshot:?} is of something else");
            assert_eq!(self.pool.restored(slot as i32, snapshot, true), Ok(()));
        }
        self.found += tokens;
        self.remove_from(slot, tokens);
    }

    fn preempt(&mut self, slot: usize) {
        assert_eq!(self.pool.end(slot as i32), Ok(()));
        self.remove_from(slot, 0);
        let run = self.slots[slot].as_mut().expect("it is in a slot");
        run.stage = Stage::Waits;
        run.computed = 0;
        run.begun = false;
    }

    /// Computes jobs with the batch key whose turn it is: decoding ones first, then prompts, up to `tokens` tokens in
    /// all. The tokens of an image are computed on their own. Every admitted job finds its blocks.
    fn compute(&mut self, mut tokens: usize) {
        let Some(batch_key) = self.next_batch_key() else { return };
        for is_prompt in [false, true] {
            for slot in 0..self.slots.len() {
                let run = self.slots[slot].as_mut();
                let is_in_step = |run: &&mut Run| run.stage == Stage::Runs && run.job.batch_key == batch_key;
                let Some(run) = run.filter(is_in_step) else { continue };
                if run.generates() == is_prompt {
                    continue;
                }
                run.last_step = self.step + 1;
                let count = if is_prompt { tokens.min(run.text.len() - run.computed) } else { 1 };
                let computed = run.computed as u64;
                let until_end = keys(&run.job).end_of_run(computed) - computed;
                let count = count.min(usize::try_from(until_end).unwrap_or(usize::MAX));
                let stop = self.pool.next_stop(slot as i32, computed);
                let count = stop.map_or(count, |stop| count.min((stop.tokens - computed) as usize));
                if count > 0 {
                    tokens = tokens.saturating_sub(count);
                    self.compute_tokens(slot, count);
                }
            }
        }
    }

    /// As in the server: the key of the request that was computed longest ago.
    fn next_batch_key(&self) -> Option<u32> {
        let runs = self.slots.iter().flatten().filter(|run| run.stage == Stage::Runs);
        runs.min_by_key(|run| (run.last_step, run.arrival)).map(|run| run.job.batch_key)
    }

    fn compute_tokens(&mut self, slot: usize, count: usize) {
        let computed = self.slots[slot].as_ref().map_or(0, |run| run.computed);
        let positions: Vec<i32> = (computed..computed + count).map(|position| position as i32).collect();
        for group in self.groups() {
            let reserved = self.pool.reserve_in(group, &vec![slot as i32; count], &positions);
            assert!(reserved.is_ok(), "blocks of {group:?} are missing: {reserved:?}");
        }
        let run = self.slots[slot].as_mut().expect("it is in a slot");
        run.computed += count;
        self.computed += count;
        if run.computed < run.text.len() {
            return;
        }
        if run.text.len() >= run.job.prompt + run.job.answer {
            self.answered.push(run.arrival);
            let keeps = run.job.keeps && !run.is_child;
            return self.release(slot, keeps);
        }
        run.text.push(run.job.family * 100 + run.text.len() as i32);
        for child in std::mem::take(&mut run.children) {
            self.begin_child(slot, child);
        }
    }

    fn begin_child(&mut self, parent: usize, child: usize) {
        for group in self.groups() {
            assert_eq!(self.pool.share_in(group, parent as i32, child as i32, 0, -1), Ok(()));
        }
        let (text, computed) = {
            let run = self.slots[parent].as_ref().expect("it is in a slot");
            (run.text.clone(), run.computed)
        };
        let run = self.slots[child].as_mut().expect("it waits in its slot");
        (run.text, run.computed, run.stage, run.awaits_first_choice) = (text, computed, Stage::Runs, false);
        run.last_step = self.step;
    }
}
