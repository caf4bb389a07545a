//! Patches as data: reading them, applying them exactly, and saying what is wrong when they do
//! not apply.
//!
//! This room is pure. It never opens a file, starts a process or uses the network: text and
//! blobs come in as bytes, an upstream tree comes in as the trait [`Tree`], and what goes out is
//! plain data. The rooms `sys` and `cmd` do the rest.
//!
//! # The way of a patch
//!
//! 1. [`parse`] turns the text of one `git format-patch --full-index --zero-commit
//!    --no-signature --binary` file into a [`Patch`]. Patch text is hostile until it has passed:
//!    every path, mode, number and count is checked, and what is refused is refused by name
//!    ([`Refusal`]) with its line.
//! 2. [`apply_patch`] turns a [`Patch`] and a [`Tree`] into [`TreeChange`]s, or into a
//!    [`PatchDrift`]. It accepts only what is exact: the pre-image blob named by the patch is the
//!    blob that is there, each hunk fits on its own line, and the result hashes to the post-image
//!    blob named by the patch.
//! 3. [`run_series`] does that for a whole series in memory, never stops early, and says which
//!    patches are blocked by an earlier one.
//! 4. What is not exact gets a class for each hunk ([`HunkClass`]). A class is something to tell
//!    a person. It is never a licence to apply: nothing that is built places a hunk anywhere but
//!    on its own line.
//! 5. [`Replay`] takes a series from the tree it was made for ([`Origin`]) to another one, patch by patch, three-way, and
//!    gives every patch its verdict ([`Replayed::class`]). [`survey_series`] does the same for reports: what was found
//!    for one tree is taken over for the next where nothing that was looked at differs.
//!
//! # Invariants
//!
//! * No input makes this room panic, and no number read from a patch sizes an allocation.
//! * A [`RepoPath`] is the only way to name a file, and it cannot leave the tree.
//! * Work is linear in the size of a patch and of the files it touches; an untouched file is
//!   never looked at, except by the two searches that run after a failure.
//! * Nothing here trusts that a hunk fits. When upstream deletes the patched function and a
//!   look-alike stays, the hunk still fits: that is the class [`HunkClass::MovedFunction`].

mod added_lines;
mod apply;
mod apply_patch;
mod apply_text;
mod authorship;
mod binary;
mod checks;
mod classify;
mod classify_hunk;
mod collision;
mod counted_change;
mod cursor;
mod delta;
mod dep3;
mod diff_header;
mod drift;
mod encoded_word;
mod file_patch;
mod function;
mod hunk;
mod hunk_lines;
mod landing;
mod layered_tree;
mod line_diff;
mod line_index;
mod lint;
mod lint_paths;
mod lint_rules;
mod lint_trailers;
mod loose_diff;
mod mail;
mod markers;
mod memory_tree;
mod mode;
mod model;
mod nearest;
mod object_id;
mod origin;
mod parse;
mod parse_error;
mod patch_message;
mod path;
mod path_elsewhere;
mod printable;
mod questions;
mod quilt;
mod quoted_path;
mod refusals;
mod renamed;
mod render;
mod replay;
mod replay_file;
mod replay_folder;
mod replay_follow;
mod replay_outcome;
mod replay_sides;
mod replay_text;
mod replayed_patch;
mod run_series;
mod same_change;
mod same_function;
mod search;
mod series_order;
mod survey;
mod taken;
mod target;
mod three_way;
mod trailers_edit;
mod tree;

pub use added_lines::added_lines;
pub use apply::{Mismatch, apply_file};
pub use apply_patch::{Applied, apply_patch};
pub use apply_text::HunkMismatch;
pub use authorship::{Authorship, authorship, read_authorship};
pub use classify::describe_refusal;
pub use counted_change::ChangedFile;
pub use dep3::{DiffHeader, read_diff_header, status_in_body};
pub use drift::{
    Candidate, Disagreement, FileDrift, FileDriftKind, HunkClass, HunkDrift, PatchClass, PatchDrift,
    Placement, RenameCandidate, TargetRefusal,
};
pub use hunk_lines::{HunkLines, Line, LineKind};
pub use layered_tree::LayeredTree;
pub use lint::{Finding, LintRule, SUBJECT_LIMIT, lint_patch, same_subject};
pub use lint_paths::lint_owners;
pub use lint_rules::{LintRules, PathPattern};
pub use lint_trailers::{PLACEHOLDER, TRAILER_KEYS, is_valid_trailer};
pub use loose_diff::{before_diff, has_diff, stated_blobs};
pub use markers::first_marker;
pub use memory_tree::MemoryTree;
pub use mode::{FileMode, Mode};
pub use model::{BinaryHalf, BinaryPatch, Change, Content, FilePatch, FileSide, Hunk, Patch, Trailer};
pub use object_id::object_id;
pub use origin::Origin;
pub use parse::{PATCH_SIZE_LIMIT, parse};
pub use parse_error::{ParseError, Refusal};
pub use patch_message::patch_message;
pub use path::{PathRefusal, RepoPath};
pub use printable::{printable, visible, visible_json};
pub use questions::Difference;
pub use quilt::{QuiltEntry, read_quilt_series};
pub use refusals::{FileRefusal, refusals};
pub use replay::{Replay, ReplayError, Step, TreeNames};
pub use replay_outcome::{
    ConflictReason, Doubt, FileConflict, Followed, Replayed, ReplayedFile, Version, Way,
};
pub use replayed_patch::replayed_patch;
pub use run_series::{PatchOutcome, run_series};
pub use same_change::is_same_change;
pub use series_order::{
    SeriesEntry, looks_like_a_patch, series_entry, series_order, slug_fits, slug_from_subject,
};
pub use survey::{Known, Outcome, Survey, survey_series};
pub use taken::{Event, Lookout, Story};
pub use trailers_edit::{SetWhich, add_trailers, set_trailer};
pub use tree::{Arrival, NewFile, Tree, TreeChange, TreeEntry, TreeError};
