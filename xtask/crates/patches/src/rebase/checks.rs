//! Checks of a patch that came back from a person or a program. They are run here, whatever the other side has run:
//! lint on the new text at once; that the new series applies exactly when it is staged (`finish.rs`). Nothing is compiled
//! or tested: `sync --since` does that, after the end.

use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::format_patch::format_series;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::work_trees::rebase_repo::RebaseRepo;
use espalier_series::{Finding, LintRules, ObjectId, Patch, lint_owners, lint_patch};

use super::place::RebasePosition;
use super::target::SeriesMove;
use crate::proof::gone_from_upstream;
use crate::report::proof_text::notes_on_gone_words;

/// Checks the patch that was committed as `commit` on top of `head`, and returns it.
pub fn recheck(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    (head, commit): (ObjectId, ObjectId),
) -> Result<Patch> {
    let new = new_text(here, repo, (head, commit))?;
    let patch = new.parse().map_err(|error| still_waits(Error { kind: Kind::Conflict, ..error }))?;
    refuse_new_findings(here, &new, &patch)?;
    Ok(patch)
}

/// Names the words of an accepted patch that upstream's code no longer has: it may not compile. What else could be wrong
/// takes a build to find.
pub fn note_gone_words(here: &RebasePosition<'_, '_>, patch: &Patch) {
    let SeriesMove { context, stack, store, tip, .. } = here.series_move;
    // An addition: the patch is accepted without it too.
    let gone = gone_from_upstream(store, [stack.pin.tree, tip.tree], patch).unwrap_or_default();
    for note in notes_on_gone_words(&gone) {
        context.ui.status("Note", note.strip_prefix("note: ").unwrap_or(&note));
    }
}

/// Returns the patch as git writes it, under its old name.
fn new_text(
    here: &RebasePosition<'_, '_>,
    repo: &RebaseRepo,
    (head, commit): (ObjectId, ObjectId),
) -> Result<PatchFile> {
    let scratch = disk::scratch_folder(&here.series_move.context.layout.scratch(), "recheck")?;
    let formatted = format_series(&repo.git_dir(), head, commit, 1, scratch.path())?;
    let text = formatted.into_iter().next().map(|formatted| formatted.bytes);
    let text = text.ok_or_else(|| Error::environment(format!("git wrote no patch for {}", here.file)))?;
    Ok(PatchFile::new(here.file.to_string(), text))
}

/// Refuses the new patch if it breaks a rule of lint that the old one keeps. Other findings are not the resolution's.
fn refuse_new_findings(here: &RebasePosition<'_, '_>, new: &PatchFile, patch: &Patch) -> Result<()> {
    let SeriesMove { context, stack, .. } = here.series_move;
    let rules = context.lint_rules()?;
    let old = stack.files.get(here.at).map_or_else(Vec::new, |old| findings(here, here.patch, old, &rules));
    let is_old = |finding: &Finding| old.iter().any(|old| old.rule == finding.rule);
    let mut found = findings(here, patch, new, &rules);
    found.retain(|finding| !is_old(finding));
    if found.is_empty() {
        return Ok(());
    }
    let what = format!("what is staged for {} breaks a rule that the patch kept before", here.file);
    let error = found.iter().fold(Error::new(Kind::Conflict, what), |error, finding| {
        error.detail(finding.message.clone()).hint(finding.hint.clone())
    });
    Err(still_waits(error))
}

fn still_waits(error: Error) -> Error {
    error.hint("change it in the work tree, `git add` the files, then: cargo xtask rebase --continue")
}

fn findings(
    here: &RebasePosition<'_, '_>,
    patch: &Patch,
    file: &PatchFile,
    rules: &LintRules,
) -> Vec<Finding> {
    let overlays = &here.series_move.stack.overlays;
    let owner = |path: &espalier_series::RepoPath| {
        let same = overlays.iter().find(|owned| owned.path.as_bytes().eq_ignore_ascii_case(path.as_bytes()));
        same.map(|owned| format!("brought by the overlay file {}", owned.from))
    };
    let mut found = lint_patch(patch, &file.bytes, rules);
    found.extend(lint_owners(patch, owner));
    found
}
