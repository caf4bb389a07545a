//! Splits a loose diff into one part for each file.
//!
//! A part begins where git begins to read a file: at each `diff --git` line, and at each pair of `---` and `+++` that
//! is not below one. So a file without hunks (an empty or a binary one, a mode, a rename) is a part too.

use super::hunk_lines::{DiffLine, HunkLines};
use crate::read::quoted_path::unquote;

/// The part of a diff for one file: its header with the text above it, and its hunks.
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

    /// Returns the paths that the file to change may have, without the first `strip` components, the one that git uses
    /// first: other tools name a copy on one side, such as `x.orig`. Empty if the diff creates the file. With `reverse`
    /// the file to change is the one on the new side.
    pub fn paths(&self, strip: u32, reverse: bool) -> Vec<Vec<u8>> {
        let sides = self.sides();
        let source = if reverse { &sides[1] } else { &sides[0] };
        if source.as_deref().is_some_and(is_no_file) {
            return Vec::new();
        }
        let there = sides.iter().flatten().filter(|name| !is_no_file(name));
        let mut paths: Vec<Vec<u8>> = there.filter_map(|name| without_parts(name, strip)).collect();
        let is_turned = match &paths[..] {
            [_, _] if self.is_of_git() => reverse,
            // git's rule for the names of other tools, in both directions.
            [old, new] => old.len() > new.len() && old.starts_with(new),
            _ => false,
        };
        if is_turned {
            paths.reverse();
        }
        paths
    }

    /// Returns the path of the file after the change, if it was at `before`; `None` if the diff deletes it.
    pub fn path_after(&self, strip: u32, reverse: bool, before: Option<&[u8]>) -> Option<Vec<u8>> {
        let [old, new] = self.names();
        let name = if reverse { old } else { new }?;
        // Only git's headers can move a file.
        let stays = before.filter(|_| !self.is_of_git());
        stays.map_or_else(|| without_parts(&name, strip), |path| Some(path.to_vec()))
    }

    /// Returns the names of the file on the old and on the new side; `None` where there is none.
    pub fn names(&self) -> [Option<Vec<u8>>; 2] {
        self.sides().map(|name| name.filter(|name| !is_no_file(name)))
    }

    /// Returns the text after `--- ` and `+++ `, `/dev/null` included.
    fn sides(&self) -> [Option<Vec<u8>>; 2] {
        let keys: [&[u8]; 2] = [b"--- ", b"+++ "];
        keys.map(|key| self.in_header(key).and_then(name_in))
    }

    /// Returns the names in the `diff --git` line, if there is one.
    pub fn git_names(&self) -> Option<&'a [u8]> {
        self.in_header(b"diff --git ")
    }

    /// Returns the blob id of the file to change, possibly abbreviated, from the `index` line.
    pub fn stated_blob(&self, reverse: bool) -> Option<&'a str> {
        let ids = std::str::from_utf8(self.in_header(b"index ")?).ok()?.split_whitespace().next()?;
        let (old, new) = ids.split_once("..")?;
        Some(if reverse { new } else { old })
    }

    /// Returns whether the part has the header of git's diffs. git reads the `index` line only below that.
    pub fn is_of_git(&self) -> bool {
        self.in_header(b"diff --git ").is_some()
    }

    /// Returns whether the part has hunks: a binary diff and a pure rename have none.
    pub fn has_hunks(&self) -> bool {
        self.lines.iter().any(|line| line.kind == DiffLine::HunkHead)
    }

    /// Returns the part without its `index` line: git then applies it to the file, and never merges.
    pub fn without_index(&self) -> DiffPart<'a> {
        let mut lines = self.lines.clone();
        lines.retain(|line| line.kind != DiffLine::Header || !line.bytes.starts_with(b"index "));
        DiffPart { lines }
    }

    /// Returns whether the part copies a file, which then stays unchanged.
    pub fn is_copy(&self) -> bool {
        self.in_header(b"copy from ").is_some()
    }

    /// Returns whether the part renames a file.
    pub fn is_rename(&self) -> bool {
        self.in_header(b"rename from ").or_else(|| self.in_header(b"rename old ")).is_some()
    }

    /// Returns the text after `key`, which begins a line of the header.
    fn in_header(&self, key: &[u8]) -> Option<&'a [u8]> {
        let mut header = self.lines.iter().filter(|line| line.kind == DiffLine::Header);
        header.find_map(|line| line.bytes.strip_prefix(key))
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

/// Splits `diff` into its files. Text between two of them belongs to the second one if hunks are above it.
pub(crate) fn parts_of(diff: &[u8]) -> Vec<DiffPart<'_>> {
    let lines: Vec<&[u8]> = diff.split_inclusive(|byte| *byte == b'\n').collect();
    let mut splitter = Splitter {
        parts: vec![DiffPart::default()],
        lacks: HunkLines::default(),
        position: Position::Text,
        has_hunks: false,
    };
    for (at, line) in lines.iter().copied().enumerate() {
        splitter.push(line, lines.get(at + 1).copied().unwrap_or_default());
    }
    splitter.parts
}

/// The position of a line in a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Above the header.
    Text,
    /// At or below `diff --git`, where git's lines may follow.
    GitHeader,
    /// At `---`, with `+++` in the next line.
    Names,
    /// Below the header: hunks, a binary patch, or text.
    Body,
}

const DIFF_GIT: &[u8] = b"diff --git ";

/// The keys of the lines that git reads below `diff --git`, besides `---` and `+++`.
const GIT_KEYS: [&[u8]; 13] = [
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"rename old ",
    b"rename new ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
];

struct Splitter<'a> {
    parts: Vec<DiffPart<'a>>,
    lacks: HunkLines,
    /// Of the last line in the last part.
    position: Position,
    /// Whether the last part has hunks.
    has_hunks: bool,
}

impl<'a> Splitter<'a> {
    fn push(&mut self, bytes: &'a [u8], next: &[u8]) {
        let kind = match self.lacks.next(bytes) {
            DiffLine::HunkHead => {
                (self.position, self.has_hunks) = (Position::Body, true);
                DiffLine::HunkHead
            }
            DiffLine::Other if !bytes.starts_with(b"\\") => self.outside_hunks(bytes, next),
            kind => kind,
        };
        if let Some(part) = self.parts.last_mut() {
            part.lines.push(PartLine { bytes, kind });
        }
    }

    /// Begins a part if `line` does, and returns the kind of the line.
    fn outside_hunks(&mut self, line: &[u8], next: &[u8]) -> DiffLine {
        let has_names = line.starts_with(b"--- ") && next.starts_with(b"+++ ");
        let is_of_git = self.position == Position::GitHeader;
        let is_git_line = is_of_git && GIT_KEYS.iter().any(|key| line.starts_with(key));
        let begins_file = line.starts_with(DIFF_GIT) || (has_names && !is_of_git);
        let is_second_name = self.position == Position::Names;
        if (begins_file && self.position != Position::Text) || (!begins_file && self.has_hunks) {
            self.parts.push(DiffPart::default());
            (self.position, self.has_hunks) = (Position::Text, false);
        }
        let (position, kind) = if line.starts_with(DIFF_GIT) || is_git_line {
            (Position::GitHeader, DiffLine::Header)
        } else if has_names {
            (Position::Names, DiffLine::Header)
        } else if is_second_name {
            (Position::Body, DiffLine::Header)
        } else if self.position == Position::Text {
            (Position::Text, DiffLine::Other)
        } else {
            (Position::Body, DiffLine::Other)
        };
        self.position = position;
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::parts_of;

    #[test]
    fn a_part_knows_its_paths_and_its_blob() {
        let diff = b"words\n--- a/x.c.orig\t2020\n+++ a/x.c\n@@ -1 +1 @@\n--- a/no\n+++ a/no\n\
                     diff --git \"a/\\303\\244\" b/y\nindex 1234567..89abcde 100644\n--- \"a/\\303\\244\"\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
        let parts = parts_of(diff);
        for reverse in [false, true] {
            assert_eq!(parts[0].paths(1, reverse), [b"x.c".to_vec(), b"x.c.orig".to_vec()], "{reverse}");
        }
        assert_eq!((parts[0].stated_blob(false), parts[1].stated_blob(false)), (None, Some("1234567")));
        assert_eq!(parts[1].paths(1, false), ["ä".as_bytes().to_vec(), b"y".to_vec()]);
        assert_eq!((parts[1].stated_blob(true), parts.len()), (Some("89abcde"), 2));
        assert!(parts[0].paths(3, false).is_empty());
        let made = parts_of(b"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n");
        assert!(made[0].paths(1, false).is_empty());
        assert_eq!(made[0].paths(1, true), [b"new".to_vec()]);
    }

    #[test]
    fn a_file_without_hunks_is_a_part() {
        let next = "diff --git a/x.c b/x.c\nindex 1111111..2222222 100644\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n";
        for above in [
            "diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n",
            "diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n",
            "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n",
            "diff --git a/y b/z\nsimilarity index 100%\ncopy from y\ncopy to z\n",
            "diff --git a/bin b/bin\nindex 3333333..4444444 100644\nGIT binary patch\nliteral 3\nKcmYdh\n\nliteral 3\nKcmYdf\n\n",
            "diff --git a/bin b/bin\nindex 3333333..4444444 100644\nBinary files a/bin and b/bin differ\n",
        ] {
            for header in [next, &next[next.find("---").unwrap()..]] {
                let diff = format!("words\n{above}{header}");
                let parts = parts_of(diff.as_bytes());
                // Only a pair right below git's own lines is part of git's header.
                let is_one = header != next && !above.contains("GIT") && !above.contains("differ");
                assert_eq!(parts.len(), if is_one { 1 } else { 2 }, "{diff}");
                if is_one {
                    continue;
                }
                assert!(parts[0].is_of_git() && parts[0].paths(1, false).is_empty(), "{diff}");
                assert_eq!(parts[1].paths(1, false)[0], b"x.c", "{diff}");
                assert!(!parts[1].is_copy(), "{diff}");
                assert_eq!(parts[1].stated_blob(false), (header == next).then_some("1111111"), "{diff}");
                let mut written = Vec::new();
                parts.iter().for_each(|part| part.without_index().write(&mut written));
                let wanted = diff
                    .replace("index 3333333..4444444 100644\n", "")
                    .replace("index 1111111..2222222 100644\n", "");
                let wanted =
                    wanted.replace("index 0000000..e69de29\n", "").replace("index e69de29..0000000\n", "");
                assert_eq!(String::from_utf8(written).unwrap(), wanted);
            }
        }
    }

    #[test]
    fn a_file_may_be_elsewhere_afterwards() {
        let after = |diff: &str, reverse: bool, before: Option<&str>| {
            let part = &parts_of(diff.as_bytes())[0];
            let path = part.path_after(1, reverse, before.map(str::as_bytes));
            path.map(|path| String::from_utf8(path).unwrap())
        };
        let moved = "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(after(moved, false, Some("x")).as_deref(), Some("y"));
        assert_eq!(after(moved, true, Some("y")).as_deref(), Some("x"));
        let plain = "--- a/x.orig\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(after(plain, false, Some("x")).as_deref(), Some("x"));
        let gone = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
        assert_eq!(after(gone, false, Some("x")), None);
        assert_eq!(after(gone, true, None).as_deref(), Some("x"));
    }
}
