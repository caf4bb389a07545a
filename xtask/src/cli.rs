//! Definition of every command and flag. The commands themselves do not depend on clap.

mod bench;
mod building;
mod documents;
mod entry;
mod program;
mod proof;
mod reference;
mod series;
mod shipping;
mod upstream;
mod values;

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand};

use self::bench::Bench;
use self::building::{Apply, Build, Doctor, Fetch, Gc, Lock, Matrix, Model, Page, Run, Smoke, Toolchain};
use self::documents::{Completions, Docs, Man};
pub use self::entry::main_of;
use self::program::command_of;
use self::proof::{Fuzz, Gate, Test};
use self::series::{Edit, Export, Import, Init, Lint, New, Trailers};
use self::shipping::{Image, Release, Verify};
use self::upstream::{Bisect, Canary, Newest, Rebase, Status, Sync};
use crate::context::{Context, Outcome};
use crate::error::Result;
use crate::plan::called::{Called, Program, TakesVariant};
use crate::plan::layout::Layout;
use crate::plan::variables::misspelt;
use crate::sys::project::{door, root};
use crate::ui::{self, Talk, Ui};

/// The exit codes, printed below `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a check failed: drift, the gate
  2  usage
  3  environment error: network, disk, a missing tool
  4  manual action required: a conflict";

/// Espalier: fetch the pinned upstream, apply the series strictly, build, prove.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// Folder with `pins.toml`.
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print one JSON value on stdout instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Print errors only.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Do not use the network; say what is missing instead.
    #[arg(long, global = true)]
    offline: bool,
    /// Stop if `espalier.lock` is stale.
    #[arg(long, global = true)]
    locked: bool,
    #[command(subcommand)]
    command: Command,
    /// The program that was started, which no argument names.
    #[arg(skip)]
    program: Program,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch the pinned objects into the store; the tree id decides, whatever the source.
    Fetch(Fetch),
    /// Apply a variant's series to its pin, exactly or not at all, and write the tree to disk.
    Apply(Apply),
    /// Regenerate `espalier.lock`, or check it.
    Lock(Lock),
    /// Check the form of every patch: numbers, name, subject, trailers, which files it touches.
    Lint(Lint),
    /// Compare every patch with the pin, or with any other upstream commit.
    Status(Status),
    /// Turn a variant's series into commits, to be edited with any git tool.
    Edit(Edit),
    /// Write the commits of the edit repository back as patches; untouched ones keep their bytes.
    Export(Export),
    /// Start a project: write a `pins.toml` with a pin and a variant.
    Init(Init),
    /// Import a fork, or existing patches, as the series of a variant.
    Import(Import),
    /// Fill in a trailer in many patches at once.
    Trailers(Trailers),
    /// Start a patch: `git commit` in the edit repository offers its message.
    New(New),
    /// Find the upstream commits at which patches stop being exact, or stop applying.
    Bisect(Bisect),
    /// Find the furthest upstream commit at which the whole series still applies.
    Newest(Newest),
    /// Move a variant's series to another upstream commit, or onto the series that it extends.
    Rebase(Rebase),
    /// Move pin, series, lock and report together, once everything builds and passes; else nothing.
    Sync(Sync),
    /// Try the series on upstream's tip: fetch, status, contract, build, gate.
    Canary(Canary),
    /// Build a variant: from the pin to a packaged server that has answered a prompt.
    Build(Build),
    /// Set up what a flavor is compiled with and runs on, from pinned packages, without root.
    Toolchain(Toolchain),
    /// Fetch the pinned weights of a model and print their path.
    Model(Model),
    /// Say which flavors this machine can build, what is missing, and what to type to get it.
    Doctor(Doctor),
    /// Remove generated files that are no longer needed: old builds, trees, toolchains, objects, logs.
    Gc(Gc),
    /// Print what CI builds: a row for each variant, flavor and platform.
    Matrix(Matrix),
    /// Check a package, an archive or an image: every file, what it says of itself, and the lock.
    Verify(Verify),
    /// Pack what is built as a release: archives, sums, what changed, a script that installs.
    Release(Release),
    /// Make an image of a package, on a base of pinned packages: the same bytes each time.
    Image(Image),
    /// Start the built server on the loopback, send it requests, stop it.
    Smoke(Smoke),
    /// Use the web page of the built server in a browser: ask, attach files, reload.
    Page(Page),
    /// Run the built server with your own arguments.
    Run(Run),
    /// Run the checks that CI's `test` job runs, step by step.
    Test(Test),
    /// Compare stock and a variant: logits, the servers' answers, outcomes of upstream's own tests.
    Gate(Gate),
    /// Fuzz the paged server with random options and clients.
    Fuzz(Fuzz),
    /// Measure; needs a quiet machine.
    Bench(Bench),
    /// Regenerate docs/reference/commands.md from the command line itself, or check it.
    Docs(Docs),
    /// Write the manual pages.
    Man(Man),
    /// Print the completions of a shell for `xtask`, a function that calls `cargo xtask`.
    Completions(Completions),
}

impl Cli {
    /// Parses the command line of `program`; exits on errors, and after printing help.
    pub fn from_command_line(program: Program) -> Cli {
        let mut command = command_of(program);
        let matches = command.get_matches_mut();
        ui::called_with(called(program, &command, &matches));
        let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
        Cli { program, ..cli }
    }

    /// Whether the output is JSON.
    pub fn wants_json(&self) -> bool {
        self.json
    }

    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let mut context = self.context()?;
        // Lives as long as the command.
        let elsewhere =
            self.writes_nothing().then(|| root::generated_elsewhere(&context.layout)).transpose()?.flatten();
        if let Some(folder) = &elsewhere {
            context.ui.status("Working", "in a folder that vanishes: nothing can be written in the project");
            context.layout = context.layout.generating_in(folder.path().join("espalier"));
        }
        self.dispatch(&context).map_err(|error| context.layout.show_in(error))
    }

    /// Whether the command only reports: it writes nothing in the project, and files generated on the way may vanish.
    fn writes_nothing(&self) -> bool {
        match &self.command {
            Command::Status(_) | Command::Bisect(_) | Command::Newest(_) => true,
            Command::Lock(lock) => lock.check,
            Command::Apply(apply) => apply.check,
            _ => false,
        }
    }

    fn dispatch(self, context: &Context) -> Result<Outcome> {
        match self.command {
            Command::Fetch(fetch) => fetch.run(context),
            Command::Apply(apply) => apply.run(context),
            Command::Lock(lock) => lock.run(context),
            Command::Lint(lint) => lint.run(context),
            Command::Status(status) => status.run(context),
            Command::Edit(edit) => edit.run(context),
            Command::Export(export) => export.run(context),
            Command::Init(init) => init.run(context),
            Command::Import(import) => import.run(context),
            Command::Trailers(trailers) => trailers.run(context),
            Command::New(new) => new.run(context),
            Command::Bisect(bisect) => bisect.run(context),
            Command::Newest(newest) => newest.run(context),
            Command::Rebase(rebase) => rebase.run(context),
            Command::Sync(sync) => sync.run(context),
            Command::Canary(canary) => canary.run(context),
            Command::Build(build) => build.run(context),
            Command::Toolchain(toolchain) => toolchain.run(context),
            Command::Model(model) => model.run(context),
            Command::Doctor(doctor) => doctor.run(context),
            Command::Gc(gc) => gc.run(context),
            Command::Matrix(matrix) => matrix.run(context),
            Command::Verify(verify) => verify.run(context),
            Command::Release(release) => release.run(context),
            Command::Image(image) => image.run(context),
            Command::Smoke(smoke) => smoke.run(context),
            Command::Page(page) => page.run(context),
            Command::Run(run) => run.run(context),
            Command::Test(test) => test.run(context),
            Command::Gate(gate) => gate.run(context),
            Command::Fuzz(fuzz) => fuzz.run(context),
            Command::Bench(bench) => crate::bench::run(context, &bench.into()),
            Command::Docs(docs) => docs.run(context),
            Command::Man(man) => man.run(self.program),
            Command::Completions(completions) => Ok(completions.run(self.program)),
        }
    }

    fn context(&self) -> Result<Context> {
        let root = root::project_root(self.root.as_deref())?;
        let talk = if self.quiet { Talk::Quiet } else { Talk::Normal };
        let layout = Layout::new(root).seen_from(&root::here()?);
        let ui = Ui::new(talk);
        let names: Vec<String> =
            std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        misspelt(names.iter().map(String::as_str)).into_iter().for_each(|warning| ui.warn(warning));
        let settled = door::settle(&layout, &ui).map_err(|error| layout.show_in(error))?;
        Ok(Context { layout, ui, offline: self.offline, locked: self.locked, settled })
    }
}

/// Returns what printed commands have to repeat.
fn called(program: Program, command: &clap::Command, matches: &ArgMatches) -> Called {
    let takes_variant = command.get_subcommands().filter_map(|below| takes_variant(command, below));
    let takes_variant = takes_variant.collect();
    let inner = matches.subcommand().map_or(matches, |(_, inner)| inner);
    Called { program, root: typed(inner, "root"), variant: typed(inner, "variant"), takes_variant }
}

/// Returns how `command`, one of those of `root`, takes a variant. One that it requires is left out: `init` names a
/// variant that does not exist yet, in another project.
fn takes_variant(root: &clap::Command, command: &clap::Command) -> Option<TakesVariant> {
    let variant = command.get_arguments().find(|argument| argument.get_id() == "variant")?;
    let arguments = command.get_arguments().chain(root.get_arguments());
    let flags_with_value =
        arguments.filter(|argument| argument.get_action().takes_values()).flat_map(|flag| {
            let long = flag.get_long().map(|long| format!("--{long}"));
            long.into_iter().chain(flag.get_short().map(|short| format!("-{short}")))
        });
    (!variant.is_required_set()).then(|| TakesVariant {
        command: command.get_name().to_string(),
        is_positional: variant.is_positional(),
        flags_with_value: flags_with_value.collect(),
    })
}

/// Returns the value of an argument that was given, as typed.
fn typed(matches: &ArgMatches, name: &str) -> Option<String> {
    let is_known = matches.try_contains_id(name).unwrap_or(false);
    if !is_known || matches.value_source(name) != Some(ValueSource::CommandLine) {
        return None;
    }
    let value = matches.try_get_raw(name).ok().flatten()?.next()?;
    Some(value.to_string_lossy().into_owned())
}
