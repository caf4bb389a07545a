//! Which upstream commits took a patch.

pub(crate) mod counted_change;
pub(crate) mod lookout;
