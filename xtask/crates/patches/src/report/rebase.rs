//! The effect of a rebase on every patch of a series.

use std::fmt;

use espalier_core::config::overlay::Clash;
use espalier_series::PatchClass;
use serde::Serialize;

use super::proof::{ProvenSeries, Revert};
pub use super::status::ReportedTree;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct RebaseReport {
    /// The named variant; all series on its pin move.
    pub variant: String,
    /// The generation that series of another pin are replayed on, if no pin moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The upstream's name.
    pub upstream: String,
    /// The tree that the series were made for.
    pub from: ReportedTree,
    /// The tree that they are on now.
    pub to: ReportedTree,
    /// The tree after the last patch of the named variant, without overlays.
    pub tree: String,
    /// Every patch of every series on the pin, each once, parents first.
    pub patches: Vec<PatchMove>,
    /// Upstream changes that patches now revert, and upstream lines that a resolution rewrites.
    pub reverts: Vec<Revert>,
    /// Every series, compared with what it was. Once written, with the reasons that the project has for differences.
    pub proof: Vec<ProvenSeries>,
    /// Entries with such reasons that count more differences than there are: `prove` refuses them.
    pub stale: Vec<String>,
    /// Overlay files whose path something else provides on the new tree; only in a dry run, a rebase stops there.
    pub overlays: Vec<Clash>,
    /// Places of the project that name patches by numbers that they no longer have.
    pub references: Vec<NumberReference>,
    /// Whether the project was changed; false for a dry run.
    pub written: bool,
    /// The next commands.
    pub next: Vec<String>,
}

impl RebaseReport {
    /// Returns the number of patches with one of these fates.
    pub fn count(&self, has: impl Fn(Fate) -> bool) -> usize {
        self.patches.iter().filter(|patch| has(patch.fate)).count()
    }

    /// Whether the series are on the target already.
    pub fn is_there(&self) -> bool {
        (&self.from.name, &self.from.tree) == (&self.to.name, &self.to.tree)
    }

    /// Returns the upstream changes that patches undo: those that the proof does not accept either.
    pub fn undone(&self) -> impl Iterator<Item = &Revert> {
        self.reverts.iter().filter(|revert| !revert.is_rewritten)
    }

    /// Whether each change of the series is accounted for.
    pub fn is_proved(&self) -> bool {
        self.proof.iter().all(|series| series.proof.is_proved())
    }
}

/// A place that names a patch by a number that it no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberReference {
    /// The file, relative to the root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The variant that owns the patch.
    pub series: String,
    /// The number.
    pub old: String,
    /// The number of the same patch now; `None` if it was dropped.
    pub new: Option<String>,
}

impl fmt::Display for NumberReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NumberReference { file, line, series, old, new } = self;
        match new {
            Some(new) => write!(out, "{file}:{line}: patch {old} of {series} is {new} now"),
            None => write!(out, "{file}:{line}: patch {old} of {series} was dropped"),
        }
    }
}

/// One patch.
#[derive(Debug, Clone, Serialize)]
pub struct PatchMove {
    /// The variant that owns the patch.
    pub series: String,
    /// Old file, relative to the root.
    pub file: String,
    /// New file; `None` when it was dropped, or not written.
    pub new_file: Option<String>,
    /// Subject of its message.
    pub subject: String,
    /// Its fate.
    pub fate: Fate,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether both sides raised what may be a counter, and the patch without its upstreamed parts keeps upstream's value.
    pub counter_in_doubt: bool,
    /// Conflicts that a person has to resolve.
    pub conflicts: Vec<String>,
    /// The names of the earlier patches that have to be resolved before this one can be judged.
    pub blocked_by: Vec<String>,
    /// The changes of its hunks.
    pub range_diff: Option<String>,
}

impl PatchMove {
    /// Describes a patch of `series` that has no new file and needs no remark.
    pub fn new(
        series: &str,
        (file, subject): (&str, &str),
        (fate, range_diff): (Fate, Option<String>),
    ) -> PatchMove {
        PatchMove {
            series: series.to_string(),
            file: file.to_string(),
            new_file: None,
            subject: subject.to_string(),
            fate,
            notes: Vec::new(),
            counter_in_doubt: false,
            conflicts: Vec::new(),
            blocked_by: Vec::new(),
            range_diff,
        }
    }
}

/// The fate of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Its hunks are the same, possibly on other lines.
    Unchanged,
    /// It adds and deletes the same lines; their context differs.
    ContextOnly,
    /// It adds or deletes other lines.
    Changed,
    /// A part of it is upstream.
    PartlyUpstreamed,
    /// All of it is upstream.
    Upstreamed,
    /// It was dropped.
    Dropped,
    /// A person has to decide.
    Conflict,
    /// It changes files of an earlier patch that is in conflict.
    Blocked,
}

impl Fate {
    /// Whether no decision is needed.
    pub fn goes_by_itself(self) -> bool {
        matches!(self, Fate::Unchanged | Fate::ContextOnly | Fate::Changed)
    }

    /// Description for display.
    pub fn describe(self) -> &'static str {
        match self {
            Fate::Unchanged => "unchanged",
            Fate::ContextOnly => "context only",
            Fate::Changed => "changed",
            Fate::PartlyUpstreamed => "partly upstreamed",
            Fate::Upstreamed => "upstreamed",
            Fate::Dropped => "dropped",
            Fate::Conflict => "conflict",
            Fate::Blocked => PatchClass::Blocked.describe(),
        }
    }

    /// Whether a person has to decide before the rebase can go on.
    pub fn waits(self) -> bool {
        matches!(self, Fate::PartlyUpstreamed | Fate::Upstreamed | Fate::Conflict | Fate::Blocked)
    }
}
