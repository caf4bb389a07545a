//! Unix sockets, and their files: a file outlives the process that listens on it, and as long as it is there no other
//! process can bind it.

#![allow(
    clippy::disallowed_methods,
    reason = "the front is not part of the tool: calls on its sockets are its own"
)]

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;

use tokio::net::UnixListener;

/// The file of a bound socket, removed when this is dropped unless another server has replaced it.
#[derive(Debug)]
pub struct File {
    path: String,
    identity: Option<(u64, u64)>,
}

/// Returns device and inode of a socket; `None` for other files.
fn identity(path: &str) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    file.file_type().is_socket().then(|| (file.dev(), file.ino()))
}

impl Drop for File {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Binds a socket, after removing one on which no process listens any more.
///
/// # Errors
///
/// The path cannot be bound: another process listens there, or it is another file.
pub fn bind(path: &str) -> io::Result<(UnixListener, File)> {
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if identity(path).is_some() && UnixStream::connect(path).is_err_and(|error| is_refused(&error)) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    Ok((listener, File { path: path.to_string(), identity: identity(path) }))
}
