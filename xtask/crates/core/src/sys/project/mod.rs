//! The project's own files: read, locked, and changed atomically.

pub mod garbage;
pub mod inputs;
pub mod long_stage;
pub mod patch_files;
pub mod pending;
pub mod pinned_models;
mod record;
pub mod recovery;
pub mod root;
pub mod run_lock;
pub mod stage;
pub mod undo;

#[cfg(test)]
mod testing;
