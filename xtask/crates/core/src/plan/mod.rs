//! PURE: decisions as data, made from what the caller has read: what a run does, which garbage is removed, which issues
//! are opened.

pub mod gc;
pub mod github_reply;
pub mod issues;
pub mod pending;
pub mod steps;
