//! Arguments of the commands that generate documents from the command line's definition.

use std::path::PathBuf;

use clap::Args;
use espalier_core::called::Program;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;

use super::reference;
use crate::{completions, docs, man};

#[derive(Debug, Args)]
pub struct Docs {
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
        docs::run(context, &docs::Options { commands, check, dry_run })
    }
}

#[derive(Debug, Args)]
pub struct Man {
    /// Output folder; created if missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(self, program: Program) -> Result<Outcome> {
        man::run(&man::Options { folder: self.folder, pages: reference::pages(program) })
    }
}

#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to generate for.
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self, program: Program) -> Outcome {
        completions::run(&reference::completions(self.shell, program))
    }
}
