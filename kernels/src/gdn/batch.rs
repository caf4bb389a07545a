//! The sequences of a batch, and their cells in the cache of a layer.

use super::moves::{self, Move};

/// The sequences of a batch. The cache of a layer has `snapshots` planes of `cells` cells, each with the state of a
/// sequence.
///
/// The layout is `struct espalier_gdn_batch` of the C header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Batch {
    /// For each of the cells `first..first + moved`: the index, over all planes, of the cell whose state it gets before
    /// the first token. Null if all keep theirs.
    pub sources: *const i32,
    /// Number of tokens in a sequence.
    pub tokens: u32,
    /// Number of sequences; the state of sequence `s` is in the cell `first + s`.
    pub seqs: u32,
    /// The cell of the first sequence.
    pub first: u32,
    /// Number of cells that get the state of a source, from `first` on: those of the sequences, and idle ones after
    /// them.
    pub moved: u32,
    /// Number of cells in a plane.
    pub cells: u32,
    /// Number of planes. Plane `n` gets the state of each sequence `n` tokens before its last one.
    pub snapshots: u32,
}

impl Batch {
    /// Returns whether the cells of the sequences exist.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        let last = u64::from(self.first) + u64::from(self.moved);
        self.tokens > 0
            && self.seqs > 0
            && self.snapshots > 0
            && self.seqs <= self.moved
            && last <= u64::from(self.cells)
    }

    /// Returns the copies between cells that precede the first token, in order. None if a source is not a cell.
    ///
    /// # Safety
    ///
    /// `sources` is null or points to `moved` indexes.
    #[must_use]
    pub unsafe fn moves(&self) -> Option<Vec<Move>> {
        if self.sources.is_null() {
            return Some(Vec::new());
        }
        // SAFETY: per this function's contract there are as many.
        let sources = unsafe { std::slice::from_raw_parts(self.sources, self.moved as usize) };
        moves::in_order(sources, self.first as usize, self.cells as usize * self.snapshots as usize)
    }

    /// Returns the cell of a sequence in a plane.
    #[must_use]
    pub fn cell(&self, seq: usize, plane: usize) -> usize {
        plane * self.cells as usize + self.first as usize + seq
    }

    /// Returns the plane besides the first one that gets the state after this token, if one does.
    #[must_use]
    pub fn snapshot(&self, token: usize) -> Option<usize> {
        let back = self.tokens as usize - 1 - token;
        (1..self.snapshots as usize).contains(&back).then_some(back)
    }
}
