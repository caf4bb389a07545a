//! A project for the tests of this folder: a page and a series, as texts.

use std::path::Path;

use super::inputs::{PatchFile, read_folder};
use super::stage::Stage;
use crate::config::layout::Layout;
use crate::sys::machine::{disk, owned};

/// A project in a temporary folder.
pub(super) struct TestProject {
    _folder: tempfile::TempDir,
    pub(super) layout: Layout,
}

impl TestProject {
    /// Creates a project with these files, each as `PATH=TEXT`.
    pub(super) fn with(files: &[&str]) -> TestProject {
        let folder = tempfile::tempdir().unwrap();
        let project = TestProject { layout: Layout::new(folder.path()), _folder: folder };
        owned::claim(&project.layout).unwrap();
        for file in files {
            let (path, text) = file.split_once('=').unwrap();
            project.write(path, text);
        }
        project
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        disk::write_atomically(&self.layout.root().join(path), text.as_bytes()).unwrap();
    }

    /// Returns the files of the project, as [`TestProject::with`] takes them.
    pub(super) fn found(&self) -> Vec<String> {
        let files = disk::files_below(self.layout.root()).unwrap();
        let ours = files.iter().filter(|path| !path.starts_with("target"));
        let text = |path: &Path| disk::read_text(&self.layout.root().join(path)).unwrap();
        ours.map(|path| format!("{}={}", path.display(), text(path))).collect()
    }

    /// Stages the page `new`, and a series of these patches, each with its number and its text.
    pub(super) fn stage_series(&self, patches: [(&str, &str); 3]) -> Stage {
        let mut stage = Stage::begin(&self.layout).unwrap();
        let read = read_folder(&self.layout, "patches").unwrap();
        let new = patches.map(|(name, text)| PatchFile::new(format!("patches/{name}.patch"), text.into()));
        stage.replace_series("patches", &read, &new).unwrap();
        stage.write("page", b"new").unwrap();
        stage
    }
}
