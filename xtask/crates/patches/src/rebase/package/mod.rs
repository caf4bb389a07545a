//! A patch at which a rebase stops, described with everything that a person or a program needs to resolve it.

mod changed_files;
mod diff_text;
mod earlier;
mod elsewhere;
mod folder;
mod hunks;
mod lines;
mod other_patches;
mod related;
mod upstream;
mod upstream_diff;
mod verified_by;

use espalier_core::error::{Error, Result};
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{FileConflict, Patch, Replay, Replayed, Trailer, Version};
pub use folder::{remove, write};
use lines::{ConflictedVersions, versions};

use super::target::SeriesMove;
use crate::rebase::state::DonePatch;
use crate::report::conflict::{
    ConflictPackage, PackagedFile, PackagedHunk, PackagedPatch, PackagedSibling, PackagedTrailer,
    PackagedVersion, SCHEMA, StopKind,
};
use crate::report::content::PathText;
use crate::report::replay::{describe_beside, describe_by_earlier, describe_conflict, describe_in_sibling};

/// A replayed patch with the replay that it belongs to.
pub struct Stopped<'s> {
    /// Its series.
    pub series_move: &'s SeriesMove<'s>,
    /// The replay, before the patch.
    pub replay: &'s Replay<'s>,
    /// Index of the patch in the series.
    pub at: usize,
    /// The result.
    pub replayed: &'s Replayed,
    /// The sibling of the patch, if the work starts from it. Base, ours and theirs of a conflict are the patch as it was,
    /// the sibling, and the patch as it is; of an outdated one they are what `PackagedSibling::outdated` says.
    pub sibling: Option<&'s PackagedSibling>,
    /// The results of the earlier patches, if the rebase is not only tried.
    pub done: &'s [DonePatch],
}

impl<'s> Stopped<'s> {
    /// Returns the patch and its file.
    fn patch(&self) -> Result<(&'s PatchFile, &'s Patch)> {
        let stack = &self.series_move.stack;
        let found = stack.files.get(self.at).zip(stack.patches.get(self.at));
        found.ok_or_else(|| Error::environment("the record of the rebase goes beyond the series"))
    }
}

/// Describes the patch. Upstream's commits are left out if they cannot be read.
pub fn build(stopped: &Stopped<'_>) -> Result<ConflictPackage> {
    let SeriesMove { stack, tip, .. } = stopped.series_move;
    let (file, patch) = stopped.patch()?;
    let conflicts = versions(stopped, patch);
    let hunks::Places { hunks, left_out, related } = hunks::describe(stopped, &conflicts);
    let to_edit = !stopped.replayed.has_conflict();
    Ok(ConflictPackage {
        schema: SCHEMA,
        kind: if to_edit { StopKind::Edit } else { StopKind::Conflict },
        variant: stack.variant.name.to_string(),
        upstream: stack.pin.upstream.clone(),
        from: stopped.series_move.old_base(stack.pin.tree),
        to: Some(stopped.series_move.new_base(tip.tree)),
        commit: (!tip.commit.is_zero()).then(|| tip.commit.to_string()),
        patch: packaged_patch(stopped.series_move, file, patch)?,
        sibling: stopped.sibling.cloned(),
        files: conflicts.iter().map(|versions| packaged_file(stopped, versions, &hunks)).collect(),
        hunks,
        hunks_left_out: left_out,
        related,
        rebase: None,
    })
}

fn packaged_patch(series_move: &SeriesMove<'_>, file: &PatchFile, patch: &Patch) -> Result<PackagedPatch> {
    let trailers = patch.trailers.iter();
    let trailer = |found: &Trailer| PackagedTrailer { key: found.key.clone(), text: found.value.clone() };
    let mut files: Vec<PathText> = Vec::new();
    for path in patch.files.iter().flat_map(|file| file.paths()).map(PathText::from) {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    Ok(PackagedPatch {
        file: file.file.clone(),
        author: patch.author.clone(),
        subject: patch.subject.clone(),
        message: patch.message(),
        trailers: trailers.map(trailer).collect(),
        verified_by: verified_by::read(series_move, file, patch)?,
        files,
    })
}

fn packaged_file(
    stopped: &Stopped<'_>,
    versions: &ConflictedVersions<'_>,
    hunks: &[PackagedHunk],
) -> PackagedFile {
    let FileConflict { path, reason, base, ours, theirs, .. } = versions.conflict;
    let path = PathText::from(path);
    // The tag of the reason alone: the hunks have the rest of it.
    let name =
        serde_json::to_value(reason).ok().and_then(|reason| Some(reason.get("reason")?.as_str()?.into()));
    let version = |version: &Version| PackagedVersion {
        path: PathText::from(&version.path),
        mode: format!("{:06o}", version.mode.as_git_mode()),
        id: version.id.to_string(),
    };
    let own: Vec<&PackagedHunk> = hunks.iter().filter(|hunk| hunk.path == path).collect();
    PackagedFile {
        reason: name.unwrap_or_default(),
        description: description(stopped, versions.conflict, &own),
        base: base.as_ref().map(version),
        ours: ours.as_ref().map(version),
        theirs: theirs.as_ref().map(version),
        hunks: own.iter().map(|hunk| hunk.number).collect(),
        recorded: None,
        path,
    }
}

/// Describes a file with a conflict, and what both sides did beside it; `own` are its hunks.
fn description(stopped: &Stopped<'_>, conflict: &FileConflict, own: &[&PackagedHunk]) -> String {
    if let Some(sibling) = stopped.sibling {
        return describe_in_sibling(conflict, sibling.outdated);
    }
    let description = by_earlier(own).map(|patches| describe_by_earlier(conflict, &patches));
    description.unwrap_or_else(|| describe_conflict(conflict)) + &beside(stopped, conflict)
}

/// Describes the changes that both sides made beside the conflict, possible counters first.
fn beside(stopped: &Stopped<'_>, conflict: &FileConflict) -> String {
    // An addition: the conflict itself is reported without it too.
    let mut changes = stopped.replay.shared_beside(conflict).unwrap_or_default();
    changes.sort_by_key(|change| change.counter.is_none());
    describe_beside(&changes)
}

/// Returns the earlier patches that changed the lines of all `hunks`, each once; `None` if upstream changed some.
fn by_earlier(hunks: &[&PackagedHunk]) -> Option<Vec<String>> {
    let mut patches: Vec<String> = Vec::new();
    for hunk in hunks {
        patches.extend(hunk.changed_by.as_ref()?.iter().cloned());
    }
    patches.sort();
    patches.dedup();
    (!hunks.is_empty()).then_some(patches)
}
