//! Block tables: the blocks that a sequence holds, by position.

use std::collections::BTreeMap;
use std::ops::Range;

use super::block::BlockId;
use super::layout::Layout;

/// The blocks that one sequence holds at one block index.
///
/// Nearly always one. There are more if the sequence has to write at a position whose block is read-only: one that it
/// matched, shared or cached. Then it continues in a block of its own and still reads the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Read-only blocks.
    pub earlier: Vec<BlockId>,
    /// The block added last.
    pub last: BlockId,
    /// Whether the sequence may write to `last`. Only if it allocated the block itself, did not cache it, and removed
    /// none of its positions while another sequence held it too.
    pub is_writable: bool,
}

impl Entry {
    fn of(last: BlockId, is_writable: bool) -> Entry {
        Entry { earlier: Vec::new(), last, is_writable }
    }

    /// Returns the blocks in the order in which they were added.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = BlockId> {
        self.earlier.iter().copied().chain([self.last])
    }

    /// Returns the only block if the sequence may write to it: a block that can be cached.
    pub fn own_single_block(&self) -> Option<BlockId> {
        (self.is_writable && self.earlier.is_empty()).then_some(self.last)
    }

    fn add_read_only(&mut self, block: BlockId) {
        match self.is_writable {
            true => self.earlier.push(block),
            false => self.earlier.push(std::mem::replace(&mut self.last, block)),
        }
    }
}

/// The block table of one sequence in one group: an entry for each block index, which the sequence's [`Layout`] derives
/// from a position. Sparse, because positions may begin anywhere and have gaps.
#[derive(Clone, Debug, Default)]
pub struct BlockTable {
    entries: BTreeMap<u32, Entry>,
}

impl BlockTable {
    /// Returns whether the sequence holds nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of block indexes that have an entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether it holds exactly the `matched` first blocks of a prompt, each alone at its index.
    pub fn holds_only_matched(&self, matched: usize) -> bool {
        self.len() == matched && self.is_read_only()
    }

    /// Returns whether each index has one block, which the sequence does not write to.
    pub fn is_read_only(&self) -> bool {
        self.entries.values().all(|entry| entry.earlier.is_empty() && !entry.is_writable)
    }

    /// Returns whether it has blocks at all of these indexes, and none behind them.
    pub fn ends_with(&self, indexes: Range<u32>) -> bool {
        let end = self.entries.last_key_value().map_or(0, |(index, _)| index + 1);
        end <= indexes.end && self.indexes(indexes.clone()).len() == indexes.len()
    }

    /// Returns the entry at this block index.
    pub fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(&index)
    }

    /// Returns all entries with their block indexes, in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u32, &Entry)> {
        self.entries.iter().map(|(index, entry)| (*index, entry))
    }

    /// Returns the block at this block index that new tokens are written to, if the sequence has one.
    pub fn writable_block(&self, index: u32) -> Option<BlockId> {
        self.entries.get(&index).filter(|entry| entry.is_writable).map(|entry| entry.last)
    }

    /// Adds a block that the sequence allocated to write to. Returns true if the index had blocks before.
    pub fn add_own(&mut self, index: u32, block: BlockId) -> bool {
        let Some(entry) = self.entries.get_mut(&index) else {
            self.entries.insert(index, Entry::of(block, true));
            return false;
        };
        entry.earlier.push(entry.last);
        (entry.last, entry.is_writable) = (block, true);
        true
    }

    /// Adds a read-only block. Returns false if the sequence holds the block already.
    pub fn add_read_only(&mut self, index: u32, block: BlockId) -> bool {
        match self.entries.get_mut(&index) {
            None => drop(self.entries.insert(index, Entry::of(block, false))),
            Some(entry) if entry.blocks().any(|held| held == block) => return false,
            Some(entry) => entry.add_read_only(block),
        }
        true
    }

    /// Makes the entry at this index read-only.
    pub fn seal(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(&index) {
            entry.is_writable = false;
        }
    }

    /// Removes the entries with these indexes and returns their blocks, the last one first. Looks them up one by one:
    /// most removals are of a few rejected tokens at the end of a long table, which should not be scanned.
    pub fn remove(&mut self, indexes: Range<u32>) -> Vec<BlockId> {
        let mut blocks = Vec::new();
        for index in self.indexes(indexes).into_iter().rev() {
            if let Some(entry) = self.entries.remove(&index) {
                blocks.extend(entry.blocks().rev());
            }
        }
        blocks
    }

    /// Returns the indexes in this range that have an entry.
    pub fn indexes(&self, range: Range<u32>) -> Vec<u32> {
        if range.is_empty() {
            return Vec::new();
        }
        self.entries.range(range).map(|(index, _)| *index).collect()
    }
}

/// A range of positions in blocks: those that it covers entirely, and those that it touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSpan {
    /// Block indexes with at least one position in the range.
    pub touched: Range<u32>,
    /// Block indexes with all positions in the range.
    pub whole: Range<u32>,
}

impl BlockSpan {
    /// Converts positions `first..end` in llama.cpp's convention: a negative `first` is the beginning; a negative
    /// `end`, and the highest possible position, mean "to the end".
    pub fn of(first: i32, end: i32, layout: &Layout) -> BlockSpan {
        let first = first.max(0) as u64;
        // All positions are below 2^31; the last block may end beyond that.
        let end = if end < 0 || end == i32::MAX { 1 << 31 } else { end as u64 };
        if first >= end {
            return BlockSpan { touched: 0..0, whole: 0..0 };
        }
        let touched = layout.complete_blocks(first) as u32..layout.needed_blocks(end) as u32;
        let whole = layout.needed_blocks(first) as u32..layout.complete_blocks(end) as u32;
        BlockSpan { touched, whole: whole.start..whole.end.max(whole.start) }
    }
}
