//! A project as it was at some moment, to which it can be put back.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::Project;

/// A copy of a project, and of everything beside it.
pub struct Saved {
    folder: PathBuf,
    copy: TempDir,
}

impl Saved {
    /// Copies the folder that `project` is in.
    pub fn of(project: &Project) -> Saved {
        let folder = project.root().parent().unwrap().to_path_buf();
        let saved = Saved { folder, copy: tempfile::tempdir().unwrap() };
        copy(&saved.folder, saved.copy.path());
        saved
    }

    /// Puts everything back where it was, so that paths in files, and in what was printed, remain valid.
    pub fn restore(&self) {
        // Moved before it is removed: git may have left a program in the background that still writes there.
        let gone = tempfile::tempdir().unwrap();
        std::fs::rename(&self.folder, gone.path().join("gone")).unwrap();
        std::fs::create_dir(&self.folder).unwrap();
        copy(self.copy.path(), &self.folder);
    }
}

/// Copies the content of a folder with modes, links and times: Ninja, git and the tool compare times.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success(), "{} was not copied", from.display());
}
