//! Results of comparing answers, and the rules by which they match stock's.

use espalier_core::error::{Kind, Result};
use serde_json::{Value, json};

use crate::serving::rounding::Rounding;
use crate::serving::verdict::{self, Answer, AnswerVerdict};

/// Results of all comparisons.
#[derive(Debug, Default)]
pub struct Compared {
    /// Number of answers that match stock's.
    pub same: usize,
    /// Number of answers that diverged from stock's at a tie within tolerance: a token that was as likely.
    pub ties: usize,
    /// Rate at which stock under load answers differently from stock alone.
    pub stock: Rounding,
    /// Failures, one line each.
    pub failures: Vec<String>,
    /// Promises whose situation did not arise, one line each: no failures, and no passes.
    pub not_reproduced: Vec<String>,
}

impl Compared {
    /// Reports too many ties, which rounding does not explain: ours may not have many more than stock has under load.
    pub fn too_many_ties(&self) -> Option<String> {
        Rounding { same: self.same, others: self.ties }.is_too_much(self.stock)
    }

    /// Adds the results of other checks.
    pub fn add(&mut self, other: Compared) {
        self.same += other.same;
        self.ties += other.ties;
        self.stock.same += other.stock.same;
        self.stock.others += other.stock.others;
        self.failures.extend(other.failures);
        self.not_reproduced.extend(other.not_reproduced);
    }

    /// Records a part that ended in an error as a failure, so that it does not hide the next part.
    ///
    /// # Errors
    ///
    /// Environment errors, which say nothing about a server.
    pub fn go_on(&mut self, name: &str, ended: Result<()>) -> Result<()> {
        match ended {
            Err(error) if error.kind == Kind::No => self.failures.push(format!("{name}: {error}")),
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Requires identical answers.
    pub(super) fn hold_equal(&mut self, name: &str, stock: &[Answer], ours: &[Answer]) {
        for (at, (stock, ours)) in stock.iter().zip(ours).enumerate() {
            match stock == ours {
                true => self.same += 1,
                false => self.failures.push(format!("{name}: request {at} differs from stock's answer")),
            }
        }
    }

    /// Requires the same tokens, except for ties within the tolerance of stock's own rounding.
    pub(super) fn hold_near(&mut self, name: &str, stock: &[Answer], tolerance: f64, ours: &[Answer]) {
        for (at, (stock, ours)) in stock.iter().zip(ours).enumerate() {
            self.hold_answer(&format!("{name}: request {at}"), stock, tolerance, ours);
        }
    }

    /// Compares an answer to `/completion`.
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
            AnswerVerdict::Same => self.same += 1,
            AnswerVerdict::Tie(_) => self.ties += 1,
            AnswerVerdict::Wrong(place) => self.failures.push(format!(
                "{name}: token {place} is not stock's, and less likely by {:.3}; stock's own rounding explains {tolerance:.3}",
                verdict::gap(stock, place, tokens)
            )),
        }
    }

    /// Compares the probabilities of equal tokens: an error may be too small to change a token.
    fn hold_probabilities(&mut self, name: &str, stock: &Answer, tolerance: f64, answer: &Answer) {
        let moved = verdict::moved(stock, answer);
        if moved > tolerance * verdict::MAX_MOVED {
            self.failures.push(format!(
                "{name}: the likeliest tokens are {moved:.3} from stock's; stock's own rounding explains {tolerance:.3}"
            ));
        }
    }

    /// JSON form, for a report.
    pub fn to_json(&self) -> Value {
        json!({ "same": self.same, "ties_within_tolerance": self.ties, "failures": self.failures,
                "not_reproduced": self.not_reproduced, "stock": self.stock })
    }
}
