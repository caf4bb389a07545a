//! The question whether a change belongs in another function is asked once in a rebase: if a person has accepted the place
//! of one patch, changes of the same function by later patches go there too.

use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::GitTree;
use espalier_series::{
    Ambiguity, ConflictHunk, ConflictReason, FileConflict, ObjectId, PatchClass, Replayed, SameFunction,
};

/// Returns the functions that were taken as the same: `tree`, in which `replayed` is resolved, has the changes at the
/// places that were in doubt.
pub fn accepted(replayed: &Replayed, store: &Store, tree: ObjectId) -> Result<Vec<SameFunction>> {
    let mut tree = GitTree::new(store, tree)?;
    let mut found = Vec::new();
    for conflict in replayed.conflicts() {
        let ConflictReason::LookAlike { ambiguities } = &conflict.reason else { continue };
        let Some(entry) = tree.entry(conflict.path.as_bytes())? else { continue };
        let marked = conflict.marked.as_deref().unwrap_or_default();
        if *store.read(entry.id)? == as_proposed(marked, &conflict.hunks) {
            found.extend(ambiguities.iter().filter_map(|ambiguity| same_function(conflict, ambiguity)));
        }
    }
    Ok(found)
}

/// A function with the same head in another place is only a look-alike: its head does not tell which one is meant.
fn same_function(conflict: &FileConflict, ambiguity: &Ambiguity) -> Option<SameFunction> {
    let path = conflict.ours.as_ref()?.path.to_string();
    let (made_for, lands_in) = (ambiguity.made_for.clone()?, ambiguity.lands_in.clone()?);
    let is_answer = ambiguity.class == PatchClass::MovedFunction && made_for != lands_in;
    is_answer.then_some(SameFunction { path, made_for, lands_in })
}

/// Returns the text with the lines of the patch in place of each conflict.
fn as_proposed(marked: &[u8], hunks: &[ConflictHunk]) -> Vec<u8> {
    let lines: Vec<&[u8]> = marked.split_inclusive(|byte| *byte == b'\n').collect();
    let part = |from: usize, to: usize| lines.get(from..to).unwrap_or_default().concat();
    let mut text = Vec::new();
    let mut at = 0;
    for hunk in hunks {
        // The last of the marked lines is a marker, and the lines of the patch are above it.
        let end = hunk.marked.end.saturating_sub(1);
        text.extend(part(at, hunk.marked.start));
        text.extend(part(end.saturating_sub(hunk.theirs.len()), end));
        at = hunk.marked.end;
    }
    text.extend(part(at, lines.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::{ConflictHunk, as_proposed};

    #[test]
    fn the_lines_of_the_patch_replace_each_conflict() {
        let marked = "a\n<<<<<<< v2\nb\n||||||| v1\nb\n=======\nB\nB2\n>>>>>>> 1\nc\n<<<<<<< v2\n||||||| v1\n=======\n\
                      d\n>>>>>>> 1\n";
        let hunk = |marked: std::ops::Range<usize>, theirs: usize| ConflictHunk {
            marked,
            base: 0..0,
            ours: 0..0,
            theirs: 0..theirs,
        };
        let text = as_proposed(marked.as_bytes(), &[hunk(1..9, 2), hunk(10..15, 1)]);
        assert_eq!(String::from_utf8(text).unwrap(), "a\nB\nB2\nc\nd\n");
    }
}
