//! `rebase --edit`: a stop at a patch that applies.

use serde_json::json;

use super::support::moving::{FETCHES, Move, STOP_HINTS, above_everything};
use super::support::stacked::Stacked;
use super::support::{Project, files, git};

const SECOND: &str = "patches/paged/0002-say-what-is-counted.patch";

fn stopped() -> Move {
    let moving = Move::new(above_everything("src/greet.c"));
    moving.rebase(&["--edit", "2"]).code(4);
    moving
}

#[test]
fn a_patch_is_edited_during_the_move() {
    let moving = Move::new(above_everything("src/greet.c"));
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&["--edit", "0002"]).after(&FETCHES).until(&STOP_HINTS[3..]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0002-say-what-is-counted.patch applies, and waits to be edited (1 of 3 patches done)
      src/count.c
      described for people and programs in target/espalier/rebase/hello/conflict
      next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too
      next: edit it, `git add` the files, then: cargo xtask rebase --continue
    ");
    assert_eq!(moving.committed(), before);
    assert_eq!(git::git(&moving.work(), &["status", "--short"]), "M  src/count.c");
    let package = moving.package();
    assert_eq!((&package["kind"], &package["patch"]["file"]), (&json!("edit"), &json!(SECOND)));
    files::edit(&moving.work().join("src/count.c"), "    return count;", "    return count + 0;");
    git::git(&moving.work(), &["add", "src/count.c"]);
    let output = moving.run(&["--continue"]).success();
    assert!(output.stdout.contains("it was edited by hand"), "{output}");
    moving.assert_moved();
    let patch = moving.project.read(SECOND);
    assert!(patch.contains("+    return count + 0;") && patch.contains("// words, not letters"), "{patch}");
}

#[test]
fn a_patch_that_is_left_as_it_is_stays_the_same() {
    let moving = stopped();
    let before = moving.project.read(SECOND);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    assert_eq!(moving.project.read(SECOND), before);
}

#[test]
fn only_the_files_of_the_patch_may_change() {
    let moving = stopped();
    files::edit(&moving.work().join("src/add.c"), "left + right", "right + left");
    git::git(&moving.work(), &["add", "--all"]);
    moving.run(&["--continue"]).code(4).says(&["src/add.c:4: expected"]);
    moving.run(&["--continue", "--allow-edits"]).success();
    moving.assert_moved();
}

#[test]
fn it_stops_at_several_and_on_the_way() {
    let moving = Move::new(above_everything("src/greet.c"));
    moving.rebase(&["--edit", "1", "--edit", "2"]).code(4).says(&["0001-greet-more-warmly.patch applies"]);
    moving.run(&["--continue"]).code(4).says(&["0002-say-what-is-counted.patch applies"]);
    moving
        .run(&["--continue", "--edit", "1"])
        .code(2)
        .says(&["0001-greet-more-warmly.patch is replayed already"]);
    moving.run(&["--continue", "--edit", "3"]).code(4).says(&["0003-greet-dearly.patch applies"]);
    moving.run(&["--skip"]).success();
    moving.assert_moved();
    moving
        .rebase(&["--edit", "9"])
        .code(2)
        .says(&["`paged` has no patch `9`", "next: name one by its number"]);
    moving.rebase(&["--edit", "1", "--dry-run"]).code(2);
}

/// Killed after the patch was shown and before that was recorded.
#[test]
fn edits_are_kept() {
    let moving = stopped();
    files::edit(&moving.work().join("src/count.c"), "    return count;", "    return count + 0;");
    git::git(&moving.work(), &["add", "src/count.c"]);
    moving.project.edit("target/espalier/rebase/hello/state.json", "\"ready\": true", "\"ready\": false");
    moving.run(&["--continue"]).code(4).says(&["waits to be edited"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    assert!(moving.project.read(SECOND).contains("+    return count + 0;"));
}

/// The pin stays, and everything on it is replayed there.
#[test]
fn without_a_target_it_stops_on_the_present_pin() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let (pins, before) = (project.read("pins.toml"), project.read(SECOND));
    project.run(&["rebase", "--edit", "9999"]).code(2).says(&["`paged` has no patch `9999`"]);
    project.run(&["rebase", "--variant", "stock", "--edit", "1"]).code(2).says(&["`stock` has no patch `1`"]);
    let stops = "0002-say-what-is-counted.patch applies, and waits to be edited (1 of 3 patches done)";
    project.run(&["rebase", "--edit", "2"]).code(4).says(&[stops]);
    let work = project.path("target/espalier/rebase/hello/work");
    files::edit(&work.join("src/count.c"), "    return count;", "    return count + 0;");
    git::git(&work, &["add", "src/count.c"]);
    let output = project.run(&["rebase", "--continue"]).success();
    assert!(output.stdout.contains("already on hello v1.0") && output.stdout.contains(SECOND), "{output}");
    assert!(output.stdout.contains("next: cargo xtask prove HEAD"), "{output}");
    assert!(!output.stdout.contains("warning"), "{output}");
    assert!(project.read(SECOND).contains("+    return count + 0;"));
    assert_eq!(project.read("pins.toml"), pins);
    project.run(&["--locked", "--offline", "lock", "--check"]).success();
    let output = project.run(&["undo"]).success();
    assert!(output.stdout.starts_with("undone: the edit of paged on v1.0\n"), "{output}");
    assert_eq!(project.read(SECOND), before);
}

/// The series of the variants that extend it follow.
#[test]
fn a_patch_of_what_the_variant_extends_is_edited_on_the_present_pin() {
    let stacked = Stacked::new();
    stacked.rebase(&["--edit", SECOND]).code(4).says(&["0002-say-what-is-counted.patch applies"]);
    let count = stacked.work().join("src/count.c");
    files::edit(&count, "    return count;", "    return count + 0;");
    git::git(&stacked.work(), &["add", "src/count.c"]);
    stacked.rebase(&["--continue"]).success();
    stacked.assert_settled();
    assert!(stacked.project.read(SECOND).contains("+    return count + 0;"));
    stacked.rebase(&["--edit", "1"]).code(4).says(&["0001-ring-for-negative-positions.patch applies"]);
    stacked.rebase(&["--continue"]).success();
    stacked.assert_settled();
}
