//! `sync`: the pin moves together with everything that depends on it, or nothing moves.

use super::support::github::FakeGitHub;
use super::support::syncing::{commit_all, finish_series, more_lines, project, to_github, user_files};
use super::support::{Output, Project, files, git};

fn sync(project: &Project) -> Output {
    project.run_build(&["sync", "--to", "v2.0"])
}

#[test]
fn pin_lock_series_and_report_move_together() {
    let project = project(more_lines);
    let output = sync(&project).success();
    assert!(output.stdout.contains("hello: v1.0 to v2.0: the pin moved, and all of it holds"), "{output}");
    let pins = project.read("pins.toml");
    assert!(pins.contains("tag = \"v2.0\"") && !pins.contains("v1.0"), "{pins}");
    assert!(pins.contains(&git::tree_of(&project.beside("moved"), "v2.0")), "{pins}");
    let report = project.read("docs/syncs/v1.0-to-v2.0.md");
    assert!(report.contains("Everything below holds."), "{report}");
    assert!(
        report.contains("| `patches/paged/0002-say-what-is-counted.patch` | shifted | unchanged"),
        "{report}"
    );
    assert!(report.contains("The move from v1.0 to v2.0 is proved: the changes of 3 patches"), "{report}");
    assert!(report.contains("| build paged cpu-native | ok |"), "{report}");
    assert!(report.contains("Nothing was gated: no variant in `pins.toml` names"), "{report}");
    assert!(output.stdout.contains("Nothing was gated: "), "{output}");
    project.run(&["lock", "--check"]).success();
    project.run(&["status"]).success();
    project.run_build(&["--locked", "build"]).success().says(&["Current paged-cpu-native"]);
}

#[test]
fn a_flavor_of_other_machines_does_not_block_a_move() {
    let project = project(more_lines);
    let flavors = project.read("ci/flavors.toml");
    let elsewhere = "\n[flavors.metal]\nabout = \"another machine's\"\nplatforms = [\"macos-aarch64\"]\n";
    project.write("ci/flavors.toml", flavors + elsewhere);
    sync(&project).success();
    let report = project.read("docs/syncs/v1.0-to-v2.0.md");
    assert!(report.contains("| build paged cpu-native | ok |") && !report.contains("metal"), "{report}");
}

#[test]
fn a_build_that_fails_moves_nothing() {
    let project = project(|upstream| {
        files::edit(&upstream.join("include/words.h"), "int words_ring(int at, int size);\n", "");
    });
    project.take_patch(|fork| {
        // Not a call: calling an undeclared function is only a warning in old compilers.
        let with = "int (*ring)(int, int) = words_ring;\n\nint main";
        files::edit(&fork.join("programs/hello.c"), "int main", with);
    });
    finish_series(&project);
    let before = user_files(&project);
    let output = sync(&project).code(1);
    assert!(output.stderr.contains("the pin did not move, nothing was changed"), "{output}");
    assert!(output.stderr.contains("build paged cpu-native: "), "{output}");
    assert!(output.stderr.contains("next: read the report: target/espalier/sync-report.md"), "{output}");
    let report = project.read("target/espalier/sync-report.md");
    assert!(report.contains("**This move does not hold.**") && report.contains("words_ring"), "{report}");
    assert!(report.contains("| build stock cpu-native | ok |"), "the other checks were made: {report}");
    assert!(user_files(&project) == before, "{output}");
}

#[test]
fn a_conflict_is_handed_over_before_anything_is_built() {
    let project =
        project(|upstream| files::edit(&upstream.join("src/greet.c"), "return \"hello\"", "return \"hi\""));
    let before = user_files(&project);
    let output = sync(&project).code(4);
    assert!(output.stderr.contains("cargo xtask rebase --continue"), "{output}");
    assert!(user_files(&project) == before, "{output}");
    assert!(!project.path("target/espalier/build").exists());
}

#[test]
fn a_gate_without_its_probe_moves_nothing() {
    let project = project(more_lines);
    project.edit(
        "pins.toml",
        "overlays = [\"overlay/extra\"]",
        "overlays = [\"overlay/extra\"]\ngate = \"stock\"",
    );
    let before = user_files(&project);
    sync(&project).code(2).says(&["no `ci/probe/probe.cpp`", "next: or gate nothing: "]);
    assert!(user_files(&project) == before);
    assert!(!project.path("target/espalier/build").exists(), "what cannot be gated is not built");
}

#[test]
fn a_gate_that_fails_moves_nothing() {
    let project = project(more_lines);
    project.edit(
        "pins.toml",
        "overlays = [\"overlay/extra\"]",
        "overlays = [\"overlay/extra\"]\ngate = \"stock\"",
    );
    for probe in ["probe", "attention"] {
        project.write(&format!("ci/probe/{probe}.cpp"), "int main(void) { return 1; }\n");
    }
    let before = user_files(&project);
    let output = sync(&project).code(1);
    assert!(output.stderr.contains("gate paged: "), "{output}");
    assert!(user_files(&project) == before, "{output}");
    let report = project.read("target/espalier/sync-report.md");
    assert!(
        report.contains("| gate paged | **failed** |") && !report.contains("Nothing was gated"),
        "{report}"
    );
}

#[test]
fn a_dry_run_says_what_the_move_would_do() {
    let project = project(more_lines);
    let before = user_files(&project);
    let output = project.run(&["sync", "--to", "v2.0", "--dry-run"]).success();
    assert!(output.stdout.contains("0002-say-what-is-counted"), "{output}");
    assert!(user_files(&project) == before);
}

fn sync_to_github(project: &Project, server: &FakeGitHub) -> Output {
    to_github(project, server, &["sync", "--to", "v2.0"])
}

#[test]
fn a_patch_that_is_not_utf8_is_in_the_pull_request() {
    let project = project(more_lines);
    project.take_patch(|fork| {
        let path = fork.join("src/count.c");
        let text = std::fs::read_to_string(&path).unwrap();
        let (above, below) = text.split_once("int count = 0;").unwrap();
        files::write(&path, [above.as_bytes(), b"int count = 0; // W\xf6rter", below.as_bytes()].concat());
    });
    finish_series(&project);
    commit_all(&project);
    let server = FakeGitHub::start();
    let output = sync_to_github(&project, &server).success();
    assert!(output.stdout.contains("pull request: #100"), "{output}");
    let patch = "patches/paged/0001-change-something.patch";
    let tree = server.last_tree();
    let sent = tree["tree"].as_array().unwrap().iter().find(|entry| entry["path"] == patch).unwrap();
    assert_eq!(sent["sha"], "blob 1", "{tree}");
    let written = std::fs::read(project.path(patch)).unwrap();
    assert!(std::str::from_utf8(&written).is_err());
    assert_eq!(server.blobs(), [written]);
}

#[test]
fn one_pull_request_with_all_that_moved() {
    let project = project(more_lines);
    commit_all(&project);
    let server = FakeGitHub::start();
    let output = sync_to_github(&project, &server).success();
    assert!(output.stdout.contains("pull request: #100"), "{output}");
    assert!(!format!("{output}").contains("ghs_secret"), "{output}");
    let tree = server.last_tree();
    let paths: Vec<&str> =
        tree["tree"].as_array().unwrap().iter().filter_map(|e| e["path"].as_str()).collect();
    for path in [
        "pins.toml",
        "espalier.lock",
        "patches/paged/0002-say-what-is-counted.patch",
        "docs/syncs/v1.0-to-v2.0.md",
    ] {
        assert!(paths.contains(&path), "{paths:?}");
        let sent = tree["tree"].as_array().unwrap().iter().find(|entry| entry["path"] == path).unwrap();
        assert_eq!(sent["content"], project.read(path), "{path}");
    }
    assert_eq!(server.branches().keys().collect::<Vec<_>>(), ["pin-sync/hello"]);
    assert_eq!(server.pulls()[0]["title"], "Move hello from v1.0 to v2.0");
    assert_eq!(server.pulls()[0]["base"]["ref"], "main");
    // As in the workflow's next run, from the same commit.
    git::git(project.root(), &["checkout", "--quiet", "--", "."]);
    git::git(project.root(), &["clean", "--quiet", "--force", "docs"]);
    sync_to_github(&project, &server).success();
    assert_eq!(server.pulls().len(), 1);
}

#[test]
fn without_a_token_nothing_is_built() {
    let project = project(more_lines);
    let output = project.run(&["sync", "--to", "v2.0", "--github"]).code(2);
    assert!(output.stderr.contains("next: export GITHUB_REPOSITORY=OWNER/NAME"), "{output}");
    assert!(!project.path("target/espalier/build").exists());
}
