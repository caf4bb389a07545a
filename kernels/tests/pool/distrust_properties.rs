//! After a result that is not finite, nothing that its request computed can be matched.
//!
//! A model of a server runs on the pool: requests with images arrive, continue from retained tokens or from cached
//! blocks, are preempted, and begin again in the same layout or in another one. The model records which request cached
//! each block, from which input, and which requests saved or restored each snapshot. So its expectation does not depend
//! on the contents by which the pool finds them.

use std::collections::{BTreeMap, BTreeSet};

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::pool::{Pool, PoolOptions};
use espalier_kernels::pool::snapshots::{Reason, SnapshotId};
use espalier_kernels::scheduler::{Capacity, RequestSize};
use proptest::prelude::*;

use crate::layouts::{Label, PromptPart, any_part, common, keys, labels};
use crate::support::{property_config, reserve};

const BLOCK_SIZE: usize = 4;
const BLOCK_COUNT: u32 = 24;
const SLOTS: i32 = 3;
/// A sequence in which prompts are only looked up.
const SPARE: i32 = SLOTS;
/// Size of all snapshots together; each has size 1.
const BUDGET: u64 = 5;

#[derive(Clone, Debug)]
enum Step {
    /// A request arrives in an idle slot. `continues`: it continues from the retained tokens that it has in common.
    Arrive {
        slot: usize,
        parts: Vec<PromptPart>,
        continues: bool,
    },
    /// A waiting request is admitted. `is_large`: it does not fit into the pool with closed blocks.
    Admit {
        slot: usize,
        is_large: bool,
    },
    /// Computes the next tokens of a prompt, and then output like this.
    Compute {
        slot: usize,
        count: usize,
        output: i32,
    },
    /// Caches the full blocks, and saves the state after them.
    Cache {
        slot: usize,
        reason: usize,
    },
    Preempt {
        slot: usize,
    },
    /// Ends a request, whose tokens are retained.
    Finish {
        slot: usize,
    },
    /// Ends a request, whose output is not finite.
    Distrust {
        slot: usize,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS as usize;
    prop_oneof![
        4 => (slot(), prop::collection::vec(any_part(), 1..5), prop::bool::weighted(0.7))
            .prop_map(|(slot, parts, continues)| Step::Arrive { slot, parts, continues }),
        8 => (slot(), any::<bool>()).prop_map(|(slot, is_large)| Step::Admit { slot, is_large }),
        8 => (slot(), 1..16usize, 0..2i32)
            .prop_map(|(slot, count, output)| Step::Compute { slot, count, output }),
        8 => (slot(), 0..Reason::ALL.len()).prop_map(|(slot, reason)| Step::Cache { slot, reason }),
        3 => slot().prop_map(|slot| Step::Preempt { slot }),
        2 => slot().prop_map(|slot| Step::Finish { slot }),
        2 => slot().prop_map(|slot| Step::Distrust { slot }),
    ]
}

fn tokens(text: &[Label]) -> Vec<i32> {
    text.iter().map(|label| label.0).collect()
}

fn size(text: &[Label], is_large: bool) -> RequestSize {
    let further_choices = if is_large { u64::from(BLOCK_COUNT) } else { 0 };
    RequestSize { end: text.len() as u64 + 1, further_choices }
}

/// Id of a request; the next one has a larger one.
type RequestId = u32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The sequence has retained tokens, or none.
    #[default]
    Idle,
    Waits,
    Runs,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    state: State,
    request: RequestId,
    /// Prompt and output, or the retained tokens.
    text: Vec<Label>,
    /// Number of tokens whose KV the sequence holds.
    computed: usize,
    /// Number of tokens at the admission with the fewest.
    fewest: Option<u64>,
}

struct Model {
    pool: Pool,
    slots: Vec<Slot>,
    last_request: RequestId,
    /// The request that cached each block, and the input of its KV: all tokens up to the end of the block.
    cached: BTreeMap<BlockId, (RequestId, Vec<Label>)>,
    /// The requests that saved or restored each snapshot.
    states: BTreeMap<SnapshotId, BTreeSet<RequestId>>,
}

impl Model {
    fn new(has_state: bool, closes_blocks: bool) -> Model {
        let options = PoolOptions {
            block_count: BLOCK_COUNT,
            block_size: BLOCK_SIZE as u32,
            sequence_count: SLOTS as u32 + 1,
            parts: PoolOptions::CELLS | if has_state { PoolOptions::STATE } else { 0 },
            snapshot_bytes: BUDGET,
            closes_blocks: u32::from(closes_blocks),
            ..PoolOptions::default()
        };
        Model {
            pool: Pool::new(options).expect("the options are in range"),
            slots: vec![Slot::default(); SLOTS as usize],
            last_request: 0,
            cached: BTreeMap::new(),
            states: BTreeMap::new(),
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Arrive { slot, parts, continues } => self.arrive(*slot, labels(parts), *continues),
            Step::Admit { slot, is_large } => self.admit(*slot, *is_large),
            Step::Compute { slot, count, output } => self.compute(*slot, *count, *output),
            Step::Cache { slot, reason } => self.cache(*slot, Reason::ALL[*reason]),
            Step::Preempt { slot } => self.preempt(*slot),
            Step::Finish { slot } => self.finish(*slot),
            Step::Distrust { slot } => self.distrust(*slot),
        }
        let known: BTreeSet<SnapshotId> = self.pool.snapshots().ids().collect();
        assert!(self.states.keys().copied().eq(known), "after {step:?}");
    }

    fn is(&self, slot: usize, state: State) -> bool {
        self.slots[slot].state == state
    }

    /// Removes the tokens of the sequence from this number on.
    fn cut(&mut self, slot: usize, tokens: usize) {
        assert_eq!(self.pool.remove(slot as i32, tokens as i32, -1), Ok(()));
        self.slots[slot].computed = tokens;
    }

    fn arrive(&mut self, slot: usize, text: Vec<Label>, continues: bool) {
        if !self.is(slot, State::Idle) {
            return;
        }
        let retained = &self.slots[slot].text[..self.slots[slot].computed];
        // The last token is always computed, and an image as a whole.
        let same = common(retained, &text).min(text.len() - 1);
        let held = if continues { keys(&text).end_before_cut_extra(same as u64) } else { 0 };
        self.cut(slot, held as usize);
        self.last_request += 1;
        let (request, computed) = (self.last_request, held as usize);
        self.slots[slot] = Slot { state: State::Waits, request, text, computed, fewest: None };
    }

    fn admit(&mut self, slot: usize, is_large: bool) {
        if !self.is(slot, State::Waits) {
            return;
        }
        let Slot { request, text, computed: held, fewest, .. } = self.slots[slot].clone();
        let sequence = slot as i32;
        let begun =
            self.pool.begin_of_size(sequence, held, &tokens(&text), keys(&text), size(&text, is_large));
        assert_eq!(begun, Ok(()));
        let offer = self.pool.offer(sequence, text.len() as u64 + 1);
        if offer.waits_for.is_some() {
            assert_eq!(self.pool.end(sequence), Ok(()));
            return;
        }
        let admitted = if held > 0 { held as u64 } else { offer.tokens };
        let prefix_match = self.pool.match_up_to(sequence, admitted).expect("the request was begun");
        if let Some(snapshot) = prefix_match.snapshot {
            assert_eq!(self.pool.restored(sequence, snapshot, true), Ok(()));
            self.states.entry(snapshot).or_default().insert(request);
        }
        if held == 0 {
            self.cut(slot, admitted as usize);
        }
        self.slots[slot].state = State::Runs;
        self.slots[slot].fewest = Some(fewest.map_or(admitted, |fewest| fewest.min(admitted)));
    }

    fn compute(&mut self, slot: usize, count: usize, output: i32) {
        if !self.is(slot, State::Runs) {
            return;
        }
        let computed = self.slots[slot].computed;
        let Ok(fresh) = reserve(&mut self.pool, slot as i32, computed..computed + count) else { return };
        for block in fresh {
            self.cached.remove(&BlockId(block));
        }
        let slot = &mut self.slots[slot];
        slot.computed += count;
        let length = slot.text.len().max(slot.computed);
        slot.text.resize(length, (output, None));
    }

    fn cache(&mut self, slot: usize, reason: Reason) {
        if !self.is(slot, State::Runs) {
            return;
        }
        let (sequence, request) = (slot as i32, self.slots[slot].request);
        let text = &self.slots[slot].text[..self.slots[slot].computed];
        let computed = tokens(text);
        let cached = self.pool.cache(sequence, &computed).expect("these are its tokens");
        let layout = self.pool.layout(sequence).expect("the sequence is known");
        let table = self.pool.table(sequence).expect("the sequence is known");
        for (index, entry) in table.entries().filter(|(_, entry)| cached.contains(&entry.last)) {
            let origin = text[..layout.first_token(index as usize + 1) as usize].to_vec();
            self.cached.insert(entry.last, (request, origin));
        }
        let boundary = layout.last_boundary(computed.len() as u64) as usize;
        if let Ok(grant) = self.pool.begin_snapshot(sequence, &computed[..boundary], 1, reason) {
            for evicted in &grant.evicted {
                assert!(self.states.remove(evicted).is_some(), "{evicted:?} does not exist");
            }
            self.states.insert(grant.id, BTreeSet::from([request]));
            assert_eq!(self.pool.end_snapshot(grant.id, true), Ok(()));
        }
    }

    fn preempt(&mut self, slot: usize) {
        if self.is(slot, State::Runs) {
            assert_eq!(self.pool.end(slot as i32), Ok(()));
            self.cut(slot, 0);
            self.slots[slot].state = State::Waits;
        }
    }

    fn finish(&mut self, slot: usize) {
        if self.is(slot, State::Runs) {
            assert_eq!(self.pool.end(slot as i32), Ok(()));
            self.slots[slot].state = State::Idle;
        }
    }

    fn distrust(&mut self, slot: usize) {
        let Slot { state: State::Runs, request, text, fewest: Some(fewest), .. } = self.slots[slot].clone()
        else {
            return;
        };
        let sequence = slot as i32;
        let prompt = &text[..self.pool.request(sequence).expect("it runs").prompt_length()];
        let distrusted = self.pool.distrust(sequence, fewest).expect("it has a request");
        for block in &distrusted.blocks[Group::Full] {
            let (_, origin) = self.cached.remove(block).expect("it was cached");
            assert_eq!(self.pool.blocks().content(Group::Full, *block), None);
            assert!(self.pool.has_state() || origin.len() as u64 > fewest, "{block:?} was only matched");
        }
        for snapshot in &distrusted.snapshots {
            assert!(self.states.remove(snapshot).is_some(), "{snapshot:?} does not exist");
        }
        for (block, (other, origin)) in &self.cached {
            let was_only_matched = !self.pool.has_state() && origin.len() as u64 <= fewest;
            assert!(*other != request, "{block:?} stays cached");
            assert!(was_only_matched || !prompt.starts_with(origin), "{block:?} is a copy that stays cached");
        }
        assert!(self.states.values().all(|requests| !requests.contains(&request)), "{:?}", self.states);
        self.cut(slot, 0);
        self.slots[slot] = Slot::default();
        self.look_up(prompt, request);
    }

    /// Checks that this prompt with one more token matches nothing of a request, and with a state nothing at all.
    fn look_up(&mut self, prompt: &[Label], request: RequestId) {
        let prompt = [prompt, &[(9, None)]].concat();
        for is_large in [false, true] {
            let begun =
                self.pool.begin_of_size(SPARE, 0, &tokens(&prompt), keys(&prompt), size(&prompt, is_large));
            assert_eq!(begun, Ok(()));
            let matched = self.pool.match_prefix(SPARE).expect("the request was begun").blocks;
            assert!(!self.pool.has_state() || matched.is_empty());
            assert!(matched.iter().all(|block| self.cached[block].0 != request));
            assert_eq!(self.pool.end(SPARE), Ok(()));
            assert_eq!(self.pool.remove(SPARE, 0, -1), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn nothing_of_a_distrusted_request_is_matched(
        steps in prop::collection::vec(any_step(), 1..100),
        has_state in any::<bool>(),
        closes_blocks in prop::bool::weighted(0.8),
    ) {
        let mut model = Model::new(has_state, closes_blocks);
        steps.iter().for_each(|step| model.run(step));
    }
}
