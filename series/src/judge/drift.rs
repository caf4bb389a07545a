//! What is wrong with a patch that is not exact, as data.

use serde::Serialize;

use crate::apply::refusal::TargetRefusal;
use crate::model::mode::Mode;

/// The class of one hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "class")]
pub enum HunkClass {
    /// It fits on its own line, in its own function, and nowhere else.
    Exact,
    /// It fits at one place only, in its own function, `offset` lines further down.
    Shifted {
        /// Lines; negative is up.
        offset: i64,
    },
    /// It fits at one place only, but that is in another function, or nothing proves that it is
    /// in the same one.
    MovedFunction {
        /// Lines; negative is up.
        offset: i64,
    },
    /// It fits at more than one place, or it fits while its result is there as well.
    Ambiguous,
    /// What it does has been done, in its own function.
    Upstreamed,
    /// It fits nowhere.
    Conflict,
}

/// The class of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchClass {
    /// It applies as it is.
    Exact,
    /// All of it is in the tree already.
    Upstreamed,
    /// Some of its hunks are in the tree already.
    PartlyUpstreamed,
    /// Its hunks are the same, on other lines of their functions.
    Shifted,
    /// Upstream changed the text around it; both changes go together, and every line has its place.
    Merged,
    /// A file it changes has moved, and is certainly or clearly known again.
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
    /// It must not be applied to this tree: it would leave it, or it contradicts itself.
    Refused,
}

impl PatchClass {
    /// Whether a rebase takes it along without asking.
    pub fn applies(self) -> bool {
        matches!(self, PatchClass::Exact | PatchClass::Shifted | PatchClass::Merged | PatchClass::Followed)
    }

    /// The words of the design, as in `moved function`.
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
    /// The class a patch has when all it holds is a hunk of this class.
    pub fn as_patch_class(self) -> PatchClass {
        match self {
            HunkClass::Exact => PatchClass::Exact,
            HunkClass::Shifted { .. } => PatchClass::Shifted,
            HunkClass::MovedFunction { .. } => PatchClass::MovedFunction,
            HunkClass::Ambiguous => PatchClass::Ambiguous,
            HunkClass::Upstreamed => PatchClass::Upstreamed,
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
    /// Every file of the patch, the exact ones too.
    pub files: Vec<FileDrift>,
}

/// One file of a patch that is not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDrift {
    /// The file, safe to print.
    pub path: String,
    /// Line of `diff --git` in the patch file, from 1.
    pub patch_line: usize,
    /// What is wrong with it.
    #[serde(flatten)]
    pub kind: FileDriftKind,
}

/// What is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FileDriftKind {
    /// Nothing.
    Exact,
    /// The file is already as the patch would leave it.
    Upstreamed,
    /// The blob is another one than the patch was made from; each hunk has its class.
    Hunks {
        /// One for each hunk, in order.
        hunks: Vec<HunkDrift>,
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// A binary file is another one than the patch was made from.
    BinaryDiffers {
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// The file is another one than the patch was made from, where it would only be moved.
    ContentDiffers {
        /// Blob id in the patch.
        expected: String,
        /// Blob id in the tree.
        found: String,
    },
    /// The mode is another one than the patch was made from.
    ModeDiffers {
        /// Mode in the patch.
        expected: Mode,
        /// Mode in the tree.
        found: Mode,
    },
    /// The patch makes a file where one is, with other content.
    PathExists,
    /// The file is gone, and nothing like it is left.
    TargetDeleted,
    /// The file is gone from its path.
    TargetRenamed {
        /// Where it is now, the likeliest first; certain ones are the very same blob.
        candidates: Vec<RenameCandidate>,
    },
    /// The patch must not write here.
    Refused {
        /// Why.
        refusal: TargetRefusal,
    },
    /// The file is the one the patch was made from, yet the patch does not fit it or does not
    /// give the promised result: the patch was damaged or edited by hand.
    PatchContradictsItself {
        /// What does not fit.
        detail: String,
    },
}

/// Where a missing file may be now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenameCandidate {
    /// The path.
    pub path: String,
    /// Whether it is the very blob that the patch was made from.
    pub certain: bool,
    /// Of 100 lines that the hunks expect, or of 100 bytes of the whole file, how many it has.
    pub percent: u8,
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
    /// The function it belongs to, as far as the patch or its pre-image says.
    pub function: Option<String>,
    /// Where it fits (at most sixteen places).
    pub fits_at: Vec<Placement>,
    /// Where its result already stands (at most sixteen places).
    pub result_at: Vec<Placement>,
    /// For a conflict: the place that agrees in most lines.
    pub nearest: Option<Candidate>,
}

/// A place in the current file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Line, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// Whether that is the function the hunk belongs to.
    pub same_function: bool,
}

/// The place at which a conflicting hunk almost fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Line at which the hunk would start, from 1.
    pub line: usize,
    /// The function around it.
    pub function: Option<String>,
    /// How many lines agree.
    pub agreeing: usize,
    /// Of how many.
    pub of: usize,
    /// The first lines that do not agree (at most eight).
    pub disagreements: Vec<Disagreement>,
}

/// A line that is not what a hunk expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Line of the expectation in the patch file, from 1.
    pub patch_line: usize,
    /// Line in the current file, from 1.
    pub file_line: usize,
    /// What the hunk expects, safe to print.
    pub expected: String,
    /// What is there, safe to print; `None` past the end of the file.
    pub found: Option<String>,
}
