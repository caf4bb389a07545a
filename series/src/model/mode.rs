//! File modes: those of tree entries, and the few that a patch may write.

use serde::Serialize;

/// The kind of a tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A regular file, `100644`.
    File,
    /// A regular file that may be run, `100755`.
    Executable,
    /// A symbolic link, `120000`.
    Symlink,
    /// A commit of another repository, `160000`.
    Submodule,
    /// A folder, `040000`.
    Folder,
}

impl Mode {
    /// Returns the number that git stores, as in `0o100644`.
    pub fn as_git_mode(self) -> u32 {
        match self {
            Mode::File => 0o100_644,
            Mode::Executable => 0o100_755,
            Mode::Symlink => 0o120_000,
            Mode::Submodule => 0o160_000,
            Mode::Folder => 0o040_000,
        }
    }

    /// Returns the description used in reports.
    pub fn describe(self) -> &'static str {
        match self {
            Mode::File => "a file (100644)",
            Mode::Executable => "an executable file (100755)",
            Mode::Symlink => "a symlink (120000)",
            Mode::Submodule => "a submodule (160000)",
            Mode::Folder => "a folder",
        }
    }
}

/// The modes that a patch may name. It writes regular files only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileMode {
    /// `100644`.
    Regular,
    /// `100755`.
    Executable,
    /// `120000`: an upstream symlink that a patch deletes. The parser uses it for nothing else.
    GoneLink,
}

impl FileMode {
    /// Returns the file mode of a tree entry, or `None` if the entry is not a regular file.
    pub fn of_entry(mode: Mode) -> Option<FileMode> {
        match mode {
            Mode::File => Some(FileMode::Regular),
            Mode::Executable => Some(FileMode::Executable),
            Mode::Symlink | Mode::Submodule | Mode::Folder => None,
        }
    }

    /// Returns the number that git stores, as in `0o100644`.
    pub fn as_git_mode(self) -> u32 {
        match self {
            FileMode::Regular => 0o100_644,
            FileMode::Executable => 0o100_755,
            FileMode::GoneLink => 0o120_000,
        }
    }
}

impl From<FileMode> for Mode {
    fn from(mode: FileMode) -> Mode {
        match mode {
            FileMode::Regular => Mode::File,
            FileMode::Executable => Mode::Executable,
            FileMode::GoneLink => Mode::Symlink,
        }
    }
}
