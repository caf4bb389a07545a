//! The report of `newest`: the furthest upstream commit to which the series applies.

use espalier_core::config::overlay::Clash;
use espalier_core::day::day;
use serde::Serialize;

use super::status::{ReportedTree, UpstreamCommit, why_not_moved};
use super::status_text::{count, short};

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct NewestReport {
    /// The named variant.
    pub variant: String,
    /// The variants of all series on its pin, which moves only with all of them; the named one comes first.
    pub series: Vec<String>,
    /// The upstream's name.
    pub upstream: String,
    /// The pin that the series was made for.
    pub pin: ReportedTree,
    /// The end of the searched range.
    pub tip: ReportedTree,
    /// Those of `series` that are not exact at the pin; the pin cannot be rebased while there is one.
    pub inexact_at_pin: Vec<String>,
    /// The furthest commit at which every patch is exact or shifted, and no overlay file is in the way; `None` when
    /// there is none.
    pub applies: Option<Reach>,
    /// The furthest commit at which every patch is exact and no overlay file is in the way.
    pub exact: Option<Reach>,
    /// Overlay files of all variants on the pin whose path something else provides at the tip.
    pub overlays: Vec<Clash>,
    /// The next command, if there is anything to do.
    pub next: Option<String>,
}

/// A commit on upstream's main line, the first parents of the tip.
#[derive(Debug, Clone, Serialize)]
pub struct Reach {
    /// The commit; `None` for the pin itself.
    pub commit: Option<UpstreamCommit>,
    /// Number of commits since the pin, itself included.
    pub after_pin: usize,
    /// Number of commits that the tip is ahead of it.
    pub before_tip: usize,
}

impl NewestReport {
    /// Whether the whole series applies at the tip.
    pub fn reaches_tip(&self) -> bool {
        self.applies.as_ref().is_some_and(|reach| reach.before_tip == 0)
    }
}

/// Renders whether the pin can move at all, three lines of results and the next step.
pub fn text(report: &NewestReport) -> String {
    let NewestReport { series, upstream, pin, tip, .. } = report;
    let inexact: Vec<&str> = report.inexact_at_pin.iter().map(String::as_str).collect();
    let first = if inexact.is_empty() { String::new() } else { why_not_moved(&inexact, pin) + "\n\n" };
    let overlays: String = report.overlays.iter().map(|clash| format!("\n\n{clash}")).collect();
    format!(
        "{first}{} on {upstream}'s main line (first parents) from {} to {}:\n\n  \
         all of it applies {}\n  all of it is exact {}{overlays}{}",
        series.join(", "),
        pin.shown(),
        tip.shown(),
        reach_words(report, report.applies.as_ref()),
        reach_words(report, report.exact.as_ref()),
        report.next.as_ref().map(|next| format!("\n\nnext: {next}")).unwrap_or_default()
    )
}

fn reach_words(report: &NewestReport, reach: Option<&Reach>) -> String {
    let Some(reach) = reach else { return "nowhere, not even at the pin".to_string() };
    let place = match &reach.commit {
        None => format!("up to the pin, {}", report.pin.shown()),
        Some(commit) => format!("up to {} {} {}", short(commit), day(commit.seconds), commit.subject),
    };
    if reach.before_tip == 0 {
        return format!("{place}: the tip, {} after the pin", count(reach.after_pin));
    }
    let after = count(reach.after_pin);
    format!("{place}\n    {after} after the pin, {} before the tip", count(reach.before_tip))
}
