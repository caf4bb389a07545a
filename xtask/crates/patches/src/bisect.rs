//! `cargo xtask bisect`: the upstream commits at which patches stop being exact, or stop applying.

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::history::Commit;
use espalier_core::sys::project::inputs::find_patch;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_series::PatchClass;
use serde_json::json;

use crate::commit_property::Before;
use crate::pinned_series::{Classes, PinnedSeries, UpToTip};
use crate::range::Range;
use crate::range::upstream_commit;
use crate::report::bisect::{self, BisectReport, Break, PatchBisect, Turn};
use crate::report::status::Place;

/// Options of `bisect`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The commits.
    #[command(flatten)]
    pub range: UpToTip,
    /// One patch, by file name, path or number (the variant's own before its parents'); default: all.
    #[arg(long, value_name = "NNNN")]
    pub patch: Option<String>,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// Judges every commit since the pin; exits with 1 unless every patch is exact at all of them.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Read)?;
    let report = report(context, options)?;
    let text = if options.markdown { bisect::markdown(&report) } else { bisect::text(&report) };
    let code = u8::from(report.broken() > 0);
    Ok(Outcome { text, json: json!(report), code })
}

/// Returns the report as data. The caller holds the run lock.
pub fn report(context: &Context, options: &Options) -> Result<BisectReport> {
    let UpToTip { variant, from, .. } = &options.range;
    let series = PinnedSeries::load(context, variant.as_deref())?;
    let wanted = wanted_patches(&series, options.patch.as_deref())?;
    let tip = series.tip(context, options.range.reference(), from.as_deref())?;
    let history = series.required_history(&tip)?;
    context
        .ui
        .status("Judging", format!("{} patches at {} commits", series.stack.patches.len(), history.len()));
    let range = series.survey(&history)?;
    let patches = wanted.into_iter().filter_map(|at| patch_bisect(&series, &range, &history, at));
    Ok(BisectReport {
        patches: patches.collect(),
        variant: series.stack.variant.name.to_string(),
        upstream: series.stack.pin.upstream.clone(),
        pin: Place { name: series.stack.pin.revision.to_string(), tree: series.stack.pin.tree.to_string() },
        tip: Place { name: tip.name, tree: tip.tree.to_string() },
        commits: history.len(),
    })
}

/// Returns the indices (from 0) of the patches of the series that `name` selects.
fn wanted_patches(series: &PinnedSeries, name: Option<&str>) -> Result<Vec<usize>> {
    let files = &series.stack.files;
    let Some(name) = name else { return Ok((0..files.len()).collect()) };
    find_patch(files, name).map(|at| vec![at]).ok_or_else(|| {
        let all: Vec<&str> = files.iter().map(|file| file.file.as_str()).collect();
        Error::usage(format!("`{}` has no patch `{name}`", series.stack.variant.name))
            .detail(all.join("\n"))
            .hint("name one by its number: --patch 0001")
    })
}

fn patch_bisect(series: &PinnedSeries, range: &Range, history: &[Commit], at: usize) -> Option<PatchBisect> {
    let classes = Classes::of(range, at)?;
    let timeline = PatchTimeline { range, history, classes: &classes };
    Some(PatchBisect {
        file: series.stack.files.get(at)?.file.clone(),
        subject: series.stack.patches.get(at)?.subject.clone(),
        at_pin: classes.at_pin,
        at_tip: classes.at_tip(),
        stops_being_exact: timeline.first(|class| class != PatchClass::Exact),
        stops_applying: timeline.first(stops_applying),
        upstreamed: timeline.first(|class| class == PatchClass::Upstreamed),
        turns: timeline.turns(),
    })
}

/// An upstreamed patch no longer applies, but that is not a failure.
fn stops_applying(class: PatchClass) -> bool {
    !class.applies() && class != PatchClass::Upstreamed
}

/// One patch along the range of upstream commits.
struct PatchTimeline<'a> {
    range: &'a Range,
    history: &'a [Commit],
    classes: &'a Classes,
}

impl PatchTimeline<'_> {
    fn first(&self, is_so: impl Fn(PatchClass) -> bool) -> Option<Break> {
        let (all, lasting) = self.classes.beginnings(self.range, is_so);
        let commit = |at: &usize| self.history.get(*at).map(upstream_commit);
        let first = commit(all.first()?)?;
        Some(Break { first, lasting: lasting.last().and_then(commit), times: all.len() })
    }

    fn class_before(&self, before: Before) -> Option<PatchClass> {
        match before {
            Before::Pin => Some(self.classes.at_pin),
            Before::Commit(at) => self.classes.at.get(at).copied().flatten(),
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let turn = |(at, commit): (usize, &Commit)| {
            let to = self.classes.at.get(at).copied().flatten()?;
            let before = self.range.before.get(at)?.iter().filter_map(|before| self.class_before(*before));
            let before: Vec<PatchClass> = before.collect();
            let from = *before.first().filter(|_| !before.contains(&to))?;
            Some(Turn { commit: upstream_commit(commit), from, to })
        };
        self.history.iter().enumerate().filter_map(turn).collect()
    }
}
