//! One `diff --git` with all its lines.

use super::binary::read_binary_patch;
use super::checks::{Sides, check_header};
use super::cursor::Cursor;
use super::diff_header::{DiffHeader, read_diff_header};
use super::hunk::read_hunks;
use super::parse_error::{ParseError, Refusal};
use crate::model::patch::{Change, Content, FilePatch, Hunk};

/// The remaining limits of a patch.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Number of hunk lines.
    pub lines: usize,
    /// Bytes of inflated binary content.
    pub binary_bytes: u64,
}

/// Reads one file patch; the cursor is at its `diff --git` line.
pub(crate) fn read_file_patch(cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<FilePatch, ParseError> {
    let header = read_diff_header(cursor)?;
    let sides = check_header(&header)?;
    let content = read_content(cursor, budget, &header, &sides)?;
    Ok(FilePatch {
        change: sides.change,
        old: sides.old,
        new: sides.new,
        content,
        line: header.git_line.number,
    })
}

fn read_content(
    cursor: &mut Cursor<'_>,
    budget: &mut Budget,
    header: &DiffHeader<'_>,
    sides: &Sides,
) -> Result<Content, ParseError> {
    if header.minus.is_some() {
        let hunks = read_hunks(cursor, &mut budget.lines)?;
        check_whole_file_hunks(&hunks, sides.change)?;
        return Ok(Content::Text(hunks));
    }
    if let Some(line) = cursor.peek_prefix(b"Binary files ") {
        let expected = "`GIT binary patch` (`git format-patch --binary`)";
        return Err(line.refused(Refusal::BinaryDataMissing, expected));
    }
    let binary_line = cursor.peek().filter(|line| line.bytes == b"GIT binary patch");
    if let Some(line) = binary_line {
        cursor.take();
        if header.index.is_none() {
            return Err(line.refused(Refusal::MissingIndexLine, "an `index` line above"));
        }
        let patch = read_binary_patch(cursor, &mut budget.binary_bytes)?;
        return Ok(Content::Binary(patch));
    }
    check_no_content(cursor, header, sides.change)?;
    Ok(Content::Unchanged)
}

/// Checks that a new or deleted file, which has no old or no new lines, has exactly one hunk.
fn check_whole_file_hunks(hunks: &[Hunk], change: Change) -> Result<(), ParseError> {
    let is_whole = |hunk: &Hunk| match change {
        Change::Create => hunk.old_start == 0 && hunk.old_count == 0,
        Change::Delete => hunk.new_start == 0 && hunk.new_count == 0,
        _ => true,
    };
    match hunks.iter().find(|hunk| !is_whole(hunk)) {
        Some(hunk) => {
            let expected = "one hunk with the range `0,0` on the missing side";
            let header = hunk.header();
            let refusal = Refusal::ContradictoryDiffHeaders;
            Err(ParseError::new(hunk.line, refusal, header.as_bytes(), expected))
        }
        None => Ok(()),
    }
}

/// Checks a file patch without hunks: only an empty file can be created or deleted, and no content can change.
fn check_no_content(cursor: &Cursor<'_>, header: &DiffHeader<'_>, change: Change) -> Result<(), ParseError> {
    let is_whole_file = matches!(change, Change::Create | Change::Delete);
    if header.index.is_some() && !is_whole_file {
        let found = cursor.peek().map_or(&b"end of file"[..], |line| line.bytes);
        let expected = "`---`, `+++` and hunks, or `GIT binary patch`";
        let refusal = Refusal::ContentMissing;
        return Err(ParseError::new(cursor.line_number(), refusal, found, expected));
    }
    Ok(())
}
