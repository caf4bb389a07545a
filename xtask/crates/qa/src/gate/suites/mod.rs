//! Gate part: upstream's own tests, on stock and on ours, compared outcome by outcome.
//!
//! Tests need not pass: many require models from the network, and fail with a tiny one. Outcomes on ours must match
//! those on stock; allowed differences are listed with a reason.

mod cases;
pub mod declared;
mod outcome;
mod programs;
mod server_tests;
mod verdict;

use std::collections::BTreeSet;
use std::path::PathBuf;

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::layout::SMOKE_MODEL;
use espalier_core::config::name::Name;
use espalier_core::config::snippet::SourceText;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::{at_once, few_at_once};
use espalier_core::sys::machine::{disk, load, tools};
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_dist::build::{Build, Options};
use espalier_patches::stack::Stack;
use serde_json::{Value, json};

use self::outcome::{Outcome, Outcomes};
use self::programs::Programs;
use self::server_tests::{PARTS, ServerSuite};
use self::verdict::{Allowed, Difference, Held};
use super::Sides;
use crate::gate::suites::declared as suites;
use crate::gate::suites::declared::{Expected, OnPin, Program, Suites};

/// Results of all comparisons.
pub struct Compared(Vec<Held>);

/// Runs every suite on both variants; continues after a difference and returns an error at the end. Without the kernels
/// the paged server tests are skipped.
pub fn compare(context: &Context, sides: &Sides<'_>, use_of: UseOfRecord) -> Result<Compared> {
    let Sides { reference, variant, pin, has_kernels, .. } = *sides;
    let suites = read_list(context, pin)?;
    let record = StockCases::read(context, sides, use_of)?;
    let gate = SuiteGate::prepare(context, &suites, record)?;
    let mut held = vec![gate.compare_programs(reference, (variant, has_kernels))?];
    held.extend(gate.compare_servers(reference, variant, has_kernels)?);
    let compared = Compared(held);
    let report = context.layout.suite_work("report.json");
    disk::write_atomically(&report, compared.to_json().to_string().as_bytes())?;
    let hint = format!("all differences: {}; the logs are beside it", context.layout.show(&report));
    compared.verdict(reference, variant).map_err(|error| error.hint(hint))?;
    Ok(compared)
}

/// Maximum number of failures shown: a program that crashes leaves thousands of cases unreported.
const SHOWN: usize = 40;

fn read_list(context: &Context, pin: &Name) -> Result<Suites> {
    let (text, pins) = (disk::read_text(&context.file_of_espalier(verdict::LIST)?)?, context.pins()?);
    Suites::parse(SourceText { name: verdict::LIST, text: &text }, OnPin { pins: &pins, pin })
}

/// Maximum number of times a test with differing outcomes is rerun, alone, on each side.
const AGAIN: usize = 3;

/// Maximum number of differing tests that are rerun; more cannot be flakiness.
const TOO_MANY_FOR_LUCK: usize = 20;

/// Use of the recorded cases of stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseOfRecord {
    /// A program whose cases end on ours as recorded is not run on stock.
    Compare,
    /// Everything with cases is run on stock and recorded.
    Record,
}

/// The recorded cases of the stock side.
struct StockCases {
    /// Git tree of the sources, if they are upstream's own: cases are recorded for no other.
    tree: Option<String>,
    record: cases::Record,
    use_of: UseOfRecord,
}

impl StockCases {
    fn read(context: &Context, sides: &Sides<'_>, use_of: UseOfRecord) -> Result<StockCases> {
        let pins = context.pins()?;
        let reference = pins.variant(Some(sides.reference))?;
        let is_upstream = Stack::read(&context.layout, &pins, reference)?.files.is_empty();
        let tree = is_upstream.then(|| pins.pin_of(reference).tree.to_string());
        if tree.is_none() && use_of == UseOfRecord::Record {
            let what =
                format!("`{}` has patches, and cases are recorded for upstream's own trees", reference.name);
            return Err(Error::usage(what).hint("gate a variant whose `gate` has no patches"));
        }
        let text = disk::read_if_there(&context.layout.root().join(cases::RECORD))?;
        let record = text.map(|text| cases::read(&espalier_series::lossy(&text))).transpose()?;
        Ok(StockCases { tree, record: record.unwrap_or_default(), use_of })
    }

    /// Returns the recorded cases of a program.
    fn of(&self, program: &Program) -> Option<&cases::Recorded> {
        let programs = self.tree.as_ref().filter(|_| self.use_of == UseOfRecord::Compare);
        programs.and_then(|tree| self.record.get(tree)?.get(&program.name()))
    }

    /// Records the cases of stock among `outcomes`, if that is wanted.
    fn keep(&self, context: &Context, programs: &[Program], outcomes: &Outcomes) -> Result<()> {
        let (Some(tree), UseOfRecord::Record) = (&self.tree, self.use_of) else { return Ok(()) };
        let recorded = |program: &Program| {
            let cases = cases::of(&program.name(), outcomes, |_| false);
            (program.name(), cases.record(disk::sha256))
        };
        let with_cases = programs.iter().filter(|program| program.cases);
        let pins = context.pins()?;
        let mut record = self.record.clone();
        record.retain(|tree, _| pins.pins.values().any(|pin| pin.tree.to_string() == *tree));
        record.insert(tree.clone(), with_cases.map(recorded).collect());
        context.ui.status("Recording", format!("the cases of stock in {}", cases::RECORD));
        disk::write_atomically(&context.layout.root().join(cases::RECORD), cases::render(&record).as_bytes())
    }
}

struct SuiteGate<'a> {
    context: &'a Context,
    suites: &'a Suites,
    record: StockCases,
    packages: PathBuf,
}

impl<'a> SuiteGate<'a> {
    fn prepare(context: &'a Context, suites: &'a Suites, record: StockCases) -> Result<SuiteGate<'a>> {
        // Without it the tests fail alike on both sides.
        context.file_of_espalier(SMOKE_MODEL)?;
        let _lock = run_lock::take(&context.layout, &context.ui, Access::Build)?;
        let requirements = context.layout.suites().join("requirements.txt");
        let packages = tools::python_packages(&requirements, &context.layout, context.offline, &context.ui)?;
        Ok(SuiteGate { context, suites, record, packages })
    }

    /// Compares the test programs. What passes on ours needs no comparison; but a program with cases may report fewer of
    /// them on ours, so they have to be those that are recorded of stock, or it is run there too.
    fn compare_programs(&self, reference: &str, (variant, has_features): (&str, bool)) -> Result<Held> {
        let all = &self.suites.programs[..];
        let is_unknown = |program: &&Program| program.cases && self.record.of(program).is_none();
        // These run on stock whatever the outcomes on ours. The longest source file is among theirs, and keeps only one
        // core busy at the end.
        let unknown: Vec<Program> = all.iter().filter(is_unknown).cloned().collect();
        let sides = [(variant, all), (reference, &unknown[..])];
        let sides = sides.into_iter().filter(|(_, programs)| !programs.is_empty()).collect();
        let mut folders = self.compile(sides)?.into_iter();
        let (on_ours, on_stock) = (folders.next().unwrap_or_default(), folders.next());
        let ours = self.programs(variant, has_features, (on_ours, all.to_vec()));
        let outcomes = self.run("programs on ours", &ours)?;
        let own_cases: &[String] = if has_features { &self.suites.own_cases } else { &[] };
        let is_own = |test: &str| own_cases.iter().any(|part| test.contains(part));
        let is_recorded = |program: &Program| {
            let cases = cases::of(&program.name(), &outcomes, is_own).record(disk::sha256);
            self.record.of(program) == Some(&cases)
        };
        let (passed, due) = programs::without_comparison(all, &outcomes, is_recorded);
        let on_stock = on_stock.filter(|_| due.iter().all(|program| is_unknown(&program)));
        let stock = self.stock_programs(reference, due, on_stock)?;
        let expected = self.run("programs on stock", &stock)?;
        let is_of_passed = |test: &str| passed.contains(test.split(programs::CASE).next().unwrap_or(test));
        let is_settled = |test: &str| is_of_passed(test) && !is_own(test);
        let (settled, outcomes): (Outcomes, Outcomes) =
            outcomes.into_iter().partition(|(test, _)| is_settled(test));
        let allowed = Allowed { own_cases, ..Allowed::default() };
        let held = self.hold("programs", (&stock, &expected), (&ours, &outcomes), allowed)?;
        let held = Held { silent: stock.silent(&expected), not_compared: settled.len(), ..held };
        if held.is_good() {
            self.record.keep(self.context, &stock.programs, &expected)?;
        }
        Ok(held)
    }

    /// Returns the programs that are due on stock, and compiles them unless they are in the folder `compiled`.
    fn stock_programs(
        &self,
        reference: &str,
        due: Vec<Program>,
        compiled: Option<PathBuf>,
    ) -> Result<Programs> {
        let folder = match compiled {
            Some(folder) => Some(folder),
            None if due.is_empty() => None,
            None => self.compile(vec![(reference, &due[..])])?.into_iter().next(),
        };
        Ok(self.programs(reference, false, (folder.unwrap_or_default(), due)))
    }

    fn programs(
        &self,
        variant: &str,
        has_features: bool,
        (folder, programs): (PathBuf, Vec<Program>),
    ) -> Programs {
        let layout = &self.context.layout;
        let work = layout.suite_work(&format!("{variant}-programs"));
        let (tree, model) = (layout.tree(variant), layout.smoke_model());
        Programs { folder, programs, has_features, tree, work, model }
    }

    /// Compiles programs of these variants, at the same time, and returns the folders that they are in.
    fn compile(&self, sides: Vec<(&str, &[Program])>) -> Result<Vec<PathBuf>> {
        let (pins, flavors) = (self.context.pins()?, self.context.flavors()?);
        // As many for each side, because one ends long before the other. Ninja alone would start two more.
        let jobs = (sides.len() > 1).then(load::cores);
        let jobs = jobs.and_then(|jobs| u32::try_from(jobs).ok());
        let options = Options { jobs, ..Options::default() };
        let flavor = flavors.get(DEFAULT_FLAVOR)?;
        let _lock = run_lock::take(&self.context.layout, &self.context.ui, Access::Build)?;
        at_once(sides, |(variant, programs)| {
            let variant = pins.variant(Some(variant))?;
            let (context, options, pins, flavors) = (self.context, &options, &pins, &flavors);
            let build = Build { context, options, pins, variant, flavors, flavor };
            build.compile_tests(&suites::targets(programs))
        })
    }

    /// Compares the server tests. Stock runs those that did not pass on ours, in every mode, and those whose outcomes
    /// should differ.
    fn compare_servers(&self, reference: &str, variant: &str, has_pool: bool) -> Result<Vec<Held>> {
        let stock = self.server_tests(reference, false);
        let ours = [("server tests", false, &[][..]), ("server tests, paged", true, &self.suites.paged[..])];
        let ours: Vec<OursOf<'_>> = ours
            .into_iter()
            .filter(|(_, paged, _)| has_pool || !paged)
            .map(|(side, paged, listed)| OursOf { side, listed, suite: self.server_tests(variant, paged) })
            .collect();
        let runs: Vec<_> = ours.iter().map(|ours| (format!("{} on ours", ours.side), &ours.suite)).collect();
        let outcomes = self.run_in_parts(&runs, &BTreeSet::new())?;
        let settled = settled(&outcomes, &self.suites.paged);
        let on_stock = self.run_in_parts(&[("server tests on stock".to_string(), &stock)], &settled)?;
        let expected = on_stock.into_iter().next().unwrap_or_default();
        let own_tests = self.own_tests(variant)?;
        let hold = |(ours, outcomes): (&OursOf<'_>, Outcomes)| {
            let allowed = Allowed { listed: ours.listed, own_cases: &own_tests };
            self.hold(ours.side, (&stock, &expected), (&ours.suite, &outcomes), allowed)
        };
        ours.iter().zip(outcomes).map(hold).collect()
    }

    /// Runs server tests in parts, three for each core at the same time, because the tests mostly wait. The first part
    /// of each run takes longest.
    fn run_in_parts(
        &self,
        runs: &[(String, &ServerSuite<'_>)],
        settled: &BTreeSet<String>,
    ) -> Result<Vec<Outcomes>> {
        let parts = (0..PARTS).flat_map(|part| (0..runs.len()).map(move |run| (run, part))).collect();
        let done = few_at_once(3 * load::cores(), parts, |(run, part)| {
            let (what, suite) = &runs[run];
            self.context.ui.status("Running", format!("upstream's {what}, part {} of {PARTS}", part + 1));
            Ok((run, suite.part(part, settled)?))
        })?;
        let mut all = vec![Outcomes::new(); runs.len()];
        for (run, outcomes) in done {
            all[run].extend(outcomes);
        }
        Ok(all)
    }

    /// Returns name parts of tests that the patches of `variant`, of a variant it extends, or of the one that it is
    /// like, add.
    fn own_tests(&self, variant: &str) -> Result<Vec<String>> {
        let pins = self.context.pins()?;
        let stack = pins.stack(pins.variant(Some(variant))?);
        let names = stack.iter().flat_map(|below| [Some(&below.name), below.like.as_ref()]).flatten();
        Ok(self.suites.own_tests(&names.map(|name| name.as_str()).collect::<Vec<_>>()))
    }

    fn server_tests(&self, variant: &str, paged: bool) -> ServerSuite<'_> {
        let layout = &self.context.layout;
        let name = if paged { format!("{variant}-server-paged") } else { format!("{variant}-server") };
        ServerSuite {
            tests: &self.suites.server_tests,
            tree: layout.tree(variant),
            server: layout.server(variant, DEFAULT_FLAVOR),
            paged,
            python_path: [layout.suites(), self.packages.clone()],
            work: layout.suite_work(&name),
            model: layout.smoke_model(),
        }
    }

    fn run(&self, what: &str, programs: &Programs) -> Result<Outcomes> {
        if !programs.programs.is_empty() {
            self.context.ui.status("Running", format!("upstream's {what}"));
        }
        programs.all()
    }

    fn hold(&self, side: &str, stock: Side<'_>, ours: Side<'_>, allowed: Allowed<'_>) -> Result<Held> {
        let mut held = verdict::hold(side, stock.1, ours.1, allowed);
        for vanished in std::mem::take(&mut held.vanished) {
            let alike = Difference::of(&vanished.test, stock.1, ours.1);
            match self.expected_again(&alike, stock.0, allowed.listed)? {
                Some(expected) => held.expected.push(expected),
                None => held.vanished.push(vanished),
            }
        }
        if held.unexpected.len() <= TOO_MANY_FOR_LUCK {
            for difference in std::mem::take(&mut held.unexpected) {
                if let Some(expected) = self.expected_again(&difference, stock.0, allowed.listed)? {
                    held.expected.push(expected);
                    continue;
                }
                let is_own = allowed.own_cases.iter().any(|part| difference.test.contains(part));
                let luck = self.is_luck(&difference, stock.0, ours.0, is_own)?;
                if luck { held.flaky.push(difference) } else { held.unexpected.push(difference) }
            }
        }
        Ok(held)
    }

    /// Reruns a test alone on stock for which a difference is listed from another outcome there: upstream's tests fail
    /// now and then too. Returns the difference from the new outcome if that is the listed one.
    fn expected_again(
        &self,
        difference: &Difference,
        stock: &dyn Suite,
        listed: &[Expected],
    ) -> Result<Option<Difference>> {
        if !verdict::has_another_outcome_on_stock(listed, difference) {
            return Ok(None);
        }
        self.context.ui.status("Running", format!("{} alone, up to {AGAIN} times on stock", difference.test));
        for _ in 0..AGAIN {
            let again = Difference { stock: alone(stock, &difference.test)?, ..difference.clone() };
            if verdict::is_expected(listed, &again) {
                return Ok(Some(again));
            }
        }
        Ok(None)
    }

    /// Reruns a test with differing outcomes alone, on both sides; returns whether the difference is flaky. A test that
    /// only ours has is run on ours, and has to pass.
    fn is_luck(
        &self,
        difference: &Difference,
        stock: &dyn Suite,
        ours: &dyn Suite,
        is_own: bool,
    ) -> Result<bool> {
        let Difference { test, stock: first, .. } = difference;
        let is_absent = *first == Outcome::Absent;
        if is_absent && !is_own {
            return Ok(false); // stock has no such test to run
        }
        self.context.ui.status("Running", format!("{test} alone, up to {AGAIN} times on each side"));
        if is_absent {
            let passes = || Ok(Outcome::Passed);
            return verdict::is_luck(Outcome::Passed, AGAIN, passes, || alone(ours, test));
        }
        verdict::is_luck(first.clone(), AGAIN, || alone(stock, test), || alone(ours, test))
    }
}

/// Runs one test alone.
fn alone(suite: &dyn Suite, test: &str) -> Result<Outcome> {
    Ok(suite.alone(test)?.remove(test).unwrap_or(Outcome::Absent))
}

/// Returns the tests that passed in each of these runs, unless a difference from stock is listed for them.
fn settled(runs: &[Outcomes], listed: &[Expected]) -> BTreeSet<String> {
    let Some((first, others)) = runs.split_first() else { return BTreeSet::new() };
    let has_passed = |run: &Outcomes, test: &String| run.get(test) == Some(&Outcome::Passed);
    let is_listed = |test: &String| listed.iter().any(|one| one.tests.contains(test));
    let passed = first.keys().filter(|test| has_passed(first, test));
    let passed = passed.filter(|test| others.iter().all(|run| has_passed(run, test)));
    passed.filter(|test| !is_listed(test)).cloned().collect()
}

/// Tests that can be run again one by one.
trait Suite {
    /// Runs one test alone.
    fn alone(&self, test: &str) -> Result<Outcomes>;
}

/// A suite on one side and its outcomes.
type Side<'a> = (&'a dyn Suite, &'a Outcomes);

/// The server tests with our server, in one of its modes.
struct OursOf<'a> {
    side: &'static str,
    /// Allowed differences.
    listed: &'a [Expected],
    suite: ServerSuite<'a>,
}

impl Compared {
    /// Returns one line per suite.
    pub fn summary(&self) -> String {
        self.0.iter().map(Held::summary).collect::<Vec<_>>().join("\n")
    }

    /// Returns an error if a comparison has failures.
    fn verdict(&self, reference: &str, variant: &str) -> Result<()> {
        if self.0.iter().all(Held::is_good) {
            return Ok(());
        }
        let failures: Vec<String> = self.0.iter().flat_map(Held::failures).collect();
        let what = format!(
            "upstream's own tests end differently on {variant} and {reference}: {} differences",
            failures.len()
        );
        let shown = failures.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
        Err(Error::no(what).detail(shown))
    }

    /// JSON form, for a report.
    pub fn to_json(&self) -> Value {
        json!(self.0.iter().map(Held::to_json).collect::<Vec<_>>())
    }
}
