//! `sync --since`: the checks and the report of a move that the files on disk have already.
//!
//! A move with a conflict ends in `rebase --continue`, which writes the new pin. Here it is held to what `sync --to`
//! requires: the same checks, proof and report.

use espalier_core::config::intended::report_file;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pin, Variant, short_name};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::ui;
use espalier_patches::prove;
use espalier_patches::report::proof::{MoveProof, ProvenSeries};
use espalier_patches::report::range_diff::settled;
use espalier_patches::report::rebase::Fate;
use espalier_patches::report::status::{Place, StatusReport};
use espalier_patches::stack::Stack;
use espalier_patches::status;
use espalier_series::{Patch, PatchProof};

use super::{checks, class_of, failed, holds, moved_trees};
use crate::report::sync::{MovedPatch, SyncReport};

/// Checks the move from the commit `since` to the files on disk, and writes its report. `gated` are the variants that the
/// gate has to pass.
///
/// # Errors
///
/// A check failed, a difference is not accounted for, or the pin is the same.
pub fn run(context: &Context, since: &str, variant: Option<&str>, gated: &[Name]) -> Result<Outcome> {
    let inputs = Inputs::read(context)?;
    let mut report = describe(context, since, variant)?;
    report.gated = gated.iter().map(ToString::to_string).collect();
    report.checks = checks::run_all(&Context { locked: true, ..context.clone() })?;
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    if Inputs::read(context)? != inputs {
        let what =
            "`pins.toml` or `espalier.lock` was changed while the move was checked; no report was written";
        return Err(Error::new(Kind::Conflict, what).hint(format!("cargo xtask sync --since {since}")));
    }
    if !report.passed() {
        return Err(refuse(context, since, &report)?);
    }
    let page = report_file(&report.old.name, &report.new.name);
    disk::write_atomically(&context.layout.root().join(&page), ui::named(&report.markdown()).as_bytes())?;
    Ok(holds(&report, "all of the move holds", &page, None))
}

/// The files that say what is checked: the lock has the digest of every patch.
#[derive(PartialEq)]
struct Inputs([Option<Vec<u8>>; 2]);

impl Inputs {
    fn read(context: &Context) -> Result<Inputs> {
        let files = [context.layout.pins(), context.layout.lock()];
        Ok(Inputs([disk::read_if_there(&files[0])?, disk::read_if_there(&files[1])?]))
    }
}

/// Returns the report without its checks.
fn describe(context: &Context, since: &str, variant: Option<&str>) -> Result<SyncReport> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    let stage = prove::stage_at(context, since)?;
    let before = context.staged(&stage);
    let pins = context.pins()?;
    let variant = pins.variant(variant)?;
    let (old, new) = (pin_before(&before, since, variant)?, pins.pin_of(variant));
    if old.tree == new.tree {
        let what = format!("the pin {} is the same at {since} and in the files on disk", new.name);
        return Err(Error::usage(what)
            .hint("cargo xtask sync --to main --dry-run    # what a move to upstream's tip would do"));
    }
    let proof = prove::prove_since(context, since)?;
    let store = Store::open(&context.layout.store())?;
    let tip = status::tip_of(&store, new)?;
    let classes = status::report_on_pin(&before, &variant.name, &tip)?;
    Ok(SyncReport {
        upstream: new.upstream.clone(),
        old: Place::new(&old.revision, old.tree, verification_of_pin(&store, old.tree)),
        new: Place::new(&new.revision, new.tree, tip.verification),
        patches: moved_patches((&before, context), &proof, &classes)?,
        proof,
        trees: moved_trees(&before, context)?,
        checks: Vec::new(),
        gated: Vec::new(),
    })
}

fn pin_before(before: &Context, since: &str, variant: &Variant) -> Result<Pin> {
    let pins = before.pins()?;
    let at = |error: Error| Error { what: format!("at {since}: {}", error.what), ..error };
    let variant = pins.variant(Some(&variant.name)).map_err(at)?;
    Ok(pins.pin_of(variant).clone())
}

/// Returns every own patch of each compared series, with its fate.
fn moved_patches(
    (before, after): (&Context, &Context),
    proof: &MoveProof,
    classes: &StatusReport,
) -> Result<Vec<MovedPatch>> {
    let mut moved = Vec::new();
    for series in proof.series.iter().filter(|series| series.old.tree != series.new.tree) {
        let (old, new) = (own_patches(before, series)?, own_patches(after, series)?);
        moved.extend(series.proof.patches.iter().flat_map(|pair| rows(pair, &old, &new, classes)));
    }
    Ok(moved)
}

/// The own patches of a series by file, in order.
fn own_patches(context: &Context, series: &ProvenSeries) -> Result<Vec<(String, Patch)>> {
    let pins = context.pins()?;
    let stack = Stack::read(&context.layout, &pins, pins.variant(Some(&series.variant))?)?;
    let files = stack.own_files().iter().map(|patch| patch.file.clone());
    Ok(files.zip(stack.own_patches().iter().cloned()).collect())
}

/// Returns one row for each old patch of `pair`; a patch that the move added has a row of its own.
fn rows(
    pair: &PatchProof,
    old: &[(String, Patch)],
    new: &[(String, Patch)],
    classes: &StatusReport,
) -> Vec<MovedPatch> {
    let find = |patches: &'_ [(String, Patch)], name: &String| {
        patches.iter().find(|(_, patch)| patch.name == *name).cloned()
    };
    let news: Vec<(String, Patch)> = pair.new.iter().filter_map(|name| find(new, name)).collect();
    let olds: Vec<(String, Patch)> = pair.old.iter().filter_map(|name| find(old, name)).collect();
    if olds.is_empty() {
        let added = |(file, _): (String, Patch)| row(file, String::new(), "added", None);
        return news.into_iter().map(added).collect();
    }
    // Of several patches that correspond to each other only together, none has a successor of its own.
    let is_pair = pair.old.len() == 1 && pair.new.len() <= 1;
    let rows = olds.into_iter().enumerate().map(|(at, (file, patch))| {
        let class = class_of(classes, &file).to_string();
        let (fate, difference) = settled(&patch, news.get(at).map(|(_, new)| new), false);
        let fate = if is_pair { fate } else { Fate::Changed };
        row(file, class, fate.describe(), difference)
    });
    rows.collect()
}

fn row(file: String, class: String, change: &str, difference: Option<String>) -> MovedPatch {
    MovedPatch { file, class, change: change.to_string(), difference: difference.unwrap_or_default() }
}

fn refuse(context: &Context, since: &str, report: &SyncReport) -> Result<Error> {
    let (old, new) = (short_name(&report.old.name), short_name(&report.new.name));
    let what = format!("{}: the move from {old} to {new} does not hold", report.upstream);
    Ok(failed(context, report, what)?
        .hint(format!("cargo xtask edit    # then fix the series, and: cargo xtask sync --since {since}"))
        .hint("cargo xtask undo    # if the last change was the move: back to the old pin"))
}
