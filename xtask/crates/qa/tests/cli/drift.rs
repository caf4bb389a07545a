//! A patch that is not exact: reported with class, file, hunk, expected and found text.

use std::path::Path;

use super::support::{Output, Project, Source, files, git, upstream::TAG};

/// Creates a project whose upstream got `change` after the series was written.
fn after(change: impl Fn(&Path)) -> Project {
    let helper = Project::new();
    let moved = helper.fork();
    git::git(&moved, &["reset", "--quiet", "--hard", TAG]);
    change(&moved);
    git::commit(&moved, "Move on");
    git::git(&moved, &["tag", "--force", TAG]);
    let project = Project::pinned(&git::tree_of(&moved, TAG), &[Source::Path(moved)]);
    // The helper's folder, and the upstream in it, is removed at the end: fetch the pin now.
    project.run(&["fetch"]).success();
    project
}

/// Runs `apply` and asserts that it left no tree, no lock and no ref.
fn refused(project: &Project) -> Output {
    let output = project.run(&["apply"]);
    assert!(!project.tree("paged").exists(), "{output}");
    assert!(!project.path("espalier.lock").exists(), "{output}");
    let refs = git::git(&project.store(), &["for-each-ref", "refs/espalier/variants"]);
    assert_eq!(refs, "", "{output}");
    output
}

#[test]
fn a_hunk_that_moved_down_in_its_function() {
    let project =
        after(|upstream| files::edit(&upstream.join("src/count.c"), "#include", "// one\n// two\n#include"));
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: shifted
        src/count.c (0002-say-what-is-counted.patch:10): 0 of 1 hunks exact
          made from blob f3961f699da50495cdc3319a552d8c20daa764cc
          found blob     aaa59206231940f48206684bb261a690e5c4fa9b
          hunk 1 @@ -1,7 +1,7 @@ (0002-say-what-is-counted.patch:14): shifted by +2 lines
            made for: int words_count(const char * text) {
            fits at line 3, in function: int words_count(const char * text) {
      next: regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_conflict_and_the_patch_that_it_blocks() {
    let project =
        after(|upstream| files::edit(&upstream.join("src/greet.c"), "return \"hello\"", "return \"hi\""));
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 2 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0001-greet-more-warmly.patch: conflict
        src/greet.c (0001-greet-more-warmly.patch:10): 0 of 1 hunks exact
          made from blob 5018084159e5151b39daf4723cd41c7d033aa88c
          found blob     b04e97ea75f5cac95b0d4754dcaf5e4988febd17
          hunk 1 @@ -3,7 +3,7 @@ (0001-greet-more-warmly.patch:14): conflict
            made for: const char * words_greeting(int kind) {
            nearest: line 3, 6 of 7 lines agree, in function: const char * words_greeting(int kind) {
              expected (patch line 18):         return "hello";
              found    (file line 6):         return "hi";
      patches/paged/0003-greet-dearly.patch: blocked by 0001-greet-more-warmly.patch (provisional: an earlier patch failed)
        src/greet.c (0003-greet-dearly.patch:10): 0 of 1 hunks exact
          made from blob 4fee99c5066c13deddd3baad3e459778e7465c84
          found blob     b04e97ea75f5cac95b0d4754dcaf5e4988febd17
          hunk 1 @@ -3,7 +3,7 @@ (0003-greet-dearly.patch:14): conflict
            made for: const char * words_greeting(int kind) {
            nearest: line 3, 6 of 7 lines agree, in function: const char * words_greeting(int kind) {
              expected (patch line 18):         return "hello there";
              found    (file line 6):         return "hi";
      next: fix the blocking patch first; the blocked one may then apply unchanged
      next: regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

/// The trap: the patched function is gone and its twin has the same body, so `git apply` puts the hunk there and
/// reports success.
#[test]
fn a_hunk_that_fits_a_look_alike_only() {
    let project = after(|upstream| {
        let text = std::fs::read_to_string(upstream.join("src/twins.c")).unwrap();
        let (start, end) =
            (text.find("int words_twin_left").unwrap(), text.find("int words_twin_right").unwrap());
        files::write(&upstream.join("src/twins.c"), format!("{}{}", &text[..start], &text[end..]));
    });
    project.take_patch(|fork| files::edit(&fork.join("src/twins.c"), "result * 2", "result * 3"));
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 1 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0001-change-something.patch: moved function
        src/twins.c (0001-change-something.patch:10): 0 of 1 hunks exact
          made from blob ba96839dff681bd032fb0ad98df8130b796c6048
          found blob     80c2396363c616d11c2daa984c02c16d59a378ae
          hunk 1 @@ -5,7 +5,7 @@ (0001-change-something.patch:14): moved function, +0 lines: it fits, but not where it was made for
            made for: int words_twin_left(int value) {
            fits at line 5, in function: int words_twin_right(int value) {
      next: regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_file_that_upstream_deleted() {
    let project = after(|upstream| std::fs::remove_file(upstream.join("src/count.c")).unwrap());
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: target deleted
        src/count.c (0002-say-what-is-counted.patch:10): the file is gone, and so is its content
      next: follow the file: regenerate the patch on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_file_that_upstream_renamed() {
    let project = after(|upstream| drop(git::git(upstream, &["mv", "src/count.c", "src/counting.c"])));
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: target renamed
        src/count.c (0002-say-what-is-counted.patch:10): the file is gone from this path
          renamed to src/counting.c (the same content)
      next: follow the file: regenerate the patch on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_patch_that_upstream_took() {
    let project = after(|upstream| {
        files::edit(&upstream.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    });
    insta::assert_snapshot!(refused(&project), @"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: upstreamed
        src/count.c (0002-say-what-is-counted.patch:10): upstreamed: already as the patch would leave it
      next: drop what is upstreamed: delete the patch, renumber the rest, cargo xtask lock
    ");
}

#[test]
fn a_file_whose_mode_changed() {
    let project = after(|upstream| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(upstream.join("src/count.c"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    });
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: conflict
        src/count.c (0002-say-what-is-counted.patch:10): expected a file (100644), found an executable file (100755)
      next: regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_patch_edited_by_hand_with_its_old_index_line() {
    let project = Project::new();
    project.edit(
        "patches/paged/0002-say-what-is-counted.patch",
        "+    int count = 0; // words",
        "+    int count = 0; // WORDS",
    );
    insta::assert_snapshot!(refused(&project), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: refused
        src/count.c (0002-say-what-is-counted.patch:10): the patch contradicts itself: the result is blob 0be91c3e19917ce81caa34e15683bc41b2f7b0da, the `index` line says a2b440dbfa5d4dc24c376b1c8a44dd16af6c81fd
      next: if it was edited by hand, give its `index` line the blob id of the result; if not, do not trust it
    ");
}

#[test]
fn a_patch_made_from_another_file_than_it_says() {
    let project = Project::new();
    let patch = "patches/paged/0002-say-what-is-counted.patch";
    let text = project.read(patch);
    let index = text.lines().find(|line| line.starts_with("index ")).unwrap();
    let old = index["index ".len()..].split("..").next().unwrap();
    project.edit(patch, old, &"ab".repeat(20));
    insta::assert_snapshot!(refused(&project), @r#"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: 1 of 3 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0002-say-what-is-counted.patch: shifted
        src/count.c (0002-say-what-is-counted.patch:10): 1 of 1 hunks exact
          made from blob abababababababababababababababababababab
          found blob     f3961f699da50495cdc3319a552d8c20daa764cc
          hunk 1 @@ -1,7 +1,7 @@ (0002-say-what-is-counted.patch:14): exact
      next: regenerate the patch from a commit on the pinned tree: docs/guides/change-a-patch.md
    "#);
}

#[test]
fn a_patch_that_is_cut_short() {
    let project = Project::new();
    let patch = "patches/paged/0002-say-what-is-counted.patch";
    let text = project.read(patch);
    project.write(patch, &text[..text.len() - 60]);
    insta::assert_snapshot!(refused(&project), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0002-say-what-is-counted.patch`
      0002-say-what-is-counted.patch:21: the patch ends too early: expected a line feed at the end of the line, found `     for (cons`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn a_file_that_is_not_a_patch() {
    let project = Project::new();
    project.write("patches/paged/0004-notes.patch", "remember the milk\n");
    insta::assert_snapshot!(refused(&project), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0004-notes.patch`
      0004-notes.patch:1: this is not the output of `git format-patch`: expected `From <commit> Mon Sep 17 00:00:00 2001`, found `remember the milk`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn a_gap_and_a_wrong_name_in_the_series() {
    let project = Project::new();
    let folder = project.path("patches/paged");
    std::fs::rename(folder.join("0003-greet-dearly.patch"), folder.join("0005-greet-dearly.patch")).unwrap();
    project.write("patches/paged/about.diff", "about\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: `patches/paged` is not a series
      about.diff: the file name is not that of a patch
      0005-greet-dearly.patch: number 0005 comes after 0002
      next: name it `NNNN-slug.patch`: four digits from 0001, then the words of the subject joined by `-`
    ");
}

#[test]
fn the_tree_on_disk_stays_when_a_patch_stops_applying() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let before = files::times(project.root());
    let old_text = project.read("patches/paged/0002-say-what-is-counted.patch");
    project.edit("patches/paged/0002-say-what-is-counted.patch", "// words", "// WORDS");
    project.run(&["apply"]).code(1);
    project.write("patches/paged/0002-say-what-is-counted.patch", old_text);
    let mut changed = files::differences(&before, &files::times(project.root()));
    changed.retain(|path| !path.starts_with("target/espalier/store.git/objects"));
    assert_eq!(changed, ["patches/paged/0002-say-what-is-counted.patch"]);
    let json = project.run(&["--json", "apply"]).success().json();
    assert_eq!(json["written"], 0);
}
