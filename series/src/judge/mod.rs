//! Verdicts on patches that are not exact.

pub(crate) mod apply_patch;
pub(crate) mod classify;
pub(crate) mod classify_hunk;
pub(crate) mod drift;
mod nearest;
pub(crate) mod questions;
mod renamed;
mod render;
pub(crate) mod replayed;
pub(crate) mod run_series;
