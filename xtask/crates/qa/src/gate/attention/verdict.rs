//! PURE: whether one build's attention has at most the error of another's against double precision.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

/// A probe case: types of K and V, row sizes of each, and tokens per batch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Case {
    keys: String,
    values: String,
    key_size: u32,
    value_size: u32,
    tokens: u32,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { keys, values, key_size, value_size, tokens } = self;
        write!(out, "K {keys} of {key_size}, V {values} of {value_size}, tokens: {tokens}")
    }
}

/// One line of the probe's output.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CaseResult {
    #[serde(flatten)]
    case: Case,
    /// Relative RMSE: root of the mean squared difference from double precision, over the root of the mean square.
    error: f64,
    /// A hash of the result.
    bits: String,
}

/// Parses the probe's output, one JSON object per line.
///
/// # Errors
///
/// The first line that is not a case.
pub fn read_cases(output: &str) -> Result<Vec<CaseResult>, String> {
    let read = |line: &str| serde_json::from_str(line).map_err(|error| format!("{error}: {line}"));
    output.lines().map(read).collect()
}

/// Comparison of two builds, case by case.
pub struct Comparison {
    both: Vec<Both>,
    /// Cases of types that stock does not have.
    own: Vec<CaseResult>,
    /// Cases that one of the builds did not compute.
    missing: Vec<String>,
}

struct Both {
    case: Case,
    stock: f64,
    ours: f64,
    are_the_same_bits: bool,
}

/// Maximum [`CaseResult::error`] for types that stock does not have: rounding Q and the weights to 16 bits gives at
/// most 7e-5; stock, which rounds Q to 8 bits, gives 5e-3 with its own types. The error of the type itself is in the
/// reference too.
const MAX_OF_OWN_TYPES: f64 = 1e-4;

impl Comparison {
    /// Pairs the cases of two builds.
    pub fn of(stock: &[CaseResult], ours: &[CaseResult]) -> Comparison {
        let by_case = |all: &[CaseResult]| -> BTreeMap<Case, CaseResult> {
            all.iter().map(|found| (found.case.clone(), found.clone())).collect()
        };
        let (stock, mut ours) = (by_case(stock), by_case(ours));
        let is_of_stock = |kind: &String| stock.keys().any(|case| *kind == case.keys || *kind == case.values);
        let own = ours.extract_if(.., |case, _| !is_of_stock(&case.keys) || !is_of_stock(&case.values));
        let own: Vec<CaseResult> = own.map(|(_, found)| found).collect();
        let only_in = |one: &BTreeMap<Case, CaseResult>,
                       other: &BTreeMap<Case, CaseResult>,
                       whose: &str|
         -> Vec<String> {
            let missing = one.keys().filter(|case| !other.contains_key(case));
            missing.map(|case| format!("{case}: computed by {whose} only")).collect()
        };
        let missing = [only_in(&stock, &ours, "stock"), only_in(&ours, &stock, "ours")].concat();
        let both = |(case, stock): (&Case, &CaseResult)| {
            let ours = ours.get(case)?;
            let are_the_same_bits = stock.bits == ours.bits;
            Some(Both { case: case.clone(), stock: stock.error, ours: ours.error, are_the_same_bits })
        };
        Comparison { both: stock.iter().filter_map(both).collect(), own, missing }
    }

    /// Returns the failures, one line each. A result bit-identical to stock's was computed by stock's code.
    pub fn failures(&self) -> Vec<String> {
        let wrong = self.both.iter().filter_map(Both::failure);
        let own = self.own.iter().filter_map(failure_of_own);
        let nothing = self.both.is_empty().then(|| "no case was computed on both builds".to_string());
        self.missing.iter().cloned().chain(wrong).chain(own).chain(nothing).collect()
    }

    /// One-line summary.
    pub fn summary(&self) -> String {
        let share = self.both.iter().map(Both::share).fold(0.0, f64::max);
        let cases = self.both.len();
        let own = match self.own.len() {
            0 => String::new(),
            count => {
                let most = self.own.iter().map(|found| found.error).fold(0.0, f64::max);
                format!("; {count} of types that stock has not, error at most {most:.1e}")
            }
        };
        format!("attention: {cases} cases, error at most {share:.2} of stock's{own}")
    }

    /// JSON form, for a report.
    pub fn to_json(&self) -> Value {
        let one = |Both { case, stock, ours, .. }: &Both| json!({ "case": case.to_string(), "stock": stock, "ours": ours });
        let own =
            |CaseResult { case, error, .. }: &CaseResult| json!({ "case": case.to_string(), "ours": error });
        self.both.iter().map(one).chain(self.own.iter().map(own)).collect()
    }
}

fn failure_of_own(CaseResult { case, error, .. }: &CaseResult) -> Option<String> {
    // Written so that NaN fails the comparison.
    let is_near = *error <= MAX_OF_OWN_TYPES;
    (!is_near).then(|| format!("{case}: error {error:.2e}, expected at most {MAX_OF_OWN_TYPES:.0e}"))
}

impl Both {
    fn share(&self) -> f64 {
        self.ours / self.stock
    }

    fn failure(&self) -> Option<String> {
        let Both { case, stock, ours, are_the_same_bits } = self;
        // Written so that NaN fails the comparison.
        let is_as_near = *ours <= *stock;
        match (is_as_near, are_the_same_bits) {
            (true, false) => None,
            (true, true) => Some(format!("{case}: stock's bits: the kernel was not used")),
            (false, _) => Some(format!("{case}: error {ours:.2e}, stock's is {stock:.2e}")),
        }
    }
}
