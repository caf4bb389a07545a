//! Moving a series to another upstream tree: clean, with conflicts, and with changes that upstream has already.

use super::support::moving::{FETCHES, MOVE_HINTS, Move, TIP, above_everything};
use super::support::{files, git, upstream::TAG};

#[test]
fn a_clean_move_over_shifted_lines() {
    let moving = Move::new(above_everything("src/greet.c"));
    let untouched = moving.project.read("patches/paged/0002-say-what-is-counted.patch");
    let output = moving.rebase(&[]).success();
    insta::assert_snapshot!(output.after(&FETCHES).until(&MOVE_HINTS), @"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now on v2.0

      unchanged  patches/paged/0001-greet-more-warmly.patch
      unchanged  patches/paged/0002-say-what-is-counted.patch
      unchanged  patches/paged/0003-greet-dearly.patch
    -- stderr --
    ");
    moving.assert_moved();
    assert_eq!(moving.project.read("patches/paged/0002-say-what-is-counted.patch"), untouched);
}

#[test]
fn comments_of_the_pins_stay() {
    let moving = Move::new(above_everything("src/greet.c"));
    moving.project.edit("pins.toml", "tag = \"v1.0\"", "tag  =  \"v1.0\" # the release");
    let before = moving.project.read("pins.toml");
    moving.rebase(&[]).success();
    let old_tree = git::tree_of(&moving.upstream, TAG);
    assert_eq!(
        moving.project.read("pins.toml"),
        before.replace("v1.0", TIP).replace(&old_tree, &moving.tip_tree())
    );
}

#[test]
fn a_dry_run_says_how_patches_change_and_writes_nothing() {
    let moving = Move::new(|folder| {
        files::edit(&folder.join("src/greet.c"), "// What is said first.", "// What is said at first.");
    });
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&["--dry-run"]).success().after(&FETCHES), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, would move to v2.0

      context only  patches/paged/0001-greet-more-warmly.patch
      unchanged     patches/paged/0002-say-what-is-counted.patch
      context only  patches/paged/0003-greet-dearly.patch

    patches/paged/0001-greet-more-warmly.patch: context only
      @@
       ## src/greet.c ##
       @@
      - // What is said first.
      + // What is said at first.
        const char * words_greeting(int kind) {
            if (kind == 0) {
       -        return "hello";

    patches/paged/0003-greet-dearly.patch: context only
      @@
       ## src/greet.c ##
       @@
      - // What is said first.
      + // What is said at first.
        const char * words_greeting(int kind) {
            if (kind == 0) {
       -        return "hello there";

    next: move them: cargo xtask rebase --to v2.0 --from [BESIDE]/newer
    -- stderr --
    "#);
    assert_eq!(moving.committed(), before);
    let json =
        moving.project.run(&["--json", "rebase", "--to", TIP, "--from", moving.upstream.to_str().unwrap()]);
    let json = json.success().json();
    assert_eq!(json["written"], true);
    assert_eq!(json["patches"][0]["fate"], "context-only");
    moving.assert_moved();
}

#[test]
fn a_file_that_upstream_renamed_is_followed() {
    let moving = Move::new(|folder| {
        git::git(folder, &["mv", "src/greet.c", "src/greeting.c"]);
        git::git(folder, &["mv", "src/count.c", "src/number.c"]);
        files::edit(&folder.join("src/number.c"), "    return count;\n", "    return count + 0;\n");
    });
    insta::assert_snapshot!(moving.rebase(&[]).success().after(&FETCHES).until(&MOVE_HINTS), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now on v2.0

      changed  patches/paged/0001-greet-more-warmly.patch
               src/greet.c is followed to src/greeting.c (the same content)
      changed  patches/paged/0002-say-what-is-counted.patch
               src/count.c is followed to src/number.c (92 % of it is the same)
      changed  patches/paged/0003-greet-dearly.patch
               src/greet.c is followed to src/greeting.c (the same content)

    patches/paged/0001-greet-more-warmly.patch: changed
      @@
      -## src/greet.c ##
      +## src/greeting.c ##
       @@
        // What is said first.
        const char * words_greeting(int kind) {

    patches/paged/0002-say-what-is-counted.patch: changed
      @@
      -## src/count.c ##
      +## src/number.c ##
       @@
        #include "words.h"


    patches/paged/0003-greet-dearly.patch: changed
      @@
      -## src/greet.c ##
      +## src/greeting.c ##
       @@
        // What is said first.
        const char * words_greeting(int kind) {
    -- stderr --
    "#);
    moving.assert_moved();
    assert!(moving.project.read("patches/paged/0003-greet-dearly.patch").contains("a/src/greeting.c"));
}

#[test]
fn a_second_run_has_nothing_to_do() {
    let moving = Move::new(above_everything("src/greet.c"));
    moving.rebase(&[]).success();
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]).success(), @"
    exit: 0
    -- stdout --
    paged: 3 patches, already on hello v2.0

      unchanged  patches/paged/0001-greet-more-warmly.patch
      unchanged  patches/paged/0002-say-what-is-counted.patch
      unchanged  patches/paged/0003-greet-dearly.patch
    -- stderr --
    ");
    assert_eq!(moving.committed(), before);
}

#[test]
fn an_unknown_name_is_refused() {
    let moving = Move::new(above_everything("src/greet.c"));
    insta::assert_snapshot!(moving.run(&["--to", "v9", "--from", moving.upstream.to_str().unwrap()]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v9 from path [BESIDE]/newer
    error: no source has `v9` of hello
      path [BESIDE]/newer: it has no tag, branch or commit `v9`
      next: git -C [BESIDE]/newer log --oneline --all
      next: name a repository or a bundle that has it: --from PATH
    ");
    insta::assert_snapshot!(moving.run(&["--to", "v9"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v9 from path [UPSTREAM]
    error: no source has `v9` of hello
      path [UPSTREAM]: it has no tag, branch or commit `v9`
      next: git -C [UPSTREAM] log --oneline --all
      next: name a repository or a bundle that has it: --from PATH
    ");
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: no rebase of paged is in progress
      next: begin one: cargo xtask rebase --to REF --variant paged
    ");
}

#[test]
fn a_patch_that_upstream_has_is_dropped_on_request_only() {
    let moving = Move::new(|folder| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    });
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: hello v2.0 has what 1 of 3 patches do; nothing was written
      patches/paged/0002-say-what-is-counted.patch: upstreamed
        taken upstream by 09067fe3d513 Change upstream
      next: if that is right, add: --drop-upstreamed
    ");
    assert_eq!(moving.committed(), before);
    let moved = moving.rebase(&["--drop-upstreamed"]).success();
    insta::assert_snapshot!(moved.after(&FETCHES[1..]).until(&MOVE_HINTS), @"
    exit: 0
    -- stdout --
    paged: 2 of 3 patches, from hello v1.0, now on v2.0; 1 dropped

      unchanged  patches/paged/0001-greet-more-warmly.patch
      dropped    patches/paged/0002-say-what-is-counted.patch
                 taken upstream by 09067fe3d513 Change upstream
                 upstream has all of it
      unchanged  patches/paged/0003-greet-dearly.patch -> patches/paged/0002-greet-dearly.patch
    -- stderr --
        Dropping patches/paged/0002-say-what-is-counted.patch
    ");
    moving.assert_moved();
    let left = files::list(&moving.project.path("patches/paged"));
    assert_eq!(left, ["0001-greet-more-warmly.patch", "0002-greet-dearly.patch"]);
}

/// The user resolves by taking the patch's whole side, and thereby deletes what upstream added.
#[test]
fn deleting_upstreams_new_lines_is_warned_of() {
    let moving = Move::with_patch(
        |folder| files::edit(&folder.join("src/count.c"), "    int inside = 0;\n", "    int inside = 1;\n"),
        |folder| {
            files::edit(
                &folder.join("src/count.c"),
                "    int inside = 0;\n",
                "    int inside = 0;\n    check_the_text(text);\n",
            );
        },
    );
    moving.rebase(&[]).code(4);
    let theirs = git::git(&moving.work(), &["show", ":3:src/count.c"]);
    files::write(&moving.work().join("src/count.c"), format!("{theirs}\n"));
    git::git(&moving.work(), &["add", "src/count.c"]);
    let before = moving.committed();
    insta::assert_snapshot!(moving.run(&["--continue", "--strict"]), @"
    exit: 1
    -- stdout --

    -- stderr --
        Resolved patches/paged/0001-change-something.patch: src/count.c
    error: the rebase would undo what upstream did since the old pin; nothing was written
      0001-change-something.patch deletes src/count.c:6, which upstream added: check_the_text(text);
      next: look at those patches; if it is intended, run the same command with `--no-strict`
    ");
    assert_eq!(moving.committed(), before);
    let json = moving.project.run(&["--json", "rebase", "--continue", "--no-strict"]).success().json();
    assert_eq!(json["reverts"][0]["line"], 6);
    assert_eq!(json["reverts"][0]["text"], "check_the_text(text);");
    moving.assert_moved();
}

/// A server is asked for the commits since the pin. There are none for an older release, which is fetched all the same.
#[test]
fn the_pin_can_go_back_to_an_older_release_of_a_server() {
    let moving = Move::new(above_everything("src/count.c"));
    let server = format!("file://{}", moving.upstream.display());
    moving.run(&["--to", TIP, "--from", &server]).success();
    moving.assert_moved();
    moving.run(&["--to", "v1.0", "--from", &server]).success();
    assert!(moving.project.read("pins.toml").contains("tag = \"v1.0\""));
    moving.project.run(&["--locked", "--offline", "lock", "--check"]).success();
}
