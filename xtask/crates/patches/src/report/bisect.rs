//! The report of `bisect`: for each patch, the upstream commits at which its class changed.

use espalier_core::day::day;
use espalier_series::PatchClass;
use serde::Serialize;

use super::status::{ReportedTree, UpstreamCommit};
use super::status_text::{code, count, short};

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct BisectReport {
    /// The variant whose series, including its parents', was bisected.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// Start of the range of commits, exclusive.
    pub pin: ReportedTree,
    /// End of the range of commits, inclusive.
    pub tip: ReportedTree,
    /// Number of commits.
    pub commits: usize,
    /// The selected patches, in order.
    pub patches: Vec<PatchBisect>,
}

/// One patch.
#[derive(Debug, Clone, Serialize)]
pub struct PatchBisect {
    /// File relative to the root.
    pub file: String,
    /// Subject of its message.
    pub subject: String,
    /// Its class at the pin.
    pub at_pin: PatchClass,
    /// Its class at the tip.
    pub at_tip: PatchClass,
    /// The commits at which it stops being exact.
    pub stops_being_exact: Option<Break>,
    /// The commits at which it stops being exact or shifted, other than by being upstreamed.
    pub stops_applying: Option<Break>,
    /// The commits at which it becomes upstreamed.
    pub upstreamed: Option<Break>,
    /// Every commit at which its class differs from that at all direct predecessors, oldest first.
    pub turns: Vec<Turn>,
}

/// The commits at which a property begins to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The first of these commits.
    pub first: UpstreamCommit,
    /// The last of these commits, from which the property holds up to the tip; `None` when it does not hold at the tip.
    pub lasting: Option<UpstreamCommit>,
    /// Number of these commits.
    pub times: usize,
}

/// A commit that changed the class of a patch.
#[derive(Debug, Clone, Serialize)]
pub struct Turn {
    /// The commit.
    pub commit: UpstreamCommit,
    /// The class before it; at a merge, that at the first parent.
    pub from: PatchClass,
    /// The class from this commit on.
    pub to: PatchClass,
}

impl PatchBisect {
    /// Whether it is or was temporarily anything but exact.
    pub fn breaks(&self) -> bool {
        self.at_pin != PatchClass::Exact || self.stops_being_exact.is_some()
    }

    /// The findings, with their descriptions.
    fn findings(&self) -> Vec<(&'static str, &Break)> {
        let (exact, applying) = (self.stops_being_exact.as_ref(), self.stops_applying.as_ref());
        let findings = match exact == applying {
            true => vec![("stops being exact and applying at", exact)],
            false => vec![("stops being exact at", exact), ("stops applying at", applying)],
        };
        let upstreamed = ("first upstreamed at", self.upstreamed.as_ref());
        findings.into_iter().chain([upstreamed]).filter_map(|(words, found)| Some((words, found?))).collect()
    }
}

impl BisectReport {
    /// Number of patches that do not stay exact.
    pub fn broken(&self) -> usize {
        self.patches.iter().filter(|patch| patch.breaks()).count()
    }
}

/// Renders a line for each patch, followed by the commits at which it breaks.
pub fn text(report: &BisectReport) -> String {
    let mut text = format!("{}\n\n", headline(report));
    for patch in &report.patches {
        text += &format!("  {}: {}\n", patch.file, at_both_ends(patch));
        for (words, found) in patch.findings() {
            text += &format!("    {words} {}\n", commit_words(&found.first));
            text += &lasting_words(found, report.tip.shown());
        }
        if patch.turns.len() > 1 {
            text += &patch.turns.iter().map(turn_words).collect::<String>();
        }
    }
    text.trim_end().to_string()
}

fn headline(report: &BisectReport) -> String {
    let BisectReport { variant, upstream, pin, tip, commits, patches } = report;
    format!(
        "{variant}: {} of {} patches do not stay exact over the {} of {upstream} from {} to {}",
        report.broken(),
        patches.len(),
        count(*commits),
        pin.shown(),
        tip.shown()
    )
}

fn at_both_ends(patch: &PatchBisect) -> String {
    match (patch.at_pin, patch.at_tip, patch.turns.is_empty()) {
        (class, _, true) => format!("{} all the way", class.describe()),
        (pin, tip, false) => format!("{} at the pin, {} at the tip", pin.describe(), tip.describe()),
    }
}

fn commit_words(commit: &UpstreamCommit) -> String {
    format!("{} {} {} ({})", short(commit), day(commit.seconds), commit.subject, commit.author)
}

fn lasting_words(found: &Break, tip: &str) -> String {
    match &found.lasting {
        None => "      fixed since\n".to_string(),
        Some(commit) if commit.id == found.first.id => String::new(),
        Some(commit) => {
            let times = found.times;
            format!("      {times} times; the one that holds at {tip}: {}\n", commit_words(commit))
        }
    }
}

fn turn_words(turn: &Turn) -> String {
    let (from, to) = (turn.from.describe(), turn.to.describe());
    format!("    {from} -> {to}: {} {}\n", short(&turn.commit), turn.commit.subject)
}

/// Renders the report as Markdown for an issue or a pull request.
pub fn markdown(report: &BisectReport) -> String {
    let mut text = format!(
        "{}\n\n| patch | at the pin | at the tip | stops being exact | stops applying | upstreamed |\n\
         |---|---|---|---|---|---|\n",
        headline(report)
    );
    for patch in &report.patches {
        let found = [&patch.stops_being_exact, &patch.stops_applying, &patch.upstreamed]
            .map(|found| found.as_ref().map(markdown_break).unwrap_or_default());
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            patch.file,
            patch.at_pin.describe(),
            patch.at_tip.describe(),
            found.join(" | ")
        );
    }
    text
}

fn markdown_break(found: &Break) -> String {
    let first = markdown_commit(&found.first);
    match &found.lasting {
        None => format!("{first}, fixed since"),
        Some(commit) if commit.id == found.first.id => first,
        Some(commit) => format!("{first}, now {}", markdown_commit(commit)),
    }
}

fn markdown_commit(commit: &UpstreamCommit) -> String {
    format!("`{}` {}", short(commit), code(&commit.subject))
}
