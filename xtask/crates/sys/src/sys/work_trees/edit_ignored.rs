//! What git ignores in an edit repository alone: the links to the overlay's files.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
use crate::sys::machine::disk;

/// Which paths were linked, in the git folder of an edit repository: one a line.
pub(super) const LINKED: &str = "espalier-overlay";

/// Lets git ignore what was linked, also where a person has rewritten `.git/info/exclude` since.
pub(super) fn keep_out(git_dir: &Path) -> Result<()> {
    let linked = disk::read_if_there(&git_dir.join(LINKED))?.unwrap_or_default();
    exclude(git_dir, &String::from_utf8_lossy(&linked).lines().collect())
}

/// Adds what is missing to the patterns by which git ignores files in this repository alone.
pub(super) fn exclude(git_dir: &Path, paths: &BTreeSet<&str>) -> Result<()> {
    let file = git_dir.join("info/exclude");
    let text = String::from_utf8_lossy(&disk::read_if_there(&file)?.unwrap_or_default()).into_owned();
    let patterns = paths.iter().map(|path| pattern(path));
    let missing: Vec<String> = patterns.filter(|pattern| !text.lines().any(|line| line == pattern)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let before = if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") };
    disk::write_atomically(&file, format!("{before}{}\n", missing.join("\n")).as_bytes())
}

/// Only this path, whatever letters it has.
fn pattern(path: &str) -> String {
    let escape = |letter: char| {
        let is_special = "*?[]\\!# ".contains(letter);
        if is_special { format!("\\{letter}") } else { letter.to_string() }
    };
    format!("/{}", path.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_pattern_is_one_path() {
        assert_eq!(pattern("espalier/a.cpp"), "/espalier/a.cpp");
        assert_eq!(pattern("a b/[x]*.c"), "/a\\ b/\\[x\\]\\*.c");
    }
}
