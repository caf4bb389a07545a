//! The bytes and the file name of each exported commit: a patch file that already has the right content stays
//! unchanged.

use espalier_core::error::Result;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_core::sys::git::tree::GitTree;
use espalier_core::sys::work_trees::edit_repo::EditCommit;
use espalier_series as series;
use espalier_series::ObjectId;
use espalier_series::{Patch, Verdict, apply_patch, slug_from_subject};
use serde_json::json;

use super::written::Written;
use crate::apply::change_tree;

/// A patch file of the series on disk.
pub struct Existing {
    /// The parsed patch.
    pub patch: Patch,
    /// The text of the patch.
    pub bytes: Vec<u8>,
    /// Its file name.
    pub name: String,
    /// The file name without number and extension.
    pub slug: String,
}

/// A patch file of the series after the export.
pub struct Exported {
    /// Its file name.
    pub name: String,
    /// The text of the patch.
    pub bytes: Vec<u8>,
    /// The existing file that it replaces; `None` for a new patch.
    pub was: Option<String>,
    /// Whether the text is unchanged from that file.
    pub kept: bool,
}

impl Exported {
    /// Returns one line for the terminal; `None` when name and text stay the same.
    pub fn describe(&self) -> Option<String> {
        let name = &self.name;
        Some(match &self.was {
            None => format!("new      {name}"),
            Some(was) if self.kept && was == name => return None,
            Some(was) if self.kept => format!("moved    {was} -> {name}"),
            Some(was) if was == name => format!("changed  {name}"),
            Some(was) => format!("changed  {was} -> {name}"),
        })
    }

    /// Returns the same as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        json!({ "file": self.name, "was": self.was, "kept": self.kept })
    }
}

/// Finds the existing file of every commit. A file whose content is the commit's keeps its text; a file whose subject
/// the commit has keeps the words of its name. A patch that got another subject alone is recognized by its change, and
/// gets a new name. Numbers follow the commit order.
pub fn choose(
    store: &Store,
    existing: &[Existing],
    commits: &[EditCommit],
    written: Vec<Written>,
) -> Result<Vec<Exported>> {
    let mut sources: Vec<Option<usize>> = vec![None; commits.len()];
    for (at, (commit, written)) in commits.iter().zip(&written).enumerate() {
        sources[at] = same_patch(store, existing, commit, &written.patch, &sources)?;
    }
    let kept: Vec<bool> = sources.iter().map(Option::is_some).collect();
    for (at, written) in written.iter().enumerate().filter(|(at, _)| !kept[*at]) {
        let same_subject = |(_, file): &(usize, &Existing)| file.patch.subject == written.patch.subject;
        let source = unused(existing, &sources).find(same_subject).map(|(at, _)| at);
        sources[at] = source;
    }
    let mut retitled: Vec<Option<usize>> = vec![None; commits.len()];
    for (at, commit) in commits.iter().enumerate().filter(|(at, _)| sources[*at].is_none()) {
        retitled[at] = same_change(store, existing, commit, &[sources.clone(), retitled.clone()].concat())?;
    }
    let of = |at: Option<usize>| at.and_then(|at| existing.get(at));
    let all = sources.into_iter().zip(retitled).zip(kept).zip(written).enumerate();
    let exports = all.map(|(at, (((source, retitled), kept), written))| {
        let new = exported(at + 1, of(source), kept, written);
        let was = new.was.clone().or(of(retitled).map(|file| file.name.clone()));
        Exported { was, ..new }
    });
    Ok(exports.collect())
}

/// Returns the file that is not used yet whose patch makes the commit, whatever its message.
fn same_change(
    store: &Store,
    existing: &[Existing],
    commit: &EditCommit,
    used: &[Option<usize>],
) -> Result<Option<usize>> {
    for (at, file) in unused(existing, used) {
        if makes(store, &file.patch, commit)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn unused<'a>(
    existing: &'a [Existing],
    sources: &'a [Option<usize>],
) -> impl Iterator<Item = (usize, &'a Existing)> {
    existing.iter().enumerate().filter(|(at, _)| !sources.contains(&Some(*at)))
}

fn same_patch(
    store: &Store,
    existing: &[Existing],
    commit: &EditCommit,
    patch: &Patch,
    sources: &[Option<usize>],
) -> Result<Option<usize>> {
    for (at, file) in unused(existing, sources).filter(|(_, file)| has_same_words(&file.patch, patch)) {
        if makes(store, &file.patch, commit)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Compares author, date and message, ignoring how the mail header writes them: quotes around a name and the day of the
/// week carry no information.
fn has_same_words(left: &Patch, right: &Patch) -> bool {
    series::authorship(left) == series::authorship(right) && left.message() == right.message()
}

/// Whether the patch, applied strictly to the tree of the commit's parent, produces the commit's tree. Tree ids decide:
/// another git may cut hunks differently, and may write a rename as a deletion and a new file.
fn makes(store: &Store, patch: &Patch, commit: &EditCommit) -> Result<bool> {
    let Some(before) = commit.parent_tree else { return Ok(false) };
    Ok(tree_after(store, patch, before)? == Some(commit.tree))
}

fn tree_after(store: &Store, patch: &Patch, before: ObjectId) -> Result<Option<ObjectId>> {
    let Verdict::Exact(changes) = apply_patch(patch, &StoreTree::new(store, before)?)? else {
        return Ok(None);
    };
    let mut tree = GitTree::new(store, before)?;
    change_tree(store, &mut tree, &changes)?;
    tree.write().map(Some)
}

fn exported(number: usize, source: Option<&Existing>, kept: bool, written: Written) -> Exported {
    let new_slug = || slug_from_subject(&written.patch.subject);
    let slug = source.map_or_else(new_slug, |file| file.slug.clone());
    let bytes = match source {
        Some(file) if kept => file.bytes.clone(),
        _ => written.bytes,
    };
    Exported {
        name: format!("{number:04}-{slug}.patch"),
        bytes,
        was: source.map(|file| file.name.clone()),
        kept,
    }
}
