//! A rebase that waits: where it goes, how far it is, what was decided.

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of the file format.
const FORMAT: u32 = 1;

/// `state.json` of a rebase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebaseState {
    /// Format version; another one is refused.
    pub format: u32,
    /// The variant whose series is moved.
    pub variant: String,
    /// What it was made for.
    pub from: NamedTree,
    /// Where it goes.
    pub to: NamedTree,
    /// The series as it was at the start: file and sha256.
    pub series: Vec<(String, String)>,
    /// What became of the first patches, in order.
    pub done: Vec<DonePatch>,
    /// Whether the work tree shows the next patch with its conflicts. Not so after a run was killed.
    pub ready: bool,
    /// The paths that wait for a decision.
    pub conflicts: Vec<String>,
    /// Patches that upstream has are dropped.
    pub drop_upstreamed: bool,
    /// Hunks that upstream has are left out.
    pub trim_upstreamed: bool,
}

/// A tree and how people call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTree {
    /// Tag, branch or commit.
    pub name: String,
    /// Tree id.
    pub tree: String,
}

/// One patch that is behind us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DonePatch {
    /// Its file as it was, relative to the root.
    pub file: String,
    /// The commit it became; nothing when it was dropped.
    pub commit: Option<String>,
    /// Whether a person solved its conflicts.
    pub by_hand: bool,
    /// What a person should know about it.
    pub notes: Vec<String>,
}

impl RebaseState {
    /// A rebase that has not begun.
    pub fn new(variant: &str, from: NamedTree, to: NamedTree, series: Vec<(String, String)>) -> Self {
        RebaseState {
            format: FORMAT,
            variant: variant.to_string(),
            from,
            to,
            series,
            done: Vec::new(),
            ready: false,
            conflicts: Vec::new(),
            drop_upstreamed: false,
            trim_upstreamed: false,
        }
    }

    /// Reads `state.json`.
    pub fn parse(text: &[u8]) -> Result<RebaseState> {
        let damaged = |why: String| {
            Error::surroundings("the record of the rebase is damaged")
                .detail(why)
                .hint("cargo xtask rebase --abort    # nothing of your project has changed")
        };
        let state: RebaseState = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
        match state.format {
            FORMAT => Ok(state),
            other => Err(damaged(format!("it has format {other}, this tool writes {FORMAT}"))),
        }
    }

    /// The text of `state.json`.
    pub fn render(&self) -> Vec<u8> {
        // Strings, lists and flags: they always have a JSON form.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// The patch that is waited for: its place in the series.
    pub fn position(&self) -> usize {
        self.done.len()
    }

    /// The commit of the last patch that was not dropped.
    pub fn last_commit(&self) -> Option<Oid> {
        self.done.iter().rev().find_map(|done| Oid::from_str(done.commit.as_deref()?).ok())
    }
}
