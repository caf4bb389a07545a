//! A suspended rebase under unusual conditions: attributes, names, earlier decisions.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::support::editing::commit_project;
use super::support::moving::{FETCHES, MOVE_HINTS, Move, STOP_HINTS, greet, upstream_greets_otherwise};
use super::support::{files, git};

/// A conflict beside files that upstream's own attributes would convert.
#[test]
fn upstreams_attributes_convert_nothing() {
    let moving = Move::new(|upstream| {
        upstream_greets_otherwise(upstream);
        files::write(
            &upstream.join(".gitattributes"),
            "* text eol=crlf\n*.md working-tree-encoding=UTF-16\n",
        );
        // Upstream's blobs are not normalised: the attributes were added later.
        files::write(&upstream.join(".git/info/attributes"), "* -text -working-tree-encoding\n");
    });
    moving.rebase(&[]).code(4);
    assert_eq!(git::git(&moving.work(), &["status", "--short"]), "UU src/greet.c");
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    git::git(&moving.work(), &["add", "--all"]);
    moving.run(&["--continue"]).code(4);
    files::write(&moving.work().join("src/greet.c"), greet("hi there, dear"));
    git::git(&moving.work(), &["add", "--all"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let first = moving.project.read("patches/paged/0001-greet-more-warmly.patch");
    assert_eq!(first.matches("diff --git").count(), 1, "{first}");
}

#[test]
fn decisions_before_a_conflict_hold_after_it() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&["--strict", "--no-range-diff"]).code(4);
    moving.solve(greet("hey there"));
    moving.run(&["--continue"]).code(4);
    moving.solve(greet("hey there, dear"));
    let before = moving.committed();
    insta::assert_snapshot!(moving.run(&["--continue"]), @r#"
    exit: 1
    -- stdout --

    -- stderr --
        Resolved patches/paged/0003-greet-dearly.patch: src/greet.c
    error: the rebase would undo what upstream did since the old pin; nothing was written
      0001-greet-more-warmly.patch deletes src/greet.c:6, which upstream added: return "hi";
      next: look at those patches; if it is intended, run the same command with `--no-strict`
    "#);
    assert_eq!(moving.committed(), before);
    // The setting applies to every `--continue` until it is changed.
    moving.run(&["--continue"]).code(1);
    insta::assert_snapshot!(moving.run(&["--continue", "--no-strict"]).success().until(&MOVE_HINTS), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now on v2.0

      changed    patches/paged/0001-greet-more-warmly.patch
                 its conflicts were resolved by hand
      unchanged  patches/paged/0002-say-what-is-counted.patch
      changed    patches/paged/0003-greet-dearly.patch
                 its conflicts were resolved by hand

    warning: patches undo what upstream did since the old pin:
      0001-greet-more-warmly.patch deletes src/greet.c:6, which upstream added: return "hi";

    warning: the move made differences that nothing accounts for; `prove` lists them
    -- stderr --
    "#);
    moving.assert_moved();
}

/// Both sides rewrote a line, and the resolution has every word of both: `prove` accepts that, and so does `--strict`.
#[test]
fn a_line_rewritten_on_both_sides_passes_strict() {
    let moving = Move::new(upstream_greets_otherwise);
    commit_project(&moving.project);
    moving.rebase(&["--strict"]).code(4);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    moving.solve(greet("hi there, dear"));
    let stdout = moving.run(&["--continue"]).success().stdout;
    let note = "note: resolutions rewrite lines of upstream, and keep every word of them:\n  \
                0001-greet-more-warmly.patch rewrites src/greet.c:6, which upstream added: return \"hi\";\n";
    assert!(stdout.contains(note) && !stdout.contains("warning: patches undo"), "{stdout}");
    moving.assert_moved();
    moving.project.run(&["prove", "HEAD"]).success();
}

/// Both sides add some of the same lines. The patch is dropped, and the tree is upstream's: nothing of it is undone.
#[test]
fn a_skipped_patch_undoes_nothing() {
    const FILE: &str = "src/mmq.c";
    let begin = "\n\n\n#ifdef MUL_MAT_ID\n\n\n\n#ifdef MUL_MAT_ID\n\n\n\n";
    let types = "#include \"mul_mmq_shmem_types.glsl\"\n";
    let load = "#define LOAD_VEC_A (4 * QUANT_R_MMQ)\n#define LOAD_VEC_B 16\n\n\n\n";
    let write = |text: String| move |folder: &Path| files::write(&folder.join(FILE), &text);
    let moving = Move::with_base(
        write(format!("{begin}\n\n\n\n#define LOAD_VEC_B 16\n\n#ifdef MUL_MAT_ID\n\n\n\n\n")),
        write(format!("{begin}\n{types}\n\n\n{load}")),
        write(format!("{begin}{types}\n#ifdef MUL_MAT_ID\n\n\n{load}")),
    );
    moving.rebase(&["--strict"]).code(4);
    let stdout = moving.run(&["--skip"]).success().stdout;
    assert!(!stdout.contains("undo what upstream did"), "{stdout}");
    moving.assert_moved();
}

/// Taking the patch's whole side restores lines that upstream deleted.
#[test]
fn lines_that_come_back_are_named() {
    let moving = Move::with_patch(
        |fork| files::edit(&fork.join("src/greet.c"), "return \"hello\";", "return \"hello there\";"),
        |upstream| {
            files::edit(
                &upstream.join("src/greet.c"),
                "    if (kind == 0) {\n        return \"hello\";\n    }\n",
                "",
            )
        },
    );
    moving.rebase(&["--strict"]).code(4);
    let mine = moving.project.fork().join("src/greet.c");
    std::fs::copy(mine, moving.work().join("src/greet.c")).unwrap();
    git::git(&moving.work(), &["add", "src/greet.c"]);
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 1
    -- stdout --

    -- stderr --
        Resolved patches/paged/0001-change-something.patch: src/greet.c
    error: the rebase would undo what upstream did since the old pin; nothing was written
      0001-change-something.patch brings back src/greet.c:5, which upstream deleted: if (kind == 0) {
      next: look at those patches; if it is intended, run the same command with `--no-strict`
    ");
}

/// In a binary conflict one side is always lost.
#[test]
fn a_replaced_binary_is_named() {
    let logo = |byte: u8| [&[byte, 0, 200][..], &[byte; 40]].concat();
    let moving = Move::with_patch(
        |fork| std::fs::write(fork.join("data/logo.bin"), logo(1)).unwrap(),
        |upstream| std::fs::write(upstream.join("data/logo.bin"), logo(2)).unwrap(),
    );
    moving.rebase(&[]).code(4);
    std::fs::write(moving.work().join("data/logo.bin"), logo(1)).unwrap();
    git::git(&moving.work(), &["add", "data/logo.bin"]);
    insta::assert_snapshot!(moving.run(&["--continue"]).success().until(&MOVE_HINTS), @"
    exit: 0
    -- stdout --
    paged: 1 of 1 patches, from hello v1.0, now on v2.0

      unchanged  patches/paged/0001-change-something.patch
                 its conflicts were resolved by hand

    warning: patches undo what upstream did since the old pin:
      0001-change-something.patch replaces data/logo.bin, which is binary, and upstream changed it too

    warning: the move made differences that nothing accounts for; `prove` lists them
    -- stderr --
        Resolved patches/paged/0001-change-something.patch: data/logo.bin
    ");
    moving.assert_moved();
}

fn odd_name(folder: &Path) -> PathBuf {
    folder.join(OsStr::from_bytes(b"src/na\xefve.c"))
}

#[test]
fn a_name_that_is_not_utf8_can_be_solved() {
    let moving = Move::with_patch(
        |fork| files::write(&odd_name(fork), "int ours;\n"),
        |upstream| files::write(&odd_name(upstream), "int theirs;\n"),
    );
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @r"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      src/na\xefve.c: the patch creates this file, but a different one exists
    ");
    let text = std::fs::read_to_string(odd_name(&moving.work())).unwrap();
    assert!(text.starts_with("<<<<<<< v2.0\nint theirs;\n"), "{text}");
    insta::assert_snapshot!(moving.run(&["--continue"]), @r"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/rebase/hello/work/src/na\xefve.c` has a conflict marker in line 1
      next: edit it, then: git -C target/espalier/rebase/hello/work add --update
      next: cargo xtask rebase --continue
    ");
    files::write(&odd_name(&moving.work()), "int both;\n");
    git::git(&moving.work(), &["add", "--all"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// Upstream moves a folder; a patch has a new file for it, and another patch renames a file that upstream renames too.
#[test]
fn a_person_decides_the_new_place_of_moved_functions() {
    let moving = Move::with_patch(
        |fork| {
            files::write(&fork.join("docs/old/new.txt"), "a new story\n");
            std::fs::rename(fork.join("src/ring.c"), fork.join("src/circle.c")).unwrap();
        },
        |upstream| {
            std::fs::rename(upstream.join("docs/old"), upstream.join("docs/tales")).unwrap();
            std::fs::rename(upstream.join("src/ring.c"), upstream.join("src/wheel.c")).unwrap();
        },
    );
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      docs/old/new.txt: upstream moved the folder that this new file belongs in
        it was placed at docs/tales/new.txt: leave it there or move it
      src/ring.c: upstream has renamed it to src/wheel.c, and the patch renames it to src/circle.c
    ");
    insta::assert_snapshot!(git::git(&moving.work(), &["status", "--short"]), @"
    UA docs/tales/new.txt
    UU src/wheel.c
    ");
    assert_eq!(std::fs::read_to_string(moving.work().join("docs/tales/new.txt")).unwrap(), "a new story\n");
    git::git(&moving.work(), &["add", "--all"]);
    insta::assert_snapshot!(moving.run(&["--continue"]).success().until(&MOVE_HINTS), @"
    exit: 0
    -- stdout --
    paged: 1 of 1 patches, from hello v1.0, now on v2.0

      changed  patches/paged/0001-change-something.patch
               its conflicts were resolved by hand

    patches/paged/0001-change-something.patch: changed
      @@
      -## docs/old/new.txt ##
      +## docs/tales/new.txt ##
       @@
       +a new story
      -## src/circle.c ##
      -renamed

    warning: the move made differences that nothing accounts for; `prove` lists them
    -- stderr --
        Resolved patches/paged/0001-change-something.patch: 2 files
    ");
    moving.assert_moved();
}

/// A patch moves a folder, and upstream has added a file to it since: git stops there too.
#[test]
fn new_files_of_upstream_in_a_folder_that_a_patch_moves() {
    let moving = Move::with_patch(
        |fork| std::fs::rename(fork.join("docs/old"), fork.join("docs/tales")).unwrap(),
        |upstream| files::write(&upstream.join("docs/old/new.txt"), "a new story\n"),
    );
    moving.rebase(&[]).code(4).says(&[
        "docs/old/new.txt: upstream has put it into a folder that the patch moves away",
        "leave it there or move it: docs/tales/new.txt",
    ]);
    insta::assert_snapshot!(git::git(&moving.work(), &["status", "--short"]), @"
    AU docs/old/new.txt
    R  docs/old/story.txt -> docs/tales/story.txt
    ");
    assert_eq!(std::fs::read_to_string(moving.work().join("docs/old/new.txt")).unwrap(), "a new story\n");
    moving.run(&["--continue"]).code(4);
    git::git(&moving.work(), &["add", "docs/old/new.txt"]);
    git::git(&moving.work(), &["mv", "docs/old/new.txt", "docs/tales/new.txt"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let patch = moving.project.read("patches/paged/0001-change-something.patch");
    assert!(patch.contains("rename to docs/tales/new.txt"), "{patch}");
}

/// A folder that keeps some files is not moved, and no decision is needed.
#[test]
fn a_folder_that_a_patch_moves_in_part_stays() {
    let moving = Move::with_patch(
        |fork| std::fs::rename(fork.join("src/ring.c"), fork.join("docs/ring.c")).unwrap(),
        |upstream| files::write(&upstream.join("src/new.c"), "int new_one;\n"),
    );
    moving.rebase(&[]).success();
    moving.assert_moved();
}

/// The next commands name the variant if it is not the default one.
#[test]
fn the_next_commands_are_for_the_variant_that_was_asked_for() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.edit("pins.toml", "default-variant = \"paged\"", "default-variant = \"stock\"");
    let stopped = moving.rebase(&["--variant", "paged"]).code(4);
    for step in ["--continue", "--skip", "--abort"] {
        let next = format!("cargo xtask rebase --variant paged {step}");
        assert!(stopped.stderr.contains(&next), "{}", stopped.stderr);
    }
    let again = moving.rebase(&["--variant", "paged"]).code(4);
    assert!(again.stderr.contains("cargo xtask rebase --variant paged --continue"), "{}", again.stderr);
    moving.run(&["--variant", "paged", "--abort"]).success();
}

/// The lock also contains the results of other pins' variants, which a rebase does not know.
#[test]
fn a_lock_that_cannot_be_read_is_not_written_over() {
    let moving =
        Move::new(|upstream| files::edit(&upstream.join("src/count.c"), "#include", "// one\n#include"));
    moving.project.write("espalier.lock", "<<<<<<< HEAD\n");
    let before = moving.committed();
    moving.rebase(&[]).code(2).says(&["espalier.lock", "  next: cargo xtask lock"]);
    assert_eq!(moving.committed(), before);
    moving.project.run(&["lock"]).success();
    moving.rebase(&[]).success();
}

#[test]
fn a_damaged_id_in_the_record_of_a_rebase_is_reported() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    let record = "target/espalier/rebase/hello/state.json";
    let tree = moving.tip_tree();
    moving.project.edit(record, &tree, &tree[..39]);
    let way_out = ["the record of the rebase is damaged", &tree[..39], "  next: cargo xtask rebase --abort"];
    moving.run(&["--continue"]).code(3).says(&way_out);
    moving.run(&["--abort"]).success();
}
