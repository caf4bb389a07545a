//! Boundaries of prompts: those at which a prompt can be matched, and those at which a sequence should stop computing,
//! so that a snapshot of its state can be taken.
//!
//! A boundary is a place between two blocks of a prompt that is not inside of an image. It is counted in blocks. Cells
//! can be matched at every boundary, and those of a sliding window where the blocks of the window before it are cached.
//! A state exists only where a snapshot of it was taken, and it can be saved only while the sequence is at rest exactly
//! there.
//!
//! Stops are computed from the tables whenever they are requested. Nothing is registered, so nothing is left behind
//! when a request leaves. All of them depend on the request's own chain of contents, whose first block has the salt of
//! its tenant: the prompts of one tenant do not change the stops of another one.
//!
//! A stop costs a batch and a copy of the state. So there are none one block after another one, except where a system
//! prompt or the last image ends, or where several requests wait: one that waits alone loses at most the block between
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::contents::{ContentId, SequenceId};
use super::groups::Group;
use super::pool::{Pool, PoolError};
use super::requests::Request;
use super::snapshots::{Demand, Grant, NoSnapshot, Reason, SnapshotId};

/// A prompt whose blocks were not cached is cut before its end only if this number of blocks or more were not matched:
/// a cut costs one more pass over the weights.
const FEWEST_BLOCKS_BEFORE_PROMPT_END: usize = 4;

/// A boundary at which every part of a prompt's memory exists. Only [`Pool::match_boundary`] creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    blocks: usize,
    snapshot: Option<SnapshotId>,
}

impl Boundary {
    /// Returns the number of blocks before the boundary, with those that the sequence has already.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the snapshot of the state there; `None` if the pool has no state, or if the sequence is there already.
    pub fn snapshot(&self) -> Option<SnapshotId> {
        self.snapshot
    }
}

/// A boundary at which a sequence should stop computing, so that a snapshot can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Number of tokens before it.
    pub tokens: u64,
    /// Reason for the snapshot.
    pub reason: Reason,
}

impl Pool {
    /// Returns the tokens of the block of a sequence in which this token lies, or is going to lie; `None`: an unknown
    /// sequence, or a token that no sequence can have.
    pub fn block_of(&self, sequence: i32, token: u64) -> Option<Range<u64>> {
        let layout = self.layout(sequence)?;
        (token < 1 << 31).then(|| layout.block_of(token))
    }

    /// Returns the deepest boundary within the first `tokens` of the request's prompt whose cells are cached, if the
    /// pool has windows with those of the window before it, and, if it has a state, whose snapshot is ready. If there
    /// is none, that is where the request is now.
    ///
    /// With cells of all tokens alone, the block in which the tokens end is matched too.
    pub fn match_boundary(&self, request: &Request, tokens: u64) -> Boundary {
        let has_cells_only = !self.has_state() && !self.has_window();
        let (layout, tokens) = (request.layout(), tokens.min(request.prompt_length() as u64));
        let most = if has_cells_only { layout.needed_blocks(tokens) } else { layout.complete_blocks(tokens) };
        let mut blocks = most.min(self.cached_end(request));
        while blocks > request.matched && !has_cells_only {
            if let Some(missing) = self.missing_in_window(request, blocks) {
                blocks = missing;
                continue;
            }
            let snapshot = self.ready_snapshot(request, blocks);
            if snapshot.is_some() || (!self.has_state() && !request.cuts_extra(blocks)) {
                return Boundary { blocks, snapshot };
            }
            blocks -= 1;
        }
        Boundary { blocks: blocks.max(request.matched), snapshot: None }
    }

    /// Returns the number of blocks up to the first one that is not cached and may be matched.
    pub(super) fn cached_end(&self, request: &Request) -> usize {
        let is_cached = |index: &usize| {
            let content = request.matchable(*index);
            content.is_some_and(|content| !self.blocks.contents.blocks(Group::Full, content).is_empty())
        };
        let cached = (request.matched..).take_while(is_cached).count();
        request.matched + cached
    }

    /// Records how many blocks of its prompt were cached when the sequence matched its prefix: it caches more of them
    /// itself while it computes.
    pub(super) fn note_cached(&mut self, sequence: SequenceId, blocks: usize) {
        if let Some(request) = &mut self.requests[sequence.0 as usize] {
            request.cached = blocks;
        }
    }

    fn ready_snapshot(&self, request: &Request, blocks: usize) -> Option<SnapshotId> {
        let snapshot = self.snapshot_at(request, blocks)?;
        (self.snapshots.is_ready(snapshot) && !request.cuts_extra(blocks)).then_some(snapshot)
    }

    /// Returns the snapshot at a boundary of the request, also while it is written.
    fn snapshot_at(&self, request: &Request, blocks: usize) -> Option<SnapshotId> {
        self.blocks.contents.snapshot(content_before(request, blocks)?)
    }

    /// Returns another sequence that computes a block of the request's prompt: the first one that is not cached, or a
    /// cached one behind the first `matchable` blocks, which the request can match now. In a pool with a state or
    /// windows, cells alone cannot be matched: a sequence that computes them again adds the state or window. `None`
    /// also if no state is going to be saved that the request could match.
    pub(super) fn find_in_flight(
        &self,
        sequence: SequenceId,
        request: &Request,
        matchable: usize,
    ) -> Option<SequenceId> {
        if self.has_state() {
            return self.find_saving(sequence, request, matchable);
        }
        let blocks = matchable..=self.cached_end(request);
        blocks.filter_map(|index| request.matchable(index)).find_map(|content| {
            // A mark of its own on an earlier block must not hide another sequence's on a later one.
            self.blocks.contents.in_flight_for(content).filter(|other| *other != sequence)
        })
    }

    /// Returns another sequence that computes and reaches a boundary of the request behind the first `matchable` blocks
    /// at which there is going to be a snapshot. Not only the one that has the blocks in flight: if the budget is for
    /// few snapshots, that one may save nothing for this request, and another one, which did not wait either, may.
    fn find_saving(&self, sequence: SequenceId, request: &Request, matchable: usize) -> Option<SequenceId> {
        let cached = self.cached_end(request);
        let next = request.matchable(cached).and_then(|content| self.blocks.contents.in_flight_for(content));
        let end = if next.is_some_and(|other| other != sequence) { request.last_boundary() } else { cached };
        let others = (0..).map(SequenceId).zip(&self.requests).filter(|(other, _)| *other != sequence);
        let mut live = others.filter_map(|(other, computing)| Some((other, computing.as_ref()?)));
        let saving = live.find(|(other, computing)| {
            let last = end.min(request.common_blocks(computing));
            computing.has_in_flight && self.reaches_snapshot(*other, computing, matchable..last)
        });
        saving.map(|(other, _)| other)
    }

    /// Returns whether the sequence is going to compute the blocks before a snapshot, behind the first of these blocks
    /// and not behind the last one: one that exists, or one that it takes itself.
    fn reaches_snapshot(&self, sequence: SequenceId, request: &Request, blocks: Range<usize>) -> bool {
        let first = blocks.start.max(request.matched).max(request.settled);
        if first >= blocks.end {
            return false;
        }
        let has_snapshot = |boundary: usize| self.snapshot_at(request, boundary).is_some();
        let next = || self.next_stop(sequence.0.cast_signed(), request.layout().first_token(first));
        let is_next = |stop: Stop| request.layout().complete_blocks(stop.tokens) <= blocks.end;
        (first + 1..=blocks.end).any(has_snapshot) || next().is_some_and(is_next)
    }

    fn takes_snapshots(&self) -> bool {
        self.has_state() && self.snapshots.budget() > 0
    }

    /// Records that the sequence is going to restore this snapshot, which is pinned until then.
    pub(super) fn begin_restoring(&mut self, sequence: SequenceId, snapshot: SnapshotId) {
        let Some(request) = &mut self.requests[sequence.0 as usize] else { return };
        let before = request.restoring.replace(snapshot);
        self.snapshots.pin(snapshot);
        before.into_iter().for_each(|before| self.snapshots.unpin(before));
    }

    /// Records that a sequence has restored the snapshot of [`Pool::match_up_to`]. If it could not, the snapshot is
    /// removed, and the caller frees its bytes, removes everything from the sequence and computes the prompt. So does the
    /// caller of another sequence that was going to restore it.
    ///
    /// [`PoolError::Invalid`]: the sequence is not restoring it.
    pub fn restored(
        &mut self,
        sequence: i32,
        snapshot: SnapshotId,
        is_restored: bool,
    ) -> Result<(), PoolError> {
        let sequence = self.sequence(sequence)?;
        let request = self.requests[sequence.0 as usize].as_mut();
        let request =
            request.filter(|request| request.restoring == Some(snapshot)).ok_or(PoolError::Invalid)?;
        request.restoring = None;
        request.restored = Some(snapshot).filter(|_| is_restored);
        self.snapshots.unpin(snapshot);
        match is_restored {
            true => self.snapshots.record_hit(snapshot),
            false => self.remove_snapshot(snapshot),
        }
        Ok(())
    }

    pub(super) fn remove_snapshot(&mut self, snapshot: SnapshotId) {
        if let Some(content) = self.snapshots.remove(snapshot) {
            self.blocks.contents.remove_snapshot(content, snapshot);
        }
    }

    /// Begins a snapshot of the sequence's state after `tokens`, the first ones of its prompt and output, whose blocks
    /// were passed to [`Pool::cache`]. The caller frees the evicted snapshots, saves the state and calls
    /// [`Pool::end_snapshot`]. A tail replaces the tail before it in the same answer, unless that one was hit. A
    /// snapshot that a waiting request can match is not replaced, and evicted only for another one that is awaited.
    pub fn begin_snapshot(
        &mut self,
        sequence: i32,
        tokens: &[i32],
        bytes: u64,
        reason: Reason,
    ) -> Result<Grant, NoSnapshot> {
        let content = self.content_of_snapshot(sequence, tokens, bytes)?;
        if self.blocks.contents.snapshot(content).is_some() {
            return Err(NoSnapshot::Exists);
        }
        let demand = self.demand(sequence, bytes, reason);
        let Some(evicted) = self.find_victims(&demand) else {
            self.snapshots.counters.refused += 1;
            return Err(NoSnapshot::Short);
        };
        self.snapshots.counters.evicted += evicted.len() as u64 - u64::from(demand.replaced.is_some());
        evicted.iter().for_each(|victim| self.remove_snapshot(*victim));
        let id = self.snapshots.begin(content, bytes, reason);
        self.blocks.contents.add_snapshot(content, id);
        self.note_tail(sequence, id, reason);
        Ok(Grant { id, evicted })
    }

    fn demand(&self, sequence: i32, bytes: u64, reason: Reason) -> Demand {
        let tail = self.request(sequence).filter(|_| reason == Reason::Tail).and_then(|request| request.tail);
        let is_awaited = |tail: SnapshotId| self.awaited_snapshots().any(|awaited| awaited == tail);
        let replaced = tail.filter(|tail| self.snapshots.is_unused_tail(*tail) && !is_awaited(*tail));
        let kept = match reason {
            _ if self.snapshots.has_space_for(bytes) => BTreeSet::new(),
            Reason::Awaited => BTreeSet::new(),
            Reason::Interval => self.awaited_snapshots().chain(self.own_snapshots(sequence)).collect(),
            _ => self.awaited_snapshots().collect(),
        };
        Demand { bytes, reason, replaced, kept }
    }

    /// Returns the snapshots of the prompt of a sequence.
    fn own_snapshots(&self, sequence: i32) -> impl Iterator<Item = SnapshotId> {
        let request = self.request(sequence);
        let contents = (0..).map_while(move |index| request?.content(index));
        contents.filter_map(move |content| self.blocks.contents.snapshot(content))
    }

    /// Returns the snapshots that requests which have not begun to compute are going to match.
    fn awaited_snapshots(&self) -> impl Iterator<Item = SnapshotId> {
        let waiting = self.requests.iter().flatten().filter(|request| !request.has_begun_to_compute);
        waiting.filter_map(move |request| self.match_boundary(request, u64::MAX).snapshot())
    }

    fn find_victims(&self, demand: &Demand) -> Option<Vec<SnapshotId>> {
        // The end of a prompt is evicted before its beginning, so the last block stands for all.
        let can_be_matched = |content| !self.blocks.contents.blocks(Group::Full, content).is_empty();
        self.snapshots.find_victims(demand, can_be_matched)
    }

    fn note_tail(&mut self, sequence: i32, id: SnapshotId, reason: Reason) {
        let request = self.requests.get_mut(sequence as usize).and_then(Option::as_mut);
        if let Some(request) = request.filter(|_| reason == Reason::Tail) {
            request.tail = Some(id);
        }
    }

    fn content_of_snapshot(
        &self,
        sequence: i32,
        tokens: &[i32],
        bytes: u64,
    ) -> Result<ContentId, NoSnapshot> {
        let request = self.request(sequence).ok_or(NoSnapshot::Invalid)?;
        if !self.has_state() || bytes == 0 {
            return Err(NoSnapshot::Invalid);
        }
        let (layout, length) = (request.layout(), tokens.len() as u64);
        let blocks = layout.complete_blocks(length);
        if blocks == 0 || layout.last_boundary(length) != length || request.cuts_extra(blocks) {
            return Err(NoSnapshot::NotAtBoundary);
        }
        if request.settled < blocks || !request.agrees_with(tokens) {
            return Err(NoSnapshot::Invalid);
        }
        content_before(request, blocks).ok_or(NoSnapshot::Invalid)
    }

    /// Ends a snapshot: it can be matched from here on. If it could not be written, it is removed.
    ///
    /// [`PoolError::Invalid`]: it is not being written.
    pub fn end_snapshot(&mut self, snapshot: SnapshotId, is_written: bool) -> Result<(), PoolError> {
        if !self.snapshots.is_being_written(snapshot) {
            return Err(PoolError::Invalid);
        }
        if !is_written {
            self.remove_snapshot(snapshot);
            return Ok(());
        }
        self.snapshots.complete(snapshot);
        let request = self.requests.iter_mut().flatten().find(|request| request.tail == Some(snapshot));
        if let Some(before) = request.and_then(|request| request.restored.take()) {
            self.snapshots.supersede(before);
        }
        Ok(())
    }

    /// Returns the first boundary after `computed` tokens of the sequence at which it should stop. `None`: it need not
    /// stop, or it is unknown, or no snapshots are taken.
    pub fn next_stop(&self, sequence: i32, computed: u64) -> Option<Stop> {
        let request = self.request(sequence).filter(|_| self.takes_snapshots())?;
        let first = request.layout().complete_blocks(computed) + 1;
        let stops = self.stops(sequence, request);
        let mut rest = stops.reasons.range(first..);
        let mut takes_intervals = None;
        let next = rest.find(|(blocks, reason)| {
            let is_granted = **reason != Reason::Interval
                || *takes_intervals.get_or_insert_with(|| self.takes_intervals(sequence));
            is_granted && self.snapshot_at(request, **blocks).is_none()
        });
        next.map(|(blocks, reason)| Stop { tokens: request.layout().first_token(*blocks), reason: *reason })
    }

    /// Returns whether a snapshot at an interval would be granted, as far as its size is known: a stop for one that is
    /// refused costs a batch.
    fn takes_intervals(&self, sequence: i32) -> bool {
        let bytes = self.snapshots.expected_bytes();
        let would_be_granted =
            || self.find_victims(&self.demand(sequence, bytes, Reason::Interval)).is_some();
        self.snapshots.has_space_for(bytes) || would_be_granted()
    }

    /// Returns all stops of a request, also those that have a snapshot already.
    pub(super) fn stops<'a>(&self, sequence: i32, request: &'a Request) -> Stops<'a> {
        let mut stops = Stops { request, reasons: BTreeMap::new() };
        let last = request.last_boundary();
        let mut waiting_at = BTreeMap::new();
        self.awaited(sequence, request).for_each(|blocks| *waiting_at.entry(blocks).or_insert(0) += 1);
        for (blocks, waiting) in waiting_at {
            match waiting {
                1 => stops.add_unless_near(blocks, 1, Reason::Awaited),
                _ => stops.add(blocks, Reason::Awaited),
            }
        }
        let system = request.layout().complete_blocks(request.system_length as u64);
        if (1..=last).contains(&system) {
            stops.add(system, Reason::SystemPrompt);
        }
        // Another question about the same images begins there. An image is computed on its own: this costs no batch.
        let behind_extras =
            request.boundaries_behind_extras().filter(|blocks| (1..=last).contains(blocks)).last();
        behind_extras.into_iter().for_each(|blocks| stops.add(blocks, Reason::Branch));
        // One block after a snapshot, another one would save one block.
        let is_near = |blocks: usize| self.snapshot_at(request, blocks - 1).is_some();
        for blocks in (1..=last).filter(|blocks| self.is_branch(request, *blocks) && !is_near(*blocks)) {
            stops.add_unless_near(blocks, 1, Reason::Branch);
        }
        if let Some(known) = known_end(request).filter(|known| !is_near(*known)) {
            stops.add_unless_near(known, 1, Reason::Branch);
        }
        stops.keep_last_shared(self.snapshots.capacity());
        if last >= request.matched + FEWEST_BLOCKS_BEFORE_PROMPT_END && !is_near(last) {
            stops.add_unless_near(last, 1, Reason::PromptEnd);
        }
        let interval = self.snapshot_interval();
        for blocks in (1..=last).filter(|blocks| blocks.is_multiple_of(interval) && !is_near(*blocks)) {
            stops.add_unless_near(blocks, 2, Reason::Interval);
        }
        stops
    }

    /// Returns the boundaries at which requests that have not begun to compute diverge from this one: up to there they
    /// can match what it computes.
    fn awaited(&self, sequence: i32, request: &Request) -> impl Iterator<Item = usize> {
        let requests = (0..).zip(&self.requests).filter(move |(other, _)| *other != sequence);
        let waiting =
            requests.filter_map(|(_, other)| other.as_ref()).filter(|other| !other.has_begun_to_compute);
        waiting.filter_map(move |other| {
            let common = request.common_blocks(other).min(request.full_blocks()).min(other.last_boundary());
            // Inside of an image, it is the last boundary before that.
            (other.matched + 1..=common).rev().find(|blocks| !request.cuts_extra(*blocks))
        })
    }

    fn is_branch(&self, request: &Request, blocks: usize) -> bool {
        let content = content_before(request, blocks);
        content.is_some_and(|content| self.blocks.contents.children(content) >= 2)
    }
}

/// Returns the boundary up to which another prompt has computed the blocks of this one, if this one could not be
/// matched there: so they are used more than once, however few they are. `None`: it was, or no blocks were cached.
fn known_end(request: &Request) -> Option<usize> {
    let known = request.matched + 1..=request.cached.min(request.last_boundary());
    known.rev().find(|blocks| !request.cuts_extra(*blocks))
}

/// Returns the content of the block before this boundary; `None` for the beginning of the prompt.
fn content_before(request: &Request, blocks: usize) -> Option<ContentId> {
    request.content(blocks.checked_sub(1)?)
}

/// Stops of a request, with their reasons, by the number of blocks before them.
pub(super) struct Stops<'a> {
    request: &'a Request,
    reasons: BTreeMap<usize, Reason>,
}

impl Stops<'_> {
    /// Returns the stops in order, as the number of blocks before them.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = usize> {
        self.reasons.keys().copied()
    }

    /// Adds a stop, unless it is one already or lies inside of an image.
    fn add(&mut self, blocks: usize, reason: Reason) {
        if !self.request.cuts_extra(blocks) {
            self.reasons.entry(blocks).or_insert(reason);
        }
    }

    /// Removes stops at branches, and then of waiting requests, if these are more than the budget has memory for: a
    /// later snapshot of the same prompt would evict them. The last ones stay, which save most.
    fn keep_last_shared(&mut self, most: usize) {
        let is_shared = |reason: &Reason| matches!(reason, Reason::Awaited | Reason::Branch);
        let shared = self.reasons.iter().filter(|(_, reason)| is_shared(reason));
        let mut shared: Vec<(bool, usize)> =
            shared.map(|(blocks, reason)| (*reason == Reason::Awaited, *blocks)).collect();
        shared.sort_unstable();
        for (_, blocks) in &shared[..shared.len().saturating_sub(most)] {
            self.reasons.remove(blocks);
        }
    }

    /// Adds a stop, unless there is one at it, one block before it or, with a `width` of 2, one block after it.
    fn add_unless_near(&mut self, blocks: usize, width: usize, reason: Reason) {
        if self.reasons.range(blocks.saturating_sub(1)..blocks + width).next().is_none() {
            self.add(blocks, reason);
        }
    }
}
