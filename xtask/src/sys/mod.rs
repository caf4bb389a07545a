//! EFFECTS: the only room that may touch git, processes, the network and the disk.
//!
//! Nothing here decides what should happen: that is `plan/` and `series/`. What is here makes each
//! effect safe (atomic, hardened, killable at any moment) and explains it when it fails.
#![allow(clippy::disallowed_methods)]

pub mod arrivals;
pub mod compilers;
pub mod conflict_tree;
pub mod curl;
pub mod disk;
pub mod door;
pub mod edit_make;
pub mod edit_repo;
pub mod exchange;
pub mod fetch;
mod fetch_git;
mod fetch_npm;
pub mod fork;
pub mod fork_history;
mod fork_upstream;
pub mod format_patch;
pub mod git;
mod git_id;
pub mod git_tree;
pub mod github;
pub mod history;
pub mod import_repo;
pub mod inputs;
pub mod load;
mod made_objects;
pub mod materialise;
pub mod memory;
pub mod models;
mod named_commit;
pub mod native_path;
pub mod net;
pub mod ours;
pub mod package;
pub mod patch_apply;
pub mod patch_files;
pub mod pending;
pub mod process;
pub mod project;
pub mod rebase_repo;
pub mod resolutions;
pub mod run_lock;
pub mod secret;
pub mod server;
mod short_id;
pub mod stage;
pub mod step_summary;
pub mod store;
pub mod store_tree;
pub mod threads;
pub mod tip;
pub mod tools;
mod tree_object;
mod watched;

/// The way out of a damaged store.
pub const FETCH_ANEW: &str = "rm -rf target/espalier/store.git    # it is fetched again";
