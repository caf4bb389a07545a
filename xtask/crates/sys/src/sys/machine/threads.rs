//! Threads that ask while their owner does something else.

use std::thread::ScopedJoinHandle;

use crate::error::{Error, Result};

/// What a thread came back with, once it has ended. A thread that panicked is an error.
pub fn result_of<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::surroundings("a thread that asked a server broke down")))
}
