//! PURE: how often answers are left at a near tie, and how often they may be.

use std::fmt;

use super::verdict::Answer;

/// How many of some answers are the same as alone. Each processor rounds in its own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounding {
    /// Answers that are the same as alone.
    pub same: usize,
    /// Answers that are not.
    pub others: usize,
}

/// The part of all answers that may be near ties wherever stock has fewer: their name says that they are the exception.
const MOST_NEAR_TIES: f64 = 1.0 / 9.0;

/// And where stock has more, so many times as often: stock's own answers are too few to know its rate well.
const AS_OFTEN_AS_STOCK: f64 = 1.5;

impl Rounding {
    /// Of pairs of answers, alone and otherwise.
    pub fn of(pairs: &[(&Answer, &Answer)]) -> Rounding {
        let same = pairs.iter().filter(|(alone, otherwise)| alone.tokens == otherwise.tokens).count();
        Rounding { same, others: pairs.len() - same }
    }

    /// Counts more answers.
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

    /// Too many near ties are no rounding: ours may not have many more than `stock` has with neighbours.
    pub fn is_too_much(self, stock: Rounding) -> Option<String> {
        let most = MOST_NEAR_TIES.max(stock.rate() * AS_OFTEN_AS_STOCK);
        (self.rate() > most).then(|| {
            format!(
                "{:.1} % of the answers differ from stock's at a near tie; expected at most {:.1} %: stock leaves its own in {stock}",
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

    fn judged(near_ties: usize, others: usize) -> Option<String> {
        let of = |others: usize| Rounding { same: 100 - others, others };
        of(near_ties).is_too_much(of(others))
    }

    #[test]
    fn near_ties_are_as_rare_as_stocks_own() {
        assert_eq!(judged(11, 0), None);
        assert!(judged(12, 0).unwrap().contains("12.0 %"));
        assert_eq!(judged(18, 12), None);
        assert!(judged(19, 12).unwrap().contains("stock leaves its own in 12 of 100"));
    }
}
