//! Nearest level of each value, for codes whose states are as wide as a value's own bits.

/// Writes the index of the level that is nearest to each value; of two, the first.
#[inline(always)]
pub fn nearest(levels: &[f32], values: &[f32], windows: &mut [u16]) {
    for (value, window) in values.iter().zip(windows) {
        let mut best = (f32::INFINITY, 0);
        for (at, level) in (0..).zip(levels) {
            let distance = (value - level).abs();
            best = if distance < best.0 { (distance, at) } else { best };
        }
        *window = best.1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_gets_its_nearest_level() {
        let mut windows = [9; 5];
        nearest(&[-3.0, -1.0, 1.0, 3.0], &[-100.0, -0.9, 0.0, 2.1, f32::NAN], &mut windows);
        assert_eq!(windows, [0, 1, 1, 3, 0]);
    }
}
