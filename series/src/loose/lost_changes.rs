//! Changes in a loose diff that git and patch(1) skip without a message.
//!
//! Both read as many lines of a hunk as its header counts, and then look for the next header: what is between them is
//! text to them. So a hunk that was edited without its counts, or a header that was damaged, loses lines. diff(1)
//! also names files without their content, and in a file of several patches the message of one, with its author, may be
//! between two files: a mail, a changeset of `hg export`, a commit of `git log -p`.

use super::diff_parts::{DiffPart, PartLine, parts_of, without_parts};
use super::hunk_lines::DiffLine;
use crate::model::printable::printable;
use crate::read::hg_header;
use crate::read::log_header::begins_commit;
use crate::read::mbox::is_separator;
use crate::read::missing_file::missing_file;

/// Maximum number of lost lines that a description shows.
const LINES_SHOWN: usize = 3;

/// A change that would be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostChange {
    /// Description with its place.
    pub what: String,
    /// The kind.
    pub kind: LostKind,
}

/// Kinds of lost changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostKind {
    /// Added and deleted lines outside of hunks.
    Lines,
    /// A file whose content the diff does not have; its path as the diff names it.
    File(Vec<u8>),
    /// Another patch below the diff: a mail, a changeset or a commit.
    Patch,
}

impl LostChange {
    /// Returns the path of a file whose content is missing, without the first `strip` components.
    pub fn file(&self, strip: u32) -> Option<Vec<u8>> {
        match &self.kind {
            LostKind::File(name) => without_parts(name, strip),
            LostKind::Lines | LostKind::Patch => None,
        }
    }
}

/// Returns the changes of `diff` that git and patch(1) would skip. Text above the first file may be anything, such as
/// the notes below a mail's `---`.
pub fn lost_changes(diff: &[u8]) -> Vec<LostChange> {
    let parts = parts_of(diff);
    let lines: Vec<(&DiffPart<'_>, PartLine<'_>)> =
        parts.iter().flat_map(|part| part.lines.iter().map(move |line| (part, *line))).collect();
    let mut search = Search::default();
    for (at, (part, line)) in lines.iter().enumerate() {
        let mut text_below = lines.iter().skip(at + 1).take_while(|(_, line)| line.kind == DiffLine::Other);
        match line.kind {
            DiffLine::Content => {}
            DiffLine::Header => search.enter_file(part),
            DiffLine::HunkHead => search.enter_hunk(line.bytes),
            DiffLine::Other => {
                // A deleted `-` looks the same; a change would go on below it.
                let is_signature = line.bytes.trim_ascii_end() == b"--"
                    && !text_below.any(|(_, line)| line.bytes.starts_with(b"+"));
                search.read_text(line.bytes, at == 0, is_signature || is_above_diffstat(&lines[at..]));
            }
        }
        search.is_below_git_header = line.kind == DiffLine::Header && part.is_of_git();
    }
    search.end_run();
    search.lost
}

/// The section of the text between hunks that a line is in.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TextSection {
    #[default]
    Plain,
    /// Below the `-- ` of a mail, or in the text of one.
    Mail,
    /// Below Subversion's `Property changes on:`.
    Properties,
}

#[derive(Default)]
struct Search<'a> {
    lost: Vec<LostChange>,
    /// Name of the last file.
    file: String,
    /// The name in the last `Index: ` line or `Property changes on: ` line.
    named: &'a [u8],
    /// The header above the lines, of a hunk or like that of one.
    head: &'a [u8],
    /// Changed lines that are outside of a hunk, below that header.
    run: Vec<&'a [u8]>,
    section: TextSection,
    /// Whether a line of diff(1) or of a version control system was read.
    is_in_diff: bool,
    /// Whether the header of a file was read.
    is_in_file: bool,
    is_below_git_header: bool,
}

impl<'a> Search<'a> {
    fn enter_file(&mut self, part: &DiffPart<'_>) {
        self.end_run();
        let [old, new] = part.names();
        let name = new.or(old).or_else(|| part.git_names().map(<[u8]>::to_vec));
        self.file = printable(&name.unwrap_or_default());
        self.head = &[];
        self.section = TextSection::Plain;
        (self.is_in_diff, self.is_in_file) = (true, true);
    }

    fn enter_hunk(&mut self, head: &'a [u8]) {
        self.end_run();
        (self.head, self.section) = (head.trim_ascii_end(), TextSection::Plain);
        (self.is_in_diff, self.is_in_file) = (true, true);
    }

    /// Reads a line outside of hunks.
    fn read_text(&mut self, line: &'a [u8], is_first: bool, is_signature: bool) {
        let text = line.trim_ascii_end();
        if let Some(name) = text.strip_prefix(b"Index: ") {
            self.end_run();
            (self.named, self.section, self.is_in_diff) = (name, TextSection::Plain, true);
        } else if let Some(name) = text.strip_prefix(b"Property changes on: ").filter(|_| self.is_in_diff) {
            self.end_run();
            (self.named, self.section) = (name, TextSection::Properties);
        } else if let Some(patch) = begun_patch(text).filter(|_| self.is_in_file) {
            let what = format!("{}: a {patch} begins below it: `{}`", self.file, printable(text));
            self.lose(what, LostKind::Patch);
            self.section = TextSection::Mail;
        } else if let Some(path) = self.missing(text).filter(|_| self.is_in_diff || is_first) {
            self.is_in_diff = true;
            let what = format!("{}: its content is not in the diff: `{}`", printable(&path), printable(text));
            self.lose(what, LostKind::File(path));
        } else if is_signature {
            self.section = TextSection::Mail;
        } else if text.starts_with(b"diff -") {
            self.is_in_diff = true;
        } else if text.starts_with(b"@") {
            self.end_run();
            self.head = text;
        } else if self.is_in_file && self.section == TextSection::Plain && is_change(line) {
            self.run.push(text);
        }
    }

    /// Returns the file that `text` states to differ. git itself reads the line about a binary file right below its
    /// header, and refuses it.
    fn missing(&self, text: &[u8]) -> Option<Vec<u8>> {
        let is_mode = text.ends_with(b": svn:executable") || text.ends_with(b": svn:special");
        let is_shown_nowhere = text.starts_with(b"Cannot display: file marked as a binary type");
        match self.section {
            TextSection::Properties => is_mode.then(|| self.named.to_vec()),
            _ if is_shown_nowhere => Some(self.named.to_vec()),
            _ => missing_file(text).filter(|_| !self.is_below_git_header),
        }
    }

    /// Records the lines since the last header, if there are any.
    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.is_empty() {
            return;
        }
        let shown: Vec<String> =
            run.iter().take(LINES_SHOWN).map(|line| format!("`{}`", printable(line))).collect();
        let more = match run.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let below = match self.head {
            [] => "the names of the file".to_owned(),
            head if head.starts_with(b"@@ -") => format!("all lines that `{}` counts", printable(head)),
            head => format!("`{}`, which is not the header of a hunk", printable(head)),
        };
        let lines = if run.len() == 1 { "changed line is" } else { "changed lines are" };
        let (file, count, shown) = (&self.file, run.len(), shown.join(", "));
        let what = format!("{file}: {count} {lines} outside of a hunk, below {below}: {shown}{more}");
        self.lose(what, LostKind::Lines);
    }

    fn lose(&mut self, what: String, kind: LostKind) {
        self.lost.push(LostChange { what, kind });
    }
}

/// Returns the kind of patch that begins with `text`, a line without its end.
fn begun_patch(text: &[u8]) -> Option<&'static str> {
    match text {
        _ if is_separator(text) => Some("mail"),
        _ if text == hg_header::FIRST_LINE.as_bytes() => Some("changeset"),
        _ if begins_commit(text) => Some("commit"),
        _ => None,
    }
}

fn is_change(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'+' | b'-'))
}

/// Whether the first of `lines` is the `---` that `git log --stat` writes above a diffstat.
fn is_above_diffstat(lines: &[(&DiffPart<'_>, PartLine<'_>)]) -> bool {
    let is_stat = |line: &[u8]| line.starts_with(b" ") && line.windows(3).any(|part| part == b" | ");
    lines.first().is_some_and(|(_, line)| line.bytes.trim_ascii_end() == b"---")
        && lines.get(1).is_some_and(|(_, line)| is_stat(line.bytes))
}

#[cfg(test)]
mod tests {
    use super::{LostKind, lost_changes};

    const HUNK: &str = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ f\n-1\n+one\n 2\n 3\n";

    /// Returns the descriptions of what `diff` would lose.
    fn lost(diff: &str) -> Vec<String> {
        lost_changes(diff.as_bytes()).into_iter().map(|change| change.what).collect()
    }

    #[test]
    fn the_line_above_a_diffstat_is_not_a_change() {
        let stat = "---\n x | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n";
        assert_eq!(lost(&format!("{HUNK}\ncommit 0123\n\n    Subject\n{stat}{HUNK}")), [""; 0]);
        assert_eq!(lost(&format!("{HUNK}---\n+x\n")).len(), 1);
    }

    #[test]
    fn lines_that_no_hunk_counts_are_lost() {
        let below = "below all lines that `@@ -1,3 +1,3 @@ f` counts";
        let two = format!("b/x: 2 changed lines are outside of a hunk, {below}: `-4`, `+four`");
        assert_eq!(lost(&format!("{HUNK}-4\n+four\n")), std::slice::from_ref(&two));
        assert_eq!(lost(&format!("{HUNK} 4\n-4\n+four\n@@ -9 +9 @@\n-9\n+nine\n")), [two]);
        let many = lost(&format!("{HUNK}+a\n+b\n+c\n+d\n+e\n"));
        assert_eq!(
            many,
            [format!("b/x: 5 changed lines are outside of a hunk, {below}: `+a`, `+b`, `+c` and 2 more")]
        );
        let damaged = "b/x: 2 changed lines are outside of a hunk, below `@ -15,2 +15,2 @@`, which is not the header of a \
                       hunk: `-16`, `+x`";
        assert_eq!(lost(&format!("{HUNK}@ -15,2 +15,2 @@\n-16\n+x\n 17\n")), [damaged]);
        let first = "b/x: 1 changed line is outside of a hunk, below the names of the file: `+x`";
        assert_eq!(lost("diff --git a/x b/x\n--- a/x\n+++ b/x\n+x\n"), [first]);
        // Half of a header is none.
        assert_eq!(lost(&format!("{HUNK}--- a/y\n")).len(), 1);
    }

    #[test]
    fn a_mail_may_have_text_around_its_diff() {
        let notes = "---\nv2:\n- one\n+ two\nOnly in tests: x\nFrom me, at 00:00:00 2001\n x | 2 +-\n\n";
        let signature = "-- \n2.47.3\n\n--\nunsubscribe: - -\n- here\n";
        for diff in [
            format!("{notes}{HUNK}{signature}"),
            format!("{notes}diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n{signature}"),
            format!("{HUNK}\nIndex: y\n====\ntext\n{HUNK}\\ No newline at end of file\n"),
        ] {
            assert_eq!(lost(&diff), [""; 0], "{diff}");
        }
        // A deleted `-` and an added line.
        assert_eq!(lost(&format!("{HUNK}--\n+a\n")).len(), 1);
    }

    #[test]
    fn a_file_without_its_content_is_lost() {
        let only = "b/new.c: its content is not in the diff: `Only in b: new.c`";
        assert_eq!(lost(&format!("{HUNK}Only in b: new.c\n")), [only]);
        assert_eq!(lost(&format!("Only in b: new.c\ndiff -ru a/x b/x\n{HUNK}")), [only]);
        assert_eq!(lost(&format!("diff -ru a b\nBinary files a/y and b/y differ\n{HUNK}")).len(), 1);
        let svn =
            "Index: y\n====\nCannot display: file marked as a binary type.\nsvn:mime-type = x\n\nIndex: x\n";
        assert_eq!(lost_changes(format!("{svn}{HUNK}").as_bytes())[0].file(0), Some(b"y".to_vec()));
        let property = "\nProperty changes on: x\n____\nAdded: svn:eol-style\n## -0,0 +1 ##\n+native\n";
        assert_eq!(lost(&format!("{HUNK}{property}")), [""; 0]);
        let mode =
            lost_changes(format!("{HUNK}{property}Added: svn:executable\n## -0,0 +1 ##\n+*\n").as_bytes());
        assert_eq!(mode.len(), 1);
        assert_eq!((mode[0].file(0), mode[0].file(1)), (Some(b"x".to_vec()), None));
        // git refuses this one by itself, or has the content.
        let of_git = "diff --git a/y b/y\nindex 1111111..2222222 100644\nBinary files a/y and b/y differ\n";
        assert_eq!(lost(&format!("{of_git}{HUNK}")), [""; 0]);
        let literal = "diff --git a/y b/y\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 3\nKcmYdhNC5x=kO0U4\n\n";
        assert_eq!(lost(&format!("{literal}{HUNK}")), [""; 0]);
    }

    #[test]
    fn a_mail_below_a_diff_is_lost() {
        let mail = "From 0123 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: b\n\n";
        let found = lost_changes(format!("{HUNK}-- \n2.47\n\n{mail}{HUNK}").as_bytes());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, LostKind::Patch);
        assert_eq!(found[0].what, "b/x: a mail begins below it: `From 0123 Mon Sep 17 00:00:00 2001`");
    }

    /// `hg export FIRST:LAST` and `git log -p` write several patches into one file.
    #[test]
    fn a_changeset_or_a_commit_below_a_diff_is_lost() {
        let changeset = "# HG changeset patch\n# User A <a@b>\n# Date 0 0\n";
        let commit = "commit 0123456789abcdef0123456789abcdef01234567\nAuthor: A <a@b>\nDate:   now\n";
        for (head, kind) in [(changeset, "changeset"), (commit, "commit")] {
            let found = lost(&format!("{head}\nfirst\n\n{HUNK}\n{head}\nsecond\n\n{HUNK}"));
            let first = head.lines().next().unwrap();
            assert_eq!(found, [format!("b/x: a {kind} begins below it: `{first}`")]);
            assert_eq!(lost(&format!("{head}\nfirst\n\n{HUNK}")), [""; 0]);
        }
    }
}
