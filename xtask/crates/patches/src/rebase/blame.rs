//! Causes of a stopped rebase: the upstream commit at which a patch stopped applying, and further stops that are
//! foreseeable.

use espalier_core::error::Result;
use espalier_core::sys::git::history;
use espalier_series::PatchClass;

use super::ahead::Ahead;
use super::place::RebasePosition;
use super::target::{SeriesMove, Target};
use crate::pinned_series::Classes;
use crate::range::{self, upstream_commit};
use crate::report::status_text::{count, short};

/// Explains the stop at a patch: the commit since which it stops, if upstream's history is there, and what will stop
/// later; `ahead` is the rest of its series. `is_upstreams` tells whether upstream changed lines in conflict.
pub fn blame(
    target: &Target<'_>,
    here: &RebasePosition<'_, '_>,
    (ahead, is_upstreams): (Option<Ahead>, bool),
) -> Vec<String> {
    // The conflict itself must be reported even if this fails.
    let unreadable = |error| Some(format!("upstream's commits cannot be read: {error}"));
    let cause = if is_upstreams { cause(here).unwrap_or_else(unreadable) } else { None };
    let rest = ahead.and_then(Ahead::describe_rest);
    let others = target.series().iter().skip(here.series + 1);
    let others = others.filter_map(|series_move| {
        let SeriesMove { stack, .. } = series_move;
        let ahead = Ahead::of_series(series_move).ok()?;
        ahead.describe_series(&stack.variant.name, stack.own_patches().len())
    });
    cause.into_iter().chain(rest).chain(others).collect()
}

/// Returns the commit at which the patch stopped applying; `None` without upstream's history, and if that has only one.
fn cause(here: &RebasePosition<'_, '_>) -> Result<Option<String>> {
    let SeriesMove { context, store, stack, tip, .. } = here.series_move;
    if tip.commit.is_zero() {
        return Ok(None);
    }
    // The only commit between the two trees says no more than their names do.
    let commits = history::since(store, tip.commit, stack.pin.tree)?;
    let Some(commits) = commits.filter(|commits| commits.len() > 1) else {
        return Ok(None);
    };
    context.ui.status("Judging", format!("the series at {}", count(commits.len())));
    let range = range::survey(store, &stack.patches, stack.pin.tree, &commits)?;
    let cause = Classes::of(&range, here.at).and_then(|classes| classes.last_lasting(&range, stops));
    let cause = cause.and_then(|at| commits.get(at)).map(upstream_commit);
    Ok(cause.map(|commit| {
        format!("it stopped applying at {} {} ({})", short(&commit), commit.subject, commit.author)
    }))
}

/// Whether a patch of this class stops the rebase. Upstreamed patches do not count: flags decide about them
/// beforehand.
fn stops(class: PatchClass) -> bool {
    !class.applies() && !matches!(class, PatchClass::Upstreamed | PatchClass::PartlyUpstreamed)
}
