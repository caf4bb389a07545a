//! Cases in which git's own commands apply a change at the wrong place.

use std::path::Path;

use super::support::moving::{FETCHES, MOVE_HINTS, Move, STOP_HINTS, TIP, above_everything};
use super::support::{files, git};

/// Upstream deletes the patched function, and keeps its twin.
pub fn without_the_left_twin(folder: &Path) {
    let path = folder.join("src/twins.c");
    let text = std::fs::read_to_string(&path).unwrap();
    let (start, end) =
        (text.find("int words_twin_left").unwrap(), text.find("int words_twin_right").unwrap());
    files::write(&path, format!("{}{}", &text[..start], &text[end..]));
}

pub fn change_the_left_twin(folder: &Path) {
    files::edit(&folder.join("src/twins.c"), "result = result * 2;", "result = result * 3;");
}

#[test]
fn a_change_never_goes_into_a_lookalike() {
    let moving = Move::with_patch(change_the_left_twin, without_the_left_twin);
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      src/twins.c: upstream changed the same lines
    ");
    assert_eq!(moving.committed(), before);
    let patch = moving.project.path("patches/paged/0001-change-something.patch");
    assert_eq!(accepted_by_git(&moving.upstream, &patch), ["apply", "am", "am -3"]);
}

/// The hunk fits twice, and the base determines which place is meant.
#[test]
fn a_twin_elsewhere_does_not_stop_a_rebase() {
    let moving = Move::with_patch(change_the_left_twin, above_everything("src/twins.c"));
    moving.rebase(&[]).success();
    moving.assert_moved();
    git::git(&moving.upstream, &["checkout", "--quiet", "--force", "--detach", TIP]);
    let patch = moving.project.path("patches/paged/0001-change-something.patch");
    git::git(&moving.upstream, &["apply", patch.to_str().unwrap()]);
    let text = std::fs::read_to_string(moving.upstream.join("src/twins.c")).unwrap();
    let (left, right) = text.split_once("int words_twin_right").unwrap();
    assert!(left.contains("result * 3") && right.contains("result * 2"), "{text}");
}

/// Upstream swaps the twins: each is now on the lines of the other.
pub fn right_twin_first(folder: &Path) {
    let path = folder.join("src/twins.c");
    let text = std::fs::read_to_string(&path).unwrap();
    let (left, right) =
        (text.find("int words_twin_left").unwrap(), text.find("int words_twin_right").unwrap());
    let (head, left, right) = (&text[..left], &text[left..right], &text[right..]);
    files::write(&path, format!("{head}{right}\n{}\n", left.trim_end()));
}

#[test]
fn a_change_of_one_twin_never_goes_into_the_other() {
    let moving = Move::with_patch(change_the_left_twin, right_twin_first);
    let before = moving.committed();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES).until(&STOP_HINTS), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-change-something.patch does not apply to hello v2.0 automatically (0 of 1 patches done)
      src/twins.c: review it: the change fits, but maybe not where it was meant to go
        line 8: moved function: made for `int words_twin_left(int value) {`, would land in `int words_twin_right(int value) {`
    ");
    assert_eq!(moving.committed(), before);
    let patch = moving.project.path("patches/paged/0001-change-something.patch");
    assert_eq!(accepted_by_git(&moving.upstream, &patch), ["apply", "am", "am -3"]);
    // And with the wrong result: the change is in the other function.
    git::git(&moving.upstream, &["apply", patch.to_str().unwrap()]);
    let text = std::fs::read_to_string(moving.upstream.join("src/twins.c")).unwrap();
    let right = text.split("int words_twin_left").next().unwrap();
    assert!(right.contains("result * 3"), "{text}");
}

/// Upstream moves the body of a function into another one, which the old one calls. A person accepts the new place for
/// the first patch; the others change another line of the body, and the line of the first patch.
#[test]
fn a_function_that_was_moved_is_asked_about_once() {
    const FILE: &str = "src/long.c";
    let body: String = (1..12).map(|step| format!("    step_{step}(at);\n")).collect();
    let base = format!("int words_long(int at) {{\n{body}    return at;\n}}\n");
    let moved = format!(
        "int words_long_by(int at, int by) {{\n{body}    return at;\n}}\n\nint words_long(int at) {{\n    \
         return words_long_by(at, 1);\n}}\n"
    );
    let change = |folder: &Path, from: &str, to: &str| files::edit(&folder.join(FILE), from, to);
    let patches = |folder: &Path| {
        change(folder, "step_3(at)", "step_3(at, 3)");
        git::commit(folder, "Change step 3");
        change(folder, "step_8(at)", "step_8(at, 8)");
        git::commit(folder, "Change step 8");
        change(folder, "step_3(at, 3)", "step_3(at, 33)");
    };
    let write = |text: &str| {
        let text = text.to_string();
        move |folder: &Path| files::write(&folder.join(FILE), &text)
    };
    let moving = Move::with_base(write(&base), patches, write(&moved));
    moving.rebase(&[]).code(4).says(&[
        "0001-change-step-3.patch does not apply",
        "made for `int words_long(int at) {`, would land in `int words_long_by(int at, int by) {`",
    ]);
    files::write(&moving.work().join(FILE), moved.replace("step_3(at)", "step_3(at, 3)"));
    git::git(&moving.work(), &["add", FILE]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
    let patch = moving.project.read("patches/paged/0003-change-something.patch");
    assert!(patch.contains("+    step_3(at, 33);\n"), "{patch}");
}

fn change_two_places(folder: &Path) {
    files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
    files::edit(&folder.join("src/count.c"), "    return count;", "    return count - 1;");
}

/// A dry run reports the same as the run: results, notes, differences and the tree.
#[test]
fn a_dry_run_says_what_the_run_then_says() {
    let has_all = |folder: &Path| change_two_places(folder);
    let has_a_part = |folder: &Path| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
    };
    let stands_elsewhere = above_everything("src/count.c");
    let cases: [&dyn Fn(&Path); 3] = [&has_all, &has_a_part, &stands_elsewhere];
    for case in cases {
        let moving = Move::with_patch(change_two_places, case);
        let report = |more: &[&str]| {
            let flags = ["--drop-upstreamed", "--trim-upstreamed", "--json"];
            let mut json = moving.rebase(&[&flags[..], more].concat()).success().json();
            for patch in json["patches"].as_array_mut().unwrap() {
                patch["new_file"].take();
            }
            json["written"].take();
            json["next"].take();
            json
        };
        let tried = report(&["--dry-run"]);
        assert_eq!(tried, report(&[]));
    }
}

#[test]
fn a_patch_that_upstream_has_in_part_is_trimmed_on_request_only() {
    let moving = Move::with_patch(change_two_places, |folder| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
    });
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: hello v2.0 has what 1 of 1 patches do; nothing was written
      patches/paged/0001-change-something.patch: partly upstreamed
        src/count.c: upstream has 2 of 4 changed lines
        hello v2.0 src/count.c:4, the patch src/count.c:4: both have
          -    int count = 0;
          +    int count = 1;
          possibly a counter: both sides changed it from 0 to 1; if each added an entry of its own, the right value is 2
          trimming keeps 1
      next: a counter may be too low: stop at each patch that it has in part, and set it: add --edit-upstreamed
      next: or if upstream's value is right, add: --trim-upstreamed
    ");
    let patch = moving.project.beside("as-it-was.patch");
    std::fs::copy(moving.project.path("patches/paged/0001-change-something.patch"), &patch).unwrap();
    let moved = moving.rebase(&["--trim-upstreamed"]).success();
    insta::assert_snapshot!(moved.after(&FETCHES[1..]).until(&MOVE_HINTS), @r#"
    exit: 0
    -- stdout --
    paged: 1 of 1 patches, from hello v1.0, now on v2.0

      changed  patches/paged/0001-change-something.patch
               src/count.c: upstream has 2 of 4 changed lines
               hello v2.0 src/count.c:4, the patch src/count.c:4: both have
                 -    int count = 0;
                 +    int count = 1;
                 possibly a counter: both sides changed it from 0 to 1; if each added an entry of its own, the right value is 2
                 trimming keeps 1

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

    warning: trimmed patches keep upstream's value of a possible counter; if both sides added an entry, it is too low: set it with `cargo xtask edit`
      patches/paged/0001-change-something.patch
    -- stderr --
    "#);
    moving.assert_moved();
    // Git keeps the other half, and reports nothing.
    assert_eq!(accepted_by_git(&moving.upstream, &patch), ["am -3"]);
}

/// Returns git's commands that accept `patch` on the newer upstream without an error.
fn accepted_by_git(upstream: &Path, patch: &Path) -> Vec<&'static str> {
    let patch = patch.to_str().unwrap();
    let cases: [(&str, &[&str]); 3] =
        [("apply", &["apply", "--index", patch]), ("am", &["am", patch]), ("am -3", &["am", "-3", patch])];
    let mut accepted = Vec::new();
    for (name, arguments) in cases {
        git::git(upstream, &["checkout", "--quiet", "--force", "--detach", TIP]);
        if git::try_git(upstream, arguments) {
            accepted.push(name);
        }
        git::try_git(upstream, &["am", "--abort"]);
        git::git(upstream, &["reset", "--quiet", "--hard", TIP]);
    }
    accepted
}
