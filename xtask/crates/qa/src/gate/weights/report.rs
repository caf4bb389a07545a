//! Result of the comparison on real weights: a table, and the values beyond stock's own spread.

use serde_json::{Value, json};

use super::runs::STOCK;
use crate::serving::spread::{Limits, Spread};

/// Result of one of our servers.
pub(super) struct Paged {
    pub(super) name: &'static str,
    /// Spread relative to the reference.
    pub(super) spread: Spread,
    /// Required events that did not occur.
    pub(super) missing: Vec<String>,
}

/// Results of all servers.
pub(super) struct Compared {
    pub(super) requests: usize,
    /// Spread of stock relative to itself, by the names of both runs.
    pub(super) own: Vec<(String, Spread)>,
    pub(super) limits: Limits,
    pub(super) paged: Vec<Paged>,
}

impl Compared {
    /// Returns the failures, one line each.
    pub(super) fn failures(&self) -> Vec<String> {
        let of = |one: &Paged| {
            let beyond = self.limits.exceeded_by(&one.spread);
            beyond
                .into_iter()
                .chain(one.missing.clone())
                .map(|line| format!("{}: {line}", one.name))
                .collect::<Vec<_>>()
        };
        let early = |(name, one): &(String, Spread)| {
            one.ended_early.iter().map(|early| format!("{name}: {early}")).collect::<Vec<_>>()
        };
        self.own.iter().flat_map(early).chain(self.paged.iter().flat_map(of)).collect()
    }

    /// Formats a table: stock against itself, the limits that follow, and ours against stock.
    pub(super) fn text(&self) -> String {
        let Limits { median, p99, max, rate } = self.limits;
        let most =
            format!("| allowed | {:.0} | {median:.3} | {p99:.3} | {max:.3} |\n", rate * self.requests as f64);
        let own = self.own.iter().map(|(name, spread)| row(name, spread));
        let paged =
            self.paged.iter().map(|one| row(&format!("{} / {}", STOCK[0].name, one.name), &one.spread));
        format!(
            "weights: {} requests, |d| of the log probability of stock's token up to the first different one\n\n\
             | compared | diverged | median | 99 % | max |\n|---|--:|--:|--:|--:|\n",
            self.requests
        ) + &own.chain([most]).chain(paged).collect::<String>()
    }

    pub(super) fn to_json(&self) -> Value {
        let Limits { median, p99, max, rate } = self.limits;
        let spread = |name: &str, one: &Spread| {
            json!({ "name": name, "answers": one.answers, "diverged": one.diverged, "places": one.places(),
                    "median": one.median(), "p99": one.p99(), "max": one.max() })
        };
        json!({
            "requests": self.requests,
            "stock": self.own.iter().map(|(name, one)| spread(name, one)).collect::<Vec<_>>(),
            "allowed": { "median": median, "p99": p99, "max": max, "rate": rate },
            "paged": self.paged.iter().map(|one| spread(one.name, &one.spread)).collect::<Vec<_>>(),
        })
    }
}

fn row(name: &str, one: &Spread) -> String {
    format!(
        "| {name} | {} of {} | {:.3} | {:.3} | {:.3} |\n",
        one.diverged,
        one.answers,
        one.median(),
        one.p99(),
        one.max()
    )
}
