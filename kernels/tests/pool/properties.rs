//! Invariants that hold for every sequence of operations.
//!
//! A model runs beside the pool: it records what the KV in every cell was computed from, and which cells each sequence
//! reads. So the pool is not compared with another pool, but with its purpose: no sequence reads KV that was computed
//! from something else, and no sequence restores a state that was saved after other tokens.

use std::collections::{BTreeMap, BTreeSet};

use espalier_kernels::pool::block::BlockId;
use espalier_kernels::pool::contents::ContentId;
use espalier_kernels::pool::extra_keys::{Extra, RequestKeys};
use espalier_kernels::pool::groups::Group;
use espalier_kernels::pool::hash::{BlockHash, sha256};
use espalier_kernels::pool::layout::Layout;
use espalier_kernels::pool::pool::{Next, Pool, PoolError, PoolOptions, PrefixMatch};
use espalier_kernels::pool::snapshots::{NoSnapshot, Reason, SnapshotId};
use espalier_kernels::pool::statistics::Statistics;
use proptest::prelude::*;

use crate::property_steps::{Step, any_step};
use crate::support::{evict_all, finish, free_order, held, property_config, reserve};

pub const BLOCK_SIZE: usize = 4;
const BLOCK_COUNT: u32 = 9;
pub const SEQUENCES: i32 = 4;
/// Budget of all snapshots, in bytes. Two to eight of them fill it.
const BUDGET: u64 = 8;

fn always_the_same(_: Option<&BlockHash>, _: &[i32], _: &[u8]) -> BlockHash {
    BlockHash([7; 32])
}

/// The input of the KV in a cell: the salt and every token up to there.
type Origin = Vec<i32>;

#[derive(Default)]
struct Reader {
    /// The cells that the sequence reads, with their positions.
    cells: BTreeSet<(i32, u32)>,
    /// Salt, prompt, and the output so far; `None` without a request.
    text: Option<Origin>,
    /// The last result of a match of the live request.
    answer: Option<Next>,
    /// The snapshot that was matched and not restored yet.
    restoring: Option<SnapshotId>,
    /// The blocks that its request allocated, and the snapshots that it saved or matched.
    allocated: BTreeSet<BlockId>,
    states: BTreeSet<SnapshotId>,
}

/// Free blocks, tables, contents of blocks, the number of contents, and the statistics.
type Snapshot = (Vec<u32>, Vec<Vec<u32>>, Vec<Option<ContentId>>, usize, Statistics);

struct Model {
    pool: Pool,
    readers: Vec<Reader>,
    origins: BTreeMap<u32, Origin>,
    /// The sequence that allocated each block to write to it.
    writers: BTreeMap<BlockId, i32>,
    contents: BTreeMap<BlockId, ContentId>,
    has_state: bool,
    /// Size of each snapshot, and the input of the state in it.
    states: BTreeMap<SnapshotId, (u64, Origin)>,
    /// Makes the origin of tokens that no request accounts for unlike all others.
    garbage: i32,
}

impl Model {
    fn new(collide: bool, has_state: bool, closes_blocks: bool) -> Model {
        let options = PoolOptions {
            block_count: BLOCK_COUNT,
            block_size: BLOCK_SIZE as u32,
            sequence_count: SEQUENCES as u32,
            event_capacity: 4,
            parts: PoolOptions::CELLS | if has_state { PoolOptions::STATE } else { 0 },
            snapshot_interval: 2 * BLOCK_SIZE as u32,
            snapshot_bytes: BUDGET,
            closes_blocks: u32::from(closes_blocks),
            ..PoolOptions::default()
        };
        let hash = if collide { always_the_same } else { sha256 };
        Model {
            pool: Pool::with_hash(options, hash).expect("the options are in range"),
            readers: (0..SEQUENCES).map(|_| Reader::default()).collect(),
            origins: BTreeMap::new(),
            writers: BTreeMap::new(),
            contents: BTreeMap::new(),
            has_state,
            states: BTreeMap::new(),
            garbage: 0,
        }
    }

    fn reader(&mut self, sequence: i32) -> &mut Reader {
        &mut self.readers[sequence as usize]
    }

    fn layout(&self, sequence: i32) -> Layout {
        self.pool.layout(sequence).expect("the sequence exists").clone()
    }

    fn run(&mut self, step: &Step) {
        let before = self.snapshot();
        let done = self.try_step(step);
        if done.is_err() {
            assert_eq!(self.snapshot(), before, "a refused {step:?} changed something");
        }
        self.check(step);
    }

    fn try_step(&mut self, step: &Step) -> Result<(), PoolError> {
        match step {
            Step::Begin { sequence, blocks, image, tail, salted } => {
                self.begin(*sequence, blocks, *image, *tail, *salted)
            }
            Step::Match { sequence } => self.match_prefix(*sequence).map(drop),
            Step::Compute { sequence, count, token } => self.compute(*sequence, *count, *token),
            Step::Reserve { sequence, position, count } => {
                let positions: Vec<i32> = (0..*count).map(|offset| position + offset).collect();
                self.reserve(*sequence, &positions)
            }
            Step::Cache { sequence, count } => self.cache(*sequence, *count),
            Step::Share { from, to, first, end } => self.share(*from, *to, *first, *end),
            Step::Remove { sequence, first, end } => self.remove(*sequence, *first, *end),
            Step::RemoveAll { sequence } => self.remove(*sequence, 0, -1),
            Step::End { sequence } => self.end(*sequence),
            Step::Distrust { sequence } => self.distrust(*sequence),
            Step::Snapshot { sequence, blocks, bytes, reason, is_written } => {
                self.save(*sequence, *blocks, *bytes, Reason::ALL[*reason], *is_written);
                Ok(())
            }
            Step::Restore { sequence, is_restored } => self.restore(*sequence, *is_restored),
            Step::EvictSnapshot { sequence } => {
                self.save(*sequence, 1, BUDGET, Reason::Branch, false);
                Ok(())
            }
            Step::Clear => {
                self.pool.clear();
                self.states.clear();
                self.readers = (0..SEQUENCES).map(|_| Reader::default()).collect();
                Ok(())
            }
        }
    }

    /// An image has tokens of its own, so that the origin of a cell tells whether it is of one.
    fn begin(
        &mut self,
        sequence: i32,
        blocks: &[i32],
        image: usize,
        tail: usize,
        salted: bool,
    ) -> Result<(), PoolError> {
        let mut prompt: Vec<i32> = blocks.iter().flat_map(|token| [*token; BLOCK_SIZE]).collect();
        let extra = Extra { first: prompt.len() as u32 / 2, length: image as u32, key: b"image".to_vec() };
        let first = extra.first as usize;
        prompt.splice(first..first, vec![5; image]);
        prompt.extend(vec![0; tail]);
        let salt = if salted { b"salt".to_vec() } else { Vec::new() };
        let extras = if image > 0 { vec![extra] } else { Vec::new() };
        self.pool.begin(sequence, &prompt, RequestKeys { salt, extras, ..RequestKeys::default() })?;
        let text = [&[i32::from(salted)][..], &prompt].concat();
        *self.reader(sequence) = Reader { text: Some(text), ..Reader::default() };
        Ok(())
    }

    /// Matched blocks hold the KV of the very prompt that they are added to.
    fn match_prefix(&mut self, sequence: i32) -> Result<Next, PoolError> {
        let first = held(&self.pool, sequence).len();
        let prefix_match = self.pool.match_prefix(sequence)?;
        let text = self.readers[sequence as usize].text.clone().expect("a request was begun");
        let layout = self.layout(sequence);
        let matched = layout.first_token(first + prefix_match.blocks.len()) as usize;
        self.check_state(matched, &prefix_match, &text);
        let reader = self.reader(sequence);
        reader.restoring = prefix_match.snapshot.or(reader.restoring);
        reader.states.extend(prefix_match.snapshot);
        for (index, block) in (first..).zip(&prefix_match.blocks) {
            let (start, end) = (layout.first_token(index), layout.first_token(index + 1));
            for position in start..end {
                let cell = block.first_cell(BLOCK_SIZE as u32) + (position - start) as u32;
                let origin = &text[..position as usize + 2];
                assert_eq!(self.origins[&cell], origin, "cell {cell} holds something else");
                self.reader(sequence).cells.insert((position as i32, cell));
            }
        }
        assert!(matched == 0 || matched < text.len() - 1, "no token is left to be computed");
        self.reader(sequence).answer = Some(prefix_match.next);
        Ok(prefix_match.next)
    }

    /// Blocks come with the state after exactly their tokens, if the pool has one, and a state never comes alone.
    fn check_state(&self, matched: usize, prefix_match: &PrefixMatch, text: &[i32]) {
        let expects_state = self.has_state && !prefix_match.blocks.is_empty();
        assert_eq!(prefix_match.snapshot.is_some(), expects_state);
        if let Some(snapshot) = prefix_match.snapshot {
            let (_, origin) = &self.states[&snapshot];
            assert_eq!(*origin, text[..=matched], "{snapshot:?} is of something else");
        }
    }

    fn save(&mut self, sequence: i32, blocks: usize, bytes: u64, reason: Reason, is_written: bool) {
        let count = self.layout(sequence).first_token(blocks) as usize;
        let text = self.readers[sequence as usize].text.clone().unwrap_or(vec![0]);
        if self.true_length(sequence) < count || self.cache(sequence, usize::MAX).is_err() {
            return;
        }
        let before = self.snapshot();
        match self.pool.begin_snapshot(sequence, &text[1..=count], bytes, reason) {
            Err(refusal) => {
                assert_eq!(self.snapshot(), before, "{refusal:?} changed something");
                let cuts = self.pool.request(sequence).is_some_and(|request| request.cuts_extra(blocks));
                let is_no_boundary = self.has_state && (blocks == 0 || cuts);
                assert_eq!(refusal == NoSnapshot::NotAtBoundary, is_no_boundary);
            }
            Ok(grant) => {
                for evicted in &grant.evicted {
                    assert!(self.states.remove(evicted).is_some(), "{evicted:?} does not exist");
                    let is_restored = |reader: &Reader| reader.restoring == Some(*evicted);
                    assert!(
                        !self.readers.iter().any(is_restored),
                        "{evicted:?} is evicted while it is restored"
                    );
                }
                assert!(self.has_state && !self.states.contains_key(&grant.id));
                self.states.insert(grant.id, (bytes, text[..=count].to_vec()));
                self.reader(sequence).states.insert(grant.id);
                self.check_snapshots();
                assert_eq!(self.pool.end_snapshot(grant.id, is_written), Ok(()));
                if !is_written {
                    self.states.remove(&grant.id);
                }
            }
        }
    }

    fn restore(&mut self, sequence: i32, is_restored: bool) -> Result<(), PoolError> {
        let Some(snapshot) = self.readers[sequence as usize].restoring else { return Ok(()) };
        self.pool.restored(sequence, snapshot, is_restored)?;
        self.reader(sequence).restoring = None;
        if !is_restored {
            self.states.remove(&snapshot);
        }
        Ok(())
    }

    fn compute(&mut self, sequence: i32, count: usize, token: i32) -> Result<(), PoolError> {
        let done = self.true_length(sequence);
        let positions: Vec<i32> = (done..done + count).map(|position| position as i32).collect();
        if let Some(text) = &mut self.reader(sequence).text {
            // One more for the salt in front.
            let missing = (done + count + 1).saturating_sub(text.len());
            text.extend(vec![token; missing]);
        }
        self.reserve(sequence, &positions)
    }

    /// Returns the number of positions from 0 on that the sequence reads and that were computed from its own tokens.
    fn true_length(&self, sequence: i32) -> usize {
        let reader = &self.readers[sequence as usize];
        let Some(text) = &reader.text else { return 0 };
        let is_true = |position: &usize| {
            let mut cells = reader.cells.iter().filter(|(at, _)| *at == *position as i32);
            cells.any(|(_, cell)| text.get(..position + 2).is_some_and(|text| self.origins[cell] == text))
        };
        (0..).take_while(is_true).count()
    }

    fn reserve(&mut self, sequence: i32, positions: &[i32]) -> Result<(), PoolError> {
        let reservation = self.pool.reserve(&vec![sequence; positions.len()], positions)?.clone();
        for block in &reservation.fresh_blocks {
            self.writers.insert(*block, sequence);
            self.reader(sequence).allocated.insert(*block);
        }
        for (position, cell) in positions.iter().zip(&reservation.cells) {
            self.write(sequence, *position, *cell);
        }
        let again = self.pool.reserve(&vec![sequence; positions.len()], positions);
        let again = again.map(|again| (again.cells.clone(), again.fresh_blocks.clone()));
        assert_eq!(again, Ok((reservation.cells, vec![])), "asked again, it answers the same");
        Ok(())
    }

    fn write(&mut self, sequence: i32, position: i32, cell: u32) {
        let block = BlockId(cell / BLOCK_SIZE as u32 + 1);
        assert_eq!(cell % BLOCK_SIZE as u32, self.layout(sequence).place(position as u64).1);
        if self.readers[sequence as usize].cells.contains(&(position, cell)) {
            // Reserved again without a removal: the cell is not rewritten.
            return;
        }
        assert_eq!(self.writers[&block], sequence, "{block:?} has two writers");
        assert_eq!(self.pool.blocks().content(Group::Full, block), None, "{block:?} was cached");
        for (other, reader) in (0..).zip(&self.readers) {
            let reads = reader.cells.contains(&(position, cell));
            assert!(other == sequence || !reads, "{other} reads cell {cell}");
        }
        self.garbage -= 1;
        let origin = match &self.readers[sequence as usize].text {
            Some(text) if self.true_length(sequence) >= position as usize => {
                text.get(..position as usize + 2).map(<[i32]>::to_vec)
            }
            _ => None,
        };
        self.origins.insert(cell, origin.unwrap_or(vec![self.garbage]));
        self.reader(sequence).cells.insert((position, cell));
    }

    /// Passes only tokens that were computed, as the pool's contract requires.
    fn cache(&mut self, sequence: i32, count: usize) -> Result<(), PoolError> {
        let count = count.min(self.true_length(sequence));
        let text = self.readers[sequence as usize].text.clone().unwrap_or(vec![0]);
        let cached = self.pool.cache(sequence, &text[1..=count]);
        assert_eq!(cached.is_ok(), self.readers[sequence as usize].text.is_some());
        for block in cached? {
            let index = held(&self.pool, sequence).iter().position(|number| *number == block.0);
            assert!(index.is_some(), "{block:?} was cached by one who does not hold it");
        }
        Ok(())
    }

    fn share(&mut self, from: i32, to: i32, first: i32, end: i32) -> Result<(), PoolError> {
        self.pool.share(from, to, first, end)?;
        let in_range = |position: i32| position >= first && (position < end || end < 0);
        let cells = self.readers[from as usize].cells.clone();
        self.reader(to).cells.extend(cells.iter().filter(|(position, _)| in_range(*position)));
        Ok(())
    }

    fn remove(&mut self, sequence: i32, first: i32, end: i32) -> Result<(), PoolError> {
        self.pool.remove(sequence, first, end)?;
        let in_range = |position: i32| position >= first && (position < end || end < 0);
        let prompt_and_salt = self.prompt_length(sequence) + 1;
        let reader = self.reader(sequence);
        reader.cells.retain(|(position, _)| !in_range(*position));
        // The output from there on may differ: in this model it does.
        let kept = prompt_and_salt.max(first.max(0) as usize + 1);
        let is_empty = end >= 0 && end <= first.max(0);
        if let Some(text) = reader.text.as_mut().filter(|text| !is_empty && text.len() > kept) {
            text.truncate(kept);
            // What was cached of that output is not the request's any more. A server removes only what is not cached.
            reader.allocated.clear();
            reader.states.clear();
        }
        Ok(())
    }

    fn prompt_length(&self, sequence: i32) -> usize {
        self.pool.request(sequence).map_or(0, |request| request.prompt_length())
    }

    /// Nothing that the request computed, saved or restored stays in the cache. `distrust_properties.rs` has more.
    fn distrust(&mut self, sequence: i32) -> Result<(), PoolError> {
        let distrusted = self.pool.distrust(sequence, 0)?;
        assert!(distrusted.snapshots.iter().all(|snapshot| self.states.remove(snapshot).is_some()));
        let reader = &self.readers[sequence as usize];
        for block in reader.allocated.iter().filter(|block| self.writers[*block] == sequence) {
            assert_eq!(self.pool.blocks().content(Group::Full, *block), None, "{block:?} stays cached");
        }
        assert!(reader.states.iter().all(|snapshot| !self.states.contains_key(snapshot)));
        self.end(sequence)
    }

    fn end(&mut self, sequence: i32) -> Result<(), PoolError> {
        self.pool.end(sequence)?;
        let reader = self.reader(sequence);
        (reader.text, reader.answer, reader.restoring) = (None, None, None);
        Ok(())
    }

    /// All state that a refusal must not change; only its counter does.
    fn snapshot(&self) -> Snapshot {
        let blocks = (1..=BLOCK_COUNT).map(|block| self.pool.blocks().content(Group::Full, BlockId(block)));
        let counted = Statistics {
            refused_reserves: 0,
            refused_matches: 0,
            refused_snapshots: 0,
            ..self.pool.statistics()
        };
        let tables = (0..SEQUENCES).map(|sequence| held(&self.pool, sequence));
        let contents = self.pool.blocks().contents.len();
        (free_order(&self.pool), tables.collect(), blocks.collect(), contents, counted)
    }

    fn check(&mut self, step: &Step) {
        self.check_holders();
        self.check_contents(step);
        self.check_readers();
        self.check_waiting_sequences();
        self.check_snapshots();
        self.check_references();
        self.check_stops();
    }

    fn check_snapshots(&self) {
        let statistics = self.pool.statistics();
        let bytes: u64 = self.states.values().map(|(bytes, _)| bytes).sum();
        assert_eq!((statistics.snapshots, statistics.snapshot_bytes), (self.states.len() as u64, bytes));
        assert!(bytes <= BUDGET);
        for snapshot in self.pool.snapshots().ids() {
            assert!(self.states.contains_key(&snapshot));
            let content = self.pool.snapshots().content(snapshot).expect("it exists");
            assert_eq!(self.pool.blocks().contents.snapshot(content), Some(snapshot));
            let readers = self.readers.iter().filter(|reader| reader.restoring == Some(snapshot));
            assert_eq!(self.pool.snapshots().pins(snapshot) as usize, readers.count());
        }
    }

    /// Checks that a content is referenced by the blocks, requests, snapshots and later contents that have it, and that
    /// no other content exists.
    fn check_references(&self) {
        let contents = &self.pool.blocks().contents;
        let requests = (0..SEQUENCES).filter_map(|sequence| self.pool.request(sequence));
        let of_requests = requests.flat_map(|request| (0..).map_while(move |index| request.content(index)));
        let of_blocks =
            (1..=BLOCK_COUNT).filter_map(|block| self.pool.blocks().content(Group::Full, BlockId(block)));
        let of_snapshots = self.pool.snapshots().ids().filter_map(|id| self.pool.snapshots().content(id));
        let mut references = BTreeMap::<ContentId, usize>::new();
        let mut children = BTreeMap::<ContentId, u32>::new();
        let mut found: Vec<ContentId> = of_requests.chain(of_blocks).chain(of_snapshots).collect();
        while let Some(content) = found.pop() {
            let count = references.entry(content).or_default();
            *count += 1;
            if let Some(parent) = contents.parent(content).filter(|_| *count == 1) {
                *children.entry(parent).or_default() += 1;
                found.push(parent);
            }
        }
        assert_eq!(contents.len(), references.len());
        for (content, count) in references {
            assert_eq!(contents.references(content), count, "{content:?}");
            assert_eq!(
                contents.children(content),
                children.get(&content).copied().unwrap_or(0),
                "{content:?}"
            );
        }
    }

    /// Checks that stops are boundaries of the prompt that have no snapshot yet, in order.
    fn check_stops(&self) {
        for sequence in 0..SEQUENCES {
            let mut computed = 0;
            while let Some(stop) = self.pool.next_stop(sequence, computed) {
                let request = self.pool.request(sequence).expect("a sequence without a request has no stop");
                assert!(self.has_state && stop.tokens > computed);
                assert!(stop.tokens as usize <= request.prompt_length());
                let blocks = request.layout().complete_blocks(stop.tokens);
                assert_eq!(request.layout().first_token(blocks), stop.tokens);
                assert!(!request.cuts_extra(blocks));
                let content = request.content(blocks - 1).expect("the block is full");
                assert_eq!(self.pool.blocks().contents.snapshot(content), None);
                computed = stop.tokens;
            }
        }
    }

    fn check_holders(&self) {
        let free: BTreeSet<u32> = free_order(&self.pool).into_iter().collect();
        let mut holders = BTreeMap::<u32, u32>::new();
        for sequence in 0..SEQUENCES {
            let blocks = held(&self.pool, sequence);
            let distinct: BTreeSet<u32> = blocks.iter().copied().collect();
            assert_eq!(distinct.len(), blocks.len(), "{sequence} holds a block twice");
            distinct.into_iter().for_each(|block| *holders.entry(block).or_default() += 1);
        }
        for block in 1..=BLOCK_COUNT {
            let count = holders.get(&block).copied().unwrap_or(0);
            assert_eq!(self.pool.blocks().holders(Group::Full, BlockId(block)), count, "block {block}");
            assert_eq!(free.contains(&block), count == 0, "block {block}");
        }
        let numbers = self.pool.statistics();
        assert_eq!(numbers.blocks_used, holders.len() as u64);
        assert_eq!(
            numbers.blocks_used + numbers.blocks_evictable + numbers.blocks_empty,
            u64::from(BLOCK_COUNT)
        );
    }

    fn check_contents(&mut self, step: &Step) {
        let all = (1..=BLOCK_COUNT).map(BlockId);
        let now: BTreeMap<BlockId, ContentId> =
            all.filter_map(|block| Some((block, self.pool.blocks().content(Group::Full, block)?))).collect();
        for (block, content) in &now {
            assert!(self.pool.blocks().contents.blocks(Group::Full, *content).contains(block));
            for mapped in self.pool.blocks().contents.blocks(Group::Full, *content) {
                assert_eq!(now.get(mapped), Some(content), "{mapped:?} is mapped and does not carry it");
            }
            let before = self.contents.get(block);
            assert!(before.is_none_or(|before| before == content), "{block:?} was cached again");
        }
        let may_lose =
            matches!(step, Step::Compute { .. } | Step::Reserve { .. } | Step::Distrust { .. } | Step::Clear);
        assert!(may_lose || self.contents.keys().all(|block| now.contains_key(block)));
        let free: Vec<u32> = free_order(&self.pool);
        let evictable = now.keys().filter(|block| free.contains(&block.0)).count();
        assert_eq!(self.pool.statistics().blocks_evictable, evictable as u64);
        self.contents = now;
    }

    /// Checks that the cells that a sequence reads are in blocks that it holds, so they cannot be allocated for another
    /// one.
    fn check_readers(&self) {
        for (sequence, reader) in (0..).zip(&self.readers) {
            let blocks = held(&self.pool, sequence);
            for (position, cell) in &reader.cells {
                let block = cell / BLOCK_SIZE as u32 + 1;
                assert!(blocks.contains(&block), "{sequence} reads {position} in block {block}");
            }
        }
    }

    /// Checks that a sequence that others wait for has a request, and does not wait itself.
    fn check_waiting_sequences(&self) {
        for (sequence, reader) in (0..).zip(&self.readers) {
            let Some(request) = self.pool.request(sequence) else { continue };
            for content in (0..).map_while(|index| request.content(index)) {
                let Some(in_flight_owner) = self.pool.blocks().contents.in_flight_for(content) else {
                    continue;
                };
                let in_flight_owner = &self.readers[in_flight_owner.0 as usize];
                assert!(in_flight_owner.text.is_some(), "{sequence} waits for one without a request");
                assert_eq!(in_flight_owner.answer, Some(Next::Compute), "{sequence} waits for one who waits");
            }
            assert!(reader.text.is_some());
        }
    }

    /// Checks that every sequence finishes if each follows the results that it gets.
    fn run_to_the_end(&mut self) {
        for round in 0.. {
            let live: Vec<i32> = (0..SEQUENCES).filter(|at| self.pool.request(*at).is_some()).collect();
            if live.is_empty() {
                break;
            }
            assert!(round < SEQUENCES, "no sequence progresses: {live:?}");
            let progressing: Vec<i32> = live.into_iter().filter(|at| self.advance(*at)).collect();
            assert!(!progressing.is_empty(), "everybody waits");
        }
    }

    /// Finishes the request, unless it has to wait. Returns whether it did.
    fn advance(&mut self, sequence: i32) -> bool {
        if matches!(self.match_prefix(sequence), Ok(Next::Wait)) {
            return false;
        }
        let left = self.prompt_length(sequence).saturating_sub(self.true_length(sequence));
        if self.compute(sequence, left, 0).is_ok() {
            self.cache(sequence, usize::MAX).expect("what was computed can be cached");
        }
        self.end(sequence).expect("the sequence is known");
        self.remove(sequence, 0, -1).expect("the sequence is known");
        true
    }

    /// Checks that without sequences no block is held, and without cached blocks no content is left.
    fn check_that_nothing_is_left(&mut self) {
        for sequence in 0..SEQUENCES {
            self.remove(sequence, 0, -1).expect("the sequence is known");
        }
        assert_eq!(self.pool.statistics().blocks_used, 0);
        self.evict_all_snapshots();
        evict_all(&mut self.pool, 0);
        assert!(self.pool.blocks().contents.is_empty(), "a content is kept for ever");
    }

    /// Makes space for a snapshot as large as the budget, after a prompt that no step has.
    fn evict_all_snapshots(&mut self) {
        if !self.has_state {
            return;
        }
        let prompt = [9; BLOCK_SIZE];
        assert_eq!(self.pool.begin(0, &prompt, RequestKeys::default()), Ok(()));
        assert!(reserve(&mut self.pool, 0, 0..BLOCK_SIZE).is_ok());
        assert!(self.pool.cache(0, &prompt).is_ok());
        let grant =
            self.pool.begin_snapshot(0, &prompt, BUDGET, Reason::Branch).expect("no snapshot is in use");
        assert_eq!(grant.evicted.len(), self.states.len());
        assert_eq!(self.pool.end_snapshot(grant.id, false), Ok(()));
        assert_eq!(self.pool.statistics().snapshots, 0);
        finish(&mut self.pool, 0);
    }
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn no_sequence_reads_kv_that_was_computed_from_other_tokens(
        steps in prop::collection::vec(any_step(), 1..80),
        collide in any::<bool>(),
        has_state in any::<bool>(),
        closes_blocks in any::<bool>(),
    ) {
        let mut model = Model::new(collide, has_state, closes_blocks);
        steps.iter().for_each(|step| model.run(step));
        model.run_to_the_end();
        model.check_that_nothing_is_left();
    }
}
