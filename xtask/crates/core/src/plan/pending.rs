//! An atomic change of several files and refs: what to write, what to remove, and the expected old content.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::config::name::Name;

/// A change that is decided and not finished yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// Description shown to the user; of an undo, that of the undone change.
    pub what: String,
    /// Whether it restores the state before that change.
    #[serde(default)]
    pub is_undo: bool,
    /// Every file of it.
    pub files: Vec<PendingFile>,
    /// Refs of edit repositories that move with the files.
    pub refs: Vec<PendingRef>,
    /// Variants whose new patch is written: the commit message prepared for `git commit` is withdrawn.
    #[serde(default)]
    pub offers_taken: Vec<Name>,
    /// Folders to remove afterwards, relative to `target/espalier/`.
    pub remove_folders: Vec<String>,
    /// Folders, relative to the root, in which every patch is one of `files`.
    pub exact_folders: Vec<String>,
}

/// One file. In an exact folder it may be unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingFile {
    /// Path relative to the root.
    pub path: String,
    /// sha256 of the old file; `None` when there was no file.
    pub old: Option<String>,
    /// sha256 of the new file, which is staged at the same path; `None` when the file is removed.
    pub new: Option<String>,
}

/// One ref of an edit repository; the commit that it will point to exists already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingRef {
    /// The variant that is edited there.
    pub variant: Name,
    /// The full name of the ref.
    pub name: String,
    /// The commit that it will point to.
    pub id: String,
    /// The commit that it pointed to before; `None` if there was no such ref.
    #[serde(default)]
    pub old: Option<String>,
}

/// Action for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It has its new content already.
    Done,
    /// It has its old content: write or remove it.
    Do,
    /// It has been changed by others in the meantime.
    Refuse,
}

impl Pending {
    /// Describes the change for messages.
    pub fn describe(&self) -> String {
        if self.is_undo { format!("the undo of {}", self.what) } else { self.what.clone() }
    }

    /// Returns the change that restores files and refs as they were before this one. A commit message that was offered
    /// and a folder that was removed do not come back: commits and recorded resolutions have their content.
    #[must_use]
    pub fn reversed(&self) -> Pending {
        let file = |file: &PendingFile| PendingFile {
            path: file.path.clone(),
            old: file.new.clone(),
            new: file.old.clone(),
        };
        let moved = |moved: &PendingRef| {
            let (id, old) = (moved.old.clone()?, Some(moved.id.clone()));
            Some(PendingRef { id, old, ..moved.clone() })
        };
        Pending {
            what: self.what.clone(),
            is_undo: !self.is_undo,
            files: self.files.iter().map(file).collect(),
            refs: self.refs.iter().filter_map(moved).collect(),
            offers_taken: Vec::new(),
            remove_folders: Vec::new(),
            exact_folders: self.exact_folders.clone(),
        }
    }

    /// The files whose content changes.
    pub fn changes(&self) -> impl Iterator<Item = &PendingFile> {
        self.files.iter().filter(|file| file.old != file.new)
    }

    /// Returns a path that would lead out of the project or to the root itself, if any.
    pub fn stray_path(&self) -> Option<&str> {
        let files = self.files.iter().map(|file| &file.path);
        let mut paths = files.chain(&self.remove_folders).chain(&self.exact_folders);
        let is_inside = |path: &str| {
            !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        };
        paths.find(|path| !is_inside(path)).map(String::as_str)
    }
}

impl PendingFile {
    /// Action when the file currently has the digest `found`.
    pub fn finish(&self, found: Option<&str>) -> Finish {
        if found == self.new.as_deref() {
            Finish::Done
        } else if found == self.old.as_deref() {
            Finish::Do
        } else {
            Finish::Refuse
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_wrote_are_not_overwritten() {
        let file = PendingFile { path: "a".into(), old: None, new: Some("11".into()) };
        assert_eq!(file.finish(None), Finish::Do);
        assert_eq!(file.finish(Some("11")), Finish::Done);
        assert_eq!(file.finish(Some("22")), Finish::Refuse);
    }

    #[test]
    fn the_reverse_of_the_reverse_is_the_change() {
        let name = Name::new("paged").unwrap();
        let moved = |old: Option<&str>| PendingRef {
            variant: name.clone(),
            name: "refs/a".into(),
            id: "22".into(),
            old: old.map(String::from),
        };
        let change = Pending {
            what: "the export of paged".into(),
            is_undo: false,
            files: vec![PendingFile { path: "a".into(), old: None, new: Some("11".into()) }],
            refs: vec![moved(Some("21"))],
            offers_taken: Vec::new(),
            remove_folders: Vec::new(),
            exact_folders: vec!["patches".into()],
        };
        let undo = change.reversed();
        assert_eq!((undo.files[0].old.as_deref(), undo.files[0].new.as_deref()), (Some("11"), None));
        assert_eq!((undo.refs[0].id.as_str(), undo.refs[0].old.as_deref()), ("21", Some("22")));
        assert_eq!(undo.describe(), "the undo of the export of paged");
        assert_eq!(undo.reversed(), change);
        // A ref that did not exist has no commit to return to.
        let made = Pending { refs: vec![moved(None)], ..change };
        assert!(made.reversed().refs.is_empty());
    }

    #[test]
    fn paths_that_lead_elsewhere_are_found() {
        let removing = |path: &str| Pending {
            what: String::new(),
            is_undo: false,
            files: Vec::new(),
            refs: Vec::new(),
            offers_taken: Vec::new(),
            remove_folders: vec![path.to_string()],
            exact_folders: Vec::new(),
        };
        assert_eq!(removing("rebase/paged").stray_path(), None);
        for path in ["../a", "/a", "a/../../b", "", "."] {
            assert_eq!(removing(path).stray_path(), Some(path));
        }
    }
}
