//! Splits a loose diff into one part for each file.

use super::hunk_lines::{DiffLine, HunkLines};
use crate::read::quoted_path::unquote;

/// The part of a diff for one file: the lines above its hunks, and the hunks.
#[derive(Default)]
pub(crate) struct DiffPart<'a> {
    /// All of its lines, in order.
    pub lines: Vec<PartLine<'a>>,
}

/// One line of a part.
#[derive(Clone, Copy)]
pub(crate) struct PartLine<'a> {
    /// The line with its line feed.
    pub bytes: &'a [u8],
    /// Kind of the line.
    pub kind: DiffLine,
}

impl<'a> DiffPart<'a> {
    /// Iterates over the lines of the file that end with a line feed there: others have no line end to convert.
    pub fn content(&self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.lines.len()).filter(|at| self.is_content_with_end(*at)).map(|at| self.lines[at].bytes)
    }

    /// Returns whether line `at` belongs to the file and ends with a line feed there.
    pub fn is_content_with_end(&self, at: usize) -> bool {
        let is_content = self.lines.get(at).is_some_and(|line| line.kind == DiffLine::Content);
        is_content && !self.lines.get(at + 1).is_some_and(|next| next.bytes.starts_with(b"\\"))
    }

    /// Returns the paths that the file to change may have, without the first `strip` components, the likeliest first:
    /// other tools name a copy on one side, such as `x.orig`. Empty if the diff creates the file. With `reverse` the
    /// file to change is the one on the new side.
    pub fn paths(&self, strip: u32, reverse: bool) -> Vec<Vec<u8>> {
        let mut names = self.sides();
        if reverse {
            names.reverse();
        }
        if names[0].as_ref().is_some_and(|old| is_no_file(old)) {
            return Vec::new();
        }
        let there = names.iter().flatten().filter(|name| !is_no_file(name));
        there.filter_map(|name| without_parts(name, strip)).collect()
    }

    /// Returns the names of the file on the old and on the new side; `None` where there is none.
    pub fn names(&self) -> [Option<Vec<u8>>; 2] {
        self.sides().map(|name| name.filter(|name| !is_no_file(name)))
    }

    /// Returns the text after `--- ` and `+++ `, `/dev/null` included.
    fn sides(&self) -> [Option<Vec<u8>>; 2] {
        let keys: [&[u8]; 2] = [b"--- ", b"+++ "];
        keys.map(|key| self.above_hunks(key).and_then(name_in))
    }

    /// Returns the names in the `diff --git` line, if there is one.
    pub fn git_names(&self) -> Option<&'a [u8]> {
        self.above_hunks(b"diff --git ")
    }

    /// Returns the blob id of the file to change, possibly abbreviated, from the `index` line.
    pub fn stated_blob(&self, reverse: bool) -> Option<&'a str> {
        let ids = std::str::from_utf8(self.above_hunks(b"index ")?).ok()?.split_whitespace().next()?;
        let (old, new) = ids.split_once("..")?;
        Some(if reverse { new } else { old })
    }

    /// Returns whether the part has the header of git's diffs. git reads the `index` line only below that.
    pub fn is_of_git(&self) -> bool {
        self.above_hunks(b"diff --git ").is_some()
    }

    /// Returns whether the part has hunks: a binary diff and a pure rename have none.
    pub fn has_hunks(&self) -> bool {
        self.lines.iter().any(|line| line.kind == DiffLine::HunkHead)
    }

    /// Returns the part without its `index` line: git then applies it to the file, and never merges.
    pub fn without_index(&self) -> DiffPart<'a> {
        let mut lines = self.lines.clone();
        lines.retain(|line| line.kind != DiffLine::Other || !line.bytes.starts_with(b"index "));
        DiffPart { lines }
    }

    /// Returns whether the part copies a file, which then stays unchanged.
    pub fn is_copy(&self) -> bool {
        self.above_hunks(b"copy from ").is_some()
    }

    /// Returns the text after `key`, which begins a line above the hunks.
    fn above_hunks(&self, key: &[u8]) -> Option<&'a [u8]> {
        let mut above = self.lines.iter().filter(|line| line.kind == DiffLine::Other);
        above.find_map(|line| line.bytes.strip_prefix(key))
    }

    /// Appends the lines to `to`.
    pub fn write(&self, to: &mut Vec<u8>) {
        self.lines.iter().for_each(|line| to.extend(line.bytes));
    }
}

fn is_no_file(name: &[u8]) -> bool {
    name == b"/dev/null"
}

/// Parses the name after `--- `: quoted, or up to the file's timestamp.
fn name_in(text: &[u8]) -> Option<Vec<u8>> {
    let plain = text.split(|byte| *byte == b'\t').next().unwrap_or_default().trim_ascii_end();
    if text.starts_with(b"\"") { unquote(text).map(|(name, _)| name) } else { Some(plain.to_vec()) }
}

/// Returns `name` without its first `strip` components; `None` if it has no more than those.
pub(super) fn without_parts(name: &[u8], strip: u32) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
    let parts = parts.get(usize::try_from(strip).ok()?..)?;
    (!parts.is_empty()).then(|| parts.join(&b'/'))
}

/// Splits `diff` before the header of each file.
pub(crate) fn parts_of(diff: &[u8]) -> Vec<DiffPart<'_>> {
    let mut parts = vec![DiffPart::default()];
    let mut lacks = HunkLines::default();
    let mut has_hunks = false;
    for bytes in diff.split_inclusive(|byte| *byte == b'\n') {
        let kind = lacks.next(bytes);
        has_hunks |= kind == DiffLine::HunkHead;
        if kind == DiffLine::Other && has_hunks && !bytes.starts_with(b"\\") {
            parts.push(DiffPart::default());
            has_hunks = false;
        }
        if let Some(part) = parts.last_mut() {
            part.lines.push(PartLine { bytes, kind });
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn a_part_knows_its_paths_and_its_blob() {
        let diff = b"words\n--- a/x.c.orig\t2020\n+++ a/x.c\n@@ -1 +1 @@\n--- a/no\n+++ a/no\n\
                     diff --git \"a/\\303\\244\" b/y\nindex 1234567..89abcde 100644\n--- \"a/\\303\\244\"\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
        let parts = parts_of(diff);
        assert_eq!(parts[0].paths(1, false), [b"x.c.orig".to_vec(), b"x.c".to_vec()]);
        assert_eq!(parts[0].paths(1, true), [b"x.c".to_vec(), b"x.c.orig".to_vec()]);
        assert_eq!((parts[0].stated_blob(false), parts[1].stated_blob(false)), (None, Some("1234567")));
        assert_eq!(parts[1].paths(1, false), ["ä".as_bytes().to_vec(), b"y".to_vec()]);
        assert_eq!((parts[1].stated_blob(true), parts.len()), (Some("89abcde"), 2));
        assert!(parts[0].paths(3, false).is_empty());
        let made = parts_of(b"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n");
        assert!(made[0].paths(1, false).is_empty());
        assert_eq!(made[0].paths(1, true), [b"new".to_vec()]);
    }
}
