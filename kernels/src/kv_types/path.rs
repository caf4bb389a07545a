//! The best circle of bits, where each bit takes part in several values: Viterbi's algorithm on a bit-shift trellis.
//!
//! A state is a window. Walked from the last value to the first, a value's window has its own bits at the lower end, and has
//! lost as many at the upper one of the window after it. So the states that lead to a state differ in their highest bits
//! alone, and all states that share the bits in between, a group, have the same forerunners. A step is the least cost of each
//! group's forerunners, vector by vector, and one addition for each state.
//!
//! Costs are those of the squared distance, halved, without the value's own square: `level^2 / 2 - value * level`. Their last
//! bits are the highest bits of their state, so that the least of them says whose it is.

use super::MOST_VALUES;
use crate::attention::simd::Simd;

/// What windows stand for.
#[derive(Clone, Debug)]
pub struct Table {
    states: usize,
    levels: [f32; MOST_STATES],
    /// Half the square of each.
    halves: [f32; MOST_STATES],
}

/// The most states of a table.
pub const MOST_STATES: usize = 512;
/// Groups of states with the same forerunners: windows have six bits more than a value's own.
const GROUPS: usize = 64;
/// So many values on either side decide where a circle is closed.
const AROUND: usize = 16;
/// More than any cost, and finite with any last bits.
const FAR: f32 = 1e30;

impl Table {
    /// `levels[window]` is what a window stands for.
    ///
    /// # Panics
    ///
    /// Windows have not six bits more than `bits`.
    #[must_use]
    pub const fn new(bits: usize, levels: &[i8]) -> Table {
        assert!(levels.len() == GROUPS << bits && levels.len() <= MOST_STATES);
        let mut table =
            Table { states: levels.len(), levels: [0.0; MOST_STATES], halves: [0.0; MOST_STATES] };
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

    /// The level of each window.
    #[must_use]
    pub fn levels(&self) -> &[f32] {
        &self.levels[..self.states]
    }
}

/// By group: the least cost of its forerunners, and in its last bits the highest bits of that forerunner.
type Least = [f32; GROUPS];

/// Writes the windows of the best circle, or nearly the best: where it is closed is decided by the values nearby.
///
/// # Safety
///
/// The processor has the instruction set `S`.
#[inline(always)]
pub unsafe fn circle<S: Simd, const BITS: usize>(table: &Table, values: &[f32], windows: &mut [u16]) {
    let mut steps = [[0.0; GROUPS]; MOST_VALUES];
    // SAFETY: the caller's promise.
    unsafe {
        let seam = seam::<S, BITS>(table, values, &mut steps);
        let mut first = [FAR; GROUPS];
        first[seam] = 0.0;
        walk::<S, BITS>(table, values.iter().rev(), first, &mut steps);
        // The first value's state is a forerunner of the last one's: the best of the seam's group.
        let mut group = seam;
        for (window, step) in windows.iter_mut().zip(steps[..values.len()].iter().rev()) {
            let state = forerunner::<BITS>(step, group);
            *window = state as u16;
            group = state >> BITS;
        }
    }
}

/// The group of the last value's state: the lowest bits of the first one's.
///
/// # Safety
///
/// As [`circle`].
#[inline(always)]
unsafe fn seam<S: Simd, const BITS: usize>(
    table: &Table,
    values: &[f32],
    steps: &mut [Least; MOST_VALUES],
) -> usize {
    let around = values[values.len() - AROUND..].iter().chain(&values[..AROUND]);
    // SAFETY: the caller's promise.
    let least = unsafe { walk::<S, BITS>(table, around.rev(), [0.0; GROUPS], steps) };
    let mut group = (0..GROUPS).fold(0, |best, group| if least[group] < least[best] { group } else { best });
    for step in steps[AROUND..2 * AROUND].iter().rev() {
        group = forerunner::<BITS>(step, group) >> BITS;
    }
    group
}

/// The best state that leads to a group.
fn forerunner<const BITS: usize>(step: &Least, group: usize) -> usize {
    let highest = step[group].to_bits() as usize & ((1 << BITS) - 1);
    highest * GROUPS + group
}

/// Walks along the values, from `least` costs of the groups before the first, and notes those after each.
///
/// # Safety
///
/// As [`circle`].
#[inline(always)]
unsafe fn walk<'a, S: Simd, const BITS: usize>(
    table: &Table,
    values: impl Iterator<Item = &'a f32>,
    mut least: Least,
    steps: &mut [Least; MOST_VALUES],
) -> Least {
    for (value, step) in values.zip(steps) {
        // SAFETY: the caller's promise.
        unsafe { take::<S, BITS>(table, *value, &least, step) };
        least = *step;
    }
    least
}

/// One step: for each group the least of `before[group of the state] + distance` of the states that lead to it.
///
/// # Safety
///
/// As [`circle`].
#[inline(always)]
unsafe fn take<S: Simd, const BITS: usize>(table: &Table, value: f32, before: &Least, least: &mut Least) {
    // SAFETY: the caller's promise; a table has `GROUPS << BITS` states, and vectors are a part of a group.
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
    use crate::attention::isa::Isa;
    use crate::attention::simd::Work;
    use crate::attention::testing::Random;

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

    fn is_circle(bits: usize, windows: &[u16]) -> bool {
        let next = windows.iter().cycle().skip(1);
        windows.iter().zip(next).all(|(window, next)| window >> bits == next & (GROUPS as u16 - 1))
    }

    /// A circle, and the best one of all, by trying every seam: its windows, and twice its cost.
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
            let mut steps = [[0.0; GROUPS]; MOST_VALUES];
            let of_seam = |seam: usize| {
                let mut first = [FAR; GROUPS];
                first[seam] = 0.0;
                // SAFETY: the caller's promise.
                let least = unsafe {
                    match bits {
                        2 => walk::<S, 2>(table, values.iter().rev(), first, &mut steps),
                        _ => walk::<S, 3>(table, values.iter().rev(), first, &mut steps),
                    }
                };
                least[seam]
            };
            let best = 2.0 * (0..GROUPS).map(of_seam).fold(f32::INFINITY, f32::min);
            // SAFETY: the caller's promise.
            unsafe {
                match bits {
                    2 => circle::<S, 2>(table, values, &mut windows),
                    _ => circle::<S, 3>(table, values, &mut windows),
                }
            }
            (windows, best)
        }
    }

    #[test]
    fn windows_make_a_circle_that_is_nearly_the_best() {
        let mut random = Random(1);
        let (mut all, mut all_best) = (0.0, 0.0);
        for round in 0..40 {
            let bits = 2 + round % 2;
            let table = table(bits, &mut random);
            let values: Vec<f32> = (0..[64, 128][round / 2 % 2]).map(|_| random.normal() * 36.0).collect();
            let (windows, best) = Isa::chosen().run(Both { bits, table: &table, values: &values });
            assert!(is_circle(bits, &windows), "{windows:?}");
            let own: f32 = values.iter().map(|value| value * value).sum();
            let (distance, best) = (distance(&table, &values, &windows), best + own);
            assert!(distance >= best * 0.999 && distance <= best * 1.3, "{distance} {best}");
            all += distance;
            all_best += best;
        }
        assert!(all <= all_best * 1.02, "{all} {all_best}");
    }

    #[test]
    fn what_a_circle_stands_for_is_found_again() {
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
