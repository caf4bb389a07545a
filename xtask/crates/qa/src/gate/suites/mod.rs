//! Gate part: upstream's own tests, on stock and on ours, compared outcome by outcome.
//!
//! Tests need not pass: many require models from the network, and fail with a tiny one. Outcomes on ours must match
//! those on stock; allowed differences are listed with a reason.

pub mod declared;
mod outcome;
mod programs;
mod server_tests;
mod verdict;

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
pub fn compare(context: &Context, sides: &Sides<'_>) -> Result<Compared> {
    let Sides { reference, variant, pin, has_kernels, .. } = *sides;
    let suites = read_list(context, pin)?;
    let gate = SuiteGate::prepare(context, &suites)?;
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

struct SuiteGate<'a> {
    context: &'a Context,
    suites: &'a Suites,
    packages: PathBuf,
}

impl<'a> SuiteGate<'a> {
    fn prepare(context: &'a Context, suites: &'a Suites) -> Result<SuiteGate<'a>> {
        // Without it the tests fail alike on both sides.
        context.file_of_espalier(SMOKE_MODEL)?;
        let _lock = run_lock::take(&context.layout, &context.ui, Access::Build)?;
        let requirements = context.layout.suites().join("requirements.txt");
        let packages = tools::python_packages(&requirements, &context.layout, context.offline, &context.ui)?;
        Ok(SuiteGate { context, suites, packages })
    }

    /// Compares the test programs. What passes on ours needs no comparison, except that a program with cases runs on
    /// stock too: ours may report fewer of them.
    fn compare_programs(&self, reference: &str, (variant, has_features): (&str, bool)) -> Result<Held> {
        let all = &self.suites.programs[..];
        let with_cases: Vec<Program> = all.iter().filter(|program| program.cases).cloned().collect();
        // These run on stock whatever the outcomes on ours. The longest source file is among theirs, and keeps only one
        // core busy at the end.
        let mut folders = self.compile(vec![(variant, all), (reference, &with_cases[..])])?.into_iter();
        let (on_ours, on_stock) = (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        let ours = self.programs(variant, has_features, (on_ours, all.to_vec()));
        let outcomes = self.run("programs on ours", &ours)?;
        let (passed, due) = programs::without_comparison(all, &outcomes);
        if due.iter().any(|program| !program.cases) {
            self.compile(vec![(reference, &due[..])])?;
        }
        let stock = self.programs(reference, false, (on_stock, due));
        let expected = self.run("programs on stock", &stock)?;
        let outcomes: Outcomes = outcomes.into_iter().filter(|(test, _)| !passed.contains(test)).collect();
        let own_cases: &[String] = if has_features { &self.suites.own_cases } else { &[] };
        let allowed = Allowed { own_cases, ..Allowed::default() };
        let held = self.hold("programs", (&stock, &expected), (&ours, &outcomes), allowed)?;
        Ok(Held { silent: stock.silent(&expected), not_compared: passed.len(), ..held })
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

    /// Compares the server tests.
    fn compare_servers(&self, reference: &str, variant: &str, has_pool: bool) -> Result<Vec<Held>> {
        let stock = self.server_tests(reference, false);
        let ours = [("server tests", false, &[][..]), ("server tests, paged", true, &self.suites.paged[..])];
        let ours: Vec<OursOf<'_>> = ours
            .into_iter()
            .filter(|(_, paged, _)| has_pool || !paged)
            .map(|(side, paged, listed)| OursOf { side, listed, suite: self.server_tests(variant, paged) })
            .collect();
        let mut runs = vec![("server tests on stock".to_string(), &stock)];
        runs.extend(ours.iter().map(|ours| (format!("{} on ours", ours.side), &ours.suite)));
        let mut outcomes = self.run_in_parts(&runs)?.into_iter();
        let expected = outcomes.next().unwrap_or_default();
        let own_tests = self.own_tests(variant)?;
        let hold = |(ours, outcomes): (&OursOf<'_>, Outcomes)| {
            let allowed = Allowed { listed: ours.listed, own_cases: &own_tests };
            self.hold(ours.side, (&stock, &expected), (&ours.suite, &outcomes), allowed)
        };
        ours.iter().zip(outcomes).map(hold).collect()
    }

    /// Runs server tests in parts, two for each core at the same time: each keeps half a core busy. Those on stock, the
    /// first run, are the shortest, and are begun last.
    fn run_in_parts(&self, runs: &[(String, &ServerSuite<'_>)]) -> Result<Vec<Outcomes>> {
        let parts = (0..runs.len()).rev().flat_map(|run| (0..PARTS).map(move |part| (run, part))).collect();
        let done = few_at_once(2 * load::cores(), parts, |(run, part)| {
            let (what, suite) = &runs[run];
            self.context.ui.status("Running", format!("upstream's {what}, part {} of {PARTS}", part + 1));
            Ok((run, suite.part(part)?))
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
        self.context.ui.status("Running", format!("upstream's {what}"));
        programs.all()
    }

    fn hold(&self, side: &str, stock: Side<'_>, ours: Side<'_>, allowed: Allowed<'_>) -> Result<Held> {
        let mut held = verdict::hold(side, stock.1, ours.1, allowed);
        if held.unexpected.len() <= TOO_MANY_FOR_LUCK {
            for difference in std::mem::take(&mut held.unexpected) {
                let luck = self.is_luck(&difference, stock.0, ours.0)?;
                if luck { held.flaky.push(difference) } else { held.unexpected.push(difference) }
            }
        }
        Ok(held)
    }

    /// Reruns a test with differing outcomes alone, on both sides; returns whether the difference is flaky.
    fn is_luck(&self, difference: &Difference, stock: &dyn Suite, ours: &dyn Suite) -> Result<bool> {
        let Difference { test, stock: first, .. } = difference;
        if *first == Outcome::Absent {
            return Ok(false); // stock has no such test to run
        }
        self.context.ui.status("Running", format!("{test} alone, up to {AGAIN} times on each side"));
        let alone = |suite: &dyn Suite| -> Result<Outcome> {
            Ok(suite.alone(test)?.remove(test).unwrap_or(Outcome::Absent))
        };
        verdict::is_luck(first.clone(), AGAIN, || alone(stock), || alone(ours))
    }
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
