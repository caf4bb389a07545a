//! The text of a diff as other tools write it: the text before it, and the blobs it was made from.

use super::mail::looks_like_diff;
use super::missing_file::missing_file;

/// Returns the text before the diff; all of the text if there is no diff.
///
/// Prose may begin with the words of a diff, such as `index` or `Index:`: such a line belongs to the diff only if the
/// names of its files follow, with nothing but lines of a diff in between.
pub fn before_diff(text: &[u8]) -> &[u8] {
    let (mut length, mut opened) = (0, None);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        if bare == b"---" {
            break;
        }
        let is_named = looks_like_diff(bare) || bare.starts_with(b"diff --git ");
        if is_named || (is_rule(bare) && opened.is_some()) {
            length = opened.unwrap_or(length);
            break;
        }
        opened = if opens_diff(bare) { opened.or(Some(length)) } else { opened.filter(|_| continues(bare)) };
        length += line.len();
    }
    text.get(..length).unwrap_or(text)
}

/// Returns whether a diff may begin with `line`, above the names of its files.
fn opens_diff(line: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"Index: ", b"=====", b"diff -"];
    // Prose has more than one word there.
    let is_missing_file = missing_file(line).is_some_and(|path| !path.contains(&b' '));
    starts.iter().any(|start| line.starts_with(start)) || blobs_in(line).is_some() || is_missing_file
}

/// Returns whether `line` may be between the begin of a diff and the names of its files: lines of CVS and diff(1).
fn continues(line: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"RCS file: ", b"retrieving revision ", b"*** "];
    starts.iter().any(|start| line.starts_with(start)) || missing_file(line).is_some()
}

/// Returns whether `line` is the rule that Subversion, CVS and quilt write below `Index:`; one that underlines a
/// heading is shorter.
fn is_rule(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.len() >= 60 && line.iter().all(|byte| *byte == b'=')
}

/// Returns whether `text` contains a diff.
pub fn has_diff(text: &[u8]) -> bool {
    let rest = &text[before_diff(text).len()..];
    rest.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"diff --git ") || looks_like_diff(line))
}

/// Returns whether the diff has no prefixes such as `a/` and `b/`: git then uses the same name on both sides.
pub fn has_no_prefixes(text: &[u8]) -> bool {
    let is_alike = |line: &[u8]| {
        let half = line.len() / 2;
        line.get(half) == Some(&b' ') && line.get(..half) == line.get(half + 1..)
    };
    let mut lines =
        text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"diff --git ")).peekable();
    lines.peek().is_some() && lines.all(|line| is_alike(line.strip_suffix(b"\r").unwrap_or(line)))
}

/// Returns whether the diff is in the context format of `diff -c`, which git does not read.
pub fn is_context_diff(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"***************"))
}

/// Returns the blobs on both sides of every `index` line, with the abbreviations used there.
pub fn stated_blobs(text: &[u8]) -> Vec<(String, String)> {
    let blobs = text.split(|byte| *byte == b'\n').filter_map(blobs_in);
    blobs.map(|(old, new)| (old.to_owned(), new.to_owned())).collect()
}

/// Returns the blobs in `line` if it is an `index` line: `index 1234567..89abcde 100644`.
fn blobs_in(line: &[u8]) -> Option<(&str, &str)> {
    let ids = std::str::from_utf8(line.strip_prefix(b"index ")?).ok()?.split_whitespace().next()?;
    let is_id = |id: &str| (4..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ids.split_once("..").filter(|(old, new)| is_id(old) && is_id(new))
}

#[cfg(test)]
mod tests {
    use super::{before_diff, has_diff, has_no_prefixes, is_context_diff, stated_blobs};

    const RULE: &str = "===================================================================\n";

    #[test]
    fn finds_where_a_diff_begins() {
        for start in [
            "diff --git a/x b/x\n",
            "--- a/x\n+++ b/x\n",
            "Index: x\n--- x.orig\n+++ x\n",
            "index 1234567..89abcde 100644\n--- a/x\n+++ b/x\n",
            "diff -u -r1.1 x\n--- x\n+++ x\n",
            "diff -Nru a/x b/x\nBinary files a/x and b/x differ\ndiff -Nru a/y b/y\n--- a/y\n+++ b/y\n",
            "diff -c x.orig x\n*** x.orig\n--- x\n***************\n",
            "=====\n--- a/x\n+++ b/x\n",
            "Only in b: new.c\nBinary files a/y z and b/y z differ\ndiff -ru a/x b/x\n--- a/x\n+++ b/x\n",
            &format!(
                "Index: x\n{RULE}RCS file: /cvs/x,v\nretrieving revision 1.1\ndiff -u -r1.1 x\n--- x\n+++ x\n"
            ),
            &format!(
                "Index: x\n{RULE}Cannot display: file marked as a binary type.\n\nIndex: y\n{RULE}--- y\n+++ y\n"
            ),
            "---\n x | 1 +\n",
            "@@ -1 +1 @@\n",
        ] {
            assert_eq!(before_diff(format!("words\n\n{start}").as_bytes()), b"words\n\n", "{start}");
        }
        assert_eq!(before_diff(b"words"), b"words");
    }

    #[test]
    fn prose_may_begin_with_the_words_of_a_diff() {
        for prose in [
            "index of the first entry was wrong\n",
            "diff of both shows it\n",
            "Index: look it up once\n",
            "Fix it\n======\n",
            "Only in debug builds: a crash\n",
            "Only in tests: a crash\n",
        ] {
            let header = format!("{prose}Author: A <a@b>\n");
            let text = format!("{header}--- a/x\n+++ b/x\n");
            assert_eq!(before_diff(text.as_bytes()), header.as_bytes(), "{prose}");
        }
    }

    #[test]
    fn knows_a_text_without_a_diff() {
        assert!(has_diff(b"words\n---\n x\n\ndiff --git a/x b/x\n") && has_diff(b"--- x\n+++ y\n"));
        assert!(!has_diff(b"words\n---\n x | 1 +\n-- \n2.47\n"));
    }

    #[test]
    fn knows_other_forms() {
        assert!(has_no_prefixes(b"x\ndiff --git src/a.c src/a.c\nindex 1..2\n"));
        assert!(!has_no_prefixes(b"diff --git a/a.c b/a.c\ndiff --git c c\n"));
        assert!(!has_no_prefixes(b"--- a\n+++ a\n"));
        assert!(is_context_diff(b"*** a\n--- b\n***************\n*** 1,2 ****\n"));
        assert!(!is_context_diff(b"--- a\n+++ b\n@@ -1 +1 @@\n"));
    }

    #[test]
    fn reads_short_ids() {
        let text = b"diff --git a/x b/x\nindex 1234567..89abcdef 100644\n index 1..2\n+index aaaa..bbbb\nindex 0000..12345\n";
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        assert_eq!(stated_blobs(text), [pair("1234567", "89abcdef"), pair("0000", "12345")]);
    }
}
