//! Detection of files that upstream added to a folder that a patch moves away.

use std::collections::{BTreeMap, HashSet};

use super::applied_series::AppliedSeries;
use crate::apply::collision::leaving_paths;
use crate::judge::replayed::{ConflictReason, FileConflict, MergeKind, ReplayedFile, Version};
use crate::model::mode::Mode;
use crate::model::patch::{Change, FileSide, Patch};
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};

/// Returns a conflict for each file that was added since the pin to a folder that `patch` moves entirely: like git, it
/// assumes that the file may belong to the folder's new place. None if the folder stays for another reason.
pub(crate) fn left_behind(
    patch: &Patch,
    applied: &AppliedSeries<'_>,
    new: &dyn Tree,
) -> Result<Vec<ReplayedFile>, TreeError> {
    let mut found = BTreeMap::new();
    for (from, to) in moved_folders(patch) {
        let mut search = Search { leaving: leaving_paths(patch), applied, new, came: Vec::new() };
        if applied.pin.entry(from)?.is_none() || !search.only_arrivals_in(from)? {
            continue;
        }
        let there =
            |path: &[u8]| RepoPath::new(&[to, path.get(from.len()..).unwrap_or_default()].concat()).ok();
        let came = search.came.into_iter();
        found.extend(came.filter_map(|ours| Some((ours.path.clone(), (there(ours.path.as_bytes())?, ours)))));
    }
    Ok(found.into_values().map(|(to, ours)| conflict(ours, to)).collect())
}

/// Returns each folder out of which files are moved, the outer ones first, and the folder that most of them are moved
/// to.
fn moved_folders(patch: &Patch) -> BTreeMap<&[u8], &[u8]> {
    let mut votes: BTreeMap<&[u8], BTreeMap<&[u8], usize>> = BTreeMap::new();
    for file in patch.files.iter().filter(|file| file.change == Change::Rename) {
        if let (Some(from), Some(to)) = (folder_of(file.old.as_ref()), folder_of(file.new.as_ref()))
            && from != to
        {
            *votes.entry(from).or_default().entry(to).or_default() += 1;
        }
    }
    let most =
        votes.into_iter().map(|(from, places)| (from, places.into_iter().max_by_key(|(_, files)| *files)));
    most.filter_map(|(from, place)| Some((from, place?.0))).collect()
}

fn folder_of(side: Option<&FileSide>) -> Option<&[u8]> {
    side?.path.folders().last()
}

struct Search<'s, 'o> {
    leaving: HashSet<&'s [u8]>,
    applied: &'s AppliedSeries<'o>,
    new: &'s dyn Tree,
    came: Vec<Version>,
}

impl Search<'_, '_> {
    /// Returns whether all files that do not leave `folder` were added to it upstream, collecting them in `came`.
    fn only_arrivals_in(&mut self, folder: &[u8]) -> Result<bool, TreeError> {
        for name in self.new.siblings(folder)? {
            let path = [folder, b"/", &name].concat();
            let Some(entry) = self.new.entry(&path)?.filter(|_| !self.leaving.contains(path.as_slice()))
            else {
                continue;
            };
            let goes_on = match entry.mode {
                Mode::Folder => self.only_arrivals_in(&path)?,
                _ => self.applied.pin.entry(&path)?.is_none() && self.is_arrival(&path)?,
            };
            let Some(path) = RepoPath::new(&path).ok().filter(|_| goes_on) else { return Ok(false) };
            if entry.mode != Mode::Folder {
                self.came.push(Version { path, mode: entry.mode, id: entry.id });
            }
        }
        Ok(true)
    }

    fn is_arrival(&self, path: &[u8]) -> Result<bool, TreeError> {
        Ok(self.new.arrivals()?.came.iter().any(|arrival| arrival.path == path))
    }
}

fn conflict(ours: Version, to: RepoPath) -> ReplayedFile {
    let reason = ConflictReason::FolderLeft { to };
    let (path, before) = (ours.path.clone(), Some(ours.clone()));
    let (base, theirs, marked) = (None, None, None);
    let conflict = FileConflict { path, reason, base, ours: Some(ours), theirs, marked, hunks: Vec::new() };
    let merge_kind = MergeKind::Conflict(Box::new(conflict));
    ReplayedFile { before, after: None, merge_kind, followed: None, hunks: Vec::new() }
}
