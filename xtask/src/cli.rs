//! The command line: global options, and the commands that build and ship. The program of the crate `espalier-qa` adds
//! the commands that check and measure.

mod building;
pub mod checks;
mod entry;
mod program;
mod series;
mod shipping;
mod upstream;
mod values;

use std::fmt::Debug;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches, Parser, Subcommand};
use espalier_core::called::{Called, Program, TakesVariant};
use espalier_core::config::layout::Layout;
use espalier_core::config::variables::misspelt;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::project::{door, root};
use espalier_core::ui::{self, Talk, Ui};

pub use self::building::Which;
use self::building::{Apply, Build, Doctor, Fetch, Gc, Lock, Matrix, Model, Run, Smoke, Toolchain};
use self::checks::Checks;
pub use self::entry::main_of;
pub use self::program::command_of;
use self::series::{Edit, Export, Import, Init, Lint, New, Trailers};
use self::shipping::{Image, Release, Verify};
pub use self::upstream::Upstreamed;
use self::upstream::{Bisect, Newest, Rebase, Status};
pub use self::values::absolute;

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
pub struct Cli<C: Commands> {
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
    command: C,
    /// The program that was started, which no argument names.
    #[arg(skip)]
    program: Program,
}

/// The commands of a program.
pub trait Commands: Subcommand + Debug {
    /// Whether another program has the command.
    fn is_elsewhere(&self) -> bool {
        false
    }

    /// Whether the command only reports: it writes nothing in the project, and files generated on the way may vanish.
    fn writes_nothing(&self) -> bool;

    /// Runs the command.
    ///
    /// # Errors
    ///
    /// Those of the command.
    fn run(self, context: &Context, program: Program) -> Result<Outcome>;
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
    fn is_elsewhere(&self) -> bool {
        matches!(self, Everyday::Checks(_))
    }

    fn writes_nothing(&self) -> bool {
        matches!(self, Everyday::Own(command) if command.writes_nothing())
    }

    fn run(self, context: &Context, program: Program) -> Result<Outcome> {
        match self {
            Everyday::Own(command) => command.run(context, program),
            Everyday::Checks(_) => checks::start(program, false),
        }
    }
}

/// The commands that build and ship.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    /// Run the built server with your own arguments.
    Run(Run),
}

impl Commands for Command {
    fn writes_nothing(&self) -> bool {
        match self {
            Command::Status(_) | Command::Bisect(_) | Command::Newest(_) => true,
            Command::Lock(lock) => lock.check,
            Command::Apply(apply) => apply.check,
            _ => false,
        }
    }

    fn run(self, context: &Context, _program: Program) -> Result<Outcome> {
        match self {
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
            Command::Run(run) => run.run(context),
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
        if self.command.is_elsewhere() {
            return checks::start(self.program, self.quiet);
        }
        let mut context = self.context()?;
        // Lives as long as the command.
        let elsewhere = self
            .command
            .writes_nothing()
            .then(|| root::generated_elsewhere(&context.layout))
            .transpose()?
            .flatten();
        if let Some(folder) = &elsewhere {
            context.ui.status("Working", "in a folder that vanishes: nothing can be written in the project");
            context.layout = context.layout.generating_in(folder.path().join("espalier"));
        }
        self.command.run(&context, self.program).map_err(|error| context.layout.show_in(error))
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
