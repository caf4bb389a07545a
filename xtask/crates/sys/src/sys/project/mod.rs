//! The project's own files: read, locked, and changed atomically.

pub mod archive;
pub mod door;
pub mod garbage;
pub mod image;
pub mod image_read;
pub mod inputs;
pub mod licences;
pub mod long_stage;
pub mod package;
pub mod patch_files;
pub mod pending;
pub mod pinned_models;
pub mod root;
pub mod run_lock;
pub mod sealed_tar;
pub mod stage;
pub mod web_page;
