//! What a rebase did to every patch of a series.

use std::fmt;

use serde::Serialize;

use crate::series::{ObjectId, PatchClass};

pub use super::status::Place;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct RebaseReport {
    /// The variant that was named; all series on its pin move.
    pub variant: String,
    /// The upstream's name.
    pub upstream: String,
    /// What the series were made for.
    pub from: Place,
    /// Where they are now.
    pub to: Place,
    /// The tree after the last patch of the variant that was named, without overlays.
    pub tree: String,
    /// Every patch of every series on the pin, each once, the patches of parents first.
    pub patches: Vec<PatchMove>,
    /// What patches undo now of upstream's work.
    pub reverts: Vec<Revert>,
    /// Whether the project was changed, or this is only what would happen.
    pub written: bool,
}

/// One patch.
#[derive(Debug, Clone, Serialize)]
pub struct PatchMove {
    /// The variant whose own patch it is.
    pub series: String,
    /// File as it was, relative to the root.
    pub file: String,
    /// File as it is now; nothing when it is gone, or not written.
    pub new_file: Option<String>,
    /// Subject of its message.
    pub subject: String,
    /// What became of it.
    pub fate: Fate,
    /// What a person should know.
    pub notes: Vec<String>,
    /// What waits for a person.
    pub conflicts: Vec<String>,
    /// The names of the earlier patches that have to be resolved before this one can be judged.
    pub blocked_by: Vec<String>,
    /// How its hunks changed.
    pub range_diff: Option<String>,
}

/// What became of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Its hunks are the same; they may stand on other lines.
    Unchanged,
    /// It adds and deletes the same lines; what is around them is different.
    ContextOnly,
    /// It adds or deletes other lines.
    Changed,
    /// A part of it is upstream.
    PartlyUpstreamed,
    /// All of it is upstream.
    Upstreamed,
    /// It is gone.
    Dropped,
    /// A person has to decide.
    Conflict,
    /// It changes files of an earlier patch that is in conflict.
    Blocked,
}

impl Fate {
    /// Whether nobody has to decide anything.
    pub fn goes_by_itself(self) -> bool {
        matches!(self, Fate::Unchanged | Fate::ContextOnly | Fate::Changed)
    }

    /// In words.
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

    /// Whether a person has to say something before it can happen.
    pub fn waits(self) -> bool {
        matches!(self, Fate::PartlyUpstreamed | Fate::Upstreamed | Fate::Conflict | Fate::Blocked)
    }
}

/// Something that upstream did since the old pin, and that a patch undoes now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revert {
    /// The patch's file name.
    pub patch: String,
    /// The file.
    pub path: String,
    /// Line in the file before the patch, from 1; after it, for a line that comes back; none in a file without text.
    pub line: Option<usize>,
    /// The line, safe to show.
    pub text: String,
    /// What upstream had done.
    pub undone: Undone,
}

/// What upstream had done, and is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// It added the line.
    Added,
    /// It deleted the line.
    Deleted,
    /// It changed a file that is no text.
    Binary,
}

impl fmt::Display for Revert {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Revert { patch, path, text, .. } = self;
        let line = self.line.unwrap_or_default();
        match self.undone {
            Undone::Added => write!(out, "{patch} deletes {path}:{line}, which upstream added: {text}"),
            Undone::Deleted => {
                write!(out, "{patch} brings back {path}:{line}, which upstream deleted: {text}")
            }
            Undone::Binary => {
                write!(out, "{patch} replaces {path}, which is no text, and upstream changed it too")
            }
        }
    }
}

/// A tree and what people call it.
pub fn place(name: &str, tree: ObjectId) -> Place {
    Place { name: name.to_string(), tree: tree.to_string() }
}
