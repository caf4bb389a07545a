//! A patch whose line endings differ from those of the files it changes: converted as patch(1) does, or explained.

use super::loose::LoosePatch;
use crate::error::Result;
use crate::series::{Adapted, LineEnds, ObjectId, OtherLineEnds, Tree, printable, with_line_ends_of_files};
use crate::sys::git::store_tree::StoreTree;
use crate::sys::work_trees::import_repo::ImportRepo;
use crate::sys::work_trees::patch_apply::{Applied, HowToApply, apply};

/// Result of applying a patch with the line endings of the files.
pub struct Tried {
    /// The result and notes for the user; `None` if it does not apply this way.
    pub fits: Option<(Applied, Vec<String>)>,
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
    let mut tried = Tried { fits: None, causes: Vec::new(), way_out: None };
    for strip in std::iter::once(&patch.how.strip).chain(&patch.other_strips) {
        let Adapted { diff, others } =
            with_line_ends_of_files(&patch.diff, *strip, patch.how.reverse, ends_of);
        if others.is_empty() {
            continue;
        }
        if tried.causes.is_empty() {
            tried.causes = others.iter().map(cause).collect();
            tried.way_out = others.first().and_then(|other| way_out(other, &patch.origin));
        }
        let applied = match diff == patch.diff {
            true => Applied::Not(Vec::new()),
            false => apply(repo, tree, &diff, HowToApply { strip: *strip, may_fuzz: false, ..patch.how })?,
        };
        if !matches!(applied, Applied::Not(_)) {
            let notes = others.iter().map(|other| format!("{}; taken with those of the file", cause(other)));
            tried.fits = Some((applied, notes.collect()));
            break;
        }
    }
    Ok(tried)
}

fn cause(other: &OtherLineEnds) -> String {
    let OtherLineEnds { path, diff, file } = other;
    format!("{}: the patch has {}, the file has {}", printable(path), diff.describe(), file.describe())
}

/// Returns the remedy; `origin` names the file, and possibly the number of a mail in it.
fn way_out(other: &OtherLineEnds, origin: &str) -> Option<String> {
    let file = crate::plan::next_command::quoted(origin.split(" #").next().unwrap_or(origin));
    match other.file {
        LineEnds::Lf => Some(format!("sed -i 's/\\r$//' {file}    # LF, as the file; then import again")),
        LineEnds::Crlf => Some(format!(
            "sed -i -e 's/\\r$//' -e '/^[-+ ]/s/$/\\r/' {file}    # CRLF, as the file; then import again"
        )),
        LineEnds::Mixed => None,
    }
}
