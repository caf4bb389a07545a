//! PURE: derives a round from a seed: one or two request families, the API that carries them, and their sizes.

pub mod bodies;
pub mod carriers;
pub mod family;
pub mod fields;
pub mod grammars;
pub mod patterns;
pub mod regressions;
pub mod schemas;

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use serde_json::Value;

use self::carriers::Carrier;
use self::family::{Family, Make, Sent, Task};
use crate::fuzz::plan::dice::Dice;

/// Percentage of seeds that combine two families in one request.
const COMBINED: usize = 30;

/// Percentage of seeds whose client disconnects early.
const IMPATIENT: usize = 15;

/// Maximum body length in bytes, unless a family has its own.
const MAX_BODY: usize = 4 << 20;

/// Maximum size of combined families, as a power of two: the body may grow with the product of the sizes.
const MAX_COMBINED: u32 = 12;

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Round {
    /// The seed.
    pub seed: u64,
    /// The request family.
    pub family: &'static Family,
    /// A second family in the same request, of the same size.
    pub inner: Option<&'static Family>,
    /// The API that carries the family.
    pub carrier: Carrier,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the client disconnects soon after sending.
    pub leaves: bool,
}

/// All families, in the order in which consecutive seeds use them.
pub fn families() -> impl Iterator<Item = &'static Family> {
    let all: [&'static [Family]; 5] = [grammars::ALL, schemas::ALL, fields::ALL, patterns::ALL, bodies::ALL];
    all.into_iter().flatten()
}

/// Returns the family of this name.
///
/// # Errors
///
/// There is no such family.
pub fn family(name: &str) -> Result<&'static Family> {
    let unknown = || {
        let names: Vec<&str> = families().map(|family| family.name).collect();
        Error::usage(format!("there is no family `{name}`")).hint(format!("use one of: {}", names.join(", ")))
    };
    families().find(|family| family.name == name).ok_or_else(unknown)
}

impl Round {
    /// Draws the round of a seed; consecutive seeds cycle through `families`. In the first cycle each is alone in its
    /// default carrier, not streamed, and the client stays connected.
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

    /// Names of the families in the request.
    pub fn names(&self) -> Vec<&'static str> {
        [Some(self.family), self.inner].into_iter().flatten().map(|family| family.name).collect()
    }

    /// Task of the server under test.
    pub fn task(&self) -> Task {
        self.family.task
    }

    /// The sizes in increasing order: 1, 2, 4, up to the largest.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.family.most;
        let most = self.inner.map_or(own, |inner| own.min(inner.most).min(MAX_COMBINED));
        (0..=most).map(|power| 1 << power)
    }

    /// Builds the request of a size; `None` if its body would be too large.
    pub fn request(&self, size: usize) -> Option<Request> {
        let most = self.family.most_body.unwrap_or(MAX_BODY);
        Some(self.draft(size).into_request()).filter(|request| request.body.len() <= most)
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

    /// Describes the round in words, without its sizes.
    pub fn words(&self) -> String {
        let inner = self.inner.map_or(String::new(), |inner| format!(" with {}", inner.name));
        let stream = if self.stream { ", stream" } else { "" };
        let leaves = if self.leaves { ", client leaves early" } else { "" };
        format!("{}{inner} as {}{stream}{leaves}", self.family.name, self.carrier.name())
    }
}

/// Families that can be combined with `family` in one request.
fn families_beside(family: &'static Family, carrier: Carrier) -> Vec<&'static Family> {
    let fits = |other: &&'static Family| {
        let is_alike = match (family.make, other.make) {
            (Make::Grammar(_), Make::Grammar(_)) | (Make::Schema(_), Make::Schema(_)) => true,
            (Make::Fields(_), Make::Fields(_)) => carrier == Carrier::Completion,
            _ => false,
        };
        is_alike && other.name != family.name && other.task == family.task
    };
    families().filter(fits).collect()
}

/// Builds an array of `count` copies of a value.
fn copies(value: impl Into<Value>, count: usize) -> Value {
    Value::Array(vec![value.into(); count])
}

#[cfg(test)]
mod tests;
