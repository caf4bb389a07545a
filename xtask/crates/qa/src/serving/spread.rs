//! PURE: the distance between the log probabilities of two servers on the same greedy answers, compared with a
//! reference's own spread.
//!
//! On real, quantized weights tokens cannot be compared one by one: activations are rounded to 8 bits per row, so a
//! batch of another shape moves every logit, and stock differs from itself. Distributions can be compared: |d|, the
//! difference of the log probability of the reference's token, at every place up to and including the first one at
//! which the answers have different tokens. After that place the two answers continue different sequences.

use std::fmt;

use super::verdict::Answer;

/// Distances between two runs over the same prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Number of compared answers.
    pub answers: usize,
    /// Number of answers with different tokens.
    pub diverged: usize,
    /// Answers of the other run that end where the reference's continues with the same tokens so far.
    pub ended_early: Vec<EndedEarly>,
    /// |d| at every compared place, ascending; infinite where the other side does not list the token at all.
    distances: Vec<f64>,
}

/// An answer that is a beginning of the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedEarly {
    /// Index of the prompt.
    request: usize,
    /// Number of tokens.
    tokens: usize,
    /// Number of tokens of the reference's answer.
    of: usize,
}

impl EndedEarly {
    fn between((request, (reference, other)): (usize, (&Answer, &Answer))) -> Option<EndedEarly> {
        let (tokens, of) = (other.tokens.len(), reference.tokens.len());
        let is_beginning = tokens < of && reference.tokens.starts_with(&other.tokens);
        is_beginning.then_some(EndedEarly { request, tokens, of })
    }
}

impl fmt::Display for EndedEarly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EndedEarly { request, tokens, of } = self;
        write!(out, "the answer to request {request} ended after {tokens} of {of} tokens")
    }
}

impl Spread {
    /// Compares the answers of two runs, in the order of the prompts.
    pub fn between(reference: &[Answer], other: &[Answer]) -> Spread {
        let pairs = || reference.iter().zip(other);
        let mut distances: Vec<f64> = pairs().flat_map(|(one, other)| distances(one, other)).collect();
        distances.sort_by(f64::total_cmp);
        let diverged = pairs().filter(|(one, other)| one.tokens != other.tokens).count();
        let ended_early = pairs().enumerate().filter_map(EndedEarly::between).collect();
        Spread { answers: reference.len().min(other.len()), diverged, ended_early, distances }
    }

    /// Returns the number of compared places.
    pub fn places(&self) -> usize {
        self.distances.len()
    }

    /// Returns the median of |d|.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the 99th percentile of |d|.
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// Returns the maximum of |d|.
    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Returns the fraction of the answers that have different tokens.
    pub fn rate(&self) -> f64 {
        self.diverged as f64 / self.answers.max(1) as f64
    }

    /// Infinite without any places: otherwise an empty comparison would be within every bound.
    fn quantile(&self, part: f64) -> f64 {
        let last = self.distances.len().saturating_sub(1);
        let at = (part * last as f64).ceil() as usize;
        self.distances.get(at).copied().unwrap_or(f64::INFINITY)
    }
}

/// Returns |d| at each place that both answers have, up to and including the first different token. NaN counts as
/// infinite.
fn distances(reference: &Answer, other: &Answer) -> Vec<f64> {
    let alike = reference.tokens.iter().zip(&other.tokens).take_while(|(one, other)| one == other).count();
    let compared = (alike + 1).min(reference.tokens.len()).min(other.tokens.len());
    (0..compared).map(|place| distance(reference, other, place)).collect()
}

fn distance(reference: &Answer, other: &Answer, place: usize) -> f64 {
    let token = reference.tokens.get(place).copied();
    let logprob = |answer: &Answer| {
        let mut listed = answer.likeliest.get(place)?.iter();
        listed.find(|(id, _)| Some(*id) == token).map(|(_, logprob)| *logprob)
    };
    match (logprob(reference), logprob(other)) {
        (Some(one), Some(other)) if !(one - other).is_nan() => (one - other).abs(),
        _ => f64::INFINITY,
    }
}

/// Allowed multiple of stock's own median. The median covers hundreds of places and hardly varies from run to run.
const MEDIAN: f64 = 1.5;
/// Allowed multiple of the 99th percentile, which depends on a few places.
const P99: f64 = 1.75;
/// Allowed multiple of the maximum, which depends on a single place.
const MAX: f64 = 2.5;
/// Allowed multiple of the fraction of the answers that diverge.
const RATE: f64 = 1.5;
/// Added to each of these, for cases where stock's own value is close to zero: nats, and fractions of the answers. In
/// two runs of 31 requests on one machine stock's largest median was 0.016 and 0.026, its largest 99th percentile
/// 0.199 and 0.261.
const LEAST_MEDIAN: f64 = 0.02;
const LEAST_P99: f64 = 0.15;
const LEAST_MAX: f64 = 0.3;
const LEAST_RATE: f64 = 0.1;

/// Limits for the distance of a server from stock: stock's own spread, with a margin for chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Limit of the median.
    pub median: f64,
    /// Limit of the 99th percentile.
    pub p99: f64,
    /// Limit of the maximum.
    pub max: f64,
    /// Limit of the fraction of the answers that diverge.
    pub rate: f64,
}

impl Limits {
    /// Derives limits from `own`, distances of stock from itself: the largest by each measure, with its margin.
    pub fn of(own: &[Spread]) -> Limits {
        let widest = |measure: fn(&Spread) -> f64| own.iter().map(measure).fold(0.0, f64::max);
        Limits {
            median: widest(Spread::median) * MEDIAN + LEAST_MEDIAN,
            p99: widest(Spread::p99) * P99 + LEAST_P99,
            max: widest(Spread::max) * MAX + LEAST_MAX,
            rate: widest(Spread::rate) * RATE + LEAST_RATE,
        }
    }

    /// Returns the measures of `spread` that exceed their limits, and the answers that ended early, one line each.
    pub fn exceeded_by(&self, spread: &Spread) -> Vec<String> {
        let measures = [
            ("median of |d|", spread.median(), self.median),
            ("99 % of |d|", spread.p99(), self.p99),
            ("largest |d|", spread.max(), self.max),
            ("part of the answers that diverge", spread.rate(), self.rate),
        ];
        let line = |(name, found, limit): &(&str, f64, f64)| {
            // Fails also for NaN and infinity.
            let is_within = found <= limit && found.is_finite();
            (!is_within).then(|| format!("{name}: {found:.4}; stock's own spread allows {limit:.4}"))
        };
        measures.iter().filter_map(line).chain(spread.ended_early.iter().map(EndedEarly::to_string)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an answer of these tokens, each with that log probability, and token 99 as the runner-up.
    fn answer(tokens: &[i64], logprob: f64) -> Answer {
        let likeliest = tokens.iter().map(|token| vec![(*token, logprob), (99, -3.0)]).collect();
        Answer { tokens: tokens.to_vec(), likeliest }
    }

    fn spread(reference: Answer, other: Answer) -> Spread {
        Spread::between(&[reference], &[other])
    }

    #[test]
    fn the_same_answers_are_no_distance_apart() {
        let same = spread(answer(&[1, 2, 3], -1.0), answer(&[1, 2, 3], -1.0));
        assert_eq!((same.answers, same.diverged, same.places(), same.max()), (1, 0, 3, 0.0));
    }

    #[test]
    fn places_count_up_to_the_first_different_token_and_that_one_too() {
        let mut other = answer(&[1, 99, 7], -1.25);
        // The other server preferred token 99, and still lists token 2.
        other.likeliest[1] = vec![(99, -0.9), (2, -1.5)];
        let found = spread(answer(&[1, 2, 3], -1.0), other);
        assert_eq!((found.diverged, found.places(), found.max()), (1, 2, 0.5));
        assert_eq!(found.rate(), 1.0);
    }

    #[test]
    fn a_token_that_the_other_side_does_not_list_is_infinitely_far() {
        let found = spread(answer(&[1, 2], -1.0), answer(&[5, 2], -1.0));
        assert_eq!((found.places(), found.max()), (1, f64::INFINITY));
        assert_eq!(spread(answer(&[1], f64::NAN), answer(&[1], -1.0)).max(), f64::INFINITY);
    }

    #[test]
    fn an_answer_that_ends_early_is_reported_as_such_and_not_as_a_distance() {
        let shorter = spread(answer(&[1, 2, 3], -1.0), answer(&[1, 2], -1.0));
        assert_eq!((shorter.places(), shorter.max(), shorter.diverged), (2, 0.0, 1));
        let limits = Limits { median: 1.0, p99: 1.0, max: 1.0, rate: 1.0 };
        assert_eq!(limits.exceeded_by(&shorter), ["the answer to request 0 ended after 2 of 3 tokens"]);
        let other = spread(answer(&[1, 2, 3], -1.0), answer(&[1, 99], -1.0));
        assert!(other.ended_early.is_empty());
    }

    #[test]
    fn quantiles_are_of_all_places() {
        let one = |index: u32| answer(&[1], -f64::from(index));
        let reference: Vec<Answer> = (0..=100).map(|_| answer(&[1], 0.0)).collect();
        let other: Vec<Answer> = (0..=100).rev().map(one).collect();
        let found = Spread::between(&reference, &other);
        assert_eq!((found.median(), found.p99(), found.max()), (50.0, 99.0, 100.0));
    }

    #[test]
    fn no_answers_are_not_within_limits() {
        let nothing = Spread::between(&[], &[]);
        let own = spread(answer(&[1], -1.0), answer(&[1], -1.1));
        assert_eq!(Limits::of(&[own]).exceeded_by(&nothing).len(), 3);
    }

    fn by(moved: f64) -> Spread {
        spread(answer(&[1, 2], -1.0), answer(&[1, 2], -1.0 - moved))
    }

    #[test]
    fn as_far_as_stock_from_itself_is_within_and_three_times_as_far_is_not() {
        let limits = Limits::of(&[by(0.1), by(0.05)]);
        assert!(limits.exceeded_by(&by(0.1)).is_empty());
        assert!(limits.exceeded_by(&by(0.15)).is_empty());
        let lines = limits.exceeded_by(&by(0.35));
        assert_eq!(
            lines,
            [
                "median of |d|: 0.3500; stock's own spread allows 0.1700",
                "99 % of |d|: 0.3500; stock's own spread allows 0.3250",
            ]
        );
    }

    #[test]
    fn a_single_wrong_answer_and_many_diverging_ones_are_seen() {
        let limits = Limits::of(&[by(0.01)]);
        let answers = |last: Answer| {
            let mut all = vec![answer(&[1, 2], -1.01); 30];
            all.push(last);
            Spread::between(&vec![answer(&[1, 2], -1.0); 31], &all)
        };
        assert!(limits.exceeded_by(&answers(answer(&[1, 2], -1.01))).is_empty());
        let lines = limits.exceeded_by(&answers(answer(&[5, 6], -1.01)));
        assert!(lines.iter().any(|line| line.starts_with("largest |d|: inf")), "{lines:?}");
        let mut tie = answer(&[1, 99], -1.01);
        tie.likeliest[1] = vec![(99, -1.0), (2, -1.01)];
        let many = Spread::between(&[answer(&[1, 2], -1.0), answer(&[1, 2], -1.0)], &[tie.clone(), tie]);
        assert_eq!(
            limits.exceeded_by(&many),
            ["part of the answers that diverge: 1.0000; stock's own spread allows 0.1000"]
        );
    }
}
