//! Causes of a stopped rebase: the upstream commit at which a patch stopped applying, and further stops that are
//! foreseeable.

use espalier_core::error::Result;
use espalier_core::sys::git::history;
use espalier_series::PatchClass;

use super::place::Place;
use super::target::{SeriesMove, Target};
use crate::pinned_series::Classes;
use crate::range::upstream_commit;
use crate::range::{self, Range};
use crate::report::status_text::{count, short};
use crate::stack::Stack;

/// Explains the stop at a patch from upstream's commits, line by line; empty if they are not available.
pub fn blame(target: &Target<'_>, here: &Place<'_, '_>) -> Vec<String> {
    // The conflict itself must be reported even if this fails.
    find(target, here).unwrap_or_else(|error| vec![format!("upstream's commits cannot be read: {error}")])
}

fn find(target: &Target<'_>, here: &Place<'_, '_>) -> Result<Vec<String>> {
    let SeriesMove { context, store, stack, tip, .. } = here.series_move;
    if tip.commit.is_zero() {
        return Ok(Vec::new());
    }
    let Some(commits) = history::since(store, tip.commit, stack.pin.tree)? else {
        return Ok(Vec::new());
    };
    context.ui.status("Judging", format!("the series at {}", count(commits.len())));
    let survey = |stack: &Stack| range::survey(store, &stack.patches, stack.pin.tree, &commits);
    let range = survey(stack)?;
    let cause = Classes::of(&range, here.at).and_then(|classes| classes.last_lasting(&range, stops));
    let cause = cause.and_then(|at| commits.get(at)).map(upstream_commit);
    let since = cause.map(|commit| {
        format!("it stopped applying at {} {} ({})", short(&commit), commit.subject, commit.author)
    });
    let more = stops_from(&range, here.at + 1);
    let more =
        (more > 0).then(|| format!("after it {more} more of the patches will stop, as far as is known"));
    let mut notes: Vec<String> = since.into_iter().chain(more).collect();
    for SeriesMove { stack, .. } in target.series().iter().skip(here.series + 1) {
        let (stop, own) = (stops_from(&survey(stack)?, stack.parents), stack.own_patches().len());
        if stop > 0 {
            notes.push(format!("{}: {stop} of {own} patches will stop too", stack.variant.name));
        }
    }
    Ok(notes)
}

/// Returns the number of patches from `from` on that stop at the tip.
fn stops_from(range: &Range, from: usize) -> usize {
    range.at_tip().classes().skip(from).filter(|class| stops(*class)).count()
}

/// Whether a patch of this class stops the rebase. Upstreamed patches do not count: flags decide about them
/// beforehand.
fn stops(class: PatchClass) -> bool {
    !class.applies() && !matches!(class, PatchClass::Upstreamed | PatchClass::PartlyUpstreamed)
}
