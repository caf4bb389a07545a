//! libgit2 and the command `git`: one store of objects, its trees and its history.

pub mod arrivals;
pub mod at_commit;
pub mod collect;
pub mod command;
pub(in crate::sys) mod commit_text;
pub mod format_patch;
pub mod history;
pub(in crate::sys) mod ids;
pub(in crate::sys) mod made_objects;
pub mod memory;
pub mod store;
pub mod store_tree;
pub mod tree;
pub(in crate::sys) mod tree_object;
pub mod unverified;

/// Hint for a damaged store.
pub const FETCH_ANEW: &str = "rm -rf target/espalier/store.git    # it is fetched again";
