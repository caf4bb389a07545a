//! Detection of upstream commits that contain a patch.

pub(crate) mod counted_change;
pub(crate) mod scan;
