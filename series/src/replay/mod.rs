//! A series from the tree it was made for to another one.

mod file;
mod folder;
mod follow;
mod landing;
mod left_behind;
pub(crate) mod origin;
pub(crate) mod outcome;
pub(crate) mod patch;
pub(crate) mod replayed_patch;
mod shared;
mod sides;
pub(crate) mod survey;
mod text;
