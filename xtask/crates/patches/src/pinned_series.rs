//! The common input of `status`, `bisect` and `newest`: a variant's series, its pin, and upstream since then.

use std::collections::BTreeSet;
use std::rc::Rc;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::config::pins::{Pin, Source};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::history::{self, Commit};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::project::root::absolute;
use espalier_core::sys::upstream::fetch::Fetcher;
use espalier_core::sys::upstream::tip::{self, Ask, Tip};
use espalier_series::{PatchClass, Survey};

use super::generation;
use super::range::{self, Range};
use crate::commit_property::CommitProperty;
use crate::stack::Stack;

/// The tip if none is named: the default branch.
const DEFAULT_TIP: &str = "HEAD";

/// The upstream commits since the pin of a variant, up to a tip.
#[derive(Clone, Debug, Default, Args)]
pub struct UpToTip {
    /// Variant of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Tag, branch or commit id, also `v1.0~3`; default: upstream's default branch.
    #[arg(long, value_name = "REF")]
    pub tip: Option<String>,
    /// Repository, bundle or URL to fetch it from, instead of the pin's sources.
    #[arg(long, value_name = "PATH|URL", value_parser = absolute)]
    pub from: Option<String>,
}

impl UpToTip {
    /// Returns the name of the tip.
    #[must_use]
    pub fn reference(&self) -> &str {
        self.tip.as_deref().unwrap_or(DEFAULT_TIP)
    }

    /// Reads the series and fetches its pin. The caller holds the run lock.
    pub fn load(&self, context: &Context) -> Result<PinnedSeries> {
        PinnedSeries::load(context, self.variant.as_deref())
    }

    /// Fetches the tip.
    pub fn tip(&self, context: &Context, series: &PinnedSeries) -> Result<Tip> {
        series.tip(context, self.reference(), self.from.as_deref())
    }

    /// Returns the commits from the pin of `series` and `others` to the tip, where they are judged next.
    pub fn commits(
        &self,
        context: &Context,
        series: &PinnedSeries,
        others: &[PinnedSeries],
        tip: &Tip,
    ) -> Result<Vec<Commit>> {
        let history = series.required_history(tip)?;
        // The patches of a series are also in those that extend it.
        let files = std::iter::once(series).chain(others).flat_map(|series| &series.stack.files);
        let patches: BTreeSet<&str> = files.map(|patch| patch.file.as_str()).collect();
        context.ui.status("Judging", format!("{} patches at {} commits", patches.len(), history.len()));
        Ok(history)
    }
}

/// Returns the tip that `pin`, which is in the store, is.
pub fn tip_of(store: &Store, pin: &Pin) -> Result<Tip> {
    let (revision, tree) = (pin.revision.clone(), pin.tree);
    let (commit, verification) = (store.pin_commit(tree)?, verification_of_pin(store, tree));
    Ok(Tip { name: revision.to_string(), revision, commit, tree, verification })
}

/// A variant's patches, including its parents', and the store that has the pin.
pub struct PinnedSeries {
    /// The patches, with the pin they were made for.
    pub stack: Stack,
    /// The object store.
    pub store: Store,
}

impl PinnedSeries {
    /// Reads the series and fetches the pin into the store. The caller holds the run lock.
    pub fn load(context: &Context, variant: Option<&str>) -> Result<PinnedSeries> {
        let pins = context.pins()?;
        let stack = Stack::read(&context.layout, &pins, pins.variant(variant)?)?;
        let store = Store::open(&context.layout.store())?;
        // The pin's blobs are needed to find the function in which a hunk was made.
        stack.fetch(context, &store)?;
        let stack = generation::placed(&store, &stack)?.into_owned();
        Ok(PinnedSeries { stack, store })
    }

    /// Returns the other series on the same pin, which moves only with all of them, loaded from the same store; none
    /// for a generation, which does not move.
    pub fn others_on_pin(&self, context: &Context) -> Result<Vec<PinnedSeries>> {
        if self.stack.generation.is_some() {
            return Ok(Vec::new());
        }
        let pins = context.pins()?;
        let ours = pins.patch_folders(&self.stack.variant);
        let others = pins.series_on(&self.stack.pin.name).into_iter();
        let others = others.filter(|other| pins.patch_folders(other) != ours).map(|other| {
            let stack = Stack::read(&context.layout, &pins, other)?;
            let store = Store::open(&context.layout.store())?;
            let stack = generation::placed(&store, &stack)?.into_owned();
            Ok(PinnedSeries { stack, store })
        });
        others.collect()
    }

    /// Whether the variant's own patches are exact in a survey of the pin. Inexact patches of its parents count as
    /// the parents' failure.
    pub fn is_exact_in(&self, at_pin: &Survey) -> bool {
        at_pin.classes().skip(self.stack.parents).all(|class| class == PatchClass::Exact)
    }

    /// Returns those of this series and `others`, on the same pin, that are not exact on it: while there is one, no
    /// rebase can move the pin.
    pub fn inexact_at_pin<'a>(&'a self, others: &'a [PinnedSeries]) -> Result<Vec<&'a str>> {
        let mut inexact = Vec::new();
        for series in std::iter::once(self).chain(others) {
            if !series.is_exact_in(&series.survey(&[])?.at_pin) {
                inexact.push(series.stack.variant.name.as_str());
            }
        }
        Ok(inexact)
    }

    /// Resolves `reference` in upstream, or in the repository `from`, and fetches the commit with its history if
    /// available.
    pub fn tip(&self, context: &Context, reference: &str, from: Option<&str>) -> Result<Tip> {
        let fetcher = fetcher(context, &self.store);
        tip::resolve(fetcher, &Ask { pin: &self.stack.pin, reference, from, history: true })
    }

    /// Returns the commits since the pin, oldest first; `None` if the tip was fetched without them.
    pub fn history(&self, tip: &Tip) -> Result<Option<Vec<Commit>>> {
        history::since(&self.store, tip.commit, self.stack.pin.tree)
    }

    /// Returns the commits since the pin, or an error that says how to get them.
    pub fn required_history(&self, tip: &Tip) -> Result<Vec<Commit>> {
        self.history(tip)?.ok_or_else(|| self.without_history(tip))
    }

    fn without_history(&self, tip: &Tip) -> Error {
        let Pin { upstream, revision, sources, .. } = &self.stack.pin;
        let what = format!("the commits of {upstream} between {revision} and {} are not available", tip.name);
        let with_sources = sources.iter().fold(Error::environment(what), |error, source| {
            let gives = match source {
                Source::Package(_) => "has single commits without their history",
                Source::Git { .. } => "would have them",
                Source::Path { .. } => "has them only if it is a clone of both",
            };
            error.detail(format!("{}: {gives}", source.describe(&tip.name)))
        });
        with_sources.hint(format!("name a clone in which {} comes after {revision}: --from PATH", tip.name))
    }

    /// Surveys the whole series, including its parents', at every commit of `history`.
    pub fn survey(&self, history: &[Commit]) -> Result<Range> {
        range::survey(&self.store, &self.stack.patches, self.stack.pin.tree, history)
    }
}

/// Returns a fetcher with the settings of the context.
pub fn fetcher<'a>(context: &'a Context, store: &'a Store) -> Fetcher<'a> {
    Fetcher { store, layout: &context.layout, offline: context.offline, ui: &context.ui }
}

/// The classes of one patch along a range.
pub struct Classes {
    /// At the pin.
    pub at_pin: PatchClass,
    /// At each commit; `None` for commits that do not have the pin as an ancestor.
    pub at: Vec<Option<PatchClass>>,
}

impl Classes {
    /// Returns the classes of the patch with the index `patch`, from 0.
    pub fn of(range: &Range, patch: usize) -> Option<Classes> {
        let class = |classes: &Option<Rc<[PatchClass]>>| classes.as_ref()?.get(patch).copied();
        let at = range.classes.iter().map(class).collect();
        Some(Classes { at_pin: range.at_pin.classes().nth(patch)?, at })
    }

    /// Returns the class at the last commit.
    pub fn at_tip(&self) -> PatchClass {
        self.at.last().copied().flatten().unwrap_or(self.at_pin)
    }

    /// Returns the commits at which its class becomes one for which `is_so` holds, and those of them from which it
    /// holds until the tip.
    pub fn beginnings(&self, range: &Range, is_so: impl Fn(PatchClass) -> bool) -> (Vec<usize>, Vec<usize>) {
        let at: Vec<bool> = self.at.iter().map(|class| class.is_some_and(&is_so)).collect();
        let property = CommitProperty { before: &range.before, at_pin: is_so(self.at_pin), at: &at };
        (property.beginnings(), property.lasting_beginnings())
    }

    /// Returns the last commit from which, up to the tip, `is_so` holds for its class.
    pub fn last_lasting(&self, range: &Range, is_so: impl Fn(PatchClass) -> bool) -> Option<usize> {
        self.beginnings(range, is_so).1.last().copied()
    }
}
