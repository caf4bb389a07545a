//! The staging area of a change: `pins.toml`, `espalier.lock` and the series, first as they are, then with the new
//! content.
//!
//! Until [`Stage::commit`] the project is unchanged, and the stage can be built and tested as if it were the project
//! (`Layout::staged`). Dropping a stage discards it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use espalier_series::sibling_after;

use super::inputs::{PatchFile, SeriesFiles, read_folder};
use super::{long_stage, pending, undo};
use crate::config::layout::Layout;
use crate::config::name::Name;
use crate::error::Result;
use crate::plan::pending::{Pending, PendingFile, PendingRef};
use crate::sys::machine::{disk, owned};
use crate::sys::work_trees::edit_repo::Marks;

/// Digests by path, relative to the root.
type Digests = BTreeMap<String, String>;

/// A change that is being prepared.
#[derive(Debug)]
pub struct Stage {
    layout: Layout,
    folder: PathBuf,
    /// Files as they were read; a file that matches neither this nor the new content was edited by a person, and
    /// stops the change.
    before: Digests,
    after: Digests,
    exact_folders: BTreeSet<String>,
    refs: Vec<PendingRef>,
    offers_taken: Vec<Name>,
    remove_folders: Vec<String>,
    /// Of the folder of a stage that outlives the run lock.
    _ownership: Option<long_stage::Ownership>,
}

impl Stage {
    /// Begins with `pins.toml` and the lock as they are. The stage ends with the run, which holds the run lock
    /// throughout.
    pub fn begin(layout: &Layout) -> Result<Stage> {
        Stage::begin_in(layout, layout.scratch().join("stage"))
    }

    /// As [`Stage::begin`], for a change that is tested before it is committed, while the run lock is free. Its folder
    /// is its own: it stays whatever other runs do, until it is dropped or its process ends.
    pub fn begin_long(layout: &Layout) -> Result<Stage> {
        let (folder, ownership) = long_stage::create(layout)?;
        let mut stage = Stage::begin_in(layout, folder)?;
        stage._ownership = Some(ownership);
        Ok(stage)
    }

    /// As [`Stage::begin`], for a change that is never committed: several can be tested at the same time.
    pub fn begin_trial(layout: &Layout) -> Result<Stage> {
        Stage::begin_in(layout, disk::scratch_folder(&layout.scratch(), "trial")?.keep())
    }

    fn begin_in(layout: &Layout, folder: PathBuf) -> Result<Stage> {
        owned::remove_folder(&folder)?;
        disk::create_folder(&folder)?;
        let mut stage = Stage {
            layout: layout.clone(),
            folder,
            before: Digests::new(),
            after: Digests::new(),
            exact_folders: BTreeSet::new(),
            refs: Vec::new(),
            offers_taken: Vec::new(),
            remove_folders: Vec::new(),
            _ownership: None,
        };
        for path in ["pins.toml", "espalier.lock"] {
            if let Some(bytes) = disk::read_if_there(&layout.root().join(path))? {
                stage.keep(path, &bytes)?;
            }
        }
        Ok(stage)
    }

    /// Adds the series in these folders unchanged, for a stage that is read as if it were the project.
    pub fn keep_series<'a>(&mut self, mut folders: impl Iterator<Item = &'a str>) -> Result<()> {
        folders.try_for_each(|folder| {
            disk::create_folder(&self.folder.join(folder))?;
            let files = read_folder(&self.layout, folder)?;
            files.iter().try_for_each(|file| self.keep(&file.file, &file.bytes))
        })
    }

    fn keep(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        self.before.insert(path.to_string(), disk::sha256(bytes));
        self.write(path, bytes)
    }

    /// Returns the layout of the project with the change.
    pub fn layout(&self) -> Layout {
        self.layout.staged(self.folder.clone())
    }

    /// Sets the new content of one file; `path` is relative to the root.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        if !self.before.contains_key(path)
            && !self.after.contains_key(path)
            && let Some(digest) = disk::digest_if_there(&self.layout.root().join(path))?
        {
            self.before.insert(path.to_string(), digest);
        }
        disk::write_atomically(&self.folder.join(path), bytes)?;
        self.after.insert(path.to_string(), disk::sha256(bytes));
        Ok(())
    }

    /// Sets all patches in `folder`. `read` are the patches from which the caller derived them. Siblings stay as they
    /// are, and get the new names of their patches; those of a patch that is gone go with it.
    pub fn replace_series(&mut self, folder: &str, read: &[PatchFile], new: &[PatchFile]) -> Result<()> {
        let siblings = SeriesFiles::of(read_folder(&self.layout, folder)?).siblings;
        let names =
            |files: &[PatchFile]| files.iter().map(|file| file.name().to_string()).collect::<Vec<_>>();
        let (old_names, new_names) = (names(read), names(new));
        let [old, now] =
            [&old_names, &new_names].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        let after = siblings.iter().filter_map(|sibling| {
            let name = sibling_after(sibling.name(), &old, &now)?;
            Some(PatchFile::new(format!("{folder}/{name}"), sibling.bytes.clone()))
        });
        let after: Vec<PatchFile> = new.iter().cloned().chain(after).collect();
        self.replace_folder(folder, &[read, siblings.as_slice()].concat(), &after)
    }

    /// Sets all patches and siblings in `folder`. `read` are those from which the caller derived them.
    pub fn replace_folder(&mut self, folder: &str, read: &[PatchFile], new: &[PatchFile]) -> Result<()> {
        let is_elsewhere = |path: &String, _: &mut String| !is_below(path, folder);
        self.before.retain(is_elsewhere);
        self.after.retain(is_elsewhere);
        let digest = |file: &PatchFile| (file.file.clone(), file.sha256.clone());
        self.before.extend(read.iter().map(digest));
        self.after.extend(new.iter().map(digest));
        owned::remove_folder(&self.folder.join(folder))?;
        disk::create_folder(&self.folder.join(folder))?;
        self.exact_folders.insert(folder.to_string());
        new.iter().try_for_each(|file| disk::write_atomically(&self.folder.join(&file.file), &file.bytes))
    }

    /// Moves the refs of an edit repository together with the files.
    pub fn set_marks(&mut self, variant: &Name, marks: &Marks) {
        let named = marks.refs().into_iter();
        self.refs.extend(named.map(|(name, id)| PendingRef {
            variant: variant.clone(),
            name,
            id: id.to_string(),
            old: None,
        }));
    }

    /// On commit, clears the message that `git commit` proposes in the edit repository.
    pub fn take_offer(&mut self, variant: &Name) {
        self.offers_taken.push(variant.clone());
    }

    /// On commit, removes a folder; `path` is relative to the folder of generated files.
    pub fn remove_folder(&mut self, path: String) {
        self.remove_folders.push(path);
    }

    /// Commits the change: all of it or nothing. The caller holds the run lock; `what` describes the change to the
    /// user if it is interrupted.
    ///
    /// # Errors
    ///
    /// Of kind `Conflict` when a file was changed since it was read; nothing has changed then.
    pub fn commit(self, what: String) -> Result<Pending> {
        let pending = self.pending(what);
        pending::commit(&self.layout, &self.folder, &pending)?;
        Ok(pending)
    }

    /// As [`Stage::commit`], as a part of the last change, for a file that is about the project as that change left it:
    /// one undo takes back both. If the project was changed since by other means, it is a change of its own.
    pub fn commit_with_last(self, what: String) -> Result<Pending> {
        let pending = self.pending(what);
        match undo::last_as_it_was_left(&self.layout)? {
            Some(last) => pending::commit_with(&self.layout, &self.folder, &pending, &last)?,
            None => pending::commit(&self.layout, &self.folder, &pending)?,
        }
        Ok(pending)
    }

    pub(super) fn pending(&self, what: String) -> Pending {
        let paths: BTreeSet<&String> = self.before.keys().chain(self.after.keys()).collect();
        let file = |path: &String| PendingFile {
            path: path.clone(),
            old: self.before.get(path).cloned(),
            new: self.after.get(path).cloned(),
        };
        let is_exact = |path: &str| self.exact_folders.iter().any(|folder| is_below(path, folder));
        let files = paths.into_iter().map(file).filter(|file| file.old != file.new || is_exact(&file.path));
        Pending {
            what,
            is_undo: false,
            files: files.collect(),
            refs: self.refs.clone(),
            offers_taken: self.offers_taken.clone(),
            remove_folders: self.remove_folders.clone(),
            exact_folders: self.exact_folders.iter().cloned().collect(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A later run sweeps what is left.
        let _ = owned::remove_folder(&self.folder);
    }
}

/// Whether `path` is a file in `folder`, at any depth.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::project::garbage;
    use crate::sys::project::run_lock::{self, Access};
    use crate::sys::project::testing::TestProject;
    use crate::ui::{Talk, Ui};

    impl TestProject {
        fn begin_long(&self, text: &str) -> Stage {
            let mut stage = Stage::begin_long(&self.layout).unwrap();
            stage.write("page", text.as_bytes()).unwrap();
            stage
        }

        /// Does what every command does that changes the project.
        fn take_locks(&self) {
            run_lock::take(&self.layout, &Ui::new(Talk::Quiet), Access::Change).unwrap();
        }

        fn page(&self) -> String {
            disk::read_text(&self.layout.root().join("page")).unwrap()
        }

        fn is_empty(&self) -> bool {
            disk::files_below(&self.layout.stages()).unwrap().is_empty()
                && disk::folders_in(&self.layout.stages()).is_empty()
        }
    }

    #[test]
    fn a_long_stage_outlasts_another_one_and_other_runs() {
        let project = TestProject::with(&["page=old"]);
        let stage = project.begin_long("new");
        drop(project.begin_long("refused"));
        project.take_locks();
        assert_eq!(garbage::borrower(&project.layout), Some(stage.folder.clone()));
        stage.commit("a test".to_string()).unwrap();
        assert_eq!((project.page(), project.is_empty()), ("new".to_string(), true));
    }

    #[test]
    fn of_two_long_stages_the_first_one_is_committed() {
        let project = TestProject::with(&["page=old"]);
        let (first, second) = (project.begin_long("first"), project.begin_long("second"));
        second.commit("the second".to_string()).unwrap();
        let error = first.commit("the first".to_string()).unwrap_err();
        assert!(error.to_string().contains("the first was changed meanwhile"), "{error}");
        assert_eq!((project.page(), project.is_empty()), ("second".to_string(), true));
    }

    /// A caller that replaces a series has its patches only: siblings follow, or go with their patch.
    #[test]
    fn siblings_follow_their_patches() {
        let project = TestProject::with(&["page=old"]);
        let file = |name: &str| PatchFile::new(format!("patches/{name}"), name.as_bytes().to_vec());
        let all = ["0001-a.patch", "0001-a@b1.patch", "0002-b.patch", "0002-b@b1.patch", "0002-b@b2.patch"];
        for patch in all.map(file) {
            disk::write_atomically(&project.layout.root().join(&patch.file), &patch.bytes).unwrap();
        }
        let mut stage = Stage::begin(&project.layout).unwrap();
        let read = ["0001-a.patch", "0002-b.patch"].map(file);
        stage.replace_series("patches", &read, &[file("0001-b.patch")]).unwrap();
        stage.commit("a test".to_string()).unwrap();
        let left = read_folder(&project.layout, "patches").unwrap();
        let names: Vec<&str> = left.iter().map(PatchFile::name).collect();
        assert_eq!(names, ["0001-b.patch", "0001-b@b1.patch", "0001-b@b2.patch"]);
        assert_eq!(left[1].bytes, b"0002-b@b1.patch");
    }

    /// A killed process leaves the folder and the lock file, which the system has released.
    #[test]
    fn a_stage_without_an_owner_is_swept() {
        let project = TestProject::with(&["page=old"]);
        let kept = project.begin_long("new");
        let stages = project.layout.stages();
        // The last two: by an earlier version, whose stage was this folder.
        for path in ["stage-killed/pins.toml", "stage-killed.lock", "pins.toml", "patches/paged/0001-a.patch"]
        {
            disk::write_atomically(&stages.join(path), b"left").unwrap();
        }
        project.take_locks();
        assert_eq!(disk::folders_in(&stages), std::slice::from_ref(&kept.folder));
        drop(kept);
        assert!(project.is_empty());
        assert_eq!(garbage::borrower(&project.layout), None);
    }
}
