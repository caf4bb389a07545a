//! What every way of replaying a series does with one patch.

use super::course::Course;
use crate::cmd::apply;
use crate::error::{Error, Result};
use crate::series::{
    Arrival, Followed, Patch, Replay, ReplayError, Replayed, Step, TreeChange, TreeError, TreeNames, Way,
};
use crate::sys::arrivals;
use crate::sys::git_tree::{Entry, GitTree};
use crate::sys::store::Store;

/// How the two trees are called.
pub fn names<'a>(course: &'a Course<'_>) -> TreeNames<'a> {
    TreeNames { pin: &course.pin.tag, tip: &course.tip.name }
}

/// The files that came since the pin.
pub fn arrivals_of(store: &Store, course: &Course<'_>) -> std::result::Result<Vec<Arrival>, TreeError> {
    arrivals::between(store, course.pin.tree, course.tip.tree)
        .map_err(|error| TreeError { message: error.to_string() })
}

/// Replays one patch.
pub fn step(course: &Course<'_>, replay: &mut Replay<'_>, patch: &Patch) -> Result<Step> {
    replay.step(patch).map_err(|error| not_replayed(course, error))
}

/// A series that is not exact at its own pin cannot be moved; `apply` says all about it.
pub fn not_replayed(course: &Course<'_>, error: ReplayError) -> Error {
    match error {
        ReplayError::Tree(error) => unreadable(error),
        ReplayError::NotExact(drift) => {
            match apply::apply_inputs(course.store, course.variant, course.pin, &course.inputs) {
                Err(error) => error.hint("a series is moved only from a pin on which it is exact"),
                Ok(_) => Error::no(drift.to_string()),
            }
        }
    }
}

/// A tree that cannot be read is the surroundings failing.
pub fn unreadable(error: TreeError) -> Error {
    Error::surroundings(error.message)
}

/// Puts the changes of a patch into `tree`, and their new blobs into the store's memory.
pub fn add(store: &Store, tree: &mut GitTree<'_>, changes: &[TreeChange]) -> Result<()> {
    for change in changes {
        let entry = change.new.as_ref().map(|file| {
            if let Some(content) = &file.content {
                store.keep(file.id, std::sync::Arc::clone(content));
            }
            Entry { mode: file.mode.as_git_mode(), id: file.id }
        });
        tree.set(change.path.as_bytes(), entry)?;
    }
    Ok(())
}

/// What a person should know about a patch that went well.
pub fn notes_on(replayed: &Replayed) -> Vec<String> {
    let mut notes = Vec::new();
    for file in &replayed.files {
        if let Some(Followed { from, to, percent }) = &file.followed {
            let how = if *percent == 100 {
                "the same content".into()
            } else {
                format!("{percent} % of its lines are the same")
            };
            notes.push(format!("{from} is followed to {to} ({how})"));
        }
        let path = file.after.as_ref().or(file.before.as_ref()).map(|version| version.path.to_string());
        let path = path.unwrap_or_default();
        match &file.way {
            Way::AlreadyThere => notes.push(format!("{path}: upstream has all of the change")),
            Way::PartlyThere { lines, of } => {
                notes.push(format!("{path}: upstream has {lines} of {of} changed lines"));
            }
            Way::AsItWas | Way::Placed | Way::Merged | Way::Conflict(_) => {}
        }
    }
    notes
}
