//! The scheduler's view of the pool: read-only counts, in blocks.
//!
//! A sequence holds a bounded number of blocks of layers with a window, however long it is, and there are enough for all
//! sequences and one batch ([`super::pool::PoolOptions::blocks_of_windows`]). So these limit admission only where
//! sequences hold several blocks at one index, as after a retained sequence was cut in the middle of cached blocks.

use std::ops::Range;

use super::groups::Group;
use super::pool::Pool;
use super::requests::Request;
use crate::scheduler::{Capacity, Offer, RequestSize, WindowNeeds};

impl Pool {
    /// Returns a counter that increases whenever a waiting request may be able to continue: a block became free or was
    /// cached, an in-flight block was cancelled, or a snapshot was written.
    pub fn changes(&self) -> u64 {
        self.blocks().changes() + self.snapshots().counters.written
    }

    fn free_among_first(&self, request: &Request, blocks: usize) -> u64 {
        let is_free = |index: &usize| {
            let content = request.matchable(*index);
            let block = content.and_then(|content| self.blocks().block_to_match(Group::Full, content));
            block.is_some_and(|block| self.blocks().holders(Group::Full, block) == 0)
        };
        (0..blocks).filter(is_free).count() as u64
    }

    fn missing_in(&self, group: Group, sequence: i32, positions: Range<u64>) -> u64 {
        let (Some(table), Some(layout)) = (self.table_in(group, sequence), self.layout(sequence)) else {
            return 0;
        };
        let touched = layout.complete_blocks(positions.start)..layout.needed_blocks(positions.end);
        let is_missing = |index: &usize| table.writable_block(*index as u32).is_none();
        if positions.is_empty() { 0 } else { touched.filter(is_missing).count() as u64 }
    }
}

impl Capacity for Pool {
    fn block_count(&self) -> u64 {
        u64::from(self.blocks().block_count(Group::Full))
    }

    fn free(&self, group: Group) -> u64 {
        u64::from(self.blocks().free_count(group))
    }

    fn block_size(&self) -> u64 {
        u64::from(self.blocks().block_size())
    }

    fn needed(&self, sequence: i32, size: RequestSize) -> u64 {
        self.layout(sequence).map_or(0, |layout| layout.blocks_for(size))
    }

    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64 {
        self.missing_in(Group::Full, sequence, positions)
    }

    fn held(&self, group: Group, sequence: i32) -> u64 {
        let Some(table) = self.table_in(group, sequence) else { return 0 };
        table.entries().map(|(_, entry)| entry.blocks().count() as u64).sum()
    }

    fn held_alone(&self, group: Group, sequence: i32) -> u64 {
        let Some(table) = self.table_in(group, sequence) else { return 0 };
        let blocks = table.entries().flat_map(|(_, entry)| entry.blocks());
        blocks.filter(|block| self.blocks().holders(group, *block) == 1).count() as u64
    }

    /// The matched blocks may end inside of an image, which is computed as a whole: then the part of it in the last
    /// block takes one more block. Cached blocks behind the last boundary that can be matched are computed again, in
    /// blocks of the sequence.
    fn offer(&self, sequence: i32, end: u64) -> Offer {
        let blocks = self.layout(sequence).map_or(0, |layout| layout.needed_blocks(end) as u64);
        let nothing = Offer { tokens: 0, blocks, waits_for: None };
        let Some(request) = self.request(sequence) else { return nothing };
        let Ok(known) = self.sequence(sequence) else { return nothing };
        let layout = request.layout();
        let matchable = self.match_boundary(request, u64::MAX).blocks();
        let waits_for = self.find_in_flight(known, request, matchable);
        let tokens = request.end_before_cut_extra(layout.first_token(matchable));
        let free = self.free_among_first(request, layout.needed_blocks(tokens));
        Offer {
            tokens,
            blocks: free + nothing.blocks - layout.complete_blocks(tokens) as u64,
            waits_for: waits_for.map(|other| other.0.cast_signed()),
        }
    }

    fn windows(&self) -> Option<&dyn WindowNeeds> {
        self.has_window().then_some(self as &dyn WindowNeeds)
    }
}

impl WindowNeeds for Pool {
    fn batch(&self) -> u64 {
        self.batch_blocks
    }

    /// The tokens of a batch take the blocks of [`WindowNeeds::batch`], beside those that the first ones of each
    /// sequence need: as many tokens as a block has, as far as they are computed at once. Each further choice becomes a
    /// sequence, so there are fewer of them than sequences.
    fn needed(&self, sequence: i32, first: u64, further_choices: u64) -> u64 {
        let end_of_run = self.request(sequence).map_or(u64::MAX, |request| request.keys().end_of_run(first));
        let end = end_of_run.min(first + u64::from(self.block_size()));
        let next = self.missing_in(Group::Window, sequence, first..end);
        let most = self.most_window_blocks();
        let own = most.saturating_sub(self.held(Group::Window, sequence)).max(next);
        own + most * further_choices.min(self.requests.len() as u64 - 1)
    }
}
