//! The rules for this repository's own workflow files, and the join job's verdict on every combination of results.

use std::collections::BTreeSet;
use std::process::Command;

use clap::Parser;
use espalier_names::variables::{Reader, read_by};
use espalier_qa::cli::All;
use xtask::cli::Cli;
use xtask::cmd::workflows::rules as workflow_rules;

use super::support::files;

fn workflow(name: &str) -> String {
    std::fs::read_to_string(files::of_this_repository(".github/workflows").join(name)).unwrap()
}

#[test]
fn our_workflows_keep_our_rules() {
    let names = files::list(&files::of_this_repository(".github/workflows"));
    assert_eq!(
        names,
        [
            "campaigns.yml",
            "canary.yml",
            "ci.yml",
            "image-rows.yml",
            "images.yml",
            "pin-sync.yml",
            "release.yml",
            "rows.yml"
        ]
    );
    for name in names {
        let text = workflow(&name);
        assert_eq!(workflow_rules::broken(&name, &text), [""; 0], "{name}");
        assert!(text.contains("cargo xtask"), "{name} calls something else");
    }
}

/// The oldest compiler that Cargo.toml promises is the one that the job `hygiene` installs and runs, and the one that
/// newcomers read of: in the two pages that say how to begin, and in the error of an old cargo.
#[test]
fn the_oldest_compiler_is_the_one_that_cargo_toml_requires() {
    let text = |name: &str| std::fs::read_to_string(files::of_this_repository(name)).unwrap();
    let manifest = text("Cargo.toml");
    let required = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let required = required.trim_matches('"');
    let toolchain = format!("{required}.0");
    let workflow = workflow("ci.yml");
    for before in ["rustup toolchain install ", "cargo +"] {
        let (_, after) = workflow.split_once(before).unwrap();
        assert_eq!(after.split_whitespace().next(), Some(toolchain.as_str()), "{before}");
    }
    for page in ["README.md", "CONTRIBUTING.md"] {
        assert!(text(page).contains(&format!("You need Rust {required} or newer")), "{page}");
    }
    // A cargo before 1.71 names the first profile that it cannot read.
    let first = manifest.lines().find(|line| line.starts_with("[profile.")).unwrap();
    assert_eq!(first, format!("[profile.espalier-needs-rust-{}]", required.replace('.', "-")));
}

/// `ci.yml` and `campaigns.yml` read the same deny.toml, whose keys depend on the version.
#[test]
fn every_workflow_installs_the_same_version_of_cargo_deny() {
    let names = files::list(&files::of_this_repository(".github/workflows"));
    let texts: Vec<String> = names.iter().map(|name| workflow(name)).collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let versions: Vec<&str> = words.filter_map(|word| word.strip_prefix("cargo-deny@")).collect();
    assert_eq!(versions.len(), 2, "{versions:?}");
    assert_eq!(BTreeSet::from_iter(&versions).len(), 1, "{versions:?}");
}

/// A variable that no test reads would leave its campaign at the usual number of cases.
#[test]
fn the_campaigns_set_variables_that_tests_read() {
    let text = workflow("campaigns.yml");
    let keys = text.lines().filter_map(|line| Some(line.trim().split_once(": ")?.0));
    let set: Vec<&str> = keys.filter(|key| key.starts_with("ESPALIER_")).collect();
    assert_eq!(set.len(), 10, "{set:?}");
    for name in set {
        assert!(read_by(Reader::Tests).any(|known| known.name == name), "{name}");
    }
}

/// Returns the arguments of every `cargo xtask` that a workflow runs; the value of each variable is 1.
fn commands_of(name: &str) -> Vec<Vec<String>> {
    let text = workflow(name);
    let commands = text.lines().filter_map(|line| line.trim().split_once("run: cargo xtask "));
    let value = |word: &str| if word.starts_with("\"$") { "1".to_string() } else { word.to_string() };
    commands.map(|(_, words)| words.split_whitespace().map(value).collect()).collect()
}

#[test]
fn the_campaigns_run_both_fuzzers_and_their_commands_can_be_parsed() {
    let commands = commands_of("campaigns.yml");
    for command in &commands {
        let words = std::iter::once("cargo xtask").chain(command.iter().map(String::as_str));
        let error = Cli::<All>::try_parse_from(words).err();
        assert!(error.is_none(), "{command:?}: {error:?}");
    }
    for fuzzer in ["servers", "requests"] {
        let is_run = |command: &&Vec<String>| command.starts_with(&["fuzz".into(), fuzzer.into()]);
        assert_eq!(commands.iter().filter(is_run).count(), 1, "fuzz {fuzzer}: {commands:?}");
    }
}

/// Returns the number of jobs for the rows of `name`: the one passed to the tool, and the actual one.
fn jobs_for_parts(name: &str) -> (usize, usize) {
    let text = workflow(name);
    let (_, after_flag) = text.split_once("--github --parts ").unwrap();
    let jobs: Vec<&str> = text.lines().filter(|line| line.starts_with("  part-")).collect();
    for (index, job) in jobs.iter().enumerate() {
        let number = index + 1;
        assert_eq!(*job, format!("  part-{number}:"));
        for line in [
            format!("      part-{number}: ${{{{ steps.rows.outputs.part-{number} }}}}\n"),
            format!("    if: ${{{{ needs.matrix.outputs.parts >= {number} }}}}\n"),
            format!("${{{{ needs.matrix.outputs.part-{number} }}}}\n"),
        ] {
            assert_eq!(text.matches(&line).count(), 1, "{name}: {line}");
        }
    }
    (after_flag.split_whitespace().next().unwrap().parse().unwrap(), jobs.len())
}

#[test]
fn there_is_a_job_for_each_part() {
    assert_eq!(jobs_for_parts("ci.yml"), (2, 2));
    assert_eq!(jobs_for_parts("images.yml"), (2, 2));
}

/// Returns whether the script of the job `required` passes when the other jobs end like this.
fn joined(jobs: &str, filled: &str, parts: &str) -> bool {
    let text = workflow("ci.yml");
    let (_, script) = text.rsplit_once("        run: |\n").unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", script]).envs([("JOBS", jobs), ("FILLED", filled), ("PARTS", parts)]);
    shell.output().unwrap().status.success()
}

#[test]
fn the_join_job_passes_only_what_is_good() {
    const GOOD: &str = "success success success success";
    assert!(joined(GOOD, "1", "success skipped"));
    assert!(joined(GOOD, "2", "success success"));
    // No row was affected.
    assert!(joined(GOOD, "0", "skipped skipped"));
    for bad in ["failure", "cancelled", "skipped", ""] {
        // Failures of the matrix, and of the jobs that need it; of the tests; of a part.
        assert!(!joined(&format!("{bad} success success success"), "", "skipped skipped"));
        assert!(!joined(&format!("success {bad} failure success"), "1", "success skipped"));
        assert!(!joined(GOOD, "1", &format!("{bad} skipped")));
        assert!(!joined(GOOD, "2", &format!("success {bad}")));
    }
    // The last job alone.
    for bad in ["failure", "cancelled", "skipped"] {
        assert!(!joined(&format!("success success success {bad}"), "1", "success skipped"), "{bad}");
    }
    // An invalid output of the matrix, or more parts than there are jobs.
    for filled in ["", "x", "3"] {
        assert!(!joined(GOOD, filled, "skipped skipped"), "{filled}");
        assert!(!joined(GOOD, filled, "success success"), "{filled}");
    }
    assert!(!joined("", "0", "skipped skipped"));
    // A part without rows was not meant to run.
    assert!(!joined(GOOD, "0", "failure skipped") && !joined(GOOD, "0", "success skipped"));
}
