//! `rebase --edit`: a stop at a patch that applies.

use serde_json::json;

use super::support::moving::{Move, above_everything};
use super::support::{files, git};

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
    insta::assert_snapshot!(moving.rebase(&["--edit", "0002"]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
         Reading 1 commit of hello since v1.0
    error: patches/paged/0002-say-what-is-counted.patch applies, and waits to be edited (1 of 3 patches done)
      src/count.c
      described for people and programs in target/espalier/rebase/hello/conflict
      next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too
      next: edit it, `git add` the files, then: cargo xtask rebase --continue
      next: or drop this patch: cargo xtask rebase --skip
      next: or abort the rebase; nothing has changed: cargo xtask rebase --abort
    ");
    assert_eq!(moving.committed(), before);
    assert_eq!(git::git(&moving.work(), &["status", "--short"]), "M  src/count.c");
    let package = moving.package();
    assert_eq!((&package["kind"], &package["patch"]["file"]), (&json!("edit"), &json!(SECOND)));
    files::edit(&moving.work().join("src/count.c"), "    return count;", "    return count + 0;");
    git::git(&moving.work(), &["add", "src/count.c"]);
    let said = moving.run(&["--continue"]).success();
    assert!(said.stdout.contains("it was edited by hand"), "{said}");
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
