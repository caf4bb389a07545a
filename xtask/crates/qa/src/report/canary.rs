//! The report of the canary: each level with its verdict, for a terminal and as Markdown.

use clap::ValueEnum;
use espalier_core::config::pins::short_name;
use espalier_patches::report::status::{ReportedTree, StatusReport};
use espalier_patches::report::status_text;
use serde::Serialize;

/// The levels at which a tip is tested; each one only when the one before it passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Fetch the tip's objects; never the last level.
    #[value(skip)]
    Fetch,
    /// Compare every patch with the tip.
    Status,
    /// Compile each file that the series touches, syntax only.
    Contract,
    /// Build it and send the server requests.
    Build,
    /// Compare logits with a stock build of the tip.
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

/// Verdict on a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelVerdict {
    /// It passed.
    Passed,
    /// It failed: upstream has drifted.
    Failed,
    /// Environment error: the result is unknown.
    Unknown,
    /// An earlier level did not pass.
    NotReached,
}

impl LevelVerdict {
    fn words(self) -> &'static str {
        match self {
            LevelVerdict::Passed => "passed",
            LevelVerdict::Failed => "FAILED",
            LevelVerdict::Unknown => "unknown",
            LevelVerdict::NotReached => "not reached",
        }
    }
}

/// One level.
#[derive(Clone, Debug, Serialize)]
pub struct LevelReport {
    /// The level.
    pub level: Level,
    /// Its verdict.
    pub verdict: LevelVerdict,
    /// One-line summary.
    pub says: String,
    /// Description of the problem, several lines; empty when there is none.
    pub details: String,
}

/// The upstream commit that was tested.
#[derive(Clone, Debug, Serialize)]
pub struct TipCommit {
    /// The name by which it was requested.
    pub name: String,
    /// Commit id.
    pub commit: String,
    /// Tree id.
    pub tree: String,
}

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct CanaryReport {
    /// The variant that was tested.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// The current pin.
    pub pin: ReportedTree,
    /// The commit that was tested; `None` when it could not be fetched.
    pub tip: Option<TipCommit>,
    /// Every requested level.
    pub levels: Vec<LevelReport>,
    /// The report of the level `status`.
    pub status: Option<StatusReport>,
    /// The commit that the pin could be moved to.
    pub newest: Option<String>,
    /// The command that moves it there.
    pub next: Option<String>,
}

impl CanaryReport {
    /// Whether every requested level passed.
    pub fn is_good(&self) -> bool {
        self.levels.iter().all(|level| level.verdict == LevelVerdict::Passed)
    }

    /// The verdict on `level`; not reached when it was not requested.
    pub fn verdict(&self, level: Level) -> LevelVerdict {
        let found = self.levels.iter().find(|report| report.level == level);
        found.map_or(LevelVerdict::NotReached, |report| report.verdict)
    }
}

/// Renders the report for a terminal.
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
        text += &format!("\nnext: the pin can move: {next}\n");
    }
    text.trim_end().to_string()
}

/// Renders the report as Markdown for a step summary or a file. `pin_sync` is the page from which the pin-sync workflow
/// can be started.
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
        // Indented, not fenced: no line of compiler output can end the block.
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
    let unknown = report.levels.iter().any(|level| level.verdict == LevelVerdict::Unknown);
    let verdict = if unknown { "could not be tried" } else { verdict };
    let tip = match tip {
        Some(tip) => format!("{} ({})", tip.name, short_name(&tip.commit)),
        None => "the tip".to_string(),
    };
    format!("{variant} on {upstream} {tip}, pin {}: {verdict}", pin.name)
}

/// Prefixes every line of `text` with `by`; empty lines stay empty.
pub fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}").trim_end().to_string() + "\n").collect()
}

/// Escapes text for a table cell: a `|` would end the cell, a line break the table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}
