//! What came of comparing answers, and the rules by which they are stock's.

use serde_json::{Value, json};

use crate::error::{Kind, Result};
use crate::serving::rounding::Rounding;
use crate::serving::verdict::{self, Answer, Verdict};

/// What came of all comparisons.
#[derive(Debug, Default)]
pub struct Compared {
    /// Answers that are stock's.
    pub same: usize,
    /// Answers that left stock's at a token that was as likely.
    pub near_ties: usize,
    /// How often stock answers otherwise than stock alone does.
    pub stock: Rounding,
    /// What is wrong, a line each.
    pub failures: Vec<String>,
}

impl Compared {
    /// Too many near ties are no rounding: ours may not have many more than stock has with neighbours.
    pub fn too_many_near_ties(&self) -> Option<String> {
        Rounding { same: self.same, others: self.near_ties }.is_too_much(self.stock)
    }

    /// A part that ended in an error is one more failure: it never hides the next part.
    ///
    /// # Errors
    ///
    /// The surroundings failed, which says nothing about a server.
    pub fn go_on(&mut self, name: &str, ended: Result<()>) -> Result<()> {
        match ended {
            Err(error) if error.kind == Kind::No => self.failures.push(format!("{name}: {error}")),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// The same bytes.
    pub(super) fn hold_equal(&mut self, name: &str, stock: &[Answer], ours: &[Answer]) {
        for (at, (stock, ours)) in stock.iter().zip(ours).enumerate() {
            match stock == ours {
                true => self.same += 1,
                false => self.failures.push(format!("{name}: request {at} differs from stock's answer")),
            }
        }
    }

    /// The same tokens, as far as stock's own rounding lets them be.
    pub(super) fn hold_near(&mut self, name: &str, stock: &[Answer], tolerance: f64, ours: &[Answer]) {
        for (at, (stock, ours)) in stock.iter().zip(ours).enumerate() {
            self.hold_answer(&format!("{name}: request {at}"), stock, tolerance, ours);
        }
    }

    /// An answer to `/completion`.
    pub(super) fn hold(&mut self, name: &str, stock: &Answer, tolerance: f64, (status, body): (u16, &Value)) {
        match verdict::read(body) {
            Some(answer) => self.hold_answer(name, stock, tolerance, &answer),
            None => self.failures.push(format!("{name} returned {status}: {body}")),
        }
    }

    fn hold_answer(&mut self, name: &str, stock: &Answer, tolerance: f64, answer: &Answer) {
        self.hold_tokens(name, stock, tolerance, &answer.tokens);
        self.hold_probabilities(name, stock, tolerance, answer);
    }

    pub(super) fn hold_tokens(&mut self, name: &str, stock: &Answer, tolerance: f64, tokens: &[i64]) {
        match verdict::judge(stock, tokens, tolerance) {
            Verdict::Same => self.same += 1,
            Verdict::NearTie(_) => self.near_ties += 1,
            Verdict::Wrong(place) => self.failures.push(format!(
                "{name}: token {place} is not stock's, and less likely by {:.3}; stock's own rounding explains {tolerance:.3}",
                verdict::gap(stock, place, tokens)
            )),
        }
    }

    /// Of the same text: what is wrong need not be wrong enough for another token.
    fn hold_probabilities(&mut self, name: &str, stock: &Answer, tolerance: f64, answer: &Answer) {
        let moved = verdict::moved(stock, answer);
        if moved > tolerance * verdict::MOST_MOVED {
            self.failures.push(format!(
                "{name}: the likeliest tokens are {moved:.3} from stock's; stock's own rounding explains {tolerance:.3}"
            ));
        }
    }

    /// For a report.
    pub fn to_json(&self) -> Value {
        json!({ "same": self.same, "near_ties": self.near_ties, "failures": self.failures,
                "stock": { "same": self.stock.same, "others": self.stock.others } })
    }
}
