//! The command line: global options, and the commands that build and ship. The program of the crate `espalier-qa` adds
//! the commands that check and measure.

pub mod checks;
mod entry;
mod program;

use std::fmt::Debug;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand};
use espalier_core::config::layout::Layout;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::invocation::{Called, Program, TakesVariant};
use espalier_core::sys::project::{recovery, root};
use espalier_core::ui::{self, Talk, Ui};
use espalier_dist::{build, doctor, image, matrix, release, toolchain, verify};
use espalier_names::variables::misspelt;
use espalier_patches::{
    apply, bisect, edit, export, import, lint, lock, new, newest, prove, rebase, status, trailers,
};

use self::checks::Checks;
pub use self::entry::main_of;
pub use self::program::command_of;
use crate::cmd::{fetch, gc, init, model, run, smoke, undo};

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
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, disable_help_subcommand = true)]
#[command(after_help = EXIT_CODES)]
pub struct Cli<C: Commands> {
    /// Folder with `pins.toml`.
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print one JSON value on stdout instead of text.
    #[arg(long, global = true)]
    json: bool,
    /// Print no progress, only the result, warnings and errors.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Do not use the network; report what is missing.
    #[arg(long, global = true)]
    offline: bool,
    /// Stop if `espalier.lock` is stale.
    #[arg(long, global = true)]
    locked: bool,
    #[command(subcommand)]
    command: C,
    /// The program that was started, which no argument names.
    #[arg(skip)]
    program: Program,
}

/// The commands on the command line of a program.
pub trait Commands: Subcommand + Debug {
    /// Those that it carries out itself.
    type Own: OwnCommands;

    /// Returns the command; `None` if it is one of `espalier-qa`, which this program only starts.
    fn own(&self) -> Option<&Self::Own>;
}

/// The commands that a program carries out itself.
pub trait OwnCommands {
    /// Whether the command only reports: it writes nothing in the project, and files generated on the way may vanish.
    fn writes_nothing(&self) -> bool;

    /// Runs the command.
    ///
    /// # Errors
    ///
    /// Those of the command.
    fn run(&self, context: &Context, program: Program) -> Result<Outcome>;
}

/// The commands of `cargo xtask` and `espalier`.
#[derive(Debug, Subcommand)]
pub enum Everyday {
    /// Those that it carries out.
    #[command(flatten)]
    Own(Command),
    /// Those that it starts another program for.
    #[command(flatten)]
    Checks(Checks),
}

impl Commands for Everyday {
    type Own = Command;

    fn own(&self) -> Option<&Command> {
        match self {
            Everyday::Own(command) => Some(command),
            Everyday::Checks(_) => None,
        }
    }
}

/// The commands that build and ship.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fetch the pinned objects into the store, and verify the tree id, whatever the source.
    Fetch(fetch::Options),
    /// Apply a variant's series to its pin, exactly or not at all, and write the tree to disk.
    Apply(apply::Options),
    /// Regenerate `espalier.lock`, or check it.
    Lock(lock::Options),
    /// Check the form of every patch: numbers, name, subject, trailers, which files it touches.
    Lint(lint::Options),
    /// Compare every patch with the pin, or with any other upstream commit.
    Status(status::Options),
    /// Turn a variant's series into commits, to be edited with any git tool.
    Edit(edit::Options),
    /// Write the commits of the edit repository back as patches; untouched ones keep their bytes.
    Export(export::Options),
    /// Start a project: write a `pins.toml` with a pin and a variant.
    Init(init::Options),
    /// Import a fork, or existing patches, as the series of a variant.
    Import(import::Options),
    /// Fill in a trailer in many patches at once.
    Trailers(trailers::Options),
    /// Start a patch: `git commit` in the edit repository offers its message.
    New(new::Options),
    /// Find the upstream commits at which patches stop being exact, or stop applying.
    Bisect(bisect::Options),
    /// Find the furthest upstream commit at which the whole series still applies.
    Newest(newest::Options),
    /// Move a variant's series to another upstream commit, or onto the series that it extends.
    Rebase(rebase::Options),
    /// Undo the last change of patches, pins and lock; a second time, redo it.
    Undo(undo::Options),
    /// Prove a move of the pin: compare each patch with what it was, line by line.
    Prove(prove::Options),
    /// Build a variant: from the pin to a packaged server that has answered a prompt.
    Build(build::Options),
    /// Install what a flavor needs to be compiled and run, from pinned packages, without root.
    Toolchain(toolchain::Options),
    /// Fetch the pinned weights of a model and print their path.
    Model(model::Options),
    /// Report which flavors this machine can build, what is missing, and the command that installs it.
    Doctor(doctor::Options),
    /// Remove generated files that are no longer needed: old builds, trees, toolchains, objects, logs.
    Gc(gc::Options),
    /// Print the build matrix of CI: a row for each variant, flavor and platform.
    Matrix(matrix::Options),
    /// Verify a package, an archive or an image: every file, SBOM and provenance, and the lock.
    Verify(verify::Options),
    /// Make a release of what is built: archives, checksums, changes, an install script.
    Release(release::Options),
    /// Build an OCI image of a package, on pinned Debian packages: the same bytes each time.
    Image(image::Options),
    /// Start the built server on the loopback interface, send it requests, stop it.
    Smoke(smoke::Options),
    /// Run the built server with your own arguments.
    Run(run::Options),
}

impl OwnCommands for Command {
    fn writes_nothing(&self) -> bool {
        match self {
            Command::Status(_) | Command::Bisect(_) | Command::Newest(_) | Command::Prove(_) => true,
            Command::Lock(options) => options.check,
            Command::Apply(options) => options.check,
            _ => false,
        }
    }

    fn run(&self, context: &Context, _program: Program) -> Result<Outcome> {
        match self {
            Command::Fetch(options) => fetch::run(context, options),
            Command::Apply(options) => apply::run(context, options),
            Command::Lock(options) => lock::run(context, options),
            Command::Lint(options) => lint::run(context, options),
            Command::Status(options) => status::run(context, options),
            Command::Edit(options) => edit::run(context, options),
            Command::Export(options) => export::run(context, options),
            Command::Init(options) => init::run(context, options),
            Command::Import(options) => import::run(context, options),
            Command::Trailers(options) => trailers::run(context, options),
            Command::New(options) => new::run(context, options),
            Command::Bisect(options) => bisect::run(context, options),
            Command::Newest(options) => newest::run(context, options),
            Command::Rebase(options) => rebase::run(context, options),
            Command::Prove(options) => prove::run(context, options),
            Command::Undo(options) => undo::run(context, options),
            Command::Build(options) => build::run(context, options),
            Command::Toolchain(options) => toolchain::run(context, options),
            Command::Model(options) => model::run(context, options),
            Command::Doctor(options) => doctor::run(context, options),
            Command::Gc(options) => gc::run(context, options),
            Command::Matrix(options) => matrix::run(context, options),
            Command::Verify(options) => verify::run(context, options),
            Command::Release(options) => release::run(context, options),
            Command::Image(options) => image::run(context, options),
            Command::Smoke(options) => smoke::run(context, options),
            Command::Run(options) => run::run(context, options),
        }
    }
}

impl<C: Commands> Cli<C> {
    /// Parses the command line of `program`; exits on errors, and after printing help.
    pub fn from_command_line(program: Program) -> Cli<C> {
        let mut command = command_of::<C>(program);
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
    ///
    /// # Errors
    ///
    /// There is no project here, or those of the command.
    pub fn run(self) -> Result<Outcome> {
        let Some(command) = self.command.own() else { return checks::start(self.program, self.quiet) };
        let mut context = self.context()?;
        // Lives as long as the command.
        let generated = || root::generated_elsewhere(&context.layout);
        let elsewhere = command.writes_nothing().then(generated).transpose()?.flatten();
        if let Some(folder) = &elsewhere {
            context.ui.status("Using", "a temporary folder; the project is read-only");
            context.layout = context.layout.generating_in(folder.path().join("espalier"));
        }
        command.run(&context, self.program).map_err(|error| context.layout.show_in(error))
    }

    fn context(&self) -> Result<Context> {
        let root = root::project_root(self.root.as_deref())?;
        let talk = if self.quiet { Talk::Quiet } else { Talk::Normal };
        let layout = Layout::new(root).seen_from(&root::here()?);
        let ui = Ui::new(talk);
        let names: Vec<String> =
            std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        misspelt(names.iter().map(String::as_str)).into_iter().for_each(|warning| ui.warn(warning));
        let settled = recovery::settle(&layout, &ui).map_err(|error| layout.show_in(error))?;
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
