//! Resolutions that git records: offered again, reported, never those that were refused.

use super::support::moving::{FETCHES, Move, STOP_HINTS, greet, upstream_greets_otherwise};
use super::support::{files, git};

/// Killed after the conflict was shown and before that was recorded; the resolution is accepted all the same.
#[test]
fn resolutions_of_partly_shown_conflicts_are_kept() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&["--trim-upstreamed"]).code(4);
    let not_ready = |moving: &Move| {
        moving.project.edit("target/espalier/rebase/hello/state.json", "\"ready\": true", "\"ready\": false");
    };
    files::write(&moving.work().join("src/greet.c"), greet("hi there"));
    not_ready(&moving);
    moving.run(&["--continue"]).code(4).says(&["does not apply to"]);
    assert_eq!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), greet("hi there"));
    git::git(&moving.work(), &["add", "src/greet.c"]);
    not_ready(&moving);
    insta::assert_snapshot!(moving.run(&["--continue"]).until(&STOP_HINTS[3..]), @"
    exit: 4
    -- stdout --

    -- stderr --
    warning: an earlier run was cut short here; what you wrote is kept in target/espalier/rebase/hello/kept/src/greet.c
    error: patches/paged/0001-greet-more-warmly.patch does not apply to hello v2.0 automatically (0 of 3 patches done)
      src/greet.c: upstream changed the same lines
      after it 1 more of the patches may stop: they change the same files
      src/greet.c: resolved as when patches/paged/0001-greet-more-warmly.patch went onto hello v2.0; not staged yet: review it first
      described for people and programs in target/espalier/rebase/hello/conflict
      next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too
      next: review it, `git add` the files, then: cargo xtask rebase --continue
      next: or get the conflict back: git -C target/espalier/rebase/hello/work checkout automatic -- src/greet.c
    ");
    let kept = moving.project.read("target/espalier/rebase/hello/kept/src/greet.c");
    assert_eq!(kept, greet("hi there"));
}

/// Resolutions are remembered after `--abort`, and at the next step of a move in steps.
#[test]
fn resolutions_are_recorded() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    moving.run(&["--abort"]).success();
    insta::assert_snapshot!(moving.rebase(&[]).after(&FETCHES[1..]).until(&STOP_HINTS[3..]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: patches/paged/0001-greet-more-warmly.patch does not apply to hello v2.0 automatically (0 of 3 patches done)
      src/greet.c: upstream changed the same lines
      after it 1 more of the patches may stop: they change the same files
      src/greet.c: resolved as when patches/paged/0001-greet-more-warmly.patch went onto hello v2.0; not staged yet: review it first
      described for people and programs in target/espalier/rebase/hello/conflict
      next: git -C target/espalier/rebase/hello/work status    # git diff and git mergetool work there too
      next: review it, `git add` the files, then: cargo xtask rebase --continue
      next: or get the conflict back: git -C target/espalier/rebase/hello/work checkout automatic -- src/greet.c
    ");
    assert_eq!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), greet("hi there"));
    // The user has to confirm that the resolution is right.
    moving.run(&["--continue"]).code(4);
    git::git(&moving.work(), &["add", "src/greet.c"]);
    let next = moving.run(&["--continue"]).code(4);
    assert!(next.stderr.contains("0003-greet-dearly.patch does not apply to"), "{}", next.stderr);
}

/// git records the resolution of a conflict once.
#[test]
fn refused_resolutions_are_not_recorded() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi, which is refused"));
    files::write(&moving.work().join("docs/greet.md"), "hi\n");
    git::git(&moving.work(), &["add", "--force", "docs/greet.md"]);
    moving
        .run(&["--continue", "--allow-edits"])
        .code(4)
        .says(&["breaks a rule that the patch kept before", "`docs/greet.md` is not a source file"]);
    git::git(&moving.work(), &["rm", "--quiet", "--force", "docs/greet.md"]);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4).says(&["0003-greet-dearly.patch does not apply to"]);
    moving.run(&["--abort"]).success();
    moving.rebase(&[]).code(4).says(&["src/greet.c: resolved as when"]);
    assert_eq!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), greet("hi there"));
}

/// `--abort` records resolutions too, and the next rebase would offer what was refused.
#[test]
fn a_refused_resolution_is_not_recorded_after_an_abort() {
    let refused = || {
        let moving = Move::new(upstream_greets_otherwise);
        moving.rebase(&[]).code(4);
        moving.solve(greet("hi, which is refused").replace("good day", "good night"));
        moving.run(&["--continue"]).code(4).says(&["an edit outside the conflict"]);
        moving
    };
    let moving = refused();
    let warning = "warning: the resolution that `--continue` refused is not recorded";
    moving.run(&["--abort"]).success().says(&[warning]);
    moving.rebase(&[]).code(4).says_nothing_of("resolved as when");
    let marked = std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap();
    assert!(marked.contains("<<<<<<< "), "{marked}");
    // What was corrected since is recorded.
    let moving = refused();
    moving.solve(greet("hi there"));
    moving.run(&["--abort"]).success().says_nothing_of(warning);
    moving.rebase(&[]).code(4).says(&["src/greet.c: resolved as when"]);
    assert_eq!(std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap(), greet("hi there"));
}

/// Solves both stops of the usual conflict, and aborts at the end of the second; `second` is the result of that one.
fn resolved_twice_and_aborted(second: &str) -> Move {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    moving.solve(second);
    moving.run(&["--abort"]).success();
    moving
}

/// Every stop has the notice, not only the first one of a run.
#[test]
fn resolutions_are_reported_at_every_stop() {
    let moving = resolved_twice_and_aborted(&greet("hi there, dear"));
    let notice = |patch: &str| {
        format!("src/greet.c: resolved as when patches/paged/{patch} went onto hello v2.0; not staged yet")
    };
    let review = "next: review it, `git add` the files, then: cargo xtask rebase --continue";
    moving.rebase(&[]).code(4).says(&[&notice("0001-greet-more-warmly.patch"), review]);
    git::git(&moving.work(), &["add", "src/greet.c"]);
    moving.run(&["--continue"]).code(4).says(&[&notice("0003-greet-dearly.patch"), review]);
    let readme = moving.readme();
    assert!(!readme.contains("<<<<<<<") && readme.contains("it has no markers: review it"), "{readme}");
    let package = moving.package();
    assert_eq!(package["hunks"][0]["marked"], serde_json::Value::Null);
    let recorded = package["files"][0]["recorded"].as_str().unwrap();
    assert!(recorded.starts_with("patches/paged/0003-greet-dearly.patch went onto"), "{recorded}");
    git::git(&moving.work(), &["add", "src/greet.c"]);
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}

/// git records the whole file, so the edits that `--allow-edits` accepted come back with it.
#[test]
fn edits_beside_a_recorded_resolution_are_reported_with_it() {
    let moving = resolved_twice_and_aborted(&greet("hi there, dear").replace("good day", "good night"));
    moving.rebase(&[]).code(4);
    git::git(&moving.work(), &["add", "src/greet.c"]);
    moving.run(&["--continue"]).code(4).says(&[
        "it also edits lines outside the conflict, which only `--allow-edits` accepts:",
        "src/greet.c:8: expected `    return \"good day to you\";`, found `    return \"good night to you\";`",
    ]);
    let work = moving.work();
    git::git(&work, &["checkout", "--quiet", "automatic", "--", "src/greet.c"]);
    let marked = std::fs::read_to_string(work.join("src/greet.c")).unwrap();
    assert!(marked.contains("<<<<<<< v2.0\n"), "{marked}");
    moving.solve(greet("hi there, dear"));
    moving.run(&["--continue"]).success();
    moving.assert_moved();
}
