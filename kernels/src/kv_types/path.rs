//! The best circle of bits, where each bit takes part in several values: Viterbi's algorithm on a bit-shift trellis.
//!
//! A state is a window. The next value's window has `bits` new bits at its upper end, and has lost as many at its lower one:
//! so the states that lead to a state differ in their lowest bits alone, and all states that share the bits in between, a
//! group, have the same forerunners. A step is the least cost of each group's forerunners, then one addition for each state.
//!
//! Costs are those of the squared distance, halved, without the value's own square: `level^2 / 2 - value * level`.

use super::MOST_VALUES;

/// What a trellis is read with.
#[derive(Clone, Debug)]
pub struct Table {
    bits: usize,
    window: usize,
    /// Of each state, in [`Table::place`]'s order, its level.
    levels: [f32; MOST_STATES],
    /// Half the square of it.
    halves: [f32; MOST_STATES],
}

/// The most states of a table.
pub const MOST_STATES: usize = 512;
/// Groups of states with the same forerunners: tables whose windows have six bits more than a value's own.
const GROUPS: usize = 64;
/// The most groups that have the same lowest bits.
const MOST_RUNS: usize = GROUPS / 4;
/// So many values on either side decide where a circle is closed.
const AROUND: usize = 16;

impl Table {
    /// `levels[window]` is what a window stands for.
    ///
    /// # Panics
    ///
    /// There is not a level for each window, or windows have not six bits more than values.
    #[must_use]
    pub const fn new(bits: usize, levels: &[i8]) -> Table {
        let window = bits + GROUPS.ilog2() as usize;
        assert!(levels.len() == 1 << window && levels.len() <= MOST_STATES);
        let mut table = Table { bits, window, levels: [0.0; MOST_STATES], halves: [0.0; MOST_STATES] };
        let mut state = 0;
        while state < levels.len() {
            table.set(state, levels[state] as f32);
            state += 1;
        }
        table
    }

    /// Sets the level of a state.
    pub const fn set(&mut self, state: usize, level: f32) {
        let place = self.place(state);
        self.levels[place] = level;
        self.halves[place] = 0.5 * level * level;
    }

    /// States that lead to the same states lie apart by [`GROUPS`], so that their least is one of vectors.
    const fn place(&self, state: usize) -> usize {
        let lowest = state & ((1 << self.bits) - 1);
        lowest * GROUPS + (state >> self.bits)
    }

    /// The level of a window.
    #[must_use]
    pub const fn level(&self, window: usize) -> f32 {
        self.levels[self.place(window)]
    }

    /// How many states there are.
    #[must_use]
    pub const fn states(&self) -> usize {
        1 << self.window
    }
}

/// By step and group: the lowest bits of the best forerunner.
type Forerunners = [[u8; GROUPS]; MOST_VALUES];

/// Writes the windows of the best circle, or nearly the best: where it is closed is decided by the values nearby.
#[inline(always)]
pub fn circle<const BITS: usize>(table: &Table, values: &[f32], windows: &mut [u16]) {
    let mut forerunners = [[0; GROUPS]; MOST_VALUES];
    let seam = seam::<BITS>(table, values, &mut forerunners);
    walk::<BITS>(table, values, Some(seam), &mut forerunners);
    // The last state leads to the first one: it is the best forerunner of the seam's group.
    let mut group = seam;
    for at in (0..values.len()).rev() {
        let state = group << BITS | usize::from(forerunners[at][group]);
        windows[at] = state as u16;
        group = state & (GROUPS - 1);
    }
}

/// The group of the first state, which the last one leads to.
#[inline(always)]
fn seam<const BITS: usize>(table: &Table, values: &[f32], forerunners: &mut Forerunners) -> usize {
    let mut around = [0.0; 2 * AROUND];
    around[..AROUND].copy_from_slice(&values[values.len() - AROUND..]);
    around[AROUND..].copy_from_slice(&values[..AROUND]);
    let least = walk::<BITS>(table, &around, None, forerunners);
    let mut group = (0..GROUPS).fold(0, |best, group| if least[group] < least[best] { group } else { best });
    for step in forerunners[AROUND..2 * AROUND].iter().rev() {
        group = (group << BITS | usize::from(step[group])) & (GROUPS - 1);
    }
    group
}

/// Walks along the values. `forerunners[t][g]` are then the lowest bits of the best state at `t` of those that lead to group
/// `g`, and the result the costs of the groups after the last value. The first state is of the group `from`, if there is one.
#[inline(always)]
fn walk<const BITS: usize>(
    table: &Table,
    values: &[f32],
    from: Option<usize>,
    forerunners: &mut Forerunners,
) -> [f32; GROUPS] {
    let mut least = match from {
        None => [0.0; GROUPS],
        Some(from) => {
            let mut least = [f32::INFINITY; GROUPS];
            least[from] = 0.0;
            least
        }
    };
    let mut costs = [0.0; MOST_STATES];
    for (value, forerunners) in values.iter().zip(forerunners) {
        add_distances::<BITS>(table, *value, &least, &mut costs);
        least_of_forerunners::<BITS>(&costs, &mut least, forerunners);
    }
    least
}

/// `costs[state] = least[group of the state] + distance`, in the order of [`Table::place`].
#[inline(always)]
fn add_distances<const BITS: usize>(
    table: &Table,
    value: f32,
    least: &[f32; GROUPS],
    costs: &mut [f32; MOST_STATES],
) {
    let runs = GROUPS >> BITS;
    for lowest in 0..1 << BITS {
        // The groups of states with these lowest bits.
        let mut of_run = [0.0; MOST_RUNS];
        let of_run = &mut of_run[..runs];
        for (run, of_run) in of_run.iter_mut().enumerate() {
            *of_run = least[run << BITS | lowest];
        }
        for highest in 0..1 << BITS {
            let first = lowest * GROUPS + highest * runs;
            let levels = table.halves[first..].iter().zip(&table.levels[first..]);
            for (cost, (of_run, (half, level))) in costs[first..].iter_mut().zip(of_run.iter().zip(levels)) {
                *cost = of_run + (half - value * level);
            }
        }
    }
}

/// The least cost of the states that lead to each group, and the lowest bits of that state.
#[inline(always)]
fn least_of_forerunners<const BITS: usize>(
    costs: &[f32; MOST_STATES],
    least: &mut [f32; GROUPS],
    forerunners: &mut [u8; GROUPS],
) {
    let (costs, _) = costs.as_chunks::<GROUPS>();
    let mut lowest_bits = [0u32; GROUPS];
    *least = costs[0];
    for (lowest, costs) in (1..).zip(&costs[1..1 << BITS]) {
        for group in 0..GROUPS {
            let is_less = costs[group] < least[group];
            least[group] = if is_less { costs[group] } else { least[group] };
            lowest_bits[group] = if is_less { lowest } else { lowest_bits[group] };
        }
    }
    for group in 0..GROUPS {
        forerunners[group] = lowest_bits[group] as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attention::testing::Random;

    fn table(bits: usize, random: &mut Random) -> Table {
        let levels: Vec<i8> = (0..GROUPS << bits).map(|_| (random.normal() * 36.0) as i8).collect();
        Table::new(bits, &levels)
    }

    fn distance(table: &Table, values: &[f32], windows: &[u16]) -> f32 {
        values
            .iter()
            .zip(windows)
            .map(|(value, window)| (value - table.level(usize::from(*window))).powi(2))
            .sum()
    }

    fn is_circle(bits: usize, windows: &[u16]) -> bool {
        let next = windows.iter().cycle().skip(1);
        windows.iter().zip(next).all(|(window, next)| window >> bits == next & (GROUPS as u16 - 1))
    }

    fn found(bits: usize, table: &Table, values: &[f32]) -> Vec<u16> {
        let mut windows = vec![0; values.len()];
        match bits {
            2 => circle::<2>(table, values, &mut windows),
            _ => circle::<3>(table, values, &mut windows),
        }
        windows
    }

    /// The best circle of all, by trying every seam.
    fn best(bits: usize, table: &Table, values: &[f32]) -> f32 {
        let mut forerunners = [[0; GROUPS]; MOST_VALUES];
        let own: f32 = values.iter().map(|value| value * value).sum();
        let of_seam = |seam: usize| match bits {
            2 => walk::<2>(table, values, Some(seam), &mut forerunners)[seam],
            _ => walk::<3>(table, values, Some(seam), &mut forerunners)[seam],
        };
        2.0 * (0..GROUPS).map(of_seam).fold(f32::INFINITY, f32::min) + own
    }

    #[test]
    fn windows_make_a_circle_that_is_nearly_the_best() {
        let mut random = Random(1);
        let (mut all, mut all_best) = (0.0, 0.0);
        for round in 0..40 {
            let bits = 2 + round % 2;
            let table = table(bits, &mut random);
            let values: Vec<f32> = (0..[64, 128][round / 2 % 2]).map(|_| random.normal() * 36.0).collect();
            let windows = found(bits, &table, &values);
            assert!(is_circle(bits, &windows), "{windows:?}");
            let (distance, best) = (distance(&table, &values, &windows), best(bits, &table, &values));
            assert!(distance >= best * 0.9999 && distance <= best * 1.3, "{distance} {best}");
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
            let mask = (1 << table.window) - 1;
            let window = |at: usize| {
                (0..5).map(|next| u32::from(own[(at + next) % 64]) << (next * bits)).sum::<u32>() & mask
            };
            let values: Vec<f32> = (0..64).map(|at| table.level(window(at) as usize)).collect();
            let windows = found(bits, &table, &values);
            assert_eq!(distance(&table, &values, &windows), 0.0);
        }
    }
}
