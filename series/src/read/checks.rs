//! Consistency checks of the header lines of one diff, which result in its two sides.

use super::cursor::RawLine;
use super::diff_header::DiffHeader;
use super::parse_error::{ParseError, Refusal};
use super::quoted_path::header_paths;
use crate::model::mode::FileMode;
use crate::model::object_id::ObjectId;
use crate::model::patch::{Change, FileSide};
use crate::model::path::RepoPath;

/// The two sides of a consistent header.
#[derive(Debug)]
pub(crate) struct Sides {
    pub change: Change,
    pub old: Option<FileSide>,
    pub new: Option<FileSide>,
}

/// Checks `header` and determines the old and the new file.
pub(crate) fn check_header(header: &DiffHeader<'_>) -> Result<Sides, ParseError> {
    let change = find_change(header)?;
    let (old_path, new_path) = find_paths(header)?;
    check_file_lines(header, change, &old_path, &new_path)?;
    check_index_presence(header, change)?;
    let (old_mode, new_mode) = find_modes(header, change)?;
    let old_id = header.index.map(|index| index.old);
    let new_id = header.index.map(|index| index.new);
    let old = side(old_path, old_mode, old_id);
    let new = side(new_path, new_mode, new_id);
    check_null_ids(header, change)?;
    Ok(match change {
        Change::Create => Sides { change, old: None, new: Some(new) },
        Change::Delete => Sides { change, old: Some(old), new: None },
        _ => Sides { change, old: Some(old), new: Some(new) },
    })
}

fn side(path: RepoPath, mode: Option<FileMode>, id: Option<ObjectId>) -> FileSide {
    FileSide { path, mode, id }
}

fn contradiction(line: &RawLine<'_>, expected: &str) -> ParseError {
    line.refused(Refusal::ContradictoryDiffHeaders, expected)
}

fn find_change(header: &DiffHeader<'_>) -> Result<Change, ParseError> {
    let line = &header.git_line;
    if header.rename_from.is_some() != header.rename_to.is_some() {
        return Err(contradiction(line, "`rename from` and `rename to` together"));
    }
    if header.copy_from.is_some() != header.copy_to.is_some() {
        return Err(contradiction(line, "`copy from` and `copy to` together"));
    }
    let claims = [
        (header.created_mode.is_some(), Change::Create),
        (header.deleted_mode.is_some(), Change::Delete),
        (header.rename_from.is_some(), Change::Rename),
        (header.copy_from.is_some(), Change::Copy),
    ];
    let mut made = claims.iter().filter(|(claimed, _)| *claimed).map(|(_, change)| *change);
    match (made.next(), made.next()) {
        (None, _) => Ok(Change::Modify),
        (Some(change), None) => Ok(change),
        (Some(_), Some(_)) => Err(contradiction(line, "only one of: new file, deleted file, rename, copy")),
    }
}

/// Returns the two paths, from the `rename`/`copy` lines or from the `diff --git` line, which must agree.
fn find_paths(header: &DiffHeader<'_>) -> Result<(RepoPath, RepoPath), ParseError> {
    let line = &header.git_line;
    let stated_old = header.rename_from.as_deref().or(header.copy_from.as_deref());
    let stated_new = header.rename_to.as_deref().or(header.copy_to.as_deref());
    let expected = "`diff --git a/<path> b/<path>`";
    let bad = || line.refused(Refusal::BadDiffHeader, expected);
    let text = line.bytes.strip_prefix(b"diff --git ").ok_or_else(bad)?;
    let (old, new) = header_paths(text, stated_old).ok_or_else(bad)?;
    let old = old.strip_prefix(b"a/").ok_or_else(bad)?;
    let new = new.strip_prefix(b"b/").ok_or_else(bad)?;
    let agree = match (stated_old, stated_new) {
        (Some(stated_old), Some(stated_new)) => stated_old == old && stated_new == new && old != new,
        _ => old == new,
    };
    if !agree {
        return Err(line.refused(Refusal::PathsDisagree, "the same path in every header line"));
    }
    Ok((checked_path(old, line)?, checked_path(new, line)?))
}

fn checked_path(path: &[u8], line: &RawLine<'_>) -> Result<RepoPath, ParseError> {
    RepoPath::new(path)
        .map_err(|refusal| line.refused(Refusal::BadPath(refusal), "a relative path inside the tree"))
}

/// Checks `--- a/<old>` and `+++ b/<new>`; the missing side of a new or deleted file is `/dev/null`.
fn check_file_lines(
    header: &DiffHeader<'_>,
    change: Change,
    old: &RepoPath,
    new: &RepoPath,
) -> Result<(), ParseError> {
    let (minus, plus) = match (&header.minus, &header.plus) {
        (None, None) => return Ok(()),
        (Some(minus), Some(plus)) => (minus, plus),
        _ => return Err(contradiction(&header.git_line, "`---` and `+++` together")),
    };
    let side = |prefix: &[u8], path: &RepoPath, missing: bool| match missing {
        true => b"/dev/null".to_vec(),
        false => [prefix, path.as_bytes()].concat(),
    };
    let expected_minus = side(b"a/", old, change == Change::Create);
    let expected_plus = side(b"b/", new, change == Change::Delete);
    if *minus == expected_minus && *plus == expected_plus {
        return Ok(());
    }
    let expected = "`--- a/<path>` and `+++ b/<path>` with the paths of the `diff --git` line";
    Err(header.git_line.refused(Refusal::PathsDisagree, expected))
}

/// Checks the presence of the `index` line: git omits it only if both ids are the same.
fn check_index_presence(header: &DiffHeader<'_>, change: Change) -> Result<(), ParseError> {
    let content_is_stated = header.minus.is_some() || header.index.is_some();
    let mode_changes = header.old_mode.is_some() || header.new_mode.is_some();
    let needs_index = match change {
        Change::Create | Change::Delete => true,
        Change::Modify => content_is_stated || !mode_changes,
        Change::Rename | Change::Copy => content_is_stated,
    };
    if needs_index && header.index.is_none() {
        let expected = "`index <old id>..<new id>` (`git format-patch --full-index`)";
        return Err(header.git_line.refused(Refusal::MissingIndexLine, expected));
    }
    Ok(())
}

type ModePair = (Option<FileMode>, Option<FileMode>);

fn find_modes(header: &DiffHeader<'_>, change: Change) -> Result<ModePair, ParseError> {
    let line = &header.git_line;
    let index_mode = header.index.and_then(|index| index.mode);
    match (header.old_mode, header.new_mode) {
        (Some(_), Some(_)) if matches!(change, Change::Create | Change::Delete) => {
            Err(contradiction(line, "no `old mode` and `new mode` on a new or deleted file"))
        }
        (Some(_), Some(_)) if index_mode.is_some() => {
            Err(contradiction(line, "no mode on the `index` line when the mode changes"))
        }
        (Some(old), Some(new)) if old == new => {
            Err(contradiction(line, "an `old mode` that differs from the `new mode`"))
        }
        (Some(old), Some(new)) => Ok((Some(old), Some(new))),
        (None, None) => modes_without_change(header, change, index_mode),
        _ => Err(contradiction(line, "`old mode` and `new mode` together")),
    }
}

fn modes_without_change(
    header: &DiffHeader<'_>,
    change: Change,
    index_mode: Option<FileMode>,
) -> Result<ModePair, ParseError> {
    match (change, index_mode) {
        (Change::Create, None) => Ok((None, header.created_mode)),
        (Change::Delete, None) => Ok((header.deleted_mode, None)),
        (Change::Create | Change::Delete, Some(_)) => {
            let expected = "no mode on the `index` line of a new or deleted file";
            Err(contradiction(&header.git_line, expected))
        }
        (_, None) if header.index.is_some() => {
            Err(contradiction(&header.git_line, "a mode on the `index` line"))
        }
        (_, mode) => Ok((mode, mode)),
    }
}

/// Checks the all-zero id: it means "no file", on the side where there is none and nowhere else.
fn check_null_ids(header: &DiffHeader<'_>, change: Change) -> Result<(), ParseError> {
    let Some(index) = header.index else {
        return Ok(());
    };
    let old_is_right = index.old.is_zero() == (change == Change::Create);
    let new_is_right = index.new.is_zero() == (change == Change::Delete);
    if !old_is_right || !new_is_right {
        let expected = "the all-zero id for a missing file, and only there";
        return Err(header.git_line.refused(Refusal::NullIdWhereFileExists, expected));
    }
    if index.old == index.new {
        return Err(contradiction(&header.git_line, "two different ids on the `index` line"));
    }
    Ok(())
}
