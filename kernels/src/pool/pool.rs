//! The block pool's interface: allocation of cells for the tokens of sequences, and prefix caching.
//!
//! # Waiting for in-flight blocks
//!
//! When two sequences are about to compute the same blocks, one computes and the other waits. A sequence for which
//! [`Pool::match_prefix`] returned [`Next::Compute`] has the full blocks that it still has to compute in flight; a
//! sequence whose next block is in flight in another one gets [`Next::Wait`]. In a pool with a state or windows this
//! includes cached blocks that it cannot match, because their state or window is being computed again. No two sequences
//! can wait for each other, because of one rule:
//!
//! **A waiting sequence has no blocks in flight.** [`Next::Wait`] cancels its own in-flight blocks. So a sequence that
//! others wait for got [`Next::Compute`] from its last call and waits for none: waits cannot chain or deadlock. An
//! in-flight block belongs to a live request: it ends when the block is cached, when it cannot be cached any more
//! (several blocks at its index, or one that the sequence does not own), when the sequence frees everything, or with
//! the request.
//!
//! (Even without the rule there would be no deadlock: a sequence can only wait for a block that comes earlier in its
//! own prompt than those it has in flight. But the chains could be long.)

use super::block::BlockId;
use super::block_pool::BlockPool;
use super::contents::{ContentId, SequenceId};
use super::events::{Event, Events};
use super::extra_keys::RequestKeys;
use super::groups::{Group, Groups};
use super::hash::{HashFunction, sha256};
use super::layout::Layout;
use super::requests::Request;
use super::sequences::BlockTable;
use super::snapshots::{SnapshotId, Snapshots};
use super::statistics::Statistics;
use crate::scheduler::RequestSize;

pub use super::options::PoolOptions;

/// Reason for an error. The pool was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// Not enough free blocks.
    Short,
    /// The arguments are invalid.
    Invalid,
}

/// Cells for the tokens of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// The cell of each token.
    pub cells: Vec<u32>,
    /// The blocks that were allocated for them, in the order in which they were needed.
    pub fresh_blocks: Vec<BlockId>,
}

/// Next step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It computes the rest of its prompt; the full blocks of it are in flight.
    Compute,
    /// Another sequence is computing the next block, or one that is cached and cannot be matched without its state or
    /// window: call again once that block is computed. In a pool with a state, only for a snapshot further on.
    Wait,
}

/// Result of [`Pool::match_prefix`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixMatch {
    /// The cached blocks that this call matched, in the order of the prompt.
    pub blocks: Vec<BlockId>,
    /// The cached blocks of the layers with a window that this call matched, in the order of the prompt.
    pub window_blocks: Vec<BlockId>,
    /// The state after them, if the pool has one and this call matched any. The caller restores it before the sequence
    /// computes, and reports it to [`Pool::restored`].
    pub snapshot: Option<SnapshotId>,
    /// Next step of the sequence.
    pub next: Next,
}

/// The pool.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(super) blocks: BlockPool,
    pub(super) tables: Groups<Vec<BlockTable>>,
    /// The layout of each sequence. Of one that holds nothing and has no request it is plain.
    pub(super) layouts: Vec<Layout>,
    pub(super) requests: Vec<Option<Request>>,
    pub(super) snapshots: Snapshots,
    /// Whether a sequence has a state besides its cells.
    has_state: bool,
    /// Size of the sliding window in tokens; 0: there is none.
    window: u64,
    /// Number of blocks of the layers with a window that a sequence can hold if it fills its blocks.
    pub(super) window_blocks: u64,
    /// Number of blocks of the layers with a window that one batch takes.
    pub(super) batch_blocks: u64,
    /// Whether a block is closed where an extra ends.
    pub(super) closes_blocks: bool,
    /// Distance in blocks of the snapshots at regular intervals; 0: none.
    snapshot_interval: usize,
    /// Reused allocation: the result of the last reserve.
    reservation: Reservation,
    /// Reused allocation: the blocks that a reserve has to allocate.
    missing: Vec<(SequenceId, u32)>,
    /// Reused allocation: sorted sequences and positions of a reserve.
    asked: Vec<(i32, i32)>,
}

impl Pool {
    /// Creates a pool that hashes with SHA-256. [`PoolError::Invalid`]: options out of range; [`PoolError::Short`]:
    /// not enough memory.
    pub fn new(options: PoolOptions) -> Result<Pool, PoolError> {
        Pool::with_hash(options, sha256)
    }

    /// Creates a pool with another hash function. Errors as for [`Pool::new`].
    pub fn with_hash(options: PoolOptions, hash: HashFunction) -> Result<Pool, PoolError> {
        if !options.are_valid() {
            return Err(PoolError::Invalid);
        }
        let events = Events::new(options.event_capacity);
        let block_counts = Groups::new(options.block_count, options.window_block_count);
        let blocks = BlockPool::new(block_counts, options.block_size, events, hash);
        let sequences = options.sequence_count as usize;
        let tables = || vec![BlockTable::default(); sequences];
        Ok(Pool {
            blocks: blocks.ok_or(PoolError::Short)?,
            tables: Groups::new(tables(), tables()),
            layouts: vec![Layout::plain(options.block_size); sequences],
            requests: vec![None; sequences],
            snapshots: Snapshots::new(options.snapshot_bytes),
            has_state: options.parts & PoolOptions::STATE != 0,
            window: u64::from(options.window),
            window_blocks: options.window_blocks(),
            batch_blocks: options.batch_blocks(),
            closes_blocks: options.closes_blocks != 0,
            snapshot_interval: (options.snapshot_interval / options.block_size) as usize,
            reservation: Reservation::default(),
            missing: Vec::new(),
            asked: Vec::new(),
        })
    }

    /// Returns the cells for token `i` of `sequences[i]` at `positions[i]`. Allocates the blocks that are missing, all
    /// or none; calling it again returns the same cells. A position in a block that the sequence may not write to
    /// (matched, shared or cached) goes to a new block.
    ///
    /// [`PoolError::Short`]: not enough free blocks. [`PoolError::Invalid`]: an unknown sequence, a negative
    /// position, a position that occurs twice in a sequence (both would get one cell), lists of different length.
    pub fn reserve(&mut self, sequences: &[i32], positions: &[i32]) -> Result<&Reservation, PoolError> {
        self.reserve_in(Group::Full, sequences, positions)
    }

    /// The same for the layers of one group. Each of them needs cells for a token before it is computed.
    ///
    /// Errors as for [`Pool::reserve`]; [`PoolError::Invalid`] also for a group that the pool does not have.
    pub fn reserve_in(
        &mut self,
        group: Group,
        sequences: &[i32],
        positions: &[i32],
    ) -> Result<&Reservation, PoolError> {
        if sequences.len() != positions.len() || !self.has_group(group) {
            return Err(PoolError::Invalid);
        }
        self.refuse_repeated(sequences, positions)?;
        self.find_missing(group, sequences, positions)?;
        if self.missing.len() > self.blocks.free_count(group) as usize {
            self.blocks.counters.refused_reserves += 1;
            return Err(PoolError::Short);
        }
        self.place(group, sequences, positions)?;
        Ok(&self.reservation)
    }

    fn refuse_repeated(&mut self, sequences: &[i32], positions: &[i32]) -> Result<(), PoolError> {
        self.asked.clear();
        self.asked.extend(sequences.iter().copied().zip(positions.iter().copied()));
        self.asked.sort_unstable(); // in a batch they are nearly sorted
        let is_repeated = self.asked.windows(2).any(|pair| pair[0] == pair[1]);
        if is_repeated { Err(PoolError::Invalid) } else { Ok(()) }
    }

    /// Counts the blocks to allocate before any is allocated.
    fn find_missing(&mut self, group: Group, sequences: &[i32], positions: &[i32]) -> Result<(), PoolError> {
        self.missing.clear();
        for (sequence, position) in sequences.iter().zip(positions) {
            let (place, _) = self.place_of(*sequence, *position)?;
            // Neighbours in a batch are neighbours in a block: most repeats are caught here.
            if self.missing.last() != Some(&place) && self.writable_block(group, place).is_none() {
                self.missing.push(place);
            }
        }
        self.missing.sort_unstable();
        self.missing.dedup();
        Ok(())
    }

    fn place(&mut self, group: Group, sequences: &[i32], positions: &[i32]) -> Result<(), PoolError> {
        self.reservation.cells.clear();
        self.reservation.fresh_blocks.clear();
        for (sequence, position) in sequences.iter().zip(positions) {
            let (place, offset) = self.place_of(*sequence, *position)?;
            let block = match self.writable_block(group, place) {
                Some(block) => block,
                None => self.take_for(group, place)?,
            };
            self.reservation.cells.push(block.first_cell(self.block_size()) + offset);
            if let Some(request) = &mut self.requests[place.0.0 as usize] {
                request.has_begun_to_compute = true;
                request.waits_to_resume = false;
            }
        }
        Ok(())
    }

    fn take_for(&mut self, group: Group, (sequence, index): (SequenceId, u32)) -> Result<BlockId, PoolError> {
        let block = self.blocks.take(group).ok_or(PoolError::Short)?;
        if self.tables[group][sequence.0 as usize].add_own(index, block) {
            // Several blocks lie at this index now, so none of them will be cached.
            self.cancel_in_flight(group, sequence, index);
        }
        self.reservation.fresh_blocks.push(block);
        Ok(block)
    }

    pub(super) fn writable_block(
        &self,
        group: Group,
        (sequence, index): (SequenceId, u32),
    ) -> Option<BlockId> {
        self.tables[group][sequence.0 as usize].writable_block(index)
    }

    /// Returns the sequence and the block index of a position, and its offset in that block.
    fn place_of(&self, sequence: i32, position: i32) -> Result<((SequenceId, u32), u32), PoolError> {
        let position = u32::try_from(position).map_err(|_| PoolError::Invalid)?;
        let sequence = self.sequence(sequence)?;
        let (index, offset) = self.layouts[sequence.0 as usize].place(u64::from(position));
        Ok(((sequence, index as u32), offset))
    }

    /// Removes all sequences, requests, cached blocks and snapshots. Also resets a pool whose state is inconsistent.
    pub fn clear(&mut self) {
        Group::ALL.into_iter().for_each(|group| self.tables[group].fill_with(BlockTable::default));
        self.requests.fill_with(|| None);
        self.layouts.fill(Layout::plain(self.blocks.block_size()));
        self.snapshots = self.snapshots.restarted();
        self.blocks.reset();
    }

    /// Starts a request: the sequence, which must hold nothing, begins to compute this prompt, and one token after it.
    /// An earlier request of the sequence ends.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, one that holds something, or extras that overlap
    /// or are not sorted.
    pub fn begin(&mut self, sequence: i32, prompt: &[i32], keys: RequestKeys) -> Result<(), PoolError> {
        let known = self.sequence(sequence)?;
        match self.tables[Group::Full][known.0 as usize].is_empty() {
            true => self.resume(sequence, 0, prompt, keys),
            false => Err(PoolError::Invalid),
        }
    }

    /// Resumes a sequence that holds the KV of the first `held` tokens of this prompt and nothing else, and computes
    /// the rest, which is in flight from now on. No cached blocks are matched; other requests can match the blocks that
    /// it computes from there on. An earlier request of the sequence ends.
    ///
    /// [`PoolError::Invalid`]: as for [`Pool::begin_of_size`].
    pub fn resume(
        &mut self,
        sequence: i32,
        held: usize,
        prompt: &[i32],
        keys: RequestKeys,
    ) -> Result<(), PoolError> {
        let size = RequestSize { end: prompt.len() as u64 + 1, further_choices: 0 };
        self.begin_of_size(sequence, held, prompt, keys, size)?;
        self.start_resumed(self.sequence(sequence)?);
        Ok(())
    }

    /// Starts a request of this size, for a sequence that holds the KV of the first `held` tokens of the prompt and
    /// nothing else. It waits: until [`Pool::match_prefix`] is called for it, none of its blocks is in flight. If it, or
    /// one of its windows, would not fit into the pool with closed blocks, it gets full ones.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, one that does not hold exactly that, with the window before the
    /// next token, or extras that overlap or are not sorted.
    pub fn begin_of_size(
        &mut self,
        sequence: i32,
        held: usize,
        prompt: &[i32],
        keys: RequestKeys,
        size: RequestSize,
    ) -> Result<(), PoolError> {
        let sequence = self.sequence(sequence)?;
        let blocks = self.layouts[sequence.0 as usize].needed_blocks(held as u64);
        let holds_it = self.tables[Group::Full][sequence.0 as usize].ends_with(0..blocks as u32)
            && self.holds_window(sequence, held as u64);
        if !holds_it || held > prompt.len() || !keys.are_valid() {
            return Err(PoolError::Invalid);
        }
        self.end_request(sequence);
        let layout = self.layout_for(sequence, held as u64, &keys, size);
        self.layouts[sequence.0 as usize] = layout.clone();
        let request = Request::resuming(held, prompt, keys, layout, &mut self.blocks.contents);
        self.requests[sequence.0 as usize] = Some(request);
        Ok(())
    }

    /// Starts to compute a request that continues from held tokens. Returns false for one that does not, or that has
    /// started.
    fn start_resumed(&mut self, sequence: SequenceId) -> bool {
        let request = self.requests[sequence.0 as usize].as_mut();
        let Some(request) = request.filter(|request| request.waits_to_resume) else { return false };
        request.waits_to_resume = false;
        request.mark_rest_in_flight(sequence, &mut self.blocks.contents);
        true
    }

    /// Returns the layout for a request of a sequence that holds this number of tokens: blocks are closed only if the
    /// request fits into the pool with them, and its windows into their layers' blocks. If the tokens lie in other
    /// blocks than those of the request would, as after a restore from a file, the sequence keeps its layout: then it
    /// shares nothing behind the first block that differs.
    fn layout_for(&self, sequence: SequenceId, held: u64, keys: &RequestKeys, size: RequestSize) -> Layout {
        let plain = Layout::plain(self.block_size());
        let block_count = u64::from(self.blocks.block_count(Group::Full));
        let closed = self.closes_blocks.then(|| Layout::closed(self.block_size(), keys));
        let fits = |closed: &Layout| closed.blocks_for(size) <= block_count && self.windows_fit(closed);
        let wanted = closed.filter(fits).unwrap_or(plain);
        let present = &self.layouts[sequence.0 as usize];
        if wanted.agrees_with(present, held) { wanted } else { present.until(held) }
    }

    /// Records that the first `length` tokens of the sequence's prompt are a system prompt, which other prompts are
    /// expected to begin with.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, or one without a request.
    pub fn set_system_length(&mut self, sequence: i32, length: usize) -> Result<(), PoolError> {
        let sequence = self.sequence(sequence)?;
        self.requests[sequence.0 as usize].as_mut().ok_or(PoolError::Invalid)?.system_length = length;
        Ok(())
    }

    /// Matches the cached blocks that come next in the prompt, adds them to the sequence, and returns its next step. If
    /// the pool has a state, the blocks end where a snapshot exists; if it has windows, where the blocks of the window
    /// are cached too. A request that continues from held tokens matches nothing, and computes the rest.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, one without a request, or one that holds anything but matched
    /// blocks and the window before their end, and has started.
    pub fn match_prefix(&mut self, sequence: i32) -> Result<PrefixMatch, PoolError> {
        self.match_up_to(sequence, u64::MAX)
    }

    /// The same, but matches no block beyond those of the first `tokens` of the prompt.
    ///
    /// [`PoolError::Invalid`]: as for [`Pool::match_prefix`].
    pub fn match_up_to(&mut self, sequence: i32, tokens: u64) -> Result<PrefixMatch, PoolError> {
        let sequence = self.sequence(sequence)?;
        if self.start_resumed(sequence) {
            let (blocks, window_blocks) = (Vec::new(), Vec::new());
            return Ok(PrefixMatch { blocks, window_blocks, snapshot: None, next: Next::Compute });
        }
        let held = self.tables[Group::Full][sequence.0 as usize].len();
        let request = self.requests[sequence.0 as usize].as_ref().ok_or(PoolError::Invalid)?;
        let window_is_held = self.holds_window(sequence, request.layout().first_token(held));
        if request.has_begun_to_compute || request.matched != held || !window_is_held {
            return Err(PoolError::Invalid);
        }
        let (boundary, cached) = (self.match_boundary(request, tokens), self.cached_end(request));
        self.note_cached(sequence, cached);
        let blocks = (held..boundary.blocks()).map_while(|_| self.match_next_block(sequence)).collect();
        let window_blocks = self.match_window(sequence, boundary.blocks());
        if let Some(snapshot) = boundary.snapshot() {
            self.begin_restoring(sequence, snapshot);
        }
        let next = self.decide_next(sequence)?;
        Ok(PrefixMatch { blocks, window_blocks, snapshot: boundary.snapshot(), next })
    }

    fn match_next_block(&mut self, sequence: SequenceId) -> Option<BlockId> {
        let block = self.next_cached_block(sequence)?;
        self.add_matched_block(sequence, block);
        Some(block)
    }

    fn next_cached_block(&self, sequence: SequenceId) -> Option<BlockId> {
        let next = self.requests[sequence.0 as usize].as_ref()?.next_to_match()?;
        self.blocks.block_to_match(Group::Full, next)
    }

    fn add_matched_block(&mut self, sequence: SequenceId, block: BlockId) {
        let Some(request) = &mut self.requests[sequence.0 as usize] else { return };
        self.blocks.hold(Group::Full, block);
        self.tables[Group::Full][sequence.0 as usize].add_read_only(request.matched as u32, block);
        request.matched += 1;
    }

    fn decide_next(&mut self, sequence: SequenceId) -> Result<Next, PoolError> {
        let request = self.requests[sequence.0 as usize].as_ref().ok_or(PoolError::Invalid)?;
        let matchable = self.match_boundary(request, u64::MAX).blocks();
        let computing = self.find_in_flight(sequence, request, matchable);
        let request = self.requests[sequence.0 as usize].as_mut().ok_or(PoolError::Invalid)?;
        if computing.is_some() {
            request.cancel_all_in_flight(sequence, &mut self.blocks.contents);
            return Ok(Next::Wait);
        }
        request.mark_rest_in_flight(sequence, &mut self.blocks.contents);
        Ok(Next::Compute)
    }

    /// Caches each block of the sequence that is full and not cached yet; the KV of `tokens` (the prompt, then accepted
    /// output) must be in the sequence's cells. A block that cannot be cached (several lie at its index, or the
    /// sequence does not own it) is left out. Returns the blocks that were cached.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, one without a request, one that holds nothing at
    /// the index of a full block, or tokens that are not those of the request.
    pub fn cache(&mut self, sequence: i32, tokens: &[i32]) -> Result<Vec<BlockId>, PoolError> {
        let mut cached = self.cache_in_groups(sequence, tokens)?;
        Ok(std::mem::take(&mut cached[Group::Full]))
    }

    /// The same, and returns the blocks of each group. In the layers with a window, blocks that were removed before
    /// they were cached are left out.
    ///
    /// [`PoolError::Invalid`]: as for [`Pool::cache`].
    pub fn cache_in_groups(
        &mut self,
        sequence: i32,
        tokens: &[i32],
    ) -> Result<Groups<Vec<BlockId>>, PoolError> {
        let sequence = self.sequence(sequence)?;
        let full = self.layouts[sequence.0 as usize].complete_blocks(tokens.len() as u64);
        let request = self.requests[sequence.0 as usize].as_mut().ok_or(PoolError::Invalid)?;
        let table = &self.tables[Group::Full][sequence.0 as usize];
        let holds_all = (request.settled..full).all(|index| table.entry(index as u32).is_some());
        if !request.agrees_with(tokens) || !holds_all {
            return Err(PoolError::Invalid);
        }
        request.learn(tokens, &mut self.blocks.contents);
        let unsettled = request.settled..full;
        request.settled = request.settled.max(full);
        let of_window = self.tables[Group::Window][sequence.0 as usize]
            .indexes(unsettled.start as u32..unsettled.end as u32)
            .into_iter()
            .filter_map(|index| self.cache_block(Group::Window, sequence, index as usize))
            .collect();
        let all = unsettled.filter_map(|index| self.cache_block(Group::Full, sequence, index)).collect();
        Ok(Groups::new(all, of_window))
    }

    fn cache_block(&mut self, group: Group, sequence: SequenceId, index: usize) -> Option<BlockId> {
        let content = self.content_of(sequence, index)?;
        if group == Group::Full {
            self.blocks.contents.end_in_flight(content, sequence);
        }
        let table = &mut self.tables[group][sequence.0 as usize];
        let block = table.entry(index as u32)?.own_single_block()?;
        if !self.blocks.cache(group, block, content, index as u32) {
            return None;
        }
        // Others may read it from here on.
        table.seal(index as u32);
        Some(block)
    }

    pub(super) fn content_of(&self, sequence: SequenceId, index: usize) -> Option<ContentId> {
        self.requests[sequence.0 as usize].as_ref()?.content(index)
    }

    /// A block that cannot be cached in the layers with a window still can in the others, and is in flight until then.
    pub(super) fn cancel_in_flight(&mut self, group: Group, sequence: SequenceId, index: u32) {
        if let Some(request) = self.requests[sequence.0 as usize].as_ref().filter(|_| group == Group::Full) {
            request.end_in_flight(index as usize, sequence, &mut self.blocks.contents);
        }
    }

    /// Ends the request of the sequence, if it has one; none of its blocks is in flight any more. The sequence keeps
    /// its blocks until they are removed.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence.
    pub fn end(&mut self, sequence: i32) -> Result<(), PoolError> {
        let sequence = self.sequence(sequence)?;
        self.end_request(sequence);
        Ok(())
    }

    pub(super) fn end_request(&mut self, sequence: SequenceId) {
        if let Some(request) = self.requests[sequence.0 as usize].take() {
            request.restoring.into_iter().for_each(|snapshot| self.snapshots.unpin(snapshot));
            request.end(sequence, &mut self.blocks.contents);
        }
        self.reset_layout_if_unused(sequence);
    }

    /// Returns a snapshot of all counters and gauges.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            snapshots: self.snapshots.len() as u64,
            snapshot_bytes: self.snapshots.used(),
            snapshot_hits: self.snapshots.counters.hits,
            evicted_snapshots: self.snapshots.counters.evicted,
            refused_snapshots: self.snapshots.counters.refused,
            ..self.blocks.statistics()
        }
    }

    /// Removes and returns the oldest unread event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.blocks.events.take()
    }

    /// Returns the number of cells in a block.
    pub fn block_size(&self) -> u32 {
        self.blocks.block_size()
    }

    /// Returns the blocks, read-only.
    pub fn blocks(&self) -> &BlockPool {
        &self.blocks
    }

    /// Returns the snapshots, read-only.
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Returns whether a sequence has a state besides its cells, so that a prompt is matched only with a snapshot.
    pub fn has_state(&self) -> bool {
        self.has_state
    }

    /// Returns whether the pool has layers with a sliding window.
    pub fn has_window(&self) -> bool {
        self.window > 0
    }

    /// Returns the size of the sliding window in tokens; 0: there is none.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Returns whether the pool has blocks of this group.
    pub fn has_group(&self, group: Group) -> bool {
        group == Group::Full || self.has_window()
    }

    /// Returns the distance in blocks of the snapshots at regular intervals; 0: none are taken.
    pub fn snapshot_interval(&self) -> usize {
        self.snapshot_interval
    }

    /// Returns the block table of a sequence in the layers that attend to all tokens, read-only.
    pub fn table(&self, sequence: i32) -> Option<&BlockTable> {
        self.table_in(Group::Full, sequence)
    }

    /// Returns the block table of a sequence in one group, read-only.
    pub fn table_in(&self, group: Group, sequence: i32) -> Option<&BlockTable> {
        self.tables[group].get(usize::try_from(sequence).ok()?)
    }

    /// Returns the layout of a sequence, read-only.
    pub fn layout(&self, sequence: i32) -> Option<&Layout> {
        self.layouts.get(usize::try_from(sequence).ok()?)
    }

    /// Returns the request of a sequence, read-only.
    pub fn request(&self, sequence: i32) -> Option<&Request> {
        self.requests.get(usize::try_from(sequence).ok()?)?.as_ref()
    }

    pub(super) fn sequence(&self, number: i32) -> Result<SequenceId, PoolError> {
        let number = u32::try_from(number).map_err(|_| PoolError::Invalid)?;
        if (number as usize) < self.requests.len() { Ok(SequenceId(number)) } else { Err(PoolError::Invalid) }
    }

    pub(super) fn sequence_in(&self, group: Group, number: i32) -> Result<SequenceId, PoolError> {
        let sequence = self.sequence(number)?;
        if self.has_group(group) { Ok(sequence) } else { Err(PoolError::Invalid) }
    }
}
