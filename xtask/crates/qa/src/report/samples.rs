//! Statistics of a quantity that is measured in several rounds.

use serde::{Deserialize, Serialize};

/// The values of one quantity, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// Returns the middle value, or the mean of the two in the middle; `None` before the first round.
    pub fn median(&self) -> Option<f64> {
        median_of(self.0.clone())
    }

    /// Returns the lowest and the highest value.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let values = self.0.iter().copied();
        Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
    }

    /// Returns the round-by-round ratios to `other`.
    #[must_use]
    pub fn ratios_to(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(of, to)| of / to).collect())
    }

    /// Returns the median of the round-by-round ratios to `other`.
    pub fn ratio_to(&self, other: &Samples) -> Option<f64> {
        self.ratios_to(other).median()
    }
}

/// Returns the middle value, or the mean of the two in the middle.
pub fn median_of(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len().checked_sub(1)? / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle)? + values.get(middle + 1)?) / 2.0),
    }
}

/// Returns a percentile by the nearest-rank method.
pub fn percentile(mut values: Vec<f64>, percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_ninety_fifth() {
        assert_eq!(percentile((1..=100).map(f64::from).collect(), 95), Some(95.0));
        assert_eq!((percentile(vec![3.0], 95), percentile(Vec::new(), 95)), (Some(3.0), None));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let (mine, theirs) = (Samples(vec![10.0, 20.0, 10.0]), Samples(vec![30.0, 60.0, 90.0]));
        assert_eq!((mine.median(), theirs.extremes()), (Some(10.0), Some((30.0, 90.0))));
        assert_eq!(theirs.ratio_to(&mine), Some(3.0));
        assert_eq!((Samples::default().median(), Samples::default().extremes()), (None, None));
    }
}
