//! Verdicts on patches, with their evidence.

pub(crate) mod apply_patch;
pub(crate) mod classify;
pub(crate) mod classify_hunk;
pub(crate) mod drift;
mod nearest;
pub(crate) mod questions;
mod renamed;
mod render;
pub(crate) mod replayed;
mod replayed_drift;
pub(crate) mod run_series;
pub(crate) mod verdict;
