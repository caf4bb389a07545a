//! `cargo xtask sync`: moves the pin together with everything that depends on it, or changes nothing.
//!
//! The series is rebased and staged, and each patch is compared with what it was; the stage is built, smoke-tested and
//! gated as if it were the project; only then are `pins.toml`, `espalier.lock`, the patches and the report written, as
//! one change. `moved` holds a move that was made by hand to the same checks.

mod checks;
mod generation;
mod moved;
mod offer;
mod reasons;

use clap::Args;
use espalier_core::config::intended::report_file;
use espalier_core::config::lock::Lock;
use espalier_core::config::name::Name;
use espalier_core::config::pins::short_name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::plan::pending::Pending;
use espalier_core::sys::github::Client;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::ui;
use espalier_patches::lock_file;
use espalier_patches::rebase::{self, MoveOptions, Prepared, Upstream};
use espalier_patches::report::proof::MoveProof;
use espalier_patches::report::proof_text::open_sentences;
use espalier_patches::report::rebase::PatchMove;
use espalier_patches::report::status::StatusReport;
use espalier_patches::status;
use reasons::Reasons;
use serde_json::json;

use crate::gate;
use crate::report::sync::{MovedPatch, MovedTree, SyncReport};

/// Options of `sync`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Target: tag, branch or commit id, also `v1.0~3`.
    #[arg(long, value_name = "REF", required_unless_present = "since")]
    pub to: Option<String>,
    /// Check a move already made on disk, for example by `rebase --continue`, and write its report; COMMIT is the state
    /// before the move. With a variant on a generation: check that generation.
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["to", "dry_run"])]
    pub since: Option<String>,
    /// The series, and the source of the target.
    #[command(flatten)]
    pub common: MoveOptions,
    /// Open or update this pin's pull request.
    #[arg(long)]
    pub github: bool,
    /// Print the result for each patch; check and write nothing.
    #[arg(long, conflicts_with = "github")]
    pub dry_run: bool,
}

/// Moves the pin when every check passes.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    if options.dry_run {
        let (to, common) = (options.to.clone(), options.common.clone());
        let dry_run = rebase::Options { to, common, dry_run: true, ..rebase::Options::default() };
        return rebase::run(context, &dry_run);
    }
    // Checked first: a missing token or probe should not surface after an hour.
    let github = options.github.then(|| context.github()).transpose()?;
    let gated = checks::gated(&context.pins()?);
    if !gated.is_empty() {
        gate::PROBES.into_iter().try_for_each(|probe| gate::find_probe(context, probe))?;
    }
    match (&options.since, &options.to) {
        (Some(since), _) => moved::run(context, since, options.common.variant.as_deref(), github.as_ref()),
        (None, to) => move_to(context, options, (to.as_deref().unwrap_or_default(), &gated), github),
    }
}

/// Moves the pin to `to`, and opens its pull request if there is a client for it. `gated` are the variants that the
/// gate has to pass.
fn move_to(
    context: &Context,
    options: &Options,
    (to, gated): (&str, &[Name]),
    github: Option<Client>,
) -> Result<Outcome> {
    let (prepared, classes) = prepare(context, options, to)?;
    let mut report = describe(&prepared, &classes);
    let reasons = reasons::take(context, &mut report)?;
    let staged = Context { locked: true, ..context.staged(&prepared.stage) };
    report.checks = checks::run_all(&staged)?;
    report.trees = moved_trees(context, &staged)?;
    report.gated = gated.iter().map(ToString::to_string).collect();
    if !report.passed() {
        return Err(refuse(context, options, prepared, &report)?);
    }
    let (page, moved) = finish(context, prepared, &report, reasons)?;
    let offered = |client: Client| {
        let change = offer::written(context, &moved)?;
        offer::offer(&client, &change, (&report, &page))
    };
    let pull = github.map(offered).transpose()?;
    Ok(holds(&report, "the pin moved, and all of it holds", &page, pull))
}

/// Returns the outcome of a move that holds; `pull` is the number of its pull request.
fn holds(report: &SyncReport, what: &str, page: &str, pull: Option<u64>) -> Outcome {
    let mut text = format!("{}: {what}\nreport: {page}", report.title());
    report.notices().for_each(|notice| text += &format!("\n{notice}"));
    if let Some(number) = pull {
        text += &format!("\npull request: #{number}");
    }
    Outcome::ok(text, json!({ "moved": true, "report": page, "pull_request": pull, "sync": report }))
}

/// Returns the staged move, and the status of every series on the pin at the new pin.
fn prepare(context: &Context, options: &Options, to: &str) -> Result<(Prepared, StatusReport)> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let MoveOptions { variant, from, .. } = &options.common;
    let pins = context.pins()?;
    pins.refuse_generation(pins.variant(variant.as_deref())?, "sync --to REF")?;
    let at_tip = status::Options {
        variant: variant.clone(),
        tip: Some(to.to_string()),
        from: from.clone(),
        ..status::Options::default()
    };
    let classes = status::report(context, &at_tip)?;
    let goal = (variant.as_deref(), Upstream { to, from: from.as_deref() });
    Ok((rebase::prepare(context, goal, options.common.choices())?, classes))
}

fn describe(prepared: &Prepared, classes: &StatusReport) -> SyncReport {
    let moved = &prepared.report;
    SyncReport {
        upstream: moved.upstream.clone(),
        old: moved.from.clone(),
        new: moved.to.clone(),
        patches: moved
            .patches
            .iter()
            .map(|patch| moved_patch(patch, class_of(classes, &patch.file)))
            .collect(),
        proof: MoveProof {
            old: short_name(&moved.from.name).to_string(),
            new: short_name(&moved.to.name).to_string(),
            series: moved.proof.clone(),
            ..MoveProof::default()
        },
        trees: Vec::new(),
        checks: Vec::new(),
        gated: Vec::new(),
        generation: None,
        uncompared: Vec::new(),
    }
}

/// Returns the class that a patch had at the new pin before it was moved.
fn class_of<'c>(classes: &'c StatusReport, file: &str) -> &'c str {
    let patch = classes.all_patches().find(|patch| patch.file == file);
    patch.map(|patch| patch.class.describe()).unwrap_or_default()
}

fn moved_patch(patch: &PatchMove, class: &str) -> MovedPatch {
    let words = std::iter::once(patch.fate.describe().to_string()).chain(patch.notes.iter().cloned());
    MovedPatch {
        file: patch.file.clone(),
        class: class.to_string(),
        change: words.collect::<Vec<_>>().join("; "),
        difference: patch.range_diff.clone().unwrap_or_default(),
    }
}

fn moved_trees(context: &Context, staged: &Context) -> Result<Vec<MovedTree>> {
    let (old, new) =
        (lock_file::read(context)?.unwrap_or_default(), lock_file::read(staged)?.unwrap_or_default());
    let tree_of = |lock: &Lock, name: &str| {
        lock.variants.get(name).map_or_else(|| "none".to_string(), |variant| variant.tree.clone())
    };
    let moved = new.variants.keys().map(|name| MovedTree {
        variant: name.clone(),
        old: tree_of(&old, name),
        new: tree_of(&new, name),
    });
    Ok(moved.collect())
}

/// Commits the move and its report; returns the report's file. Building takes minutes during which the lock was free,
/// so the commit fails unless the project is still the one that was checked.
fn finish(
    context: &Context,
    prepared: Prepared,
    report: &SyncReport,
    reasons: Option<Reasons>,
) -> Result<(String, Pending)> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let Prepared { mut stage, what, .. } = prepared;
    if let Some(Reasons { file, text }) = reasons {
        stage.write(&file, text.as_bytes())?;
    }
    let page = report_file(&report.old.name, &report.new.name);
    stage.write(&page, ui::named(&report.markdown()).as_bytes())?;
    Ok((page, stage.commit(what)?))
}

/// Leaves the pin alone.
fn refuse(context: &Context, options: &Options, prepared: Prepared, report: &SyncReport) -> Result<Error> {
    let error =
        failed(context, report, format!("{}: the pin did not move, nothing was changed", report.title()))?;
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    drop(prepared);
    let MoveOptions { variant, from, .. } = &options.common;
    let edit = ["edit"].into_iter().chain(variant.as_deref()).collect::<Vec<_>>().join(" ");
    let to = Some(report.new.name.as_str());
    let flags = [("--to", to), ("--variant", variant.as_deref()), ("--from", from.as_deref())];
    Ok(error
        .hint(format!("{}    # then fix the series", next_command(&edit, &[])))
        .hint(format!("or take it along by hand: {}", next_command("rebase", &flags))))
}

/// Writes the report of a move that does not hold to a path that the next run may overwrite, and returns the error.
fn failed(context: &Context, report: &SyncReport, what: String) -> Result<Error> {
    let page = context.layout.failed_sync();
    disk::write_atomically(&page, ui::named(&report.markdown()).as_bytes())?;
    let hint = format!("read the report: {}", context.layout.show(&page));
    Ok(Error::no(what).detail(failures(report).join("\n")).hint(hint))
}

/// Returns one line for each check and each entry of differences that stops the move.
fn failures(report: &SyncReport) -> Vec<String> {
    let checks = report.checks.iter();
    checks
        .filter_map(|check| Some(format!("{}: {}", check.name, check.error.as_ref()?.lines().next()?)))
        .chain(open_sentences(&report.proof))
        .chain(report.proof.stale.iter().cloned())
        .collect()
}
