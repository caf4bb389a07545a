//! Paths that an import leaves as they are in the pin.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_core::sys::machine::native_path::to_bytes;
use espalier_series::ObjectId;
use espalier_series::printable;

/// The paths, and their content in the pin.
pub struct LeftOut<'a> {
    store: &'a Store,
    entries: Vec<LeftOutPath>,
    done: HashMap<ObjectId, ObjectId>,
}

struct LeftOutPath {
    path: Vec<u8>,
    pinned: Option<Entry>,
    /// Whether any imported tree differs from the pin at this path, or a diff lacks the content of a file there.
    is_of_use: bool,
}

impl<'a> LeftOut<'a> {
    /// Creates the list; `paths` are files or folders, `pinned` is the pin's tree.
    pub fn new(store: &'a Store, pinned: ObjectId, paths: &[OsString]) -> Result<LeftOut<'a>> {
        let mut tree = GitTree::new(store, pinned)?;
        let mut entries = Vec::new();
        for path in paths {
            let path = to_bytes(Path::new(path));
            let path = without_slashes(&path);
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

    /// Returns whether `path` is left out. That counts as an effect of the paths that it is in.
    pub fn covers(&mut self, path: &[u8]) -> bool {
        let mut is_covered = false;
        for entry in &mut self.entries {
            let rest = path.strip_prefix(entry.path.as_slice());
            if rest.is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/')) {
                entry.is_of_use = true;
                is_covered = true;
            }
        }
        is_covered
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

/// Returns `path` without slashes at both ends.
fn without_slashes(path: &[u8]) -> &[u8] {
    let is_name = |byte: &u8| *byte != b'/';
    let begin = path.iter().position(is_name).unwrap_or(path.len());
    let end = path.iter().rposition(is_name).map_or(begin, |last| last + 1);
    &path[begin..end]
}

#[cfg(test)]
mod tests {
    use super::without_slashes;

    #[test]
    fn a_folder_may_be_named_with_slashes() {
        for (path, wanted) in [("/a/b//", "a/b"), ("a", "a"), ("//", ""), ("", "")] {
            assert_eq!(without_slashes(path.as_bytes()), wanted.as_bytes(), "{path}");
        }
    }
}
