//! PURE: the rate of answers that differ by a tie within tolerance, and its limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::verdict::Answer;

/// Counts of answers that equal, or do not equal, the same requests answered alone. The rate depends on the
/// processor's rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounding {
    /// Number of answers that are the same as alone.
    pub same: usize,
    /// Number of answers that differ.
    pub others: usize,
}

/// Allowed rate of ties within tolerance where stock's own rate is lower: ties are expected to be the exception.
const MAX_TIES: f64 = 1.0 / 9.0;

/// Allowed multiple of stock's rate where that is higher: stock's own answers are too few for a precise rate.
const AS_OFTEN_AS_STOCK: f64 = 1.5;

impl Rounding {
    /// Counts pairs of answers: alone, and otherwise.
    pub fn of(pairs: &[(&Answer, &Answer)]) -> Rounding {
        let same = pairs.iter().filter(|(alone, otherwise)| alone.tokens == otherwise.tokens).count();
        Rounding { same, others: pairs.len() - same }
    }

    /// Adds the counts of more answers.
    pub fn add(&mut self, more: Rounding) {
        self.same += more.same;
        self.others += more.others;
    }

    fn all(self) -> usize {
        self.same + self.others
    }

    fn rate(self) -> f64 {
        self.others as f64 / self.all().max(1) as f64
    }

    /// Returns a message if there are too many ties to be explained by rounding: our rate may not exceed by far what
    /// `stock` has when it answers several requests at once.
    pub fn is_too_much(self, stock: Rounding) -> Option<String> {
        let most = MAX_TIES.max(stock.rate() * AS_OFTEN_AS_STOCK);
        (self.rate() > most).then(|| {
            format!(
                "{:.1} % of the answers differ from stock's at a tie within tolerance; expected at most {:.1} %: stock leaves its own in {stock}",
                self.rate() * 100.0,
                most * 100.0,
            )
        })
    }
}

impl fmt::Display for Rounding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.others, self.all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ties: usize, others: usize) -> Option<String> {
        let of = |others: usize| Rounding { same: 100 - others, others };
        of(ties).is_too_much(of(others))
    }

    #[test]
    fn ties_are_as_rare_as_between_stock_runs() {
        assert_eq!(judged(11, 0), None);
        assert!(judged(12, 0).unwrap().contains("12.0 %"));
        assert_eq!(judged(18, 12), None);
        assert!(judged(19, 12).unwrap().contains("stock leaves its own in 12 of 100"));
    }
}
