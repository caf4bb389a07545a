//! SIGKILL of every command that writes a series in place, and what the next command that only reads finds: patches,
//! lock and refs as they were, or as they shall be, together.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::support::editing::{edit, edit_folder, rebase, take_rich_series};
use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::{Project, files, git};

const POINTS: usize = 12;

/// Those that read and write nothing: each sees what a killed run had decided as done.
const READERS: [&[&str]; 6] = [
    &["lint"],
    &["apply", "--dry-run"],
    &["lint", "--fix", "--dry-run"],
    &["trailers", "--set", "Numerics: identical", "--dry-run"],
    &["new", "a: b", "--dry-run"],
    &["edit", "--dry-run"],
];

/// What belongs together: files by path, refs by name.
type State = BTreeMap<String, String>;

fn state(project: &Project) -> State {
    let of_a_person = |path: &String| !path.starts_with("target/");
    let paths = files::list(project.root()).into_iter().filter(of_a_person);
    let mut state: State = paths.map(|path| (path.clone(), project.read(&path))).collect();
    let refs = git::git(&edit_folder(project, "paged"), &["for-each-ref", "refs/espalier"]);
    state.extend(refs.lines().filter_map(|line| {
        let (id, name) = line.split_once(char::is_whitespace)?;
        Some((name.to_string(), id.to_string()))
    }));
    state
}

fn replace(folder: &Path, from: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
    files::copy_folder(from, folder);
}

/// A project with an edit repository that has work in it, on a series that is locked.
fn project() -> Project {
    let project = Project::new();
    take_rich_series(&project);
    let folder = edit(&project);
    rebase(&folder, "1h;1d;2G");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--message", "Add backwards"]);
    project
}

/// Half of the kills fall at any moment, half as soon as something is decided.
fn kill_often(name: &'static str, arguments: &[&str], prepare: fn(&Project)) {
    let project = project();
    prepare(&project);
    let start = tempfile::tempdir().unwrap();
    files::copy_folder(project.root(), start.path());
    let before = state(&project);
    let whole = kill::run_and_kill(project.command(arguments), Duration::from_secs(60));
    let after = state(&project);
    assert!(before != after, "{name} was to change something");
    let mut random = XorShift::new(0x7e57_ab1e);
    let mut kills = Kills::of(name);
    for round in 0..kill::points(POINTS) {
        replace(project.root(), start.path());
        let decided = || round % 2 == 1 && is_decided(&project);
        let limit = if round % 2 == 0 { whole.mul_f64(random.fraction()) } else { Duration::from_secs(60) };
        kills.run_until(project.command(arguments), limit, decided);
        let reader = READERS[round % READERS.len()];
        project.run(reader);
        let found = state(&project);
        let differs = |other: &State| {
            let paths = found.keys().chain(other.keys());
            paths.filter(|path| found.get(*path) != other.get(*path)).cloned().collect::<Vec<_>>()
        };
        assert!(
            found == before || found == after,
            "round {round}, {reader:?}: unlike before: {:#?}\nunlike after: {:#?}",
            differs(&before),
            differs(&after)
        );
        kills.left(if found == after { "written" } else { "as it was" });
        project.run(&["lock", "--check"]).success();
        assert_eq!(project.scratch(), [""; 0], "round {round}");
    }
}

fn is_decided(project: &Project) -> bool {
    ["pending", "pending-series/paged"].iter().any(|name| project.path("target/espalier").join(name).exists())
}

#[test]
fn export_killed() {
    kill_often("export", &["export"], |_| ());
}

#[test]
fn trailers_killed() {
    kill_often("trailers", &["trailers", "--set", "Drop-when: upstream has it"], |_| ());
}

#[test]
fn lint_fix_killed() {
    kill_often("lint --fix", &["lint", "--fix"], |project| {
        let name = |name: &str| project.path("patches/paged").join(name);
        std::fs::rename(name("0001-treble.patch"), name("0001-something-else.patch")).unwrap();
        project.run(&["lock"]).success();
    });
}
