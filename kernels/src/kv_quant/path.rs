//! Search for the best tail-biting codeword, in which each bit takes part in several values: Viterbi's algorithm on a
//! bit-shift trellis.
//!
//! Walked from the last value to the first, a value's state has its own bits at the lower end, and has dropped as many
//! at the upper end of the state after it. So the predecessors of a state differ in their highest bits alone, and all
//! states that share the bits in between, a group, have the same predecessors. A step takes the minimum cost over each
//! group's predecessors, vector by vector, and one addition for each state.
//!
//! Costs are half the squared distance without the constant square of the value: `level^2 / 2 - value * level`. Their
//! last bits hold the highest bits of their state, so that the minimum also identifies its state.

use super::MAX_VALUES;
use crate::simd::Simd;

/// The sigma level of each state.
#[derive(Clone, Debug)]
pub struct Table {
    states: usize,
    levels: [f32; MAX_STATES],
    /// Half the square of each level.
    halves: [f32; MAX_STATES],
}

/// Largest number of states of a table.
pub const MAX_STATES: usize = 512;
/// Groups of states with the same predecessors: states have six bits more than a value.
const GROUPS: usize = 64;
/// Number of values on either side that decide the closing state.
const AROUND: usize = 16;
/// Larger than any cost, and finite with any last bits.
const FAR: f32 = 1e30;

impl Table {
    /// Creates a table in which `levels[window]` is the level of the state `window`.
    ///
    /// # Panics
    ///
    /// If `levels` does not have six bits more than `bits`.
    #[must_use]
    pub const fn new(bits: usize, levels: &[i8]) -> Table {
        assert!(levels.len() == GROUPS << bits && levels.len() <= MAX_STATES);
        let mut table = Table { states: levels.len(), levels: [0.0; MAX_STATES], halves: [0.0; MAX_STATES] };
        let mut state = 0;
        while state < levels.len() {
            table.set(state, levels[state] as f32);
            state += 1;
        }
        table
    }

    /// Sets the level of a state.
    pub const fn set(&mut self, state: usize, level: f32) {
        self.levels[state] = level;
        self.halves[state] = 0.5 * level * level;
    }

    /// Returns the level of each state.
    #[must_use]
    pub fn levels(&self) -> &[f32] {
        &self.levels[..self.states]
    }
}

/// By group: the minimum cost of its predecessors, whose last bits hold the highest bits of that predecessor.
type Least = [f32; GROUPS];

/// Writes the states of the best codeword, or nearly the best: the closing state is chosen from nearby values only.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
pub unsafe fn codeword<S: Simd, const BITS: usize>(table: &Table, values: &[f32], windows: &mut [u16]) {
    let mut steps = [[0.0; GROUPS]; MAX_VALUES];
    // SAFETY: per this function's contract the processor has `S`.
    unsafe {
        let closing_state = closing_state::<S, BITS>(table, values, &mut steps);
        let mut first = [FAR; GROUPS];
        first[closing_state] = 0.0;
        walk::<S, BITS>(table, values.iter().rev(), first, &mut steps);
        // The first value's state is a predecessor of the last one's: take the best of the closing state's group.
        let mut group = closing_state;
        for (window, step) in windows.iter_mut().zip(steps[..values.len()].iter().rev()) {
            let state = forerunner::<BITS>(step, group);
            *window = state as u16;
            group = state >> BITS;
        }
    }
}

/// Returns the group of the last value's state: the lowest bits of the first one's.
///
/// # Safety
///
/// As [`codeword`].
#[inline(always)]
unsafe fn closing_state<S: Simd, const BITS: usize>(
    table: &Table,
    values: &[f32],
    steps: &mut [Least; MAX_VALUES],
) -> usize {
    let around = values[values.len() - AROUND..].iter().chain(&values[..AROUND]);
    // SAFETY: per this function's contract the processor has `S`.
    let least = unsafe { walk::<S, BITS>(table, around.rev(), [0.0; GROUPS], steps) };
    let mut group = (0..GROUPS).fold(0, |best, group| if least[group] < least[best] { group } else { best });
    for step in steps[AROUND..2 * AROUND].iter().rev() {
        group = forerunner::<BITS>(step, group) >> BITS;
    }
    group
}

/// Returns the best predecessor of a group.
fn forerunner<const BITS: usize>(step: &Least, group: usize) -> usize {
    let highest = step[group].to_bits() as usize & ((1 << BITS) - 1);
    highest * GROUPS + group
}

/// Runs Viterbi along the values from the costs `least` of the groups before the first, and records those after each.
///
/// # Safety
///
/// As [`codeword`].
#[inline(always)]
unsafe fn walk<'a, S: Simd, const BITS: usize>(
    table: &Table,
    values: impl Iterator<Item = &'a f32>,
    mut least: Least,
    steps: &mut [Least; MAX_VALUES],
) -> Least {
    for (value, step) in values.zip(steps) {
        // SAFETY: per this function's contract the processor has `S`.
        unsafe { take::<S, BITS>(table, *value, &least, step) };
        least = *step;
    }
    least
}

/// One step: for each group the minimum of `before[group of the state] + distance` over its predecessors.
///
/// # Safety
///
/// As [`codeword`].
#[inline(always)]
unsafe fn take<S: Simd, const BITS: usize>(table: &Table, value: f32, before: &Least, least: &mut Least) {
    // SAFETY: per this function's contract the processor has `S`; a table has `GROUPS << BITS` states, and vectors
    // divide a group.
    unsafe {
        let value = S::splat(value);
        for first in (0..GROUPS).step_by(S::LANES) {
            let mut best = S::splat(FAR);
            for highest in 0..1 << BITS {
                let state = highest * GROUPS + first;
                let (level, half) =
                    (S::load(table.levels.as_ptr().add(state)), S::load(table.halves.as_ptr().add(state)));
                let distance = S::sub(half, S::mul(value, level));
                let cost = S::add(S::repeat::<BITS>(before.as_ptr().add(state >> BITS)), distance);
                best = S::min(best, S::with_last_bits::<BITS>(cost, highest as u32));
            }
            S::store(least.as_mut_ptr().add(first), best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::Random;
    use crate::simd::Work;
    use crate::simd::isa::Isa;

    fn table(bits: usize, random: &mut Random) -> Table {
        let levels: Vec<i8> = (0..GROUPS << bits).map(|_| (random.normal() * 36.0) as i8).collect();
        Table::new(bits, &levels)
    }

    fn distance(table: &Table, values: &[f32], windows: &[u16]) -> f32 {
        values
            .iter()
            .zip(windows)
            .map(|(value, window)| (value - table.levels()[usize::from(*window)]).powi(2))
            .sum()
    }

    fn is_tail_biting(bits: usize, windows: &[u16]) -> bool {
        let next = windows.iter().cycle().skip(1);
        windows.iter().zip(next).all(|(window, next)| window >> bits == next & (GROUPS as u16 - 1))
    }

    /// A codeword found by the encoder, and the optimum by trying every closing state: its states, and twice its cost.
    struct Both<'a> {
        bits: usize,
        table: &'a Table,
        values: &'a [f32],
    }

    impl Work for Both<'_> {
        type Output = (Vec<u16>, f32);

        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> (Vec<u16>, f32) {
            let Both { bits, table, values } = self;
            let mut windows = vec![0; values.len()];
            let mut steps = [[0.0; GROUPS]; MAX_VALUES];
            let of_closing_state = |closing_state: usize| {
                let mut first = [FAR; GROUPS];
                first[closing_state] = 0.0;
                // SAFETY: `Work::run` is called with the instruction set `S`.
                let least = unsafe {
                    match bits {
                        2 => walk::<S, 2>(table, values.iter().rev(), first, &mut steps),
                        _ => walk::<S, 3>(table, values.iter().rev(), first, &mut steps),
                    }
                };
                least[closing_state]
            };
            let best = 2.0 * (0..GROUPS).map(of_closing_state).fold(f32::INFINITY, f32::min);
            // SAFETY: `Work::run` is called with the instruction set `S`.
            unsafe {
                match bits {
                    2 => codeword::<S, 2>(table, values, &mut windows),
                    _ => codeword::<S, 3>(table, values, &mut windows),
                }
            }
            (windows, best)
        }
    }

    #[test]
    fn windows_are_a_tail_biting_codeword_near_the_optimum() {
        let mut random = Random(1);
        let (mut all, mut all_best) = (0.0, 0.0);
        for round in 0..40 {
            let bits = 2 + round % 2;
            let table = table(bits, &mut random);
            let values: Vec<f32> = (0..[64, 128][round / 2 % 2]).map(|_| random.normal() * 36.0).collect();
            let (windows, best) = Isa::chosen().run(Both { bits, table: &table, values: &values });
            assert!(is_tail_biting(bits, &windows), "{windows:?}");
            let own: f32 = values.iter().map(|value| value * value).sum();
            let (distance, best) = (distance(&table, &values, &windows), best + own);
            assert!(distance >= best * 0.999 && distance <= best * 1.3, "{distance} {best}");
            all += distance;
            all_best += best;
        }
        assert!(all <= all_best * 1.02, "{all} {all_best}");
    }

    #[test]
    fn a_codeword_is_recovered_from_its_values() {
        let mut random = Random(2);
        for bits in [2, 3] {
            let table = table(bits, &mut random);
            let own: Vec<u16> = (0..64).map(|_| random.below(1 << bits) as u16).collect();
            let mask = (GROUPS << bits) as u32 - 1;
            let window = |at: usize| {
                (0..5).map(|next| u32::from(own[(at + next) % 64]) << (next * bits)).sum::<u32>() & mask
            };
            let values: Vec<f32> = (0..64).map(|at| table.levels()[window(at) as usize]).collect();
            for isa in Isa::here() {
                let (windows, _) = isa.run(Both { bits, table: &table, values: &values });
                assert_eq!(distance(&table, &values, &windows), 0.0, "{isa:?}");
            }
        }
    }
}
