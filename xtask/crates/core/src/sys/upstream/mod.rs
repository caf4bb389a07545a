//! Objects from upstream: the pinned trees, and any other commit that a user names.

pub mod fetch;
pub(in crate::sys) mod fetch_git;
pub(in crate::sys) mod named_commit;
mod package;
mod short_id;
pub mod tip;
