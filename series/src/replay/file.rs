//! One file of a patch, replayed on another tree.

use std::borrow::Cow;
use std::sync::Arc;

use super::applied_series::{AppliedSeries, PatchEffect};
use super::folder::find_moved_folder;
use super::landing::FileFacts;
use super::text::{MergeResult, ThreeTexts, is_binary, merge_new_files, merge_text};
use crate::apply::collision::leaving_paths;
use crate::apply::refusal::TargetRefusal;
use crate::apply::target::{Failure, find_file};
use crate::judge::drift::{HunkClass, RenameCandidate};
use crate::judge::replayed::{
    ConflictReason, FileConflict, Followed, MergeKind, ReplayedFile, SameFunction, Version,
};
use crate::model::mode::{FileMode, Mode};
use crate::model::object_id::ObjectId;
use crate::model::patch::{Change, Content, FilePatch, Patch};
use crate::model::path::RepoPath;
use crate::model::tree::{NewFile, Tree, TreeChange, TreeError};
use crate::text::markers::{Labels, MarkedText};

/// All inputs for the replay of one file of a patch.
pub(crate) struct FileReplay<'r, 'a> {
    pub applied: &'r AppliedSeries<'a>,
    /// The other tree after the earlier patches.
    pub new: &'r dyn Tree,
    /// The other tree without any patch of the series.
    pub upstream: &'r dyn Tree,
    /// Functions of the file that a person has taken as the same.
    pub same: &'r [SameFunction],
    pub patch: &'r Patch,
    pub file: &'r FilePatch,
    /// The file that the patch was made from.
    pub base: Option<&'r Version>,
    /// The effect of the whole patch on its own tree.
    pub made: &'r PatchEffect,
    pub labels: &'r Labels,
}

/// The result.
pub(crate) struct FileResult {
    pub file: ReplayedFile,
    pub changes: Vec<TreeChange>,
}

/// Content after a merge: an existing blob or a new one.
struct Merged {
    id: ObjectId,
    content: Option<Arc<Vec<u8>>>,
    merge_kind: MergeKind,
    hunks: Vec<HunkClass>,
}

/// Content that could not be merged, and the text to show.
struct Unmerged {
    reason: ConflictReason,
    marked: Option<MarkedText>,
    hunks: Vec<HunkClass>,
}

impl FileReplay<'_, '_> {
    pub fn run(&self) -> Result<FileResult, TreeError> {
        match self.file.change {
            // A copy starts from the old content of the source, so its content is known entirely.
            Change::Create | Change::Copy => self.create(),
            Change::Delete => self.delete(),
            Change::Modify | Change::Rename => self.change(),
        }
    }

    /// Returns a conflict: the patch must not write to this path.
    pub fn refused(&self, refusal: TargetRefusal) -> Result<FileResult, TreeError> {
        let path = self.file.path().cloned();
        let Some(path) = path else { return Err(no_path()) };
        Ok(self.conflict(path, ConflictReason::Refused { refusal }, None, None))
    }

    fn create(&self) -> Result<FileResult, TreeError> {
        let (path, theirs) = self.theirs().ok_or_else(no_path)?;
        let found = match find_file(self.new, path, &leaving_paths(self.patch)) {
            Ok(found) => found,
            Err(failure) => return self.refused(refusal_of(failure)?),
        };
        let Some(found) = found else {
            if let Some(conflict) = self.folder_moved(path)? {
                return Ok(conflict);
            }
            let change = TreeChange { path: path.clone(), new: Some(theirs.clone()) };
            return self.created(change);
        };
        let ours = Version { path: path.clone(), mode: Mode::from(found.mode), id: found.id };
        if (found.id, found.mode) == (theirs.id, theirs.mode) {
            return Ok(self.already_there(ours, None));
        }
        let (left, right) = (self.new.blob(found.id)?, self.content_of(theirs)?);
        let is_text = !is_binary(&left) && !is_binary(&right);
        let marked = is_text.then(|| merge_new_files(&left, &right, self.labels));
        Ok(self.conflict(path.clone(), ConflictReason::FileExists, Some(ours), marked))
    }

    fn created(&self, change: TreeChange) -> Result<FileResult, TreeError> {
        let source = match &self.file.old {
            Some(side) => self.version_at(&side.path)?,
            None => None,
        };
        let is_exact =
            self.file.old.is_none() || source.as_ref().is_some_and(|source| self.is_pre_image(source));
        let (merge_kind, hunks) = match is_exact {
            true => (MergeKind::Unchanged, self.every_hunk(HunkClass::Exact)),
            false => (MergeKind::Placed, Vec::new()),
        };
        Ok(self.taken(source, vec![change], (merge_kind, hunks), None))
    }

    fn delete(&self) -> Result<FileResult, TreeError> {
        let base = self.base.ok_or_else(no_path)?;
        let Some(ours) = self.version_at(&base.path)? else {
            let gone = ReplayedFile {
                before: None,
                after: None,
                merge_kind: MergeKind::AlreadyThere,
                followed: None,
                hunks: self.every_hunk(HunkClass::Upstreamed),
            };
            return match self.locate(base)? {
                // The content has moved elsewhere, but the patch deletes it.
                Ok(followed) => {
                    let candidates = vec![candidate(&followed)];
                    Ok(self.conflict(base.path.clone(), ConflictReason::FileGone { candidates }, None, None))
                }
                Err(_) => Ok(FileResult { file: gone, changes: Vec::new() }),
            };
        };
        if (ours.id, ours.mode) != (base.id, base.mode) {
            return Ok(self.conflict(base.path.clone(), ConflictReason::DeletedButChanged, Some(ours), None));
        }
        let change = TreeChange { path: base.path.clone(), new: None };
        let hunks = self.every_hunk(HunkClass::Exact);
        Ok(self.taken(Some(ours), vec![change], (MergeKind::Unchanged, hunks), None))
    }

    /// Replays a change to a file that stays or moves.
    fn change(&self) -> Result<FileResult, TreeError> {
        let base = self.base.ok_or_else(no_path)?;
        let (target, theirs) =
            self.theirs().map(|(path, file)| (path.clone(), file.clone())).ok_or_else(no_path)?;
        if let Some(done) = self.rename_done(base, &target, &theirs)? {
            return Ok(done);
        }
        let (ours, followed) = match self.find_ours(base)? {
            Ok(found) => found,
            Err(refused) => return Ok(*refused),
        };
        let moves = self.file.change == Change::Rename;
        if let Some(Followed { to, .. }) = followed.as_ref().filter(|_| moves) {
            let reason = ConflictReason::RenamedTwice {
                from: base.path.clone(),
                by_patch: target,
                by_upstream: to.clone(),
            };
            return Ok(self.conflict(to.clone(), reason, Some(ours), None));
        }
        let to = if moves { target } else { ours.path.clone() };
        if FileMode::of_entry(ours.mode).is_none() {
            return self.refused(TargetRefusal::NotAFile { found: ours.mode });
        }
        if to != ours.path
            && let Some(refused) = self.refuse_occupied(&to)?
        {
            return Ok(refused);
        }
        self.merge(base, ours, &to, &theirs, followed)
    }

    /// Finds upstream's version of `base`, and the rename that was followed; or the reason why there is none.
    #[allow(clippy::type_complexity, reason = "used in one place")]
    fn find_ours(
        &self,
        base: &Version,
    ) -> Result<Result<(Version, Option<Followed>), Box<FileResult>>, TreeError> {
        if let Some(ours) = self.version_at(&base.path)? {
            return Ok(Ok((ours, None)));
        }
        let candidates = match self.locate(base)? {
            Ok(followed) => {
                let ours = self.version_at(&followed.to)?.ok_or_else(no_path)?;
                return Ok(Ok((ours, Some(followed))));
            }
            Err(candidates) => candidates,
        };
        let gone = match find_file(self.new, &base.path, &leaving_paths(self.patch)) {
            Ok(_) => self.conflict(base.path.clone(), ConflictReason::FileGone { candidates }, None, None),
            Err(failure) => self.refused(refusal_of(failure)?)?,
        };
        Ok(Err(Box::new(gone)))
    }

    /// Returns the conflict that prevents a file from moving to `to`, if any.
    fn refuse_occupied(&self, to: &RepoPath) -> Result<Option<FileResult>, TreeError> {
        match find_file(self.new, to, &leaving_paths(self.patch)) {
            Ok(None) => self.folder_moved(to),
            Ok(Some(found)) => {
                let there = Version { path: to.clone(), mode: Mode::from(found.mode), id: found.id };
                Ok(Some(self.conflict(to.clone(), ConflictReason::FileExists, Some(there), None)))
            }
            Err(failure) => self.refused(refusal_of(failure)?).map(Some),
        }
    }

    fn merge(
        &self,
        base: &Version,
        ours: Version,
        to: &RepoPath,
        theirs: &NewFile,
        followed: Option<Followed>,
    ) -> Result<FileResult, TreeError> {
        let merged = match self.merge_content(base, &ours, theirs)? {
            Ok(merged) => merged,
            Err(Unmerged { reason, marked, hunks }) => {
                // The file with the conflict is at its new path, so the old one must not stay beside it.
                let leaves = TreeChange { path: ours.path.clone(), new: None };
                let leaves = Some(leaves).filter(|change| change.path != *to);
                let mut result = self.conflict(to.clone(), reason, Some(ours), marked);
                (result.file.followed, result.file.hunks) = (followed, hunks);
                result.changes.extend(leaves);
                return Ok(result);
            }
        };
        let mode = if ours.mode == base.mode { Mode::from(theirs.mode) } else { ours.mode };
        let mode = FileMode::of_entry(mode).unwrap_or(theirs.mode);
        if *to == ours.path && merged.id == ours.id && Mode::from(mode) == ours.mode {
            return Ok(self.already_there(ours, followed));
        }
        let mut changes = Vec::new();
        if *to != ours.path {
            changes.push(TreeChange { path: ours.path.clone(), new: None });
        }
        let new = NewFile { mode, id: merged.id, content: merged.content };
        changes.push(TreeChange { path: to.clone(), new: Some(new) });
        Ok(self.taken(Some(ours), changes, (merged.merge_kind, merged.hunks), followed))
    }

    /// Returns the merged content, or the reason for a conflict.
    fn merge_content(
        &self,
        base: &Version,
        ours: &Version,
        theirs: &NewFile,
    ) -> Result<Result<Merged, Unmerged>, TreeError> {
        if let Some(merged) = self.merge_by_id(base, ours, theirs) {
            return Ok(Ok(merged));
        }
        let binary = || {
            let hunks = self.every_hunk(HunkClass::Conflict);
            Ok(Err(Unmerged { reason: ConflictReason::Binary, marked: None, hunks }))
        };
        let Content::Text(hunks) = &self.file.content else { return binary() };
        let (path, old_path) = (&ours.path, &base.path);
        let (base, ours) = (self.applied.blob(base.id)?, self.new.blob(ours.id)?);
        if is_binary(&ours) {
            return binary();
        }
        let theirs = self.content_of(theirs)?;
        let texts = ThreeTexts { path, base: &base, ours: &ours, theirs: &theirs, labels: self.labels };
        let upstream = || self.upstream_texts(old_path, path);
        let is_here = |same: &&SameFunction| same.path == path.to_string();
        let same: Vec<SameFunction> = self.same.iter().filter(is_here).cloned().collect();
        let merged = merge_text(&texts, hunks, FileFacts { upstream: Some(&upstream), same: &same });
        let (hunks, text) = (merged.hunks, merged.text);
        let reason = match merged.result {
            MergeResult::Clean(merge_kind) => {
                let text = text.into_bytes();
                let (id, content) = (ObjectId::of_blob(&text), Some(Arc::new(text)));
                return Ok(Ok(Merged { id, content, merge_kind, hunks }));
            }
            MergeResult::Conflict => ConflictReason::SameLines,
            MergeResult::Ambiguous(ambiguities) => ConflictReason::LookAlike { ambiguities },
        };
        Ok(Err(Unmerged { reason, marked: Some(text), hunks }))
    }

    /// Returns the content if one side has not changed it, or both have changed it to the same.
    fn merge_by_id(&self, base: &Version, ours: &Version, theirs: &NewFile) -> Option<Merged> {
        let kind = |otherwise| if self.is_pre_image(ours) { MergeKind::Unchanged } else { otherwise };
        if ours.id == base.id {
            return Some(Merged {
                id: theirs.id,
                content: theirs.content.clone(),
                merge_kind: kind(MergeKind::Placed),
                hunks: self.every_hunk(HunkClass::Exact),
            });
        }
        (theirs.id == base.id || theirs.id == ours.id).then(|| Merged {
            id: ours.id,
            content: None,
            merge_kind: kind(MergeKind::Merged),
            hunks: self.every_hunk(HunkClass::Upstreamed),
        })
    }

    /// Returns the file `base` of the pin and the file `ours` of the new upstream tree; `None` if either is missing.
    fn upstream_texts(&self, base: &RepoPath, ours: &RepoPath) -> Option<[Vec<u8>; 2]> {
        let text = |tree: &dyn Tree, path: &RepoPath| {
            let entry = tree.entry(path.as_bytes()).ok()??;
            tree.blob(entry.id).ok().map(Cow::into_owned)
        };
        Some([text(self.applied.pin, base)?, text(self.upstream, ours)?])
    }

    /// Returns whether `ours` is the file that the patch names, so that it applies there exactly. Without an id the
    /// patch changes only the mode or the path, so any content will do.
    fn is_pre_image(&self, ours: &Version) -> bool {
        self.file.old.as_ref().is_some_and(|side| {
            side.path == ours.path
                && side.id.is_none_or(|id| id == ours.id)
                && side.mode.is_none_or(|mode| Mode::from(mode) == ours.mode)
        })
    }

    /// Returns this class for each hunk.
    fn every_hunk(&self, class: HunkClass) -> Vec<HunkClass> {
        match &self.file.content {
            Content::Text(hunks) => vec![class; hunks.len()],
            Content::Binary(_) | Content::Unchanged => Vec::new(),
        }
    }

    /// Returns a conflict if upstream has moved the folder of a new file: the file belongs with its neighbours. Not for
    /// a folder that the patch creates too, which has none.
    fn folder_moved(&self, path: &RepoPath) -> Result<Option<FileResult>, TreeError> {
        if self.made.in_new_folders.contains(path) {
            return Ok(None);
        }
        let Some(to) = find_moved_folder(path, self.applied, self.new)? else { return Ok(None) };
        let at = if self.version_at(&to)?.is_none() { to.clone() } else { path.clone() };
        let reason = ConflictReason::FolderMoved { from: path.clone(), to };
        Ok(Some(self.conflict(at, reason, None, None)))
    }

    /// Handles a rename that upstream has made too, perhaps with changes to the file since.
    fn rename_done(
        &self,
        base: &Version,
        target: &RepoPath,
        theirs: &NewFile,
    ) -> Result<Option<FileResult>, TreeError> {
        if self.file.change != Change::Rename || self.version_at(&base.path)?.is_some() {
            return Ok(None);
        }
        let Some(ours) = self.version_at(target)? else { return Ok(None) };
        self.merge(base, ours, target, theirs, None).map(Some)
    }

    fn taken(
        &self,
        before: Option<Version>,
        changes: Vec<TreeChange>,
        (merge_kind, hunks): (MergeKind, Vec<HunkClass>),
        followed: Option<Followed>,
    ) -> FileResult {
        let after = changes.iter().find_map(|change| {
            let file = change.new.as_ref()?;
            Some(Version { path: change.path.clone(), mode: Mode::from(file.mode), id: file.id })
        });
        FileResult { file: ReplayedFile { before, after, merge_kind, followed, hunks }, changes }
    }

    fn already_there(&self, ours: Version, followed: Option<Followed>) -> FileResult {
        let after = Some(ours.clone());
        let (merge_kind, hunks) = (MergeKind::AlreadyThere, self.every_hunk(HunkClass::Upstreamed));
        let file = ReplayedFile { before: Some(ours), after, merge_kind, followed, hunks };
        FileResult { file, changes: Vec::new() }
    }

    fn conflict(
        &self,
        path: RepoPath,
        reason: ConflictReason,
        ours: Option<Version>,
        marked: Option<MarkedText>,
    ) -> FileResult {
        let theirs = self.theirs().map(|(path, file)| Version {
            path: path.clone(),
            mode: Mode::from(file.mode),
            id: file.id,
        });
        let base = self.base.cloned();
        let before = ours.clone();
        let (marked, hunks) = marked.map(MarkedText::into_parts).unzip();
        let hunks = hunks.unwrap_or_default();
        let conflict = FileConflict { path, reason, base, ours, theirs, marked, hunks };
        let merge_kind = MergeKind::Conflict(Box::new(conflict));
        let hunks = self.every_hunk(HunkClass::Conflict);
        FileResult {
            file: ReplayedFile { before, after: None, merge_kind, followed: None, hunks },
            changes: Vec::new(),
        }
    }
}

fn candidate(followed: &Followed) -> RenameCandidate {
    RenameCandidate {
        path: followed.to.to_string(),
        certain: followed.percent == 100,
        percent: followed.percent,
        of_whole_file: true,
    }
}

/// Returns the refusal in `failure`. Checking a path fails only by a refusal, or because the tree cannot be read.
fn refusal_of(failure: Failure) -> Result<TargetRefusal, TreeError> {
    match failure {
        Failure::Refused(refusal) => Ok(refusal),
        Failure::Tree(error) => Err(error),
        other => Err(TreeError { message: format!("{other:?}") }),
    }
}

/// Returns an error instead of a panic: a patch that was applied names its files.
fn no_path() -> TreeError {
    TreeError { message: "a patch changes a file that is not there".to_owned() }
}
