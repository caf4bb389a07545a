//! SIGKILL of every command that writes in place, and what the next read-only command finds: patches, lock, refs and
//! the message that `git commit` offers, all old or all new. Run again, the command has the same result.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::support::editing::{edit, edit_folder, offered_message, rebase, take_rich_series};
use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::{Project, files, git};

const POINTS: usize = 6;

/// Read-only commands: each sees the decided change of a killed run as done.
const READERS: [&[&str]; 6] = [
    &["lint"],
    &["apply", "--dry-run"],
    &["lint", "--fix", "--dry-run"],
    &["trailers", "--set", "Numerics: identical", "--dry-run"],
    &["new", "a: b", "--dry-run"],
    &["edit", "--dry-run"],
];

/// State that must be consistent: files by path, refs by name, and the message that `git commit` offers.
type State = BTreeMap<String, String>;

fn state(project: &Project) -> State {
    // The next command that takes the lock removes partially written temporary files.
    let of_a_person = |path: &String| !path.starts_with("target/") && !path.contains(".espalier-tmp-");
    let paths = files::list(project.root()).into_iter().filter(of_a_person);
    let mut state: State = paths.map(|path| (path.clone(), project.read(&path))).collect();
    let refs = git::git(&edit_folder(project, "paged"), &["for-each-ref", "refs/espalier"]);
    state.extend(refs.lines().filter_map(|line| {
        let (id, name) = line.split_once(char::is_whitespace)?;
        Some((name.to_string(), id.to_string()))
    }));
    state.extend(offered_message(project).map(|message| ("offered".to_string(), message)));
    state
}

fn replace(folder: &Path, from: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
    files::copy_folder(from, folder);
}

/// Creates a project with an edit repository that has work in it, on a locked series.
fn project() -> Project {
    let project = Project::new();
    take_rich_series(&project);
    let folder = edit(&project);
    rebase(&folder, "1h;1d;2G");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--message", "Add backwards"]);
    project
}

/// A command with its initial state.
struct Writer {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Changes the common project before the first run.
    prepare: fn(&Project),
    /// Whether a run has reached the point where something is changed or decided.
    is_decided: fn(&Project) -> bool,
    /// Whether a second run leaves the result of the first as it is.
    is_repeatable: bool,
}

impl Writer {
    /// Half of the kills are at any moment, half as soon as something is decided.
    fn kill_often(&self) {
        let project = project();
        (self.prepare)(&project);
        let start = tempfile::tempdir().unwrap();
        files::copy_folder(project.root(), start.path());
        let before = state(&project);
        let whole = kill::run_and_kill(project.command(self.arguments), Duration::from_secs(60));
        let after = state(&project);
        assert!(before != after, "{} was to change something", self.name);
        let mut random = XorShift::new(0x7e57_ab1e);
        let mut kills = Kills::of(self.name);
        for round in 0..kill::points(POINTS) {
            replace(project.root(), start.path());
            let decided = || round % 2 == 1 && (self.is_decided)(&project);
            let limit =
                if round % 2 == 0 { whole.mul_f64(random.fraction()) } else { Duration::from_secs(60) };
            kills.run_until(project.command(self.arguments), limit, decided);
            let reader = READERS[round % READERS.len()];
            project.run(reader);
            let found = state(&project);
            assert!(
                found == before || found == after,
                "round {round}, {reader:?}: unlike before: {:#?}\nunlike after: {:#?}",
                differences(&found, &before),
                differences(&found, &after)
            );
            kills.left(if found == after { "written" } else { "as it was" });
            if self.is_repeatable || found != after {
                // `lint --fix` also reports findings that it cannot fix.
                assert!(matches!(project.run(self.arguments).code, Some(0 | 1)), "round {round}, run again");
            } else {
                // Killed once it had written, it may have left scratch files, which the next writer removes.
                project.run(&["lock"]).success();
            }
            let found = state(&project);
            assert!(found == after, "round {round}, run again: {:#?}", differences(&found, &after));
            project.run(&["lock", "--check"]).success();
            assert_eq!(project.scratch(), [""; 0], "round {round}");
        }
    }
}

fn differences(found: &State, other: &State) -> Vec<String> {
    let paths = found.keys().chain(other.keys());
    paths.filter(|path| found.get(*path) != other.get(*path)).cloned().collect()
}

/// Whether a transaction's change is pending.
fn is_pending(project: &Project) -> bool {
    project.path("target/espalier/pending").exists()
}

fn has_lock(project: &Project) -> bool {
    project.path("espalier.lock").exists()
}

fn without_lock(project: &Project) {
    std::fs::remove_file(project.path("espalier.lock")).unwrap();
}

#[test]
fn export_killed() {
    let arguments = &["export"];
    Writer { name: "export", arguments, prepare: |_| (), is_decided: is_pending, is_repeatable: true }
        .kill_often();
}

#[test]
fn trailers_killed() {
    let arguments = &["trailers", "--set", "Drop-when: upstream has it"];
    Writer { name: "trailers", arguments, prepare: |_| (), is_decided: is_pending, is_repeatable: true }
        .kill_often();
}

#[test]
fn lint_fix_killed() {
    let prepare = |project: &Project| {
        let name = |name: &str| project.path("patches/paged").join(name);
        std::fs::rename(name("0001-treble.patch"), name("0001-something-else.patch")).unwrap();
        project.run(&["lock"]).success();
    };
    Writer {
        name: "lint --fix",
        arguments: &["lint", "--fix"],
        prepare,
        is_decided: is_pending,
        is_repeatable: true,
    }
    .kill_often();
}

#[test]
fn new_killed() {
    let arguments = &["new", "words: greet otherwise"];
    let is_decided =
        |project: &Project| edit_folder(project, "paged").join(".git/espalier-commit-template").exists();
    Writer { name: "new", arguments, prepare: |_| (), is_decided, is_repeatable: true }.kill_often();
}

#[test]
fn lock_killed() {
    Writer {
        name: "lock",
        arguments: &["lock"],
        prepare: without_lock,
        is_decided: has_lock,
        is_repeatable: true,
    }
    .kill_often();
}

#[test]
fn apply_killed() {
    let prepare = |project: &Project| project.write("overlay/extra/espalier/note.txt", "another one\n");
    let is_decided = |project: &Project| project.tree("paged").exists();
    Writer { name: "apply", arguments: &["apply"], prepare, is_decided, is_repeatable: true }.kill_often();
}

/// A second run would make the undone export again.
#[test]
fn undo_killed() {
    let prepare = |project: &Project| drop(project.run(&["export"]).success());
    let arguments = &["undo"];
    Writer { name: "undo", arguments, prepare, is_decided: is_pending, is_repeatable: false }.kill_often();
}
