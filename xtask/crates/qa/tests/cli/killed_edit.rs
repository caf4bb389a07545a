//! SIGKILL at random points of `edit` and `export`: nothing is lost, and the next run has the same result.

use std::path::Path;
use std::time::Duration;

use super::support::editing::{Series, edit, edit_folder, rebase, series, take_rich_series};
use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::upstream::Upstream;
use super::support::{Project, files, git};

const POINTS: usize = 13;

fn killed_at(project: &Project, arguments: &[&str], limit: Duration) -> Duration {
    kill::run_and_kill(project.command(arguments), limit)
}

fn replace(folder: &Path, from: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).unwrap();
    }
    files::copy_folder(from, folder);
}

fn assert_clean(project: &Project, context: &str) {
    let folder = edit_folder(project, "paged");
    assert_eq!(git::git(&folder, &["status", "--porcelain"]), "", "{context}");
    assert_eq!(git::git(&folder, &["fsck", "--full", "--no-dangling"]), "", "{context}");
    assert_eq!(project.scratch(), [""; 0], "{context}");
    assert!(!project.path("target/espalier/pending").exists(), "{context}");
}

/// Two series alternate, so that the repository has to be recreated each time.
#[test]
fn edit_killed_and_run_again_makes_the_same_commits() {
    let (project, rich) = (Project::new(), Project::new());
    take_rich_series(&rich);
    let turns = [Upstream::shared().series(), rich.path("patches/paged")];
    let tips = turns.each_ref().map(|from| {
        replace(&project.path("patches/paged"), from);
        git::git(&edit(&project), &["rev-parse", "HEAD"])
    });
    replace(&project.path("patches/paged"), &turns[0]);
    let whole = killed_at(&project, &["edit"], Duration::from_secs(60));
    let mut random = XorShift::new(0x5eed_0123_4567_89ab);
    let mut kills = Kills::of("edit");
    for point in 0..kill::points(POINTS) {
        let turn = (point + 1) % 2;
        replace(&project.path("patches/paged"), &turns[turn]);
        let limit = whole.mul_f64(random.fraction());
        kills.run(project.command(&["edit"]), limit);
        let context = format!("edit killed after {limit:?} of {whole:?}");
        let output = project.run(&["edit"]);
        assert_eq!(output.code, Some(0), "{context}: {output}");
        let folder = edit_folder(&project, "paged");
        assert_eq!(git::git(&folder, &["rev-parse", "HEAD"]), tips[turn], "{context}");
        assert_clean(&project, &context);
    }
}

/// Moments of microseconds, which random kills rarely hit: a partially written temporary file beside the complete one.
#[test]
fn a_file_half_written_in_the_edit_repository_is_swept() {
    let project = Project::new();
    let folder = edit(&project);
    for half in [".git/.espalier-tmp-abc", ".git/info/.espalier-tmp-abc"] {
        files::write(&folder.join(half), "half");
        project.run(&["edit"]).success();
        assert_clean(&project, half);
    }
}

/// The initial state of an export: an edit repository with work in it, the series and the lock.
struct Start {
    folder: tempfile::TempDir,
    wanted: Series,
}

impl Start {
    fn new(project: &Project) -> Start {
        take_rich_series(project);
        project.run(&["lock"]).success();
        let edited = edit(project);
        rebase(&edited, "1h;1d;2G");
        files::edit(&edited.join("src/add.c"), "left + right", "right + left");
        git::git(&edited, &["commit", "--quiet", "--all", "--amend", "--message", "Add backwards"]);
        let folder = tempfile::tempdir().unwrap();
        files::copy_folder(&edited, &folder.path().join("edit"));
        files::copy_folder(&project.path("patches"), &folder.path().join("patches"));
        std::fs::copy(project.path("espalier.lock"), folder.path().join("lock")).unwrap();
        project.run(&["export"]).success();
        Start { folder, wanted: series(project) }
    }

    fn restore(&self, project: &Project) {
        let from = |name: &str| self.folder.path().join(name);
        replace(&edit_folder(project, "paged"), &from("edit"));
        replace(&project.path("patches"), &from("patches"));
        std::fs::copy(from("lock"), project.path("espalier.lock")).unwrap();
    }
}

#[test]
fn export_killed_and_run_again_gives_the_same_series() {
    let project = Project::new();
    let start = Start::new(&project);
    start.restore(&project);
    let whole = killed_at(&project, &["export"], Duration::from_secs(60));
    assert_eq!(series(&project), start.wanted);
    let mut random = XorShift::new(0x0dd_5eed_4567_89ab);
    let mut kills = Kills::of("export");
    for point in 0..kill::points(POINTS) {
        start.restore(&project);
        let limit = whole.mul_f64(random.fraction());
        kills.run(project.command(&["export"]), limit);
        let context = format!("export killed after {limit:?} of {whole:?}");
        // Any of these commands completes a decided change, or leaves everything as it was.
        let next = [&["export"][..], &["edit"], &["apply", "--check"]][point % 3];
        let output = project.run(next);
        assert!(matches!(output.code, Some(0 | 4)), "{context}, {next:?}: {output}");
        kills.left(if series(&project) == start.wanted { "written" } else { "as it was" });
        project.run(&["export"]).success();
        assert_eq!(series(&project), start.wanted, "{context}");
        project.run(&["lock", "--check"]).success();
        assert!(project.run(&["export"]).success().stdout.contains("nothing changed"), "{context}");
        project.run(&["edit"]).success();
        assert_clean(&project, &context);
    }
}
