//! EFFECTS: the only module that may touch git, processes, the network and the disk.
//!
//! Nothing here decides what to do: that is `plan/` and `series/`. This module makes each effect safe (atomic,
//! hardened, killable at any moment) and explains it when it fails.
#![allow(clippy::disallowed_methods)]

pub mod git;
pub mod github;
pub mod machine;
pub mod net;
pub mod project;
pub mod upstream;
pub mod work_trees;
