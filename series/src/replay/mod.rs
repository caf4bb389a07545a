//! Replay of a series on another tree than it was made for.

mod file;
mod folder;
mod follow;
mod landing;
mod left_behind;
pub(crate) mod origin;
pub(crate) mod patch;
pub(crate) mod replayed_patch;
mod shared;
mod sides;
pub(crate) mod survey;
mod text;
