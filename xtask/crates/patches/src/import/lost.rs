//! Changes in patches from elsewhere that git and patch(1) skip without a message: here they are errors.

use espalier_core::error::{Error, Result};
use espalier_core::next_command::quoted_bytes;
use espalier_series::{LostChange, LostKind, lost_changes};

use super::left_out::LeftOut;
use super::loose::LoosePatch;
use super::strip_count::possible_counts;

/// Returns an error that names every change of `patches` that would be skipped, except files that are left out.
pub fn refuse_lost(patches: &[LoosePatch], left_out: &mut LeftOut<'_>) -> Result<()> {
    let (mut lost, mut hints): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for patch in patches {
        for change in lost_changes(&patch.diff) {
            let paths = paths_of(&change, patch);
            if paths.iter().filter(|path| left_out.covers(path)).count() > 0 {
                continue;
            }
            lost.push(format!("{}: {}", patch.origin, change.what));
            for hint in ways_out(&change, patch, &paths) {
                if !hints.contains(&hint) {
                    hints.push(hint);
                }
            }
        }
    }
    let skip = match lost.len() {
        0 => return Ok(()),
        1 => "1 change would be lost: git and patch(1) skip it".to_string(),
        count => format!("{count} changes would be lost: git and patch(1) skip them"),
    };
    let error = Error::usage(format!("{skip}; nothing was written")).detail(lost.join("\n"));
    Err(hints.into_iter().fold(error, Error::hint))
}

/// Returns the paths in the tree that a file without content may have; none for other changes.
fn paths_of(change: &LostChange, patch: &LoosePatch) -> Vec<Vec<u8>> {
    let counts = possible_counts(patch);
    let paths: Vec<Vec<u8>> = counts.into_iter().filter_map(|strip| change.file(strip)).collect();
    if paths.is_empty() { change.file(0).into_iter().collect() } else { paths }
}

fn ways_out(change: &LostChange, patch: &LoosePatch, paths: &[Vec<u8>]) -> Vec<String> {
    let file = patch.quoted_file();
    match &change.kind {
        LostKind::Lines => vec![
            format!(
                "correct the header of the hunk, or count its lines again: recountdiff {file} >counted.patch"
            ),
            "or delete these lines from the file, if they are not part of a change".to_string(),
        ],
        LostKind::File(_) => {
            // Of several, the second one is without a prefix.
            let path = paths.get(1).or(paths.first()).map(Vec::as_slice).unwrap_or_default();
            vec![
                "make the diff again, with the content of all files: git diff --binary --no-index OLD NEW"
                    .to_string(),
                format!("or import the rest: the same command with --leave-out {}", quoted_bytes(path)),
            ]
        }
        LostKind::Patch => {
            vec![format!(
                "give each patch in {file} a file of its own; indent the line if a message quotes it"
            )]
        }
    }
}
