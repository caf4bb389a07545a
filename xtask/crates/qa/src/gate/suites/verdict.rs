//! PURE: differences between two runs of a suite, and which of them were expected.

use std::fmt;

use espalier_core::error::Result;
use serde_json::{Value, json};

use super::outcome::{Outcome, Outcomes};
use crate::gate::suites::declared::Expected;

/// A test whose outcome differs between the two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the test.
    pub test: String,
    /// Outcome on stock.
    pub stock: Outcome,
    /// Outcome on ours.
    pub ours: Outcome,
}

impl Difference {
    /// Returns the outcomes of a test, which may be alike.
    pub fn of(test: &str, stock: &Outcomes, ours: &Outcomes) -> Difference {
        let outcome = |side: &Outcomes| side.get(test).cloned().unwrap_or(Outcome::Absent);
        Difference { test: test.to_string(), stock: outcome(stock), ours: outcome(ours) }
    }
}

/// Result of comparing one suite.
#[derive(Debug, Default)]
pub struct Held {
    /// Name of the suite, and the mode of our run.
    pub side: String,
    /// Number of tests that were run on stock.
    pub tests: usize,
    /// Number of tests that passed on stock.
    pub passed: usize,
    /// Number of tests that passed on ours and were not run on stock.
    pub not_compared: usize,
    /// Number of passed cases that only ours has.
    pub own: usize,
    /// Differences listed with a reason.
    pub expected: Vec<Difference>,
    /// Differences that did not recur when the test ran alone.
    pub flaky: Vec<Difference>,
    /// Differences that are not listed.
    pub unexpected: Vec<Difference>,
    /// Tests with a listed difference that did not occur.
    pub vanished: Vec<Vanished>,
    /// Listed name parts of our own cases that match no case.
    pub unseen: Vec<String>,
    /// Programs that should report cases and reported none on stock: their arguments no longer match any.
    pub silent: Vec<String>,
}

/// Returns all tests whose outcomes differ; a test missing on one side counts as absent there.
pub fn differences(stock: &Outcomes, ours: &Outcomes) -> Vec<Difference> {
    let only_ours = ours.keys().filter(|test| !stock.contains_key(*test));
    let both = stock.keys().chain(only_ours).map(|test| Difference::of(test, stock, ours));
    both.filter(|both| both.stock != both.ours && !both.is_settled()).collect()
}

/// Allowed differences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowed<'a> {
    /// Listed differences, with a reason.
    pub listed: &'a [Expected],
    /// Cases with one of these in their names may be absent on stock if they pass on ours.
    pub own_cases: &'a [String],
}

/// A test that ended on both sides alike, although a difference is listed.
#[derive(Debug)]
pub struct Vanished {
    /// The test.
    pub test: String,
    reason: String,
}

impl fmt::Display for Vanished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.test, self.reason)
    }
}

/// Compares one side's outcomes with stock's.
pub fn hold(side: &str, stock: &Outcomes, ours: &Outcomes, allowed: Allowed<'_>) -> Held {
    let Allowed { listed, own_cases } = allowed;
    let is_own = |difference: &Difference| {
        (&difference.stock, &difference.ours) == (&Outcome::Absent, &Outcome::Passed)
            && own_cases.iter().any(|part| difference.test.contains(part))
    };
    let (own, differences): (Vec<_>, Vec<_>) = differences(stock, ours).into_iter().partition(is_own);
    let vanished = vanished(&differences, listed);
    // A case that exists and does not pass is a difference that has to be listed.
    let is_unseen = |part: &&String| !ours.keys().any(|test| test.contains(*part));
    let unseen = own_cases.iter().filter(is_unseen).cloned().collect();
    let (expected, unexpected) =
        differences.into_iter().partition(|difference| is_expected(listed, difference));
    let count = |wanted: &Outcome| stock.values().filter(|outcome| *outcome == wanted).count();
    let (passed, not_compared) = (count(&Outcome::Passed), count(&Outcome::NotRun));
    Held {
        side: side.to_string(),
        tests: stock.len() - not_compared,
        passed,
        not_compared,
        own: own.len(),
        expected,
        flaky: Vec::new(),
        unexpected,
        vanished,
        unseen,
        silent: Vec::new(),
    }
}

/// Whether the difference is listed with a reason.
pub fn is_expected(listed: &[Expected], difference: &Difference) -> bool {
    listed.iter().any(|one| expects(one, difference))
}

/// Whether a difference is listed for the test, from another outcome on stock than this one.
pub fn has_another_outcome_on_stock(listed: &[Expected], difference: &Difference) -> bool {
    let mut of_test = listed.iter().filter(|one| one.tests.contains(&difference.test));
    difference.stock != Outcome::Absent && of_test.any(|one| one.stock != difference.stock.word())
}

fn expects(listed: &Expected, difference: &Difference) -> bool {
    listed.tests.contains(&difference.test)
        && listed.stock == difference.stock.word()
        && listed.ours.get_ref() == difference.ours.word()
        && listed.how.as_ref().is_none_or(|how| difference.ours.how().contains(how.as_str()))
}

fn vanished(differences: &[Difference], listed: &[Expected]) -> Vec<Vanished> {
    let differs = |test: &str| differences.iter().any(|difference| difference.test == test);
    let certain = listed.iter().filter(|one| !one.by_rounding);
    let tests = certain.flat_map(|one| one.tests.iter().map(|test| (test, &one.reason)));
    let without = tests.filter(|(test, _)| !differs(test));
    without.map(|(test, reason)| Vanished { test: test.clone(), reason: reason.clone() }).collect()
}

/// Whether a difference is flaky: run alone `times` times, ours always ended like some run of stock, which ended as
/// `stock` in the first run and is run alone as often. Stock is run only for an outcome that it has not had yet, and
/// nothing after one that it never had.
///
/// # Errors
///
/// A run failed to start, or its report cannot be read.
pub fn is_luck(
    stock: Outcome,
    times: usize,
    mut stock_alone: impl FnMut() -> Result<Outcome>,
    mut ours_alone: impl FnMut() -> Result<Outcome>,
) -> Result<bool> {
    let mut seen = vec![stock];
    for _ in 0..times {
        let ours = ours_alone()?;
        while !seen.contains(&ours) && seen.len() <= times {
            seen.push(stock_alone()?);
        }
        if !seen.contains(&ours) {
            return Ok(false);
        }
    }
    Ok(times > 0)
}

impl Difference {
    /// Whether ours passed, so that stock was not run.
    fn is_settled(&self) -> bool {
        (&self.stock, &self.ours) == (&Outcome::NotRun, &Outcome::Passed)
    }

    /// One-line form.
    pub fn line(&self) -> String {
        format!("{}: {} on stock, {} on ours", self.test, self.stock, self.ours)
    }

    fn to_json(&self) -> Value {
        json!({ "test": self.test, "stock": self.stock.to_string(), "ours": self.ours.to_string() })
    }
}

impl Held {
    /// Whether nothing is unexpected, everything listed occurred, and at least one test passed on stock: otherwise
    /// nothing was tested.
    pub fn is_good(&self) -> bool {
        self.failures().is_empty()
    }

    /// One-line form.
    pub fn summary(&self) -> String {
        let Held { side, tests, passed, not_compared, own, expected, flaky, .. } = self;
        let (expected, flaky) = (expected.len(), flaky.len());
        let alone = match not_compared {
            0 => String::new(),
            _ => format!(", {not_compared} passed on ours and were not run on stock"),
        };
        format!(
            "{side}: {tests} outcomes compared ({passed} passed), {expected} differ as listed, {flaky} by luck, \
             {own} own cases passed{alone}"
        )
    }

    /// Returns the failures, one line each.
    pub fn failures(&self) -> Vec<String> {
        let side = &self.side;
        let differing = self.unexpected.iter().map(|difference| format!("{side}: {}", difference.line()));
        let vanished = self.vanished.iter().map(|test| {
            format!("{side}: {test}: ends as on stock; take it from the list of differences in `{LIST}`")
        });
        let silent = self.silent.iter().map(|program| {
            format!("{side}: {program}: reported no case on stock; check its arguments in `{LIST}`")
        });
        let unseen = self.unseen.iter().map(|part| {
            format!("{side}: none of our cases has `{part}` in its name; see own-cases and server-tests.own in `{LIST}`")
        });
        let nothing =
            (self.passed + self.not_compared == 0).then(|| format!("{side}: no test passed on stock"));
        differing.chain(vanished).chain(unseen).chain(silent).chain(nothing).collect()
    }

    /// JSON form, for a report.
    pub fn to_json(&self) -> Value {
        let list = |list: &[Difference]| list.iter().map(Difference::to_json).collect::<Vec<_>>();
        json!({
            "suite": self.side,
            "tests": self.tests,
            "passed": self.passed,
            "not_compared": self.not_compared,
            "own": self.own,
            "expected": list(&self.expected),
            "luck": list(&self.flaky),
            "unexpected": list(&self.unexpected),
            "vanished": self.vanished.iter().map(Vanished::to_string).collect::<Vec<_>>(),
            "unseen": self.unseen,
            "silent": self.silent,
        })
    }
}

/// The file that lists the tests to run and the allowed differences.
pub const LIST: &str = "ci/suites/suites.toml";

#[cfg(test)]
mod tests {
    use toml::Spanned;

    use super::*;

    fn failed(how: &str) -> Outcome {
        Outcome::Failed(how.to_string())
    }

    fn outcomes(list: &[(&str, Outcome)]) -> Outcomes {
        list.iter().map(|(test, outcome)| ((*test).to_string(), outcome.clone())).collect()
    }

    fn listed(test: &str) -> Expected {
        let word = str::to_string;
        Expected {
            tests: vec![word(test)],
            stock: word("passed"),
            ours: Spanned::new(0..0, word("failed")),
            how: Some(word("assert 512 == 256")),
            reason: word("r"),
            by_rounding: false,
            pin: None,
        }
    }

    fn allowed(listed: &[Expected]) -> Allowed<'_> {
        Allowed { listed, own_cases: &[] }
    }

    /// Such as a failure of a test that upstream has, which may pass when it runs alone.
    #[test]
    fn another_outcome_of_stock_than_the_listed_one_is_noticed() {
        let all = [listed("t")];
        let of_stock = |test: &str, stock: Outcome| Difference {
            test: test.to_string(),
            stock,
            ours: failed("assert 512 == 256"),
        };
        assert!(has_another_outcome_on_stock(&all, &of_stock("t", failed("x"))));
        for (test, stock) in [("t", Outcome::Passed), ("t", Outcome::Absent), ("another", failed("x"))] {
            assert!(!has_another_outcome_on_stock(&all, &of_stock(test, stock)));
        }
        assert!(is_expected(&all, &of_stock("t", Outcome::Passed)));
        assert!(!is_expected(&all, &of_stock("t", failed("x"))));
    }

    /// Stock failed like ours: the listed difference is not gone, and the test runs on stock again.
    #[test]
    fn a_listed_test_that_fails_on_both_sides_is_asked_again() {
        let all = [listed("t")];
        let both = outcomes(&[("t", failed("assert 512 == 256"))]);
        let held = hold("side", &both, &both, Allowed { listed: &all, own_cases: &[] });
        assert_eq!(held.vanished.iter().map(|one| one.test.as_str()).collect::<Vec<_>>(), ["t"]);
        let alike = Difference::of("t", &both, &both);
        assert!(has_another_outcome_on_stock(&all, &alike));
        assert!(is_expected(&all, &Difference { stock: Outcome::Passed, ..alike }));
        let passing = outcomes(&[("t", Outcome::Passed)]);
        assert!(!has_another_outcome_on_stock(&all, &Difference::of("t", &passing, &passing)));
    }

    #[test]
    fn a_case_that_only_our_build_has_must_pass() {
        let own_cases = ["tcq".to_string()];
        let held = |ours: &[(&str, Outcome)]| {
            let stock = outcomes(&[("a", Outcome::Passed)]);
            let ours = outcomes(&[&[("a", Outcome::Passed)], ours].concat());
            hold("s", &stock, &ours, Allowed { listed: &[], own_cases: &own_cases })
        };
        assert!(held(&[("CPY(tcq2)", Outcome::Passed)]).is_good());
        assert_eq!(held(&[("CPY(tcq2)", Outcome::Passed)]).own, 1);
        assert!(!held(&[("CPY(tcq2)", failed("x"))]).is_good());
        assert!(!held(&[("CPY(tcq2)", Outcome::Skipped)]).is_good());
        assert!(!held(&[("CPY(q9)", Outcome::Passed)]).is_good());
        assert_eq!(held(&[]).unseen, ["tcq"], "a name that no case has any more");
        assert!(!held(&[]).is_good());
    }

    #[test]
    fn a_test_that_fails_at_another_place_or_is_missing_differs() {
        let stock = outcomes(&[("a", failed("1")), ("b", Outcome::Passed), ("c", Outcome::Passed)]);
        let ours = outcomes(&[("a", failed("2")), ("c", Outcome::Passed), ("d", Outcome::Skipped)]);
        let tests: Vec<String> = differences(&stock, &ours).iter().map(Difference::line).collect();
        assert_eq!(
            tests,
            [
                "a: failed (1) on stock, failed (2) on ours",
                "b: passed on stock, absent on ours",
                "d: absent on stock, skipped on ours"
            ]
        );
    }

    #[test]
    fn a_test_that_passed_on_ours_needs_no_outcome_on_stock() {
        let stock = outcomes(&[("a", Outcome::NotRun), ("b", failed("1"))]);
        let held = |ours: &[(&str, Outcome)]| hold("s", &stock, &outcomes(ours), Allowed::default());
        let both = held(&[("a", Outcome::Passed), ("b", failed("1"))]);
        assert!(both.is_good());
        assert_eq!((both.tests, both.passed, both.not_compared), (1, 0, 1));
        assert!(!held(&[("a", failed("1")), ("b", failed("1"))]).is_good());
        assert!(!held(&[("b", failed("1"))]).is_good(), "ours has no such test");
    }

    #[test]
    fn only_the_listed_difference_is_expected() {
        let stock = outcomes(&[("a", Outcome::Passed), ("b", Outcome::Passed)]);
        let how = "test_a.py:62: assert a == b: assert 512 == 256";
        let ours = outcomes(&[("a", failed(how)), ("b", failed(how))]);
        let held = hold("s", &stock, &ours, allowed(&[listed("a")]));
        assert_eq!((held.expected.len(), held.unexpected.len()), (1, 1));
        assert_eq!(held.unexpected[0].test, "b");
        assert!(!held.is_good());
    }

    #[test]
    fn a_listed_test_that_ends_in_another_way_is_not_expected() {
        let stock = outcomes(&[("a", Outcome::Passed)]);
        let ours = outcomes(&[("a", Outcome::Crashed(String::new()))]);
        assert_eq!(hold("s", &stock, &ours, allowed(&[listed("a")])).unexpected.len(), 1);
    }

    #[test]
    fn a_listed_test_that_fails_for_another_reason_is_not_expected() {
        let stock = outcomes(&[("a", Outcome::Passed)]);
        let held = |how: &str| hold("s", &stock, &outcomes(&[("a", failed(how))]), allowed(&[listed("a")]));
        assert!(held("test_a.py:62: assert a == b: assert 512 == 256").is_good());
        let hangs = held("test_a.py:60: server.start(): TimeoutError");
        assert_eq!((hangs.unexpected.len(), hangs.vanished.len()), (1, 0));
        assert!(!hangs.is_good());
    }

    #[test]
    fn a_listed_difference_that_is_none_is_a_failure() {
        let both = outcomes(&[("a", Outcome::Passed)]);
        let held = hold("s", &both, &both, allowed(&[listed("a")]));
        assert_eq!(held.vanished.iter().map(Vanished::to_string).collect::<Vec<_>>(), ["a (r)"]);
        assert!(!held.is_good());
        assert!(hold("s", &both, &both, Allowed::default()).is_good());
        let by_rounding = Expected { by_rounding: true, ..listed("a") };
        assert!(
            hold("s", &both, &both, allowed(&[by_rounding])).is_good(),
            "another processor may round alike"
        );
    }

    #[test]
    fn a_suite_in_which_no_test_passes_fails() {
        let both = outcomes(&[("a", failed("x"))]);
        assert!(!hold("s", &both, &both, Allowed::default()).is_good());
        assert!(!hold("s", &Outcomes::new(), &Outcomes::new(), Allowed::default()).is_good());
    }

    /// Returns whether it is luck, and the numbers of runs alone on stock and on ours. `stock` begins with the outcome of
    /// the first run.
    fn luck(stock: &[Outcome], ours: &[Outcome]) -> (bool, usize, usize) {
        let (mut on_stock, mut on_ours) = (stock[1..].iter(), ours.iter());
        let next = |outcomes: &mut std::slice::Iter<'_, Outcome>| Ok(outcomes.next().unwrap().clone());
        let (stock_alone, ours_alone) = (|| next(&mut on_stock), || next(&mut on_ours));
        let is_luck = is_luck(stock[0].clone(), ours.len(), stock_alone, ours_alone).unwrap();
        (is_luck, stock.len() - 1 - on_stock.len(), ours.len() - on_ours.len())
    }

    #[test]
    fn a_difference_counts_unless_each_outcome_is_one_of_stocks() {
        let (passed, failed) = (|| Outcome::Passed, || failed("x"));
        assert_eq!(luck(&[passed()], &[passed(), passed(), passed()]), (true, 0, 3));
        let once = [passed(), passed(), failed()];
        assert_eq!(luck(&once, &[failed(), passed(), failed()]), (true, 2, 3));
        let never = [passed(), passed(), passed(), passed()];
        assert_eq!(luck(&never, &[passed(), failed(), passed()]), (false, 3, 2));
        assert_eq!(luck(&[passed()], &[]), (false, 0, 0));
    }
}
