//! EFFECTS of this crate: random models on disk.
#![allow(clippy::disallowed_methods)]

pub mod models;
