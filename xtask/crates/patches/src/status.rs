//! `cargo xtask status`: every patch of a series against the pin or any other upstream commit.

use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::sys::git::history::{self, Commit};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::upstream::tip::Tip;
use espalier_core::ui;
use espalier_series::{FileDrift, Patch, PatchClass, PatchOutcome, Survey, UpstreamHistory};
use serde_json::json;

use crate::overlays::{self, UpstreamTree};
use crate::pinned_series::{Classes, PinnedSeries, tip_of};
use crate::range::upstream_commit;
use crate::range::{self, Range};
use crate::report::replay;
use crate::report::status::{self, PatchStatus, ReportedTree, SeriesStatus, StatusReport, UpstreamCommit};
use crate::report::status_html;
use crate::report::status_svg;
use crate::report::status_text;
use crate::report::upstreamed::upstream_notes;
use crate::stack::Stack;
use crate::upstreamed::PatchSet;

/// Options of `status`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Tag, branch or commit id, also `v1.0~3`; default: the pin.
    #[arg(long, value_name = "REF")]
    pub tip: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", requires = "tip", value_parser = absolute)]
    pub from: Option<String>,
    /// Print full details of every patch that is not exact; with `--json`, also the text of the patches.
    #[arg(long)]
    pub long: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with_all = ["json", "long"])]
    pub markdown: bool,
    /// Also write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write a picture of the series (SVG).
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Reports every patch, without stopping at a failure; exits with 1 unless all are exact, those of other series that
/// were judged too, and no overlay file is in the way.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    options.html.iter().chain(&options.svg).try_for_each(|path| disk::refuse_as_output(path))?;
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Read)?;
    let report = report(context, options)?;
    if let Some(path) = &options.html {
        disk::write_atomically(path, status_html::html(&report, &ui::hint).as_bytes())?;
        context.ui.status("Wrote", path.display());
    }
    if let Some(path) = &options.svg {
        disk::write_atomically(path, status_svg::svg(&report).as_bytes())?;
        context.ui.status("Wrote", path.display());
    }
    let text = match () {
        () if options.markdown => status_text::markdown(&report),
        () if options.long => status_text::long_text(&report),
        () => status_text::text(&report, &ui::hint),
    };
    let code = u8::from(!report.is_exact() || !report.inexact_series().is_empty());
    let report = if options.long { report } else { report.without_hunks() };
    Ok(Outcome { text, json: json!(report), code })
}

/// Returns the report as data: at a named tip on every series of the pin, which moves only with all of them. The caller
/// holds the run lock.
pub fn report(context: &Context, options: &Options) -> Result<StatusReport> {
    let series = PinnedSeries::load(context, options.variant.as_deref())?;
    let tip = find_tip(context, &series, options)?;
    let judged = judge_named(&series, &tip)?;
    let others = match options.tip {
        Some(_) => judge_others(context, &series, &tip)?,
        None => Vec::new(),
    };
    let report = StatusReport { others, ..judged };
    let rebase = match options.tip {
        Some(_) => report.generation.is_none() && report.inexact_series().is_empty(),
        None => is_below_exact(context, &series, &report)?,
    };
    let rebase = rebase.then(|| rebase_command(options));
    let next = next_commands(options, &report, rebase.as_deref());
    Ok(StatusReport { next, ..report }.with_next_steps(rebase.as_deref()))
}

/// Returns the report on every series of a pin at a tip that is in the store, without next steps. The caller holds the
/// run lock.
pub fn report_on_pin(context: &Context, variant: &str, tip: &Tip) -> Result<StatusReport> {
    let series = PinnedSeries::load(context, Some(variant))?;
    let others = judge_others(context, &series, tip)?;
    Ok(StatusReport { others, ..judge_named(&series, tip)? })
}

/// Returns the command that takes the series to the tip; without one, onto the series that it extends.
fn rebase_command(options: &Options) -> String {
    let Options { variant, tip, from, .. } = options;
    let flags = [("--to", tip.as_deref()), ("--variant", variant.as_deref()), ("--from", from.as_deref())];
    next_command("rebase", &flags)
}

/// Suggests the next commands; none if there is nothing to do.
fn next_commands(options: &Options, report: &StatusReport, rebase: Option<&str>) -> Vec<String> {
    // A series can be moved only when it is exact at its pin, and `apply` explains why it is not.
    if let Some(first) = report.inexact_series().first().filter(|_| options.tip.is_some()) {
        return vec![next_command("apply", &[("--variant", Some(first))])];
    }
    if report.all_are_exact() {
        return Vec::new();
    }
    next_steps(options, rebase).into_iter().chain(with_history(options, report)).collect()
}

/// Whether the series that this one extends is exact: then this one can be rebased onto it.
fn is_below_exact(context: &Context, series: &PinnedSeries, report: &StatusReport) -> Result<bool> {
    let has_parent = context.pins()?.parent_series(&series.stack.variant).is_some();
    let mut parents = report.patches.iter().take(series.stack.parents);
    Ok(has_parent && parents.all(|patch| patch.class == PatchClass::Exact))
}

/// Suggests the next commands: at another tip the series can be moved there; at its own pin it is rebased onto the
/// series that it extends, or fixed.
fn next_steps(options: &Options, rebase: Option<&str>) -> Vec<String> {
    let Options { variant, tip, from, .. } = options;
    let (variant, tip, from) = (variant.as_deref(), tip.as_deref(), from.as_deref());
    let all = [("--variant", variant), ("--tip", tip), ("--from", from)];
    let act = match (tip, rebase) {
        (Some(_), Some(_)) => {
            Some(next_command("rebase --dry-run", &[("--to", tip), ("--variant", variant), ("--from", from)]))
        }
        // A generation does not move.
        (Some(_), None) => None,
        (None, Some(rebase)) => Some(rebase.to_string()),
        (None, None) => Some(next_command("apply --check", &[("--variant", variant)])),
    };
    std::iter::once(next_command("status --long", &all)).chain(act).collect()
}

/// Suggests the same report with upstream's commits, if the tip came without them: then it cannot name the one that
/// broke a patch.
fn with_history(options: &Options, report: &StatusReport) -> Option<String> {
    let tip = options.tip.as_deref().filter(|_| report.history.is_none())?;
    let flags = [("--variant", options.variant.as_deref()), ("--tip", Some(tip)), ("--from", Some("PATH"))];
    let command = next_command("status", &flags);
    Some(format!(
        "{command}    # PATH: a clone with the commits since {}, to name the culprits",
        report.pin.shown()
    ))
}

/// Returns the report on one series at a tip that is in its store; `rebase` is the command that moves it there.
pub fn report_at(series: &PinnedSeries, tip: &Tip, rebase: &str) -> Result<StatusReport> {
    let report = judge_named(series, tip)?;
    // Only a series that is exact at its pin is moved.
    let rebase = report.inexact_series().is_empty().then_some(rebase);
    Ok(report.with_next_steps(rebase))
}

/// Returns the report on one series, without next steps.
fn judge_named(series: &PinnedSeries, tip: &Tip) -> Result<StatusReport> {
    let history = series.history(tip)?;
    let judged = judge(series, tip, history.as_deref())?;
    let Stack { variant, pin, generation, .. } = &series.stack;
    let upstream = UpstreamTree { name: &tip.name, tree: tip.tree };
    Ok(StatusReport {
        variant: variant.name.to_string(),
        upstream: pin.upstream.clone(),
        generation: generation.as_ref().map(|_| pin.name.to_string()),
        pin: ReportedTree::new(&pin.revision, pin.tree, verification_of_pin(&series.store, pin.tree)),
        tip: ReportedTree::new(&tip.name, tip.tree, tip.verification),
        inexact_at_pin: !judged.at_pin.is_exact(),
        patches: judged.patches,
        others: Vec::new(),
        overlays: overlays::clashes_at(&series.store, &series.stack, upstream)?,
        commit_page: pin.commit_page(),
        next: Vec::new(),
        history: history.map(|commits| commits.iter().map(upstream_commit).collect()),
    })
}

/// Judges the other series on the pin: of each, the patches that no series before it has.
fn judge_others(context: &Context, series: &PinnedSeries, tip: &Tip) -> Result<Vec<SeriesStatus>> {
    let history = series.history(tip)?;
    let file_of = |patch: &PatchFile| patch.file.clone();
    let mut known: HashSet<String> = series.stack.files.iter().map(file_of).collect();
    let mut others = Vec::new();
    for other in series.others_on_pin(context)? {
        let is_new: Vec<bool> = other.stack.files.iter().map(|patch| known.insert(file_of(patch))).collect();
        if !is_new.contains(&true) {
            continue;
        }
        let judged = judge(&other, tip, history.as_deref())?;
        let patches = judged.patches.into_iter().zip(is_new).filter_map(|(patch, new)| new.then_some(patch));
        others.push(SeriesStatus {
            variant: other.stack.variant.name.to_string(),
            inexact_at_pin: !other.is_exact_in(&judged.at_pin),
            patches: patches.collect(),
        });
    }
    Ok(others)
}

/// The verdicts on the patches of one series.
struct JudgedSeries {
    at_pin: Rc<Survey>,
    patches: Vec<PatchStatus>,
}

fn judge(series: &PinnedSeries, tip: &Tip, history: Option<&[Commit]>) -> Result<JudgedSeries> {
    let found = hold_against(series, tip, history)?;
    let touched = touched_by(&series.store, &series.stack.patches, history.unwrap_or_default())?;
    let judged = found.survey.outcomes().iter().zip(found.drift);
    let mut patches: Vec<PatchStatus> = judged
        .zip(&series.stack.patches)
        .zip(&series.stack.files)
        .map(|((judged, patch), file)| patch_status(patch, judged, &file.file))
        .collect();
    for ((patch, touched_by), caused_by) in patches.iter_mut().zip(touched).zip(found.caused_by) {
        (patch.touched_by, patch.caused_by) = (touched_by, caused_by);
    }
    let commits: Vec<UpstreamCommit> = history.unwrap_or_default().iter().map(upstream_commit).collect();
    for (patch, upstream) in patches.iter_mut().zip(&found.histories) {
        patch.upstream = upstream_notes(upstream, &commits);
    }
    Ok(JudgedSeries { at_pin: found.at_pin, patches })
}

fn find_tip(context: &Context, series: &PinnedSeries, options: &Options) -> Result<Tip> {
    if let Some(reference) = &options.tip {
        return series.tip(context, reference, options.from.as_deref());
    }
    tip_of(&series.store, &series.stack.pin)
}

/// The verdicts on the patches, and for each its drift and the commit that caused its class.
struct Classification {
    at_pin: Rc<Survey>,
    survey: Rc<Survey>,
    drift: Vec<Vec<FileDrift>>,
    caused_by: Vec<Option<usize>>,
    histories: Vec<UpstreamHistory>,
}

fn hold_against(series: &PinnedSeries, tip: &Tip, history: Option<&[Commit]>) -> Result<Classification> {
    let PinnedSeries { stack: Stack { patches, pin, .. }, store } = series;
    let pin_tree = StoreTree::new(store, pin.tree)?;
    let tip_tree = StoreTree::in_range(store, tip.tree, pin.tree, tip.tree)?;
    let applied = range::applied_series(store, patches, &pin_tree)?;
    let Some(history) = history else {
        let at_pin = Rc::new(range::survey_tree(&applied, &pin_tree, &PatchSet::default())?);
        let survey = Rc::new(range::survey_tree(&applied, &tip_tree, &PatchSet::default())?);
        let drift = survey.drift(&applied, &tip_tree)?;
        let caused_by = vec![None; patches.len()];
        return Ok(Classification { at_pin, survey, drift, caused_by, histories: Vec::new() });
    };
    let range = range::survey_history(store, &applied, &pin_tree, history)?;
    let caused_by = (0..patches.len()).map(|patch| cause(&range, patch)).collect();
    let survey = Rc::clone(range.at_tip());
    let drift = survey.drift(&applied, &tip_tree)?;
    let at_pin = Rc::clone(&range.at_pin);
    Ok(Classification { at_pin, survey, drift, caused_by, histories: range.upstreamed.histories })
}

/// Returns the last commit at which the patch changed to the class that it has at the tip.
fn cause(range: &Range, patch: usize) -> Option<usize> {
    let classes = Classes::of(range, patch)?;
    let present = classes.at_tip();
    let since = classes.last_lasting(range, |class| class == present);
    since.filter(|_| present != PatchClass::Exact)
}

/// Returns for each patch the commits that changed one of its files, as indices into `history`.
fn touched_by(store: &Store, patches: &[Patch], history: &[Commit]) -> Result<Vec<Vec<usize>>> {
    let paths_of = |patch: &Patch| -> HashSet<Vec<u8>> {
        let paths = patch.files.iter().flat_map(|file| file.paths());
        paths.map(|path| path.as_bytes().to_vec()).collect()
    };
    let wanted: Vec<HashSet<Vec<u8>>> = patches.iter().map(paths_of).collect();
    let mut touched = vec![Vec::new(); patches.len()];
    for (at, commit) in history.iter().enumerate() {
        let changed = history::changed_paths(store, commit)?;
        for (paths, touched) in wanted.iter().zip(&mut touched) {
            if changed.iter().any(|change| paths.contains(&change.path)) {
                touched.push(at);
            }
        }
    }
    Ok(touched)
}

fn patch_status(patch: &Patch, (outcome, files): (&PatchOutcome, Vec<FileDrift>), file: &str) -> PatchStatus {
    let replayed = outcome.verdict.replayed();
    let is_blocked = !outcome.blocked_by.is_empty();
    let conflicts = replayed
        .iter()
        .filter(|_| !is_blocked)
        .flat_map(|replayed| replayed.conflicts().map(replay::describe_conflict));
    PatchStatus {
        file: file.to_string(),
        subject: patch.subject.clone(),
        class: outcome.class,
        provisional: outcome.provisional,
        blocked_by: outcome.blocked_by.clone(),
        conflicts: conflicts.collect(),
        notes: replayed.map(replay::notes_on).unwrap_or_default(),
        files,
        upstream: Vec::new(),
        touched_by: Vec::new(),
        caused_by: None,
        next: None,
        hunks: status::hunk_texts(patch),
    }
}
