//! The number of leading path components to strip from the names in a diff (`-p`), as far as the diff states it.

use super::diff_parts::{DiffPart, parts_of, without_parts};
use crate::read::loose_diff::has_no_prefixes;

/// Returns the number of components to strip if the form of `diff` states it: 1 if the names of every file have git's
/// prefixes, and 0 if git wrote all names without prefixes.
pub fn stated_strip(diff: &[u8]) -> Option<u32> {
    if has_no_prefixes(diff) {
        return Some(0);
    }
    let parts = parts_of(diff);
    let mut prefixed = parts.iter().filter_map(is_prefixed).peekable();
    (prefixed.peek().is_some() && prefixed.all(|is_prefixed| is_prefixed)).then_some(1)
}

/// Returns the paths that `diff` names on either side, without the first `strip` components.
pub fn named_paths(diff: &[u8], strip: u32) -> Vec<Vec<u8>> {
    let parts = parts_of(diff);
    let names = parts.iter().flat_map(DiffPart::names).flatten();
    let mut paths: Vec<Vec<u8>> = names.filter_map(|name| without_parts(&name, strip)).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Returns whether the names of a file have git's prefixes; `None` for a part without names.
fn is_prefixed(part: &DiffPart<'_>) -> Option<bool> {
    if let Some(names) = part.git_names() {
        return Some(are_prefixed(names));
    }
    match part.names() {
        [Some(old), Some(new)] => Some(prefix(&old).zip(prefix(&new)).is_some_and(|(old, new)| old != new)),
        [Some(name), None] | [None, Some(name)] => Some(matches!(prefix(&name), Some(b'a' | b'b'))),
        [None, None] => None,
    }
}

/// Returns whether the two names of a `diff --git` line have different prefixes. Each may be quoted.
fn are_prefixed(names: &[u8]) -> bool {
    let names: Vec<u8> = names.iter().copied().filter(|byte| *byte != b'"').collect();
    let Some(old) = prefix(&names) else { return false };
    let is_other = |name: &[u8]| prefix(name).is_some_and(|new| new != old);
    names.windows(3).any(|three| three[0] == b' ' && is_other(&three[1..]))
}

/// Prefixes that git writes: `a/` and `b/`, and with `diff.mnemonicPrefix` those of the index, the work tree, a commit
/// and an object, and of two files.
const PREFIXES: &[u8] = b"abiwco12";

fn prefix(name: &[u8]) -> Option<u8> {
    match name {
        [letter, b'/', ..] if PREFIXES.contains(letter) => Some(*letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{named_paths, stated_strip};

    #[test]
    fn the_form_of_a_diff_states_the_count() {
        for (diff, wanted) in [
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", Some(1)),
            ("--- a/x.c.orig\n+++ b/x.c\n", Some(1)),
            ("--- /dev/null\n+++ b/x\n", Some(1)),
            ("diff --git i/x w/x\nnew file mode 100644\n--- /dev/null\n+++ w/x\n", Some(1)),
            ("diff --git \"a/\\303\" \"b/\\303\"\nGIT binary patch\n", Some(1)),
            ("diff --git a/x b/y\nrename from x\nrename to y\n", Some(1)),
            ("diff --git src/x src/x\n", Some(0)),
            // A folder may have the name of a prefix.
            ("diff --git a/x a/x\n", Some(0)),
            ("--- a/x\n+++ a/x\n", None),
            ("--- src/x.orig\n+++ src/x\n", None),
            // Both are names of folders: the second may be the one in the tree.
            ("--- src.old/x\n+++ src/x\n", None),
            ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- src/y\n+++ src/y\n@@ -1 +1 @@\n-a\n+b\n", None),
            ("words\n", None),
        ] {
            assert_eq!(stated_strip(diff.as_bytes()), wanted, "{diff}");
        }
    }

    #[test]
    fn a_diff_names_files_with_each_count() {
        let diff = b"--- src/x.orig\t2020\n+++ src/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ y\n@@ -0,0 +1 @@\n+n\n";
        let named = |strip: u32| -> Vec<String> {
            let paths = named_paths(diff, strip).into_iter();
            paths.map(|path| String::from_utf8(path).unwrap()).collect()
        };
        assert_eq!(named(0), ["src/x", "src/x.orig", "y"]);
        assert_eq!(named(1), ["x", "x.orig"]);
        assert_eq!(named(2), [""; 0]);
    }
}
