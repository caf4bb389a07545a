//! Paths of a tree as paths of this machine, byte for byte where the machine allows it.

use std::path::{Path, PathBuf};

/// The path that a tree calls `bytes`. What is not UTF-8 is replaced where the system knows no such names.
#[cfg(unix)]
pub fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
pub fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(crate::series::lossy(bytes).into_owned())
}

/// What a tree calls `path`.
#[cfg(unix)]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
pub fn to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().replace('\\', "/").into_bytes()
}
