//! Our repositories and work trees, in which people and git work: edits, rebases, imports, the applied tree.

pub mod conflict_tree;
pub mod edit_hidden;
mod edit_ignored;
pub mod edit_make;
pub mod edit_overlay;
pub mod edit_repo;
pub mod fork;
pub mod fork_history;
mod fork_upstream;
pub mod import_repo;
pub mod materialise;
pub mod patch_apply;
pub mod rebase_repo;
pub mod resolutions;
