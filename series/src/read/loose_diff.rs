//! The text of a diff as other tools write it: the text before it, and the blobs it was made from.

use super::mail::looks_like_diff;

/// Returns the text before the diff; all of the text if there is no diff.
pub fn before_diff(text: &[u8]) -> &[u8] {
    let mut length = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let starts: [&[u8]; 4] = [b"diff ", b"Index: ", b"index ", b"====="];
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        if starts.iter().any(|start| line.starts_with(start)) || looks_like_diff(line) || bare == b"---" {
            break;
        }
        length += line.len();
    }
    text.get(..length).unwrap_or(text)
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

/// Returns whether any side of a file in the diff has git's prefix.
pub fn has_prefixes(text: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"--- a/", b"+++ b/", b"diff --git a/"];
    text.split(|byte| *byte == b'\n').any(|line| starts.iter().any(|start| line.starts_with(start)))
}

/// Returns whether the diff is in the context format of `diff -c`, which git does not read.
pub fn is_context_diff(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"***************"))
}

/// Returns the blobs on both sides of every `index` line, with the abbreviations used there.
pub fn stated_blobs(text: &[u8]) -> Vec<(String, String)> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"index "));
    let ids = lines.filter_map(|line| std::str::from_utf8(line).ok()?.split_whitespace().next());
    let pairs = ids.filter_map(|ids| ids.split_once(".."));
    let is_id = |id: &str| (4..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    pairs
        .filter(|(old, new)| is_id(old) && is_id(new))
        .map(|(old, new)| (old.to_owned(), new.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{before_diff, has_diff, has_no_prefixes, has_prefixes, is_context_diff, stated_blobs};

    #[test]
    fn finds_where_a_diff_begins() {
        for start in
            ["diff --git a/x b/x\n", "--- a/x\n+++ b/x\n", "Index: x\n", "---\n x | 1 +\n", "@@ -1 +1 @@\n"]
        {
            assert_eq!(before_diff(format!("words\n\n{start}").as_bytes()), b"words\n\n", "{start}");
        }
        assert_eq!(before_diff(b"words"), b"words");
        assert!(has_diff(b"words\n---\n x\n\ndiff --git a/x b/x\n") && has_diff(b"--- x\n+++ y\n"));
        assert!(!has_diff(b"words\n---\n x | 1 +\n-- \n2.47\n"));
    }

    #[test]
    fn knows_other_forms() {
        assert!(has_no_prefixes(b"x\ndiff --git src/a.c src/a.c\nindex 1..2\n"));
        assert!(!has_no_prefixes(b"diff --git a/a.c b/a.c\ndiff --git c c\n"));
        assert!(!has_no_prefixes(b"--- a\n+++ a\n"));
        assert!(has_prefixes(b"--- /dev/null\n+++ b/x\n") && !has_prefixes(b"--- x.orig\n+++ x\n"));
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
