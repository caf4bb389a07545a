//! `newest`: the furthest upstream commit at which the whole series applies.

use std::path::Path;

use super::support::upstream::moved as moved_upstream;
use super::support::{Output, Project, files, git};

const COUNT_MOVES: (&str, &str, &str, &str) =
    ("Include more", "src/count.c", "#include \"words.h\"", "#include <stddef.h>\n#include \"words.h\"");
const ABOUT: (&str, &str, &str, &str) = ("About", "README.md", "Hello", "Hello!");
const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";");

fn newest(project: &Project, upstream: &Path) -> Output {
    project.run(&["--quiet", "newest", "--tip", "main", "--from", upstream.to_str().unwrap()])
}

/// Returns the report as data, when the exit code is 1.
fn json(project: &Project, upstream: &Path) -> serde_json::Value {
    let from = upstream.to_str().unwrap();
    project.run(&["--json", "newest", "--tip", "main", "--from", from]).code(1).json()
}

#[test]
fn the_furthest_commits_and_what_to_type_next() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[ABOUT, COUNT_MOVES, GREETING_GOES]);
    insta::assert_snapshot!(newest(&project, &upstream), @"
    exit: 1
    -- stdout --
    paged on hello's main line (first parents) from v1.0 to main:

      all of it applies up to 84fa26ff4718 2020-01-02 Include more
        2 commits after the pin, 1 commit before the tip
      all of it is exact up to 7d78578872e0 2020-01-02 About
        1 commit after the pin, 2 commits before the tip

    next: cargo xtask rebase --to 84fa26ff4718e1868feaf83c51a6bb9365dede54 --from [BESIDE]/moved
    -- stderr --
    ");
    let json = json(&project, &upstream);
    assert_eq!(json["applies"]["before_tip"], 1);
    assert_eq!(json["exact"]["after_pin"], 1);
}

#[test]
fn the_tip_itself() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[ABOUT]);
    insta::assert_snapshot!(newest(&project, &upstream), @"
    exit: 0
    -- stdout --
    paged on hello's main line (first parents) from v1.0 to main:

      all of it applies up to 7d78578872e0 2020-01-02 About: the tip, 1 commit after the pin
      all of it is exact up to 7d78578872e0 2020-01-02 About: the tip, 1 commit after the pin

    next: cargo xtask rebase --to 7d78578872e0cd8bedbd9be8bb0c85e3ad443ae8 --from [BESIDE]/moved
    -- stderr --
    ");
    // Without any commit after the pin.
    insta::assert_snapshot!(project.run(&["--quiet", "newest"]), @"
    exit: 0
    -- stdout --
    paged on hello's main line (first parents) from v1.0 to HEAD:

      all of it applies up to the pin, v1.0: the tip, 0 commits after the pin
      all of it is exact up to the pin, v1.0: the tip, 0 commits after the pin
    -- stderr --
    ");
}

#[test]
fn no_further_than_the_pin() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    insta::assert_snapshot!(newest(&project, &upstream), @"
    exit: 1
    -- stdout --
    paged on hello's main line (first parents) from v1.0 to main:

      all of it applies up to the pin, v1.0
        0 commits after the pin, 1 commit before the tip
      all of it is exact up to the pin, v1.0
        0 commits after the pin, 1 commit before the tip

    next: cargo xtask bisect --tip main --from [BESIDE]/moved
    -- stderr --
    ");
}

#[test]
fn nowhere() {
    let project = Project::new();
    project.edit("patches/paged/0002-say-what-is-counted.patch", "// words", "// WORDS");
    let upstream = moved_upstream(&project, &[ABOUT]);
    insta::assert_snapshot!(newest(&project, &upstream), @"
    exit: 1
    -- stdout --
    paged is not exact at the pin, v1.0; a series is moved only from a pin on which it is exact

    paged on hello's main line (first parents) from v1.0 to main:

      all of it applies nowhere, not even at the pin
      all of it is exact nowhere, not even at the pin

    next: cargo xtask apply --variant paged
    -- stderr --
    ");
}

/// A rebase moves a series only from a pin on which it is exact, so the report suggests no move before that.
#[test]
fn a_series_that_is_shifted_at_its_pin_cannot_be_moved() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[ABOUT]);
    let from = upstream.to_str().unwrap();
    let patch = "patches/paged/0002-say-what-is-counted.patch";
    let text = project.read(patch);
    let header = text.lines().find(|line| line.starts_with("@@ -")).unwrap();
    let line: usize = header["@@ -".len()..].split(',').next().unwrap().parse().unwrap();
    let shifted = header.replace(&format!("-{line},"), &format!("-{},", line + 1));
    let shifted = shifted.replace(&format!("+{line},"), &format!("+{},", line + 1));
    project.edit(patch, header, &shifted);
    let why = "paged is not exact at the pin, v1.0; a series is moved only from a pin on which it is exact";
    let next = "next: cargo xtask apply --variant paged";
    let first = newest(&project, &upstream).code(1);
    assert!(first.stdout.starts_with(why) && first.stdout.contains(next), "{first}");
    let status = project.run(&["status", "--tip", "main", "--from", from]).code(1);
    assert!(status.stdout.starts_with(why) && status.stdout.contains(next), "{status}");
    let canary = project.run(&["canary", "--until", "status", "--tip", "main", "--from", from]).code(1);
    assert!(canary.stdout.contains(why) && canary.stdout.contains(next), "{canary}");
    let json = project.run(&["--json", "newest", "--tip", "main", "--from", from]).code(1).json();
    assert_eq!(json["inexact_at_pin"], serde_json::json!(["paged"]));
    for output in [&first, &status, &canary] {
        assert!(!output.stdout.contains("rebase --to") && !output.stdout.contains("sync --to"), "{output}");
        assert!(!output.stdout.contains("--dry-run"), "{output}");
    }
    // The report agrees with the later rebase, and the printed command explains why.
    let refused = project.run(&["rebase", "--to", "main", "--from", from]).code(1);
    refused.says(&["a series is moved only from a pin on which it is exact"]);
    project.run(&["apply", "--variant", "paged"]).code(1).says(&["0002-say-what-is-counted.patch"]);
}

#[test]
fn the_main_line_is_that_of_the_first_parents() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[ABOUT]);
    let folder = project.beside("moved");
    git::git(&folder, &["checkout", "--quiet", "-b", "side"]);
    files::edit(&folder.join("README.md"), "It says", "It says a warm");
    git::commit(&folder, "Fits, and is not on the main line");
    git::git(&folder, &["checkout", "--quiet", "main"]);
    files::edit(&folder.join("src/greet.c"), "return \"hello\";", "return \"hi\";");
    git::commit(&folder, "Say hi");
    git::git(&folder, &["merge", "--quiet", "--no-ff", "--message", "Merge", "side"]);
    let json = json(&project, &upstream);
    assert_eq!(json["applies"]["commit"]["subject"], "About");
    assert_eq!((&json["applies"]["after_pin"], &json["applies"]["before_tip"]), (&1.into(), &3.into()));
}

/// Upstream changed a context line of a hunk. On its own the hunk no longer applies; a rebase merges it, and all
/// reports agree.
#[test]
fn newest_passes_commits_that_a_rebase_merges() {
    let project = Project::new();
    let nearby = ("Say good day", "src/greet.c", "// What is said first.", "// What is said at first.");
    let upstream = moved_upstream(&project, &[nearby]);
    let from = upstream.to_str().unwrap();
    newest(&project, &upstream).success();
    let at_tip = ["--tip", "main", "--from", from];
    let status = project.run(&[&["--json", "status"], &at_tip[..]].concat()).code(1).json();
    assert_eq!(status["patches"][0]["class"], "merged");
    let bisect = project.run(&[&["--json", "bisect"], &at_tip[..]].concat()).code(1).json();
    assert!(bisect["patches"][0]["stops_applying"].is_null(), "{bisect:#}");
    project.run(&["rebase", "--to", "main", "--from", from]).success();
}
