//! A patch that needs manual resolution: resolved, skipped, aborted, kept.

use std::path::Path;

use super::support::moving::{FETCHES, MOVE_HINTS, Move, STOP_HINTS, greet, upstream_greets_otherwise};
use super::support::{files, git};

#[test]
fn a_conflict_is_resolved_and_the_rebase_continued() {
    let moving = Move::new(upstream_greets_otherwise);
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-greet-more-warmly.patch does not apply to hello v2.0 automatically (0 of 3 patches done)
      src/greet.c: upstream changed the same lines
      after it 1 more of the patches may stop: they change the same files
    ");
    assert_eq!(moving.committed(), before);
    insta::assert_snapshot!(git::git(&moving.work(), &["status", "--short"]), @"UU src/greet.c");
    insta::assert_snapshot!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), @r#"
    #include "words.h"

    // What is said first.
    const char * words_greeting(int kind) {
        if (kind == 0) {
    <<<<<<< v2.0
            return "hi";
    ||||||| v1.0, before 0001-greet-more-warmly.patch
            return "hello";
    =======
            return "hello there";
    >>>>>>> 0001-greet-more-warmly.patch
        }
        return "good day to you";
    }
    "#);
    let stages = git::git(&moving.work(), &["ls-files", "--unmerged"]);
    assert_eq!(stages.lines().count(), 3, "{stages}");
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/rebase/hello/work/src/greet.c` has a conflict marker in line 6
      next: edit it, then: git -C target/espalier/rebase/hello/work add src/greet.c
      next: cargo xtask rebase --continue
    ");
    // Two of the three kinds of markers are deleted.
    files::write(&moving.work().join("src/greet.c"), format!("{}=======\n", greet("hi there")));
    moving.run(&["--continue"]).code(4).says(&["src/greet.c` has a conflict marker in line"]);
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: these files have unresolved conflicts
      target/espalier/rebase/hello/work/src/greet.c
      next: git -C target/espalier/rebase/hello/work add src/greet.c    # or `git rm`, to delete it
      next: cargo xtask rebase --continue
    ");
    git::git(&moving.work(), &["add", "src/greet.c"]);
    files::write(&moving.work().join("src/greet.c"), greet("something else"));
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/rebase/hello/work/src/greet.c` is modified but not staged
      next: git -C target/espalier/rebase/hello/work add src/greet.c
      next: cargo xtask rebase --continue
    ");
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    // The third patch changes the result of the first one, so it needs manual resolution too.
    insta::assert_snapshot!(moving.run(&["--continue"]).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
        Resolved patches/paged/0001-greet-more-warmly.patch: src/greet.c
    error: patches/paged/0003-greet-dearly.patch does not apply to hello v2.0 automatically (2 of 3 patches done)
      src/greet.c: upstream changed the same lines
    ");
    assert_eq!(moving.committed(), before);
    files::write(&moving.work().join("src/greet.c"), greet("hi there, dear"));
    git::git(&moving.work(), &["commit", "--quiet", "--all", "--message", "Solved"]);
    insta::assert_snapshot!(moving.run(&["--continue"]).success().until(&MOVE_HINTS), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now on v2.0

      changed    patches/paged/0001-greet-more-warmly.patch
                 its conflicts were resolved by hand
      unchanged  patches/paged/0002-say-what-is-counted.patch
      changed    patches/paged/0003-greet-dearly.patch
                 its conflicts were resolved by hand

    patches/paged/0001-greet-more-warmly.patch: changed
      @@
        // What is said first.
        const char * words_greeting(int kind) {
            if (kind == 0) {
      --        return "hello";
      -+        return "hello there";
      +-        return "hi";
      ++        return "hi there";
            }
            return "good day to you";
        }

    patches/paged/0003-greet-dearly.patch: changed
      @@
        // What is said first.
        const char * words_greeting(int kind) {
            if (kind == 0) {
      --        return "hello there";
      -+        return "hello there, dear";
      +-        return "hi there";
      ++        return "hi there, dear";
            }
            return "good day to you";
        }

    note: resolutions rewrite lines of upstream, and keep every word of them:
      0001-greet-more-warmly.patch rewrites src/greet.c:6, which upstream added: return "hi";
    -- stderr --
        Resolved patches/paged/0003-greet-dearly.patch: src/greet.c
    "#);
    moving.assert_moved();
}

#[test]
fn automatically_merged_files_of_a_patch_in_conflict_are_staged() {
    let both = |folder: &Path| {
        files::edit(&folder.join("src/greet.c"), "\"hello\"", "\"hello there\"");
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // words");
    };
    let moved = Move::with_patch(both, |upstream| {
        upstream_greets_otherwise(upstream);
        files::edit(&upstream.join("src/count.c"), "#include", "// counts\n#include");
    });
    moved.rebase(&[]).code(4);
    let status = git::git(&moved.work(), &["status", "--porcelain", "--untracked-files=no"]);
    assert_eq!(status, "M  src/count.c\nUU src/greet.c");
    let count = std::fs::read_to_string(moved.work().join("src/count.c")).unwrap();
    assert!(count.starts_with("// counts\n") && count.contains("// words"), "{count}");
}

#[test]
fn a_conflict_is_skipped() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.run(&["--skip"]).code(4).says(&[
        "Dropped patches/paged/0001-greet-more-warmly.patch: src/greet.c",
        "0003-greet-dearly.patch does not apply",
    ]);
    insta::assert_snapshot!(moving.run(&["--skip"]).success().until(&MOVE_HINTS), @"
    exit: 0
    -- stdout --
    paged: 1 of 3 patches, from hello v1.0, now on v2.0; 2 dropped

      dropped    patches/paged/0001-greet-more-warmly.patch
                 skipped by hand
      unchanged  patches/paged/0002-say-what-is-counted.patch -> patches/paged/0001-say-what-is-counted.patch
      dropped    patches/paged/0003-greet-dearly.patch
                 skipped by hand

    warning: the move made differences that nothing accounts for; `prove` lists them
    -- stderr --
         Dropped patches/paged/0003-greet-dearly.patch: src/greet.c
    ");
    moving.assert_moved();
    assert_eq!(files::list(&moving.project.path("patches/paged")), ["0001-say-what-is-counted.patch"]);
}

#[test]
fn a_conflict_is_aborted() {
    let moving = Move::new(upstream_greets_otherwise);
    let before = moving.committed();
    moving.rebase(&[]).code(4);
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: a rebase of paged to v2.0 is still in progress
      next: continue it: cargo xtask rebase --continue
      next: or abort it; nothing in your project has changed: cargo xtask rebase --abort
    ");
    moving.rebase(&["--dry-run"]).code(4);
    insta::assert_snapshot!(moving.run(&["--abort"]).success(), @"
    exit: 0
    -- stdout --
    aborted the move of the pin hello; patches, pins.toml and espalier.lock are unchanged
    -- stderr --
    ");
    assert_eq!(moving.committed(), before);
    assert!(!moving.project.path("target/espalier/rebase/hello").exists());
    insta::assert_snapshot!(moving.run(&["--abort"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: no rebase of paged is in progress
      next: begin one: cargo xtask rebase --to REF --variant paged
    ");
}

#[test]
fn the_series_may_not_change_under_a_waiting_rebase() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.project.edit("patches/paged/0002-say-what-is-counted.patch", "[PATCH", "[PATCH v2");
    insta::assert_snapshot!(moving.run(&["--skip"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the series or its pin was changed since the rebase began
      patches/paged/0002-say-what-is-counted.patch
      next: put it back, then: cargo xtask rebase --continue
      next: or abort the rebase; nothing in your project has changed: cargo xtask rebase --abort
    ");
}

/// A file deleted upstream, a binary file, a file of that name: each conflict is stored in a form that git understands.
#[test]
fn conflicts_without_text_wait_in_the_index() {
    let moving = Move::with_patch(
        |folder| {
            files::edit(&folder.join("src/ring.c"), "at % size", "at % (size + 0)");
            files::write(&folder.join("data/logo.bin"), [&[0u8, 9, 9][..], &[7; 300]].concat());
            files::write(&folder.join("src/new.c"), "int ours;\n");
            std::fs::remove_file(folder.join("src/upper.c")).unwrap();
        },
        |folder| {
            std::fs::remove_file(folder.join("src/ring.c")).unwrap();
            files::write(&folder.join("data/logo.bin"), [&[0u8, 8, 8][..], &[7; 300]].concat());
            files::write(&folder.join("src/new.c"), "int upstreams;\n");
            files::edit(&folder.join("src/upper.c"), "letter - 32", "letter - 'a' + 'A'");
        },
    );
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      data/logo.bin: it is not text, and both sides changed it
      src/new.c: the patch creates this file, but a different one exists
      src/ring.c: upstream no longer has this file
      src/upper.c: the patch deletes this file, and upstream changed it
    ");
    insta::assert_snapshot!(git::git(&moving.work(), &["status", "--short"]), @"
    UU data/logo.bin
    AA src/new.c
    DU src/ring.c
    UD src/upper.c
    ");
    git::git(&moving.work(), &["rm", "--quiet", "src/ring.c"]);
    git::git(&moving.work(), &["checkout", "--quiet", "--theirs", "data/logo.bin"]);
    moving.run(&["--continue"]).code(4).says(&["src/new.c` has a conflict marker in line 1"]);
    files::write(&moving.work().join("src/new.c"), "int upstreams;\nint ours;\n");
    git::git(&moving.work(), &["rm", "--quiet", "--cached", "src/upper.c"]);
    std::fs::remove_file(moving.work().join("src/upper.c")).unwrap();
    git::git(&moving.work(), &["add", "--all"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// Upstream replaced a folder by a link: nothing may be written through it.
#[test]
fn a_conflict_is_never_written_through_a_link() {
    let moving = Move::with_patch(
        |folder| files::edit(&folder.join("docs/old/story.txt"), "line 3 ", "row 3 "),
        |folder| {
            std::fs::remove_dir_all(folder.join("docs/old")).unwrap();
            std::os::unix::fs::symlink("../../../../../../../outside", folder.join("docs/old")).unwrap();
        },
    );
    std::fs::create_dir(moving.project.beside("outside")).unwrap();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      docs/old/story.txt: the patch must not write here: the path goes through `docs/old`, which is a symlink (120000)
    ");
    assert_eq!(files::list(&moving.project.beside("outside")), [""; 0]);
    moving.run(&["--continue"]).code(4).says(&["unresolved conflicts", "docs/old/story.txt"]);
    git::git(&moving.work(), &["rm", "--quiet", "--cached", "docs/old/story.txt"]);
    moving
        .run(&["--continue"])
        .code(4)
        .says(&["nothing is left of patches/paged/0001-change-something.patch"]);
    assert_eq!(files::list(&moving.project.beside("outside")), [""; 0]);
    moving.run(&["--abort"]).success();
}

/// The only commit of a move is not news; of several, the one since which the patch stops is.
#[test]
fn the_commit_is_named_among_several() {
    let one = Move::new(upstream_greets_otherwise);
    one.rebase(&[]).code(4).says_nothing_of("it stopped applying at");
    let two = Move::new(|upstream| {
        upstream_greets_otherwise(upstream);
        git::commit(upstream, "Greet otherwise");
        files::write(&upstream.join("docs/more.txt"), "more\n");
    });
    two.rebase(&[]).code(4).says(&["it stopped applying at ", " Greet otherwise (Test Person)\n"]);
}

/// The number of further stops needs the target only, not upstream's history.
#[test]
fn the_patches_that_will_stop_are_known_without_history() {
    let counts_otherwise = |upstream: &Path| {
        upstream_greets_otherwise(upstream);
        files::edit(&upstream.join("src/count.c"), "int count = 0;", "int count = 1;");
        // The commits since the pin are gone.
        git::git(upstream, &["checkout", "--quiet", "--orphan", "alone"]);
    };
    let moving = Move::new(counts_otherwise);
    let words = [
        "after it 1 more of the patches will stop, as far as is known, and 1 may: they change the same files",
        "next: resolve it",
    ];
    moving.rebase(&[]).code(4).says(&words).says_nothing_of("it stopped applying at");
}

/// A file that may not change is put back, not staged.
#[test]
fn unstaged_changes_of_protected_files_are_restored() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    files::edit(&moving.work().join("README.md"), "Hello", "Hello!");
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/rebase/hello/work/README.md` is modified but not staged
      next: undo it: git -C target/espalier/rebase/hello/work restore -- README.md
      next: then: cargo xtask rebase --continue
      next: or keep it in this patch: git -C target/espalier/rebase/hello/work add README.md && cargo xtask rebase --continue --allow-edits README.md
    ");
    git::git(&moving.work(), &["restore", "--", "README.md"]);
    moving.run(&["--continue"]).code(4).says(&["0003-greet-dearly.patch does not apply"]);
}

/// Both sides insert lines at one place: neither changed what the other one changed.
#[test]
fn two_additions_are_called_that() {
    let adds = |text: &'static str| {
        move |folder: &Path| files::edit(&folder.join("src/count.c"), "#include \"words.h\"\n", text)
    };
    let moving = Move::with_patch(
        adds("#include \"words.h\"\n#include <limits.h>\n"),
        adds("#include \"words.h\"\n#include <stdio.h>\n"),
    );
    moving.rebase(&[]).code(4).says(&["src/count.c: upstream added lines at the same place"]);
    assert_eq!(moving.package()["hunks"][0]["kind"], "both-added");
    let readme = moving.readme();
    for words in [
        "both add lines at one place, and change none: upstream 1 line, the patch 1 line",
        "base: empty: nothing was there when the patch was made",
        "to keep both, write",
    ] {
        assert!(readme.contains(words), "{words}: {readme}");
    }
}

/// Upstream has the lines of the patch, and one more: nothing is left to do.
#[test]
fn an_addition_that_upstream_has_too_is_called_that() {
    let adds = |text: &'static str| {
        move |folder: &Path| files::edit(&folder.join("src/count.c"), "#include \"words.h\"\n", text)
    };
    let moving = Move::with_patch(
        |folder: &Path| {
            adds("#include \"words.h\"\n#include <limits.h>\n")(folder);
            files::edit(&folder.join("src/count.c"), "    return count;", "    return count - 1;");
        },
        adds("#include \"words.h\"\n#include <stdio.h>\n#include <limits.h>\n"),
    );
    moving
        .rebase(&[])
        .code(4)
        .says(&["src/count.c: upstream added the lines of the patch, and more at the same place"]);
    assert_eq!(moving.package()["hunks"][0]["kind"], "ours-has-theirs");
}

/// A patch that is dropped renumbers the others, and documents name them by number.
#[test]
fn references_to_renumbered_patches_are_named() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.write("docs/counts.md", "# Counts\n\nPatch 0002 of `paged` says what is counted.\n");
    moving
        .project
        .write("ci/suites/suites.toml", "# Greetings (patch 0001).\n[[programs]]\ntarget = \"greet\"\n");
    moving.rebase(&[]).code(4);
    moving.run(&["--skip"]).code(4);
    let output = moving.run(&["--skip"]).success();
    for place in [
        "  ci/suites/suites.toml:1: patch 0001 of paged was dropped\n",
        "  docs/counts.md:3: patch 0002 of paged is 0001 now\n",
    ] {
        assert!(output.stdout.contains(place), "{output}");
    }
}
