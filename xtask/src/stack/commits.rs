//! A variant's stack as commits: one a patch, by the patch's own author and at its own date, so that the
//! same series gives the same ids on every machine.

use super::apply;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::lock::LockedVariant;
use crate::plan::pins::{Pins, Variant};
use crate::series::{self, Authorship, Patch};
use crate::series::{ObjectId, ObjectKind};
use crate::sys::fetch::fetch_pin;
use crate::sys::inputs::{Inputs, PatchFile, read_stack};
use crate::sys::store::{Store, commit_text_by};

/// A variant's stack, in the store's memory.
#[derive(Clone, Debug)]
pub struct SeriesCommits {
    /// The commit of the pinned tree.
    pub pin: ObjectId,
    /// The last commit of the parents' patches; the pin's when they have none.
    pub border: ObjectId,
    /// The last commit.
    pub tip: ObjectId,
    /// How many patches are the parents'; they come first.
    pub parents: usize,
    /// Everything that the stack is made of.
    pub inputs: Inputs,
    /// What the lock says of it.
    pub locked: LockedVariant,
}

/// Applies the stack of `variant` strictly and makes the commits.
pub fn make_commits(
    context: &Context,
    store: &Store,
    pins: &Pins,
    variant: &Variant,
) -> Result<SeriesCommits> {
    let pin = pins.pin_of(variant);
    let stack = pins.stack(variant);
    let inputs = read_stack(&context.layout, &stack)?;
    let parents = read_stack(&context.layout, &stack[..stack.len() - 1])?.patches.len();
    inputs.patches.iter().try_for_each(|file| read_authored(file).map(drop))?;
    fetch_pin(store, &context.layout, pin, context.offline, &context.ui)?;
    commits_of(store, pins, variant, inputs, parents)
}

/// The same from `inputs`, whose first `parents` patches are the parents'; the pin is in the store.
pub fn commits_of(
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    inputs: Inputs,
    parents: usize,
) -> Result<SeriesCommits> {
    let pin = pins.pin_of(variant);
    let authored = inputs.patches.iter().map(read_authored).collect::<Result<Vec<_>>>()?;
    let locked = apply::apply_inputs(store, variant, pin, &inputs)?.locked;
    let pin = store.pin_commit(pin.tree)?;
    let mut commits = vec![pin];
    let mut tip = pin;
    for ((patch, author), locked) in authored.iter().zip(&locked.patches) {
        let text = commit_text_by(&author.ident(), &locked.tree, Some(tip), &patch.message());
        tip = store.make(ObjectKind::Commit, text.into_bytes());
        commits.push(tip);
    }
    let border = commits.get(parents).copied().unwrap_or(pin);
    Ok(SeriesCommits { pin, border, tip, parents, inputs, locked })
}

fn read_authored(file: &PatchFile) -> Result<(Patch, Authorship)> {
    let patch = file.parse()?;
    let author = series::authorship(&patch).map_err(|why| {
        Error::usage(format!("`{}` cannot become a commit: {why}", file.file))
            .hint("write its `From:` and `Date:` as git does, then run the same command again")
    })?;
    Ok((patch, author))
}
