//! Exact application of a patch to a tree.

pub(crate) mod collision;
pub(crate) mod file;
pub(crate) mod patch;
pub(crate) mod refusal;
pub(crate) mod target;
pub(crate) mod text;
