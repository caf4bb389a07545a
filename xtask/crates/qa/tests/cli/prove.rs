//! `prove`: a move that changed nothing but the bases passes, and what else it changed is named.

use std::path::Path;

use super::support::editing::{commit_files, commit_project, refresh_last_patch};
use super::support::moving::{Move, above_everything, greet, upstream_greets_otherwise};
use super::support::{Output, files};

const ALLOWED: &str = "docs/syncs/v1.0-to-v2.0.toml";

fn prove(moving: &Move, arguments: &[&str]) -> Output {
    moving.project.run(&[&["prove"], arguments].concat())
}

#[test]
fn a_clean_move_is_proved() {
    let moving = Move::new(above_everything("src/greet.c"));
    commit_project(&moving.project);
    moving.rebase(&[]).success();
    insta::assert_snapshot!(prove(&moving, &["HEAD"]).success(), @"
    exit: 0
    -- stdout --
    the move from HEAD to the files on disk is proved: the changes of 3 patches are the same on either base

    paged: from v1.0 to v2.0
      the same  0001-greet-more-warmly.patch
      the same  0002-say-what-is-counted.patch
      the same  0003-greet-dearly.patch
    -- stderr --
    ");
    commit_files(&moving.project, &["--message", "Move the pin"]);
    let json = moving.project.run(&["--json", "prove", "HEAD~1", "HEAD"]).success().json();
    assert_eq!(json["proved"], true);
    assert_eq!(json["old"], "HEAD~1");
    assert_eq!(json["new"], "HEAD");
    assert_eq!(json["series"][0]["variant"], "paged");
    assert_eq!(json["series"][0]["patches"].as_array().unwrap().len(), 3);
    assert_eq!(json["intended_in"][0], ALLOWED);
    let page = prove(&moving, &["HEAD~1", "HEAD", "--markdown"]).success().stdout;
    assert!(page.contains("| `0003-greet-dearly.patch` | the same |"), "{page}");
    // And the other way round.
    prove(&moving, &["HEAD", "HEAD~1"]).success();
}

#[test]
fn a_lost_line_is_named_until_its_reason_is_given() {
    let moving = Move::moved(above_everything("src/greet.c"));
    refresh_last_patch(&moving.project, |folder| {
        files::edit(&folder.join("src/greet.c"), "// And another one.\n", "");
    });
    insta::assert_snapshot!(prove(&moving, &["HEAD~1", "."]).code(1), @r#"
    exit: 1
    -- stdout --
    the move from HEAD~1 to the files on disk is not proved: 1 difference
    line numbers are those of the new patched file, unless another one is named

    paged: from v1.0 to v2.0
      the same      0001-greet-more-warmly.patch
      the same      0002-say-what-is-counted.patch
      1 difference  0003-greet-dearly.patch

    0003-greet-dearly.patch: new-deletion: src/greet.c:2: `// And another one.`
      the line number is that of the new base
      digest: c477ea6c3580

    fix the series, or, if a difference is intended, give its reason in docs/syncs/v1.0-to-v2.0.toml:

        [[intended]]
        class = "new-deletion"
        path = "src/greet.c"
        line = "c477ea6c3580"
        why = "..."

    next: write all entries: cargo xtask prove HEAD~1 . --write-intended
    -- stderr --
    "#);
    let long = prove(&moving, &["HEAD~1", ".", "--long"]).code(1).stdout;
    assert!(long.contains("-// And another one."), "{long}");
    let entry = format!(
        "[[intended]]\nclass = \"new-deletion\"\npath = \"src/greet.c\"\nline = {SECOND}\nwhy = \"it is wrong\"\n"
    );
    moving.project.write(ALLOWED, &entry);
    let stdout = prove(&moving, &["HEAD~1", "."]).success().stdout;
    assert!(stdout.contains("but for 1 intended difference"), "{stdout}");
    // A state has its own reasons: the commit has none, and no such difference.
    prove(&moving, &["HEAD~1", "HEAD"]).success();
    moving.project.write(ALLOWED, entry.repeat(2));
    let stdout = prove(&moving, &["HEAD~1", "."]).code(1).stdout;
    let stale = "no difference `new-deletion` of src/greet.c: the line c477ea6c3580";
    assert!(stdout.contains(stale), "{stdout}");
    // Of one variant alone: the difference may be in another series.
    prove(&moving, &["HEAD~1", ".", "--variant", "paged"]).success();
    // The text of the line would be upstream's code.
    moving.project.write(ALLOWED, entry.replace(SECOND, "\"// And another one.\""));
    prove(&moving, &["HEAD~1", "."]).code(2).says(&["that of the line with this text is c477ea6c3580"]);
    moving.project.write(ALLOWED, entry.replace("new-deletion", "new"));
    prove(&moving, &["HEAD~1", "."]).code(2).says(&["invalid `docs/syncs/v1.0-to-v2.0.toml`", "`new`"]);
}

/// The entries are refused until each has a reason, and the text of a person is kept.
#[test]
fn entries_for_all_differences_are_written_and_refused_until_they_have_a_reason() {
    let moving = Move::moved(above_everything("src/greet.c"));
    refresh_last_patch(&moving.project, |folder| {
        files::edit(&folder.join("src/greet.c"), "// A new first line.\n// And another one.\n", "");
    });
    prove(&moving, &["HEAD~1", "HEAD", "--write-intended"]).code(2).says(&["`HEAD` is a commit"]);
    assert!(!moving.project.path(ALLOWED).exists());
    let comment = "# Written by hand.\n";
    moving.project.write(ALLOWED, comment);
    insta::assert_snapshot!(prove(&moving, &["HEAD~1", "--write-intended"]).code(1), @r"
    exit: 1
    -- stdout --
    wrote 1 entry for 2 differences into docs/syncs/v1.0-to-v2.0.toml: give each its reason (`why`), or fix the series and remove it
    next: then: cargo xtask prove HEAD~1
    -- stderr --
    ");
    let written = moving.project.read(ALLOWED);
    assert_eq!(written, format!("{comment}\n{}", two_lines("")));
    prove(&moving, &["HEAD~1"]).code(2).says(&[
        "invalid `docs/syncs/v1.0-to-v2.0.toml`",
        "the reason why the difference is intended is missing",
    ]);
    prove(&moving, &["HEAD~1", "--write-intended"]).code(2);
    assert_eq!(moving.project.read(ALLOWED), written);
    moving.project.write(ALLOWED, written.replace("why = \"\"", "why = \"they are wrong\""));
    let stdout = prove(&moving, &["HEAD~1", "--write-intended"]).success().stdout;
    assert!(stdout.starts_with("no entry is missing") && stdout.contains("but for 2 intended"), "{stdout}");
    // One more than there are could hide another difference, and so could another line.
    for (line, more, stale) in [
        (SECOND, "\"c477ea6c3580\",\n    \"c477ea6c3580\"", "2 are named, and there are only 1: "),
        (SECOND, "\"ab5ff0819db4\"", "no difference `new-deletion` of src/greet.c: the line ab5ff0819db4"),
    ] {
        moving.project.write(ALLOWED, two_lines("they are wrong").replace(line, more));
        let stdout = prove(&moving, &["HEAD~1"]).code(1).stdout;
        assert!(stdout.contains(stale), "{stdout}");
    }
    assert!(prove(&moving, &["HEAD~1"]).code(1).stdout.contains("is not proved: 1 difference"));
}

/// The digests of `// A new first line.` and `// And another one.`.
const FIRST: &str = "\"8acd5869e634\"";
const SECOND: &str = "\"c477ea6c3580\"";

/// Returns the entry for both lines that upstream has above everything.
fn two_lines(why: &str) -> String {
    let lines = format!("    {FIRST},\n    {SECOND},\n");
    let head = "[[intended]]\nclass = \"new-deletion\"\npath = \"src/greet.c\"\n";
    format!("{head}lines = [\n{lines}]\nwhy = \"{why}\"\n")
}

/// It was written before entries named lines: as many other lines of the file would have been covered too.
#[test]
fn an_entry_with_a_number_alone_is_refused_until_its_lines_are_named() {
    let moving = Move::moved(above_everything("src/greet.c"));
    refresh_last_patch(&moving.project, |folder| {
        files::edit(&folder.join("src/greet.c"), "// A new first line.\n// And another one.\n", "");
    });
    let comment = "# Written by hand.\n\n";
    let named = two_lines("they are wrong");
    let begin = named.find("lines = [").unwrap();
    let numbered = format!("{comment}{}count = 2\nwhy = \"they are wrong\"\n", &named[..begin]);
    moving.project.write(ALLOWED, &numbered);
    let stdout = prove(&moving, &["HEAD~1"]).code(1).stdout;
    let stale = format!(
        "{ALLOWED}: an entry names no line, only `count = 2`, and covers nothing: `new-deletion` of src/greet.c"
    );
    assert!(stdout.contains("is not proved: 2 differences") && stdout.contains(&stale), "{stdout}");
    insta::assert_snapshot!(prove(&moving, &["HEAD~1", "--write-intended"]).code(1), @r"
    exit: 1
    -- stdout --
    named 2 differences in 1 entry of docs/syncs/v1.0-to-v2.0.toml, which had a number alone: check that each reason is about these lines
    next: then: cargo xtask prove HEAD~1
    -- stderr --
    ");
    assert_eq!(moving.project.read(ALLOWED), format!("{comment}{named}"));
    assert!(prove(&moving, &["HEAD~1"]).success().stdout.contains("but for 2 intended differences"));
    // The number is not of all differences: a person has to write which.
    moving.project.write(ALLOWED, numbered.replace("count = 2\n", ""));
    let stdout = prove(&moving, &["HEAD~1", "--write-intended"]).code(1).stdout;
    assert!(
        stdout.starts_with("wrote 1 entry for 2 differences") && stdout.contains("`count = 1`"),
        "{stdout}"
    );
}

/// The patch changes a function of which upstream removes a call: no line differs, and it is noted.
#[test]
fn a_call_that_upstream_removes_is_noted() {
    let patch = |folder: &Path| {
        files::edit(&folder.join("src/ring.c"), "at % size", "(at + size) % size");
    };
    let call = "int words_turn(int at) {\n    return words_ring(at, 8);\n}\n";
    let base = |folder: &Path| files::write(&folder.join("src/turn.c"), call);
    let upstream = |folder: &Path| {
        files::write(&folder.join("src/turn.c"), "int words_turn(int at) {\n    return at & 7;\n}\n");
    };
    let moving = Move::with_base(base, patch, upstream);
    commit_project(&moving.project);
    moving.rebase(&[]).success();
    let stdout = prove(&moving, &["HEAD"]).success().stdout;
    assert!(
        stdout.contains("changes `words_ring`, which upstream calls less often (before: 1, now: 0, "),
        "{stdout}"
    );
    assert!(stdout.contains("fewer in src/turn.c (1 before, 0 now)"), "{stdout}");
    let json = moving.project.run(&["--json", "prove", "HEAD"]).success().json();
    assert_eq!(json["series"][0]["lost_calls"][0]["function"], "words_ring");
}

/// Upstream renames a function. The patch and the overlay file that call it merge without a conflict, and do not compile.
#[test]
fn a_word_that_upstream_removes_is_noted_where_it_is_used() {
    let base = |folder: &Path| {
        files::write(&folder.join("src/turn.c"), "int words_turned(int at) {\n    return at & 7;\n}\n");
    };
    let patch = |folder: &Path| {
        files::edit(&folder.join("src/ring.c"), "at % size", "words_turned(at) % size");
    };
    let upstream = |folder: &Path| {
        files::edit(&folder.join("src/turn.c"), "words_turned", "words_spun");
    };
    let moving = Move::with_base(base, patch, upstream);
    moving.project.write("overlay/extra/espalier/use.c", "// First.\nint used = words_turned(1);\n");
    commit_project(&moving.project);
    let note = "note: `words_turned` is gone from the files that upstream changed (before: in src/turn.c)\n  used in \
                overlay/extra/espalier/use.c:2, src/ring.c:";
    let stdout = moving.rebase(&[]).success().stdout;
    assert!(stdout.contains(note), "{stdout}");
    let stdout = prove(&moving, &["HEAD"]).success().stdout;
    assert!(stdout.contains(note), "{stdout}");
    commit_files(&moving.project, &["--message", "Move the pin"]);
    let json = moving.project.run(&["--json", "prove", "HEAD~1", "HEAD"]).success().json();
    let uses = &json["series"][0]["gone_words"][0]["uses"];
    assert_eq!(uses[0]["path"], "overlay/extra/espalier/use.c");
    assert_eq!((&uses[1]["path"], uses.as_array().unwrap().len()), (&serde_json::json!("src/ring.c"), 2));
    let page = prove(&moving, &["HEAD~1", "HEAD", "--markdown"]).success().stdout;
    assert!(page.contains("* note: `words_turned` is gone"), "{page}");
}

#[test]
fn a_conflict_that_was_resolved_with_both_changes_is_proved() {
    let moving = Move::new(upstream_greets_otherwise);
    commit_project(&moving.project);
    prove(&moving, &["--rebase"]).code(2).says(&["no rebase of paged is in progress"]);
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    let done = prove(&moving, &["--rebase"]).success().stdout;
    assert!(done.contains("resolved by hand  0001-greet-more-warmly.patch"), "{done}");
    assert!(done.contains("0002-say-what-is-counted.patch") && !done.contains("0003"), "{done}");
    moving.solve(greet("hi there, dear"));
    moving.run(&["--continue"]).success();
    let stdout = prove(&moving, &["HEAD"]).success().stdout;
    assert!(stdout.contains("resolved by hand  0003-greet-dearly.patch"), "{stdout}");
}

#[test]
fn a_skipped_patch_is_lost_and_an_upstreamed_one_is_not() {
    let moving = Move::new(|folder| {
        upstream_greets_otherwise(folder);
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    });
    commit_project(&moving.project);
    moving.rebase(&["--drop-upstreamed"]).code(4);
    moving.run(&["--skip"]).code(4);
    moving.run(&["--skip"]).success();
    let json = moving.project.run(&["--json", "prove", "HEAD"]).code(1).json();
    let class = |patch: usize| &json["series"][0]["patches"][patch]["findings"][0]["class"];
    assert_eq!([class(0), class(1), class(2)], ["lost-patch", "upstreamed", "lost-patch"]);
    let reasons = ["0001-greet-more-warmly.patch", "0003-greet-dearly.patch"].map(|patch| {
        format!("[[intended]]\nclass = \"lost-patch\"\npath = \"{patch}\"\nwhy = \"upstream greets\"\n")
    });
    moving.project.write(ALLOWED, reasons.concat());
    prove(&moving, &["HEAD"]).success();
}

#[test]
fn a_state_is_a_commit_with_a_series_and_its_lock() {
    let moving = Move::new(above_everything("src/greet.c"));
    commit_project(&moving.project);
    prove(&moving, &[]).code(2);
    prove(&moving, &["nothing"]).code(2).says(&["`nothing` names no commit of this repository"]);
    prove(&moving, &["HEAD", "--variant", "none"]).code(2).says(&["there is no variant `none`"]);
    moving.project.edit("patches/paged/0002-say-what-is-counted.patch", "[PATCH", "[PATCH v2");
    let output = prove(&moving, &["HEAD"]).code(1);
    output.says(&["`espalier.lock` of the files on disk does not match its patches"]);
}
