//! PURE: the results of all visits.

use serde::{Deserialize, Serialize};

use crate::serving::verdict::{self, Answer, AnswerVerdict};

/// Number of failures that are kept as text; further ones are only counted.
const KEPT: usize = 10;

/// Counts of visits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Complete answers that equal stock's.
    pub same: u64,
    /// Complete answers whose first token that differs from stock's is a tie within tolerance.
    #[serde(rename = "ties_within_tolerance")]
    pub ties: u64,
    /// Complete answers that differ otherwise.
    pub wrong: u64,
    /// Visits that were not answered.
    pub errors: u64,
    /// Clients that disconnected.
    #[serde(rename = "disconnected")]
    pub left: u64,
    /// The first wrong answers and errors, one per line.
    #[serde(skip)]
    pub words: Vec<String>,
}

impl Tally {
    /// Counts an answer; `stock` may be longer, since a greedy answer is a prefix of the longer one.
    pub fn answer(&mut self, name: &str, stock: &Answer, tokens: &[i64], wanted: usize, tolerance: f64) {
        let stock = stock.first(wanted);
        match verdict::judge(&stock, tokens, tolerance) {
            AnswerVerdict::Same => self.same += 1,
            AnswerVerdict::Tie(_) => self.ties += 1,
            AnswerVerdict::Wrong(place) => {
                self.wrong += 1;
                let gap = verdict::gap(&stock, place, tokens);
                self.say(format!(
                    "{name}: token {place} of {wanted} is not stock's, and less likely by {gap:.3}; \
                     stock's own rounding explains {tolerance:.3}"
                ));
            }
        }
    }

    /// Counts a visit that was not answered.
    pub fn error(&mut self, words: String) {
        self.errors += 1;
        self.say(words);
    }

    /// Adds the counts of another client.
    pub fn add(&mut self, other: Tally) {
        self.same += other.same;
        self.ties += other.ties;
        self.wrong += other.wrong;
        self.errors += other.errors;
        self.left += other.left;
        other.words.into_iter().for_each(|words| self.say(words));
    }

    /// Returns the number of failures.
    pub fn bad(&self) -> u64 {
        self.wrong + self.errors
    }

    fn say(&mut self, words: String) {
        if self.words.len() < KEPT {
            self.words.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock() -> Answer {
        Answer { tokens: vec![1, 2, 3], likeliest: vec![vec![(1, -0.1), (9, -0.11)]; 3] }
    }

    #[test]
    fn an_answer_is_held_against_the_beginning_of_stocks() {
        let mut tally = Tally::default();
        tally.answer("a", &stock(), &[1, 2], 2, 0.02);
        tally.answer("b", &stock(), &[9, 7], 2, 0.02);
        tally.answer("c", &stock(), &[1], 2, 0.02);
        tally.answer("d", &stock(), &[7, 2], 2, 0.02);
        assert_eq!((tally.same, tally.ties, tally.wrong), (1, 1, 2));
        assert!(tally.words[0].starts_with("c: token 1 of 2 is not stock's"), "{:?}", tally.words);
    }

    #[test]
    fn tallies_add_up_and_words_are_few() {
        let mut all = Tally::default();
        for _ in 0..20 {
            let mut one = Tally { same: 1, left: 2, ..Tally::default() };
            one.error("no".to_string());
            all.add(one);
        }
        assert_eq!((all.same, all.left, all.bad(), all.words.len()), (20, 40, 20, KEPT));
    }
}
