//! A patch whose line endings differ from those of the files it changes: converted as patch(1) does, or explained.

use espalier_core::error::Result;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::work_trees::import_repo::ImportRepo;
use espalier_core::sys::work_trees::patch_apply::{Applied, apply};
use espalier_series::{Adapted, LineEnds, ObjectId, OtherLineEnds, Tree, printable, with_line_ends_of_files};

use super::loose::LoosePatch;
use super::strip_count::{Fitted, fit};

/// Result of applying a patch with the line endings of the files.
pub struct Tried {
    /// The result.
    pub fitted: Fitted,
    /// Notes for the user, if it applies this way.
    pub notes: Vec<String>,
    /// Reasons why it does not apply as it is, one line for each file with other line endings.
    pub causes: Vec<String>,
    /// Manual remedy.
    pub way_out: Option<String>,
}

/// Applies `patch` with the line endings of the files in `tree`, if for each file all its lines in the patch have one
/// ending and all lines of the file the other. Every line must match exactly then.
///
/// # Errors
///
/// The tree cannot be read.
pub fn apply_with_those_of_files(repo: &ImportRepo, tree: ObjectId, patch: &LoosePatch) -> Result<Tried> {
    let files = StoreTree::new(&repo.store, tree)?;
    let ends_of = |path: &[u8]| {
        let entry = files.entry(path).ok().flatten()?;
        LineEnds::of(&files.blob(entry.id).ok()?)
    };
    let adapted = |strip: u32| with_line_ends_of_files(&patch.diff, strip, patch.options.reverse, ends_of);
    let (mut causes, mut way_out) = (Vec::new(), None);
    let fitted = fit(repo, tree, patch, false, |how| {
        let Adapted { diff, others } = adapted(how.strip);
        if causes.is_empty() {
            causes = others.iter().map(cause).collect();
            way_out = others.first().and_then(|other| remedy(other, patch));
        }
        match others.is_empty() || diff == patch.diff {
            true => Ok(Applied::Not(Vec::new())),
            false => apply(repo, tree, &diff, how),
        }
    })?;
    let others = if let Fitted::With(strip, _) = &fitted { adapted(*strip).others } else { Vec::new() };
    let notes = others.iter().map(|other| format!("{}; taken with those of the file", cause(other)));
    Ok(Tried { notes: notes.collect(), fitted, causes, way_out })
}

fn cause(other: &OtherLineEnds) -> String {
    let OtherLineEnds { path, diff, file } = other;
    format!("{}: the patch has {}, the file has {}", printable(path), diff.describe(), file.describe())
}

fn remedy(other: &OtherLineEnds, patch: &LoosePatch) -> Option<String> {
    let file = patch.quoted_file();
    match other.file {
        LineEnds::Lf => Some(format!("sed -i 's/\\r$//' {file}    # LF, as the file; then import again")),
        LineEnds::Crlf => Some(format!(
            "sed -i -e 's/\\r$//' -e '/^[-+ ]/s/$/\\r/' {file}    # CRLF, as the file; then import again"
        )),
        LineEnds::Mixed => None,
    }
}
