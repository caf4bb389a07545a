//! The conflicts of a series on an upstream tree, described without a rebase: for reports.

use espalier_core::config::pins::Pins;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::{FailedPatches, Replay};

use super::package::{self, Stopped};
use super::steps::{names, step};
use super::target::{self, read_upstream};
use crate::generation;
use crate::range;
use crate::rebase::state::places_of_upstreamed;
use crate::report::conflict::ConflictPackage;
use crate::stack::Stack;

/// Describes every patch of the series that has conflicts on `tip`, except those that an earlier one of them blocks.
///
/// # Errors
///
/// When a tree cannot be read, or the series is not exact at its pin.
pub fn conflicts_on(
    context: &Context,
    pins: &Pins,
    store: &Store,
    stack: &Stack,
    tip: &Tip,
) -> Result<Vec<ConflictPackage>> {
    let placed = generation::placed(store, stack)?;
    let stack = &*placed;
    let series_move = target::onto(context, pins, store, stack.clone(), tip.clone());
    let pin_tree = StoreTree::new(store, stack.pin.tree)?;
    let tip_tree = StoreTree::in_range(store, tip.tree, stack.pin.tree, tip.tree)?;
    let applied = range::applied_series(store, &stack.patches, &pin_tree)?;
    let upstreamed = places_of_upstreamed(&read_upstream(&series_move, &applied)?);
    let mut replay = Replay::new(&applied, &tip_tree, names(&series_move), &upstreamed);
    let mut failed = FailedPatches::default();
    let mut packages = Vec::new();
    for (at, patch) in stack.patches.iter().enumerate() {
        let step = step(&series_move, &mut replay, at)?;
        if step.replayed.has_conflict() && failed.add(patch).is_empty() {
            let (replay, replayed) = (&replay, &step.replayed);
            let stopped =
                Stopped { series_move: &series_move, replay, at, replayed, sibling: None, done: &[] };
            packages.push(package::build(&stopped)?);
        }
    }
    Ok(packages)
}
