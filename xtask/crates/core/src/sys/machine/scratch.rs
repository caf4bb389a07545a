//! Folder for short-lived files of programs.

use std::path::Path;

use tempfile::TempDir;

use super::{disk, owned};
use crate::config::layout::Layout;

/// The variable that names this folder.
pub const VARIABLE: &str = "TMPDIR";

/// Linux keeps the content of this folder in memory.
const IN_MEMORY: &str = "/dev/shm";

/// Creates a folder in memory that is removed when dropped, where the system has one with `bytes` free bytes from
/// which programs can be started. `None` if the user has set [`VARIABLE`].
///
/// For workloads that create and remove thousands of small files: ext4 without a journal, before it creates a file,
/// looks at every file removed in the last seconds, which took three quarters of the time of some tests.
#[must_use]
pub fn in_memory(bytes: u64) -> Option<TempDir> {
    is_wanted(bytes).then(|| disk::scratch_folder(Path::new(IN_MEMORY), "espalier").ok())?
}

/// As [`in_memory`], for a run that holds the run lock of this project; the folder has our mark. [`sweep`] removes
/// the folders of killed runs.
#[must_use]
pub fn in_memory_of(layout: &Layout, bytes: u64) -> Option<TempDir> {
    is_wanted(bytes).then(|| marked(layout))?
}

fn is_wanted(bytes: u64) -> bool {
    std::env::var_os(VARIABLE).is_none() && has_space(Path::new(IN_MEMORY), bytes)
}

fn marked(layout: &Layout) -> Option<TempDir> {
    let folder = disk::scratch_folder(Path::new(IN_MEMORY), &name_of(layout)).ok()?;
    owned::claim_scratch(folder.path()).ok().map(|()| folder)
}

/// Removes the folders in memory of this project's killed runs. The caller holds the run lock.
pub fn sweep(layout: &Layout) {
    let prefix = format!("{}-", name_of(layout));
    let is_of_project =
        |folder: &Path| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    for folder in disk::folders_in(Path::new(IN_MEMORY)).iter().filter(|folder| is_of_project(folder)) {
        // Every user may write there: a folder of another user is skipped.
        let _ = owned::remove_folder(folder);
    }
}

/// Returns a name that is unique to the folder of the project.
fn name_of(layout: &Layout) -> String {
    let digest = disk::sha256(layout.root().as_os_str().as_encoded_bytes());
    format!("espalier-{}", digest.chars().take(16).collect::<String>())
}

#[cfg(target_os = "linux")]
fn has_space(folder: &Path, bytes: u64) -> bool {
    use rustix::fs::StatVfsMountFlags;
    rustix::fs::statvfs(folder).is_ok_and(|disk| {
        !disk.f_flag.contains(StatVfsMountFlags::NOEXEC) && disk.f_bavail * disk.f_frsize >= bytes
    })
}

#[cfg(not(target_os = "linux"))]
fn has_space(_folder: &Path, _bytes: u64) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_leftovers_of_killed_runs_are_removed() {
        let projects = [disk_folder(), disk_folder()];
        let [layout, other] = projects.each_ref().map(|folder| Layout::new(folder.path().to_path_buf()));
        let left = [&layout, &other].map(|layout| marked(layout).unwrap().keep());
        let foreign = disk::scratch_folder(Path::new(IN_MEMORY), &name_of(&layout)).unwrap();
        sweep(&layout);
        assert_eq!(left.each_ref().map(|folder| folder.exists()), [false, true]);
        assert!(foreign.path().exists(), "our mark is missing");
        sweep(&other);
        assert!(!left[1].exists());
    }

    fn disk_folder() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_missing_or_small_folder_has_no_capacity() {
        let here = std::env::temp_dir();
        assert!(has_space(&here, 1));
        assert!(!has_space(&here, u64::MAX), "no disk has so much");
        assert!(!has_space(Path::new("/gone"), 0));
    }
}
