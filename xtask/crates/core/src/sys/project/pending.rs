//! The only code that changes patches, pins, lock and refs, as one transaction: all of it or nothing.
//!
//! The new files are collected in a [stage](super::stage). Renaming it is the commit point: before it nothing has
//! changed, after it the change will be finished, by this run or by the next one that takes the run lock. No command
//! begins before a committed change is finished: the context of a command holds a
//! [`Settled`](super::recovery::Settled), which only `settle` creates. Once it is finished, its folder becomes the
//! record from which [`undo`](super::undo) restores the state before it.

use std::path::Path;

use espalier_series::ObjectId;

use super::inputs::is_patch;
use super::record;
use crate::config::layout::{Layout, UNDO};
use crate::error::{Error, Kind, Result};
use crate::next_command::quoted;
use crate::plan::pending::{Finish, Pending, PendingRef};
use crate::sys::machine::{disk, owned};
use crate::sys::work_trees::edit_repo::EditRepo;
use crate::ui::Ui;

/// Commits and performs the change whose files are in `stage`. The caller holds the run lock.
pub(super) fn commit(layout: &Layout, stage: &Path, pending: &Pending) -> Result<()> {
    refuse_changed(layout, stage, pending)?;
    let pending = record::write(layout, stage, pending)?;
    owned::rename(stage, &layout.pending())?;
    finish(layout, &pending)
}

/// As [`commit`], as a part of the last change, `last`, whose files are as it left them: one undo takes back both.
pub(super) fn commit_with(layout: &Layout, stage: &Path, pending: &Pending, last: &Pending) -> Result<()> {
    refuse_changed(layout, stage, pending)?;
    let pending = record::write(layout, stage, pending)?;
    let both = record::join(layout, stage, last, &pending)?;
    owned::rename(stage, &layout.pending())?;
    finish(layout, &both)
}

/// Verifies that neither the staged files nor those that the change replaces were changed since.
fn refuse_changed(layout: &Layout, stage: &Path, pending: &Pending) -> Result<()> {
    refuse_damaged(stage, pending)?;
    let changed = changed_meanwhile(layout, pending)?;
    if !changed.is_empty() {
        return Err(Error::new(Kind::Conflict, format!("{} was changed meanwhile", pending.describe()))
            .detail(changed.join("\n"))
            .detail("nothing was written")
            .hint("run the same command again"));
    }
    Ok(())
}

/// Finishes the change that a killed run had committed to. The caller has just taken the run lock.
pub(super) fn finish_interrupted(layout: &Layout, ui: &Ui) -> Result<()> {
    let folder = layout.pending();
    if !disk::exists(&folder) {
        return Ok(());
    }
    let pending = record::read(&folder)?;
    for path in pending.files.iter().map(|file| layout.root().join(&file.path)) {
        // A run that was killed while writing here left its temporary file.
        let folder = path.parent().unwrap_or(layout.root());
        owned::sweep_temporary(folder)?;
    }
    // Every file is checked before the first is written: a change that cannot be finished is not begun.
    let changed = changed_meanwhile(layout, &pending)?;
    if !changed.is_empty() {
        return Err(waits(layout, &pending, &changed));
    }
    ui.status("Finishing", format!("{}, which was interrupted", pending.describe()));
    finish(layout, &pending)
}

fn finish(layout: &Layout, pending: &Pending) -> Result<()> {
    let folder = layout.pending();
    for file in pending.changes() {
        let target = layout.root().join(&file.path);
        match &file.new {
            None => disk::remove_file(&target)?,
            Some(_) => {
                disk::write_if_changed(&target, &disk::read(&folder.join(&file.path))?)?;
            }
        }
    }
    pending.refs.iter().try_for_each(|moved| move_ref(layout, moved))?;
    for variant in &pending.offers_taken {
        let repo = EditRepo::open(&layout.edit(variant), variant)?;
        repo.map_or(Ok(()), |repo| repo.offer_message(&layout.scratch(), None))?;
    }
    for path in &pending.remove_folders {
        owned::remove_folder(&layout.generated().join(path))?;
    }
    put_away(layout, pending)
}

/// Makes the finished change the one that can be undone, unless it changed no file. Folders are renamed before they are
/// removed, so that a half-removed one is never mistaken for a committed change.
fn put_away(layout: &Layout, pending: &Pending) -> Result<()> {
    let away = disk::scratch_folder(&layout.scratch(), "finished")?;
    if pending.changes().next().is_none() {
        return owned::rename(&layout.pending(), &away.path().join("finished"));
    }
    if disk::exists(&layout.undo()) {
        owned::rename(&layout.undo(), &away.path().join(UNDO))?;
    }
    owned::rename(&layout.pending(), &layout.undo())
}

/// The edit repository may have been removed since: then there is no ref to move.
fn move_ref(layout: &Layout, moved: &PendingRef) -> Result<()> {
    let repo = EditRepo::open(&layout.edit(&moved.variant), &moved.variant)?;
    let id = moved.id.parse::<ObjectId>().ok();
    repo.zip(id).map_or(Ok(()), |(repo, id)| repo.set_ref(&moved.name, id))
}

/// Verifies that the staged files are the ones that were checked, even if the run lock was free meanwhile.
fn refuse_damaged(stage: &Path, pending: &Pending) -> Result<()> {
    for file in &pending.files {
        if disk::digest_if_there(&stage.join(&file.path))? != file.new {
            return Err(Error::new(
                Kind::Conflict,
                format!("another command replaced the staged files of {}", pending.describe()),
            )
            .detail("nothing was written")
            .hint("run the same command again"));
        }
    }
    Ok(())
}

/// Returns, by path, files that changed since they were read, and patches in an exact folder that were never read.
fn changed_meanwhile(layout: &Layout, pending: &Pending) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for file in &pending.files {
        let found = disk::digest_if_there(&layout.root().join(&file.path))?;
        if file.finish(found.as_deref()) == Finish::Refuse {
            changed.push(file.path.clone());
        }
    }
    changed.extend(patches_added(layout, pending)?);
    Ok(changed)
}

/// Returns the patches in an exact folder that are not in `pending`.
pub(super) fn patches_added(layout: &Layout, pending: &Pending) -> Result<Vec<String>> {
    let mut added = Vec::new();
    for folder in &pending.exact_folders {
        let path = layout.root().join(folder);
        let found = if disk::exists(&path) { disk::files_below(&path)? } else { Vec::new() };
        let patches = found.iter().filter(|file| is_patch(file));
        let paths = patches.map(|file| format!("{folder}/{}", file.display()));
        added.extend(paths.filter(|path| !pending.files.iter().any(|file| file.path == *path)));
    }
    Ok(added)
}

fn waits(layout: &Layout, pending: &Pending, changed: &[String]) -> Error {
    let what = format!("{} was interrupted, and files of it were changed since", pending.describe());
    let error = Error::new(Kind::Conflict, what)
        .detail(changed.join("\n"))
        .detail("it has to be finished first, and would overwrite them");
    let error = changed.iter().fold(error, |error, path| {
        let is_new = !pending.files.iter().any(|file| file.path == *path);
        let place = layout.root().join(path);
        let [aside, yours] = [&record::aside(&place), &place].map(|path| quoted(&layout.show(path)));
        let back = if is_new { String::new() } else { format!(" && git checkout {yours}") };
        error.hint(format!("keep yours: mv {yours} {aside}{back}    # then run any command"))
    });
    error.hint(format!(
        "or forget the unfinished change: rm -rf {}    # then look at `git status`",
        quoted(&layout.show(&layout.pending()))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::project::record::MARKER;
    use crate::sys::project::stage::Stage;
    use crate::sys::project::testing::TestProject;
    use crate::ui::Talk;

    const OLD: [&str; 3] = ["page=old", "patches/1.patch=one", "patches/2.patch=two"];
    const NEW: [&str; 4] = ["page=new", "patches/1.patch=new", "patches/3.patch=one", "patches/4.patch=four"];

    impl TestProject {
        /// Stages a change that makes the series three patches long and changes the page.
        fn stage(&self) -> Stage {
            self.stage_series([("1", "new"), ("3", "one"), ("4", "four")])
        }

        /// Creates a project with a change that is committed but not yet performed.
        fn decided() -> TestProject {
            let project = TestProject::with(&OLD);
            let stage = project.stage();
            let pending = stage.pending("a test".to_string());
            let marker = serde_json::to_vec(&pending).unwrap();
            disk::write_atomically(&stage.layout().pins().with_file_name(MARKER), &marker).unwrap();
            owned::rename(&project.layout.scratch().join("stage"), &project.layout.pending()).unwrap();
            project
        }

        fn settle(&self) -> Result<crate::sys::project::recovery::Settled> {
            crate::sys::project::recovery::settle(&self.layout, &Ui::new(Talk::Quiet))
        }
    }

    #[test]
    fn all_of_it_changes_or_nothing() {
        let project = TestProject::with(&OLD);
        drop(project.stage());
        assert_eq!(project.found(), OLD);
        project.stage().commit("a test".to_string()).unwrap();
        assert_eq!(project.found(), NEW);
        assert!(
            !disk::exists(&project.layout.pending())
                && !disk::exists(&project.layout.scratch().join("stage"))
        );
    }

    #[test]
    fn cut_short_at_any_file_it_is_finished() {
        let steps: [fn(&TestProject); 6] = [
            |project| project.write("page", "new"),
            |project| project.write("patches/1.patch", "new"),
            |project| project.write("patches/3.patch", "one"),
            |project| project.write(&format!("patches/{}x", disk::TEMPORARY_PREFIX), "fo"),
            |project| project.write("patches/4.patch", "four"),
            |project| disk::remove_file(&project.layout.root().join("patches/2.patch")).unwrap(),
        ];
        for count in 0..=steps.len() {
            let project = TestProject::decided();
            steps[..count].iter().for_each(|step| step(&project));
            project.settle().unwrap();
            assert_eq!(project.found(), NEW);
            assert!(!disk::exists(&project.layout.pending()));
        }
    }

    #[test]
    fn concurrent_edits_of_a_user_are_not_overwritten() {
        for path in ["page", "patches/1.patch", "patches/4.patch", "patches/5.patch"] {
            let project = TestProject::decided();
            project.write(path, "mine");
            let before = project.found();
            let error = project.settle().unwrap_err();
            assert_eq!(error.kind, Kind::Conflict);
            assert!(error.to_string().contains(&format!("mv {path} {path}.mine")), "{error}");
            assert_eq!(project.found(), before);
            project.write(&format!("{path}.mine"), "kept");
            let error = project.settle().unwrap_err().to_string();
            assert!(error.contains(&format!("mv {path} {path}.mine2")), "{error}");
            disk::remove_file(&project.layout.root().join(format!("{path}.mine"))).unwrap();
            let old = OLD.iter().find_map(|old| old.strip_prefix(&format!("{path}=")));
            match old {
                Some(text) => project.write(path, text),
                None => disk::remove_file(&project.layout.root().join(path)).unwrap(),
            }
            project.settle().unwrap();
            assert_eq!(project.found(), NEW);
        }
    }

    #[test]
    fn edits_before_the_commit_point_are_refused_and_nothing_is_pending() {
        let changes: [fn(&TestProject); 4] = [
            |project| project.write("page", "mine"),
            |project| project.write("patches/2.patch", "mine"),
            |project| project.write("patches/5.patch", "mine"),
            |project| project.write("target/espalier/tmp/stage/page", "another command's"),
        ];
        for change in changes {
            let project = TestProject::with(&OLD);
            let stage = project.stage();
            change(&project);
            let before = project.found();
            let error = stage.commit("a test".to_string()).unwrap_err();
            assert_eq!(error.kind, Kind::Conflict);
            assert_eq!(project.found(), before);
            project.settle().unwrap();
            assert_eq!(project.found(), before, "{error}");
        }
    }

    #[test]
    fn a_record_that_leads_out_of_the_project_is_refused() {
        let project = TestProject::decided();
        let marker = project.layout.pending().join(MARKER);
        let text = disk::read_text(&marker).unwrap().replace("\"page\"", "\"../page\"");
        disk::write_atomically(&marker, text.as_bytes()).unwrap();
        assert!(project.settle().unwrap_err().to_string().contains("it names `../page`"));
        assert_eq!(project.found(), OLD);
    }
}
