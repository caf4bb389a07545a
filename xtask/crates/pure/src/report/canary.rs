//! What the canary found: each level with its verdict, for a terminal and as Markdown.

use serde::Serialize;

use super::status::{Place, StatusReport};
use super::status_text;

/// How far a tip is tried; each level only when the one before passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The tip's objects are brought here.
    Fetch,
    /// The series is held against it.
    Status,
    /// Every compiled file that the series touches is looked at by the compiler.
    Contract,
    /// The whole of it is built, and the server answers.
    Build,
    /// Logits are compared with a stock build of the same tip.
    Gate,
}

impl Level {
    /// All of them, in order.
    pub const ALL: [Level; 5] = [Level::Fetch, Level::Status, Level::Contract, Level::Build, Level::Gate];

    /// Its name, in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Fetch => "fetch",
            Level::Status => "status",
            Level::Contract => "contract",
            Level::Build => "build",
            Level::Gate => "gate",
        }
    }
}

/// What is known about a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is good.
    Passed,
    /// It is not: that is drift.
    Failed,
    /// The surroundings failed: nothing is known.
    Unknown,
    /// An earlier level did not pass.
    NotReached,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::Unknown => "unknown",
            Verdict::NotReached => "not reached",
        }
    }
}

/// One level.
#[derive(Clone, Debug, Serialize)]
pub struct LevelReport {
    /// Which.
    pub level: Level,
    /// What came out.
    pub verdict: Verdict,
    /// One line about it.
    pub says: String,
    /// What is wrong, several lines; empty when nothing is.
    pub details: String,
}

/// The upstream commit that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct TipCommit {
    /// What it was asked for by.
    pub name: String,
    /// Commit id.
    pub commit: String,
    /// Tree id.
    pub tree: String,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct CanaryReport {
    /// The variant that was tried.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// What it is built from today.
    pub pin: Place,
    /// What was tried; nothing when it could not be had.
    pub tip: Option<TipCommit>,
    /// Every level that was asked for.
    pub levels: Vec<LevelReport>,
    /// What the level `status` found.
    pub status: Option<StatusReport>,
    /// The commit that the pin could be moved to.
    pub newest: Option<String>,
    /// What to type to move it there.
    pub next: Option<String>,
}

impl CanaryReport {
    /// Whether every level that was asked for passed.
    pub fn is_good(&self) -> bool {
        self.levels.iter().all(|level| level.verdict == Verdict::Passed)
    }

    /// The verdict on `level`; not reached when it was not asked for.
    pub fn verdict(&self, level: Level) -> Verdict {
        let found = self.levels.iter().find(|report| report.level == level);
        found.map_or(Verdict::NotReached, |report| report.verdict)
    }
}

/// For a terminal.
pub fn text(report: &CanaryReport) -> String {
    let mut text = format!("{}\n\n", headline(report));
    for LevelReport { level, verdict, says, .. } in &report.levels {
        text += format!("  {:<9} {:<12} {says}", level.name(), verdict.words()).trim_end();
        text += "\n";
    }
    for LevelReport { level, details, .. } in report.levels.iter().filter(|level| !level.details.is_empty()) {
        text += &format!("\n{}:\n{}", level.name(), indented(details, "  "));
    }
    if let Some(next) = &report.next {
        text += &format!("\nthe pin can move: {next}\n");
    }
    text.trim_end().to_string()
}

/// For a step summary or a file. `pin_sync` is where the pin-sync workflow can be started.
pub fn markdown(report: &CanaryReport, pin_sync: Option<&str>) -> String {
    let mut text = format!("## {}\n\n| level | verdict | |\n|---|---|---|\n", cell(&headline(report)));
    for LevelReport { level, verdict, says, .. } in &report.levels {
        text += &format!("| {} | {} | {} |\n", level.name(), verdict.words(), cell(says));
    }
    if let (Some(commit), Some(next)) = (&report.newest, &report.next) {
        text += &format!("\n**The pin can move:** `{next}`");
        if let Some(place) = pin_sync {
            text += &format!(", or start [pin-sync]({place}) with `to` = `{commit}`");
        }
        text += "\n";
    }
    let others = report.levels.iter().filter(|level| level.level != Level::Status);
    for LevelReport { level, details, .. } in others.filter(|level| !level.details.is_empty()) {
        // Indented, not fenced: no line of a compiler can end the block.
        text += &format!("\n### {}\n\n{}", level.name(), indented(details, "    "));
    }
    if let Some(found) = &report.status {
        text += &format!("\n### series\n\n{}", status_text::markdown(found));
    }
    text
}

fn headline(report: &CanaryReport) -> String {
    let CanaryReport { variant, upstream, pin, tip, .. } = report;
    let verdict = if report.is_good() { "is good" } else { "is not good" };
    let unknown = report.levels.iter().any(|level| level.verdict == Verdict::Unknown);
    let verdict = if unknown { "could not be tried" } else { verdict };
    let tip = match tip {
        Some(tip) => format!("{} ({})", tip.name, short(&tip.commit)),
        None => "the tip".to_string(),
    };
    format!("{variant} on {upstream} {tip}, pin {}: {verdict}", pin.name)
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Every line of `text` behind `by`; an empty one stays empty.
pub fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}").trim_end().to_string() + "\n").collect()
}

/// A `|` would end the cell, a line end the table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}
