//! Parts of a series that upstream's commits since the pin contain.

use std::collections::BTreeSet;
use std::rc::Rc;

use espalier_core::error::Result;
use espalier_core::sys::git::history::{Commit, Comparisons};
use espalier_core::sys::git::store::Store;
use espalier_series::ObjectId;
use espalier_series::{
    AppliedSeries, ChangedFile, Difference, Event, SIMILAR_PERCENT, UpstreamHistory, UpstreamScan,
    percent_alike,
};

/// A set of patches, by their indices in the series.
pub type PatchSet = Rc<BTreeSet<usize>>;

/// The upstreamed parts of a series, by commit.
#[derive(Debug, Default)]
pub struct UpstreamedPatches {
    /// History of each patch; its commits are indices into the history.
    pub histories: Vec<UpstreamHistory>,
    /// Patches that are upstreamed at each commit.
    at: Vec<PatchSet>,
}

impl UpstreamedPatches {
    /// Returns the patches that are upstreamed at the commit `at`.
    pub fn at(&self, at: usize) -> PatchSet {
        self.at.get(at).cloned().unwrap_or_default()
    }

    /// Returns the patches that are upstreamed at the last commit.
    pub fn at_tip(&self) -> PatchSet {
        self.at.last().cloned().unwrap_or_default()
    }
}

/// Reads every commit of `history` that touches a file of the series. Merges are skipped: their changes are in the
/// merged commits.
pub fn watch(
    store: &Store,
    applied: &AppliedSeries<'_>,
    history: &[Commit],
    compared: &Comparisons<'_>,
) -> Result<UpstreamedPatches> {
    let mut scan = UpstreamScan::new(applied)?;
    let mut upstreamed = UpstreamedPatches::default();
    for (at, commit) in history.iter().enumerate() {
        let mut set = before(&upstreamed, commit);
        for patch in look_at(store, compared, &mut scan, (at, commit))? {
            match scan.history(patch).and_then(|upstream| upstream.events.last()) {
                Some(Event::Upstreamed { .. }) => set.insert(patch),
                _ => set.remove(&patch),
            };
        }
        upstreamed.at.push(Rc::new(set));
    }
    upstreamed.histories = (0..applied.patches().len()).filter_map(|at| scan.history(at).cloned()).collect();
    Ok(upstreamed)
}

fn before(upstreamed: &UpstreamedPatches, commit: &Commit) -> BTreeSet<usize> {
    commit
        .parents
        .iter()
        .flat_map(|parent| upstreamed.at(*parent).iter().copied().collect::<Vec<_>>())
        .collect()
}

fn look_at(
    store: &Store,
    compared: &Comparisons<'_>,
    scan: &mut UpstreamScan,
    (at, commit): (usize, &Commit),
) -> Result<Vec<usize>> {
    let has_known_parent = commit.follows_pin != (commit.parents.len() == 1);
    let [parent] = commit.parent_trees[..] else { return Ok(Vec::new()) };
    if !has_known_parent {
        return Ok(Vec::new());
    }
    let changed = compared.between(parent, commit.tree)?;
    let files = changed.iter().filter(|change| scan.cares_about(&change.path));
    let files = files.map(|change| read(store, change, &changed)).collect::<Result<Vec<_>>>()?;
    Ok(if files.is_empty() { Vec::new() } else { scan.see(at, &commit.subject, &files) })
}

/// Reads the change to one file in a commit with the changes `all`.
fn read(store: &Store, change: &Difference, all: &[Difference]) -> Result<ChangedFile> {
    let home = new_home(store, change, all)?;
    let [old, new] = [change.blobs[0], home.unwrap_or(change).blobs[1]];
    let hexadecimal = |id: ObjectId| if id.is_zero() { String::new() } else { id.to_string() };
    Ok(ChangedFile {
        path: home.unwrap_or(change).path.clone(),
        moved_from: home.map(|_| change.path.clone()),
        old_id: hexadecimal(old),
        new_id: hexadecimal(new),
        old: content(store, old),
        new: content(store, new),
    })
}

/// Returns the content of a blob; empty for a submodule, which has an id and no content here.
fn content(store: &Store, id: ObjectId) -> Vec<u8> {
    match id.is_zero() {
        true => Vec::new(),
        false => store.read(id).map(|bytes| bytes.to_vec()).unwrap_or_default(),
    }
}

/// Returns the new path of a file that is removed: an added file with the same content, or with most of it.
fn new_home<'c>(store: &Store, gone: &Difference, all: &'c [Difference]) -> Result<Option<&'c Difference>> {
    let [old, new] = gone.blobs;
    if !new.is_zero() {
        return Ok(None);
    }
    let came = || all.iter().filter(|change| change.blobs[0].is_zero());
    let name = |change: &Difference| change.path.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let same = came().filter(|change| change.blobs[1] == old);
    if let Some(same) = same.min_by_key(|change| name(change) != name(gone)) {
        return Ok(Some(same));
    }
    let text = content(store, old);
    let percent = |change: &Difference| percent_alike(&text, &content(store, change.blobs[1]));
    let most = came().map(|change| (percent(change), change)).max_by_key(|(percent, _)| *percent);
    Ok(most.filter(|(percent, _)| *percent >= SIMILAR_PERCENT).map(|(_, change)| change))
}
