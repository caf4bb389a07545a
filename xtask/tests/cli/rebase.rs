//! Moving a series to another upstream tree: clean, with conflicts, over look-alikes, killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::support::random::XorShift;
use super::support::{Output, Project, files, git, upstream::TAG};

/// A project and a newer upstream beside it.
struct Move {
    project: Project,
    upstream: PathBuf,
}

const TIP: &str = "v2.0";

impl Move {
    /// The usual series, and an upstream that made `change` since the pin.
    fn new(change: impl Fn(&Path)) -> Move {
        Move::of(Project::new(), change)
    }

    /// The same with a project of one's own.
    fn of(project: Project, change: impl Fn(&Path)) -> Move {
        let upstream = project.beside("newer");
        std::fs::rename(project.fork(), &upstream).unwrap();
        git::git(&upstream, &["checkout", "--quiet", "--force", "--detach", TAG]);
        change(&upstream);
        git::commit(&upstream, "Change upstream");
        git::git(&upstream, &["tag", TIP]);
        Move { project, upstream }
    }

    /// A project with one patch, which makes `patch`, and an upstream that made `change`.
    fn with_patch(patch: impl Fn(&Path), change: impl Fn(&Path)) -> Move {
        let project = Project::new();
        project.take_patch(patch);
        Move::of(project, change)
    }

    fn rebase(&self, more: &[&str]) -> Output {
        let from = self.upstream.to_str().unwrap();
        self.run(&[&["--to", TIP, "--from", from], more].concat())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.project.run(&[&["rebase"], arguments].concat())
    }

    /// The work tree of a conflict.
    fn work(&self) -> PathBuf {
        self.project.path("target/espalier/rebase/paged/work")
    }

    fn tip_tree(&self) -> String {
        git::tree_of(&self.upstream, TIP)
    }

    /// Everything that a person committed.
    fn committed(&self) -> Vec<(String, String)> {
        let mut paths = files::list(self.project.root());
        paths.retain(|path| !path.starts_with("target/"));
        paths.into_iter().map(|path| (path.clone(), self.project.read(&path))).collect()
    }

    /// Pins, lock and series belong together, and the series is exact on the new pin.
    fn assert_moved(&self) {
        let pins = self.project.read("pins.toml");
        assert!(pins.contains(&format!("tag = \"{TIP}\"")) && pins.contains(&self.tip_tree()), "{pins}");
        self.project.run(&["--locked", "--offline", "lock", "--check"]).success();
        assert_eq!(self.project.scratch(), [""; 0]);
        for name in ["pending", "stage", "rebase/paged"] {
            assert!(!self.project.path("target/espalier").join(name).exists(), "{name}");
        }
    }
}

fn above_everything(path: &str) -> impl Fn(&Path) {
    move |folder: &Path| {
        let path = folder.join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        files::write(&path, format!("// A new first line.\n// And another one.\n{text}"));
    }
}

#[test]
fn a_clean_move_over_shifted_lines() {
    let moving = Move::new(above_everything("src/greet.c"));
    let untouched = moving.project.read("patches/paged/0002-say-what-is-counted.patch");
    let output = moving.rebase(&[]).success();
    insta::assert_snapshot!(output, @"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now stands on v2.0

      unchanged  patches/paged/0001-greet-more-warmly.patch
      unchanged  patches/paged/0002-say-what-is-counted.patch
      unchanged  patches/paged/0003-greet-dearly.patch
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
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
    insta::assert_snapshot!(moving.rebase(&["--dry-run"]).success(), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, would go onto v2.0

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
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
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
    insta::assert_snapshot!(moving.rebase(&[]).success(), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now stands on v2.0

      changed  patches/paged/0001-greet-more-warmly.patch
               src/greet.c is followed to src/greeting.c (the same content)
      changed  patches/paged/0002-say-what-is-counted.patch
               src/count.c is followed to src/number.c (90 % of its lines are the same)
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
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
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
    paged: 3 patches, stands on hello v2.0 already

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
    exit: 2
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: `[BESIDE]/newer` has no `v9`
      next: git -C [BESIDE]/newer log --oneline --all
    ");
    insta::assert_snapshot!(moving.run(&["--to", "v9"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v9 from path [UPSTREAM]
    warning: path [UPSTREAM]: git says: couldn't find remote ref refs/heads/v9
    error: no source has `v9` of hello
      path [UPSTREAM]: git says: couldn't find remote ref refs/heads/v9
      next: name a repository or a bundle that has it: --from PATH
    ");
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: no rebase of paged waits for anything
    ");
}

fn upstream_greets_otherwise(folder: &Path) {
    files::edit(&folder.join("src/greet.c"), "return \"hello\";", "return \"hi\";");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
}

#[test]
fn a_conflict_is_solved_and_gone_on_with() {
    let moving = Move::new(upstream_greets_otherwise);
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: patches/paged/0001-greet-more-warmly.patch does not go onto hello v2.0 by itself (0 of 3 patches are done)
      src/greet.c: upstream changed the same lines
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
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
    error: `target/espalier/rebase/paged/work/src/greet.c` has a conflict marker in line 6
      next: edit it, then: git -C target/espalier/rebase/paged/work add src/greet.c
      next: cargo xtask rebase --continue
    ");
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the conflicts of these files are not marked as solved
      target/espalier/rebase/paged/work/src/greet.c
      next: git -C target/espalier/rebase/paged/work add src/greet.c    # or `git rm`, when it shall go
      next: cargo xtask rebase --continue
    ");
    git::git(&moving.work(), &["add", "src/greet.c"]);
    files::write(&moving.work().join("src/greet.c"), greet("something else"));
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/rebase/paged/work/src/greet.c` was changed and not staged
      next: git -C target/espalier/rebase/paged/work add src/greet.c
      next: cargo xtask rebase --continue
    ");
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    // The third patch changes what the first one made, so it needs a person too.
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0003-greet-dearly.patch does not go onto hello v2.0 by itself (2 of 3 patches are done)
      src/greet.c: upstream changed the same lines
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
    ");
    assert_eq!(moving.committed(), before);
    files::write(&moving.work().join("src/greet.c"), greet("hi there, dear"));
    git::git(&moving.work(), &["commit", "--quiet", "--all", "--message", "Solved"]);
    insta::assert_snapshot!(moving.run(&["--continue"]).success(), @r#"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches, from hello v1.0, now stands on v2.0

      changed    patches/paged/0001-greet-more-warmly.patch
                 its conflicts were solved by hand
      unchanged  patches/paged/0002-say-what-is-counted.patch
      changed    patches/paged/0003-greet-dearly.patch
                 its conflicts were solved by hand

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

    warning: patches delete lines that upstream added since the old pin:
      0001-greet-more-warmly.patch deletes src/greet.c:6, which upstream added: return "hi";
    -- stderr --
    "#);
    moving.assert_moved();
}

/// `src/greet.c` of the newer upstream, with another greeting.
fn greet(words: &str) -> String {
    format!(
        "#include \"words.h\"\n\n// What is said first.\nconst char * words_greeting(int kind) {{\n    \
         if (kind == 0) {{\n        return \"{words}\";\n    }}\n    return \"good day to you\";\n}}\n"
    )
}

#[test]
fn what_goes_by_itself_in_a_patch_with_a_conflict_is_staged() {
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
    moving.run(&["--skip"]).code(4).says(&["0003-greet-dearly.patch"]);
    insta::assert_snapshot!(moving.run(&["--skip"]).success(), @"
    exit: 0
    -- stdout --
    paged: 1 of 3 patches, from hello v1.0, now stands on v2.0

      dropped    patches/paged/0001-greet-more-warmly.patch
                 skipped by hand
      unchanged  patches/paged/0002-say-what-is-counted.patch -> patches/paged/0001-say-what-is-counted.patch
      dropped    patches/paged/0003-greet-dearly.patch
                 skipped by hand
    -- stderr --
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
    error: a rebase of paged to v2.0 is not finished yet
      next: go on with it: cargo xtask rebase --continue
      next: or forget it, nothing of your project has changed: cargo xtask rebase --abort
    ");
    moving.rebase(&["--dry-run"]).code(4);
    insta::assert_snapshot!(moving.run(&["--abort"]).success(), @"
    exit: 0
    -- stdout --
    the rebase of paged is forgotten; patches, pins.toml and espalier.lock are as they were
    -- stderr --
    ");
    assert_eq!(moving.committed(), before);
    assert!(!moving.project.path("target/espalier/rebase/paged").exists());
    insta::assert_snapshot!(moving.run(&["--abort"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: no rebase of paged waits for anything
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
      next: or start anew: cargo xtask rebase --abort, then cargo xtask rebase --to
    ");
}

#[test]
fn a_patch_that_upstream_has_is_dropped_on_request_only() {
    let moving = Move::new(|folder| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    });
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: hello v2.0 has what 1 of 3 patches do; nothing was written
      patches/paged/0002-say-what-is-counted.patch: upstreamed
        src/count.c: upstream has all of the change
      next: if that is right, add: --drop-upstreamed
    ");
    assert_eq!(moving.committed(), before);
    insta::assert_snapshot!(moving.rebase(&["--drop-upstreamed"]).success(), @"
    exit: 0
    -- stdout --
    paged: 2 of 3 patches, from hello v1.0, now stands on v2.0

      unchanged  patches/paged/0001-greet-more-warmly.patch
      dropped    patches/paged/0002-say-what-is-counted.patch
                 src/count.c: upstream has all of the change
                 upstream has all of it
      unchanged  patches/paged/0003-greet-dearly.patch -> patches/paged/0002-greet-dearly.patch
    -- stderr --
        Fetching hello v2.0 from path [BESIDE]/newer
        Dropping patches/paged/0002-say-what-is-counted.patch
    ");
    moving.assert_moved();
    let left = files::list(&moving.project.path("patches/paged"));
    assert_eq!(left, ["0001-greet-more-warmly.patch", "0002-greet-dearly.patch"]);
}

fn change_two_places(folder: &Path) {
    files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
    files::edit(&folder.join("src/count.c"), "    return count;", "    return count - 1;");
}

#[test]
fn a_patch_that_upstream_has_in_part_is_trimmed_on_request_only() {
    let moving = Move::with_patch(change_two_places, |folder| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
    });
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: hello v2.0 has what 1 of 1 patches do; nothing was written
      patches/paged/0001-change-something.patch: partly upstreamed
        src/count.c: upstream has 2 of 4 changed lines
      next: if that is right, add: --trim-upstreamed
    ");
    insta::assert_snapshot!(moving.rebase(&["--trim-upstreamed"]).success(), @r#"
    exit: 0
    -- stdout --
    paged: 1 of 1 patches, from hello v1.0, now stands on v2.0

      changed  patches/paged/0001-change-something.patch
               src/count.c: upstream has 2 of 4 changed lines

    patches/paged/0001-change-something.patch: changed
      @@
       ## src/count.c ##
      -@@
      - #include "words.h"
      -
      - int words_count(const char * text) {
      --    int count = 0;
      -+    int count = 1;
      -     int inside = 0;
      -     for (const char * at = text; *at; at++) {
      -         if (*at == ' ') {
       @@ int words_count(const char * text) {
                    count++;
                }
    -- stderr --
        Fetching hello v2.0 from path [BESIDE]/newer
    "#);
    moving.assert_moved();
}

/// Upstream deletes the patched function, and its twin stays.
fn without_the_left_twin(folder: &Path) {
    let path = folder.join("src/twins.c");
    let text = std::fs::read_to_string(&path).unwrap();
    let (start, end) =
        (text.find("int words_twin_left").unwrap(), text.find("int words_twin_right").unwrap());
    files::write(&path, format!("{}{}", &text[..start], &text[end..]));
}

fn change_the_left_twin(folder: &Path) {
    files::edit(&folder.join("src/twins.c"), "result = result * 2;", "result = result * 3;");
}

#[test]
fn a_change_never_goes_into_a_lookalike() {
    let moving = Move::with_patch(change_the_left_twin, without_the_left_twin);
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: patches/paged/0001-change-something.patch does not go onto hello v2.0 by itself (0 of 1 patches are done)
      src/twins.c: upstream changed the same lines
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
    ");
    assert_eq!(moving.committed(), before);
    let patch = moving.project.path("patches/paged/0001-change-something.patch");
    assert_eq!(accepted_by_git(&moving.upstream, &patch), ["apply", "am", "am -3"]);
}

#[test]
fn a_change_that_fits_twice_is_looked_at() {
    let moving = Move::with_patch(change_the_left_twin, above_everything("src/twins.c"));
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: patches/paged/0001-change-something.patch does not go onto hello v2.0 by itself (0 of 1 patches are done)
      src/twins.c: look at it: the change fits, but maybe not where it was made for
        line 10: ambiguous: made for `int words_twin_left(int value) {`, it would go into `int words_twin_left(int value) {`
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
    ");
    insta::assert_snapshot!(std::fs::read_to_string(moving.work().join("src/twins.c")).unwrap(), @r#"
    // A new first line.
    // And another one.
    #include "words.h"

    int words_twin_left(int value) {
        int result = value;
        if (result < 0) {
            result = 0;
        }
    <<<<<<< v2.0
        result = result * 2;
    =======
        result = result * 3;
    >>>>>>> 0001-change-something.patch
        if (result > 100) {
            result = 100;
        }
        return result;
    }

    int words_twin_right(int value) {
        int result = value;
        if (result < 0) {
            result = 0;
        }
        result = result * 2;
        if (result > 100) {
            result = 100;
        }
        return result;
    }
    "#);
    files::edit(&moving.work().join("src/twins.c"), "<<<<<<< v2.0\n    result = result * 2;\n=======\n", "");
    files::edit(&moving.work().join("src/twins.c"), ">>>>>>> 0001-change-something.patch\n", "");
    git::git(&moving.work(), &["add", "src/twins.c"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// Which of git's own ways take `patch` on the newer upstream without a word.
fn accepted_by_git(upstream: &Path, patch: &Path) -> Vec<&'static str> {
    let patch = patch.to_str().unwrap();
    let ways: [(&str, &[&str]); 3] =
        [("apply", &["apply", "--index", patch]), ("am", &["am", patch]), ("am -3", &["am", "-3", patch])];
    let mut accepted = Vec::new();
    for (name, arguments) in ways {
        git::git(upstream, &["checkout", "--quiet", "--force", "--detach", TIP]);
        if git::try_git(upstream, arguments) {
            accepted.push(name);
        }
        git::try_git(upstream, &["am", "--abort"]);
        git::git(upstream, &["reset", "--quiet", "--hard", TIP]);
    }
    accepted
}

/// A person takes the patch's side whole, and with it deletes what upstream added.
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
    error: the rebase would delete lines that upstream added; nothing was written
      0001-change-something.patch deletes src/count.c:6, which upstream added: check_the_text(text);
      next: look at those patches; if it is meant, run the same command without `--strict`
    ");
    assert_eq!(moving.committed(), before);
    let json = moving.project.run(&["--json", "rebase", "--continue"]).success().json();
    assert_eq!(json["reverts"][0]["line"], 6);
    assert_eq!(json["reverts"][0]["text"], "check_the_text(text);");
    moving.assert_moved();
}

/// What upstream deleted, a binary file, a file of that name: each waits in a form that git understands.
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
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: patches/paged/0001-change-something.patch does not go onto hello v2.0 by itself (0 of 1 patches are done)
      data/logo.bin: it is no text, and both changed it
      src/new.c: the patch makes this file, and another one is there
      src/ring.c: upstream has no such file any more
      src/upper.c: the patch deletes this file, and upstream changed it
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
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

/// Upstream put a link in the place of a folder: nothing may be written through it.
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
    insta::assert_snapshot!(moving.rebase(&[]), @"
    exit: 4
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v2.0 from path [BESIDE]/newer
    error: patches/paged/0001-change-something.patch does not go onto hello v2.0 by itself (0 of 1 patches are done)
      docs/old/story.txt: the patch must not write here: the path goes through `docs/old`, which is a symlink (120000)
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
    ");
    assert_eq!(files::list(&moving.project.beside("outside")), [""; 0]);
    moving.run(&["--continue"]).code(4).says(&["not marked as solved", "docs/old/story.txt"]);
    git::git(&moving.work(), &["rm", "--quiet", "--cached", "docs/old/story.txt"]);
    moving
        .run(&["--continue"])
        .code(4)
        .says(&["nothing is left of patches/paged/0001-change-something.patch"]);
    assert_eq!(files::list(&moving.project.beside("outside")), [""; 0]);
    moving.run(&["--abort"]).success();
}

/// Killed after the conflict was shown and before that was written down, and solved all the same.
#[test]
fn what_was_solved_in_a_half_shown_conflict_is_kept() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&["--trim-upstreamed"]).code(4);
    let not_ready = |moving: &Move| {
        moving.project.edit("target/espalier/rebase/paged/state.json", "\"ready\": true", "\"ready\": false");
    };
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    not_ready(&moving);
    moving.run(&["--continue"]).code(4).says(&["does not go onto"]);
    assert_eq!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), greet("hi there"));
    git::git(&moving.work(), &["add", "src/greet.c"]);
    not_ready(&moving);
    insta::assert_snapshot!(moving.run(&["--continue"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    warning: an earlier run was cut short here; what you wrote is kept in target/espalier/rebase/paged/kept/src/greet.c
    error: patches/paged/0001-greet-more-warmly.patch does not go onto hello v2.0 by itself (0 of 3 patches are done)
      src/greet.c: upstream changed the same lines
      next: cd target/espalier/rebase/paged/work    # git status, git diff and git mergetool work there
      next: solve it, `git add` what you solved, then: cargo xtask rebase --continue
      next: or leave this patch out: cargo xtask rebase --skip
      next: or forget the rebase, nothing has changed: cargo xtask rebase --abort
    ");
    let kept = moving.project.read("target/espalier/rebase/paged/kept/src/greet.c");
    assert_eq!(kept, greet("hi there"));
}

/// A rebase that is killed anywhere is finished or forgotten by the next commands, whole.
#[test]
fn killed_at_fifty_points_nothing_is_lost() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    let start = moving.committed();
    let first = ["--to", TIP, "--from", moving.upstream.to_str().unwrap()];
    let mut random = XorShift::new(0x0dd_ba11);
    let long = Duration::from_secs(60);
    let whole_start = moving.run_and_kill(&first, long);
    moving.solve_and_stage();
    moving.solve_the_rest(long);
    let whole_end = moving.run_and_kill(&["--continue"], long);
    moving.assert_moved();
    for _ in 0..25 {
        moving.put_back(&start);
        moving.run_and_kill(&first, whole_start.mul_f64(random.fraction()));
        if !moving.work().exists() {
            moving.assert_project_is(&start, "killed before the conflict");
            moving.rebase(&[]).code(4);
        }
        // What was shown half is shown again.
        moving.run(&["--continue"]).code(4);
        moving.solve_and_stage();
        moving.solve_the_rest(whole_end.mul_f64(random.fraction()));
        moving.run_and_kill(&["--continue"], whole_end.mul_f64(random.fraction()));
        moving.finish(&start);
    }
}

impl Move {
    /// Gives how long it ran.
    fn run_and_kill(&self, arguments: &[&str], limit: Duration) -> Duration {
        let all = [&["rebase"], arguments].concat();
        let begin = Instant::now();
        let mut child =
            self.project.command(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while begin.elapsed() < limit && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(300).min(limit));
        }
        let ran = begin.elapsed();
        // It may have ended by itself just before.
        let _ = child.kill();
        child.wait().unwrap();
        ran
    }

    fn solve_and_stage(&self) {
        files::write(&self.work().join("src/greet.c"), greet("hi there"));
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// Goes on to the second conflict, by a run that is killed and one that is not, and solves it.
    fn solve_the_rest(&self, limit: Duration) {
        self.run_and_kill(&["--continue"], limit);
        self.run(&["--continue"]).code(4);
        files::write(&self.work().join("src/greet.c"), greet("hi there, dear"));
        git::git(&self.work(), &["add", "src/greet.c"]);
    }

    /// The project as at the start, and no rebase.
    fn put_back(&self, start: &[(String, String)]) {
        std::fs::remove_dir_all(self.project.path("patches")).unwrap();
        for (path, text) in start {
            self.project.write(path, text);
        }
        std::fs::remove_dir_all(self.project.path("target/espalier/rebase")).unwrap_or_default();
    }

    /// Any command finishes what was decided, so one is run first.
    #[track_caller]
    fn assert_project_is(&self, expected: &[(String, String)], context: &str) {
        self.project.run(&["lint"]);
        assert!(self.committed() == expected, "{context}");
    }

    /// The killed run had moved everything, or nothing: then what was solved is still there.
    fn finish(&self, start: &[(String, String)]) {
        self.project.run(&["lint"]);
        if self.work().exists() {
            self.assert_project_is(start, "a rebase that waits has changed nothing");
            self.run(&["--continue"]).success();
        }
        self.assert_moved();
        let last = self.project.read("patches/paged/0003-greet-dearly.patch");
        assert!(last.contains("+        return \"hi there, dear\";"), "{last}");
    }
}
