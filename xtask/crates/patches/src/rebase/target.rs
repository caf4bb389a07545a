//! Start and target of a rebase, and the series that move with the pin.

use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pin, Pins, UNVERIFIABLE, Variant, short_name};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::history::{self, Commit, Comparisons};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::upstream::tip::{self, Ask, Tip};
use espalier_series::{AppliedSeries, ObjectId};

use super::Upstream;
use crate::pinned_series::fetcher;
use crate::range::upstream_commit;
use crate::rebase::state::{PatchInUpstream, Scope};
use crate::report::status::ReportedTree;
use crate::report::status_text::count;
use crate::report::upstreamed::upstream_notes;
use crate::stack::{Sibling, Stack};
use crate::upstreamed;

/// The inputs of one series before its first patch is replayed.
#[derive(Clone)]
pub struct SeriesMove<'a> {
    pub context: &'a Context,
    pub pins: &'a Pins,
    pub store: &'a Store,
    pub stack: Stack,
    /// Name of the base of the series, for people.
    pub old_name: String,
    pub tip: Tip,
    /// The pin whose name the folder of the rebase has.
    pub home: Name,
    /// For each patch its sibling in the generation that the series is replayed on; empty for any other target.
    pub siblings: Vec<Option<Sibling>>,
}

impl SeriesMove<'_> {
    /// Returns the sibling of the patch at `at`.
    pub fn sibling(&self, at: usize) -> Option<&Sibling> {
        self.siblings.get(at)?.as_ref()
    }

    /// Returns the base that the series was made for, with the tree `tree` below its first patch.
    pub fn old_base(&self, tree: ObjectId) -> ReportedTree {
        ReportedTree::new(&self.old_name, tree, verification_of_pin(self.store, self.stack.pin.tree))
    }

    /// Returns its new base, with the tree `tree` below its first patch.
    pub fn new_base(&self, tree: ObjectId) -> ReportedTree {
        ReportedTree::new(&self.tip.name, tree, self.tip.verification)
    }
}

/// A pin with everything that moves with it: no variant can stay behind on a tree that its patches were not made for.
pub struct PinMove<'a> {
    /// The named variant, with the new tree as its target. It may have no patches of its own.
    pub named: SeriesMove<'a>,
    /// Every series on the pin, in an order in which extended variants come before those that extend them.
    pub series: Vec<SeriesMove<'a>>,
}

/// The series that a rebase moves, with the base and the target tree.
pub enum Target<'a> {
    /// A pin, with every series on it.
    Pin(PinMove<'a>),
    /// The patches of one variant, from the old tree of its parent series to the new one. They are the whole of its
    /// stack here; the old tree takes the role of the pin's, the new one that of the tip's, which has no commit.
    Series(SeriesMove<'a>),
    /// A generation, with every series that is used there: the result is siblings, and the patches stay as they are.
    Generation(PinMove<'a>),
}

impl<'a> Target<'a> {
    /// Returns the named variant.
    pub fn named(&self) -> &SeriesMove<'a> {
        match self {
            Target::Pin(moved) | Target::Generation(moved) => &moved.named,
            Target::Series(series_move) => series_move,
        }
    }

    /// Returns every series that moves; extended variants come before those that extend them.
    pub fn series(&self) -> &[SeriesMove<'a>] {
        match self {
            Target::Pin(moved) | Target::Generation(moved) => &moved.series,
            Target::Series(series_move) => std::slice::from_ref(series_move),
        }
    }

    /// Returns its scope, for the record of the rebase.
    pub fn scope(&self) -> Scope {
        match self {
            Target::Pin(_) => Scope::Pin,
            Target::Series(_) => Scope::Series,
            Target::Generation(_) => Scope::Generation,
        }
    }
}

/// Reads every series on the pin and fetches both trees into the store.
pub fn load<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    (variant, upstream): (&Variant, Upstream<'_>),
) -> Result<PinMove<'a>> {
    load_with_tip(context, pins, store, variant, |pin| {
        let Upstream { to, from } = upstream;
        let ask = Ask { pin, reference: to, from, history: true };
        let mut tip = tip::resolve(fetcher(context, store), &ask)?;
        tip.name = tip.revision.to_string();
        Ok(tip)
    })
}

/// Returns which patches upstream's commits since the pin contain; empty if the commits are not available.
pub fn read_upstream(
    series_move: &SeriesMove<'_>,
    applied: &AppliedSeries<'_>,
) -> Result<Vec<PatchInUpstream>> {
    let history = history_of(series_move)?;
    if !history.is_empty() {
        let commits = count(history.len());
        series_move.context.ui.status(
            "Reading",
            format!("{commits} of {} since {}", series_move.stack.pin.upstream, series_move.old_name),
        );
    }
    upstreamed_in(series_move, applied, &history)
}

/// As [`read_upstream`], without a status line.
pub fn upstream_of(
    series_move: &SeriesMove<'_>,
    applied: &AppliedSeries<'_>,
) -> Result<Vec<PatchInUpstream>> {
    upstreamed_in(series_move, applied, &history_of(series_move)?)
}

fn history_of(series_move: &SeriesMove<'_>) -> Result<Vec<Commit>> {
    let SeriesMove { store, stack, tip, .. } = series_move;
    match tip.commit.is_zero() {
        true => Ok(Vec::new()),
        false => Ok(history::since(store, tip.commit, stack.pin.tree)?.unwrap_or_default()),
    }
}

fn upstreamed_in(
    series_move: &SeriesMove<'_>,
    applied: &AppliedSeries<'_>,
    history: &[Commit],
) -> Result<Vec<PatchInUpstream>> {
    if history.is_empty() {
        return Ok(Vec::new());
    }
    let upstreamed =
        upstreamed::watch(series_move.store, applied, history, &Comparisons::new(series_move.store))?;
    let commits: Vec<_> = history.iter().map(upstream_commit).collect();
    let set = upstreamed.at_tip();
    let patch = |(at, upstream)| PatchInUpstream {
        upstreamed: set.contains(&at),
        notes: upstream_notes(upstream, &commits),
    };
    Ok(upstreamed.histories.iter().enumerate().map(patch).collect())
}

/// As [`load`], with a tip that is already known.
pub fn load_with_tip<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    variant: &Variant,
    find_tip: impl FnOnce(&Pin) -> Result<Tip>,
) -> Result<PinMove<'a>> {
    let stack = Stack::read(&context.layout, pins, variant)?;
    stack.fetch(context, store)?;
    let tip = find_tip(&stack.pin)?;
    refuse_unverified(pins, &stack.pin, &tip)?;
    let named = onto(context, pins, store, stack.clone(), tip);
    let series = pins.series_on(&variant.pin).into_iter().map(|other| {
        let stack = Stack::read(&context.layout, pins, other)?;
        Ok(SeriesMove { stack, ..named.clone() })
    });
    Ok(PinMove { series: series.collect::<Result<_>>()?, named })
}

/// Refuses to move `pin` to `tip` if it is that of the default variant and nothing confirms the tree: it came as unpacked
/// files, or these are the only source of the revision, with which `pins.toml` would be rejected.
///
/// # Errors
///
/// Of kind `Usage`, with a generation as the way out.
pub fn refuse_unverified(pins: &Pins, pin: &Pin, tip: &Tip) -> Result<()> {
    let moved = Pin { revision: tip.revision.clone(), tree: tip.tree, ..pin.clone() };
    let is_default = pins.variant(None)?.pin == pin.name;
    let is_without_source = moved.unverifiable_source().is_some();
    // A rebase within the pin leaves the tree as it is.
    let is_unverified = tip.tree != pin.tree && !tip.verification.is_verified();
    if !is_default || !(is_without_source || is_unverified) {
        return Ok(());
    }
    let to = short_name(&tip.name);
    let what = format!("the pin `{}` cannot move to {to}", pin.name);
    let error = Error::usage(what).detail(UNVERIFIABLE).hint(format!(
        "use {to} as a generation, a pin with `generation-of = \"{}\"`: docs/guides/generations.md",
        pin.name
    ));
    Err(match is_without_source {
        true => error.hint(moved.way_to_verify()),
        false => error.hint(format!(
            "or fetch it from a clone of upstream: {}    # PATH: the clone, or a URL",
            next_command("rebase", &[("--to", Some(to)), ("--from", Some("PATH"))])
        )),
    })
}

/// Returns the rebase of one series to a tip that is in the store.
pub fn onto<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    stack: Stack,
    tip: Tip,
) -> SeriesMove<'a> {
    let (old_name, home) = (stack.pin.revision.to_string(), stack.pin.name.clone());
    SeriesMove { context, pins, store, stack, old_name, tip, home, siblings: Vec::new() }
}
