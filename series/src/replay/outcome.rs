//! What replaying a patch on another tree came to, as data.

use serde::Serialize;

use crate::apply::refusal::TargetRefusal;
use crate::judge::drift::{PatchClass, RenameCandidate};
use crate::model::mode::Mode;
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;

/// One patch, replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The patch's file name.
    pub patch: String,
    /// Its files, in the patch's order; none when upstream's history took the patch whole.
    pub files: Vec<ReplayedFile>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedFile {
    /// The file before the patch in the tree that it is replayed on; nothing when there is none.
    pub before: Option<Version>,
    /// The file after it; nothing when it goes, or when somebody has to decide.
    pub after: Option<Version>,
    /// What it took.
    pub way: Way,
    /// Where the file was found, when it was not at the path that the patch names.
    pub followed: Option<Followed>,
}

/// A file in one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Where it is.
    pub path: RepoPath,
    /// What it is.
    pub mode: Mode,
    /// Its blob.
    pub id: ObjectId,
}

/// How the change to a file came onto the other tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The file is the one that the patch was made from: its result was taken as it is.
    AsItWas,
    /// Upstream changed the file elsewhere: the hunks are the same, on other lines perhaps.
    Placed,
    /// Upstream changed the file nearby: both changes were merged.
    Merged,
    /// All of the change was there already.
    AlreadyThere,
    /// A part of the change was there already; the rest was merged.
    PartlyThere {
        /// How many changed lines of the patch were there.
        lines: usize,
        /// Of how many.
        of: usize,
    },
    /// Somebody has to decide.
    Conflict(Box<FileConflict>),
}

/// A file that was followed to its new path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// The path that the patch names.
    pub from: RepoPath,
    /// Where it is now.
    pub to: RepoPath,
    /// Of 100 bytes, how many are the same; 100 when it is the very same blob.
    pub percent: u8,
}

/// A file that somebody has to decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConflict {
    /// Where the decision goes.
    pub path: RepoPath,
    /// Why.
    pub reason: ConflictReason,
    /// The file that the patch was made from.
    pub base: Option<Version>,
    /// The file that is there.
    pub ours: Option<Version>,
    /// The file that the patch makes.
    pub theirs: Option<Version>,
    /// The text with conflict markers, where text can show it.
    pub marked: Option<Vec<u8>>,
}

/// Why somebody has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum ConflictReason {
    /// Upstream and the patch changed the same lines.
    SameLines,
    /// It would fit, but nothing proves that it is the right place.
    LookAlike {
        /// The hunks and places in doubt.
        doubts: Vec<Doubt>,
    },
    /// The file is gone, and it is not certain where to.
    FileGone {
        /// Where it may be.
        candidates: Vec<RenameCandidate>,
    },
    /// The patch makes a file where another one is.
    FileExists,
    /// The patch makes a file in a folder that upstream has moved.
    FolderMoved {
        /// The path that the patch names.
        from: RepoPath,
        /// Where it would be in the folder's new place.
        to: RepoPath,
    },
    /// Upstream put a file into a folder that the patch moves away.
    FolderLeft {
        /// Where it would be in the folder's new place.
        to: RepoPath,
    },
    /// The patch gives a file a new name, and upstream gave it another one.
    RenamedTwice {
        /// The name that it had.
        from: RepoPath,
        /// The name that the patch gives it.
        by_patch: RepoPath,
        /// The name that upstream gave it.
        by_upstream: RepoPath,
    },
    /// The patch deletes a file that upstream changed.
    DeletedButChanged,
    /// Both changed a file that is no text.
    Binary,
    /// Upstream made a part of the change too, and a person wants to decide what stays of it.
    SharedChanges {
        /// What both made.
        changes: Vec<SharedChange>,
    },
    /// The patch must not write here.
    Refused {
        /// Why.
        refusal: TargetRefusal,
    },
}

/// A place at which a hunk would land, and nobody can tell whether it belongs there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// Line in the file that is there, from 1.
    pub line: usize,
    /// The head of the function that the hunk was made for, or of a scope in it, as far as it is known.
    pub made_for: Option<String>,
    /// Its line in the file that the patch was made from, from 1.
    pub made_for_line: Option<usize>,
    /// The head of the function or scope that it would land in.
    pub lands_in: Option<String>,
    /// Its line in the file that is there, from 1.
    pub lands_in_line: Option<usize>,
    /// Ambiguous, in another function, or done there already.
    pub class: PatchClass,
}

/// One place of a file at which upstream and the patch made the same of the same lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedChange {
    /// The file, as upstream has it.
    pub path: RepoPath,
    /// The first line there, from 1.
    pub line: usize,
    /// The first line in the file that the patch makes, from 1.
    pub patch_line: usize,
    /// The lines before either change, safe to show.
    pub before: Vec<String>,
    /// The lines after both.
    pub after: Vec<String>,
    /// The numbers, where this may be a counter.
    pub counter: Option<Counter>,
}

/// A number that both sides raised to the same value, while the rest of the patch is not upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Before either change.
    pub before: u64,
    /// What each side made of it.
    pub after: u64,
    /// What both steps together make of it.
    pub sum: u64,
}

impl ConflictReason {
    /// What the whole patch is called for it.
    fn class(&self) -> PatchClass {
        match self {
            ConflictReason::LookAlike { doubts } => {
                let moved = doubts.iter().any(|doubt| doubt.class == PatchClass::MovedFunction);
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
    /// The class of a file without a conflict.
    fn class(&self) -> PatchClass {
        match self.way {
            _ if self.followed.is_some() => PatchClass::Followed,
            Way::AsItWas => PatchClass::Exact,
            Way::Placed => PatchClass::Shifted,
            _ => PatchClass::Merged,
        }
    }
}

impl Replayed {
    /// The verdict on the patch: the same for everybody who asks.
    pub fn class(&self) -> PatchClass {
        let worst = self.conflicts().map(|conflict| conflict.reason.class()).max();
        match worst {
            Some(worst) => worst,
            None if self.is_upstreamed() => PatchClass::Upstreamed,
            None if self.is_partly_upstreamed() => PatchClass::PartlyUpstreamed,
            None => self.files.iter().map(ReplayedFile::class).max().unwrap_or(PatchClass::Exact),
        }
    }

    /// Whether any file waits for a decision.
    pub fn has_conflict(&self) -> bool {
        self.conflicts().next().is_some()
    }

    /// The files that wait for a decision.
    pub fn conflicts(&self) -> impl Iterator<Item = &FileConflict> {
        self.files.iter().filter_map(|file| match &file.way {
            Way::Conflict(conflict) => Some(&**conflict),
            _ => None,
        })
    }

    /// Whether the patch changes nothing any more.
    fn is_upstreamed(&self) -> bool {
        self.files.iter().all(|file| file.way == Way::AlreadyThere)
    }

    /// Whether a part of it is there already, and a part is not.
    fn is_partly_upstreamed(&self) -> bool {
        let there = |file: &ReplayedFile| matches!(file.way, Way::AlreadyThere | Way::PartlyThere { .. });
        !self.is_upstreamed() && self.files.iter().any(there)
    }
}
