//! Sliding windows: the blocks of layers in which a token attends to itself and the `window - 1` tokens before it only.
//!
//! These layers have blocks and block tables of their own ([`Group::Window`]). As a sequence advances, the blocks
//! behind its window are released ([`Pool::slide`]), so it holds a bounded number of them. Between two batches it has
//! the window before its last boundary, not only before its last token: when it ends, a prompt that continues it can
//! be matched there.
//!
//! A prompt can be matched at a boundary if the blocks of the window before it are cached. Of the blocks that a
//! sequence releases while it advances, only those before a boundary at which another prompt is expected to continue
//! are kept: before a stop (`boundaries.rs`) or the last boundary of the prompt. The others are allocated next, so that
//! a long prompt does not evict what is used. They can be matched until then.
//!
//! The server uses this only if it saves much memory: otherwise it gives these layers a cell for every token, as the
//! others, and its pool has the group [`Group::Full`] only (docs/design/paged-kv.md).

use std::collections::BTreeSet;
use std::ops::Range;

use super::block::BlockId;
use super::contents::SequenceId;
use super::groups::Group;
use super::layout::Layout;
use super::options::BLOCKS_BESIDE_WINDOW;
use super::pool::{Pool, PoolError};
use super::requests::Request;

impl Pool {
    /// Returns the block indexes of the positions before `tokens` that the token at position `tokens` attends to in the
    /// layers with a window, in a sequence with this layout. Empty without a window.
    pub fn window_before(&self, layout: &Layout, tokens: u64) -> Range<usize> {
        if !self.has_window() {
            return 0..0;
        }
        let first = (tokens + 1).saturating_sub(self.window());
        layout.complete_blocks(first)..layout.needed_blocks(tokens)
    }

    /// Returns the number of blocks of the layers with a window that each sequence can hold while all others hold as
    /// many: those of one batch are left out.
    pub fn window_share(&self) -> u64 {
        let blocks = u64::from(self.blocks.block_count(Group::Window));
        blocks.saturating_sub(self.batch_blocks) / self.requests.len() as u64
    }

    /// Returns the largest number of blocks of the layers with a window that a sequence can hold between two batches, and
    /// to compute the next tokens. With closed blocks that is its share: it can compute several images in one step, and
    /// slide after each of them.
    pub(super) fn most_window_blocks(&self) -> u64 {
        if self.closes_blocks { self.window_share() } else { self.window_blocks }
    }

    /// Returns whether no sequence with this layout ever holds more than its share of the blocks of the layers with a
    /// window.
    pub(super) fn windows_fit(&self, layout: &Layout) -> bool {
        !self.has_window() || self.widest_window(layout) + BLOCKS_BESIDE_WINDOW <= self.window_share()
    }

    /// Returns the largest number of blocks in a window before any boundary of this layout.
    fn widest_window(&self, layout: &Layout) -> u64 {
        // One window behind the last closed block, all blocks are full.
        let last = layout.complete_blocks(layout.closed_tokens() + self.window()) + 1;
        let blocks_at = |boundary: usize| self.window_before(layout, layout.first_token(boundary)).len();
        (0..=last).map(blocks_at).max().unwrap_or_default() as u64
    }

    /// Returns the block indexes of the window before a boundary of the request.
    fn window_before_boundary(&self, request: &Request, blocks: usize) -> Range<usize> {
        self.window_before(request.layout(), request.layout().first_token(blocks))
    }

    /// Releases the blocks of the sequence in the layers with a window that lie before the window of the last boundary
    /// of its first `computed` tokens. All of them are computed, and no batch is running: a token of an earlier part of
    /// a batch may still attend to blocks that a later part does not need.
    ///
    /// Returns the first position of which the sequence still has cells. The caller removes the sequence from the cells
    /// before it.
    ///
    /// [`PoolError::Invalid`]: an unknown sequence, a pool without windows, or more tokens than a sequence can have.
    pub fn slide(&mut self, sequence: i32, computed: u64) -> Result<u64, PoolError> {
        let known = self.sequence_in(Group::Window, sequence)?;
        if computed > 1 << 31 {
            return Err(PoolError::Invalid);
        }
        let layout = &self.layouts[known.0 as usize];
        let first = self.window_before(layout, layout.last_boundary(computed)).start;
        let (position, first) = (layout.first_token(first), first as u32);
        let behind = self.tables[Group::Window][known.0 as usize].indexes(0..first);
        if !behind.is_empty() {
            self.release_behind(known, &behind);
        }
        Ok(position)
    }

    /// Releases the blocks at these indexes, the last one first.
    fn release_behind(&mut self, sequence: SequenceId, indexes: &[u32]) {
        let needed = self.expected_window_blocks(sequence);
        let (mut kept, mut scratch) = (Vec::new(), Vec::new());
        for index in indexes.iter().rev() {
            let blocks = self.tables[Group::Window][sequence.0 as usize].remove(*index..*index + 1);
            match needed.contains(&(*index as usize)) {
                true => kept.extend(blocks),
                false => scratch.extend(blocks),
            }
        }
        self.blocks.release(Group::Window, &kept);
        self.blocks.release_scratch(Group::Window, &scratch);
    }

    /// Returns the block indexes of the windows before the boundaries of the sequence's request at which another prompt
    /// is expected to continue.
    fn expected_window_blocks(&self, sequence: SequenceId) -> BTreeSet<usize> {
        let Some(request) = &self.requests[sequence.0 as usize] else { return BTreeSet::new() };
        let stops = self.stops(sequence.0.cast_signed(), request);
        let last = Some(request.last_boundary()).filter(|last| !request.cuts_extra(*last));
        let boundaries = stops.boundaries().chain(last);
        boundaries.flat_map(|blocks| self.window_before_boundary(request, blocks)).collect()
    }

    /// Returns whether the sequence has the window before its next token, and nothing behind that token, if it has this
    /// number of tokens.
    pub(super) fn holds_window(&self, sequence: SequenceId, tokens: u64) -> bool {
        let window = self.window_before(&self.layouts[sequence.0 as usize], tokens);
        let indexes = window.start as u32..window.end as u32;
        self.tables[Group::Window][sequence.0 as usize].ends_with(indexes)
    }

    /// Returns the last index of the window before a boundary of the request of which no block is cached. At a boundary
    /// after that index, up to this one, the request cannot be matched either.
    pub(super) fn missing_in_window(&self, request: &Request, blocks: usize) -> Option<usize> {
        let is_missing = |index: &usize| {
            let content = request.content(*index);
            content.is_none_or(|content| self.blocks.contents.blocks(Group::Window, content).is_empty())
        };
        self.window_before_boundary(request, blocks).rev().find(is_missing)
    }

    /// Adds the cached blocks of the window before this boundary to the sequence, and releases those of an earlier match
    /// behind it. Returns the added ones, without those that it had.
    pub(super) fn match_window(&mut self, sequence: SequenceId, blocks: usize) -> Vec<BlockId> {
        let layout = &self.layouts[sequence.0 as usize];
        let indexes = self.window_before(layout, layout.first_token(blocks));
        let behind = self.tables[Group::Window][sequence.0 as usize].remove(0..indexes.start as u32);
        self.blocks.release(Group::Window, &behind);
        indexes.filter_map(|index| self.match_window_block(sequence, index)).collect()
    }

    fn match_window_block(&mut self, sequence: SequenceId, index: usize) -> Option<BlockId> {
        if self.tables[Group::Window][sequence.0 as usize].entry(index as u32).is_some() {
            return None;
        }
        let content = self.content_of(sequence, index)?;
        let block = self.blocks.block_to_match(Group::Window, content)?;
        self.blocks.hold(Group::Window, block);
        self.tables[Group::Window][sequence.0 as usize].add_read_only(index as u32, block);
        Some(block)
    }
}
