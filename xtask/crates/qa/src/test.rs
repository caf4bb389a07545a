//! `cargo xtask test`: the checks that CI's `test` job runs, as named steps that can be run alone.

mod inputs;
pub mod tested;

use std::time::{Duration, Instant};

use clap::Args;
use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::config::models::MODEL_OF_CHECKS;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::{self, Run};
use espalier_core::sys::machine::{disk, scratch};
use espalier_core::sys::project::pinned_models::{self, Provided};
use espalier_dist::build_args::Which;
use espalier_dist::{build, packaged, smoke, smoke_rpc};
use espalier_patches::lint;
use espalier_patches::lock;
use serde_json::json;
use xtask::cmd::workflows;

use self::inputs::Inputs;
use super::{docs, page};
use crate::bench::{self, kv_quality};
use crate::docs::CommandsPage;
use crate::gate;
use crate::test::tested::{PARTS, UnitTestPart};

/// Options of `test`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Run only this step, or with `--long` only this flavor; repeatable.
    #[arg(long, value_name = "STEP")]
    pub only: Vec<String>,
    /// List the steps.
    #[arg(long)]
    pub list: bool,
    /// Skip steps that already passed in this checkout with the same inputs, and list them; ignored if `CI` is set.
    #[arg(long, conflicts_with = "long")]
    pub changed: bool,
    /// Build every flavor that this machine supports from scratch, and record each in ci/proofs/; takes hours.
    #[arg(long, conflicts_with = "list")]
    pub long: bool,
    /// Print the steps that would run, and why; with `--long`, what would be built.
    #[arg(long, conflicts_with = "list")]
    pub dry_run: bool,
}

/// One check.
struct Step {
    name: &'static str,
    about: &'static str,
    /// Takes the reference of all commands too, as docs/reference should contain it.
    run: fn(&Context, &Options, &[CommandsPage]) -> Result<()>,
}

const STEPS: [Step; 15] = [
    Step { name: "fmt", about: "all Rust code is formatted", run: |context, _, _| fmt(context) },
    Step {
        name: "clippy",
        about: "Clippy has no warning in any target",
        run: |context, _, _| clippy(context),
    },
    Step {
        name: "lint",
        about: "every patch has the required form",
        run: |context, _, _| lint::check(context),
    },
    Step {
        name: "workflows",
        about: "actionlint, zizmor and our own rules accept .github/workflows",
        run: |context, _, _| workflows::check(context),
    },
    Step {
        name: "docs",
        about: "generated documents are up to date",
        run: |context, _, commands| docs::check(context, commands),
    },
    Step {
        name: "paged",
        about: "the paged variant builds from the pin and passes the smoke test",
        run: |context, _, _| build_paged(context),
    },
    Step {
        name: "stock",
        about: "the stock variant builds from the pin and passes the smoke test",
        run: |context, _, _| build_stock(context),
    },
    Step {
        name: "lock",
        about: "espalier.lock is up to date with pins, patches and overlays",
        run: |context, _, _| check_lock(context),
    },
    Step {
        name: "smoke",
        about: "the packaged servers answer, also with their model in another process",
        run: |context, _, _| smoke_both(context),
    },
    Step {
        name: "page",
        about: "the servers' web page works in a browser, if there is a Chromium",
        run: |context, _, _| use_pages(context),
    },
    // After the builds, which install CMake and Ninja: these tests use them too.
    Step {
        name: "unit",
        about: "all tests of the tool, the kernels and the front pass",
        run: |context, options, _| unit(context, options),
    },
    Step {
        name: "gate",
        about: "logits and answers of paged match stock's",
        run: |context, _, _| run_gate(context),
    },
    Step {
        name: "quality",
        about: "no KV cache type costs a model more than ci/kv-quality.json allows",
        run: |context, _, _| look_at_quality(context),
    },
    Step {
        name: "weights",
        about: "chats and KV cache types work on real weights, if pip can get them",
        run: |context, _, _| look_at_weights(context),
    },
    Step {
        name: "suites",
        about: "upstream's own tests end on paged as on stock",
        run: |context, _, _| run_suites(context),
    },
];

/// Runs the steps, continues after a failure, and reports at the end how long each took. `commands` is the reference of
/// all commands.
pub fn run(context: &Context, options: &Options, commands: &[CommandsPage]) -> Result<Outcome> {
    let steps = chosen(&options.only)?;
    if options.list {
        let lines: Vec<String> =
            steps.iter().map(|step| format!("{:<9} {}", step.name, step.about)).collect();
        let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
        return Ok(Outcome::ok(lines.join("\n"), json!({ "steps": names })));
    }
    let inputs = Inputs::read(context, options.changed)?;
    let (mut due, mut left_out) = (Vec::new(), Vec::new());
    for step in steps {
        let to = if inputs.leave_out(context, step.name)? { &mut left_out } else { &mut due };
        to.push(step);
    }
    for step in &left_out {
        let why = "it passed here, and nothing that it reads has changed since";
        context.ui.status("Skipping", format!("{}: {why}", step.name));
    }
    if options.dry_run {
        return plan(context, options, &due, &inputs);
    }
    let given = (options, commands);
    let results: Vec<Done> = due.into_iter().map(|step| do_step(context, given, step, &inputs)).collect();
    let mut outcome = summary(&results);
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|step| step.name).collect();
        outcome.text += &format!("\nleft out, unchanged since they passed here: {}", names.join(" "));
        outcome.json["left_out"] = json!(names);
    }
    Ok(outcome)
}

/// Returns the steps that would run, each with the reason under `--changed`.
fn plan(context: &Context, options: &Options, due: &[&Step], inputs: &Inputs) -> Result<Outcome> {
    let lines: Vec<String> =
        due.iter().map(|step| described(context, options, step, inputs)).collect::<Result<_>>()?;
    let names: Vec<&str> = due.iter().map(|step| step.name).collect();
    Ok(Outcome::ok(lines.join("\n"), json!({ "steps": names })))
}

/// Returns the line about a step that runs: its name, what it checks, and under `--changed` the reason.
fn described(context: &Context, options: &Options, step: &Step, inputs: &Inputs) -> Result<String> {
    let reason = if options.changed { inputs.reason(context, step.name)? } else { None };
    let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    Ok(format!("{}: {}{reason}", step.name, step.about))
}

fn chosen(only: &[String]) -> Result<Vec<&'static Step>> {
    for name in only {
        if !STEPS.iter().any(|step| step.name == name) {
            let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            return Err(Error::usage(format!("there is no step `{name}`"))
                .hint(format!("use one of: {}", known.join(", "))));
        }
    }
    Ok(STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|name| name == step.name)).collect())
}

/// The result of a step, or of a build.
pub(super) struct Done {
    pub(super) name: String,
    pub(super) took: Duration,
    pub(super) error: Option<Error>,
}

fn do_step(
    context: &Context,
    (options, commands): (&Options, &[CommandsPage]),
    step: &Step,
    inputs: &Inputs,
) -> Done {
    let begin = Instant::now();
    let outcome = described(context, options, step, inputs).and_then(|line| {
        context.ui.status("Testing", line);
        (step.run)(context, options, commands)
    });
    let remembered = inputs.remember(context, step.name, outcome.is_ok());
    let error = outcome.and(remembered).err();
    if let Some(error) = &error {
        context.ui.warn(format!("{} failed\n{error}", step.name));
    }
    Done { name: step.name.to_string(), took: begin.elapsed(), error }
}

/// Builds the summary: the duration of each step, and the exit code of all.
pub(super) fn summary(results: &[Done]) -> Outcome {
    let width = results.iter().map(|done| done.name.len()).max().unwrap_or(0).max(9);
    let failed = results.iter().filter(|done| done.error.is_some()).count();
    let mut lines: Vec<String> = results
        .iter()
        .map(|done| {
            let verdict = if done.error.is_some() { "FAILED" } else { "ok" };
            format!("{:<width$} {verdict:<7} {:>7.1} s", done.name, done.took.as_secs_f64())
        })
        .collect();
    let total: f64 = results.iter().map(|done| done.took.as_secs_f64()).sum();
    lines.push(format!("{:<width$} {:<7} {total:>7.1} s", "all", ""));
    lines.push(format!("{} passed, {failed} failed", results.len() - failed));
    let entry = |done: &Done| {
        json!({
            "step": done.name,
            "seconds": done.took.as_secs_f64(),
            "error": done.error.as_ref().map(Error::to_json),
        })
    };
    let json = json!({ "steps": results.iter().map(entry).collect::<Vec<_>>(), "failed": failed });
    Outcome { text: lines.join("\n"), json, code: u8::from(failed > 0) }
}

fn cargo(context: &Context, arguments: &[&str]) -> Result<()> {
    succeed(checks(context, arguments)?)
}

/// Returns a cargo that checks the sources of the tool: only a clone of Espalier has them.
fn checks(context: &Context, arguments: &[&str]) -> Result<Run> {
    context.file_of_espalier("xtask/Cargo.toml")?;
    let run = match cfg!(windows) {
        // On Windows a running program cannot be replaced, and the tests link this one again.
        true => process::cargo(&context.layout.cargo_target("checks")),
        // Most of the tests' dependencies were compiled for this program already.
        false => process::cargo_here(),
    };
    Ok(run.args(arguments).current_folder(context.layout.root()))
}

fn succeed(run: Run) -> Result<()> {
    let words = run.words();
    let status = run.show()?;
    if status.success() { Ok(()) } else { Err(Error::no(format!("`{words}`: {}", process::ending(status)))) }
}

fn fmt(context: &Context) -> Result<()> {
    cargo(context, &["fmt", "--all", "--check"])
}

fn clippy(context: &Context) -> Result<()> {
    // Nothing else compiles the benchmarks of the kernels.
    let targets = ["--workspace", "--all-targets", "--features", "espalier-kernels/benches", "--locked"];
    cargo(context, &[&["clippy"], &targets[..], &["--", "--deny", "warnings"]].concat())
}

/// Runs the tests; with `--changed` only those of packages that have changed. They create and remove many small files,
/// some tens of megabytes at a time.
fn unit(context: &Context, options: &Options) -> Result<()> {
    const REQUIRED_BYTES: u64 = 512 << 20;
    let due = Inputs::read(context, options.changed)?.due_parts(context)?;
    let due: Vec<UnitTestPart> = due.into_iter().map(|(part, _)| part).collect();
    let scratch = scratch::in_memory(REQUIRED_BYTES);
    for arguments in test_arguments(&due, &repository_tests(context)?) {
        let run = checks(context, &["test", "--locked", "--no-fail-fast"])?.args(arguments);
        let run = run.env(TEST_THREADS, test_threads());
        succeed(scratch.iter().fold(run, |run, folder| run.env(scratch::VARIABLE, folder.path())))?;
    }
    Ok(())
}

/// Number of tests that a test program runs in parallel, as libtest reads it.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Two per core: most tests start programs, and wait for them and for the disk.
fn test_threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var(TEST_THREADS).unwrap_or_else(|_| (2 * cores).to_string())
}

/// Returns the arguments of cargo that run these parts: one call for whole packages, and one for single tests.
fn test_arguments(due: &[UnitTestPart], repository_tests: &[String]) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>();
    let (single, whole): (Vec<&UnitTestPart>, Vec<&UnitTestPart>) =
        due.iter().partition(|part| part.reading_the_repository);
    let packages = whole.iter().flat_map(|part| words(&["--package", part.package])).collect();
    let whole = if whole.len() == PARTS.len() { words(&["--workspace"]) } else { packages };
    let single = single.first().map(|part| {
        let tests = ["--package", part.package, "--test", "cli", "--"];
        [words(&tests), repository_tests.to_vec()].concat()
    });
    [Some(whole).filter(|arguments| !arguments.is_empty()), single].into_iter().flatten().collect()
}

/// Returns the modules of end-to-end tests that read files of this repository, as a filter of the test program. They
/// are found by the ways in which a test can name such a file, so that none has to be listed.
fn repository_tests(context: &Context) -> Result<Vec<String>> {
    const MARKERS: [&str; 3] = ["of_this_repository", "CARGO_MANIFEST_DIR", "own_copy"];
    let folder = context.layout.root().join("xtask/crates/qa/tests/cli");
    let mut modules = std::collections::BTreeSet::new();
    for file in disk::files_below(&folder)? {
        let text = disk::read_text(&folder.join(&file))?;
        let module = file.with_extension("").components().next().map(|part| part.as_os_str().to_owned());
        let module = module.and_then(|name| name.into_string().ok()).filter(|name| name != "support");
        if MARKERS.iter().any(|marker| text.contains(marker)) {
            modules.extend(module.map(|name| format!("cli::{name}::")));
        }
    }
    Ok(modules.into_iter().collect())
}

/// Nothing is shipped of it, and only its answers are compared.
fn build_stock(context: &Context) -> Result<()> {
    build_variant(context, "stock", true)
}

/// The product is tested if this folder has one. In a fresh clone a reference is enough, which compiles in half the
/// time; the jobs that ship and the weekly campaigns build the product.
fn build_paged(context: &Context) -> Result<()> {
    let reference = packaged::is_reference(context, "paged", DEFAULT_FLAVOR)?.unwrap_or(true);
    build_variant(context, "paged", reference)
}

fn build_variant(context: &Context, variant: &str, reference: bool) -> Result<()> {
    // Locked: a check must not change what it checks.
    let context = Context { locked: true, ..context.clone() };
    let which = build_of(&context, variant)?;
    build::run(&context, &build::Options { which, reference, ..Default::default() }).map(drop)
}

/// Returns the build of a variant that this repository has.
fn build_of(context: &Context, variant: &str) -> Result<Which> {
    let pins = context.pins()?;
    Ok(Which::of_variant(&pins.variant(Some(variant))?.name))
}

fn check_lock(context: &Context) -> Result<()> {
    lock::run(context, &lock::Options { check: true }).map(drop)
}

fn smoke_both(context: &Context) -> Result<()> {
    for variant in ["stock", "paged"] {
        let which = build_of(context, variant)?;
        smoke::command(context, &which)?;
        smoke_rpc::command(context, &which)?;
    }
    Ok(())
}

/// Runs the page check. Chromium and Node.js are not installed by this tool: where one is missing, the step reports
/// that and passes.
fn use_pages(context: &Context) -> Result<()> {
    if let Some(missing) = page::missing() {
        context.ui.warn(format!("the web page was not tested: {missing}"));
        return Ok(());
    }
    for variant in ["stock", "paged"] {
        if page::is_left_out(context, variant, DEFAULT_FLAVOR)? {
            let what =
                format!("the web page was not tested: {variant}-{DEFAULT_FLAVOR} was built without it");
            context.ui.warn(what);
            continue;
        }
        let options = page::Options { which: build_of(context, variant)?, screenshots: None };
        let outcome = page::run(context, &options)?;
        if outcome.code != 0 {
            return Err(Error::no(format!("the web page of {variant}-{DEFAULT_FLAVOR}")).detail(outcome.text));
        }
    }
    Ok(())
}

fn run_gate(context: &Context) -> Result<()> {
    compare_paged(context, &gate::GatePart::OF_PACKAGES)
}

fn look_at_quality(context: &Context) -> Result<()> {
    let baseline = Some(context.layout.root().join("ci/kv-quality.json"));
    let options = kv_quality::Options { baseline, quick: true, ..kv_quality::Options::default() };
    bench::run(context, &bench::Benchmark::KvQuality(options)).map(drop)
}

/// Runs the check on real weights. Network access is optional: where pip cannot fetch the weights, the step reports
/// that and passes. A file that differs from the pinned one is a failure.
fn look_at_weights(context: &Context) -> Result<()> {
    let models = context.models()?;
    let (name, model) = models.get(MODEL_OF_CHECKS)?;
    match pinned_models::provide(name, model, &context.layout, context.offline, &context.ui)? {
        Provided::Unreachable(error) => {
            context.ui.warn(format!("nothing was checked on real weights\n{error}"));
            Ok(())
        }
        Provided::File(_) => {
            compare_paged(context, &[gate::GatePart::Weights])?;
            let baseline = Some(context.layout.root().join("ci/kv-quality-weights.json"));
            let options = kv_quality::Options { baseline, weights: true, ..kv_quality::Options::default() };
            bench::run(context, &bench::Benchmark::KvQuality(options)).map(drop)
        }
    }
}

fn run_suites(context: &Context) -> Result<()> {
    compare_paged(context, &[gate::GatePart::Suites])
}

fn compare_paged(context: &Context, parts: &[gate::GatePart]) -> Result<()> {
    gate::run(context, &gate::Options { only: parts.to_vec(), ..gate::Options::default() }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::tested;
    use crate::test::tested::REPOSITORY;

    #[test]
    fn every_input_of_a_step_is_a_file_or_a_folder_of_this_project() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
        // `ci/lint.toml` may be missing: then the built-in rules apply.
        let is_missing = |path: &&str| *path != "ci/lint.toml" && !disk::exists(&root.join(path));
        let missing: Vec<&str> = tested::named_paths().into_iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?} moved: a step that reads it would be left out");
    }

    #[test]
    fn every_step_with_inputs_of_its_own_is_a_step() {
        for name in tested::described_steps().into_iter().chain(tested::BUILDS) {
            assert!(STEPS.iter().any(|step| step.name == name), "there is no step `{name}`");
        }
    }

    /// Modules of this crate, and the step that runs each; the other modules run in no step of their own.
    const CHECKS: [(&str, &str); 7] = [
        ("gate/logits", "gate"),
        ("gate/attention", "gate"),
        ("gate/servers", "gate"),
        ("serving", "gate"),
        ("gate/suites", "suites"),
        ("bench/kv_quality", "quality"),
        ("page.rs", "page"),
    ];

    /// Returns the files of this repository that a source names in a call or as a constant.
    fn named_files(source: &str) -> Vec<&str> {
        const BEFORE: [&str; 3] = [".document(\"", "file_of_espalier(\"", ": &str = \""];
        let after = |before: &&'static str| source.split(*before).skip(1).collect::<Vec<_>>();
        let is_a_file = |name: &&str| name.contains('.') && !name.contains(' ');
        let literals = BEFORE.iter().flat_map(after).filter_map(|rest| rest.split('"').next());
        literals.filter(is_a_file).collect()
    }

    #[test]
    fn a_changed_document_runs_the_check_that_reads_it() {
        let crate_root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let sources = crate_root.join("src");
        let mut found = Vec::new();
        for file in disk::files_below(&sources).unwrap() {
            let Some((_, step)) = CHECKS.iter().find(|(module, _)| file.starts_with(module)) else {
                continue;
            };
            let text = disk::read_text(&sources.join(&file)).unwrap();
            for name in named_files(&text) {
                if !disk::exists(&crate_root.join("../../..").join(name)) {
                    continue;
                }
                let project = tested::Digests::from([(name.to_string(), String::new())]);
                assert!(
                    !tested::inputs(step, &project).is_empty(),
                    "{name} is not an input of `{step}`: {file:?}"
                );
                found.push(name.to_string());
            }
        }
        for name in ["SECURITY.md", "ci/suites/suites.toml", "ci/browser/driver.mjs", "ci/models/text.txt"] {
            assert!(found.iter().any(|one| one == name), "{name} is not found in the sources any more");
        }
    }

    #[test]
    fn only_the_tests_of_what_has_changed_are_run() {
        let part = |name: &str| *PARTS.iter().find(|part| part.name == name).unwrap();
        let arguments = |due: &[UnitTestPart]| {
            let calls = test_arguments(due, &["cli::docs::".to_string(), "cli::modules::".to_string()]);
            calls.iter().map(|call| call.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(arguments(&PARTS), ["--workspace"]);
        assert_eq!(
            arguments(&[REPOSITORY]),
            ["--package espalier-qa --test cli -- cli::docs:: cli::modules::"]
        );
        assert_eq!(
            arguments(&[part("unit-kernels"), REPOSITORY]),
            ["--package espalier-kernels", "--package espalier-qa --test cli -- cli::docs:: cli::modules::"]
        );
        assert!(arguments(&[]).is_empty());
    }
}
