//! The proof of a series: patch by patch, and as a whole.

use serde::Serialize;

use super::calls::{ChangedBaseFile, LostCalls};
use super::file::{FourTrees, prove_files};
use super::finding::{Finding, FindingClass};
use super::matching::{Group, groups};
use super::moves::file_moves;
use super::pairs::file_pairs;
use super::placed::PlacedSeries;
use super::text::Scope;
use super::words::GoneWord;
use crate::model::tree::TreeError;

/// The result for one patch, or for several that correspond to each other only together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatchProof {
    /// The file names of the patches in the old series; none if there was no such patch.
    pub old: Vec<String>,
    /// Their file names in the new series; none if they were dropped.
    pub new: Vec<String>,
    /// All differences.
    pub findings: Vec<Finding>,
}

/// The result for a series.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SeriesProof {
    /// Every patch of either series, in the order of the old one.
    pub patches: Vec<PatchProof>,
    /// Differences of the whole series that are in no patch alone.
    pub whole: Vec<Finding>,
    /// Notes, which need no reason: functions that patches change and that upstream calls less often. Empty unless the
    /// caller has looked for them with [`lost_calls`](crate::lost_calls).
    pub lost_calls: Vec<LostCalls>,
    /// As notes: words that patches or overlay files use and that are gone from upstream's code. Empty unless the caller
    /// has looked for them with [`gone_words`](crate::gone_words).
    pub gone_words: Vec<GoneWord>,
}

impl PatchProof {
    /// Returns the name to show: that in the new series if there is one.
    pub fn name(&self) -> String {
        let names = if self.new.is_empty() { &self.old } else { &self.new };
        names.join(", ")
    }

    /// Returns whether nothing has to be fixed or named as intended.
    pub fn is_proved(&self) -> bool {
        !self.findings.iter().any(Finding::is_open)
    }
}

impl SeriesProof {
    /// Returns whether nothing has to be fixed or named as intended.
    pub fn is_proved(&self) -> bool {
        self.patches.iter().all(PatchProof::is_proved) && !self.whole.iter().any(Finding::is_open)
    }

    /// Returns all differences, those of patches first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.patches.iter().flat_map(|patch| &patch.findings).chain(&self.whole)
    }

    /// As [`SeriesProof::findings`], to name them as intended.
    pub fn findings_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.patches.iter_mut().flat_map(|patch| &mut patch.findings).chain(&mut self.whole)
    }
}

/// Compares a series on its old base with the one on its new base: the difference of the patched trees has to be that of
/// the bases, for each patch and for all of them together. `is_whole` tells whether the patches of either side are a
/// series without gaps; without it only single patches are compared. `upstream` are the files that differ between the
/// bases without any patch: a function that was moved must not have a copy in them.
///
/// # Errors
///
/// When a tree cannot be read.
pub fn prove_series(
    old: &PlacedSeries<'_>,
    new: &PlacedSeries<'_>,
    is_whole: bool,
    upstream: &[ChangedBaseFile],
) -> Result<SeriesProof, TreeError> {
    let groups = groups(&old.all_patches(), &new.all_patches());
    let mut proof = SeriesProof::default();
    let mut gathered = Vec::new();
    for group in &groups {
        proof.patches.push(prove_group((old, new), group, upstream, &mut gathered)?);
    }
    if is_whole {
        let checks_places = !groups.iter().all(Group::is_pair);
        let scope = Scope { lists_all: false, checks_places };
        let all = Group { old: 0..old.patches.len(), new: 0..new.patches.len() };
        let (findings, _, _) = prove_patches((old, new), &all, scope, upstream)?;
        let is_known = |finding: &Finding| {
            is_known(&proof.patches, finding) || gathered.iter().any(|known| is_same(known, finding))
        };
        let whole = findings.into_iter().filter(|finding| !is_known(finding)).collect();
        proof.whole = whole;
    }
    Ok(proof)
}

/// Returns whether a patch alone has the same difference, or was dropped without its change being upstream.
fn is_known(patches: &[PatchProof], finding: &Finding) -> bool {
    let is_lost = |known: &Finding| known.class == FindingClass::LostPatch;
    let may_be_of_lost = matches!(
        finding.class,
        FindingClass::LostOwnLine | FindingClass::LostDeletion | FindingClass::Binary
    );
    patches
        .iter()
        .flat_map(|patch| &patch.findings)
        .any(|known| is_same(known, finding) || (may_be_of_lost && is_lost(known)))
}

fn is_same(known: &Finding, finding: &Finding) -> bool {
    known.path == finding.path && known.text == finding.text
}

/// Adds to `gathered` the differences of a patch of which nothing is left: one finding takes their place.
fn prove_group(
    (old, new): (&PlacedSeries<'_>, &PlacedSeries<'_>),
    group: &Group,
    upstream: &[ChangedBaseFile],
    gathered: &mut Vec<Finding>,
) -> Result<PatchProof, TreeError> {
    let scope = Scope { lists_all: true, checks_places: true };
    let (findings, old_size, new_size) = prove_patches((old, new), group, scope, upstream)?;
    let mut proof =
        PatchProof { old: old.names(group.old.clone()), new: new.names(group.new.clone()), findings };
    if group.new.is_empty() {
        // Nothing was written into the gaps of a patch that was dropped.
        proof.findings.retain(|finding| finding.class != FindingClass::ResolvedByHand);
    }
    if group.new.is_empty() || new_size == 0 {
        gathered.extend(gather_lost(&mut proof, old_size));
    }
    Ok(proof)
}

/// Returns the differences, and how much the patches change on either base.
fn prove_patches(
    (old, new): (&PlacedSeries<'_>, &PlacedSeries<'_>),
    group: &Group,
    scope: Scope,
    upstream: &[ChangedBaseFile],
) -> Result<(Vec<Finding>, usize, usize), TreeError> {
    let ((old_before, old_after), (new_before, new_after)) =
        (old.trees(group.old.clone()), new.trees(group.new.clone()));
    let (old_base, new_base) = (old.base, new.base);
    let trees = FourTrees { old_base, new_base, old_before, old_after, new_before, new_after };
    let (old_files, new_files) =
        (file_moves(old.patches_in(group.old.clone())), file_moves(new.patches_in(group.new.clone())));
    let (mut findings, mut old_size, mut new_size) = (Vec::new(), 0, 0);
    let pairs = file_pairs(old_files, new_files, trees)?;
    for file in prove_files(trees, &pairs, scope, upstream)? {
        findings.extend(file.findings);
        old_size += file.old_size;
        new_size += file.new_size;
    }
    Ok((findings, old_size, new_size))
}

/// Replaces the lost lines of a patch of which nothing is left by one finding, and returns them. A patch that was dropped
/// changes nothing, so whatever differs is a change of its own that is lost: it deletes no line of upstream.
fn gather_lost(proof: &mut PatchProof, size: usize) -> Vec<Finding> {
    let is_dropped = proof.new.is_empty();
    let is_lost = |finding: &Finding| match finding.class {
        FindingClass::LostOwnLine | FindingClass::LostDeletion | FindingClass::Binary => true,
        class => is_dropped && !class.is_accounted_for(),
    };
    let (lost, kept): (Vec<Finding>, Vec<Finding>) =
        std::mem::take(&mut proof.findings).into_iter().partition(is_lost);
    proof.findings = kept;
    let Some(first) = lost.first() else { return lost };
    let text = format!("{} of its {} changes are not in upstream", lost.len(), size.max(lost.len()));
    let mut finding = Finding::new(FindingClass::LostPatch, proof.old.join(", "), text);
    finding.evidence = Some(format!("the first is in {}: {}", first.path, first.text.trim()));
    finding.hunks = first.hunks.clone();
    proof.findings.insert(0, finding);
    lost
}
