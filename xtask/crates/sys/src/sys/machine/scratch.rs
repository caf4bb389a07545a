//! Where programs leave files that live for a moment.

use std::path::Path;

use tempfile::TempDir;

use super::disk;

/// The variable that says where they do.
pub const VARIABLE: &str = "TMPDIR";

/// Linux keeps what is in it in memory.
const IN_MEMORY: &str = "/dev/shm";

/// A folder in memory that goes with the value, where the system has one with so many bytes of room in which programs can be
/// started. Nobody has said where to leave files.
///
/// Making and removing thousands of small files is what it is for: an ext4 without a journal looks at every file that was removed
/// in the last seconds before it makes another, and took three quarters of the time of some tests.
#[must_use]
pub fn in_memory(room: u64) -> Option<TempDir> {
    if std::env::var_os(VARIABLE).is_some() || !has_room(Path::new(IN_MEMORY), room) {
        return None;
    }
    disk::scratch_folder(Path::new(IN_MEMORY), "espalier").ok()
}

#[cfg(target_os = "linux")]
fn has_room(folder: &Path, room: u64) -> bool {
    use rustix::fs::StatVfsMountFlags;
    rustix::fs::statvfs(folder).is_ok_and(|disk| {
        !disk.f_flag.contains(StatVfsMountFlags::NOEXEC) && disk.f_bavail * disk.f_frsize >= room
    })
}

#[cfg(not(target_os = "linux"))]
fn has_room(_folder: &Path, _room: u64) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_there_or_too_small_has_no_room() {
        let here = std::env::temp_dir();
        assert!(has_room(&here, 1));
        assert!(!has_room(&here, u64::MAX), "no disk has so much");
        assert!(!has_room(Path::new("/gone"), 0));
    }
}
