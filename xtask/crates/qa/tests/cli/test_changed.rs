//! `cargo xtask test --changed`: a step that has passed is skipped until one of its inputs changes.

use super::support::{Output, Project};

/// Two fast steps: the generated documents, and the lock's record of the patches.
const STEPS: [&str; 6] = ["test", "--only", "docs", "--only", "lock", "--changed"];

const PATCH: &str = "patches/paged/0001-greet-more-warmly.patch";

/// Creates a project in which both steps have passed.
fn passed() -> Project {
    let project = Project::new();
    project.run(&["docs"]).success();
    project.run(&["lock"]).success();
    let output = project.run(&STEPS).success();
    runs(&output, &["docs", "lock"], &[]);
    assert!(output.stderr.contains("(it has not passed here yet)"), "{output}");
    project
}

/// Returns the names of the steps whose line starts with `word`: those that ran, or those that were skipped.
fn steps(output: &Output, word: &str) -> Vec<String> {
    let lines = output.stderr.lines().filter_map(|line| line.trim().strip_prefix(word));
    lines.filter_map(|line| Some(line.trim().split_once(':')?.0.to_string())).collect()
}

#[track_caller]
fn runs(output: &Output, run: &[&str], skipped: &[&str]) {
    assert_eq!(
        (steps(output, "Testing "), steps(output, "Skipping ")),
        (owned(run), owned(skipped)),
        "{output}"
    );
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

#[test]
fn steps_that_passed_are_skipped_and_named() {
    let project = passed();
    let output = project.run(&STEPS).success();
    runs(&output, &[], &["docs", "lock"]);
    assert!(output.stdout.ends_with("left out, unchanged since they passed here: docs lock\n"), "{output}");
    let json = project.run(&[&STEPS[..], &["--json"]].concat()).success().json();
    assert_eq!(json["left_out"], serde_json::json!(["docs", "lock"]));
    let changed = project.run(&[&STEPS[..], &["--dry-run"]].concat()).success();
    runs(&changed, &[], &["docs", "lock"]);
    let all = project.run(&[&STEPS[..5], &["--dry-run"]].concat()).success();
    runs(&all, &[], &[]);
    assert!(all.stdout.starts_with("docs: generated documents") && all.stdout.contains("\nlock: "), "{all}");
    // Without the flag no step is skipped.
    runs(&project.run(&STEPS[..5]).success(), &["docs", "lock"], &[]);
}

#[test]
fn a_step_runs_again_when_something_it_reads_has_changed_and_says_what() {
    let project = passed();
    let patch = project.read(PATCH);
    project.edit(PATCH, "Greet more", "Greet much more");
    let output = project.run(&STEPS).code(1);
    runs(&output, &["lock"], &["docs"]);
    assert!(output.stderr.contains(&format!("(changed: {PATCH})")), "{output}");
    project.write(PATCH, patch);
    project.run(&STEPS).success();
    project.write("docs/new.md", "new");
    runs(&project.run(&STEPS).success(), &["docs"], &["lock"]);
    std::fs::remove_file(project.path("docs/new.md")).unwrap();
    let output = project.run(&STEPS).success();
    runs(&output, &["docs"], &["lock"]);
    assert!(output.stderr.contains("(changed: docs/new.md)"), "{output}");
}

#[test]
fn a_failed_step_runs_until_it_passes() {
    let project = passed();
    let document = project.read("docs/reference/commands.md");
    project.write("docs/reference/commands.md", "stale");
    for _ in 0..2 {
        runs(&project.run(&STEPS).code(1), &["docs"], &["lock"]);
    }
    // The input is as it was when the step passed, but the last recorded result is a failure.
    project.write("docs/reference/commands.md", document);
    runs(&project.run(&STEPS).success(), &["docs"], &["lock"]);
    runs(&project.run(&STEPS).success(), &[], &["docs", "lock"]);
}

#[test]
fn ci_leaves_nothing_out() {
    let project = passed();
    let mut command = project.command(&STEPS);
    command.env("CI", "true");
    let output = project.finish(command).success();
    runs(&output, &["docs", "lock"], &[]);
    assert!(output.stderr.contains("`CI` is set: every step runs"), "{output}");
}
