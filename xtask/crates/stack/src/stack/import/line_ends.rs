//! A patch whose line ends are not those of the files that it changes: taken as patch(1) takes it, or explained.

use super::loose::LoosePatch;
use crate::error::Result;
use crate::series::{Adapted, LineEnds, ObjectId, OtherLineEnds, Tree, printable, with_line_ends_of_files};
use crate::sys::git::store_tree::StoreTree;
use crate::sys::work_trees::import_repo::ImportRepo;
use crate::sys::work_trees::patch_apply::{Applied, HowToApply, apply};

/// What became of a patch with the line ends of the files.
pub struct Tried {
    /// It fits so, and what a person should know about it; nothing when it does not.
    pub fits: Option<(Applied, Vec<String>)>,
    /// Why it did not fit as it is, one line for each file with other line ends.
    pub causes: Vec<String>,
    /// What to do about it by hand.
    pub way_out: Option<String>,
}

/// Applies `patch` with the line ends of the files in `tree`, where all of a file's lines in the patch end one way and all
/// lines of the file the other way. Every line has to match then.
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

/// `origin` names the file, and perhaps the number of a mail in it.
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
