//! Edits of something that was not in conflict, as text and as data.

use std::fmt;

use espalier_series::{EditedLines, OutsideEdit, printable};
use serde::Serialize;

use crate::report::content::PathText;

/// Maximum number of edits of one file that are shown.
const SHOWN_IN_FILE: usize = 10;
/// Maximum number of files whose edits are shown.
pub(super) const SHOWN_FILES: usize = 20;

/// An edit of something that was not in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditBeside {
    /// The file.
    pub(super) path: Vec<u8>,
    /// The difference.
    what: String,
    /// The lines in it, if the edit is of lines.
    lines: Option<OutsideEdit>,
    /// The way to undo it.
    pub(super) undo: Undo,
}

/// The way to undo an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Undo {
    /// The automatic result has the file, and nothing in it was to be resolved.
    Restore,
    /// The automatic result does not have the file.
    Unstage,
    /// The file has the resolution too.
    ByHand,
}

impl fmt::Display for EditBeside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = printable(&self.path);
        let Some(OutsideEdit { line, found, .. }) = &self.lines else {
            return write!(out, "{path}: {}", self.what);
        };
        match line + found.count.saturating_sub(1) {
            last if last == *line => write!(out, "{path}:{line}: {}", self.what),
            last => write!(out, "{path}:{line}-{last}: {}", self.what),
        }
    }
}

impl EditBeside {
    /// The file.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    pub(super) fn new(path: &[u8], undo: Undo, what: impl Into<String>) -> EditBeside {
        EditBeside { path: path.to_vec(), what: what.into(), lines: None, undo }
    }

    pub(super) fn of_lines(path: &[u8], undo: Undo, edit: &OutsideEdit) -> EditBeside {
        EditBeside { lines: Some(edit.clone()), ..EditBeside::new(path, undo, describe(edit)) }
    }
}

/// An edit in the data of a refusal; docs/reference/conflict-json.md describes every key.
#[derive(Serialize)]
pub(super) struct EditData<'e> {
    #[serde(flatten)]
    path: PathText,
    description: &'e str,
    undo: Undo,
    line: Option<usize>,
    expected: Option<LinesData<'e>>,
    found: Option<LinesData<'e>>,
}

/// One side of an edit.
#[derive(Serialize)]
struct LinesData<'e> {
    lines: usize,
    first: Option<&'e str>,
}

impl<'e> EditData<'e> {
    pub(super) fn of(edit: &'e EditBeside) -> EditData<'e> {
        let side = |side: &'e EditedLines| LinesData { lines: side.count, first: side.first.as_deref() };
        let lines = edit.lines.as_ref();
        EditData {
            path: PathText::from(edit.path.as_slice()),
            description: &edit.what,
            undo: edit.undo,
            line: lines.map(|lines| lines.line),
            expected: lines.map(|lines| side(&lines.expected)),
            found: lines.map(|lines| side(&lines.found)),
        }
    }
}

/// Describes an edit of lines, without its place.
fn describe(edit: &OutsideEdit) -> String {
    let OutsideEdit { expected, found, .. } = edit;
    let is = |side: &EditedLines| if side.count == 1 { "is" } else { "are" };
    match (shown(expected), shown(found)) {
        (Some(gone), None) => format!("{gone} {} deleted", is(expected)),
        (None, Some(new)) => format!("{new} {} added", is(found)),
        (Some(line), Some(same)) if expected.count == 1 && line == same => {
            format!("{line} ends otherwise than expected")
        }
        (expected, found) => {
            let [expected, found] = [expected, found].map(|side| side.unwrap_or("nothing".to_string()));
            format!("expected {expected}, found {found}")
        }
    }
}

/// Returns the lines of one side for display: the only one, or their number and the first.
fn shown(side: &EditedLines) -> Option<String> {
    let first = match side.first.as_deref()? {
        "" => "an empty line".to_string(),
        line => format!("`{line}`"),
    };
    Some(if side.count == 1 { first } else { format!("{} lines from {first} on", side.count) })
}

/// Returns the edits for display, grouped by file: a limited number of each, and the number of the others.
pub fn listed(beside: &[EditBeside]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut files = beside.chunk_by(|one, next| one.path == next.path);
    for edits in files.by_ref().take(SHOWN_FILES) {
        lines.extend(edits.iter().take(SHOWN_IN_FILE).map(ToString::to_string));
        let more = edits.len().saturating_sub(SHOWN_IN_FILE);
        if let Some(edit) = edits.first().filter(|_| more > 0) {
            lines.push(format!("{}: and {more} more", printable(&edit.path)));
        }
    }
    let more: usize = files.map(<[EditBeside]>::len).sum();
    if more > 0 {
        lines.push(format!("and {more} more in other files"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{EditBeside, EditedLines, OutsideEdit, Undo, listed};

    fn edit(path: &str, line: usize, sides: [(usize, &str); 2]) -> EditBeside {
        let side = |(count, first): (usize, &str)| EditedLines {
            count,
            first: (count > 0).then(|| first.to_string()),
        };
        let [expected, found] = sides.map(side);
        EditBeside::of_lines(path.as_bytes(), Undo::Restore, &OutsideEdit { line, expected, found })
    }

    #[test]
    fn an_edit_says_its_lines_and_what_was_there() {
        for (sides, text) in [
            ([(1, "a"), (1, "b")], "f.c:7: expected `a`, found `b`"),
            ([(1, "a"), (3, "b")], "f.c:7-9: expected `a`, found 3 lines from `b` on"),
            ([(1, "a"), (0, "")], "f.c:7: `a` is deleted"),
            ([(2, ""), (0, "")], "f.c:7: 2 lines from an empty line on are deleted"),
            ([(0, ""), (1, "")], "f.c:7: an empty line is added"),
            ([(1, "a"), (1, "a")], "f.c:7: `a` ends otherwise than expected"),
        ] {
            assert_eq!(edit("f.c", 7, sides).to_string(), text);
        }
    }

    #[test]
    fn no_place_is_left_out_without_a_word() {
        let of =
            |path: String, count: usize| (1..=count).map(move |line| edit(&path, line, [(1, "a"), (1, "b")]));
        let mut edits: Vec<EditBeside> = of("a.c".to_string(), 13).collect();
        edits.extend((10..31).flat_map(|number| of(format!("b{number}.c"), 1)));
        let lines = listed(&edits);
        assert_eq!((lines.len(), lines[10].as_str()), (10 + 1 + 19 + 1, "a.c: and 3 more"));
        assert_eq!(lines.last().map(String::as_str), Some("and 2 more in other files"));
    }
}
