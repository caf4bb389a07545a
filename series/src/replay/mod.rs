//! Replay of a series on another tree than it was made for.

pub(crate) mod applied_series;
mod file;
mod folder;
mod follow;
pub(crate) mod landing;
mod left_behind;
pub(crate) mod patch;
pub(crate) mod replayed_patch;
mod shared;
mod sides;
pub(crate) mod survey;
pub(crate) mod text;
