//! `cargo xtask newest`: the furthest upstream commit at which every series on the pin still applies, and every overlay
//! fits.

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::config::overlay::Clash;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::sys::git::history::Commit;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::{ObjectId, PatchClass};
use serde_json::json;

use crate::overlays::{PinOverlays, UpstreamTree};
use crate::pinned_series::{PinnedSeries, UpToTip};
use crate::range::Range;
use crate::range::upstream_commit;
use crate::report::newest::{self, NewestReport, Reach};
use crate::report::status::ReportedTree;

/// Options of `newest`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The commits.
    #[command(flatten)]
    pub range: UpToTip,
}

/// Searches along the first parents of the tip; exits with 0 when the series applies at the tip itself.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Read)?;
    let report = report(context, options)?;
    let code = u8::from(!report.reaches_tip() || !report.inexact_at_pin.is_empty());
    Ok(Outcome { text: newest::text(&report), json: json!(report), code })
}

/// Returns the report as data. The caller holds the run lock.
pub fn report(context: &Context, options: &Options) -> Result<NewestReport> {
    let pins = context.pins()?;
    pins.refuse_generation(pins.variant(options.range.variant.as_deref())?, "newest")?;
    let series = options.range.load(context)?;
    let pin = &series.stack.pin;
    let others = series.others_on_pin(context)?;
    let all = || std::iter::once(&series).chain(&others);
    let tip = options.range.tip(context, &series)?;
    let history = options.range.commits(context, &series, &others, &tip)?;
    let search = Search::new(context, (&series, &others), &history)?;
    let applies = search.furthest(PatchClass::applies)?;
    let upstream = UpstreamTree { name: &tip.name, tree: tip.tree };
    let overlays = search.overlays.clashes_at(search.store, upstream)?;
    let inexact_at_pin: Vec<String> = all()
        .zip(&search.ranges)
        .filter(|(series, range)| !series.is_exact_in(&range.at_pin))
        .map(|(series, _)| series.stack.variant.name.to_string())
        .collect();
    let next = match inexact_at_pin.first() {
        Some(series) => Some(next_command("apply", &[("--variant", Some(series))])),
        None => {
            let stopped = all().zip(&search.ranges).find(|(_, range)| !applies_at_tip(range));
            let stopped = stopped.map(|(series, _)| &series.stack.variant.name);
            let other = stopped.filter(|name| **name != series.stack.variant.name);
            next_step(applies.as_ref(), &overlays, &options.range, other)
        }
    };
    Ok(NewestReport {
        next,
        inexact_at_pin,
        exact: search.furthest(|class| class == PatchClass::Exact)?,
        applies,
        overlays,
        variant: series.stack.variant.name.to_string(),
        series: all().map(|series| series.stack.variant.name.to_string()).collect(),
        upstream: pin.upstream.clone(),
        pin: ReportedTree::new(&pin.revision, pin.tree, verification_of_pin(&series.store, pin.tree)),
        tip: ReportedTree::new(&tip.name, tip.tree, tip.verification),
    })
}

/// Returns the furthest commit on the way to `tip` at which a series and the `others` on its pin apply, and the
/// overlays of all variants fit; `None` when there is no such commit or no history is available.
pub fn reach(
    context: &Context,
    first: &PinnedSeries,
    others: &[PinnedSeries],
    tip: &Tip,
) -> Result<Option<Reach>> {
    let Some(history) = first.history(tip)? else { return Ok(None) };
    Search::new(context, (first, others), &history)?.furthest(PatchClass::applies)
}

/// Upstream's commits since a pin, with everything that has to fit at the one that the pin moves to.
struct Search<'a> {
    store: &'a Store,
    /// The tree of the pin.
    pin: ObjectId,
    /// Results of each series on the pin.
    ranges: Vec<Range>,
    overlays: PinOverlays,
    history: &'a [Commit],
}

impl<'a> Search<'a> {
    fn new(
        context: &Context,
        (first, others): (&'a PinnedSeries, &[PinnedSeries]),
        history: &'a [Commit],
    ) -> Result<Search<'a>> {
        let all = std::iter::once(first).chain(others);
        let ranges = all.map(|series| series.survey(history)).collect::<Result<Vec<_>>>()?;
        let pin = &first.stack.pin;
        let overlays = PinOverlays::read(context, &context.pins()?, &pin.name)?;
        Ok(Search { store: &first.store, pin: pin.tree, ranges, overlays, history })
    }

    /// Returns the newest commit on the main line at which `is_good` holds for every patch of every series, and no
    /// overlay file is in the way.
    fn furthest(&self, is_good: impl Fn(PatchClass) -> bool) -> Result<Option<Reach>> {
        let series_at = |range: &Range, at: usize| {
            let classes = range.classes.get(at).and_then(Option::as_deref);
            classes.is_some_and(|classes| classes.iter().copied().all(&is_good))
        };
        for at in main_line(self.history) {
            let Some(commit) = self.history.get(at) else { continue };
            if self.ranges.iter().all(|range| series_at(range, at)) && self.overlays_fit(commit.tree)? {
                let after_pin = commits_behind(self.history, at);
                let before_tip = self.history.len() - after_pin;
                return Ok(Some(Reach { commit: Some(upstream_commit(commit)), after_pin, before_tip }));
            }
        }
        let is_good_at_pin = self.ranges.iter().all(|range| range.at_pin.classes().all(&is_good));
        let reach = Reach { commit: None, after_pin: 0, before_tip: self.history.len() };
        Ok((is_good_at_pin && self.overlays_fit(self.pin)?).then_some(reach))
    }

    fn overlays_fit(&self, tree: ObjectId) -> Result<bool> {
        // The name is only for messages.
        Ok(self.overlays.clashes_at(self.store, UpstreamTree { name: "", tree })?.is_empty())
    }
}

/// Iterates over the tip, its first parent, the first parent of that, and so on.
fn main_line(history: &[Commit]) -> impl Iterator<Item = usize> {
    let first_parent = |at: &usize| history.get(*at).and_then(|commit| commit.first_parent);
    std::iter::successors(history.len().checked_sub(1), first_parent)
}

/// Returns the number of commits since the pin that are reachable from `at`, itself included.
fn commits_behind(history: &[Commit], at: usize) -> usize {
    let mut is_behind = vec![false; history.len()];
    let mut left = vec![at];
    while let Some(at) = left.pop() {
        let Some(seen) = is_behind.get_mut(at).filter(|seen| !**seen) else { continue };
        *seen = true;
        left.extend(history.get(at).map(|commit| commit.parents.as_slice()).unwrap_or_default());
    }
    is_behind.into_iter().filter(|seen| *seen).count()
}

fn applies_at_tip(range: &Range) -> bool {
    range.at_tip().classes().all(PatchClass::applies)
}

/// Suggests the next command. `other` is the first variant that does not apply at the tip, if the named one does.
fn next_step(
    applies: Option<&Reach>,
    overlays: &[Clash],
    range: &UpToTip,
    other: Option<&Name>,
) -> Option<String> {
    let UpToTip { variant, tip, from } = range;
    let place = [("--variant", variant.as_deref()), ("--from", from.as_deref())];
    match applies {
        Some(Reach { commit: Some(commit), .. }) => {
            Some(next_command("rebase", &[&[("--to", Some(commit.id.as_str()))], &place[..]].concat()))
        }
        Some(Reach { before_tip: 0, .. }) => None,
        // `bisect` is about patches.
        _ if !overlays.is_empty() => {
            let to = Some(range.reference());
            Some(next_command("rebase --dry-run", &[&[("--to", to)], &place[..]].concat()))
        }
        _ => {
            let variant = other.map(Name::as_str).or(variant.as_deref());
            let flags = [("--tip", tip.as_deref()), ("--variant", variant), ("--from", from.as_deref())];
            Some(next_command("bisect", &flags))
        }
    }
}
