//! The header of one `diff --git`, up to its first hunk.

use super::cursor::{Cursor, RawLine};
use super::parse_error::{ParseError, Refusal};
use super::quoted_path::whole_path;
use crate::model::mode::FileMode;
use crate::model::object_id::ObjectId;

/// The header lines as written, each at most once; checked for consistency later.
#[derive(Debug)]
pub(crate) struct DiffHeader<'a> {
    pub git_line: RawLine<'a>,
    pub old_mode: Option<FileMode>,
    pub new_mode: Option<FileMode>,
    pub created_mode: Option<FileMode>,
    pub deleted_mode: Option<FileMode>,
    pub rename_from: Option<Vec<u8>>,
    pub rename_to: Option<Vec<u8>>,
    pub copy_from: Option<Vec<u8>>,
    pub copy_to: Option<Vec<u8>>,
    pub similarity: Option<()>,
    pub index: Option<IndexLine>,
    /// The path after `--- `, decoded.
    pub minus: Option<Vec<u8>>,
    /// The path after `+++ `, decoded.
    pub plus: Option<Vec<u8>>,
}

/// `index <old>..<new>[ <mode>]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexLine {
    pub old: ObjectId,
    pub new: ObjectId,
    pub mode: Option<FileMode>,
}

/// Reads a `diff --git` line and every header line after it.
pub(crate) fn read_diff_header<'a>(cursor: &mut Cursor<'a>) -> Result<DiffHeader<'a>, ParseError> {
    let git_line = cursor.require("`diff --git a/… b/…`")?;
    let mut header = DiffHeader {
        git_line,
        old_mode: None,
        new_mode: None,
        created_mode: None,
        deleted_mode: None,
        rename_from: None,
        rename_to: None,
        copy_from: None,
        copy_to: None,
        similarity: None,
        index: None,
        minus: None,
        plus: None,
    };
    while let Some(line) = cursor.peek() {
        if !read_header_line(&mut header, &line)? {
            break;
        }
        require_line_feed(&line)?;
        cursor.take();
    }
    Ok(header)
}

/// Requires a line feed: a truncated path or id can still be well-formed.
fn require_line_feed(line: &RawLine<'_>) -> Result<(), ParseError> {
    match line.has_line_feed {
        true => Ok(()),
        false => Err(line.refused(Refusal::TruncatedPatch, "a line feed at the end of the line")),
    }
}

/// Stores one header line; returns `false` if `line` is not one. `--- ` and `+++ ` come last, in order.
fn read_header_line(header: &mut DiffHeader<'_>, line: &RawLine<'_>) -> Result<bool, ParseError> {
    if header.minus.is_some() || header.plus.is_some() {
        return Ok(header.plus.is_none() && read_file_line(header, line)?);
    }
    Ok(read_mode_line(header, line)?
        || read_path_line(header, line)?
        || read_index_or_similarity(header, line)?
        || read_file_line(header, line)?)
}

fn read_mode_line(header: &mut DiffHeader<'_>, line: &RawLine<'_>) -> Result<bool, ParseError> {
    let slots: [(&[u8], &mut Option<FileMode>); 4] = [
        (b"old mode ", &mut header.old_mode),
        (b"new mode ", &mut header.new_mode),
        (b"new file mode ", &mut header.created_mode),
        (b"deleted file mode ", &mut header.deleted_mode),
    ];
    for (prefix, slot) in slots {
        if let Some(value) = line.bytes.strip_prefix(prefix) {
            let is_gone_link = (prefix, value) == (b"deleted file mode ", b"120000");
            let mode = if is_gone_link { FileMode::GoneLink } else { file_mode(value, line)? };
            set_once(slot, mode, line)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_path_line(header: &mut DiffHeader<'_>, line: &RawLine<'_>) -> Result<bool, ParseError> {
    let slots: [(&[u8], &mut Option<Vec<u8>>); 4] = [
        (b"rename from ", &mut header.rename_from),
        (b"rename to ", &mut header.rename_to),
        (b"copy from ", &mut header.copy_from),
        (b"copy to ", &mut header.copy_to),
    ];
    for (prefix, slot) in slots {
        if let Some(value) = line.bytes.strip_prefix(prefix) {
            set_once(slot, decoded_path(value, line)?, line)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_index_or_similarity(header: &mut DiffHeader<'_>, line: &RawLine<'_>) -> Result<bool, ParseError> {
    if let Some(value) = line.bytes.strip_prefix(b"index ") {
        set_once(&mut header.index, index_line(value, line)?, line)?;
        return Ok(true);
    }
    if let Some(value) = line.bytes.strip_prefix(b"similarity index ") {
        check_percentage(value, line)?;
        set_once(&mut header.similarity, (), line)?;
        return Ok(true);
    }
    Ok(false)
}

/// Reads `--- ` and `+++ `: git ends a path that contains a space with a tab, so that the space is not taken for the
/// start of a date.
fn read_file_line(header: &mut DiffHeader<'_>, line: &RawLine<'_>) -> Result<bool, ParseError> {
    let slots: [(&[u8], &mut Option<Vec<u8>>); 2] =
        [(b"--- ", &mut header.minus), (b"+++ ", &mut header.plus)];
    for (prefix, slot) in slots {
        if let Some(value) = line.bytes.strip_prefix(prefix) {
            let value = value.strip_suffix(b"\t").unwrap_or(value);
            set_once(slot, decoded_path(value, line)?, line)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn set_once<T>(slot: &mut Option<T>, value: T, line: &RawLine<'_>) -> Result<(), ParseError> {
    if slot.is_some() {
        return Err(line.refused(Refusal::DuplicateDiffHeader, "each header line once"));
    }
    *slot = Some(value);
    Ok(())
}

fn decoded_path(value: &[u8], line: &RawLine<'_>) -> Result<Vec<u8>, ParseError> {
    whole_path(value).ok_or_else(|| {
        line.refused(Refusal::BadQuotedPath, "a path, or a path in double quotes with C escapes")
    })
}

/// Reads a mode; all but the two modes of a regular file are refused, each by its own name.
fn file_mode(value: &[u8], line: &RawLine<'_>) -> Result<FileMode, ParseError> {
    let refusal = match value {
        b"100644" => return Ok(FileMode::Regular),
        b"100755" => return Ok(FileMode::Executable),
        b"120000" => Refusal::SymlinkMode,
        b"160000" => Refusal::SubmoduleMode,
        _ => Refusal::UnsupportedMode,
    };
    Err(line.refused(refusal, "mode 100644 or 100755"))
}

fn index_line(value: &[u8], line: &RawLine<'_>) -> Result<IndexLine, ParseError> {
    let expected = "`index <old id>..<new id>`, optionally followed by a mode";
    let bad = || line.refused(Refusal::BadIndexLine, expected);
    let text = std::str::from_utf8(value).map_err(|_| bad())?;
    let (ids, mode) = match text.split_once(' ') {
        Some((ids, mode)) => (ids, Some(file_mode(mode.as_bytes(), line)?)),
        None => (text, None),
    };
    let (old, new) = ids.split_once("..").ok_or_else(bad)?;
    Ok(IndexLine { old: full_id(old, line)?, new: full_id(new, line)?, mode })
}

fn full_id(text: &str, line: &RawLine<'_>) -> Result<ObjectId, ParseError> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.is_empty() || !text.bytes().all(is_hex) || text.len() > 40 {
        return Err(line.refused(Refusal::BadIndexLine, "ids of 40 lower-case hex digits"));
    }
    if text.len() < 40 {
        let expected = "full ids of 40 hex digits (`git format-patch --full-index`)";
        return Err(line.refused(Refusal::AbbreviatedId, expected));
    }
    text.parse::<ObjectId>().map_err(|_| line.refused(Refusal::BadIndexLine, "ids of 40 hex digits"))
}

fn check_percentage(value: &[u8], line: &RawLine<'_>) -> Result<(), ParseError> {
    let percent = value
        .strip_suffix(b"%")
        .filter(|digits| digits.len() <= 3)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse::<u8>().ok());
    match percent {
        Some(0..=100) => Ok(()),
        _ => Err(line.refused(Refusal::BadDiffHeader, "`similarity index <0 to 100>%`")),
    }
}
