//! PURE: what a seed means: one or two families of requests, the API that carries them, and how their size grows.

pub mod bodies;
pub mod carriers;
pub mod family;
pub mod fields;
pub mod grammars;
pub mod patterns;
pub mod schemas;

use serde_json::Value;

use self::carriers::Carrier;
use self::family::{Duty, Family, Make, Sent};
use crate::error::{Error, Result};
use crate::fuzz::plan::dice::Dice;
use crate::sys::net::exchange::Question;

/// Two families in one request are drawn for so many of a hundred seeds.
const COMBINED: usize = 30;

/// A client that goes away early is drawn for so many of a hundred seeds.
const IMPATIENT: usize = 15;

/// Bytes of a body after which no larger one is sent, unless a family says otherwise.
const MOST_BODY: usize = 4 << 20;

/// Sizes of combined families end here, as a power of two: the body may grow with the product.
const MOST_COMBINED: u32 = 12;

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Round {
    /// The seed.
    pub seed: u64,
    /// The family whose size grows.
    pub family: &'static Family,
    /// A second family in the same request, of the same size.
    pub inner: Option<&'static Family>,
    /// The API that carries it.
    pub carrier: Carrier,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the client goes away soon after sending.
    pub leaves: bool,
}

/// All families, in the order in which consecutive seeds take them.
pub fn families() -> impl Iterator<Item = &'static Family> {
    let all: [&'static [Family]; 5] = [grammars::ALL, schemas::ALL, fields::ALL, patterns::ALL, bodies::ALL];
    all.into_iter().flatten()
}

/// The family of this name.
///
/// # Errors
///
/// There is none.
pub fn family(name: &str) -> Result<&'static Family> {
    let unknown = || {
        let names: Vec<&str> = families().map(|family| family.name).collect();
        Error::usage(format!("there is no family `{name}`")).hint(format!("use one of: {}", names.join(", ")))
    };
    families().find(|family| family.name == name).ok_or_else(unknown)
}

impl Round {
    /// The round of a seed; consecutive seeds have each of `families` in turn, first alone and plainly.
    pub fn draw(seed: u64, families: &[&'static Family]) -> Round {
        let count = families.len().max(1) as u64;
        let family = families[usize::try_from(seed % count).unwrap_or(0)];
        let is_first_turn = seed < count;
        let mut dice = Dice::new(seed, 7);
        let carriers = Carrier::of(&family.make);
        let carrier = if is_first_turn { carriers[0] } else { dice.pick(carriers) };
        let others: Vec<&'static Family> = families_beside(family, carrier);
        let is_combined = !is_first_turn && !others.is_empty() && dice.chance(COMBINED);
        Round {
            seed,
            family,
            inner: is_combined.then(|| dice.pick(&others)),
            carrier,
            stream: !is_first_turn && dice.chance(30),
            leaves: !is_first_turn && dice.chance(IMPATIENT),
        }
    }

    /// What the server that is asked is for.
    pub fn duty(&self) -> Duty {
        self.family.duty
    }

    /// The sizes in order: 1, 2, 4, up to the largest one.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.family.most;
        let most = self.inner.map_or(own, |inner| own.min(inner.most).min(MOST_COMBINED));
        (0..=most).map(|power| 1 << power)
    }

    /// The request of a size; nothing when its body would be too large.
    pub fn request(&self, size: usize) -> Option<Question> {
        let most = self.family.most_body.unwrap_or(MOST_BODY);
        Some(self.draft(size).into_question()).filter(|question| question.body.len() <= most)
    }

    fn draft(&self, size: usize) -> Sent {
        match self.family.make {
            Make::Grammar(make) => {
                let inner = self.inner.map(|family| family.make);
                self.carrier.with_grammar(&grammars::nested(make, inner, size), self.stream)
            }
            Make::Schema(make) => {
                let leaf = match self.inner.map(|inner| inner.make) {
                    Some(Make::Schema(inner)) => inner(size, schemas::leaf()),
                    _ => schemas::leaf(),
                };
                self.carrier.with_schema(&schemas::as_object(make(size, leaf)), self.stream)
            }
            Make::Fields(make) => {
                let mut fields = self.carrier.with_fields(&make(size), self.stream);
                if let Some(Make::Fields(inner)) = self.inner.map(|inner| inner.make) {
                    fields.extend_missing(&inner(size));
                }
                fields
            }
            Make::Whole(make) => make(size),
        }
    }

    /// In words, with the size of a request.
    pub fn words(&self) -> String {
        let inner = self.inner.map_or(String::new(), |inner| format!(" with {}", inner.name));
        let stream = if self.stream { ", stream" } else { "" };
        let leaves = if self.leaves { ", client leaves early" } else { "" };
        format!("{}{inner} as {}{stream}{leaves}", self.family.name, self.carrier.name())
    }
}

/// Families that fit into one request with `family`.
fn families_beside(family: &'static Family, carrier: Carrier) -> Vec<&'static Family> {
    let fits = |other: &&'static Family| {
        let is_alike = match (family.make, other.make) {
            (Make::Grammar(_), Make::Grammar(_)) | (Make::Schema(_), Make::Schema(_)) => true,
            (Make::Fields(_), Make::Fields(_)) => carrier == Carrier::Completion,
            _ => false,
        };
        is_alike && other.name != family.name && other.duty == family.duty
    };
    families().filter(fits).collect()
}

/// An array of `count` copies.
fn copies(value: impl Into<Value>, count: usize) -> Value {
    Value::Array(vec![value.into(); count])
}

#[cfg(test)]
mod tests;
