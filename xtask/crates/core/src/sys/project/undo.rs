//! The record of the last change, and its undo.
//!
//! [`pending`] keeps the record of the last change, with the files that it replaced. An undo is another change, the
//! reverse of that one: all of it or nothing, and recorded itself, so that it can be undone in turn.

use std::collections::BTreeSet;
use std::path::Path;

use espalier_series::ObjectId;

use super::pending;
use super::record::{self, aside, saved};
use crate::config::layout::Layout;
use crate::config::name::Name;
use crate::error::{Error, Kind, Result};
use crate::next_command::quoted;
use crate::plan::pending::{Pending, PendingRef};
use crate::sys::machine::disk;
use crate::sys::work_trees::edit_repo::EditRepo;

/// The undo of the last change; if that is an undo itself, the change is made again.
#[derive(Debug)]
pub struct Undo {
    /// The change that restores the files and refs.
    pub pending: Pending,
    /// Variants whose edit repository stays as it is, because it was changed since.
    pub edits_left: BTreeSet<Name>,
}

impl Undo {
    /// Prepares the undo of the last change.
    ///
    /// # Errors
    ///
    /// There is no such change, or a file of it was changed since.
    pub fn prepare(layout: &Layout) -> Result<Undo> {
        let record = layout.undo();
        if !disk::exists(&record) {
            return Err(nothing_recorded(layout));
        }
        let done = record::read(&record)?;
        let changed = changed_since(layout, &done)?;
        if !changed.is_empty() {
            return Err(refusal(layout, &done, &changed)?);
        }
        let mut pending = done.reversed();
        refuse_incomplete(&record, &pending)?;
        let is_left = |moved: &&PendingRef| !is_movable(layout, moved);
        let edits_left: BTreeSet<Name> =
            pending.refs.iter().filter(is_left).map(|moved| moved.variant.clone()).collect();
        pending.refs.retain(|moved| !edits_left.contains(&moved.variant));
        Ok(Undo { pending, edits_left })
    }

    /// Whether the record of the last change is still needed: by an undo, or by the commands of a refusal, which copy
    /// the files from it.
    pub fn needs_record(layout: &Layout) -> bool {
        match Undo::prepare(layout) {
            Ok(_) => true,
            Err(error) => error.kind == Kind::Conflict,
        }
    }

    /// Restores the files and refs: all of them or none. The caller holds the run lock.
    ///
    /// # Errors
    ///
    /// Of kind `Conflict` when a file was changed since it was prepared; nothing has changed then.
    pub fn perform(&self, layout: &Layout) -> Result<()> {
        let stage = disk::scratch_folder(&layout.scratch(), "undo")?;
        for file in self.pending.files.iter().filter(|file| file.new.is_some()) {
            let bytes = disk::read(&saved(&layout.undo(), file))?;
            disk::write_atomically(&stage.path().join(&file.path), &bytes)?;
        }
        pending::commit(layout, stage.path(), &self.pending)
    }
}

/// Returns the last change if its record is complete and every file is as the change left it.
pub(super) fn last_as_it_was_left(layout: &Layout) -> Result<Option<Pending>> {
    let folder = layout.undo();
    if !disk::exists(&folder) {
        return Ok(None);
    }
    // `undo` reports a damaged record.
    let Ok(done) = record::read(&folder) else { return Ok(None) };
    let is_complete = refuse_incomplete(&folder, &done.reversed()).is_ok();
    Ok((is_complete && changed_since(layout, &done)?.is_empty()).then_some(done))
}

fn nothing_recorded(layout: &Layout) -> Error {
    let record = layout.show(&layout.undo());
    Error::usage("there is nothing to undo")
        .detail(format!(
            "no change is recorded in `{record}`: the last one is, until `gc` removes a stale record"
        ))
        .hint("revert what is committed with git: git log --oneline")
}

/// Returns, by path, files that are not as the change `done` left them, and patches that were added to its folders.
fn changed_since(layout: &Layout, done: &Pending) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for file in &done.files {
        if disk::digest_if_there(&layout.root().join(&file.path))? != file.new {
            changed.push(file.path.clone());
        }
    }
    changed.extend(pending::patches_added(layout, done)?);
    Ok(changed)
}

fn refusal(layout: &Layout, done: &Pending, changed: &[String]) -> Result<Error> {
    let what = done.describe();
    if is_as_before(layout, done)? {
        return Ok(Error::usage(format!(
            "there is nothing to undo: the files are as they were before {what}"
        )));
    }
    let error = Error::new(Kind::Conflict, format!("files of {what} were changed since; nothing was undone"))
        .detail(changed.join("\n"));
    Ok(changed.iter().fold(error, |error, path| {
        let restore = restore_command(layout, done, path);
        error.hint(format!("put back what it wrote, and keep yours: {restore}    # then: cargo xtask undo"))
    }))
}

/// Whether every file of the change was restored by other means, such as `git checkout`.
fn is_as_before(layout: &Layout, done: &Pending) -> Result<bool> {
    for file in done.changes() {
        if disk::digest_if_there(&layout.root().join(&file.path))? != file.old {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the shell command that gives the file at `path` the content that the change wrote, from the record.
fn restore_command(layout: &Layout, done: &Pending, path: &str) -> String {
    let place = layout.root().join(path);
    let aside = layout.show(&aside(&place));
    let yours = layout.show(&place);
    let written = layout.show(&layout.undo().join(path));
    let is_written = done.files.iter().any(|file| file.path == path && file.new.is_some());
    let folder = place.parent().filter(|folder| is_written && !disk::exists(folder));
    let folder = folder.map(|folder| format!("mkdir -p {}", quoted(&layout.show(folder))));
    let [aside, yours, written] = [aside, yours, written].map(|path| quoted(&path));
    let keep = disk::exists(&place).then(|| format!("mv {yours} {aside}"));
    let restore = is_written.then(|| format!("cp {written} {yours}"));
    folder.into_iter().chain(keep).chain(restore).collect::<Vec<_>>().join(" && ")
}

/// Verifies that the record has everything that the undo writes.
fn refuse_incomplete(record: &Path, undo: &Pending) -> Result<()> {
    for file in undo.files.iter().filter(|file| file.new.is_some()) {
        if disk::digest_if_there(&saved(record, file))? != file.new {
            return Err(record::damaged(record, format!("`{}` is not in it as it was saved", file.path)));
        }
    }
    Ok(())
}

/// Whether a ref can be moved by an undo: it is where the change moved it, and the repository still has the commit that
/// it pointed to before. A repository that was removed has no refs to move.
fn is_movable(layout: &Layout, moved: &PendingRef) -> bool {
    let Ok(repo) = EditRepo::open(&layout.edit(&moved.variant), &moved.variant) else { return false };
    let Some(repo) = repo else { return true };
    let now = repo.ref_target(&moved.name).map(|id| id.to_string());
    let has_commit = moved.id.parse::<ObjectId>().is_ok_and(|id| repo.has_commit(id));
    now == moved.old && has_commit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::project::record::OLD;
    use crate::sys::project::stage::Stage;
    use crate::sys::project::testing::TestProject;

    const OLD_FILES: [&str; 4] =
        ["page=old", "patches/1.patch=one", "patches/2.patch=two", "patches/3.patch=3"];
    const NEW_FILES: [&str; 4] =
        ["page=new", "patches/1.patch=new", "patches/3.patch=3", "patches/4.patch=four"];

    impl TestProject {
        /// Creates a project after a change of a page and a series: a patch is changed, one is removed, one stays, and
        /// one is added.
        fn changed() -> TestProject {
            let project = TestProject::with(&OLD_FILES);
            let stage = project.stage_series([("1", "new"), ("3", "3"), ("4", "four")]);
            stage.commit("a test".to_string()).unwrap();
            assert_eq!(project.found(), NEW_FILES);
            project
        }

        fn undo(&self) -> Result<()> {
            Undo::prepare(&self.layout)?.perform(&self.layout)
        }
    }

    #[test]
    fn an_undo_restores_everything_and_a_second_one_makes_the_change_again() {
        let project = TestProject::changed();
        for round in 0..3 {
            let undo = Undo::prepare(&project.layout).unwrap();
            assert_eq!((undo.pending.what.as_str(), undo.pending.is_undo), ("a test", true), "{round}");
            undo.perform(&project.layout).unwrap();
            assert_eq!(project.found(), OLD_FILES);
            assert!(!Undo::prepare(&project.layout).unwrap().pending.is_undo);
            project.undo().unwrap();
            assert_eq!(project.found(), NEW_FILES);
        }
        assert!(disk::files_below(&project.layout.scratch()).unwrap().is_empty());
    }

    #[test]
    fn every_file_that_was_changed_since_is_named_and_nothing_is_lost() {
        for path in [
            "page",
            "patches/1.patch",
            "patches/2.patch",
            "patches/3.patch",
            "patches/4.patch",
            "patches/5.patch",
        ] {
            let project = TestProject::changed();
            project.write(path, "mine");
            let before = project.found();
            let error = project.undo().unwrap_err();
            assert_eq!(error.kind, Kind::Conflict);
            assert!(error.details.contains(&path.to_string()), "{error}");
            assert!(error.to_string().contains(&format!("mv {path} {path}.mine")), "{error}");
            assert_eq!(project.found(), before);
        }
        let project = TestProject::changed();
        disk::remove_file(&project.layout.root().join("page")).unwrap();
        let error = project.undo().unwrap_err().to_string();
        assert!(error.contains(": cp target/espalier/undo/page page    # then"), "{error}");
        std::fs::remove_dir_all(project.layout.root().join("patches")).unwrap();
        let error = project.undo().unwrap_err().to_string();
        let command = "mkdir -p patches && cp target/espalier/undo/patches/4.patch patches/4.patch    # then";
        assert!(error.contains(command), "{error}");
    }

    /// A file that was moved aside before is not overwritten by the next one.
    #[test]
    fn a_file_that_was_moved_aside_is_kept() {
        let project = TestProject::changed();
        project.write("page", "mine");
        for (kept, next) in [("page.mine", "page.mine2"), ("page.mine2", "page.mine3")] {
            project.write(kept, "kept");
            let error = project.undo().unwrap_err().to_string();
            assert!(
                error.contains(&format!(": mv page {next} && cp target/espalier/undo/page page ")),
                "{error}"
            );
        }
    }

    #[test]
    fn without_a_change_there_is_nothing_to_undo() {
        let project = TestProject::with(&OLD_FILES);
        assert!(project.undo().unwrap_err().to_string().contains("there is nothing to undo\n"));
        let project = TestProject::changed();
        for file in OLD_FILES {
            let (path, text) = file.split_once('=').unwrap();
            project.write(path, text);
        }
        disk::remove_file(&project.layout.root().join("patches/4.patch")).unwrap();
        let error = project.undo().unwrap_err().to_string();
        assert!(
            error.contains("there is nothing to undo: the files are as they were before a test"),
            "{error}"
        );
    }

    #[test]
    fn only_the_last_change_is_recorded_and_one_without_effect_is_none() {
        let project = TestProject::changed();
        let page = |text: &str| {
            let mut stage = Stage::begin(&project.layout).unwrap();
            stage.write("page", text.as_bytes()).unwrap();
            stage.commit(format!("the page {text}")).unwrap();
        };
        page("newest");
        page("newest");
        let record = disk::files_below(&project.layout.undo()).unwrap();
        let names: Vec<String> = record.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(names, [".espalier-old/page", "page", "pending.json"]);
        project.undo().unwrap();
        assert_eq!(project.found(), NEW_FILES);
    }

    fn write_report(project: &TestProject, text: &str) {
        let mut stage = Stage::begin(&project.layout).unwrap();
        stage.write("report", text.as_bytes()).unwrap();
        stage.commit_with_last("the report".to_string()).unwrap();
    }

    #[test]
    fn a_report_on_the_last_change_is_undone_with_it() {
        let project = TestProject::changed();
        // The second one replaces the first.
        for text in ["first", "second"] {
            write_report(&project, text);
            let report = format!("report={text}");
            assert_eq!(project.found(), [&NEW_FILES[..], &[report.as_str()]].concat());
        }
        for _ in 0..2 {
            let undo = Undo::prepare(&project.layout).unwrap();
            assert_eq!((undo.pending.what.as_str(), undo.pending.is_undo), ("a test", true));
            undo.perform(&project.layout).unwrap();
            assert_eq!(project.found(), OLD_FILES);
            project.undo().unwrap();
            assert_eq!(project.found(), [&NEW_FILES[..], &["report=second"]].concat());
        }
        assert!(disk::files_below(&project.layout.scratch()).unwrap().is_empty());
    }

    #[test]
    fn a_report_written_after_other_changes_is_a_change_of_its_own() {
        let project = TestProject::changed();
        project.write("page", "mine");
        let before = project.found();
        write_report(&project, "new");
        assert_eq!(Undo::prepare(&project.layout).unwrap().pending.what, "the report");
        project.undo().unwrap();
        assert_eq!(project.found(), before);
        // So is the first change.
        let project = TestProject::with(&OLD_FILES);
        write_report(&project, "new");
        project.undo().unwrap();
        assert_eq!(project.found(), OLD_FILES);
    }

    #[test]
    fn a_damaged_record_is_not_restored() {
        let project = TestProject::changed();
        let saved = project.layout.undo().join(OLD).join("page");
        disk::write_atomically(&saved, b"odd").unwrap();
        let error = project.undo().unwrap_err().to_string();
        assert!(error.contains("the record of the last change is damaged\n  `page` is not in it"), "{error}");
        assert_eq!(project.found(), NEW_FILES);
    }
}
