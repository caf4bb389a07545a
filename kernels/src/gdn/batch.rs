//! The sequences of a batch, and their cells in the cache of a layer.

use super::moves::{self, Copied, Move};

/// The sequences of a batch. The cache of a layer has planes of `cells` cells, each with a state of a sequence. The
/// first plane has the states after the last tokens, the others rollback states: a sequence continues from one of them
/// if its last tokens were drafts that are rejected.
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
    /// Number of planes. Plane `n` gets the state of each sequence `n` tokens before its last one: a rollback state if
    /// `n` is not 0.
    pub planes: u32,
}

impl Batch {
    /// Returns whether the cells of the sequences exist.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        let last = u64::from(self.first) + u64::from(self.moved);
        self.tokens > 0
            && self.seqs > 0
            && self.planes > 0
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
        let count = self.cells as usize * self.planes as usize;
        let is_cell = |source: &i32| usize::try_from(*source).is_ok_and(|source| source < count);
        if !sources.iter().all(is_cell) {
            return None;
        }
        let copied: Vec<Copied> =
            sources.iter().enumerate().flat_map(|(i, source)| self.copied(i, *source as usize)).collect();
        Some(moves::in_order(&copied))
    }

    /// Returns the cells that get states because cell `first + i` gets that of `source`. The rollback states of an idle
    /// sequence move with it: an earlier part of the same batch may have computed them, and the rollback that needs
    /// them comes after it.
    fn copied(&self, i: usize, source: usize) -> Vec<Copied> {
        let (cells, planes) = (self.cells as usize, self.planes as usize);
        let (plane, cell) = (source / cells, source % cells);
        let moved = if i < self.seqs as usize { 1 } else { planes };
        // A rollback to `source` is applied by the move; the last plane has the oldest state there is.
        let of = |back: usize| (plane + back).min(planes - 1) * cells + cell;
        (0..moved).map(|back| (self.cell(i, back), of(back))).collect()
    }

    /// Returns the cell of a sequence in a plane.
    #[must_use]
    pub fn cell(&self, seq: usize, plane: usize) -> usize {
        plane * self.cells as usize + self.first as usize + seq
    }

    /// Returns the plane of rollback states that gets the state after this token, if one does.
    #[must_use]
    pub fn rollback_plane(&self, token: usize) -> Option<usize> {
        let back = self.tokens as usize - 1 - token;
        (1..self.planes as usize).contains(&back).then_some(back)
    }
}

#[cfg(test)]
mod tests {
    use super::super::moves::StateLocation;
    use super::*;

    fn batch(sources: &[i32], seqs: u32) -> Batch {
        let moved = sources.len() as u32;
        Batch { sources: sources.as_ptr(), tokens: 2, seqs, first: 1, moved, cells: 4, planes: 3 }
    }

    fn pairs(sources: &[i32], seqs: u32) -> Option<Vec<(StateLocation, StateLocation)>> {
        // SAFETY: the batch has as many sources.
        let moves = unsafe { batch(sources, seqs).moves() };
        moves.map(|moves| moves.iter().map(|one| (one.from, one.to)).collect())
    }

    #[test]
    fn a_source_that_is_not_a_cell_is_refused() {
        assert_eq!(pairs(&[1, -1], 2), None);
        assert_eq!(pairs(&[1, 12], 2), None);
        assert_eq!(pairs(&[1, 2], 2), Some(vec![]));
    }

    #[test]
    fn rollback_states_move_with_an_idle_sequence_only() {
        let cell = StateLocation::Cell;
        assert_eq!(pairs(&[3], 1), Some(vec![(cell(3), cell(1))]));
        let mut moved = pairs(&[1, 3], 1).unwrap();
        moved.sort_by_key(|(from, _)| format!("{from:?}"));
        assert_eq!(moved, [(cell(11), cell(10)), (cell(3), cell(2)), (cell(7), cell(6))]);
    }

    #[test]
    fn a_pending_rollback_is_applied_by_the_move() {
        let cell = StateLocation::Cell;
        // Cell 2 begins with its state of the token before its last one, which is in plane 1.
        let mut moved = pairs(&[1, 6], 1).unwrap();
        moved.sort_by_key(|(from, _)| format!("{from:?}"));
        assert_eq!(moved, [(cell(10), cell(6)), (cell(6), cell(2))]);
    }
}
