//! Arguments of the commands that generate documents from the command line's definition.

use std::path::PathBuf;

use clap::Args;

use super::reference;
use crate::cmd;
use crate::context::{Context, Outcome};
use crate::error::Result;
use crate::plan::called::Program;

#[derive(Debug, Args)]
pub(super) struct Docs {
    /// Write nothing; a stale file is an error.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    /// Print what would be written.
    #[arg(long)]
    dry_run: bool,
}

impl Docs {
    pub(super) fn run(self, context: &Context) -> Result<Outcome> {
        let Docs { check, dry_run } = self;
        let commands = reference::markdown();
        cmd::docs::run(context, &cmd::docs::Options { commands, check, dry_run })
    }
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// Output folder; created if missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(self, program: Program) -> Result<Outcome> {
        cmd::man::run(&cmd::man::Options { folder: self.folder, pages: reference::pages(program) })
    }
}

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Shell to generate for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self, program: Program) -> Outcome {
        cmd::completions::run(&reference::completions(self.shell, program))
    }
}
