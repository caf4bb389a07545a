//! Parser of a patch file: text to [`Patch`].

use std::collections::HashMap;

use super::authorship::{read_author, read_date};
use super::cursor::{Cursor, RawLine};
use super::file_patch::{Budget, read_file_patch};
use super::mail::{Mail, read_mail};
use super::parse_error::{ParseError, Refusal};
use crate::model::patch::{DROPPED_BECAUSE, FilePatch, Patch, Trailer};
use crate::model::path::RepoPath;

/// Maximum size of a patch file in bytes.
pub const PATCH_SIZE_LIMIT: usize = 64 << 20;
const LINE_LIMIT: usize = 2_000_000;
const BINARY_LIMIT: u64 = 256 << 20;

/// Parses `text`, the content of the patch file called `name`.
///
/// The accepted format is that of `git format-patch --full-index --zero-commit --no-signature --binary`; a mail
/// signature and a missing diffstat are tolerated, nothing else.
///
/// # Errors
///
/// The first problem, with its line, the text found and the text expected.
///
/// # Examples
///
/// ```
/// use espalier_series::{Change, Refusal, parse};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] raise the limit
///
/// Numerics: identical
/// ---
/// diff --git a/limits.conf b/limits.conf
/// index 5dd13c4522b0ebe26082a80a5b77e18f00b5eeb5..8057e6037526abf6e5e4faeebf5dcd655606f8d9 100644
/// --- a/limits.conf
/// +++ b/limits.conf
/// @@ -1,3 +1,3 @@
///  retries = 2
///  timeout = 30
/// -limit = 8
/// +limit = 16
/// ";
/// let patch = parse("0001-raise-the-limit.patch", text.as_bytes()).unwrap();
/// assert_eq!(patch.subject, "raise the limit");
/// assert_eq!(patch.trailers[0].value, "identical");
/// assert_eq!(patch.files[0].change, Change::Modify);
///
/// let symlink = text.replace("100644", "120000");
/// let error = parse("0001-raise-the-limit.patch", symlink.as_bytes()).unwrap_err();
/// assert_eq!((error.line, error.refusal), (9, Refusal::SymlinkMode));
/// ```
pub fn parse(name: &str, text: &[u8]) -> Result<Patch, ParseError> {
    parse_named(name, text, Diffs::Required)
}

/// Parses `text`, the content of the file `name`, a sibling: as [`parse`], but instead of a diff it may have a trailer
/// `Dropped-because:`, which drops the patch in that generation.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_sibling(name: &str, text: &[u8]) -> Result<Patch, ParseError> {
    parse_named(name, text, Diffs::Optional)
}

/// Whether a file without a diff is a patch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Diffs {
    Required,
    Optional,
}

fn parse_named(name: &str, text: &[u8], diffs: Diffs) -> Result<Patch, ParseError> {
    parse_text(text, diffs).map(|patch| named(patch, name)).map_err(|mut error| {
        error.patch = name.to_owned();
        error
    })
}

fn named(mut patch: Patch, name: &str) -> Patch {
    patch.name = name.to_owned();
    patch
}

fn parse_text(text: &[u8], diffs: Diffs) -> Result<Patch, ParseError> {
    if text.len() > PATCH_SIZE_LIMIT {
        let found = format!("{} bytes", text.len());
        return Err(ParseError::new(1, Refusal::PatchTooLarge, found.as_bytes(), "at most 64 MiB"));
    }
    let mut cursor = Cursor::new(text);
    let mail = read_mail(&mut cursor)?;
    check_authorship(&mail)?;
    let is_reason = |trailer: &Trailer| trailer.key.eq_ignore_ascii_case(DROPPED_BECAUSE);
    let is_dropped = diffs == Diffs::Optional && mail.trailers.iter().any(is_reason);
    let files = read_files(&mut cursor, is_dropped)?;
    check_paths_once(&files)?;
    Ok(Patch {
        name: String::new(),
        author: mail.author,
        date: mail.date,
        subject: mail.subject,
        subject_line: mail.subject_line,
        body: mail.body,
        trailers: mail.trailers,
        files,
    })
}

/// Checks author and date; all commands accept the same ones: those that a commit can have.
fn check_authorship(mail: &Mail) -> Result<(), ParseError> {
    let refused = |line, refusal, found: &str, expected| {
        Err(ParseError::new(line, refusal, found.as_bytes(), expected))
    };
    if read_author(&mail.author).is_none() {
        return refused(mail.author_line, Refusal::BadAuthor, &mail.author, "`Name <address>`");
    }
    if read_date(&mail.date).is_none() {
        let expected = "a date since 1970, such as `Thu, 1 Jan 2026 00:00:00 +0000`";
        return refused(mail.date_line, Refusal::BadDate, &mail.date, expected);
    }
    Ok(())
}

fn read_files(cursor: &mut Cursor<'_>, may_be_empty: bool) -> Result<Vec<FilePatch>, ParseError> {
    let mut budget = Budget { lines: LINE_LIMIT, binary_bytes: BINARY_LIMIT };
    let mut files = Vec::new();
    while cursor.peek_prefix(b"diff --git ").is_some() {
        files.push(read_file_patch(cursor, &mut budget)?);
    }
    if files.is_empty() && !may_be_empty {
        let line = cursor.line_number();
        return Err(ParseError::new(line, Refusal::NoDiff, b"end of file", "`diff --git a/… b/…`"));
    }
    check_end(cursor)?;
    Ok(files)
}

/// Checks the text after the last diff: blank lines, then optionally a mail signature, `-- ` and its text.
fn check_end(cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
    let mut in_signature = false;
    while let Some(line) = cursor.take() {
        in_signature |= line.bytes == b"-- ";
        if line.bytes.is_empty() || (in_signature && !looks_like_diff(&line)) {
            continue;
        }
        let expected = "`@@`, `diff --git` or the end of the file";
        return Err(line.refused(Refusal::TrailingText, expected));
    }
    Ok(())
}

fn looks_like_diff(line: &RawLine<'_>) -> bool {
    let starts: [&[u8]; 5] = [b"diff ", b"--- ", b"+++ ", b"@@ ", b"GIT binary patch"];
    starts.iter().any(|start| line.bytes.starts_with(start))
}

/// Checks that every path is written once, and that a written path is not read by another file patch, except as the
/// source of a copy, which is always the content before the patch.
fn check_paths_once(files: &[FilePatch]) -> Result<(), ParseError> {
    let mut written: HashMap<&RepoPath, usize> = HashMap::new();
    for file in files {
        for path in file.written_paths() {
            if let Some(first) = written.insert(path, file.line) {
                let found = path.to_string();
                let expected = format!("one diff for each path (the first is at line {first})");
                let refusal = Refusal::DuplicatePath;
                return Err(ParseError::new(file.line, refusal, found.as_bytes(), &expected));
            }
        }
    }
    Ok(())
}
