//! `sync --since` on a generation: its report compares the patches with the pin that they were made for.

use super::support::generations::Generations;
use super::support::moving::greet;
use super::support::syncing::{commit_all, user_files};
use super::support::{Output, Project, git};

const REPORT: &str = "docs/syncs/v1.0-to-v2.0.md";

/// Commits the project with `before` as its `pins.toml`, and puts the present one back.
fn commit_with_pins(project: &Project, before: &str) {
    project.run(&["lock"]).success();
    let pins = project.read("pins.toml");
    project.write("pins.toml", before);
    commit_all(project);
    project.write("pins.toml", pins);
}

fn sync(project: &Project) -> Output {
    project.run_build(&["sync", "--since", "HEAD", "--variant", "paged-v2"])
}

#[test]
fn a_new_generation_is_checked_and_reported() {
    let generations = Generations::with_siblings();
    let project = &generations.project;
    let pins = project.read("pins.toml");
    commit_with_pins(project, pins.split_once("\n[pins.v2]").unwrap().0);
    let before = user_files(project);
    let output = sync(project).success();
    assert!(output.stdout.contains("hello: v2.0, a generation of v1.0: all of it holds"), "{output}");
    let report = project.read(REPORT);
    for expected in [
        "Everything below holds.",
        "The pin `v2` has the patches of v1.0 on another upstream tree",
        "It is new since HEAD. 0 of 3 patches apply by themselves. Siblings replace 2 (2 conflict); of the lines",
        "Siblings drop 1 (1 upstreamed).",
        "| patch | by itself | on the generation |",
        "| `patches/paged/0001-greet-more-warmly.patch` | conflict | sibling: changed (lines: ",
        "| `patches/paged/0002-say-what-is-counted.patch` | upstreamed | dropped: ",
        "The move from the pin hello to the generation v2 is proved: the changes of 3 patches",
        "| build paged-v2 cpu-native | ok |",
        "+        return \"hi there\";",
    ] {
        assert!(report.contains(expected), "no `{expected}` in {report}");
    }
    // The other variants are not affected, and not built.
    assert!(!report.contains("build paged cpu-native") && !report.contains("v1-1"), "{report}");
    let mut after = user_files(project);
    after.remove(REPORT);
    assert!(after == before, "only the report is written");
    project.run(&["undo"]).success();
    assert!(!project.path(REPORT).exists());
}

#[test]
fn patches_that_apply_by_themselves_are_counted() {
    let generations = Generations::new();
    let project = &generations.project;
    let pins = project.read("pins.toml");
    let (pins, _) = pins.split_once("\n[pins.v2]").unwrap();
    project.write("pins.toml", pins);
    commit_with_pins(project, pins.split_once("\n[pins.v1-1]").unwrap().0);
    project.run_build(&["sync", "--since", "HEAD", "--variant", "paged-v1-1"]).success();
    let report = project.read("docs/syncs/v1.0-to-v1.1.md");
    assert!(report.contains(" 3 of 3 patches apply by themselves ("), "{report}");
    assert!(report.contains("0002-say-what-is-counted.patch` | exact | unchanged |"), "{report}");
}

/// The pins of the patches are the same in both states: they are not what moved.
#[test]
fn another_tree_of_a_generation_is_compared_with_the_pin_of_the_patches() {
    let generations = Generations::with_siblings();
    let project = &generations.project;
    let [older, tree] = ["v1.1", "v2.0"].map(|tag| git::tree_of(&generations.upstream, tag));
    let pins = project.read("pins.toml");
    let before = pins.replace("tag = \"v2.0\"", "tag = \"v1.1\"").replace(&tree, &older);
    commit_with_pins(project, &before);
    project.run(&["sync", "--since", "HEAD"]).code(2).says(&[
        "the pin hello is the same at HEAD and in the files on disk",
        "next: cargo xtask sync --since HEAD --variant paged-v2",
    ]);
    sync(project).success();
    let report = project.read(REPORT);
    assert!(report.contains(&format!("At HEAD it was v1.1 (tree `{older}`).")), "{report}");
    assert!(report.contains("0001-greet-more-warmly.patch` | conflict | sibling: changed"), "{report}");
}

#[test]
fn a_generation_that_is_as_it_was_has_no_report() {
    let generations = Generations::with_siblings();
    let project = &generations.project;
    commit_with_pins(project, &project.read("pins.toml"));
    sync(project).code(2).says(&[
        "the generation v2 and the pin hello are the same at HEAD and in the files on disk",
        "next: name a commit from before v2 was added or got another tree: git log --oneline -- pins.toml",
    ]);
}

#[test]
fn a_sibling_that_loses_a_word_holds_the_report_back() {
    let generations = Generations::new();
    let project = &generations.project;
    generations.rebase("v2", &["--drop-upstreamed"]).code(4);
    generations.solve("v2", &greet("hi you"));
    generations.rebase("v2", &["--continue"]).code(4);
    generations.solve("v2", &greet("hi you, dear"));
    generations.rebase("v2", &["--continue"]).success();
    let pins = project.read("pins.toml");
    commit_with_pins(project, pins.split_once("\n[pins.v2]").unwrap().0);
    sync(project).code(1).says(&[
        "hello: the generation v2 does not hold",
        "0001-greet-more-warmly@v2.patch: ",
        "next: cargo xtask rebase --variant paged-v2 --edit NNNN",
    ]);
    assert!(!project.path(REPORT).exists());
    assert!(project.read("target/espalier/sync-report.md").contains("**This generation does not hold.**"));
}
