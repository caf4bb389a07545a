//! SIGKILL at random points of `sync`: everything moved, or nothing did, and the next run has the same result.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use super::support::kill::{self, Kills};
use super::support::random::XorShift;
use super::support::syncing::{self, more_lines, user_files};
use super::support::{Project, program_path};

const POINTS: usize = 13;

type Files = BTreeMap<String, Vec<u8>>;

fn sync(project: &Project) -> Command {
    project.command_with_path(&["sync", "--to", "v2.0"], &program_path::with_build_tools())
}

/// Returns the files without the report, which contains the duration of each check.
fn moved(project: &Project) -> Files {
    user_files(project).into_iter().filter(|(path, _)| !path.starts_with("docs/syncs/")).collect()
}

fn put_back(project: &Project, files: &Files) {
    std::fs::remove_dir_all(project.path("patches")).unwrap();
    std::fs::remove_dir_all(project.path("docs")).unwrap_or_default();
    files.iter().for_each(|(path, bytes)| project.write(path, bytes));
}

#[test]
fn sync_killed_moves_everything_or_nothing() {
    let project = syncing::project(more_lines);
    let before = moved(&project);
    kill::run_and_kill(sync(&project), Duration::from_secs(120));
    let after = moved(&project);
    assert!(after != before, "the first run was to move the pin");
    put_back(&project, &before);
    // The builds exist by now, so the other steps get their share of the points.
    let whole = kill::run_and_kill(sync(&project), Duration::from_secs(120));
    let mut kills = Kills::of("sync");
    let mut random = XorShift::new(0x51_4c_5e_ed);
    for _ in 0..kill::points(POINTS) {
        put_back(&project, &before);
        let limit = whole.mul_f64(random.fraction());
        kills.run(sync(&project), limit);
        let context = format!("sync killed after {limit:?} of {whole:?}");
        // Any command completes a decided change.
        project.run(&["lint"]).success();
        let found = moved(&project);
        assert!(found == before || found == after, "{context}: some files moved and some did not");
        kills.left(if found == after { "moved" } else { "as it was" });
        assert_eq!(found == after, project.path("docs/syncs/v1.0-to-v2.0.md").exists(), "{context}");
        project.run_build(&["sync", "--to", "v2.0"]).success();
        assert!(moved(&project) == after, "{context}");
        assert_eq!(project.scratch(), [""; 0], "{context}");
    }
}
