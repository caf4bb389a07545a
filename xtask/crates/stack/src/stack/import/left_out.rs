//! Paths that an import leaves as they are in the pin.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::series::ObjectId;
use crate::series::printable;
use crate::sys::git::store::Store;
use crate::sys::git::tree::{Entry, GitTree};

/// The paths, and their content in the pin.
pub struct LeftOut<'a> {
    store: &'a Store,
    entries: Vec<LeftOutPath>,
    done: HashMap<ObjectId, ObjectId>,
}

struct LeftOutPath {
    path: Vec<u8>,
    pinned: Option<Entry>,
    /// Whether any imported tree differs from the pin at this path.
    is_of_use: bool,
}

impl<'a> LeftOut<'a> {
    /// Creates the list; `paths` are files or folders, `pinned` is the pin's tree.
    pub fn new(store: &'a Store, pinned: ObjectId, paths: &[String]) -> Result<LeftOut<'a>> {
        let mut tree = GitTree::new(store, pinned)?;
        let mut entries = Vec::new();
        for path in paths {
            let path = path.trim_matches('/').as_bytes();
            if path.is_empty() {
                return Err(Error::usage("`--leave-out` names no path")
                    .hint("name a file or a folder of the fork: --leave-out docs/link"));
            }
            let pinned = tree.entry(path)?;
            entries.push(LeftOutPath { path: path.to_vec(), pinned, is_of_use: false });
        }
        Ok(LeftOut { store, entries, done: HashMap::new() })
    }

    /// Returns `tree` with the pin's content at these paths.
    pub fn without(&mut self, tree: ObjectId) -> Result<ObjectId> {
        if self.entries.is_empty() {
            return Ok(tree);
        }
        if let Some(done) = self.done.get(&tree) {
            return Ok(*done);
        }
        let mut changed = GitTree::new(self.store, tree)?;
        for LeftOutPath { path, pinned, is_of_use } in &mut self.entries {
            if changed.entry(path)? != *pinned {
                changed.set(path, *pinned)?;
                *is_of_use = true;
            }
        }
        let without = changed.write()?;
        self.store.write_tree(without)?;
        self.done.insert(tree, without);
        Ok(without)
    }

    /// Returns an error that names the paths that had no effect: they are probably a mistake.
    pub fn refuse_useless(&self) -> Result<()> {
        let useless = self.entries.iter().filter(|entry| !entry.is_of_use);
        let names: Vec<String> = useless.map(|entry| printable(&entry.path)).collect();
        if names.is_empty() {
            return Ok(());
        }
        Err(Error::usage("no imported commit changes what `--leave-out` names")
            .detail(names.join("\n"))
            .hint("write the path as the list of refusals has it, or leave the flag out"))
    }
}
