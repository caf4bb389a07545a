//! SIGKILL at random points of `import` and `init`.

use std::time::Duration;

use super::support::importing::{NOT_SAID, empty_project, fork};
use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::upstream::{TAG, Upstream};
use super::support::{Project, files};

#[test]
fn a_killed_import_is_complete_or_absent() {
    let project = empty_project();
    let fork = fork(&project);
    let mut arguments =
        vec!["import", "--from", fork.to_str().unwrap(), "upstream/main..main", "--variant", "my"];
    arguments.extend(NOT_SAID.iter().flat_map(|path| ["--leave-out", path]));
    // Files are written only at the end, so half of the kills are placed right after the decision.
    let decided = || project.path("target/espalier/pending").exists();
    let wanted = kill_often("import", &project, &arguments, 8, decided);
    assert_eq!(wanted.len(), 40, "attributes, pins, lock and 37 patches: {wanted:#?}");
}

#[test]
fn a_killed_init_is_complete_or_absent() {
    let project = empty_project();
    let upstream = Upstream::shared().repository();
    let arguments = ["init", "--from", upstream.to_str().unwrap(), "--at", TAG, "--variant", "my"];
    let decided = || project.path("target/espalier/pending").exists();
    let wanted = kill_often("init", &project, &arguments, 4, decided);
    assert_eq!(names(&wanted), [".gitattributes", "pins.toml"]);
}

/// After a kill at any point, the next command finds the complete result or none of it. Returns the complete result.
fn kill_often(
    name: &'static str,
    project: &Project,
    arguments: &[&str],
    points: usize,
    is_decided: impl Fn() -> bool,
) -> Files {
    let whole = kill::run_and_kill(project.command(arguments), Duration::from_secs(120));
    let wanted = committed(project);
    let mut random = XorShift::new(0x1a_5eed);
    let mut seen = [0, 0];
    let mut kills = Kills::of(name);
    for round in 0..kill::points(points) {
        forget(project);
        let limit = if round % 2 == 0 { whole.mul_f64(random.fraction()) } else { Duration::from_secs(120) };
        kills.run_until(project.command(arguments), limit, || round % 2 == 1 && is_decided());
        // Any command completes a decided change.
        project.run(&["lint"]);
        let found = committed(project);
        assert!(found.is_empty() || found == wanted, "round {round}: {:#?}", names(&found));
        seen[usize::from(found == wanted)] += 1;
        kills.left(if found.is_empty() { "nothing" } else { "all of it" });
        if found.is_empty() {
            project.run(arguments).success();
            assert!(committed(project) == wanted, "round {round}: run again");
        }
        // A command that holds the exclusive lock removes what a killed run left.
        project.run(&["lock"]).success();
        assert_eq!(project.scratch(), [""; 0], "round {round}");
    }
    assert!(seen.iter().all(|count| *count > 0), "killed before and after the decision: {seen:?}");
    wanted
}

type Files = Vec<(String, Vec<u8>)>;

/// Returns the files that a user would commit.
fn committed(project: &Project) -> Files {
    let is_of_us = |path: &str| path.starts_with("target/") || path.contains(".espalier-tmp-");
    let paths = files::list(project.root()).into_iter().filter(|path| !is_of_us(path));
    paths.map(|path| (path.clone(), std::fs::read(project.path(&path)).unwrap())).collect()
}

fn names(files: &Files) -> Vec<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

fn forget(project: &Project) {
    for path in ["patches", "target"] {
        std::fs::remove_dir_all(project.path(path)).unwrap_or_default();
    }
    for path in [".gitattributes", "pins.toml", "espalier.lock"] {
        std::fs::remove_file(project.path(path)).unwrap_or_default();
    }
}
