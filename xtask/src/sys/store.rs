//! The one bare object store: it holds the pins. What a series makes of them stays in memory.

use std::path::{Path, PathBuf};

use git2::{ObjectType, Odb, Oid, Repository};

use super::disk;
use crate::error::{Error, Result};

/// The store, open.
pub struct Store {
    repo: Repository,
    path: PathBuf,
}

impl Store {
    /// Opens the store at `path`; makes an empty one when there is none.
    pub fn open(path: &Path) -> Result<Store> {
        match Repository::open_bare(path) {
            Ok(repo) => Ok(Store { repo, path: path.to_path_buf() }),
            Err(_) => Store::create(path),
        }
    }

    /// From now on every object that is written stays in memory and vanishes with this value.
    pub fn write_to_memory(&self) -> Result<()> {
        let odb = self.odb()?;
        // Above the loose and packed backends, so that it is the one that is written to.
        let added = odb.add_new_mempack_backend(1000);
        added.map(drop).map_err(|error| Error::surroundings(error.message().to_string()))
    }

    /// A half-made store of a killed run has no refs worth keeping: `init` completes it.
    fn create(path: &Path) -> Result<Store> {
        disk::create_folder(path)?;
        let repo = Repository::init_bare(path).map_err(|error| {
            Error::surroundings(format!("could not make the object store `{}`", path.display()))
                .detail(error.message().to_string())
                .hint(format!("rm -rf {}", path.display()))
        })?;
        Ok(Store { repo, path: path.to_path_buf() })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The objects.
    pub fn odb(&self) -> Result<Odb<'_>> {
        self.repo.odb().map_err(|error| Error::surroundings(error.message().to_string()))
    }

    /// Whether the tree `id` is here, in memory or on disk.
    pub fn has_tree(&self, id: Oid) -> bool {
        self.repo.find_tree(id).is_ok()
    }

    /// The content of a blob.
    pub fn blob(&self, id: Oid) -> Result<Vec<u8>> {
        let blob = self.repo.find_blob(id).map_err(|error| damaged(id, &error))?;
        Ok(blob.content().to_vec())
    }

    /// Whether the pinned tree is here, whole: it is marked only after a checked fetch.
    pub fn has_pin(&self, tree: Oid) -> bool {
        let marked = self.repo.find_reference(&pin_ref(tree)).ok().and_then(|mark| mark.target());
        marked.and_then(|commit| self.repo.find_commit(commit).ok()).is_some_and(|c| c.tree_id() == tree)
    }

    /// Takes over the packs of a checked fetch and marks `tree` as here.
    pub fn adopt(&self, quarantine: &Path, tree: Oid) -> Result<()> {
        self.move_packs(&quarantine.join("objects/pack"))?;
        self.merge_shallow(&quarantine.join("shallow"))?;
        self.odb()?.refresh().map_err(|error| damaged(tree, &error))?;
        let base = self.commit(tree, None, &format!("The pinned tree\n\nTree: {tree}\n"))?;
        self.set_ref(&pin_ref(tree), base)
    }

    /// In git's own order: a pack counts only once its index is there.
    fn move_packs(&self, from: &Path) -> Result<()> {
        let to = self.path.join("objects/pack");
        disk::create_folder(&to)?;
        let mut files = disk::files_below(from)?;
        files.sort_by_key(|file| file.extension().is_some_and(|extension| extension == "idx"));
        files.iter().try_for_each(|file| disk::rename(&from.join(file), &to.join(file)))
    }

    /// Commits whose parents were left out on purpose; git reports them as damage otherwise.
    fn merge_shallow(&self, from: &Path) -> Result<()> {
        let Some(new) = disk::read_if_there(from)? else { return Ok(()) };
        let path = self.path.join("shallow");
        let old = disk::read_if_there(&path)?.unwrap_or_default();
        let mut lines: Vec<&[u8]> = [&old, &new].iter().flat_map(|text| text.split(|b| *b == b'\n')).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort_unstable();
        lines.dedup();
        let mut text = lines.join(&b'\n');
        text.push(b'\n');
        disk::write_atomically(&path, &text)
    }

    /// The commit of the pinned tree.
    pub fn pin_commit(&self, tree: Oid) -> Result<Oid> {
        let found = self.repo.find_reference(&pin_ref(tree)).ok().and_then(|mark| mark.target());
        found.ok_or_else(|| {
            Error::surroundings(format!("the pinned tree {tree} is not in the store"))
                .hint("cargo xtask fetch")
        })
    }

    /// A commit with a fixed author and date, so that its id repeats.
    pub fn commit(&self, tree: Oid, parent: Option<Oid>, message: &str) -> Result<Oid> {
        let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
        let who = format!("Espalier <espalier@espalier.invalid> {FIXED_TIME} +0000");
        let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}");
        let odb = self.odb()?;
        odb.write(ObjectType::Commit, text.as_bytes()).map_err(|error| write_failed(&error))
    }

    /// Every file of `tree` as (path, mode, blob), sorted by path as git sorts.
    pub fn files(&self, tree: Oid) -> Result<Vec<(Vec<u8>, u32, Oid)>> {
        let mut index = git2::Index::new().map_err(|error| damaged(tree, &error))?;
        let tree_object = self.repo.find_tree(tree).map_err(|error| damaged(tree, &error))?;
        index.read_tree(&tree_object).map_err(|error| damaged(tree, &error))?;
        Ok(index.iter().map(|entry| (entry.path.clone(), entry.mode, entry.id)).collect())
    }

    /// Tags `commit`; for made-up upstreams.
    pub fn set_tag(&self, tag: &str, commit: Oid) -> Result<()> {
        self.set_ref(&format!("refs/tags/{tag}"), commit)
    }

    fn set_ref(&self, name: &str, commit: Oid) -> Result<()> {
        self.repo
            .reference(name, commit, true, "espalier")
            .map(drop)
            .map_err(|error| write_failed(&error))
    }
}

/// The first second of the year 2000; any fixed moment would do.
const FIXED_TIME: i64 = 946_684_800;

fn pin_ref(tree: Oid) -> String {
    format!("refs/espalier/pins/{tree}")
}

fn damaged(id: Oid, error: &git2::Error) -> Error {
    Error::surroundings(format!("the object {id} cannot be read from the store"))
        .detail(error.message().to_string())
        .hint("rm -rf target/espalier/store.git    # it is fetched again")
}

/// The error for an object or ref that could not be written.
pub fn write_failed(error: &git2::Error) -> Error {
    let failed = Error::surroundings("could not write to the object store").detail(error.message().to_string());
    if error.message().contains("No space left") {
        return failed.hint("free some disk space, then run the same command again");
    }
    failed
}
