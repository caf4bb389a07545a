//! `cargo xtask lint`: the checks of our own patches that do not need to apply them.

mod fix;
mod look;
mod reported;
mod siblings;
mod tell;

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::project::run_lock::Access;
use look::{Seen, look};
use serde_json::json;
use tell::text;

/// Options of `lint`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Options {
    /// Fix what can be fixed automatically: numbers, names, missing final newlines.
    #[arg(long)]
    pub fix: bool,
    /// Print what would be fixed.
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// Print every finding, however many there are.
    #[arg(long)]
    pub long: bool,
}

/// Reads every patch of every variant; exits with 1 on any finding.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let (_lock, pins) = context.begin(!options.fix, Access::Change)?;
    let mut fixed = Vec::new();
    if options.fix {
        fixed = fix::fix_all(context, &pins, options.dry_run)?;
    }
    let Seen { patches, others, findings } = look(context, &pins)?;
    if !others.is_empty() {
        context.ui.status("Ignoring", format!("{}: not named as a patch", others.join(", ")));
    }
    Ok(Outcome {
        text: text(&patches, &findings, &fixed, options),
        code: u8::from(!findings.is_empty()),
        json: json!({ "patches": patches, "ignored": others, "findings": findings, "fixed": fixed }),
    })
}

/// Runs lint as a check: findings are an error.
pub fn check(context: &Context) -> Result<()> {
    let outcome = run(context, &Options::default())?;
    if outcome.code == 0 { Ok(()) } else { Err(Error::no("the patches break rules").detail(outcome.text)) }
}
