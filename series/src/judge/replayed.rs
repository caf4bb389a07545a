//! The result of replaying a patch on another tree, as data.

use serde::{Deserialize, Serialize};

use super::drift::{HunkClass, PatchClass, RenameCandidate};
use crate::apply::refusal::TargetRefusal;
use crate::model::mode::Mode;
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;
use crate::model::tree::TreeChange;
use crate::text::markers::ConflictHunk;

/// One patch, replayed, with its changes to the new tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The result.
    pub replayed: Replayed,
    /// The changes, in an order in which they can be applied; for a patch with conflicts, those to its other files, and
    /// the old paths of renamed ones.
    pub changes: Vec<TreeChange>,
    /// The files of a patch that upstream's history contains, as the replay would have left them; empty for any other.
    pub upstreamed: Vec<ReplayedFile>,
}

/// One patch, replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The patch's file name.
    pub patch: String,
    /// Its files, in the patch's order; empty if upstream's history contains the whole patch.
    pub files: Vec<ReplayedFile>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedFile {
    /// The file before the patch in the tree that it is replayed on, or the source of a copy; `None` if there is none.
    pub before: Option<Version>,
    /// The file after it; `None` if it is deleted, or if there is a conflict to resolve.
    pub after: Option<Version>,
    /// The kind of merge that was needed.
    pub merge_kind: MergeKind,
    /// The rename that was followed, if the file was not at the path that the patch names.
    pub followed: Option<Followed>,
    /// The class of each hunk, in order; empty for a file without hunks, and for the copy of a file that upstream
    /// changed.
    pub hunks: Vec<HunkClass>,
}

/// A file in one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its path.
    pub path: RepoPath,
    /// Its mode.
    pub mode: Mode,
    /// Its blob.
    pub id: ObjectId,
}

/// The kind of merge that brought a file's change onto the other tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeKind {
    /// The file is the one that the patch names, so the patch's result is taken unchanged.
    Unchanged,
    /// Upstream changed other parts of the file, its mode or its path: the hunks are the same, possibly on other lines.
    Placed,
    /// Upstream changed the file nearby: both changes were merged.
    Merged,
    /// The whole change was already present.
    AlreadyThere,
    /// Part of the change was already present; the rest was merged.
    PartlyThere {
        /// Number of changed lines of the patch that were present.
        lines: usize,
        /// Number of changed lines of the patch.
        of: usize,
    },
    /// Both sides deleted the same lines and made no other change alike, so nothing of that is left to decide; the rest was
    /// merged.
    DeletedByBoth {
        /// Number of these lines.
        lines: usize,
    },
    /// There is a conflict to resolve.
    Conflict(Box<FileConflict>),
}

/// A file that was followed to its new path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// The path that the patch names.
    pub from: RepoPath,
    /// Its new path.
    pub to: RepoPath,
    /// Similarity: how many of 100 bytes are the same; 100 for the identical blob.
    pub percent: u8,
}

/// A file with a conflict to resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConflict {
    /// Path of the resolved file.
    pub path: RepoPath,
    /// The reason.
    pub reason: ConflictReason,
    /// The file that the patch was made from.
    pub base: Option<Version>,
    /// The file in the tree that the patch is replayed on.
    pub ours: Option<Version>,
    /// The file that results from the patch on its own base.
    pub theirs: Option<Version>,
    /// The text with conflict markers, if the file is text.
    pub marked: Option<Vec<u8>>,
    /// The places between markers in it, from top to bottom. The rest of it is the automatic result of the merge.
    pub hunks: Vec<ConflictHunk>,
}

/// Reasons for a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum ConflictReason {
    /// Upstream and the patch changed the same lines.
    SameLines,
    /// The hunk would fit, but nothing proves that it is the right place.
    LookAlike {
        /// The ambiguous hunks and places.
        #[serde(rename = "doubts")]
        ambiguities: Vec<Ambiguity>,
    },
    /// The file is gone, and its new path is uncertain.
    FileGone {
        /// Candidates for its new path.
        candidates: Vec<RenameCandidate>,
    },
    /// The patch creates a file where another one exists.
    FileExists,
    /// The patch creates a file in a folder that upstream has moved.
    FolderMoved {
        /// The path that the patch names.
        from: RepoPath,
        /// Its path in the folder's new place.
        to: RepoPath,
    },
    /// Upstream added a file to a folder that the patch moves away.
    FolderLeft {
        /// Its path in the folder's new place.
        to: RepoPath,
    },
    /// The patch renames a file, and upstream gave it another name.
    RenamedTwice {
        /// The old name.
        from: RepoPath,
        /// The name that the patch gives it.
        by_patch: RepoPath,
        /// The name that upstream gave it.
        by_upstream: RepoPath,
    },
    /// The patch deletes a file that upstream changed.
    DeletedButChanged,
    /// Both sides changed a binary file.
    Binary,
    /// Upstream made part of the change too, and a person has to decide how much of it to keep.
    SharedChanges {
        /// The changes that both sides made.
        changes: Vec<SharedChange>,
    },
    /// The patch must not write to this path.
    Refused {
        /// The reason.
        refusal: TargetRefusal,
    },
}

/// A place where a hunk would land, without proof that it belongs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ambiguity {
    /// Line in the current file, from 1.
    pub line: usize,
    /// The head of the function that the hunk was made for, or of a scope in it, if known.
    pub made_for: Option<String>,
    /// Its line in the file that the patch was made from, from 1.
    pub made_for_line: Option<usize>,
    /// The head of the function or scope that it would land in.
    pub lands_in: Option<String>,
    /// Its line in the current file, from 1.
    pub lands_in_line: Option<usize>,
    /// `Ambiguous`, `MovedFunction` or `Upstreamed`.
    pub class: PatchClass,
}

/// Two functions or scopes of a file that a person has taken as the same one: a change that was made for the first
/// belongs in the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameFunction {
    /// The file in the tree that the series is replayed on.
    pub path: String,
    /// The head that the changes were made for, as [`Ambiguity::made_for`].
    pub made_for: String,
    /// The head that they land in, as [`Ambiguity::lands_in`].
    pub lands_in: String,
}

/// A place in a file where upstream and the patch made the same change to the same lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedChange {
    /// The file, as upstream has it.
    pub path: RepoPath,
    /// The first line there, from 1.
    pub line: usize,
    /// The first line in the file that results from the patch, from 1.
    pub patch_line: usize,
    /// The lines before either change, safe to print.
    pub before: Vec<String>,
    /// The lines after both.
    pub after: Vec<String>,
    /// The numbers, if this may be a counter.
    pub counter: Option<Counter>,
}

/// A number that both sides raised to the same value, while the rest of the patch is not upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Value before either change.
    pub before: u64,
    /// Value after the change, on each side.
    pub after: u64,
    /// Value with both increments applied.
    pub sum: u64,
}

impl ConflictReason {
    /// Returns the class that this conflict gives to the whole patch.
    fn class(&self) -> PatchClass {
        match self {
            ConflictReason::LookAlike { ambiguities } => {
                let moved = ambiguities.iter().any(|ambiguity| ambiguity.class == PatchClass::MovedFunction);
                if moved { PatchClass::MovedFunction } else { PatchClass::Ambiguous }
            }
            ConflictReason::FileGone { candidates } if candidates.is_empty() => PatchClass::TargetDeleted,
            ConflictReason::FileGone { .. } => PatchClass::TargetRenamed,
            ConflictReason::Refused { .. } => PatchClass::Refused,
            ConflictReason::SharedChanges { .. } => PatchClass::PartlyUpstreamed,
            ConflictReason::SameLines
            | ConflictReason::FileExists
            | ConflictReason::FolderMoved { .. }
            | ConflictReason::FolderLeft { .. }
            | ConflictReason::RenamedTwice { .. }
            | ConflictReason::DeletedButChanged
            | ConflictReason::Binary => PatchClass::Conflict,
        }
    }
}

impl ReplayedFile {
    /// Returns the class of a file without a conflict.
    fn class(&self) -> PatchClass {
        match self.merge_kind {
            _ if self.followed.is_some() => PatchClass::Followed,
            MergeKind::Unchanged => PatchClass::Exact,
            MergeKind::Placed => PatchClass::Shifted,
            _ => PatchClass::Merged,
        }
    }
}

impl Replayed {
    /// Returns the verdict on the patch; every command reports this one.
    pub fn class(&self) -> PatchClass {
        let worst = self.conflicts().map(|conflict| conflict.reason.class()).max();
        match worst {
            Some(worst) => worst,
            None if self.is_upstreamed() => PatchClass::Upstreamed,
            None if self.is_partly_upstreamed() => PatchClass::PartlyUpstreamed,
            None => self.files.iter().map(ReplayedFile::class).max().unwrap_or(PatchClass::Exact),
        }
    }

    /// Returns whether any file has a conflict to resolve.
    pub fn has_conflict(&self) -> bool {
        self.conflicts().next().is_some()
    }

    /// Returns the files with a conflict to resolve.
    pub fn conflicts(&self) -> impl Iterator<Item = &FileConflict> {
        self.files.iter().filter_map(|file| match &file.merge_kind {
            MergeKind::Conflict(conflict) => Some(&**conflict),
            _ => None,
        })
    }

    /// Returns whether a person has to decide about the patch before it can be part of a series on the other tree: it
    /// has a conflict, or upstream has it, as a whole or in part.
    pub fn needs_decision(&self) -> bool {
        self.has_conflict() || self.is_upstreamed() || self.is_partly_upstreamed()
    }

    /// Returns whether the patch has no effect any more.
    fn is_upstreamed(&self) -> bool {
        self.files.iter().all(|file| file.merge_kind == MergeKind::AlreadyThere)
    }

    /// Returns whether a part of the patch is present already and another part is not.
    fn is_partly_upstreamed(&self) -> bool {
        let there = |file: &ReplayedFile| {
            matches!(file.merge_kind, MergeKind::AlreadyThere | MergeKind::PartlyThere { .. })
        };
        !self.is_upstreamed() && self.files.iter().any(there)
    }
}
