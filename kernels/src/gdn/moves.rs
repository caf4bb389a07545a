//! Order of the copies that give cells the states of others, in place.
//!
//! Upstream gathers all states into a buffer, computes on it, and copies the results back. Here a cell is overwritten
//! while others may still be read, so every cell has to be read by all before it gets its new state. Where cells
//! exchange their states in a cycle, one of them is copied to a spare place first.

/// A place that a state is copied from or to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cell with this index, over all planes.
    Cell(usize),
    /// Memory beside the cache.
    Spare,
}

/// One copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The place that is read.
    pub from: Place,
    /// Another place, which is overwritten.
    pub to: Place,
}

/// Returns the copies, to be made in this order, that give each cell `first + i` the state that the cell `sources[i]`
/// has before them. None if a source is not one of `cells` cells.
#[must_use]
pub fn in_order(sources: &[i32], first: usize, cells: usize) -> Option<Vec<Move>> {
    let is_cell = |source: &i32| usize::try_from(*source).is_ok_and(|source| source < cells);
    if !sources.iter().all(is_cell) {
        return None;
    }
    let keeps = |(i, source): (usize, &i32)| *source as usize == first + i;
    if sources.iter().enumerate().all(keeps) {
        return Some(Vec::new());
    }
    let mut pending = Pending::new(sources, first);
    pending.move_chains();
    pending.move_cycles();
    Some(pending.moves)
}

/// Carries copies out on a part of each state: the `length` floats that `part` returns for a cell.
///
/// # Safety
///
/// For the cells of all places `part` returns as many valid floats, different ones for different cells. No other thread
/// uses them.
pub unsafe fn carry_out(moves: &[Move], length: usize, part: impl Fn(usize) -> *mut f32) {
    let has_cycle = moves.iter().any(|one| one.to == Place::Spare);
    let mut spare = vec![0.0; if has_cycle { length } else { 0 }];
    let spare = spare.as_mut_ptr();
    let floats = |place: Place| match place {
        Place::Cell(cell) => part(cell),
        Place::Spare => spare,
    };
    for Move { from, to } in moves {
        // SAFETY: per this function's contract both are `length` floats, of different places.
        unsafe { floats(*to).copy_from_nonoverlapping(floats(*from), length) };
    }
}

/// Cells that have not got their new states. Indexes are relative to the first cell.
struct Pending<'a> {
    sources: &'a [i32],
    first: usize,
    is_pending: Vec<bool>,
    /// Number of pending cells that read this one.
    readers: Vec<usize>,
    moves: Vec<Move>,
}

impl Pending<'_> {
    fn new(sources: &[i32], first: usize) -> Pending<'_> {
        let is_pending =
            sources.iter().enumerate().map(|(i, source)| *source as usize != first + i).collect();
        let readers = vec![0; sources.len()];
        let mut pending = Pending { sources, first, is_pending, readers, moves: Vec::new() };
        for i in 0..sources.len() {
            if let Some(read) = pending.read_by(i) {
                pending.readers[read] += 1;
            }
        }
        pending
    }

    fn source(&self, i: usize) -> usize {
        self.sources[i] as usize
    }

    /// Returns which of these cells a pending cell reads, if it does not read one outside of them.
    fn read_by(&self, i: usize) -> Option<usize> {
        let read = self.source(i).checked_sub(self.first)?;
        (self.is_pending[i] && read < self.sources.len()).then_some(read)
    }

    /// Moves all cells that are not in a cycle: whenever no pending cell reads one, it is overwritten.
    fn move_chains(&mut self) {
        let is_free = |i: &usize| self.is_pending[*i] && self.readers[*i] == 0;
        let mut free: Vec<usize> = (0..self.sources.len()).filter(is_free).collect();
        while let Some(i) = free.pop() {
            let read = self.read_by(i);
            self.make(i, Place::Cell(self.source(i)));
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
        for start in 0..self.sources.len() {
            if !self.is_pending[start] {
                continue;
            }
            self.moves.push(Move { from: Place::Cell(self.first + start), to: Place::Spare });
            let mut i = start;
            while let Some(read) = self.read_by(i) {
                let from = if read == start { Place::Spare } else { Place::Cell(self.source(i)) };
                self.make(i, from);
                i = read;
            }
        }
    }

    fn make(&mut self, i: usize, from: Place) {
        self.moves.push(Move { from, to: Place::Cell(self.first + i) });
        self.is_pending[i] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::Random;

    /// Carries the copies out on cells whose states are two floats: their index, twice.
    fn moved(sources: &[i32], first: usize, cells: usize) -> Vec<usize> {
        let mut states: Vec<f32> = (0..2 * cells).map(|i| (i / 2) as f32).collect();
        let states_of = states.as_mut_ptr();
        let moves = in_order(sources, first, cells).unwrap();
        assert!(moves.iter().all(|one| one.from != one.to));
        // SAFETY: each cell has two floats.
        unsafe { carry_out(&moves, 2, |cell| states_of.wrapping_add(2 * cell)) };
        assert!(states.chunks_exact(2).all(|state| state[0] == state[1]));
        states.chunks_exact(2).map(|state| state[0] as usize).collect()
    }

    fn gathered(sources: &[i32], first: usize, cells: usize) -> Vec<usize> {
        let source = |cell: usize| cell.checked_sub(first).and_then(|i| sources.get(i));
        (0..cells).map(|cell| source(cell).map_or(cell, |source| *source as usize)).collect()
    }

    #[test]
    fn each_cell_gets_the_state_that_its_source_had() {
        let mut random = Random(1);
        for _ in 0..20_000 {
            let (first, count) = (random.below(4), random.below(9));
            let cells = first + count + random.below(4) + 1;
            // Many sources in the range make chains and cycles.
            let sources: Vec<i32> = (0..count)
                .map(|_| if random.below(4) > 0 { first + random.below(count) } else { random.below(cells) })
                .map(|source| source as i32)
                .collect();
            assert_eq!(
                moved(&sources, first, cells),
                gathered(&sources, first, cells),
                "{first} {sources:?}"
            );
        }
    }

    #[test]
    fn cells_that_keep_their_states_are_not_copied() {
        assert_eq!(in_order(&[], 3, 4), Some(Vec::new()));
        assert_eq!(in_order(&[3, 4, 5], 3, 6), Some(Vec::new()));
        let copy = Move { from: Place::Cell(1), to: Place::Cell(4) };
        assert_eq!(in_order(&[3, 1, 5], 3, 6), Some(vec![copy]));
    }

    #[test]
    fn an_exchange_needs_one_copy_more() {
        assert_eq!(in_order(&[4, 3], 3, 6).map(|moves| moves.len()), Some(3));
        assert_eq!(moved(&[1, 2, 0, 4, 3], 0, 5), [1, 2, 0, 4, 3]);
    }

    #[test]
    fn a_source_that_is_not_a_cell_is_refused() {
        assert_eq!(in_order(&[0, -1], 0, 2), None);
        assert_eq!(in_order(&[0, 2], 0, 2), None);
    }
}
