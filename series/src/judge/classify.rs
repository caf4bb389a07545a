//! Drift of a whole patch: from failures to a report.

use super::classify_hunk::{CurrentFile, classify_hunk};
use super::drift::{FileDrift, FileDriftKind, HunkClass, PatchClass, PatchDrift};
use super::renamed::find_renamed;
use crate::apply::patch::FileResults;
use crate::apply::refusal::TargetRefusal;
use crate::apply::target::{Failure, FoundFile};
use crate::model::mode::Mode;
use crate::model::object_id::ObjectId;
use crate::model::patch::{Change, Content, FilePatch, Hunk, Patch};
use crate::model::printable::printable;
use crate::model::tree::{Tree, TreeError};
use crate::text::function::FunctionMap;
use crate::text::language::Language;
use crate::text::line_index::LineIndex;

/// Describes a patch of which at least one file failed.
pub(crate) fn describe_drift(
    patch: &Patch,
    results: &FileResults,
    tree: &dyn Tree,
) -> Result<PatchDrift, TreeError> {
    let mut files = Vec::new();
    for (file, result) in patch.files.iter().zip(results) {
        let kind = match result {
            Ok(_) => FileDriftKind::Exact,
            Err(failure) => describe_failure(file, failure, tree)?,
        };
        files.push(file_drift(file, kind));
    }
    Ok(PatchDrift { patch: patch.name.clone(), class: overall_class(&files), files })
}

/// Returns the verdict on a file with its place in the patch.
pub(crate) fn file_drift(file: &FilePatch, kind: FileDriftKind) -> FileDrift {
    let path = file.path().map(ToString::to_string).unwrap_or_default();
    FileDrift { path, patch_line: file.line, kind }
}

fn describe_failure(
    file: &FilePatch,
    failure: &Failure,
    tree: &dyn Tree,
) -> Result<FileDriftKind, TreeError> {
    Ok(match failure {
        Failure::Tree(error) => return Err(error.clone()),
        Failure::Refused(refusal) => FileDriftKind::Refused { refusal: refusal.clone() },
        Failure::Contradiction(detail) => FileDriftKind::PatchContradictsItself { detail: detail.clone() },
        Failure::PathExists(found) => existing_path(file, *found),
        Failure::Missing => missing_file(file, tree)?,
        Failure::ModeDiffers { expected, found } => match is_result(file, *found) {
            true => FileDriftKind::Upstreamed,
            false => {
                FileDriftKind::ModeDiffers { expected: Mode::from(*expected), found: Mode::from(found.mode) }
            }
        },
        Failure::IdDiffers { expected, found } => other_content(file, *expected, *found, tree)?,
    })
}

/// Classifies a new file whose path exists: with the expected content, or with another one.
fn existing_path(file: &FilePatch, found: FoundFile) -> FileDriftKind {
    match file.change == Change::Create && is_result(file, found) {
        true => FileDriftKind::Upstreamed,
        false => FileDriftKind::PathExists,
    }
}

/// Returns whether `found` is the result of the patch.
pub(crate) fn is_result(file: &FilePatch, found: FoundFile) -> bool {
    let Some(new) = &file.new else {
        return false;
    };
    // Without an id the patch changes only the mode, so any content matches.
    let same_content = new.id.is_none_or(|id| id == found.id);
    same_content && new.mode.is_none_or(|mode| mode == found.mode)
}

/// Classifies a missing file. Deleting it, or moving it to a path that has its result, is already done.
fn missing_file(file: &FilePatch, tree: &dyn Tree) -> Result<FileDriftKind, TreeError> {
    if file.change == Change::Rename && rename_is_done(file, tree)? {
        return Ok(FileDriftKind::Upstreamed);
    }
    let candidates = find_renamed(file, tree)?;
    let is_elsewhere = candidates.iter().any(|candidate| candidate.certain);
    if file.change == Change::Delete && !is_elsewhere {
        return Ok(FileDriftKind::Upstreamed);
    }
    Ok(match candidates.is_empty() {
        true => FileDriftKind::TargetDeleted,
        false => FileDriftKind::TargetRenamed { candidates },
    })
}

fn rename_is_done(file: &FilePatch, tree: &dyn Tree) -> Result<bool, TreeError> {
    let Some(id) = file.new.as_ref().and_then(|side| side.id) else {
        return Ok(false);
    };
    let Some(path) = file.new.as_ref().map(|side| side.path.as_bytes()) else {
        return Ok(false);
    };
    Ok(tree.entry(path)?.is_some_and(|entry| entry.id == id))
}

fn other_content(
    file: &FilePatch,
    expected: ObjectId,
    found: FoundFile,
    tree: &dyn Tree,
) -> Result<FileDriftKind, TreeError> {
    if file.change == Change::Modify && is_result(file, found) {
        return Ok(FileDriftKind::Upstreamed);
    }
    match &file.content {
        Content::Text(hunks) => classify_hunks(file, hunks, (expected, found.id), None, tree),
        Content::Binary(_) | Content::Unchanged => Ok(other_blob(file, expected, found.id)),
    }
}

/// Returns the drift of a file that has another content, without its hunks.
pub(crate) fn other_blob(file: &FilePatch, expected: ObjectId, found: ObjectId) -> FileDriftKind {
    let (expected, found) = (expected.to_string(), found.to_string());
    match file.content {
        Content::Binary(_) => FileDriftKind::BinaryDiffers { expected, found },
        Content::Text(_) | Content::Unchanged => FileDriftKind::ContentDiffers { expected, found },
    }
}

/// Classifies each hunk on the blob `found`, which differs from the one that the patch was made from. `decided` has the
/// classes that a replay decided.
pub(crate) fn classify_hunks(
    file: &FilePatch,
    hunks: &[Hunk],
    (expected, found): (ObjectId, ObjectId),
    decided: Option<&[HunkClass]>,
    tree: &dyn Tree,
) -> Result<FileDriftKind, TreeError> {
    let current = tree.blob(found)?;
    let index = LineIndex::new(&current);
    let path = file.path().map(|path| path.as_bytes()).unwrap_or_default();
    let language = Language::of(path, &current);
    let functions = FunctionMap::new(&index.lines, language);
    let pre_image = tree.remembered_blob(expected)?;
    let pre_lines: Option<Vec<&[u8]>> =
        pre_image.as_ref().map(|bytes| bytes.split_inclusive(|byte| *byte == b'\n').collect());
    let pre_functions = pre_lines.as_ref().map(|lines| FunctionMap::new(lines, language));
    let file = CurrentFile { index: &index, functions: &functions, pre_image: pre_functions.as_ref() };
    let drifts = hunks.iter().enumerate().map(|(at, hunk)| {
        let decided = decided.and_then(|classes| classes.get(at).copied());
        classify_hunk(&file, hunk, at + 1, decided)
    });
    Ok(FileDriftKind::Hunks {
        hunks: drifts.collect(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// Returns the class of a patch from the classes of its files and hunks.
fn overall_class(files: &[FileDrift]) -> PatchClass {
    let classes: Vec<PatchClass> = files.iter().flat_map(|file| classes_of(&file.kind)).collect();
    let worst = classes.iter().copied().max().unwrap_or(PatchClass::Conflict);
    let upstreamed = classes.iter().filter(|class| **class == PatchClass::Upstreamed).count();
    if worst == PatchClass::Refused || upstreamed == 0 {
        // Every hunk may fit on its own line although the rest of the file differs, and such a patch is still not
        // exact.
        return worst.max(PatchClass::Shifted);
    }
    match upstreamed == classes.len() {
        true => PatchClass::Upstreamed,
        false => PatchClass::PartlyUpstreamed,
    }
}

fn classes_of(kind: &FileDriftKind) -> Vec<PatchClass> {
    match kind {
        FileDriftKind::Hunks { hunks, .. } => {
            hunks.iter().map(|hunk| HunkClass::as_patch_class(hunk.class)).collect()
        }
        FileDriftKind::Exact => vec![PatchClass::Exact],
        FileDriftKind::Upstreamed => vec![PatchClass::Upstreamed],
        FileDriftKind::Moved { .. } => vec![PatchClass::Followed],
        FileDriftKind::TargetDeleted => vec![PatchClass::TargetDeleted],
        FileDriftKind::TargetRenamed { .. } => vec![PatchClass::TargetRenamed],
        FileDriftKind::Refused { .. } | FileDriftKind::PatchContradictsItself { .. } => {
            vec![PatchClass::Refused]
        }
        FileDriftKind::BinaryDiffers { .. }
        | FileDriftKind::ContentDiffers { .. }
        | FileDriftKind::ModeDiffers { .. }
        | FileDriftKind::PathExists => vec![PatchClass::Conflict],
    }
}

/// Describes a refusal in one line, without a full stop.
pub fn describe_refusal(refusal: &TargetRefusal) -> String {
    match refusal {
        TargetRefusal::ThroughNonFolder { parent, found } => {
            format!("the path goes through `{}`, which is {}", printable(parent.as_bytes()), found.describe())
        }
        TargetRefusal::NotAFile { found } => format!("the path is {}, not a file", found.describe()),
        TargetRefusal::CaseCollision { with } => {
            format!("the path differs from `{with}` in case only")
        }
        TargetRefusal::FileAndFolder { with } => {
            format!("the patch makes `{with}` both a file and a folder")
        }
    }
}
