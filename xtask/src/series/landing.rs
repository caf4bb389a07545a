//! Where did a merge put the lines of a patch, and is that where they were made for?

use super::drift::{HunkClass, HunkDrift};
use super::function::{FunctionMap, indentation};
use super::line_diff::ChangedRun;
use super::model::Hunk;
use super::printable::printable;
use super::replay_outcome::Doubt;

/// The changes of a patch where it was made, and where a merge put them.
pub(crate) struct Landing<'a> {
    /// From base to theirs.
    pub made: Vec<ChangedRun>,
    pub base: &'a FunctionMap<'a>,
    /// From ours to the merged text.
    pub landed: Vec<ChangedRun>,
    pub ours: &'a FunctionMap<'a>,
    pub hunks: &'a [Hunk],
    /// The class of each hunk against ours.
    pub drifts: &'a [HunkDrift],
}

impl Landing<'_> {
    /// How many lines the patch changes.
    pub fn lines_made(&self) -> usize {
        self.made.iter().map(ChangedRun::size).sum()
    }

    /// How many lines the merge changed.
    pub fn lines_landed(&self) -> usize {
        self.landed.iter().map(ChangedRun::size).sum()
    }
}

/// The places of `landing.landed` that nobody can be sure of, each with what is known about it; empty
/// when all is well.
pub(crate) fn check_landing(landing: &Landing<'_>) -> Vec<(usize, Doubt)> {
    let mut doubts = in_another_function(landing);
    for (hunk, drift) in landing.hunks.iter().zip(landing.drifts) {
        if let HunkClass::MovedFunction { .. } | HunkClass::Ambiguous = drift.class {
            doubts.extend(near_its_places(landing, hunk, drift));
        }
    }
    let is_upstreamed = |drift: &HunkDrift| drift.class == HunkClass::Upstreamed;
    let was_made_twice =
        landing.drifts.iter().any(is_upstreamed) && landing.lines_landed() >= landing.lines_made();
    if was_made_twice {
        let every = landing.landed.iter().enumerate();
        doubts.extend(every.map(|(at, run)| (at, doubt(landing, run, None, "upstreamed"))));
    }
    doubts.sort_by_key(|(at, _)| *at);
    doubts.dedup_by_key(|(at, _)| *at);
    doubts
}

/// Runs that landed in other functions than those that the patch changes, in its order. Some may be
/// missing: upstream has them.
fn in_another_function(landing: &Landing<'_>) -> Vec<(usize, Doubt)> {
    let mut made = landing.made.iter();
    let mut doubts = Vec::new();
    for (at, run) in landing.landed.iter().enumerate() {
        let there = surroundings(landing.ours, run.old.start);
        let rest = made.clone();
        let found = made.by_ref().find(|own| same(surroundings(landing.base, own.old.start), there.clone()));
        if found.is_none() {
            made = rest;
            let own = made.clone().next();
            let name = own.and_then(|own| landing.base.function_before(own.old.start)).map(printable);
            doubts.push((at, doubt(landing, run, name, "moved function")));
        }
    }
    doubts
}

/// The function above a place, and the scopes around it, innermost first.
type Surroundings<'a> = (Option<&'a [u8]>, Option<Vec<&'a [u8]>>);

/// The scopes are those of the last line before the place that is not blank: what follows may be
/// upstream's.
fn surroundings<'a>(functions: &FunctionMap<'a>, at: usize) -> Surroundings<'a> {
    let anchor = functions.last_line_before(at, |line| indentation(line).is_some()).unwrap_or(at);
    (functions.function_before(at), functions.scopes_around(anchor))
}

/// Scopes that are not known prove nothing.
fn same(own: Surroundings<'_>, there: Surroundings<'_>) -> bool {
    own.1.is_some() && own == there
}

/// The runs that lie where a doubtful hunk fits; all of them when none does.
fn near_its_places(landing: &Landing<'_>, hunk: &Hunk, drift: &HunkDrift) -> Vec<(usize, Doubt)> {
    let class = drift.class.as_patch_class().describe();
    let all = || landing.landed.iter().enumerate();
    let fits = |run: &ChangedRun| {
        let line = run.old.start + 1;
        drift.fits_at.iter().any(|place| place.line <= line && line <= place.line + hunk.old_count)
    };
    let near: Vec<(usize, &ChangedRun)> = all().filter(|(_, run)| fits(run)).collect();
    let chosen = if near.is_empty() { all().collect() } else { near };
    chosen.into_iter().map(|(at, run)| (at, doubt(landing, run, drift.function.clone(), class))).collect()
}

fn doubt(landing: &Landing<'_>, run: &ChangedRun, made_for: Option<String>, class: &'static str) -> Doubt {
    let lands_in = landing.ours.function_before(run.old.start).map(printable);
    Doubt { line: run.old.start + 1, made_for, lands_in, class }
}
