//! Layout of a sequence: which of its tokens lie in which block.
//!
//! Without images and the like, a block has `block_size` tokens. If blocks are closed, one ends where such an input
//! ends, however many tokens it has, and the token after it begins the next block. So there is a boundary behind every
//! image, where a prompt with the same image and another question can be matched, at the price of the cells that are
//! left in the closed block. A request that would not fit into the pool at this price, or whose sliding windows would
//! take more blocks than a sequence has, gets full blocks: it shares only those before the end of its first image, and
//! is answered.
//!
//! Tokens are counted by their index in the sequence, which is not their position if the tokens of an image share one.
//! The layouts of two prompts agree as far as their tokens and inputs do, and so do their blocks.

use std::ops::Range;

use super::extra_keys::RequestKeys;
use crate::scheduler::RequestSize;

/// Blocks of `block_size` tokens from one token on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    first_token: u64,
    first_block: u64,
}

impl Segment {
    /// Returns the number of blocks before this token, counting a block that it begins in as one.
    fn blocks_before(&self, token: u64, block_size: u64) -> u64 {
        self.first_block + (token - self.first_token).div_ceil(block_size)
    }
}

/// The layout of one sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    block_size: u32,
    /// Segments after a closed block, in order. The first one begins with the first token, and is not listed.
    segments: Vec<Segment>,
}

impl Layout {
    /// Creates a layout without closed blocks.
    pub fn plain(block_size: u32) -> Layout {
        Layout { block_size, segments: Vec::new() }
    }

    /// Creates a layout in which a block is closed where each extra of the request ends.
    pub fn closed(block_size: u32, keys: &RequestKeys) -> Layout {
        let mut layout = Layout::plain(block_size);
        keys.extra_ends().for_each(|end| layout.close(end));
        layout
    }

    /// Closes the last block before this token, which comes after all others at which a block was closed.
    fn close(&mut self, token: u64) {
        let size = u64::from(self.block_size);
        let last = self.segments.last().copied().unwrap_or_default();
        if !(token - last.first_token).is_multiple_of(size) {
            let first_block = last.blocks_before(token, size);
            self.segments.push(Segment { first_token: token, first_block });
        }
    }

    /// Returns the index of the token's block, and its offset in that.
    pub fn place(&self, token: u64) -> (u64, u32) {
        let segment = self.segment(|segment| segment.first_token <= token);
        let (tokens, size) = (token - segment.first_token, u64::from(self.block_size));
        (segment.first_block + tokens / size, (tokens % size) as u32)
    }

    /// Returns the last segment for which this holds: it holds for the first ones.
    fn segment(&self, is_before: impl Fn(&Segment) -> bool) -> Segment {
        let end = self.segments.partition_point(is_before);
        end.checked_sub(1).map_or_else(Segment::default, |last| self.segments[last])
    }

    /// Returns the first token of the block at this index: the number of tokens in all blocks before it.
    pub fn first_token(&self, block: usize) -> u64 {
        let block = block as u64;
        let segment = self.segment(|segment| segment.first_block <= block);
        segment.first_token + (block - segment.first_block) * u64::from(self.block_size)
    }

    /// Returns the tokens of the block in which this token lies.
    pub fn block_of(&self, token: u64) -> Range<u64> {
        let block = self.complete_blocks(token);
        self.first_token(block)..self.first_token(block + 1)
    }

    /// Returns the number of complete blocks, full or closed, that this number of tokens has.
    pub fn complete_blocks(&self, tokens: u64) -> usize {
        self.place(tokens).0 as usize
    }

    /// Returns the number of blocks that this number of tokens needs.
    pub fn needed_blocks(&self, tokens: u64) -> usize {
        let (block, offset) = self.place(tokens);
        block as usize + usize::from(offset > 0)
    }

    /// Returns the number of blocks that a request of this size needs.
    pub fn blocks_for(&self, size: RequestSize) -> u64 {
        size.with_positions_in(self.needed_blocks(size.end) as u64)
    }

    /// Returns the number of tokens up to the end of the last closed block; 0: none is closed.
    pub fn closed_tokens(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.first_token)
    }

    /// Returns the last boundary within this number of tokens, in tokens.
    pub fn last_boundary(&self, tokens: u64) -> u64 {
        self.first_token(self.complete_blocks(tokens))
    }

    /// Returns whether both place the first `tokens` tokens alike.
    pub fn agrees_with(&self, other: &Layout, tokens: u64) -> bool {
        self.block_size == other.block_size && self.closed_before(tokens) == other.closed_before(tokens)
    }

    /// Returns this layout without the blocks that are closed behind the first `tokens` tokens.
    pub fn until(&self, tokens: u64) -> Layout {
        Layout { block_size: self.block_size, segments: self.closed_before(tokens).to_vec() }
    }

    /// Returns the layouts in which only the first of the closed blocks are closed, for each number of them: from none
    /// to all.
    pub fn partly_closed(&self) -> impl Iterator<Item = Layout> {
        (0..=self.segments.len()).map(move |count| Layout {
            block_size: self.block_size,
            segments: self.segments[..count].to_vec(),
        })
    }

    fn closed_before(&self, tokens: u64) -> &[Segment] {
        let end = self.segments.partition_point(|segment| segment.first_token < tokens);
        &self.segments[..end]
    }
}
