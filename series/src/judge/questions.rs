//! The queries that judging a patch made of a tree, to decide whether the result holds for another tree.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::model::arrivals::Arrivals;
use crate::model::entry::TreeEntry;
use crate::model::mode::FileMode;
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// All queries of a tree. A result derived from the answers is the same for every tree that gives the same answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Questions {
    entries: HashSet<Vec<u8>>,
    listed: HashSet<Vec<u8>>,
    file_names: HashSet<Vec<u8>>,
    searched: HashSet<ObjectId>,
    remembered: HashSet<ObjectId>,
    arrivals: Option<HashSet<Vec<u8>>>,
}

/// A path at which two trees differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The path.
    pub path: Vec<u8>,
    /// Whether one of the trees has nothing there, or an entry of another kind.
    pub comes_or_goes: bool,
    /// The blobs on both sides; the null id if there is none.
    pub blobs: [ObjectId; 2],
}

impl Questions {
    /// Returns whether one of the answers may differ between two trees that differ at `differences` only.
    pub fn may_differ(&self, differences: &[Difference]) -> bool {
        differences.iter().any(|difference| self.is_about(difference))
    }

    /// The same for two sets of changes on top of one tree. If a change is absent, the tree's own entry is visible,
    /// which may be any blob.
    pub fn may_differ_above(&self, differences: &[Difference]) -> bool {
        let uncovers = differences.iter().any(|difference| difference.comes_or_goes);
        (uncovers && !self.searched.is_empty()) || self.may_differ(differences)
    }

    fn is_about(&self, difference: &Difference) -> bool {
        let is_asked_for = |id: &ObjectId| self.searched.contains(id) || self.remembered.contains(id);
        let came = self.arrivals.as_ref();
        self.entries.contains(&difference.path)
            || came.is_some_and(|came| difference.comes_or_goes || came.contains(&difference.path))
            || difference.blobs.iter().any(is_asked_for)
            || (difference.comes_or_goes && self.is_about_place(&difference.path))
    }

    /// Returns whether adding or removing the file at `path` could change an answer: it may also add or remove its
    /// folders, and a name in each of those.
    fn is_about_place(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut folders = slashes.filter_map(|at| path.get(..at));
        self.file_names.contains(name)
            || self.listed.contains(&b""[..])
            || folders.any(|folder| self.entries.contains(folder) || self.listed.contains(folder))
    }
}

/// A tree that records the queries it answers.
pub(crate) struct AskedTree<'a> {
    tree: &'a dyn Tree,
    questions: RefCell<Questions>,
}

impl<'a> AskedTree<'a> {
    pub fn new(tree: &'a dyn Tree) -> AskedTree<'a> {
        AskedTree { tree, questions: RefCell::default() }
    }

    pub fn into_questions(self) -> Questions {
        self.questions.into_inner()
    }
}

impl Tree for AskedTree<'_> {
    fn entry(&self, path: &[u8]) -> Result<Option<TreeEntry>, TreeError> {
        self.questions.borrow_mut().entries.insert(path.to_vec());
        self.tree.entry(path)
    }

    // Not recorded: the id determines the content, so no tree can answer otherwise.
    fn blob(&self, id: ObjectId) -> Result<Cow<'_, [u8]>, TreeError> {
        self.tree.blob(id)
    }

    fn siblings(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        self.questions.borrow_mut().listed.insert(folder.to_vec());
        self.tree.siblings(folder)
    }

    fn find_blob(&self, id: ObjectId) -> Result<Vec<Vec<u8>>, TreeError> {
        self.questions.borrow_mut().searched.insert(id);
        self.tree.find_blob(id)
    }

    fn find_file_name(&self, file_name: &[u8]) -> Result<Vec<Vec<u8>>, TreeError> {
        self.questions.borrow_mut().file_names.insert(file_name.to_vec());
        self.tree.find_file_name(file_name)
    }

    fn remembered_blob(&self, id: ObjectId) -> Result<Option<Cow<'_, [u8]>>, TreeError> {
        self.questions.borrow_mut().remembered.insert(id);
        self.tree.remembered_blob(id)
    }

    fn arrivals(&self) -> Result<Rc<Arrivals>, TreeError> {
        let arrivals = self.tree.arrivals()?;
        let paths = arrivals.came.iter().map(|arrival| arrival.path.clone()).collect();
        self.questions.borrow_mut().arrivals = Some(paths);
        Ok(arrivals)
    }
}

/// Returns the differences between a tree with the changes `left` on top and the same tree with `right` on top.
pub(crate) fn differences(left: &[TreeChange], right: &[TreeChange]) -> Vec<Difference> {
    let at = |changes: &[TreeChange], path: &RepoPath| changes.iter().position(|change| change.path == *path);
    let of_left = left
        .iter()
        .filter_map(|change| difference(Some(change), at(right, &change.path).and_then(|at| right.get(at))));
    let only_right = right.iter().filter(|change| at(left, &change.path).is_none());
    of_left.chain(only_right.filter_map(|change| difference(None, Some(change)))).collect()
}

/// Contents need not be compared: the ids tell whether they are the same.
fn difference(left: Option<&TreeChange>, right: Option<&TreeChange>) -> Option<Difference> {
    let file = |change: Option<&TreeChange>| Some(change?.new.as_ref().map(|new| (new.mode, new.id)));
    let (old, new) = (file(left), file(right));
    let id = |file: Option<Option<(FileMode, ObjectId)>>| file.flatten().map_or(ObjectId::ZERO, |(_, id)| id);
    let stays = matches!((old, new), (Some(Some(_)), Some(Some(_))));
    let path = left.or(right)?.path.as_bytes().to_vec();
    (old != new).then(|| Difference { path, comes_or_goes: !stays, blobs: [id(old), id(new)] })
}

#[cfg(test)]
mod tests {
    use super::{AskedTree, Difference, Questions};
    use crate::model::memory_tree::MemoryTree;
    use crate::model::mode::Mode;
    use crate::model::object_id::ObjectId;
    use crate::model::tree::Tree;

    fn asked(ask: impl Fn(&dyn Tree)) -> Questions {
        let mut tree = MemoryTree::new();
        tree.put("a/b/c", Mode::File, b"c");
        let asked = AskedTree::new(&tree);
        ask(&asked);
        asked.into_questions()
    }

    fn changed(path: &str, comes_or_goes: bool) -> [Difference; 1] {
        let blobs = [ObjectId::of_blob(b"old"), ObjectId::of_blob(b"new")];
        [Difference { path: path.as_bytes().to_vec(), comes_or_goes, blobs }]
    }

    #[test]
    fn an_entry_depends_on_its_path_and_on_what_is_below() {
        let questions = asked(|tree| drop(tree.entry(b"a/b")));
        assert!(questions.may_differ(&changed("a/b", false)));
        assert!(questions.may_differ(&changed("a/b/new", true)));
        assert!(!questions.may_differ(&changed("a/b/c", false)));
        assert!(!questions.may_differ(&changed("a/bc", true)));
    }

    #[test]
    fn a_list_depends_on_what_comes_or_goes() {
        let questions = asked(|tree| drop(tree.siblings(b"a")));
        assert!(questions.may_differ(&changed("a/new", true)));
        assert!(questions.may_differ(&changed("a/deep/new", true)));
        assert!(!questions.may_differ(&changed("a/x", false)));
        assert!(!questions.may_differ(&changed("b/new", true)));
        let of_root = asked(|tree| drop(tree.siblings(b"")));
        assert!(of_root.may_differ(&changed("new", true)));
    }

    #[test]
    fn the_changes_since_the_pin_depend_on_every_change_of_the_folder() {
        let mut tree = MemoryTree::new();
        tree.put("came.c", Mode::File, b"c");
        tree.came_after(&MemoryTree::new());
        let asked = AskedTree::new(&tree);
        asked.arrivals().unwrap();
        let questions = asked.into_questions();
        assert!(questions.may_differ(&changed("far/away", true)));
        assert!(questions.may_differ(&changed("came.c", false)));
        assert!(!questions.may_differ(&changed("was.c", false)));
    }

    #[test]
    fn a_search_depends_on_the_whole_tree() {
        let by_name = asked(|tree| drop(tree.find_file_name(b"c")));
        assert!(by_name.may_differ(&changed("far/away/c", true)));
        assert!(!by_name.may_differ(&changed("far/away/c", false)));
        assert!(!by_name.may_differ(&changed("c/d", true)));
        let by_blob = asked(|tree| drop(tree.find_blob(ObjectId::of_blob(b"new"))));
        assert!(by_blob.may_differ(&changed("anywhere", false)));
        let other_blob = asked(|tree| drop(tree.find_blob(ObjectId::of_blob(b"other"))));
        assert!(!other_blob.may_differ(&changed("anywhere", true)));
        assert!(other_blob.may_differ_above(&changed("anywhere", true)));
        assert!(!other_blob.may_differ_above(&changed("anywhere", false)));
    }
}
