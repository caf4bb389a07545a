//! `sync --since`: a move with a conflict gets the checks and the report of one without.

use super::support::editing::{edit_folder, extend};
use super::support::github::FakeGitHub;
use super::support::syncing::{commit_all, more_lines, project, to_github, user_files};
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
    let output = project.run_build(&["sync", "--since", "HEAD"]).success();
    assert!(output.stdout.contains("hello: v1.0 to v2.0: all of the move holds"), "{output}");
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
    let output = project.run_build(&["sync", "--since", "HEAD"]).code(1);
    output.says(&[
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
    let page = project.read("docs/syncs/v1.0-to-v2.0.md");
    assert!(page.contains("shorter"), "{page}");
    // The section can be made again by itself.
    let section = project.run(&["prove", "HEAD", "--markdown"]).success().stdout;
    assert!(
        section.starts_with("## Proof of the move\n") && page.contains(section.trim()),
        "{section}\n{page}"
    );
}

#[test]
fn an_unmoved_pin_is_not_a_move() {
    let project = project(more_lines);
    commit_all(&project);
    let before = user_files(&project);
    let output = project.run_build(&["sync", "--since", "HEAD"]).code(2);
    output.says(&[
        "the pin hello is the same at HEAD and in the files on disk",
        "next: cargo xtask sync --to main --dry-run",
    ]);
    assert!(user_files(&project) == before);
}

/// Its commit starts from the state before the move, and has all of it.
#[test]
fn a_move_with_a_resolved_conflict_can_be_a_pull_request() {
    let project = moved_by_hand("        return \"hi there\";");
    let (server, since) = (FakeGitHub::start(), ["sync", "--since", "HEAD"]);
    project.write(".gitignore", "target/\nmore/\n");
    project.write("overlay/extra/espalier/more.txt", "more\n");
    to_github(&project, &server, &since).code(2).says(&[
        "other files than those of the move differ from HEAD: the pull request would lack them",
        "  .gitignore\n  overlay/extra/espalier/more.txt\n",
        "next: commit them without the move, push that commit, then: cargo xtask sync --since COMMIT --github",
    ]);
    assert!(server.seen().is_empty() && !project.path("docs/syncs").exists());
    project.write(".gitignore", "target/\n");
    std::fs::remove_file(project.path("overlay/extra/espalier/more.txt")).unwrap();
    let head = git::git(project.root(), &["rev-parse", "HEAD"]);
    let output = to_github(&project, &server, &since).success();
    assert!(output.stdout.contains("pull request: #100"), "{output}");
    let tree = server.last_tree();
    assert_eq!(tree["base_tree"], format!("tree of {head}"));
    let sent = tree["tree"].as_array().unwrap();
    let mut paths: Vec<&str> = sent.iter().filter_map(|entry| entry["path"].as_str()).collect();
    paths.retain(|path| !path.starts_with("patches/"));
    assert_eq!(paths, ["docs/syncs/v1.0-to-v2.0.md", "espalier.lock", "pins.toml"]);
    assert!(sent.iter().any(|entry| entry["path"] == "patches/paged/0001-greet-more-warmly.patch"), "{tree}");
    for entry in sent {
        assert_eq!(entry["content"], project.read(entry["path"].as_str().unwrap()));
    }
    assert_eq!(server.pulls()[0]["title"], "Move hello from v1.0 to v2.0");
}

/// Adds the variant `child` with one patch.
fn add_child(project: &Project) {
    extend(project, "child", "paged");
    project.run(&["lock"]).success();
    project.run(&["edit", "child"]).success();
    let folder = edit_folder(project, "child");
    files::edit(&folder.join("src/ring.c"), "at % size", "(at + size) % size");
    git::commit(&folder, "Ring for negative positions");
    project.run(&["export", "child"]).success();
}

#[test]
fn a_series_that_was_added_since_is_named() {
    let project = project(more_lines);
    project.write("ci/lint.toml", "require-trailers = []\n");
    commit_all(&project);
    project.run(&["rebase", "--to", "v2.0"]).success();
    add_child(&project);
    let output = project.run_build(&["sync", "--since", "HEAD"]).success();
    let notice = "The series of `child` is new since HEAD: there is nothing to compare it with.";
    assert!(output.stdout.contains(notice), "{output}");
    let report = project.read("docs/syncs/v1.0-to-v2.0.md");
    assert!(report.contains(notice), "{report}");
    let row = "| `patches/child/0001-ring-for-negative-positions.patch` |  | added |";
    assert!(report.contains(row), "{report}");
    assert!(report.contains("is proved: the changes of 3 patches"), "{report}");
}

#[test]
fn a_series_that_was_removed_since_is_named() {
    let project = project(more_lines);
    project.write("ci/lint.toml", "require-trailers = []\n");
    let pins = project.read("pins.toml");
    add_child(&project);
    commit_all(&project);
    let removed = project.read("pins.toml").replace(&pins, "");
    project.run(&["rebase", "--to", "v2.0"]).success();
    project.edit("pins.toml", &removed, "");
    std::fs::remove_dir_all(project.path("patches/child")).unwrap();
    project.run(&["lock"]).success();
    project.run_build(&["sync", "--since", "HEAD"]).success();
    let report = project.read("docs/syncs/v1.0-to-v2.0.md");
    assert!(report.contains("The series of `child` is gone since HEAD, with its patches"), "{report}");
    let row = "| `patches/child/0001-ring-for-negative-positions.patch` | exact | removed |";
    assert!(report.contains(row), "{report}");
}
