//! Files and parts of files that are in conflict, and so may differ from the automatic result.

use std::collections::BTreeMap;

use espalier_series::{ConflictReason, FileConflict, Mode, RepoPath};

use super::stop::{Stop, versions};

/// Files and parts of files that a person may change.
pub(super) struct HandedOver<'s> {
    /// Files of which only the lines between markers are in conflict.
    pub(super) texts: BTreeMap<&'s [u8], &'s FileConflict>,
    /// Files that are in conflict as a whole.
    pub(super) files: BTreeMap<&'s [u8], WholeFile>,
    /// Candidates for the new path of files that are gone, which may change where the hunks of the patch land; with the
    /// conflicts about those files.
    pub(super) candidates: BTreeMap<&'s [u8], Vec<&'s FileConflict>>,
    /// Paths of which at least one has to have a file.
    pub(super) either: Vec<Vec<&'s RepoPath>>,
}

/// A file in conflict as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct WholeFile {
    /// Whether it may be deleted.
    pub(super) may_go: bool,
    /// The modes of its versions; any, if there are none.
    pub(super) modes: Vec<Mode>,
}

impl<'s> HandedOver<'s> {
    pub(super) fn of(stop: &'s Stop) -> HandedOver<'s> {
        let mut all = HandedOver {
            texts: BTreeMap::new(),
            files: BTreeMap::new(),
            candidates: BTreeMap::new(),
            either: Vec::new(),
        };
        for conflict in stop.replayed.conflicts() {
            match conflict.hunks.is_empty() {
                true => all.add_whole(conflict),
                false => drop(all.texts.insert(conflict.path.as_bytes(), conflict)),
            }
        }
        if stop.may_edit {
            all.texts.clear();
            let versions = stop.replayed.files.iter().flat_map(|file| [&file.before, &file.after]);
            let paths = versions.flatten().map(|version| &version.path);
            let in_conflict = stop.replayed.conflicts().map(|conflict| &conflict.path);
            let of_patch = stop.sibling.iter().flat_map(|sibling| &sibling.paths);
            for path in paths.chain(in_conflict).chain(of_patch) {
                all.files.insert(path.as_bytes(), WholeFile { may_go: true, modes: Vec::new() });
                all.candidates.remove(path.as_bytes());
            }
        }
        // A file that is in conflict as a whole itself may change anywhere.
        let whole = stop.replayed.conflicts().filter(|conflict| conflict.hunks.is_empty());
        for version in whole.flat_map(versions).flatten() {
            all.candidates.remove(version.path.as_bytes());
        }
        all
    }

    /// Adds a conflict without markers: all of its paths.
    fn add_whole(&mut self, conflict: &'s FileConflict) {
        let FileConflict { path, reason, base, ours, theirs, .. } = conflict;
        let versions = || [base, ours, theirs].into_iter().flatten();
        if let ConflictReason::FileGone { candidates } = reason {
            for candidate in candidates {
                self.candidates.entry(candidate.path.as_bytes()).or_default().push(conflict);
            }
        }
        let modes: Vec<Mode> = versions().map(|version| version.mode).collect();
        let mut add = |path: &'s [u8], may_go: bool| {
            self.files.insert(path, WholeFile { may_go, modes: modes.clone() });
        };
        let is_lost_without = match reason {
            ConflictReason::Binary | ConflictReason::FileExists => true,
            ConflictReason::FileGone { candidates } => {
                // The change may belong there; the file itself stays.
                candidates.iter().for_each(|candidate| add(candidate.path.as_bytes(), false));
                false
            }
            _ => false,
        };
        // The paths in the versions: of a renamed file, the old one too.
        versions().for_each(|version| add(version.path.as_bytes(), true));
        add(path.as_bytes(), !is_lost_without);
        let places = match reason {
            ConflictReason::FolderMoved { from, to } => vec![from, to],
            ConflictReason::FolderLeft { to } => vec![path, to],
            ConflictReason::RenamedTwice { from, by_patch, by_upstream } => vec![from, by_patch, by_upstream],
            _ => return,
        };
        places.iter().for_each(|path| add(path.as_bytes(), true));
        self.either.push(places);
    }
}
