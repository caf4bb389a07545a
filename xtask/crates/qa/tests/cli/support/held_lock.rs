//! Locks that a test holds in place of another run.

use std::fs::File;

/// A locked file, until dropped.
///
/// Closing it would not be enough: a process that the thread of another test has just forked has the file open too,
/// and so the lock, until it starts its program.
pub struct HeldLock(File);

impl HeldLock {
    pub fn exclusive(file: File) -> HeldLock {
        file.lock().unwrap();
        HeldLock(file)
    }

    pub fn shared(file: File) -> HeldLock {
        file.lock_shared().unwrap();
        HeldLock(file)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.0.unlock().unwrap();
    }
}
