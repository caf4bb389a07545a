//! Patches as data: reading them, applying them exactly, and reporting why they do not apply.
//!
//! This crate is pure. It never opens a file, starts a process or uses the network: text and blobs come in as bytes, an
//! upstream tree as the trait [`Tree`], and the results are plain data. xtask's modules `sys` and `cmd` do the rest.
//!
//! # From text to verdict
//!
//! 1. [`parse`] turns the text of one `git format-patch --full-index --zero-commit
//!    --no-signature --binary` file into a [`Patch`]. Patch text is untrusted until it has passed: every path, mode,
//!    number and count is checked, and every refusal has a name ([`Refusal`]) and a line.
//! 2. [`apply_patch`] turns a [`Patch`] and a [`Tree`] into a [`Verdict`]: [`TreeChange`]s, or a [`PatchDrift`]. It
//!    accepts only what is exact: the pre-image blob named by the patch is the blob that is there, each hunk fits on
//!    its own line, and the result hashes to the post-image blob named by the patch.
//! 3. [`run_series`] does that for a whole series in memory, never stops early, and reports which patches are blocked
//!    by an earlier one.
//! 4. What is not exact gets a class for each hunk ([`HunkClass`]). A class is for reports only. It is never a licence
//!    to apply: no build places a hunk anywhere but on its own line.
//! 5. [`Replay`] takes a series from the tree it was made for ([`AppliedSeries`]) to another one, patch by patch,
//!    three-way, and decides the class of every hunk ([`ReplayedFile::hunks`]) and patch ([`Replayed::class`]).
//!    [`survey_series`] does the same for reports: verdicts for one tree are reused for the next unless something that
//!    was looked at differs. [`Verdict::drift`] shows them hunk by hunk.
//! 6. [`prove_series`] compares a moved series with what it was, on contents alone: however it was moved, each line of
//!    the series and of upstream is where it was expected, or is reported.
//!
//! # Examples
//!
//! `examples/replay.rs` replays a patch onto a newer tree and reports it hunk by hunk; `examples/merge.rs` merges three
//! texts. [`parse`], [`apply_patch`], [`Replay`], [`hunks_between`], [`is_same_change`] and [`set_trailer`] have short
//! ones.
//!
//! # The modules
//!
//! A module imports only modules to its left: `model` < `read`, `text` < `apply` < `judge` < `replay` < `upstreamed`;
//! `lint` builds on `read`, `loose` on `read` and `text`, and `proof` on `replay` and `lint`.
//!
//! # Invariants
//!
//! * No input makes this crate panic, and no number read from a patch sizes an allocation.
//! * A [`RepoPath`] is the only way to name a file, and it cannot leave the tree.
//! * Work is linear in the size of a patch and of the files it touches; an untouched file is
//!   never looked at, except by the two searches that run after a failure.
//! * The code never assumes that a hunk that fits is in the right place. When upstream deletes the patched function and
//!   a look-alike stays, the hunk still fits: that is the class [`HunkClass::MovedFunction`].

mod apply;
mod judge;
mod lint;
mod loose;
mod model;
mod proof;
mod read;
mod replay;
mod text;
mod upstreamed;

pub use apply::collision::first_collision;
pub use apply::file::{Mismatch, apply_file};
pub use apply::refusal::TargetRefusal;
pub use apply::text::HunkMismatch;
pub use judge::apply_patch::apply_patch;
pub use judge::classify::describe_refusal;
pub use judge::drift::{
    Candidate, Disagreement, FileDrift, FileDriftKind, HunkClass, HunkDrift, PatchClass, PatchDrift,
    Placement, RenameCandidate,
};
pub use judge::questions::Difference;
pub use judge::replayed::{
    Ambiguity, ConflictReason, Counter, FileConflict, Followed, MergeKind, Replayed, ReplayedFile,
    SameFunction, SharedChange, Step, Version,
};
pub use judge::run_series::{FailedPatches, PatchOutcome, run_series};
pub use judge::verdict::Verdict;
pub use lint::change_text::change_text;
pub use lint::finding::{Finding, LintRule};
pub use lint::numerics::Numerics;
pub use lint::order::{
    SeriesEntry, looks_like_a_patch, series_entry, series_order, sibling_after, slug_fits, slug_from_subject,
};
pub use lint::patch::{SUBJECT_LIMIT, lint_patch, same_subject};
pub use lint::paths::lint_owners;
pub use lint::requirements::TRAILER_KEYS;
pub use lint::rules::{LintRules, PathPattern};
pub use lint::same_change::is_same_change;
pub use lint::trailers::{PLACEHOLDER, is_valid_trailer};
pub use lint::trailers_edit::{SetWhich, add_trailers, set_trailer};
pub use loose::changed_files::FileAfter;
pub use loose::hunk_places::FileHere;
pub use loose::line_ends::{Adapted, LineEnds, OtherLineEnds, with_line_ends_of_files};
pub use loose::loose_reading::LooseReading;
pub use loose::lost_changes::{LostChange, LostKind, lost_changes};
pub use loose::placed_hunks::{PlacedHunks, place_hunks};
pub use loose::strip_count::{named_paths, stated_strip};
pub use loose::tolerated::{Tolerated, tolerate};
pub use model::arrivals::{Arrival, Arrivals};
pub use model::entry::TreeEntry;
pub use model::hunk_lines::{HunkLine, HunkLines, LineKind};
pub use model::layered_tree::LayeredTree;
pub use model::memory_tree::MemoryTree;
pub use model::mode::{FileMode, Mode};
pub use model::object_id::{NotAnObjectId, ObjectId, ObjectKind};
pub use model::patch::{
    BinaryHalf, BinaryPatch, Change, Content, DROPPED_BECAUSE, FilePatch, FileSide, Hunk, Patch, Trailer,
};
pub use model::path::RepoPath;
pub use model::path_refusal::PathRefusal;
pub use model::printable::{printable, visible, visible_json};
pub use model::tree::{NewFile, Tree, TreeChange, TreeError};
pub use model::utf8::{NotUtf8, lossy, utf8};
pub use proof::calls::{Calls, CallsInFile, ChangedBaseFile, LostCalls, lost_calls};
pub use proof::finding::{
    FileVersion, Finding as ProofFinding, FindingClass, HunkPair, LinePlace, Undone, line_digest,
};
pub use proof::placed::{PlacedPatch, PlacedSeries};
pub use proof::series::{PatchProof, SeriesProof, prove_series};
pub use proof::words::{GoneWord, OwnFile, WordUse, gone_words};
pub use read::apply_options::ApplyOptions;
pub use read::authorship::{Authorship, authorship, find_author, find_date, read_authorship};
pub use read::dep3::{DiffHeader, fields_in_mail_header, read_diff_header, status_in_body};
pub use read::dropped::dropped_sibling;
pub use read::hg_header::{HgHeader, read_hg_header};
pub use read::loose_diff::{before_diff, has_diff, is_context_diff, stated_blobs};
pub use read::mbox::{begins_with_mail, whole_mails};
pub use read::parse::{PATCH_SIZE_LIMIT, parse, parse_sibling};
pub use read::parse_error::{ParseError, Refusal};
pub use read::patch_message::patch_message;
pub use read::quilt::{QuiltEntry, conditional_lines, is_packed, read_quilt_series};
pub use read::recipe::{
    PatchScript, Recipe, RecipeKind, RecipePatch, Remark, fits, read_makefile, read_patch_script, read_recipe,
};
pub use read::refusals::{FileRefusal, refusals};
pub use read::subject::is_useless;
pub use replay::applied_series::AppliedSeries;
pub use replay::patch::{Replay, ReplayError, TreeNames};
pub use replay::replayed_patch::{exact_patch, replayed_patch};
pub use replay::survey::{ReusableSurvey, Survey, survey_series};
pub use text::added_lines::added_lines;
pub use text::common_words::says_something;
pub use text::earlier_lines::{EarlierLines, earlier_lines};
pub use text::enclosing::{EnclosingFunction, enclosing_function, function_around_place};
pub use text::identifiers::{HunkWithIdentifiers, hunks_with_identifiers, identifiers};
pub use text::likeness::{SIMILAR_PERCENT, percent_alike};
pub use text::line_diff::hunks_between;
pub use text::markers::{ConflictHunk, ConflictKind, new_marker};
pub use text::outside_edit::{EditedLines, OutsideEdit, outside_edits};
pub use text::search::LineSearch;
pub use upstreamed::counted_change::ChangedFile;
pub use upstreamed::scan::{Event, UpstreamHistory, UpstreamScan};
