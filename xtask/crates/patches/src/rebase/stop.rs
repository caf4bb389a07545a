//! A patch at which a rebase stops.

use espalier_series::{FileConflict, Mode, ObjectId, Replay, Replayed, RepoPath, Version};

use super::ahead::Ahead;
use crate::report::conflict::{ConflictPackage, PackagedSibling};

/// A patch with conflicts, or one to edit, and everything needed to show it.
pub struct Stop {
    pub replayed: Replayed,
    /// The commit that it was replayed on.
    pub head: ObjectId,
    /// The automatic result: the tree with the patch's files that had no conflict.
    pub tree: ObjectId,
    /// Whether the user asked to edit the patch here.
    pub may_edit: bool,
    /// Its description; `None` when a stop is only looked at again.
    pub package: Option<ConflictPackage>,
    /// The rest of its series; `None` if it was not looked at.
    pub ahead: Option<Ahead>,
    /// Blobs that the conflicts refer to, by id.
    pub blobs: Vec<(ObjectId, Vec<u8>)>,
    /// The sibling of the patch, if the work starts from it.
    pub sibling: Option<StopSibling>,
}

/// The sibling from which the work on a patch starts.
pub struct StopSibling {
    /// Its description, with the change that the patch has got since.
    pub packaged: PackagedSibling,
    /// The tree with the sibling, before that change; `None` if the sibling itself is merged, with conflicts.
    pub tree: Option<ObjectId>,
    /// The paths of the patch, which may be edited whether or not the sibling has them.
    pub paths: Vec<RepoPath>,
}

impl Stop {
    /// Creates the stop of a patch at `head`; `tree` has its other files.
    pub fn new(
        replayed: Replayed,
        replay: &Replay<'_>,
        (head, tree): (ObjectId, ObjectId),
        may_edit: bool,
    ) -> Stop {
        let mut blobs = Vec::new();
        for version in replayed.conflicts().flat_map(versions).flatten() {
            if let Ok(content) = replay.blob(version.id) {
                blobs.push((version.id, content.into_owned()));
            }
        }
        Stop { replayed, head, tree, may_edit, package: None, ahead: None, blobs, sibling: None }
    }

    /// Returns the texts that were merged in the files with conflicts.
    pub fn merged_texts(&self) -> Vec<&[u8]> {
        self.blobs.iter().map(|(_, text)| text.as_slice()).collect()
    }

    /// Returns the text of a version of a file with a conflict.
    pub fn text_of(&self, version: &Version) -> Option<&[u8]> {
        let found = self.blobs.iter().find(|(id, _)| *id == version.id);
        found.map(|(_, text)| text.as_slice())
    }
}

/// Returns the mode of a merged file: the patch's, unless upstream changed it.
pub fn merged_mode(conflict: &FileConflict) -> Option<Mode> {
    let [base, ours, theirs] = versions(conflict).map(|version| version.map(|version| version.mode));
    if ours == base { theirs.or(ours) } else { ours.or(theirs) }
}

/// Base, ours, theirs.
pub fn versions(conflict: &FileConflict) -> [Option<&Version>; 3] {
    [conflict.base.as_ref(), conflict.ours.as_ref(), conflict.theirs.as_ref()]
}
