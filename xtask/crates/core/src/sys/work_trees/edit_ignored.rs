//! Files that git ignores only in an edit repository: the links to the overlay's files.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
use crate::sys::machine::disk;

/// File in the git folder of an edit repository with the linked paths, one per line.
pub(super) const LINKED: &str = "espalier-overlay";

/// Makes git ignore the linked paths, even if the user has rewritten `.git/info/exclude` since.
pub(super) fn keep_out(git_dir: &Path) -> Result<()> {
    let linked = disk::read_if_there(&git_dir.join(LINKED))?.unwrap_or_default();
    exclude(git_dir, &espalier_series::lossy(&linked).lines().collect())
}

/// Adds missing patterns to the exclude file of this repository.
pub(super) fn exclude(git_dir: &Path, paths: &BTreeSet<&str>) -> Result<()> {
    let file = git_dir.join("info/exclude");
    let mut text = disk::read_if_there(&file)?.unwrap_or_default();
    let has = |pattern: &String| text.split(|byte| *byte == b'\n').any(|line| line == pattern.as_bytes());
    let patterns = paths.iter().map(|path| pattern(path));
    let missing: Vec<String> = patterns.filter(|pattern| !has(pattern)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    text.extend(format!("{}\n", missing.join("\n")).into_bytes());
    disk::write_atomically(&file, &text)
}

/// Returns a pattern that matches only this path, whatever characters it contains.
fn pattern(path: &str) -> String {
    let escape = |letter: char| {
        let is_special = "*?[]\\!# ".contains(letter);
        if is_special { format!("\\{letter}") } else { letter.to_string() }
    };
    format!("/{}", path.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{exclude, pattern};

    #[test]
    fn lines_of_a_user_keep_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("info/exclude");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, b"gr\xf6\xdfe.o").unwrap();
        for _ in 0..2 {
            exclude(folder.path(), &["a.cpp"].into()).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), b"gr\xf6\xdfe.o\n/a.cpp\n");
        }
    }

    #[test]
    fn a_pattern_is_one_path() {
        assert_eq!(pattern("espalier/a.cpp"), "/espalier/a.cpp");
        assert_eq!(pattern("a b/[x]*.c"), "/a\\ b/\\[x\\]\\*.c");
    }
}
