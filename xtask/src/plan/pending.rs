//! A change of several files that happens as one: what is to be written, what goes, and what was there.

use serde::{Deserialize, Serialize};

/// The marker of a change that is decided and not finished yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// What a person is told that it is.
    pub what: String,
    /// Every file of it.
    pub files: Vec<PendingFile>,
    /// Folders under `target/espalier/` that are of no use afterwards, relative to the root.
    pub remove_folders: Vec<String>,
}

/// One file.
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
}
