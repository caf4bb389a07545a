//! The one bare object store: it holds the pins. Objects that a series creates from them stay in memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use espalier_series::{ObjectId, ObjectKind};
use git2::{ErrorClass, Odb, Repository, RepositoryOpenFlags};

use super::FETCH_ANEW;
use super::ids::{object_id, object_type, oid};
use super::tree_object;
use crate::error::{Error, Result};
use crate::sys::machine::disk;
use crate::sys::machine::owned;

/// Ref of the fetched commit in the quarantine repository.
pub(in crate::sys) const INCOMING: &str = "refs/espalier/incoming";

/// The open store.
pub struct Store {
    repo: Repository,
    path: PathBuf,
    /// Objects that this run created and that exist nowhere else.
    made: RefCell<HashMap<ObjectId, Arc<Vec<u8>>>>,
}

/// The bytes of an object, shared.
pub type Bytes = Arc<Vec<u8>>;

impl Store {
    /// Opens the store at `path`; creates an empty one if there is none.
    pub fn open(path: &Path) -> Result<Store> {
        // Packs are verified completely when they are received, zlib detects corruption, and every patched blob is
        // compared with the id that its patch states: hashing each blob again on read would double the time of an
        // apply.
        git2::opts::strict_hash_verification(false);
        match Repository::open_bare(path) {
            Ok(repo) => Ok(Store::new(repo, path)),
            Err(_) => Store::create(path),
        }
    }

    /// A half-created store of a killed run has no refs worth keeping: `init` completes it.
    fn create(path: &Path) -> Result<Store> {
        disk::create_folder(path)?;
        let repo = Repository::init_bare(path).map_err(|error| match error.class() {
            _ if is_disk_full(&error) => write_failed(&error),
            // The store is new, so the broken configuration is the user's.
            ErrorClass::Config => Error::environment("git's configuration cannot be read")
                .detail(error.message().to_string())
                .hint("fix the file named by: git config --list --show-origin"),
            _ => Error::environment(format!("could not make the object store `{}`", path.display()))
                .detail(error.message().to_string())
                .hint(format!("rm -rf {}", path.display())),
        })?;
        Ok(Store::new(repo, path))
    }

    fn new(repo: Repository, path: &Path) -> Store {
        Store { repo, path: path.to_path_buf(), made: RefCell::default() }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the repository, for what only libgit2 reads well: history.
    pub(in crate::sys) fn repository(&self) -> &Repository {
        &self.repo
    }

    /// Opens the repository again for a walk: libgit2 reads the list of commits whose parents were left out only on
    /// open, and never in `open_bare`. Without the list a walk would continue past a pin that came without its
    /// parents, into missing objects.
    pub(in crate::sys) fn opened_for_walking(&self) -> Result<Repository> {
        let flags = RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_SEARCH;
        let opened = Repository::open_ext(&self.path, flags, std::iter::empty::<&Path>());
        opened.map_err(|error| Error::environment(error.message().to_string()))
    }

    /// Returns the object database.
    fn odb(&self) -> Result<Odb<'_>> {
        self.repo.odb().map_err(|error| Error::environment(error.message().to_string()))
    }

    /// Whether the object `id` exists, in memory or on disk.
    pub fn has(&self, id: ObjectId) -> bool {
        self.made.borrow().contains_key(&id) || self.odb().is_ok_and(|odb| odb.exists(oid(id)))
    }

    /// Returns the only object on disk whose id begins with `short`; `None` if there is none, or more than one.
    pub fn find_short(&self, short: &str) -> Option<ObjectId> {
        let prefix = git2::Oid::from_str(short).ok()?;
        self.odb().ok()?.exists_prefix(prefix, short.len()).ok().map(object_id)
    }

    /// Reads the bytes of the object `id`.
    pub fn read(&self, id: ObjectId) -> Result<Bytes> {
        if let Some(bytes) = self.made.borrow().get(&id) {
            return Ok(Arc::clone(bytes));
        }
        let odb = self.odb()?;
        let object = odb.read(oid(id)).map_err(|error| damaged(id, &error))?;
        Ok(Arc::new(object.data().to_vec()))
    }

    /// Keeps an object in memory for this run and returns its id.
    pub fn make(&self, kind: ObjectKind, bytes: Vec<u8>) -> ObjectId {
        let id = ObjectId::of(kind, &bytes);
        self.keep(id, Arc::new(bytes));
        id
    }

    /// Keeps an object whose id is already known.
    pub fn keep(&self, id: ObjectId, bytes: Bytes) {
        self.made.borrow_mut().insert(id, bytes);
    }

    /// Returns the bytes of an object that this run created and that exists nowhere else.
    pub(in crate::sys) fn made_object(&self, id: ObjectId) -> Option<Bytes> {
        self.made.borrow().get(&id).map(Arc::clone)
    }

    /// Also reads from the object folder of another repository, as long as this store is open.
    pub fn read_also(&self, objects: &Path) -> Result<()> {
        let path = objects.display().to_string();
        self.odb()?.add_disk_alternate(&path).map_err(|error| {
            Error::environment(format!("could not read the objects in `{path}`"))
                .detail(error.message().to_string())
        })
    }

    /// Writes an object to disk.
    pub fn write(&self, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
        self.odb()?.write(object_type(kind), bytes).map_err(|error| write_failed(&error)).map(object_id)
    }

    /// Whether the pinned tree is here completely: it is marked only after a verified fetch.
    pub fn has_pin(&self, tree: ObjectId) -> bool {
        let commit = self.marked(tree).and_then(|commit| self.repo.find_commit(oid(commit)).ok());
        commit.is_some_and(|commit| commit.tree_id() == oid(tree))
    }

    /// Returns the commit that the mark of `tree` names.
    fn marked(&self, tree: ObjectId) -> Option<ObjectId> {
        self.repo.find_reference(&pin_ref(tree)).ok()?.target().map(object_id)
    }

    /// Moves the packs of a verified fetch into the store and marks `tree` as present; `commit` is the fetched
    /// commit.
    pub fn adopt(&self, quarantine: &Path, commit: ObjectId, tree: ObjectId) -> Result<()> {
        self.move_packs(&quarantine.join("objects/pack"))?;
        self.merge_shallow(&quarantine.join("shallow"))?;
        self.odb()?.refresh().map_err(|error| damaged(tree, &error))?;
        self.mark_pin(commit, tree)
    }

    /// Returns the commit that a source has for the pinned tree: upstream's own, or one that a mirror made of it.
    pub fn fetched_pin(&self, tree: ObjectId) -> Option<ObjectId> {
        self.repo.refname_to_id(&pin_commit_ref(tree)).ok().map(object_id)
    }

    /// Marks the tree of a completely fetched commit as one that can be pinned.
    pub fn mark_pin(&self, commit: ObjectId, tree: ObjectId) -> Result<()> {
        let text = commit_text(tree, None, &format!("The pinned tree\n\nTree: {tree}\n"));
        let base = self.write(ObjectKind::Commit, text.as_bytes())?;
        // A move to the pin itself knows only the mark.
        if commit != base {
            self.set_ref(&pin_commit_ref(tree), commit)?;
        }
        self.set_ref(&pin_ref(tree), base)
    }

    /// Moves the packs of a fetched commit into the store and returns the commit.
    pub fn adopt_commit(&self, quarantine: &Path) -> Result<ObjectId> {
        // Git silently refuses a repository that is itself shallow.
        let commit = fetched_commit(quarantine).map_err(|_| {
            Error::environment("it sent nothing; if it is a shallow clone: `git fetch --unshallow` there")
        })?;
        self.move_packs(&quarantine.join("objects/pack"))?;
        self.merge_shallow(&quarantine.join("shallow"))?;
        self.odb()?.refresh().map_err(|error| damaged(commit, &error))?;
        Ok(commit)
    }

    /// Remembers a commit under `name`.
    pub fn remember(&self, name: &str, commit: ObjectId) -> Result<()> {
        self.set_ref(&upstream_ref(name), commit)
    }

    /// The commit that was remembered under `name`.
    pub fn remembered(&self, name: &str) -> Option<ObjectId> {
        self.repo.refname_to_id(&upstream_ref(name)).ok().map(object_id)
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId> {
        self.repo
            .find_commit(oid(commit))
            .map(|commit| commit.tree_id())
            .map_err(|error| damaged(commit, &error))
            .map(object_id)
    }

    /// Moves packs before their indices, as git does: a pack counts only once its index exists.
    fn move_packs(&self, from: &Path) -> Result<()> {
        let to = self.path.join("objects/pack");
        disk::create_folder(&to)?;
        let mut files = disk::files_below(from)?;
        files.sort_by_key(|file| file.extension().is_some_and(|extension| extension == "idx"));
        files.iter().try_for_each(|file| owned::rename(&from.join(file), &to.join(file)))
    }

    /// Merges the list of commits whose parents were left out on purpose; without it git reports them as corrupt. A
    /// commit that was once fetched alone may since have been fetched with its history: its parents now exist.
    fn merge_shallow(&self, from: &Path) -> Result<()> {
        let new = disk::read_if_there(from)?.unwrap_or_default();
        let path = self.path.join("shallow");
        let old = disk::read_if_there(&path)?.unwrap_or_default();
        let mut lines: Vec<&[u8]> =
            [&old, &new].iter().flat_map(|text| text.split(|b| *b == b'\n')).collect();
        lines.retain(|line| !line.is_empty() && self.lacks_a_parent(line));
        lines.sort_unstable();
        lines.dedup();
        if lines.is_empty() {
            return disk::remove_file(&path);
        }
        let mut text = lines.join(&b'\n');
        text.push(b'\n');
        disk::write_atomically(&path, &text)
    }

    /// Whether a parent that the commit itself names is missing. Parsed from the raw bytes: libgit2 hides such
    /// parents.
    fn lacks_a_parent(&self, commit: &[u8]) -> bool {
        let id = std::str::from_utf8(commit).ok().and_then(|text| text.parse::<ObjectId>().ok());
        let Some(text) = id.and_then(|id| self.read(id).ok()) else { return true };
        let parents = text.split(|byte| *byte == b'\n').map_while(|line| match line {
            [] => None,
            line => Some(line.strip_prefix(b"parent ")),
        });
        let mut parents = parents.flatten().filter_map(|id| std::str::from_utf8(id).ok());
        parents.any(|id| !id.parse::<ObjectId>().is_ok_and(|id| self.has(id)))
    }

    /// Returns the commit of the pinned tree.
    pub fn pin_commit(&self, tree: ObjectId) -> Result<ObjectId> {
        self.marked(tree).ok_or_else(|| {
            Error::environment(format!("the pinned tree {tree} is not in the store"))
                .hint("cargo xtask fetch")
        })
    }

    /// Writes a tree that was created in memory, with the created trees and blobs below it, to disk.
    pub fn write_tree(&self, tree: ObjectId) -> Result<()> {
        self.write_tree_to(tree, self)
    }

    /// As [`Store::write_tree`], for a store that also reads other repositories: libgit2 does not write objects that
    /// one of them has.
    pub fn write_tree_here(&self, tree: ObjectId) -> Result<()> {
        match self.made.borrow().contains_key(&tree) {
            true => self.write_tree_to(tree, &Store::open(&self.path)?),
            false => Ok(()),
        }
    }

    /// As [`Store::write_tree`], into the store `to`.
    pub fn write_tree_to(&self, tree: ObjectId, to: &Store) -> Result<()> {
        let made = self.made.borrow().get(&tree).map(Arc::clone);
        let Some(text) = made else { return Ok(()) };
        for (_, entry) in tree_object::parse(tree, &text)? {
            if entry.mode == tree_object::FOLDER {
                self.write_tree_to(entry.id, to)?;
            } else if let Some(content) = self.made.borrow().get(&entry.id) {
                to.write(ObjectKind::Blob, content)?;
            }
        }
        to.write(ObjectKind::Tree, &text).map(drop)
    }

    /// Returns every file of `tree` as (path, mode, blob), folders in git's order.
    pub fn files(&self, tree: ObjectId) -> Result<Vec<(Vec<u8>, u32, ObjectId)>> {
        let mut files = Vec::new();
        self.collect_files(tree, &[], &mut files)?;
        Ok(files)
    }

    fn collect_files(
        &self,
        tree: ObjectId,
        folder: &[u8],
        files: &mut Vec<(Vec<u8>, u32, ObjectId)>,
    ) -> Result<()> {
        for (name, entry) in tree_object::parse(tree, &self.read(tree)?)? {
            let path = tree_object::join(folder, &name);
            if entry.mode == tree_object::FOLDER {
                self.collect_files(entry.id, &path, files)?;
            } else {
                files.push((path, entry.mode, entry.id));
            }
        }
        Ok(())
    }

    /// Tags `commit`; for synthetic upstreams in tests.
    pub fn set_tag(&self, tag: &str, commit: ObjectId) -> Result<()> {
        self.set_ref(&format!("refs/tags/{tag}"), commit)
    }

    fn set_ref(&self, name: &str, commit: ObjectId) -> Result<()> {
        self.repo
            .reference(name, oid(commit), true, "espalier")
            .map(drop)
            .map_err(|error| write_failed(&error))
    }
}

/// The first second of the year 2000; any fixed moment would do.
const FIXED_TIME: i64 = 946_684_800;

/// Returns the text of a commit with a fixed author and date, so that its id is reproducible.
pub fn commit_text(tree: ObjectId, parent: Option<ObjectId>, message: &str) -> String {
    let who = format!("Espalier <espalier@espalier.invalid> {FIXED_TIME} +0000");
    commit_text_by(&who, &tree.to_string(), parent, message)
}

/// As [`commit_text`], by `who` in git's format of an author. The committer is the author too: machine and time must
/// not affect the id.
pub fn commit_text_by(who: &str, tree: &str, parent: Option<ObjectId>, message: &str) -> String {
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}")
}

fn upstream_ref(name: &str) -> String {
    format!("refs/espalier/upstream/{name}")
}

fn fetched_commit(quarantine: &Path) -> std::result::Result<ObjectId, git2::Error> {
    let repo = Repository::open_bare(quarantine)?;
    Ok(object_id(repo.find_reference(INCOMING)?.peel_to_commit()?.id()))
}

fn pin_commit_ref(tree: ObjectId) -> String {
    format!("refs/espalier/pin-commits/{tree}")
}

fn pin_ref(tree: ObjectId) -> String {
    format!("refs/espalier/pins/{tree}")
}

fn damaged(id: ObjectId, error: &git2::Error) -> Error {
    Error::environment(format!("the object {id} cannot be read from the store"))
        .detail(error.message().to_string())
        .hint(FETCH_ANEW)
}

fn is_disk_full(error: &git2::Error) -> bool {
    error.message().contains("No space left")
}

/// Returns the error for an object or ref that could not be written.
pub fn write_failed(error: &git2::Error) -> Error {
    let failed =
        Error::environment("could not write to the object store").detail(error.message().to_string());
    if is_disk_full(error) {
        return failed.hint("free some disk space, then run the same command again");
    }
    failed
}
