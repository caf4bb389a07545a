//! Changes that upstream and a patch both made: shown with their lines, and marked for manual resolution.
//!
//! Both sides may have made the same change to a line for different reasons. A counter is the usual case: each side
//! adds an entry and increments the counter, and the merge keeps only one of the two increments.

use super::patch::{Replay, labels};
use super::text::is_binary;
use crate::judge::replayed::{
    ConflictReason, Counter, FileConflict, MergeKind, Replayed, ReplayedFile, SharedChange, Version,
};
use crate::model::mode::Mode;
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::model::tree::TreeError;
use crate::text::line_diff::slice;
use crate::text::three_way::{Region, ThreeWay};

/// The three versions of a file in which upstream and the patch share a change.
struct Versions<'v> {
    base: &'v Version,
    ours: &'v Version,
    theirs: Version,
    /// The path of the merged file: the patch may rename it.
    merged_at: &'v RepoPath,
}

impl Replay<'_> {
    /// Returns the changes of the patch at `at`, replayed as `replayed`, that upstream made too, in text files.
    ///
    /// # Errors
    ///
    /// When a blob cannot be read.
    pub fn shared_changes(&self, at: usize, replayed: &Replayed) -> Result<Vec<SharedChange>, TreeError> {
        let mut found = Vec::new();
        for index in 0..replayed.files.len() {
            found
                .extend(self.shared_in(at, replayed, index)?.map(|(changes, _)| changes).unwrap_or_default());
        }
        Ok(found)
    }

    /// Returns the changes that upstream and the patch both made in a file with a conflict of lines, outside of the conflict:
    /// the merge has them once.
    ///
    /// # Errors
    ///
    /// When a blob cannot be read.
    pub fn shared_beside(&self, conflict: &FileConflict) -> Result<Vec<SharedChange>, TreeError> {
        let FileConflict { base: Some(base), ours: Some(ours), theirs: Some(theirs), reason, .. } = conflict
        else {
            return Ok(Vec::new());
        };
        if !matches!(reason, ConflictReason::SameLines | ConflictReason::LookAlike { .. }) {
            return Ok(Vec::new());
        }
        let (old, here, new) = (self.blob(base.id)?, self.blob(ours.id)?, self.blob(theirs.id)?);
        let merge = ThreeWay::new(&old, &here, &new);
        Ok(merge.alike().map(|region| shared_change(&merge, region, &ours.path, true)).collect())
    }

    /// Returns `replayed` with every file that has shared changes as a conflict, with markers for manual resolution.
    ///
    /// # Errors
    ///
    /// When a blob cannot be read.
    pub fn by_hand(&self, at: usize, replayed: &Replayed) -> Result<Replayed, TreeError> {
        let mut files = Vec::new();
        for (index, file) in replayed.files.iter().enumerate() {
            let shared = self.shared_in(at, replayed, index)?;
            files.push(match shared {
                None => file.clone(),
                Some((_, conflict)) => ReplayedFile {
                    after: None,
                    merge_kind: MergeKind::Conflict(Box::new(conflict)),
                    ..file.clone()
                },
            });
        }
        Ok(Replayed { patch: replayed.patch.clone(), files })
    }

    /// Returns the shared changes of one file, and the file as a conflict about them; `None` if there are none.
    fn shared_in(
        &self,
        at: usize,
        replayed: &Replayed,
        index: usize,
    ) -> Result<Option<(Vec<SharedChange>, FileConflict)>, TreeError> {
        let Some(versions) = self.versions(at, replayed, index) else { return Ok(None) };
        let Versions { base, ours, theirs, merged_at } = &versions;
        let (old, here, new) = (self.blob(base.id)?, self.blob(ours.id)?, self.blob(theirs.id)?);
        if [&old, &here, &new].iter().any(|content| is_binary(content)) {
            return Ok(None);
        }
        let merge = ThreeWay::new(&old, &here, &new);
        let is_partial = replayed.files.iter().any(|file| file.merge_kind != MergeKind::AlreadyThere);
        let change = |region: &Region| shared_change(&merge, region, &ours.path, is_partial);
        let changes: Vec<SharedChange> = merge.alike().map(change).collect();
        if changes.is_empty() || merge.has_conflict() {
            return Ok(None);
        }
        let (marked, hunks) = merge.write_alike(&labels(self.names, &replayed.patch)).into_parts();
        let conflict = FileConflict {
            path: (*merged_at).clone(),
            reason: ConflictReason::SharedChanges { changes: changes.clone() },
            base: Some((*base).clone()),
            ours: Some((*ours).clone()),
            theirs: Some(theirs.clone()),
            marked: Some(marked),
            hunks,
        };
        Ok(Some((changes, conflict)))
    }

    fn versions<'v>(&'v self, at: usize, replayed: &'v Replayed, index: usize) -> Option<Versions<'v>> {
        let now = replayed.files.get(index)?;
        if !matches!(now.merge_kind, MergeKind::AlreadyThere | MergeKind::PartlyThere { .. }) {
            return None;
        }
        let (patch, made) = self.applied.patch(at)?;
        let made = made?;
        let path = &patch.files.get(index)?.new.as_ref()?.path;
        let change = made.changes.iter().find(|change| change.path == *path)?;
        let new = change.new.as_ref()?;
        let theirs = Version { path: path.clone(), mode: Mode::from(new.mode), id: new.id };
        let ours = now.before.as_ref()?;
        let merged_at = now.after.as_ref().map_or(&ours.path, |after| &after.path);
        Some(Versions { base: made.bases.get(index)?.as_ref()?, ours, theirs, merged_at })
    }
}

fn shared_change(merge: &ThreeWay<'_>, region: &Region, path: &RepoPath, is_partial: bool) -> SharedChange {
    let (before, after) = (slice(&merge.base, region.base.clone()), slice(&merge.ours, region.ours.clone()));
    let shown = |lines: &[&[u8]]| lines.iter().map(|line| printable(line)).collect::<Vec<_>>();
    let counter = || before.iter().zip(after).find_map(|(before, after)| counter_in(before, after));
    SharedChange {
        path: path.clone(),
        line: region.ours.start + 1,
        patch_line: region.line_of_theirs(),
        before: shown(before),
        after: shown(after),
        counter: if is_partial && before.len() == after.len() { counter() } else { None },
    }
}

/// Returns the number that was incremented if two lines are otherwise the same.
fn counter_in(before: &[u8], after: &[u8]) -> Option<Counter> {
    let (before, after) = (tokens(before), tokens(after));
    if before.len() != after.len() {
        return None;
    }
    let mut found = None;
    for (old, new) in before.into_iter().zip(after).filter(|(old, new)| old != new) {
        let (old, new) = (number(old)?, number(new)?);
        let sum = new.checked_add(new.checked_sub(old)?)?;
        if new <= old {
            return None;
        }
        found = found.or(Some(Counter { before: old, after: new, sum }));
    }
    found
}

/// Splits a line into runs of digits and the text between them.
fn tokens(line: &[u8]) -> Vec<&[u8]> {
    line.chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit()).collect()
}

fn number(token: &[u8]) -> Option<u64> {
    token.first().filter(|byte| byte.is_ascii_digit())?;
    std::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::counter_in;
    use crate::judge::replayed::Counter;

    #[test]
    fn a_counter_is_a_line_in_which_only_numbers_rose() {
        let counter = |before, after, sum| Some(Counter { before, after, sum });
        assert_eq!(counter_in(b"    OP_COUNT = 81,\n", b"    OP_COUNT = 82,\n"), counter(81, 82, 83));
        let check = |count| format!("static_assert(OP_COUNT == {count}, \"OP_COUNT != {count}\");\n");
        assert_eq!(counter_in(check(81).as_bytes(), check(82).as_bytes()), counter(81, 82, 83));
        assert_eq!(counter_in(b"x = 9;", b"x = 12;"), counter(9, 12, 15));
        for (before, after) in
            [("x = 82;", "x = 81;"), ("x = 1;", "y = 2;"), ("x = 1;", "x = a;"), ("a", "b")]
        {
            assert_eq!(counter_in(before.as_bytes(), after.as_bytes()), None, "{before} {after}");
        }
        assert_eq!(counter_in(b"99999999999999999999999", b"99999999999999999999998"), None);
    }
}
