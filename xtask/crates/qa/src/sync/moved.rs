//! `sync --since`: the checks and the report of a move already made on disk.
//!
//! A move with a conflict ends in `rebase --continue`, which writes the new pin. Here it is held to what `sync --to`
//! requires: the same checks, proof and report. A generation moves in `pins.toml`, and is held to the same
//! ([`generation`]).

use espalier_core::config::intended::report_file;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pin, Pins, Variant, short_name};
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::github::Client;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::stage::Stage;
use espalier_core::ui;
use espalier_patches::pinned_series::tip_of;
use espalier_patches::prove::{self, PinProof};
use espalier_patches::rebase::refuse_unverified;
use espalier_patches::report::range_diff::settled;
use espalier_patches::report::rebase::Fate;
use espalier_patches::report::status::{ReportedTree, StatusReport};
use espalier_patches::stack::Stack;
use espalier_patches::status;
use espalier_series::{Patch, PatchProof};

use super::generation::{self, Before};
use super::{checks, class_of, failed, holds, moved_trees, offer};
use crate::report::sync::{MovedPatch, SyncReport};

/// Checks the move from the commit `since` to the files on disk, writes its report, and opens its pull request if there
/// is a client for it.
///
/// # Errors
///
/// A check failed, a difference is not accounted for, or the pin is the same.
pub fn run(
    context: &Context,
    since: &str,
    variant: Option<&str>,
    github: Option<&Client>,
) -> Result<Outcome> {
    let inputs = Inputs::read(context)?;
    let mut report = describe(context, since, variant)?;
    let page = report_file(&report.old.name, &report.new.name);
    if github.is_some() {
        // Before the builds, which take minutes.
        offer::refuse_more_than_move(context, since, &page)?;
    }
    let locked = Context { locked: true, ..context.clone() };
    report.checks = match &report.generation {
        None => checks::run_all(&locked)?,
        Some(generation) => checks::run_on(&locked, &generation.name)?,
    };
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Change)?;
    if Inputs::read(context)? != inputs {
        let what =
            "`pins.toml` or `espalier.lock` was changed while the move was checked; no report was written";
        return Err(Error::new(Kind::Conflict, what).hint(again(since, variant)));
    }
    if !report.passed() {
        return Err(refuse(context, since, variant, &report)?);
    }
    write(context, &page, &report)?;
    let offered = |client: &Client| {
        let change = offer::since(context, since, &page)?;
        offer::offer(client, &change, (&report, &page))
    };
    let pull = github.map(offered).transpose()?;
    let what = match report.generation {
        None => "all of the move holds",
        Some(_) => "all of it holds",
    };
    Ok(holds(&report, what, &page, pull))
}

/// Writes the report as a part of the last change: `undo` of that change takes it back too.
fn write(context: &Context, page: &str, report: &SyncReport) -> Result<()> {
    let mut stage = Stage::begin(&context.layout)?;
    stage.write(page, ui::named(&report.markdown()).as_bytes())?;
    stage.commit_with_last(format!("the report of {}", report.title())).map(drop)
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
    let base = pins.pin_of(variant).generation_of.as_ref().and_then(|base| pins.pins.get(base));
    match base {
        Some(base) => {
            let pins_before = before.pins()?;
            generation::describe(context, Before { since, pins: &pins_before }, (&pins, variant, base))
        }
        None => describe_move(context, (&before, since), (&pins, variant)),
    }
}

/// Returns the report on the move of the pin of `variant`, without its checks.
fn describe_move(
    context: &Context,
    (before, since): (&Context, &str),
    (pins, variant): (&Pins, &Variant),
) -> Result<SyncReport> {
    let (old, new) = (pin_before(before, since, variant)?, pins.pin_of(variant));
    if old.tree == new.tree {
        return Err(not_moved(&before.pins()?, since, (pins, new)));
    }
    let proven = prove::prove_since(context, since, &new.name)?;
    let store = Store::open(&context.layout.store())?;
    let tip = tip_of(&store, new)?;
    refuse_unverified(pins, &Pin { tree: old.tree, ..new.clone() }, &tip)?;
    let classes = status::report_on_pin(before, &variant.name, &tip)?;
    Ok(SyncReport {
        upstream: new.upstream.clone(),
        old: ReportedTree::new(&old.revision, old.tree, verification_of_pin(&store, old.tree)),
        new: ReportedTree::new(&new.revision, new.tree, tip.verification),
        patches: moved_patches((before, context), &proven, &classes)?,
        uncompared: uncompared(since, &proven),
        proof: proven.proof,
        trees: moved_trees(before, context)?,
        checks: Vec::new(),
        gated: checks::gated(pins).iter().map(ToString::to_string).collect(),
        generation: None,
    })
}

/// Returns the error for a pin that did not move, with the reports of its generations that did.
fn not_moved(before: &Pins, since: &str, (pins, pin): (&Pins, &Pin)) -> Error {
    let what = format!("the pin {} is the same at {since} and in the files on disk", pin.name);
    let error = Error::usage(what)
        .hint("cargo xtask sync --to main --dry-run    # what a move to upstream's tip would do");
    let has_moved =
        |other: &&Pin| before.pins.get(&other.name).is_none_or(|before| before.tree != other.tree);
    let moved = pins.generations(&pin.name).filter(has_moved);
    let variants = moved.filter_map(|generation| pins.patched_on(&generation.name).next());
    variants.fold(error, |error, variant| {
        let flags = [("--since", Some(since)), ("--variant", Some(variant.name.as_str()))];
        error.hint(next_command("sync", &flags))
    })
}

/// Returns the notices of series that only one of the states has.
fn uncompared(since: &str, proven: &PinProof) -> Vec<String> {
    let added = proven.added.iter().map(|name| {
        format!("The series of `{name}` is new since {since}: there is nothing to compare it with.")
    });
    let removed = proven.removed.iter().map(|name| {
        format!("The series of `{name}` is gone since {since}, with its patches: nothing was compared.")
    });
    added.chain(removed).collect()
}

fn pin_before(before: &Context, since: &str, variant: &Variant) -> Result<Pin> {
    let pins = before.pins()?;
    let at = |error: Error| Error { what: format!("at {since}: {}", error.what), ..error };
    let variant = pins.variant(Some(&variant.name)).map_err(at)?;
    Ok(pins.pin_of(variant).clone())
}

/// Returns every own patch of each series, with its fate.
fn moved_patches(
    (before, after): (&Context, &Context),
    PinProof { proof, added, removed }: &PinProof,
    classes: &StatusReport,
) -> Result<Vec<MovedPatch>> {
    let mut moved = Vec::new();
    for series in proof.series.iter().filter(|series| series.old.tree != series.new.tree) {
        let (old, new) = (own_patches(before, &series.variant)?, own_patches(after, &series.variant)?);
        moved.extend(series.proof.patches.iter().flat_map(|pair| rows(pair, &old, &new, classes)));
    }
    moved.extend(rows_of(before, removed, |file| (class_of(classes, file).to_string(), "removed"))?);
    moved.extend(rows_of(after, added, |_| (String::new(), "added"))?);
    Ok(moved)
}

/// Returns one row for each own patch of the variants `names`, which one of the states does not have; `describe`
/// returns its class and its change.
fn rows_of(
    context: &Context,
    names: &[Name],
    describe: impl Fn(&str) -> (String, &'static str),
) -> Result<Vec<MovedPatch>> {
    let mut found = Vec::new();
    for name in names {
        found.extend(own_patches(context, name)?.into_iter().map(|(file, _)| {
            let (class, change) = describe(&file);
            row(file, class, change, None)
        }));
    }
    Ok(found)
}

/// Returns the own patches of a variant by file, in order.
fn own_patches(context: &Context, variant: &str) -> Result<Vec<(String, Patch)>> {
    let pins = context.pins()?;
    let stack = Stack::read(&context.layout, &pins, pins.variant(Some(variant))?)?;
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

/// Returns the command of the same check.
fn again(since: &str, variant: Option<&str>) -> String {
    next_command("sync", &[("--since", Some(since)), ("--variant", variant)])
}

fn refuse(context: &Context, since: &str, variant: Option<&str>, report: &SyncReport) -> Result<Error> {
    let again = again(since, variant);
    if let Some(generation) = &report.generation {
        let what = format!("{}: the generation {} does not hold", report.upstream, generation.name);
        let edit = next_command("rebase", &[("--variant", variant), ("--edit", Some("NNNN"))]);
        return Ok(failed(context, report, what)?
            .hint(format!("{edit}    # at a patch whose sibling is wrong, then: {again}")));
    }
    let (old, new) = (short_name(&report.old.name), short_name(&report.new.name));
    let what = format!("{}: the move from {old} to {new} does not hold", report.upstream);
    Ok(failed(context, report, what)?
        .hint(format!("cargo xtask edit    # then fix the series, and: {again}"))
        .hint("cargo xtask undo    # if the last change was the move: back to the old pin"))
}
