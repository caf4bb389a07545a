//! The verdict on a patch that is not exact, as data.

use serde::Serialize;

use crate::apply::refusal::TargetRefusal;
use crate::model::mode::Mode;

/// The class of one hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "class")]
pub enum HunkClass {
    /// Fits at its own line, in its own function, and nowhere else.
    Exact,
    /// Fits at one place only, in its own function, `offset` lines further down.
    Shifted {
        /// Offset in lines; negative is up.
        offset: i64,
    },
    /// Fits at one place only, but in another function, or in one that cannot be proven to be the same.
    MovedFunction {
        /// Offset in lines; negative is up.
        offset: i64,
    },
    /// Fits at more than one place, or fits while its result is present as well.
    Ambiguous,
    /// Its result is already present, in its own function.
    Upstreamed,
    /// A part of its result is already present; the rest was merged. Only in a replay.
    PartlyUpstreamed,
    /// Upstream changed the lines around its changes; both were merged. Only in a replay.
    Merged,
    /// Fits nowhere; in a replay, upstream changed the same lines.
    Conflict,
}

/// The class of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchClass {
    /// Applies unchanged.
    Exact,
    /// All of it is in the tree already.
    Upstreamed,
    /// Some of its hunks are in the tree already.
    PartlyUpstreamed,
    /// Its hunks are the same, on other lines of their functions.
    Shifted,
    /// Upstream changed the lines around it; the merge is clean and the position of every line is certain.
    Merged,
    /// A file it changes has moved, and was identified with certainty or by clear similarity.
    Followed,
    /// A hunk fits in another function only.
    MovedFunction,
    /// A hunk fits at more than one place.
    Ambiguous,
    /// Something does not fit.
    Conflict,
    /// A file it changes has moved.
    TargetRenamed,
    /// A file it changes is gone.
    TargetDeleted,
    /// It needs an earlier patch that failed.
    Blocked,
    /// Must not be applied to this tree: it would write outside of it, or it contradicts itself.
    Refused,
}

impl PatchClass {
    /// Returns whether a rebase applies it without asking.
    pub fn applies(self) -> bool {
        matches!(self, PatchClass::Exact | PatchClass::Shifted | PatchClass::Merged | PatchClass::Followed)
    }

    /// Returns the class in words, such as `moved function`.
    pub fn describe(self) -> &'static str {
        match self {
            PatchClass::Exact => "exact",
            PatchClass::Upstreamed => "upstreamed",
            PatchClass::PartlyUpstreamed => "partly upstreamed",
            PatchClass::Shifted => "shifted",
            PatchClass::Merged => "merged",
            PatchClass::Followed => "followed",
            PatchClass::MovedFunction => "moved function",
            PatchClass::Ambiguous => "ambiguous",
            PatchClass::Conflict => "conflict",
            PatchClass::TargetRenamed => "target renamed",
            PatchClass::TargetDeleted => "target deleted",
            PatchClass::Blocked => "blocked",
            PatchClass::Refused => "refused",
        }
    }
}

impl HunkClass {
    /// Returns the class of a hunk that fits in its own function, `offset` lines further down.
    pub(crate) fn at_offset(offset: i64) -> HunkClass {
        if offset == 0 { HunkClass::Exact } else { HunkClass::Shifted { offset } }
    }

    /// Returns the class of a patch whose only content is a hunk of this class.
    pub fn as_patch_class(self) -> PatchClass {
        match self {
            HunkClass::Exact => PatchClass::Exact,
            HunkClass::Shifted { .. } => PatchClass::Shifted,
            HunkClass::MovedFunction { .. } => PatchClass::MovedFunction,
            HunkClass::Ambiguous => PatchClass::Ambiguous,
            HunkClass::Upstreamed => PatchClass::Upstreamed,
            HunkClass::PartlyUpstreamed => PatchClass::PartlyUpstreamed,
            HunkClass::Merged => PatchClass::Merged,
            HunkClass::Conflict => PatchClass::Conflict,
        }
    }
}

/// A patch that is not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchDrift {
    /// The patch's file name.
    pub patch: String,
    /// The class of the whole patch.
    pub class: PatchClass,
    /// All files of the patch, including the exact ones.
    pub files: Vec<FileDrift>,
}

/// One file of a patch that is not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDrift {
    /// The file, safe to print.
    pub path: String,
    /// Line of `diff --git` in the patch file, from 1.
    pub patch_line: usize,
    /// The verdict on the file.
    #[serde(flatten)]
    pub kind: FileDriftKind,
}

/// The verdict on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FileDriftKind {
    /// No difference.
    Exact,
    /// The file already has the content that the patch would give it.
    Upstreamed,
    /// The blob differs from the one the patch was made from; each hunk has its class.
    Hunks {
        /// One for each hunk, in order.
        hunks: Vec<HunkDrift>,
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// A binary file differs from the one the patch was made from.
    BinaryDiffers {
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// The file, which the patch only renames or copies, differs from the one the patch was made from.
    ContentDiffers {
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// The mode differs from the one the patch was made from.
    ModeDiffers {
        /// Mode in the patch.
        expected: Mode,
        /// Mode in the tree.
        found: Mode,
    },
    /// The patch creates a file where one exists with other content.
    PathExists,
    /// Upstream moved the file, or the folder that it belongs in. Only in a replay.
    Moved {
        /// Its path there.
        to: String,
    },
    /// The file is gone, and no similar file exists.
    TargetDeleted,
    /// The file is gone from its path.
    TargetRenamed {
        /// Candidates for its new path, the likeliest first; certain ones have the identical blob.
        candidates: Vec<RenameCandidate>,
    },
    /// The patch must not write to this path.
    Refused {
        /// The reason.
        refusal: TargetRefusal,
    },
    /// The file is the one the patch was made from, yet the patch does not fit it or does not give the stated result:
    /// the patch was damaged or edited by hand.
    PatchContradictsItself {
        /// The mismatch.
        detail: String,
    },
}

/// A possible new path of a missing file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenameCandidate {
    /// The path.
    pub path: String,
    /// Whether its blob is the very one that the patch was made from.
    pub certain: bool,
    /// Similarity: how many of 100 lines that the hunks expect, or of 100 bytes of the whole file, it contains.
    pub percent: u8,
    /// Whether whole files were compared.
    #[serde(skip)]
    pub of_whole_file: bool,
}

/// One hunk of a file that is not the one the patch was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HunkDrift {
    /// Number of the hunk in its file, from 1.
    pub number: usize,
    /// `@@ -1,7 +1,8 @@`.
    pub header: String,
    /// Line of the header in the patch file, from 1.
    pub patch_line: usize,
    /// Its class.
    #[serde(flatten)]
    pub class: HunkClass,
    /// The function it belongs to, if the patch or its pre-image tells.
    pub function: Option<String>,
    /// Places where it fits (at most sixteen).
    pub fits_at: Vec<Placement>,
    /// Places where its result is already present (at most sixteen).
    pub result_at: Vec<Placement>,
    /// For a conflict: the place where most lines agree.
    pub nearest: Option<Candidate>,
}

/// A place in the current file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Line, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// Whether it is the function the hunk belongs to.
    pub same_function: bool,
}

/// The place at which a conflicting hunk almost fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Line at which the hunk would start, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// Number of lines that agree.
    pub agreeing: usize,
    /// Number of lines compared.
    pub of: usize,
    /// The first lines that do not agree (at most eight).
    pub disagreements: Vec<Disagreement>,
}

/// A line that differs from what a hunk expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Line of the expected text in the patch file, from 1.
    pub patch_line: usize,
    /// Line in the current file, from 1.
    pub file_line: usize,
    /// The text that the hunk expects, safe to print.
    pub expected: String,
    /// The text in the file, safe to print; `None` past the end of the file.
    pub found: Option<String>,
}
