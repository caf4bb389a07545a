//! A patch and a tree as data; imports no other module of the crate.

pub(crate) mod arrivals;
pub(crate) mod delta;
pub(crate) mod entry;
pub(crate) mod hunk_lines;
pub(crate) mod layered_tree;
pub(crate) mod lines;
pub(crate) mod memory_tree;
pub(crate) mod mode;
pub(crate) mod object_id;
pub(crate) mod patch;
pub(crate) mod path;
mod path_elsewhere;
pub(crate) mod path_refusal;
pub(crate) mod printable;
pub(crate) mod signed;
pub(crate) mod tree;
pub(crate) mod utf8;
