//! The files that a patch changes on its old base, and those on its new one, in pairs: a file may have another name
//! there.

use super::file::FourTrees;
use super::moves::FileMove;
use crate::model::path::RepoPath;
use crate::model::tree::{Tree, TreeError};
use crate::text::likeness::{SIMILAR_PERCENT, percent_alike};

/// A file before and after the patch, on both bases. On a base where the patch does not change it, it has the same name
/// before and after.
pub(super) type FilePair = (FileMove, FileMove);

/// Returns every file of both sides in exactly one pair.
pub(super) fn file_pairs(
    old: Vec<FileMove>,
    new: Vec<FileMove>,
    trees: FourTrees<'_>,
) -> Result<Vec<FilePair>, TreeError> {
    let mut pairing = Pairing { old, new, pairs: Vec::new() };
    pairing.by(|old, new| old.before.is_some() && old.before == new.before);
    pairing.by(|old, new| old.before.is_none() && new.before.is_none() && old.after == new.after);
    // The file that the patch creates on one base exists on the other.
    pairing.by(|old, new| old.before.is_none() && new.before.is_some() && old.after == new.before);
    pairing.by(|old, new| new.before.is_none() && old.before.is_some() && old.before == new.after);
    pairing.by_likeness(trees)?;
    pairing.finish(trees)
}

struct Pairing {
    old: Vec<FileMove>,
    new: Vec<FileMove>,
    pairs: Vec<FilePair>,
}

impl Pairing {
    fn by(&mut self, belong: impl Fn(&FileMove, &FileMove) -> bool) {
        for old in std::mem::take(&mut self.old) {
            match self.new.iter().position(|new| belong(&old, new)) {
                Some(at) => self.pairs.push((old, self.new.remove(at))),
                None => self.old.push(old),
            }
        }
    }

    /// Pairs a file with one of another name: one that upstream moved, or that the patch creates elsewhere.
    fn by_likeness(&mut self, trees: FourTrees<'_>) -> Result<(), TreeError> {
        for old in std::mem::take(&mut self.old) {
            let mut best: Option<(u8, usize)> = None;
            for (at, new) in self.new.iter().enumerate() {
                let percent = likeness(&old, new, trees)?;
                if percent >= SIMILAR_PERCENT && best.is_none_or(|(most, _)| percent > most) {
                    best = Some((percent, at));
                }
            }
            match best {
                Some((_, at)) => self.pairs.push((old, self.new.remove(at))),
                None => self.old.push(old),
            }
        }
        Ok(())
    }

    /// Adds the files that are changed on one base only.
    fn finish(self, trees: FourTrees<'_>) -> Result<Vec<FilePair>, TreeError> {
        let Pairing { old, new, mut pairs } = self;
        for file in old {
            let there = unchanged(&file, trees.new_before)?;
            pairs.push((file, there));
        }
        for file in new {
            let there = unchanged(&file, trees.old_before)?;
            pairs.push((there, file));
        }
        Ok(pairs)
    }
}

/// Returns how much of the contents is the same, in percent; 0 for files of which one exists under its own name on the
/// other base, or only one is created.
fn likeness(old: &FileMove, new: &FileMove, trees: FourTrees<'_>) -> Result<u8, TreeError> {
    match (&old.before, &new.before) {
        (Some(before), Some(moved)) => {
            if exists(trees.new_before, before)? || exists(trees.old_before, moved)? {
                return Ok(0);
            }
            alike((trees.old_before, Some(before)), (trees.new_before, Some(moved)))
        }
        (None, None) => alike((trees.old_after, old.after.as_ref()), (trees.new_after, new.after.as_ref())),
        _ => Ok(0),
    }
}

fn exists(tree: &dyn Tree, path: &RepoPath) -> Result<bool, TreeError> {
    Ok(tree.entry(path.as_bytes())?.is_some())
}

fn alike(
    (left, left_path): (&dyn Tree, Option<&RepoPath>),
    (right, right_path): (&dyn Tree, Option<&RepoPath>),
) -> Result<u8, TreeError> {
    let entry = |tree: &dyn Tree, path: Option<&RepoPath>| match path {
        Some(path) => tree.entry(path.as_bytes()),
        None => Ok(None),
    };
    let (Some(one), Some(other)) = (entry(left, left_path)?, entry(right, right_path)?) else {
        return Ok(0);
    };
    if one.id == other.id {
        return Ok(100);
    }
    Ok(percent_alike(&left.blob(one.id)?, &right.blob(other.id)?))
}

/// Returns `file` on a base where the patch does not change it.
fn unchanged(file: &FileMove, base: &dyn Tree) -> Result<FileMove, TreeError> {
    let path = file.before.as_ref().or(file.after.as_ref());
    let there = match path {
        Some(path) if exists(base, path)? => Some(path.clone()),
        _ => None,
    };
    Ok(FileMove { before: there.clone(), after: there })
}
