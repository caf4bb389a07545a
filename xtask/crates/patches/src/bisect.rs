//! `cargo xtask bisect`: the upstream commits at which patches stop being exact, or stop applying.

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::git::history::Commit;
use espalier_core::sys::git::unverified::verification_of_pin;
use espalier_core::sys::project::inputs::find_patch;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::upstream::tip::Tip;
use espalier_series::PatchClass;
use serde_json::json;

use crate::commit_property::Before;
use crate::pinned_series::{Classes, PinnedSeries, UpToTip};
use crate::range::upstream_commit;
use crate::range::{self, Range};
use crate::report::bisect::{self, BisectReport, Break, PatchBisect, Turn};
use crate::report::status::ReportedTree;

/// Options of `bisect`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The commits.
    #[command(flatten)]
    pub range: UpToTip,
    /// One patch, by file name, path or number (the variant's own before its parents'); default: all.
    #[arg(long, value_name = "NNNN")]
    pub patch: Option<String>,
    /// Judge every commit, even if the patches are not exact at the pin, or exact at the tip: finds breaks that were
    /// fixed since.
    #[arg(long)]
    pub every_commit: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// Judges every commit since the pin; exits with 1 unless every patch is exact at all of them.
///
/// # Errors
///
/// The patches are not exact at the pin, or all of them are exact at the tip, unless every commit is to be judged.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let _lock = run_lock::take(&context.layout, &context.ui, Access::Read)?;
    let report = report(context, options)?;
    let text = if options.markdown { bisect::markdown(&report) } else { bisect::text(&report) };
    let code = u8::from(report.broken() > 0);
    Ok(Outcome { text, json: json!(report), code })
}

/// Returns the report as data. The caller holds the run lock.
pub fn report(context: &Context, options: &Options) -> Result<BisectReport> {
    let series = options.range.load(context)?;
    let wanted = wanted_patches(&series, options.patch.as_deref())?;
    let tip = options.range.tip(context, &series)?;
    if !options.every_commit {
        Ends { series: &series, wanted: &wanted, tip: &tip, options }.check()?;
    }
    let history = options.range.commits(context, &series, &[], &tip)?;
    let range = series.survey(&history)?;
    let patches = wanted.into_iter().filter_map(|at| patch_bisect(&series, &range, &history, at));
    let pin = &series.stack.pin;
    Ok(BisectReport {
        patches: patches.collect(),
        variant: series.stack.variant.name.to_string(),
        upstream: pin.upstream.clone(),
        pin: ReportedTree::new(&pin.revision, pin.tree, verification_of_pin(&series.store, pin.tree)),
        tip: ReportedTree::new(tip.name, tip.tree, tip.verification),
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

/// The two ends of a search: the pin, which has to be good, and the tip, which has to be bad.
struct Ends<'a> {
    series: &'a PinnedSeries,
    /// The indices of the selected patches.
    wanted: &'a [usize],
    tip: &'a Tip,
    options: &'a Options,
}

impl Ends<'_> {
    /// Requires that the selected patches are exact at the pin, and that one of them is not at the tip. Otherwise no
    /// commit can be the one that broke them, and judging thousands would only show that.
    fn check(&self) -> Result<()> {
        let stack = &self.series.stack;
        let (pin, tip) = (stack.pin.tree, self.tip.tree);
        let [at_pin, at_tip] = range::classes_at_ends(&self.series.store, &stack.patches, pin, tip)?;
        let bad = self.inexact(&at_pin);
        if !bad.is_empty() {
            return Err(self.good_end_is_bad(&bad));
        }
        if !self.inexact(&at_tip).is_empty() {
            return Ok(());
        }
        Err(if pin == tip { self.ends_are_one() } else { self.bad_end_is_good() })
    }

    /// Returns a line for each selected patch that is not exact.
    fn inexact(&self, classes: &[PatchClass]) -> Vec<String> {
        let files = &self.series.stack.files;
        let found = self.wanted.iter().filter_map(|at| Some((files.get(*at)?, classes.get(*at)?)));
        let inexact = found.filter(|(_, class)| **class != PatchClass::Exact);
        inexact.map(|(file, class)| format!("{}: {}", file.file, class.describe())).collect()
    }

    fn good_end_is_bad(&self, bad: &[String]) -> Error {
        let pin = &self.series.stack.pin.revision;
        let what = format!("the series is not exact at the good end, the pin {pin}; nothing was bisected");
        Error::no(what)
            .detail(bad.join("\n"))
            .hint(self.explained("apply --check", &[], "what is wrong there"))
            .hint(self.all_the_same())
    }

    fn bad_end_is_good(&self) -> Error {
        let tip = &self.tip.name;
        let patches = match self.wanted.len() {
            1 => "the patch is".to_string(),
            count => format!("all {count} patches are"),
        };
        let range = &self.options.range;
        let flags = [("--tip", Some(range.reference())), ("--from", range.from.as_deref())];
        Error::usage(format!("{patches} exact at the bad end, {tip}; there is nothing to bisect"))
            .hint(self.explained("newest", &flags, "how far the pin can move"))
            .hint(self.all_the_same())
    }

    fn ends_are_one(&self) -> Error {
        let (tip, pin) = (&self.tip.name, &self.series.stack.pin.revision);
        let flags = [("--tip", Some("REF")), ("--from", self.options.range.from.as_deref())];
        Error::usage(format!(
            "the bad end, {tip}, has the tree of the pin, {pin}; there is nothing to bisect"
        ))
        .hint(self.explained("bisect", &flags, "REF: a commit after the pin"))
        .hint(self.all_the_same())
    }

    /// Returns a command about this variant, with an explanation behind it.
    fn explained(&self, words: &str, flags: &[(&str, Option<&str>)], why: &str) -> String {
        let variant = [("--variant", self.options.range.variant.as_deref())];
        format!("{}    # {why}", next_command(words, &[&variant[..], flags].concat()))
    }

    fn all_the_same(&self) -> String {
        let Options { range, patch, .. } = self.options;
        let flags = [
            ("--variant", range.variant.as_deref()),
            ("--tip", range.tip.as_deref()),
            ("--from", range.from.as_deref()),
            ("--patch", patch.as_deref()),
        ];
        format!("or judge every commit all the same: {}", next_command("bisect --every-commit", &flags))
    }
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
