//! Why a rebase stops: the upstream commit since which a patch does not go along, and what else is known to come.

use super::course::Course;
use crate::error::Result;
use crate::report::status_text::{count, short};
use crate::series::PatchClass;
use crate::stack::pinned_series::Classes;
use crate::stack::range;
use crate::stack::range::upstream_commit;
use crate::sys::git::history;

/// What upstream's commits say about the stop at the patch `at`, line by line; nothing where they are not available.
pub fn blame(course: &Course<'_>, at: usize) -> Vec<String> {
    // The conflict itself is to be told, whatever becomes of this.
    find(course, at).unwrap_or_else(|error| vec![format!("upstream's commits cannot be read: {error}")])
}

fn find(course: &Course<'_>, at: usize) -> Result<Vec<String>> {
    if course.tip.commit.is_zero() {
        return Ok(Vec::new());
    }
    let Some(commits) = history::since(course.store, course.tip.commit, course.stack.pin.tree)? else {
        return Ok(Vec::new());
    };
    course.context.ui.status("Judging", format!("the series at {}", count(commits.len())));
    let range = range::survey(course.store, &course.stack.patches, course.stack.pin.tree, &commits)?;
    let cause = Classes::of(&range, at).and_then(|classes| classes.last_lasting(&range, stops));
    let cause = cause.and_then(|at| commits.get(at)).map(upstream_commit);
    let since = cause.map(|commit| {
        format!("it stopped applying at {} {} ({})", short(&commit), commit.subject, commit.author)
    });
    let more = range.at_tip().classes().skip(at + 1).filter(|class| stops(*class)).count();
    let more =
        (more > 0).then(|| format!("after it {more} more of the patches will stop, as far as is known"));
    Ok(since.into_iter().chain(more).collect())
}

/// What upstream took stops nobody who said so beforehand.
fn stops(class: PatchClass) -> bool {
    !class.applies() && !matches!(class, PatchClass::Upstreamed | PatchClass::PartlyUpstreamed)
}
