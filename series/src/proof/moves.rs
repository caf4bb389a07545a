//! The files that consecutive patches change, with their paths before the first and after the last of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::patch::{Change, FilePatch, FileSide, Patch};
use crate::model::path::RepoPath;

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileMove {
    /// Its path before the first patch; `None` if it is created.
    pub before: Option<RepoPath>,
    /// Its path after the last patch; `None` if it is deleted.
    pub after: Option<RepoPath>,
}

/// Returns the files that `patches` change together.
pub(super) fn file_moves<'p>(patches: impl IntoIterator<Item = &'p Patch>) -> Vec<FileMove> {
    let mut walk = Walk::default();
    for patch in patches {
        walk.add(patch);
    }
    let present = walk.origins.into_iter().map(|(after, before)| FileMove { before, after: Some(after) });
    let gone = walk.gone.into_iter().map(|before| FileMove { before: Some(before), after: None });
    present.chain(gone).collect()
}

#[derive(Default)]
struct Walk {
    /// The changed files by their present path, each with its first path.
    origins: BTreeMap<RepoPath, Option<RepoPath>>,
    /// First paths of the deleted files.
    gone: BTreeSet<RepoPath>,
}

impl Walk {
    fn add(&mut self, patch: &Patch) {
        // The old sides of a patch are all from before it, so that two files can swap their names.
        let origins: Vec<Option<RepoPath>> = patch.files.iter().map(|file| self.origin_of(file)).collect();
        let leaves = |file: &&FilePatch| matches!(file.change, Change::Delete | Change::Rename);
        for old in patch.files.iter().filter(leaves).filter_map(|file| file.old.as_ref()) {
            self.origins.remove(&old.path);
        }
        for (file, origin) in patch.files.iter().zip(origins) {
            self.place(file, origin);
        }
    }

    fn origin_of(&self, file: &FilePatch) -> Option<RepoPath> {
        let path = &file.old.as_ref()?.path;
        match self.origins.get(path) {
            Some(origin) => origin.clone(),
            None => Some(path.clone()),
        }
    }

    fn place(&mut self, file: &FilePatch, origin: Option<RepoPath>) {
        let new = |side: &FileSide| side.path.clone();
        match (file.change, file.new.as_ref().map(new)) {
            // A file that is deleted and created again is the same file.
            (Change::Create | Change::Copy, Some(new)) => {
                let origin = self.gone.take(&new);
                self.origins.insert(new, origin);
            }
            (Change::Modify | Change::Rename, Some(new)) => {
                self.origins.insert(new, origin);
            }
            (Change::Delete, _) => self.gone.extend(origin),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::file_moves;
    use crate::model::patch::Patch;
    use crate::read::parse::parse;

    fn patch(diff: &str) -> Patch {
        let mail = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
                    From: A U Thor <author@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
                    Subject: [PATCH] a change\n\n---\n\n";
        parse("0001-a-change.patch", format!("{mail}{diff}").as_bytes()).unwrap()
    }

    fn rename(from: &str, to: &str) -> String {
        format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
    }

    fn shown(patches: &[Patch]) -> Vec<(String, String)> {
        let path = |path: &Option<crate::model::path::RepoPath>| {
            path.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        file_moves(patches).iter().map(|file| (path(&file.before), path(&file.after))).collect()
    }

    #[test]
    fn a_file_is_followed_from_patch_to_patch() {
        let patches = [patch(&rename("a", "b")), patch(&rename("b", "c"))];
        assert_eq!(shown(&patches), [("a".to_owned(), "c".to_owned())]);
    }

    #[test]
    fn a_mode_change_keeps_the_name() {
        let mode = patch("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n");
        assert_eq!(shown(&[mode]), [("x".to_owned(), "x".to_owned())]);
    }
}
