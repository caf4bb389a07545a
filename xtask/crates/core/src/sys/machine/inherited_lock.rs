//! Lock files that child processes inherit.

use std::fs::File;
use std::io;
use std::process::Command;

/// A lock that the children of this process hold too, except those that were started with `Run::without_locks`.
/// Dropping it releases it here.
#[derive(Debug)]
pub struct InheritedLock {
    file: File,
}

impl InheritedLock {
    /// Makes children inherit `file`, which is locked.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn new(file: File) -> io::Result<InheritedLock> {
        descriptors::share(&file)?;
        Ok(InheritedLock { file })
    }
}

impl Drop for InheritedLock {
    fn drop(&mut self) {
        descriptors::forget(&self.file);
    }
}

/// Keeps the locks that are held now from the child that `command` starts.
pub(super) fn keep_from(command: &mut Command) {
    descriptors::close_in(command);
}

#[cfg(unix)]
mod descriptors {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::io::{FdFlags, fcntl_setfd};

    /// The descriptors of all locks that are held.
    static HELD: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

    /// A panic cannot leave the list in an inconsistent state.
    fn held() -> MutexGuard<'static, Vec<RawFd>> {
        HELD.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn share(file: &File) -> io::Result<()> {
        fcntl_setfd(file, FdFlags::empty())?;
        held().push(file.as_raw_fd());
        Ok(())
    }

    pub fn forget(file: &File) {
        let descriptor = file.as_raw_fd();
        held().retain(|held| *held != descriptor);
    }

    /// Sets the flags in the child, since those of this process apply to all children.
    pub fn close_in(command: &mut Command) {
        let locks: Vec<RawFd> = held().clone();
        let close = move || {
            for lock in &locks {
                // SAFETY: the child has a copy of each descriptor of this process. If one was closed since, the call
                // fails, or sets the flag that every other file has anyway.
                let lock = unsafe { BorrowedFd::borrow_raw(*lock) };
                let _ = fcntl_setfd(lock, FdFlags::CLOEXEC);
            }
            Ok(())
        };
        // SAFETY: the closure only makes fcntl calls, which are async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(close) };
    }
}

/// On these systems children inherit no files.
#[cfg(not(unix))]
mod descriptors {
    use std::fs::File;
    use std::io;
    use std::process::Command;

    pub fn share(_file: &File) -> io::Result<()> {
        Ok(())
    }

    pub fn forget(_file: &File) {}

    pub fn close_in(_command: &mut Command) {}
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::InheritedLock;
    use crate::sys::machine::process::Run;

    #[test]
    fn a_child_inherits_a_lock_unless_it_is_kept_from_it() {
        let lock = InheritedLock::new(tempfile::tempfile().unwrap()).unwrap();
        let descriptor = lock.file.as_raw_fd();
        let child = || Run::new("sh").args(["-c", &format!("[ -e /dev/fd/{descriptor} ]")]);
        assert!(child().finish().unwrap().status.success());
        assert!(!child().without_locks().finish().unwrap().status.success());
        assert!(child().finish().unwrap().status.success(), "only that child");
    }
}
