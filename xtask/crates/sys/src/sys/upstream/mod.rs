//! What comes from elsewhere: the pinned trees, and any other commit that somebody names.

pub mod fetch;
pub(in crate::sys) mod fetch_git;
mod fetch_npm;
pub(in crate::sys) mod named_commit;
mod short_id;
pub mod tip;
