//! The scheduler's view of the pool: read-only counts, in blocks.
//!
//! Blocks of layers with a window are not counted: there are enough for the windows of all sequences, and a sequence
//! holds no more of them however long it is ([`super::pool::PoolOptions::window_block_count`]).

use std::ops::Range;

use super::groups::Group;
use super::pool::Pool;
use super::requests::Request;
use crate::scheduler::{Capacity, Offer, RequestSize};

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
}

impl Capacity for Pool {
    fn block_count(&self) -> u64 {
        u64::from(self.blocks().block_count(Group::Full))
    }

    fn free(&self) -> u64 {
        u64::from(self.blocks().free_count(Group::Full))
    }

    fn block_size(&self) -> u64 {
        u64::from(self.blocks().block_size())
    }

    fn needed(&self, sequence: i32, size: RequestSize) -> u64 {
        self.layout(sequence).map_or(0, |layout| layout.blocks_for(size))
    }

    fn missing(&self, sequence: i32, positions: Range<u64>) -> u64 {
        let (Some(table), Some(layout)) = (self.table(sequence), self.layout(sequence)) else { return 0 };
        let touched = layout.complete_blocks(positions.start)..layout.needed_blocks(positions.end);
        let is_missing = |index: &usize| table.writable_block(*index as u32).is_none();
        if positions.is_empty() { 0 } else { touched.filter(is_missing).count() as u64 }
    }

    fn held(&self, sequence: i32) -> u64 {
        let Some(table) = self.table(sequence) else { return 0 };
        table.entries().map(|(_, entry)| entry.blocks().count() as u64).sum()
    }

    fn held_alone(&self, sequence: i32) -> u64 {
        let Some(table) = self.table(sequence) else { return 0 };
        let blocks = table.entries().flat_map(|(_, entry)| entry.blocks());
        blocks.filter(|block| self.blocks().holders(Group::Full, *block) == 1).count() as u64
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
}
