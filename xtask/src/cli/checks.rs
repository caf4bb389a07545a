//! The commands that check and measure. Their code is in the crate `espalier-qa`, which builds and rebases never
//! compile: `cargo xtask` compiles its program when one of them is run, and this process becomes that program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use espalier_core::context::Outcome;
use espalier_core::error::{Error, Result};
use espalier_core::invocation::Program;
use espalier_core::sys::machine::{disk, process};

/// Name of the program.
const NAME: &str = "espalier-qa";

/// Variable with the name that the program was called by.
const CALLED_AS: &str = "ESPALIER_CALLED_AS";

/// The commands, with arguments that only the other program parses.
#[derive(Debug, Subcommand)]
pub enum Checks {
    /// Move the pin, series and lock to another upstream commit and write a report; change nothing unless every check
    /// passes.
    #[command(disable_help_flag = true)]
    Sync(Rest),
    /// Try the series on upstream's tip: fetch, status, contract, build, gate.
    #[command(disable_help_flag = true)]
    Canary(Rest),
    /// Test the web page of the built server in a browser: ask, attach files, reload.
    #[command(disable_help_flag = true)]
    Page(Rest),
    /// Run the checks that CI's `test` job runs, step by step.
    #[command(disable_help_flag = true)]
    Test(Rest),
    /// Compare stock and a variant: logits, the servers' answers, upstream's own tests.
    #[command(disable_help_flag = true)]
    Gate(Rest),
    /// Fuzz the paged server with random options and clients.
    #[command(disable_help_flag = true)]
    Fuzz(Rest),
    /// Measure; needs a quiet machine.
    #[command(disable_help_flag = true)]
    Bench(Rest),
    /// Regenerate the generated documents, such as the reference of commands, or check them.
    #[command(disable_help_flag = true)]
    Docs(Rest),
    /// Write the manual pages.
    #[command(disable_help_flag = true)]
    Man(Rest),
    /// Print the completions of a shell for `xtask`, a function that calls `cargo xtask`.
    #[command(disable_help_flag = true)]
    Completions(Rest),
}

/// All arguments of a command.
#[derive(Debug, Args)]
pub struct Rest {
    /// See `--help` of the command.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

/// Returns the name that `espalier-qa` was called by.
#[must_use]
pub fn called_as() -> Program {
    let name = std::env::var(CALLED_AS).unwrap_or_default();
    if name == Program::Espalier.words() { Program::Espalier } else { Program::CargoXtask }
}

/// Replaces this process, which started as `program`, with `espalier-qa` and the same arguments; returns only on
/// failure.
pub(super) fn start(program: Program, quiet: bool) -> Result<Outcome> {
    let own =
        std::env::current_exe().map_err(|error| disk::explain("find", Path::new("this program"), &error))?;
    let other = own.with_file_name(NAME).with_extension(std::env::consts::EXE_EXTENSION);
    // Behind an argument that only the other program knows, this one is not parsed here.
    let quiet = quiet || std::env::args_os().any(|word| word == "--quiet" || word == "-q");
    match program {
        Program::CargoXtask => compile(&own, quiet)?,
        Program::Espalier => find(&other)?,
    }
    let run = process::Run::new(other).args(std::env::args_os().skip(1));
    // It is this program, and the only one that gets them.
    let tokens = process::TOKENS.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let run = tokens.fold(run, |run, (name, value)| run.env(name, value));
    let code = run.env(CALLED_AS, program.words()).replace()?;
    Ok(Outcome { text: String::new(), json: serde_json::Value::Null, code })
}

/// Compiles it as `own` was: in the same target folder, with the same profile.
fn compile(own: &Path, quiet: bool) -> Result<()> {
    let folder = own.parent().unwrap_or(own);
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let run = process::cargo_here().args(["build", "--locked", "--package", NAME, "--profile", profile]);
    // `own` is in the folder of that target, if there is one.
    let run = run.without_env("CARGO_BUILD_TARGET");
    let run = run.args([OsString::from("--manifest-path"), manifest.into()]);
    let run = run.args([OsString::from("--target-dir"), folder.parent().unwrap_or(folder).into()]);
    let run = if quiet { run.args(["--quiet"]) } else { run };
    let words = run.words();
    let status = run.show()?;
    if status.success() {
        return Ok(());
    }
    Err(Error::environment(format!("`{words}`: {}", process::ending(status))))
}

fn find(other: &Path) -> Result<()> {
    if disk::is_program(other) {
        return Ok(());
    }
    let error =
        Error::environment(format!("`{}`, which implements this command, is not installed", other.display()));
    Err(error.hint("in a clone of Espalier: cargo install --locked --path xtask/crates/qa"))
}
