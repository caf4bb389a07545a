//! A variant's stack as commits: one per patch, with the patch's own author and date, so that the same series yields
//! the same ids on every machine.

use espalier_core::config::lock::LockedVariant;
use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::{Store, commit_text_by};
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::work_trees::edit_repo::Marks;
use espalier_series as series;
use espalier_series::{Authorship, Patch};
use espalier_series::{ObjectId, ObjectKind};

use super::apply;
use crate::stack::Stack;

/// A variant's stack, in the store's memory.
#[derive(Clone, Debug)]
pub struct SeriesCommits {
    /// The commit of the pinned tree.
    pub pin: ObjectId,
    /// The commit that the variant's own patches start from: the last one of the parents' patches, or the pin's.
    pub base: ObjectId,
    /// The last commit.
    pub tip: ObjectId,
    /// Source of the commits.
    pub stack: Stack,
    /// Entry of the variant in the lock.
    pub locked: LockedVariant,
}

impl SeriesCommits {
    /// Returns the marks of an edit repository whose branch is this series.
    pub fn marks(&self) -> Marks {
        Marks { pin: self.pin, base: self.base, series: self.tip, made: self.tip }
    }
}

/// Applies the stack of `variant` strictly and creates the commits.
pub fn make_commits(
    context: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
) -> Result<SeriesCommits> {
    let stack = Stack::read(&context.layout, pins, variant)?;
    authors_of(&stack)?;
    stack.fetch(context, store)?;
    commits_of(store, stack)
}

/// As [`make_commits`], for a stack whose pin is in the store.
pub fn commits_of(store: &Store, stack: Stack) -> Result<SeriesCommits> {
    let authors = authors_of(&stack)?;
    let locked = apply::apply_stack(store, &stack)?.locked;
    let pin = store.pin_commit(stack.pin.tree)?;
    let mut commits = vec![pin];
    let mut tip = pin;
    for ((patch, author), locked) in stack.patches.iter().zip(&authors).zip(&locked.patches) {
        let text = commit_text_by(&author.ident(), &locked.tree, Some(tip), &patch.message());
        tip = store.make(ObjectKind::Commit, text.into_bytes());
        commits.push(tip);
    }
    let base = commits.get(stack.parents).copied().unwrap_or(pin);
    Ok(SeriesCommits { pin, base, tip, stack, locked })
}

fn authors_of(stack: &Stack) -> Result<Vec<Authorship>> {
    stack.files.iter().zip(&stack.patches).map(author_of).collect()
}

fn author_of((file, patch): (&PatchFile, &Patch)) -> Result<Authorship> {
    series::authorship(patch).map_err(|why| {
        Error::usage(format!("`{}` cannot become a commit: {why}", file.file))
            .hint("write its `From:` and `Date:` as git does, then run the same command again")
    })
}
