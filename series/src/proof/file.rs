//! The proof of one file: whether it is there, its name, its mode, and its content.

use std::borrow::Cow;
use std::collections::HashSet;

use super::apart::prove_apart;
use super::calls::ChangedBaseFile;
use super::finding::{Finding, FindingClass, Undone};
use super::moved_functions::MergedFile;
use super::moves::FileMove;
use super::text::{FileProof, FourTexts, Scope, prove_text};
use crate::model::mode::Mode;
use crate::model::object_id::ObjectId;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};
use crate::replay::text::is_binary;
use crate::text::line_diff::lines_of;

/// The trees before and after a patch, on both bases, and the bases themselves, without earlier patches.
#[derive(Clone, Copy)]
pub(super) struct FourTrees<'t> {
    pub old_base: &'t dyn Tree,
    pub new_base: &'t dyn Tree,
    pub old_before: &'t dyn Tree,
    pub old_after: &'t dyn Tree,
    pub new_before: &'t dyn Tree,
    pub new_after: &'t dyn Tree,
}

/// A file of one tree.
struct FileAt<'t> {
    path: RepoPath,
    mode: Mode,
    id: ObjectId,
    content: Cow<'t, [u8]>,
}

impl<'t> FileAt<'t> {
    fn read(tree: &'t dyn Tree, path: Option<&RepoPath>) -> Result<Option<FileAt<'t>>, TreeError> {
        let Some(path) = path else { return Ok(None) };
        let Some(entry) = tree.entry(path.as_bytes())?.filter(|entry| entry.mode != Mode::Folder) else {
            return Ok(None);
        };
        let content = match entry.mode {
            Mode::Submodule => Cow::Borrowed(b"".as_slice()),
            _ => tree.blob(entry.id)?,
        };
        Ok(Some(FileAt { path: path.clone(), mode: entry.mode, id: entry.id, content }))
    }

    /// Returns whether it cannot be compared line by line.
    fn is_opaque(&self) -> bool {
        matches!(self.mode, Mode::Symlink | Mode::Submodule) || is_binary(&self.content)
    }

    fn is_same(&self, other: &FileAt<'_>) -> bool {
        (&self.path, self.mode, self.id) == (&other.path, other.mode, other.id)
    }
}

/// The versions of one file in the four trees; `None` where it does not exist.
struct FourFiles<'t> {
    old_before: Option<FileAt<'t>>,
    old_after: Option<FileAt<'t>>,
    new_before: Option<FileAt<'t>>,
    new_after: Option<FileAt<'t>>,
    /// In the bases: what differs between these two was changed by upstream, and not by an earlier patch.
    bases: [Option<FileAt<'t>>; 2],
}

/// Compares what a patch does to its files on both bases, each given with its names there. `upstream` are all files that
/// differ between the bases.
pub(super) fn prove_files(
    trees: FourTrees<'_>,
    pairs: &[(FileMove, FileMove)],
    scope: Scope,
    upstream: &[ChangedBaseFile],
) -> Result<Vec<FileProof>, TreeError> {
    let proofs = pairs.iter().map(|pair| prove_file(trees, pair, scope));
    let mut proofs = proofs.collect::<Result<Vec<_>, _>>()?;
    // Where a merge leaves nothing open, no function is elsewhere.
    if !proofs.iter().any(|proof| proof.has_gaps) {
        return Ok(proofs);
    }
    let files = pairs.iter().map(|pair| FourFiles::read(trees, pair)).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<Option<RepoPath>> = files.iter().map(FourFiles::path).collect();
    let texts = files.iter().zip(&paths).map(|(files, path)| files.comparable(path.as_ref()?));
    let merged = texts.zip(&proofs).map(|(texts, proof)| MergedFile { texts, has_gaps: proof.has_gaps });
    let merged: Vec<MergedFile<'_>> = merged.collect();
    let names = pairs.iter().flat_map(|(old, new)| [&old.before, &new.before]).flatten();
    let names: HashSet<&[u8]> = names.map(RepoPath::as_bytes).collect();
    let others: Vec<&ChangedBaseFile> =
        upstream.iter().filter(|file| !names.contains(file.path.as_slice())).collect();
    prove_apart(&merged, &others, scope, &mut proofs);
    Ok(proofs)
}

/// Compares what a patch does to a file on both bases.
fn prove_file(
    trees: FourTrees<'_>,
    pair: &(FileMove, FileMove),
    scope: Scope,
) -> Result<FileProof, TreeError> {
    let files = FourFiles::read(trees, pair)?;
    let Some(path) = files.path() else { return Ok(FileProof::default()) };
    if let Some(finding) = files.existence(&path) {
        let size = |before: &Option<FileAt<'_>>, after: &Option<FileAt<'_>>| {
            usize::from(!is_unchanged(before.as_ref(), after.as_ref()))
        };
        return Ok(FileProof {
            findings: vec![finding],
            old_size: size(&files.old_before, &files.old_after),
            new_size: size(&files.new_before, &files.new_after),
            has_gaps: false,
        });
    }
    let mut proof = match files.comparable(&path) {
        None => files.opaque(&path, scope),
        Some(texts) => prove_text(&texts, scope),
    };
    proof.findings.extend(files.name(&path).into_iter().chain(files.mode(&path)));
    Ok(proof)
}

fn is_unchanged(before: Option<&FileAt<'_>>, after: Option<&FileAt<'_>>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.is_same(after),
        (before, after) => before.is_none() && after.is_none(),
    }
}

impl<'t> FourFiles<'t> {
    fn read(trees: FourTrees<'t>, (old, new): &(FileMove, FileMove)) -> Result<FourFiles<'t>, TreeError> {
        Ok(FourFiles {
            old_before: FileAt::read(trees.old_before, old.before.as_ref())?,
            old_after: FileAt::read(trees.old_after, old.after.as_ref())?,
            new_before: FileAt::read(trees.new_before, new.before.as_ref())?,
            new_after: FileAt::read(trees.new_after, new.after.as_ref())?,
            bases: [
                FileAt::read(trees.old_base, old.before.as_ref())?,
                FileAt::read(trees.new_base, new.before.as_ref())?,
            ],
        })
    }

    fn all(&self) -> impl Iterator<Item = &FileAt<'t>> {
        [&self.new_after, &self.new_before, &self.old_after, &self.old_before].into_iter().flatten()
    }

    /// Returns the path to show.
    fn path(&self) -> Option<RepoPath> {
        self.all().next().map(|file| file.path.clone())
    }

    /// Returns the contents if they can be compared line by line, and the file is there as it should be.
    fn comparable<'f>(&'f self, path: &'f RepoPath) -> Option<FourTexts<'f>> {
        let is_text = !self.all().any(FileAt::is_opaque) && self.existence(path).is_none();
        is_text.then(|| self.texts(path))
    }

    fn texts<'f>(&'f self, path: &'f RepoPath) -> FourTexts<'f> {
        fn content<'c>(file: &'c Option<FileAt<'_>>) -> &'c [u8] {
            file.as_ref().map(|file| &*file.content).unwrap_or_default()
        }
        FourTexts {
            path,
            old_before: content(&self.old_before),
            old_after: content(&self.old_after),
            new_before: content(&self.new_before),
            new_after: content(&self.new_after),
            bases: self.bases.each_ref().map(content),
            part: None,
        }
    }

    /// Returns the finding for a file that should exist and does not, or the other way round.
    fn existence(&self, path: &RepoPath) -> Option<Finding> {
        let FourFiles { old_before, old_after, new_before, new_after, .. } = self;
        let expected = match (old_before, old_after) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            _ => new_before.is_some(),
        };
        let is_changed = !is_unchanged(old_before.as_ref(), old_after.as_ref());
        match (expected, new_after) {
            (true, None) if new_before.is_some() => {
                let is_new = old_before.is_none();
                let undone = is_new.then_some(Undone::Added);
                Some(whole_file(FindingClass::NewDeletion, path, new_before.as_ref(), undone))
            }
            (true, None) => Some(whole_file(FindingClass::LostOwnLine, path, old_after.as_ref(), None)),
            (false, Some(there)) => Some(self.unexpected(path, there)),
            // Upstream deleted the file, and the change with it.
            (false, None) if old_after.is_some() && is_changed => {
                let mut finding = whole_file(FindingClass::LostOwnLine, path, old_after.as_ref(), None);
                finding.evidence = Some("upstream has deleted the file".to_owned());
                Some(finding)
            }
            _ => None,
        }
    }

    /// Returns the finding for a file that should not exist.
    fn unexpected(&self, path: &RepoPath, there: &FileAt<'_>) -> Finding {
        let (class, undone) = match (&self.old_before, &self.new_before) {
            (Some(_), Some(_)) => (FindingClass::LostDeletion, None),
            (Some(_), None) => (FindingClass::Restored, Some(Undone::Deleted)),
            (None, _) => (FindingClass::Added, None),
        };
        whole_file(class, path, Some(there), undone)
    }

    /// Returns the finding for a file with another name than upstream and the patch give it.
    fn name(&self, path: &RepoPath) -> Option<Finding> {
        let found = &self.new_after.as_ref()?.path;
        let renamed = match (&self.old_before, &self.old_after) {
            (Some(before), Some(after)) if before.path == after.path => None,
            (_, after) => after.as_ref().map(|after| &after.path),
        };
        let expected = renamed.or(self.new_before.as_ref().map(|before| &before.path))?;
        let what = || format!("the file is called {found}, and {expected} was expected");
        (found != expected).then(|| Finding::new(FindingClass::ModeOrName, path.to_string(), what()))
    }

    /// Returns the finding for a file with another mode.
    fn mode(&self, path: &RepoPath) -> Option<Finding> {
        let mode = |file: &Option<FileAt<'_>>| file.as_ref().map(|file| file.mode);
        let (before, after) = (mode(&self.old_before), mode(&self.old_after));
        let upstream = mode(&self.new_before);
        let is_set_by_patch =
            after.is_some() && before != after && (upstream == before || upstream.is_none());
        let expected = if is_set_by_patch { after } else { upstream.or(after) };
        let (found, expected) = (mode(&self.new_after)?.as_git_mode(), expected?.as_git_mode());
        let what = || format!("the mode is {found:06o}, and {expected:06o} was expected");
        (found != expected).then(|| Finding::new(FindingClass::ModeOrName, path.to_string(), what()))
    }

    /// Compares contents by their ids.
    fn opaque(&self, path: &RepoPath, scope: Scope) -> FileProof {
        let id = |file: &Option<FileAt<'_>>| file.as_ref().map(|file| file.id);
        let (old_before, old_after) = (id(&self.old_before), id(&self.old_after));
        let (new_before, new_after) = (id(&self.new_before), id(&self.new_after));
        let by_patch = old_before != old_after;
        let by_upstream = old_before != new_before;
        let expected = match (by_patch, by_upstream) {
            (false, _) => Some(new_before),
            (true, false) => Some(old_after),
            (true, true) => Some(old_after).filter(|after| *after == new_before),
        };
        let mut proof = FileProof {
            findings: Vec::new(),
            old_size: usize::from(by_patch),
            new_size: usize::from(new_before != new_after),
            has_gaps: false,
        };
        if expected != Some(new_after) {
            let what = match () {
                () if new_after == new_before => "the change of the patch to the content is lost",
                () if by_upstream && new_after == old_after => "upstream's change to the content is lost",
                () => "the content is neither upstream's nor that of the patch",
            };
            let mut finding = Finding::new(FindingClass::Binary, path.to_string(), what.to_owned());
            finding.undone = (by_upstream && new_after != new_before).then_some(Undone::Binary);
            proof.findings.push(finding);
        } else if by_patch && by_upstream && scope.lists_all {
            let what = "upstream has the same content".to_owned();
            proof.findings.push(Finding::new(FindingClass::Upstreamed, path.to_string(), what));
        }
        proof
    }
}

/// Returns a finding about all lines of `file`.
fn whole_file(
    class: FindingClass,
    path: &RepoPath,
    file: Option<&FileAt<'_>>,
    undone: Option<Undone>,
) -> Finding {
    let lines = file.map_or(0, |file| lines_of(&file.content).len());
    let mut finding = Finding::new(class, path.to_string(), format!("the whole file ({lines} lines)"));
    finding.undone = undone;
    finding
}
