//! Order of the copies that give cells the states of others, in place.
//!
//! Upstream gathers all states into a buffer, computes on it, and copies the results back. Here a cell is overwritten
//! while others may still be read, so every cell has to be read by all before it gets its new state. Where cells
//! exchange their states in a cycle, one of them is copied to a spare place first.

use std::collections::BTreeMap;

/// A place that a state is copied from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLocation {
    /// The cell with this index, over all planes.
    Cell(usize),
    /// Memory beside the cache.
    Spare,
}

/// One copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The place that is read.
    pub from: StateLocation,
    /// Another place, which is overwritten.
    pub to: StateLocation,
}

/// A cell that gets the state of another one: its index, and that of its source.
pub type Copied = (usize, usize);

/// Returns the copies, to be made in this order, that give each cell the state that its source has before them. No cell
/// is the first of two pairs.
#[must_use]
pub fn in_order(copied: &[Copied]) -> Vec<Move> {
    let copied: Vec<Copied> = copied.iter().copied().filter(|(cell, source)| cell != source).collect();
    let mut pending = Pending::new(&copied);
    pending.move_chains();
    pending.move_cycles();
    pending.moves
}

/// Carries copies out on a part of each state: the `length` floats that `part` returns for a cell.
///
/// # Safety
///
/// For the cells of all places `part` returns as many valid floats, different ones for different cells. No other thread
/// uses them.
pub unsafe fn carry_out(moves: &[Move], length: usize, part: impl Fn(usize) -> *mut f32) {
    let has_cycle = moves.iter().any(|one| one.to == StateLocation::Spare);
    let mut spare = vec![0.0; if has_cycle { length } else { 0 }];
    let spare = spare.as_mut_ptr();
    let floats = |place: StateLocation| match place {
        StateLocation::Cell(cell) => part(cell),
        StateLocation::Spare => spare,
    };
    for Move { from, to } in moves {
        // SAFETY: per this function's contract both are `length` floats, of different places.
        unsafe { floats(*to).copy_from_nonoverlapping(floats(*from), length) };
    }
}

/// Cells that have not got their new states. Indexes are those of `copied`.
struct Pending<'a> {
    copied: &'a [Copied],
    index_of: BTreeMap<usize, usize>,
    is_pending: Vec<bool>,
    /// Number of pending cells that read this one.
    readers: Vec<usize>,
    moves: Vec<Move>,
}

impl Pending<'_> {
    fn new(copied: &[Copied]) -> Pending<'_> {
        let index_of = copied.iter().enumerate().map(|(i, (cell, _))| (*cell, i)).collect();
        let (is_pending, readers) = (vec![true; copied.len()], vec![0; copied.len()]);
        let mut pending = Pending { copied, index_of, is_pending, readers, moves: Vec::new() };
        for i in 0..copied.len() {
            if let Some(read) = pending.read_by(i) {
                pending.readers[read] += 1;
            }
        }
        pending
    }

    fn source(&self, i: usize) -> usize {
        self.copied[i].1
    }

    /// Returns which of these cells a pending cell reads, if it does not read one that keeps its state.
    fn read_by(&self, i: usize) -> Option<usize> {
        let read = self.index_of.get(&self.source(i)).copied();
        read.filter(|_| self.is_pending[i])
    }

    /// Moves all cells that are not in a cycle: whenever no pending cell reads one, it is overwritten.
    fn move_chains(&mut self) {
        let is_free = |i: &usize| self.is_pending[*i] && self.readers[*i] == 0;
        let mut free: Vec<usize> = (0..self.copied.len()).filter(is_free).collect();
        while let Some(i) = free.pop() {
            let read = self.read_by(i);
            self.make(i, StateLocation::Cell(self.source(i)));
            if let Some(read) = read {
                self.readers[read] -= 1;
                if self.readers[read] == 0 && self.is_pending[read] {
                    free.push(read);
                }
            }
        }
    }

    /// Moves the rest: each of these cells is read by exactly one other.
    fn move_cycles(&mut self) {
        for start in 0..self.copied.len() {
            if !self.is_pending[start] {
                continue;
            }
            self.moves
                .push(Move { from: StateLocation::Cell(self.copied[start].0), to: StateLocation::Spare });
            let mut i = start;
            while let Some(read) = self.read_by(i) {
                let from =
                    if read == start { StateLocation::Spare } else { StateLocation::Cell(self.source(i)) };
                self.make(i, from);
                i = read;
            }
        }
    }

    fn make(&mut self, i: usize, from: StateLocation) {
        self.moves.push(Move { from, to: StateLocation::Cell(self.copied[i].0) });
        self.is_pending[i] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::Random;

    /// Carries the copies out on cells whose states are two floats: their index, twice.
    fn moved(copied: &[Copied], cells: usize) -> Vec<usize> {
        let mut states: Vec<f32> = (0..2 * cells).map(|i| (i / 2) as f32).collect();
        let states_of = states.as_mut_ptr();
        let moves = in_order(copied);
        assert!(moves.iter().all(|one| one.from != one.to));
        // SAFETY: each cell has two floats.
        unsafe { carry_out(&moves, 2, |cell| states_of.wrapping_add(2 * cell)) };
        assert!(states.chunks_exact(2).all(|state| state[0] == state[1]));
        states.chunks_exact(2).map(|state| state[0] as usize).collect()
    }

    fn gathered(copied: &[Copied], cells: usize) -> Vec<usize> {
        let source =
            |cell: usize| copied.iter().find(|(to, _)| *to == cell).map_or(cell, |(_, source)| *source);
        (0..cells).map(source).collect()
    }

    #[test]
    fn each_cell_gets_the_state_that_its_source_had() {
        let mut random = Random(1);
        for _ in 0..20_000 {
            let (first, count, stride) = (random.below(4), random.below(9), 1 + random.below(2));
            let cells = first + stride * count + random.below(4) + 1;
            // Many sources among the cells make chains and cycles.
            let source = |random: &mut Random| match random.below(4) {
                0 => random.below(cells),
                _ => first + stride * random.below(count),
            };
            let copied: Vec<Copied> = (0..count).map(|i| (first + stride * i, source(&mut random))).collect();
            assert_eq!(moved(&copied, cells), gathered(&copied, cells), "{copied:?}");
        }
    }

    #[test]
    fn cells_that_keep_their_states_are_not_copied() {
        assert_eq!(in_order(&[]), []);
        assert_eq!(in_order(&[(3, 3), (4, 4), (5, 5)]), []);
        let copy = Move { from: StateLocation::Cell(1), to: StateLocation::Cell(4) };
        assert_eq!(in_order(&[(3, 3), (4, 1), (5, 5)]), [copy]);
    }

    #[test]
    fn an_exchange_needs_one_copy_more() {
        assert_eq!(in_order(&[(3, 4), (4, 3)]).len(), 3);
        assert_eq!(moved(&[(0, 1), (1, 2), (2, 0), (3, 4), (4, 3)], 5), [1, 2, 0, 4, 3]);
    }
}
