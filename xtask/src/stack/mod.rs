//! What is done with one variant: read, placed on its pin, locked, built, smoked, surveyed.

pub mod apply;
pub mod build;
pub mod commits;
pub mod import;
pub mod lock;
pub mod lock_file;
pub mod pinned_series;
pub mod range;
pub mod ready;
pub mod smoke;
pub mod taken;
