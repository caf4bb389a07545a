//! Conversion between paths of a tree and paths of this machine, byte for byte where the machine allows it.

use std::path::{Path, PathBuf};

/// Converts a path of a tree. Where the system's names are not bytes, invalid UTF-8 is replaced.
#[cfg(unix)]
pub fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(espalier_series::lossy(bytes).into_owned())
}

/// Converts a path of this machine to one of a tree.
#[cfg(unix)]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}
