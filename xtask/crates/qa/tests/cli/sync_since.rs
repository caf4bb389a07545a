//! `sync --since`: a move with a conflict gets the checks and the report of one without.

use super::support::syncing::{commit_all, more_lines, project, user_files};
use super::support::{Project, files, git};

/// Moves to `v2.0`, whose greeting two patches change too, and resolves the conflict of the first to `line`.
fn moved_by_hand(line: &str) -> Project {
    let project =
        project(|upstream| files::edit(&upstream.join("src/greet.c"), "return \"hello\"", "return \"hi\""));
    commit_all(&project);
    project.run(&["rebase", "--to", "v2.0"]).code(4);
    resolve(&project, line);
    project.run(&["rebase", "--continue"]).code(4);
    resolve(&project, &line.replace("\";", ", dear\";"));
    project.run(&["rebase", "--continue"]).success();
    project
}

fn resolve(project: &Project, line: &str) {
    let work = project.path("target/espalier/rebase/hello/work");
    let path = work.join("src/greet.c");
    let text = std::fs::read_to_string(&path).unwrap();
    let (above, rest) = text.split_once("<<<<<<<").unwrap();
    let below = rest.split_once(">>>>>>>").unwrap().1.split_once('\n').unwrap().1;
    files::write(&path, format!("{above}{line}\n{below}"));
    git::git(&work, &["add", "src/greet.c"]);
}

#[test]
fn a_move_with_a_resolved_conflict_is_checked_and_reported() {
    let project = moved_by_hand("        return \"hi there\";");
    let moved = user_files(&project);
    let said = project.run_build(&["sync", "--since", "HEAD"]).success();
    assert!(said.stdout.contains("hello: v1.0 to v2.0: all of the move holds"), "{said}");
    let report = project.read("docs/syncs/v1.0-to-v2.0.md");
    for expected in [
        "Everything below holds.",
        "| `patches/paged/0001-greet-more-warmly.patch` | conflict | changed |",
        "| `patches/paged/0002-say-what-is-counted.patch` | exact | unchanged |",
        "| build paged cpu-native | ok |",
        "The move from HEAD to the files on disk is proved",
        "+        return \"hi there\";",
    ] {
        assert!(report.contains(expected), "no `{expected}` in {report}");
    }
    let mut after = user_files(&project);
    after.remove("docs/syncs/v1.0-to-v2.0.md");
    assert!(after == moved, "only the report is written");
}

#[test]
fn a_difference_without_a_reason_holds_the_report_back() {
    let project = moved_by_hand("        return \"hi you\";");
    let said = project.run_build(&["sync", "--since", "HEAD"]).code(1);
    said.says(&[
        "hello: the move from v1.0 to v2.0 does not hold",
        "0001-greet-more-warmly.patch: ",
        "next: read the report: target/espalier/sync-report.md",
    ]);
    assert!(!project.path("docs/syncs/v1.0-to-v2.0.md").exists());
    assert!(project.read("target/espalier/sync-report.md").contains("**This move does not hold.**"));
    project.run(&["prove", "HEAD", "--write-intended"]).code(1);
    let entries = "docs/syncs/v1.0-to-v2.0.toml";
    project.write(entries, project.read(entries).replace("why = \"\"", "why = \"shorter\""));
    project.run_build(&["sync", "--since", "HEAD"]).success();
    assert!(project.read("docs/syncs/v1.0-to-v2.0.md").contains("shorter"));
}

#[test]
fn an_unmoved_pin_is_not_a_move() {
    let project = project(more_lines);
    commit_all(&project);
    let before = user_files(&project);
    let said = project.run_build(&["sync", "--since", "HEAD"]).code(2);
    said.says(&[
        "the pin hello is the same at HEAD and in the files on disk",
        "next: cargo xtask sync --to main --dry-run",
    ]);
    assert!(user_files(&project) == before);
}
