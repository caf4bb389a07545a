//! A change of several files and refs that happens as one: what is to be written, what goes, and what was there.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use super::name::Name;

/// A change that is decided and not finished yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// What a person is told that it is.
    pub what: String,
    /// Every file of it.
    pub files: Vec<PendingFile>,
    /// Refs of ours that move with the files.
    pub refs: Vec<PendingRef>,
    /// Variants whose new patch is written: what `git commit` was to offer for it is taken back.
    #[serde(default)]
    pub offers_taken: Vec<Name>,
    /// Folders under `target/espalier/` that are of no use afterwards, relative to it.
    pub remove_folders: Vec<String>,
    /// Folders, relative to the root, in which every patch is one of `files`.
    pub exact_folders: Vec<String>,
}

/// One file. In an exact folder it may be one that stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingFile {
    /// Path relative to the root.
    pub path: String,
    /// sha256 of what was there; nothing when nothing was.
    pub old: Option<String>,
    /// sha256 of what will be there, which lies in the stage at the same path; nothing when it goes.
    pub new: Option<String>,
}

/// One ref of an edit repository, whose commit is there already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingRef {
    /// The variant that is edited there.
    pub variant: Name,
    /// The whole name of the ref.
    pub name: String,
    /// The commit that it will name.
    pub id: String,
}

/// What to do about one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It is as it shall be.
    Done,
    /// It is as it was: write or remove it.
    Do,
    /// Somebody else wrote it meanwhile.
    Refuse,
}

impl Pending {
    /// The files that will be others than they are.
    pub fn changes(&self) -> impl Iterator<Item = &PendingFile> {
        self.files.iter().filter(|file| file.old != file.new)
    }

    /// A path that would lead out of the project, or to the root itself.
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
    /// What to do when the file has the digest `found` now.
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
    fn what_somebody_else_wrote_is_not_overwritten() {
        let file = PendingFile { path: "a".into(), old: None, new: Some("11".into()) };
        assert_eq!(file.finish(None), Finish::Do);
        assert_eq!(file.finish(Some("11")), Finish::Done);
        assert_eq!(file.finish(Some("22")), Finish::Refuse);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_found() {
        let removing = |path: &str| Pending {
            what: String::new(),
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
