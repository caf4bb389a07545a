//! Changes on top of a tree, without copying the tree.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use super::arrivals::Arrivals;
use super::entry::TreeEntry;
use super::mode::Mode;
use super::object_id::ObjectId;
use super::tree::{Tree, TreeChange, TreeError};

/// A tree that reads through to `base`, except where patches have changed it.
///
/// A folder of `base` stays a folder even when all its files are deleted.
pub struct LayeredTree<'a> {
    base: &'a dyn Tree,
    entries: BTreeMap<Vec<u8>, Option<TreeEntry>>,
    blobs: HashMap<ObjectId, Arc<Vec<u8>>>,
}

impl<'a> LayeredTree<'a> {
    /// Creates a layer over `base` without changes.
    pub fn new(base: &'a dyn Tree) -> LayeredTree<'a> {
        LayeredTree { base, entries: BTreeMap::new(), blobs: HashMap::new() }
    }

    /// Adds the result of a patch.
    pub fn add(&mut self, changes: &[TreeChange]) {
        for change in changes {
            let entry =
                change.new.as_ref().map(|file| TreeEntry { mode: Mode::from(file.mode), id: file.id });
            self.entries.insert(change.path.as_bytes().to_vec(), entry);
            if let Some(file) = &change.new
                && let Some(content) = &file.content
            {
                self.blobs.insert(file.id, Arc::clone(content));
            }
        }
    }

    /// Returns the paths below `prefix` that the layer has, with their entries.
    fn below<'b>(&'b self, prefix: &'b [u8]) -> impl Iterator<Item = (&'b [u8], &'b Option<TreeEntry>)> {
        let from_prefix = self.entries.range(prefix.to_vec()..);
        from_prefix.map_while(move |(path, entry)| Some((path.strip_prefix(prefix)?, entry)))
    }

    fn merged_paths(
        &self,
        from_base: Vec<Vec<u8>>,
        is_wanted: impl Fn(&[u8], &TreeEntry) -> bool,
    ) -> Vec<Vec<u8>> {
        let untouched = from_base.into_iter().filter(|path| !self.entries.contains_key(path));
        let mut paths: Vec<Vec<u8>> = untouched.collect();
        for (path, entry) in &self.entries {
            if entry.as_ref().is_some_and(|entry| is_wanted(path, entry)) {
                paths.push(path.clone());
            }
        }
        paths
    }
}

impl Tree for LayeredTree<'_> {
    fn entry(&self, path: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
        if let Some(entry @ Some(_)) = self.entries.get(path) {
            return Ok(*entry);
        }
        // A deleted file may be replaced by a folder.
        let folder = [path, b"/"].concat();
        if self.below(&folder).any(|(_, entry)| entry.is_some()) {
            return Ok(Some(TreeEntry { mode: Mode::Folder, id: ObjectId::ZERO }));
        }
        match self.entries.contains_key(path) {
            true => Ok(None),
            false => self.base.entry(path),
        }
    }

    fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        match self.blobs.get(&id) {
            Some(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            None => self.base.blob(id),
        }
    }

    fn siblings(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let mut names: BTreeSet<Vec<u8>> = self.base.siblings(folder)?.into_iter().collect();
        let prefix = if folder.is_empty() { Vec::new() } else { [folder, b"/"].concat() };
        for (rest, entry) in self.below(&prefix) {
            let mut parts = rest.splitn(2, |byte| *byte == b'/');
            let name = parts.next().unwrap_or_default();
            match (entry, parts.next()) {
                (Some(_), _) => names.insert(name.to_vec()),
                (None, None) => names.remove(name),
                (None, Some(_)) => false,
            };
        }
        Ok(names.into_iter().collect())
    }

    fn find_blob(&self, id: ObjectId) -> Result<Vec<Vec<u8>>, TreeError> {
        Ok(self.merged_paths(self.base.find_blob(id)?, |_, entry| entry.id == id))
    }

    fn find_file_name(&self, file_name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        let is_named = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(file_name);
        let from_base = self.base.find_file_name(file_name)?;
        Ok(self.merged_paths(from_base, |path, _| is_named(path)))
    }

    fn remembered_blob(&self, id: ObjectId) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        match self.blobs.get(&id) {
            Some(bytes) => Ok(Some(Cow::Borrowed(bytes.as_slice()))),
            None => self.base.remembered_blob(id),
        }
    }

    fn arrivals(&self) -> Result<Rc<Arrivals>, TreeError> {
        self.base.arrivals()
    }
}

#[cfg(test)]
mod tests {
    use super::LayeredTree;
    use crate::model::memory_tree::MemoryTree;
    use crate::model::mode::{FileMode, Mode};
    use crate::model::path::RepoPath;
    use crate::model::tree::{NewFile, Tree, TreeChange};

    fn change(path: &str, content: Option<&[u8]>) -> TreeChange {
        let new = content.map(|bytes| NewFile {
            mode: FileMode::Regular,
            id: super::ObjectId::of_blob(bytes),
            content: Some(std::sync::Arc::new(bytes.to_vec())),
        });
        let path = RepoPath::new(path.as_bytes()).unwrap();
        TreeChange { path, new }
    }

    #[test]
    fn reads_through_where_nothing_changed() {
        let mut base = MemoryTree::new();
        base.put("a/x", Mode::File, b"x");
        base.put("a/y", Mode::File, b"y");
        base.put("f", Mode::File, b"f");
        let mut tree = LayeredTree::new(&base);
        tree.add(&[change("a/x", None), change("b/c/z", Some(b"z")), change("f", None)]);
        tree.add(&[change("f/g", Some(b"x"))]);
        let mode = |path: &str| tree.entry(path.as_bytes()).unwrap().map(|entry| entry.mode);
        assert_eq!(mode("a/x"), None);
        assert_eq!(mode("a/y"), Some(Mode::File));
        assert_eq!(mode("b/c"), Some(Mode::Folder));
        assert_eq!(mode("b/c/z"), Some(Mode::File));
        assert_eq!(mode("f"), Some(Mode::Folder));
        assert_eq!(tree.siblings(b"").unwrap(), [b"a", b"b", b"f"]);
        assert_eq!(tree.siblings(b"a").unwrap(), [b"y"]);
        let x = super::ObjectId::of_blob(b"x");
        assert_eq!(tree.find_blob(x).unwrap(), [b"f/g"]);
        assert_eq!(&*tree.blob(x).unwrap(), b"x");
    }
}
