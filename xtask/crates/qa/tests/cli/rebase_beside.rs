//! A resolution that differs from the automatic result of the merge elsewhere than in the conflict.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::moving::{Move, greet, upstream_greets_otherwise};
use super::support::{files, git};

/// Creates a rebase that waits at a conflict in `src/greet.c`, which is resolved and staged.
fn resolved() -> Move {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    moving
}

fn stage(moving: &Move) {
    git::git(&moving.work(), &["add", "--all"]);
}

/// Asserts that the resolution is refused with these words, that nothing changed, and that it is accepted without the
/// edit.
#[track_caller]
fn refused(moving: &Move, words: &[&str], undo: impl Fn(&Path)) {
    let before = moving.committed();
    let output = moving.run(&["--continue"]).code(4);
    output.says(&["outside the conflict in patches/paged/0001-greet-more-warmly.patch"]).says(words);
    assert_eq!(moving.committed(), before);
    undo(&moving.work());
    stage(moving);
    moving.run(&["--continue"]).code(4).says(&["patches/paged/0003-greet-dearly.patch does not apply to"]);
}

#[test]
fn an_edit_of_another_file_is_refused() {
    let moving = resolved();
    files::edit(&moving.work().join("src/count.c"), "int count = 0;", "int count = 5;");
    stage(&moving);
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: an edit outside the conflict in patches/paged/0001-greet-more-warmly.patch
      src/count.c:4: expected `    int count = 0;`, found `    int count = 5;`
      next: undo it: git -C target/espalier/rebase/hello/work checkout automatic -- src/count.c
      next: then: cargo xtask rebase --continue
      next: or accept it as a part of this patch: cargo xtask rebase --continue --allow-edits src/count.c
      next: or make it later, in a patch of its own or in this one: cargo xtask edit
    ");
    let undo = |work: &Path| files::edit(&work.join("src/count.c"), "int count = 5;", "int count = 0;");
    refused(&moving, &["src/count.c:4"], undo);
}

#[test]
fn an_edit_of_the_same_file_is_refused() {
    let moving = resolved();
    moving.solve(greet("hi there").replace("good day", "good night"));
    let words = "src/greet.c:8: expected `    return \"good day to you\";`, found `    return \"good night to you\";`";
    refused(&moving, &[words], |work| files::write(&work.join("src/greet.c"), greet("hi there")));
}

#[test]
fn another_mode_is_refused() {
    let moving = resolved();
    let set = |work: &Path, mode| {
        std::fs::set_permissions(work.join("src/greet.c"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&moving.work(), 0o755);
    stage(&moving);
    refused(&moving, &["src/greet.c: its mode is 100755, expected 100644"], |work| set(work, 0o644));
}

#[test]
fn files_that_come_and_go_are_refused() {
    let moving = resolved();
    files::write(&moving.work().join("src/extra.c"), "int extra;\n");
    git::git(&moving.work(), &["rm", "--quiet", "src/add.c"]);
    stage(&moving);
    let words = ["2 edits outside the conflict", "src/add.c: it is deleted", "src/extra.c: it is a new file"];
    refused(&moving, &words, |work| {
        std::fs::remove_file(work.join("src/extra.c")).unwrap();
        git::git(work, &["checkout", "--quiet", "HEAD", "--", "src/add.c"]);
    });
}

#[test]
fn the_file_in_conflict_may_not_go() {
    let moving = resolved();
    git::git(&moving.work(), &["rm", "--quiet", "--force", "src/greet.c"]);
    refused(&moving, &["src/greet.c: it is deleted"], |work| {
        files::write(&work.join("src/greet.c"), greet("hi there"));
    });
}

/// Either side as a whole loses what was merged elsewhere in the file.
#[test]
fn taking_one_side_of_a_file_loses_nothing_unnoticed() {
    let moving = Move::with_patch(
        |fork| {
            files::edit(&fork.join("src/greet.c"), "\"hello\"", "\"hello there\"");
            files::edit(&fork.join("src/greet.c"), "good day to you", "good day to you all");
        },
        |upstream| {
            upstream_greets_otherwise(upstream);
            files::edit(&upstream.join("src/greet.c"), "said first.", "said at first.");
        },
    );
    moving.rebase(&[]).code(4);
    for (side, words) in [
        (
            "--ours",
            "src/greet.c:8: expected `    return \"good day to you all\";`, found `    return \"good day to you\";`",
        ),
        ("--theirs", "src/greet.c:3: expected `// "),
    ] {
        git::git(&moving.work(), &["checkout", "--quiet", side, "--", "src/greet.c"]);
        let staged = git::git(&moving.work(), &["status", "--short"]);
        assert_eq!(staged, "UU src/greet.c");
        let index = moving.work().join(".git/index");
        let unmerged = std::fs::read(&index).unwrap();
        stage(&moving);
        moving.run(&["--continue"]).code(4).says(&[words]);
        std::fs::write(&index, unmerged).unwrap();
    }
    git::git(&moving.work(), &["checkout", "--quiet", "--merge", "--", "src/greet.c"]);
    moving.solve_in("src/greet.c", "        return \"hi there\";\n");
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

#[test]
fn an_edit_beside_is_accepted_on_request_and_reported() {
    let moving = resolved();
    files::edit(&moving.work().join("src/count.c"), "int count = 0;", "int count = 5;");
    stage(&moving);
    moving.run(&["--allow-edits"]).code(2);
    moving
        .run(&["--continue", "--allow-edits"])
        .code(4)
        .says(&["0002-say-what-is-counted.patch does not apply"]);
    moving.solve_in("src/count.c", "    int count = 5; // words, not letters\n");
    moving.run(&["--continue"]).code(4);
    moving.solve(greet("hi there, dear"));
    let output = moving.run(&["--continue"]).success();
    assert!(output.stdout.contains("edited beside them: src/count.c:4: expected"), "{output}");
    moving.assert_moved();
}

/// The switch holds for the files that it names, so that the check of all others stays.
#[test]
fn edits_of_one_file_are_accepted_alone() {
    let moving = resolved();
    files::edit(&moving.work().join("src/count.c"), "int count = 0;", "int count = 5;");
    files::write(&moving.work().join("src/extra.c"), "int extra;\n");
    stage(&moving);
    let allow = "cargo xtask rebase --continue --allow-edits src/count.c src/extra.c";
    moving.run(&["--continue"]).code(4).says(&["2 edits outside the conflict", allow]);
    moving
        .run(&["--continue", "--allow-edits", "src/count.c"])
        .code(4)
        .says(&["an edit outside the conflict", "src/extra.c: it is a new file", allow])
        .says_nothing_of("src/count.c:4");
    let typed = ["--continue", "--allow-edits", "src/count.c", "--allow-edits", "src/extras.c"];
    moving.run(&typed).code(2).says(&["`src/extras.c` has no edit outside the conflict", allow]);
    moving
        .run(&["--continue", "--allow-edits", "src/count.c", "--allow-edits", "./src/extra.c"])
        .code(4)
        .says(&[
            "Resolved patches/paged/0001-greet-more-warmly.patch: 3 files",
            "0002-say-what-is-counted.patch does not apply",
        ]);
}

/// A file in the work tree can be hidden from git, so what counts is what is staged.
#[test]
fn a_marker_that_is_staged_only_is_found() {
    for staged in [None, Some(format!("{}=======\n", greet("hi there")))] {
        let moving = Move::new(upstream_greets_otherwise);
        moving.rebase(&[]).code(4);
        let file = moving.work().join("src/greet.c");
        staged.iter().for_each(|text| files::write(&file, text));
        git::git(&moving.work(), &["add", "src/greet.c"]);
        git::git(&moving.work(), &["update-index", "--assume-unchanged", "src/greet.c"]);
        files::write(&file, greet("hi there"));
        let refusal = "`src/greet.c` is staged with a conflict marker in line";
        moving.run(&["--continue"]).code(4).says(&[refusal]);
    }
}

#[test]
fn an_executable_file_in_conflict_stays_executable() {
    let says = |words: &'static str| {
        move |folder: &Path| files::edit(&folder.join("scripts/greet.sh"), "echo hello", words)
    };
    let moving = Move::with_patch(says("echo hello there"), says("echo hi"));
    moving.rebase(&[]).code(4);
    moving.solve_in("scripts/greet.sh", "echo hi there\n");
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let patch = moving.project.read("patches/paged/0001-change-something.patch");
    assert!(patch.contains("+echo hi there") && !patch.contains("mode 100644"), "{patch}");
}

/// The file is at its new path only: its old one must not come back.
#[test]
fn a_renamed_file_in_conflict_is_moved() {
    let moving = Move::with_patch(
        |fork| {
            std::fs::rename(fork.join("src/ring.c"), fork.join("src/circle.c")).unwrap();
            files::edit(&fork.join("src/circle.c"), "at % size", "(at + size) % size");
        },
        |upstream| files::edit(&upstream.join("src/ring.c"), "at % size", "at % (size)"),
    );
    moving.rebase(&[]).code(4);
    assert!(!moving.work().join("src/ring.c").exists());
    moving.solve_in("src/circle.c", "    return (at + size) % (size);\n");
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let patch = moving.project.read("patches/paged/0001-change-something.patch");
    assert!(patch.contains("rename from src/ring.c\nrename to src/circle.c"), "{patch}");
}

/// The change may go into a file that the missing one may have become.
#[test]
fn a_candidate_for_a_file_that_is_gone_may_change() {
    let moving = Move::with_patch(
        |fork| files::edit(&fork.join("src/ring.c"), "at % size", "(at + size) % size"),
        |upstream| {
            std::fs::copy(upstream.join("src/ring.c"), upstream.join("src/wheel.c")).unwrap();
            std::fs::rename(upstream.join("src/ring.c"), upstream.join("src/circle.c")).unwrap();
        },
    );
    moving.rebase(&[]).code(4);
    git::git(&moving.work(), &["rm", "--quiet", "src/ring.c"]);
    files::edit(&moving.work().join("src/circle.c"), "at % size", "(at + size) % size");
    files::edit(&moving.work().join("src/add.c"), "left + right", "right + left");
    stage(&moving);
    moving.run(&["--continue"]).code(4).says(&["src/add.c:4"]).says_nothing_of("src/circle.c");
    files::edit(&moving.work().join("src/add.c"), "right + left", "left + right");
    stage(&moving);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// In a candidate, only the lines that the patch is about may change.
#[test]
fn a_candidate_may_change_only_where_the_patch_lands() {
    let table: String = (0..60).map(|line| format!("int a{line};\n")).collect();
    let moving = Move::with_base(
        |folder| files::write(&folder.join("src/table.c"), &table),
        |fork| files::edit(&fork.join("src/table.c"), "int a20;", "long a20;"),
        |upstream| {
            // The hunk lands on other lines there.
            files::edit(&upstream.join("src/table.c"), "int a5;\n", "int a5;\nint more;\n");
            std::fs::copy(upstream.join("src/table.c"), upstream.join("src/wheel.c")).unwrap();
            std::fs::rename(upstream.join("src/table.c"), upstream.join("src/circle.c")).unwrap();
        },
    );
    moving.rebase(&[]).code(4);
    git::git(&moving.work(), &["rm", "--quiet", "src/table.c"]);
    let circle = moving.work().join("src/circle.c");
    files::edit(&circle, "int a20;", "long a20;");
    files::edit(&circle, "int a40;", "long a40;");
    stage(&moving);
    let output = moving.run(&["--continue"]).code(4);
    output.says(&["an edit outside the conflict", "src/circle.c:42: expected `int a40;`, found `long a40;`"]);
    files::edit(&circle, "long a40;", "int a40;");
    stage(&moving);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// A file can have lines that look like markers, such as one that tests a merge.
#[test]
fn lines_of_the_file_that_look_like_markers_may_stay() {
    let own = "// Markers:\n<<<<<<< a line of this file\n\nint one;\nint two;\n";
    let change =
        |text: &'static str| move |folder: &Path| files::edit(&folder.join("src/marks.c"), "int two;", text);
    let moving = Move::with_base(
        |folder| files::write(&folder.join("src/marks.c"), own),
        change("long two;"),
        change("short two;"),
    );
    moving.rebase(&[]).code(4);
    stage(&moving);
    moving.run(&["--continue"]).code(4).says(&["src/marks.c` has a conflict marker in line 5"]);
    files::write(&moving.work().join("src/marks.c"), own.replace("int two;", "long long two;"));
    stage(&moving);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// Nothing is compiled, but what upstream's code no longer has is named.
#[test]
fn a_resolution_with_a_word_that_upstream_removed_is_noted() {
    let turn = "int words_turned(int at) {\n    return at & 7;\n}\n";
    let moving = Move::with_base(
        |folder| files::write(&folder.join("src/turn.c"), turn),
        |fork| files::edit(&fork.join("src/ring.c"), "at % size", "words_turned(at) % size"),
        |upstream| {
            files::edit(&upstream.join("src/turn.c"), "words_turned", "words_spun");
            files::edit(&upstream.join("src/ring.c"), "at % size", "at % (size)");
        },
    );
    moving.rebase(&[]).code(4);
    moving.solve_in("src/ring.c", "    return words_turned(at) % (size);\n");
    let note = "Note `words_turned` is gone from the files that upstream changed (before: in src/turn.c)\n";
    moving.run(&["--continue"]).success().says(&[note]);
}

/// A program gets the refused edits as data.
#[test]
fn refused_edits_are_data_too() {
    let moving = resolved();
    moving.solve(greet("hi there").replace("good day", "good night"));
    files::write(&moving.work().join("src/extra.c"), "int extra;\n");
    stage(&moving);
    let report = moving.project.run(&["--json", "rebase", "--continue"]).code(4).json();
    let expected = serde_json::json!([
        {
            "path": "src/extra.c",
            "description": "it is a new file",
            "undo": "unstage",
            "line": null,
            "expected": null,
            "found": null,
        },
        {
            "path": "src/greet.c",
            "description": "expected `    return \"good day to you\";`, found `    return \"good night to you\";`",
            "undo": "by-hand",
            "line": 8,
            "expected": { "lines": 1, "first": "    return \"good day to you\";" },
            "found": { "lines": 1, "first": "    return \"good night to you\";" },
        },
    ]);
    assert_eq!((&report["edits"], &report["edits_left_out"]), (&expected, &serde_json::json!(0)));
}

/// Every place of every file is named, with its lines and the way to undo it.
#[test]
fn every_edit_beside_is_named() {
    let moving = resolved();
    let count = moving.work().join("src/count.c");
    files::edit(&count, "int count = 0;", "int count = 5;");
    files::edit(&count, "    return count;\n", "    // one\n    // two\n    return count - 1;\n");
    moving.solve(greet("hi there").replace("#include \"words.h\"\n", ""));
    files::write(&moving.work().join("src/extra.c"), "int extra;\n");
    stage(&moving);
    let work = "git -C target/espalier/rebase/hello/work";
    moving.run(&["--continue"]).code(4).says(&[
        "4 edits outside the conflict",
        "src/count.c:4: expected `    int count = 0;`, found `    int count = 5;`",
        ": expected `    return count;`, found 3 lines from `    // one` on",
        "src/extra.c: it is a new file",
        "src/greet.c:1: `#include \"words.h\"` is deleted",
        &format!("next: leave the new files out: {work} rm --cached --quiet -- src/extra.c"),
        &format!("next: undo it: {work} checkout automatic -- src/count.c"),
        &format!(
            "next: compare with the automatic result, and undo it by hand: {work} diff automatic -- src/greet.c"
        ),
        "next: `git add` the files, then: cargo xtask rebase --continue",
    ]);
    git::git(&moving.work(), &["rm", "--cached", "--quiet", "--", "src/extra.c"]);
    git::git(&moving.work(), &["checkout", "--quiet", "automatic", "--", "src/count.c"]);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4).says(&[
        "Resolved patches/paged/0001-greet-more-warmly.patch: src/greet.c",
        "patches/paged/0003-greet-dearly.patch does not apply to",
    ]);
}
