//! Patches from elsewhere, converted to commits and patch files on a pin.

pub mod applying;
pub mod fork;
pub mod left_out;
mod line_ends;
pub mod loose;
pub mod new_pin;
pub mod patches;
pub mod sequence;
mod strip_count;
