//! Where a rebase starts, where it goes, and what it takes along.

use super::Options;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::next_command::next_command;
use crate::plan::pins::{Pin, Pins, Variant};
use crate::plan::rebase_state::TakenPatch;
use crate::report::status_text::count;
use crate::report::taken::story_notes;
use crate::series::Origin;
use crate::stack::Stack;
use crate::stack::pinned_series::fetcher;
use crate::stack::range::upstream_commit;
use crate::stack::taken;
use crate::sys::git::history::{self, Comparisons};
use crate::sys::git::store::Store;
use crate::sys::upstream::fetch::fetch_pin;
use crate::sys::upstream::tip::{self, Ask, Tip};

/// Everything that is known before the first patch is replayed.
pub struct Course<'a> {
    pub context: &'a Context,
    pub pins: &'a Pins,
    pub store: &'a Store,
    pub stack: Stack,
    /// What the series was made for, as people call it.
    pub old_name: String,
    pub tip: Tip,
}

/// Reads the series and brings both trees into the store.
pub fn load<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    options: &Options,
) -> Result<Course<'a>> {
    let end = [("--to", Some(options.to.as_str())), ("--from", options.from.as_deref())];
    load_with_tip(context, pins, store, (options.variant.as_deref(), &end), |pin| {
        let ask = Ask { pin, reference: &options.to, from: options.from.as_deref(), history: true };
        let mut tip = tip::resolve(fetcher(context, store), &ask)?;
        tip.name = tip.revision.to_string();
        Ok(tip)
    })
}

/// What upstream's commits since the pin made of each patch; nothing where they are not available.
pub fn read_upstream(course: &Course<'_>, origin: &Origin<'_>) -> Result<Vec<TakenPatch>> {
    if course.tip.commit.is_zero() {
        return Ok(Vec::new());
    }
    let history = history::since(course.store, course.tip.commit, course.stack.pin.tree)?.unwrap_or_default();
    if history.is_empty() {
        return Ok(Vec::new());
    }
    let commits = count(history.len());
    course
        .context
        .ui
        .status("Reading", format!("{commits} of {} since {}", course.stack.pin.upstream, course.old_name));
    let taken = taken::watch(course.store, origin, &history, &Comparisons::new(course.store))?;
    let commits: Vec<_> = history.iter().map(upstream_commit).collect();
    let set = taken.at_tip();
    let patch = |(at, story)| TakenPatch { taken: set.contains(&at), notes: story_notes(story, &commits) };
    Ok(taken.stories.iter().enumerate().map(patch).collect())
}

/// The same with a tip that is known already, or found in another way.
pub fn load_with_tip<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    (variant, end): (Option<&str>, &[(&str, Option<&str>)]),
    find_tip: impl FnOnce(&Pin) -> Result<Tip>,
) -> Result<Course<'a>> {
    let variant = pins.variant(variant)?;
    refuse_left_behind(pins, variant, end)?;
    let stack = Stack::read(&context.layout, pins, variant)?;
    fetch_pin(store, &context.layout, &stack.pin, context.offline, &context.ui)?;
    let tip = find_tip(&stack.pin)?;
    Ok(onto(context, pins, store, stack, tip))
}

/// The same to a tip that is in the store.
pub fn onto<'a>(
    context: &'a Context,
    pins: &'a Pins,
    store: &'a Store,
    stack: Stack,
    tip: Tip,
) -> Course<'a> {
    let old_name = stack.pin.revision.to_string();
    Course { context, pins, store, stack, old_name, tip }
}

/// A pin moves for all variants that stand on it. One whose patches are not replayed here would break.
fn refuse_left_behind(pins: &Pins, variant: &Variant, end: &[(&str, Option<&str>)]) -> Result<()> {
    let taken: Vec<&str> = pins.stack(variant).iter().map(|part| part.name.as_str()).collect();
    let stays = |other: &&Variant| {
        other.pin == variant.pin && other.patches.is_some() && !taken.contains(&other.name.as_str())
    };
    let Some(other) = pins.variants.values().find(stays) else { return Ok(()) };
    let what = format!(
        "the pin `{}` cannot move with `{}` alone: `{}` has patches on it too",
        variant.pin, variant.name, other.name
    );
    let extends = pins.stack(other).iter().any(|part| part.name == variant.name);
    Err(Error::usage(what).hint(match extends {
        true => {
            let flags = [&[("--variant", Some(other.name.as_str()))], end].concat();
            format!("its series includes this one: {}", next_command("rebase", &flags))
        }
        false => {
            format!("give one of them a pin of its own in `pins.toml`: a second `[pins.{}-2]`", variant.pin)
        }
    }))
}
