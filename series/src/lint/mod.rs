//! Rules of a series beyond well-formedness.

pub(crate) mod change_text;
pub(crate) mod finding;
pub(crate) mod numerics;
pub(crate) mod order;
pub(crate) mod patch;
pub(crate) mod paths;
pub(crate) mod requirements;
pub(crate) mod rules;
pub(crate) mod same_change;
pub(crate) mod trailers;
pub(crate) mod trailers_edit;
