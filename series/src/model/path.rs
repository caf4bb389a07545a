//! Validated paths in patches.
//!
//! A patch is written on one machine and applied on others, so a path is refused if it would leave the tree, or have
//! another meaning, on *any* of them: Linux, macOS or Windows.

use std::fmt;

use serde::{Serialize, Serializer};

use super::path_elsewhere::{check_letters, is_git_folder, is_windows_device};
use super::path_refusal::PathRefusal;
use super::printable::printable;

const PATH_LIMIT: usize = 4096;
const COMPONENT_LIMIT: usize = 255;
/// Trees are read and written folder by folder, with full paths: the cost is quadratic in the depth.
const DEPTH_LIMIT: usize = 100;

/// A validated path inside a tree: relative, `/` between components, no escape from the tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Checks `bytes`, a path relative to the root of the tree.
    pub fn new(bytes: &[u8]) -> Result<RepoPath, PathRefusal> {
        if bytes.is_empty() {
            return Err(PathRefusal::Empty);
        }
        if bytes.len() > PATH_LIMIT {
            return Err(PathRefusal::TooLong);
        }
        if bytes.starts_with(b"/") {
            return Err(PathRefusal::Absolute);
        }
        if bytes.iter().filter(|byte| **byte == b'/').count() >= DEPTH_LIMIT {
            return Err(PathRefusal::TooDeep);
        }
        check_bytes(bytes)?;
        for component in bytes.split(|byte| *byte == b'/') {
            check_component(component)?;
        }
        check_letters(&crate::model::utf8::lossy(bytes))?;
        Ok(RepoPath(bytes.to_vec()))
    }

    /// Returns the path as git stores it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the last component.
    pub fn file_name(&self) -> &[u8] {
        last_component(&self.0)
    }

    /// Returns the folders that contain this path, outermost first, without the root.
    pub fn folders(&self) -> impl Iterator<Item = &[u8]> {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.filter_map(|(at, _)| self.0.get(..at))
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&printable(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RepoPath({})", printable(&self.0))
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn check_bytes(bytes: &[u8]) -> Result<(), PathRefusal> {
    for byte in bytes {
        match byte {
            b'\\' => return Err(PathRefusal::Backslash),
            b':' => return Err(PathRefusal::Colon),
            0..=31 | 127 => return Err(PathRefusal::ControlCharacter),
            _ => {}
        }
    }
    Ok(())
}

fn check_component(component: &[u8]) -> Result<(), PathRefusal> {
    if component.is_empty() {
        Err(PathRefusal::EmptyComponent)
    } else if component == b"." || component == b".." {
        Err(PathRefusal::DotComponent)
    } else if component.len() > COMPONENT_LIMIT {
        Err(PathRefusal::ComponentTooLong)
    } else if is_git_folder(component) {
        Err(PathRefusal::GitFolder)
    } else if component.ends_with(b".") || component.ends_with(b" ") {
        Err(PathRefusal::TrailingDotOrSpace)
    } else if is_windows_device(component) {
        Err(PathRefusal::WindowsDevice)
    } else {
        Ok(())
    }
}

/// Returns the part of `path` behind its last `/`.
pub(crate) fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{PathRefusal, RepoPath};

    #[test]
    fn takes_ordinary_paths() {
        for path in [
            "a",
            "src/llama.cpp",
            ".github/x.yml",
            "a b/ö.txt",
            ".gitignore",
            "x.git",
            "..a",
            "console",
            "com10",
            "aux2.c",
            "café.c",
            "हिन्दी.txt",
            // Windows cannot write these, but does not treat them as another path either.
            "a*b?.txt",
            "a|b",
            "<a>",
            "say \"hi\"",
        ] {
            assert!(RepoPath::new(path.as_bytes()).is_ok(), "{path}");
        }
    }

    #[test]
    fn refuses_each_by_its_own_name() {
        let long_component = "x".repeat(256);
        let deep_path = "a/".repeat(100) + "a";
        let long_path = "abc/".repeat(1024) + "abcd";
        let cases: &[(&str, PathRefusal)] = &[
            ("", PathRefusal::Empty),
            ("/etc/passwd", PathRefusal::Absolute),
            ("a//b", PathRefusal::EmptyComponent),
            ("a/", PathRefusal::EmptyComponent),
            ("../a", PathRefusal::DotComponent),
            ("a/../../b", PathRefusal::DotComponent),
            ("./a", PathRefusal::DotComponent),
            (".git/config", PathRefusal::GitFolder),
            ("a/.GIT/hooks/x", PathRefusal::GitFolder),
            ("GIT~1/config", PathRefusal::GitFolder),
            (".git /config", PathRefusal::GitFolder),
            (".git./config", PathRefusal::GitFolder),
            (".git . ./config", PathRefusal::GitFolder),
            (".g\u{200d}it/config", PathRefusal::GitFolder),
            ("\u{feff}.gI\u{200c}t", PathRefusal::GitFolder),
            (".git::$INDEX_ALLOCATION/config", PathRefusal::Colon),
            ("C:/windows", PathRefusal::Colon),
            ("a\\b", PathRefusal::Backslash),
            ("a\0b", PathRefusal::ControlCharacter),
            ("a\nb", PathRefusal::ControlCharacter),
            ("foo.", PathRefusal::TrailingDotOrSpace),
            ("foo /x", PathRefusal::TrailingDotOrSpace),
            ("CON", PathRefusal::WindowsDevice),
            ("src/aux.txt", PathRefusal::WindowsDevice),
            ("nul .c", PathRefusal::WindowsDevice),
            ("Lpt9.tar.gz/x", PathRefusal::WindowsDevice),
            ("cafe\u{301}.c", PathRefusal::LetterInParts),
            ("a\u{202e}c.exe", PathRefusal::HiddenCharacter),
            ("a\u{200b}b", PathRefusal::HiddenCharacter),
            ("a\u{206f}b", PathRefusal::HiddenCharacter),
            (&deep_path, PathRefusal::TooDeep),
            (&long_path, PathRefusal::TooLong),
            (&long_component, PathRefusal::ComponentTooLong),
        ];
        for (path, refusal) in cases {
            assert_eq!(RepoPath::new(path.as_bytes()).err(), Some(*refusal), "{path:?}");
        }
    }

    #[test]
    fn lists_folders_outermost_first() {
        let path = RepoPath::new(b"a/b/c").unwrap();
        assert_eq!(path.folders().collect::<Vec<_>>(), [&b"a"[..], b"a/b"]);
        assert_eq!(path.file_name(), b"c");
    }
}
