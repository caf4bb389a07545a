//! `cargo xtask canary`: fetches upstream's tip and tries the series on it, level by level.
//!
//! It never moves a pin and writes neither `patches/` nor `espalier.lock`. Its builds are separate from the user's,
//! under the name `canary.VARIANT`.

mod contract;
mod issues;
mod on_pin;
mod tip_levels;
mod walk;

use std::path::PathBuf;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::github::Client;
use espalier_core::sys::github::step_summary;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::ui;
use espalier_dist::sys::compilers;
use espalier_patches::report::status::StatusReport;
use espalier_patches::report::status_html;
use serde_json::json;
use tip_levels::TipLevels;
use walk::walk;

use crate::report::canary::{self, CanaryReport, Level};

/// Options of `canary`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Tag, branch or commit id, also `v1.0~3`; default: upstream's default branch.
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    pub tip: String,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", value_parser = absolute)]
    pub from: Option<String>,
    /// Last level to run.
    #[arg(long, value_enum, default_value_t = Level::Gate)]
    pub until: Level,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Also write the page of `status --html`.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open, update and close issues, one per broken patch or failed level, about upstream's default branch.
    #[arg(long, conflicts_with = "tip")]
    pub github: bool,
    /// Print what would be done.
    #[arg(long)]
    pub dry_run: bool,
}

/// Tries the tip. An environment error is reported as such: it says nothing about any patch, and no issue is touched.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if options.until > Level::Status {
        let flavors = context.flavors().map(drop);
        let only_status = "or compare the patches only: the same command with --until status";
        flavors.map_err(|error| error.hint(only_status))?;
    }
    if options.dry_run {
        return Ok(plan(options));
    }
    // Checked first: a missing token or folder should not surface after an hour.
    options.report.iter().chain(&options.html).try_for_each(|path| disk::refuse_as_output(path))?;
    let github = options.github.then(|| context.github()).transpose()?;
    compilers::start_launcher();
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Build)?;
    let pins = context.pins()?;
    let variant = pins.variant(options.variant.as_deref())?;
    pins.refuse_generation(variant, "canary")?;
    let mut levels = TipLevels::new(context, &pins, variant, options)?;
    let walked = walk(&mut levels, options.until, &context.ui);
    let report = levels.report(walked.levels);
    write_reports(context, options, &report, github.as_ref())?;
    if let Some(error) = walked.stopped {
        return Err(error);
    }
    let kept = match &github {
        Some(client) => {
            let conflicts = levels.conflicts();
            let found =
                issues::CanaryResults { report: &report, on_pin: levels.on_pin(), conflicts: &conflicts };
            issues::keep(context, client, found, options)?
        }
        None => Vec::new(),
    };
    let (text, code) = (canary::text(&report), u8::from(!report.is_good()));
    let status = report.status.map(StatusReport::without_hunks);
    let json = json!({ "report": CanaryReport { status, ..report }, "issues": kept });
    Ok(Outcome { text, json, code })
}

fn plan(options: &Options) -> Outcome {
    let mut steps: Vec<String> = Level::ALL
        .iter()
        .filter(|level| **level <= options.until)
        .map(|level| format!("{:<9} {}", level.name(), about(*level)))
        .collect();
    let files = options.report.iter().chain(&options.html);
    steps.extend(files.map(|path| format!("{:<9} {}", "write", path.display())));
    if options.github {
        steps.push(format!("{:<9} one a patch and culprit, one a level: made, updated, closed", "issues"));
    }
    Outcome::ok(steps.join("\n"), json!({ "steps": steps }))
}

fn about(level: Level) -> &'static str {
    match level {
        Level::Fetch => "fetch the tip into the store",
        Level::Status => "compare every patch with it",
        Level::Contract => "compile each file that the series touches, syntax only",
        Level::Build => "build the patched tip under the name canary.VARIANT, and smoke it",
        Level::Gate => "compare logits with a stock build of the tip",
    }
}

fn write_reports(
    context: &Context,
    options: &Options,
    report: &CanaryReport,
    github: Option<&Client>,
) -> Result<()> {
    let named = CanaryReport { next: report.next.as_deref().map(ui::named_hint), ..report.clone() };
    let markdown = canary::markdown(&named, github.map(|client| client.workflow("pin-sync.yml")).as_deref());
    let markdown = ui::named(&markdown);
    if let Some(path) = &options.report {
        disk::write_atomically(path, markdown.as_bytes())?;
        context.ui.status("Wrote", path.display());
    }
    if let (Some(path), Some(found)) = (&options.html, &report.status) {
        disk::write_atomically(path, status_html::html(found, &ui::named_hint).as_bytes())?;
        context.ui.status("Wrote", path.display());
    }
    step_summary::append(&markdown)
}
