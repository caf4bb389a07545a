//! The rules for this repository's own workflow files, and the join job's verdict on every combination of results.

use std::process::Command;

use xtask::plan::{variables, workflow_rules};

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

/// A variable that no test reads would leave its campaign at the usual number of cases.
#[test]
fn the_campaigns_set_variables_that_tests_read() {
    let text = workflow("campaigns.yml");
    let keys = text.lines().filter_map(|line| Some(line.trim().split_once(": ")?.0));
    let set: Vec<&str> = keys.filter(|key| key.starts_with("ESPALIER_")).collect();
    assert_eq!(set.len(), 7, "{set:?}");
    for name in set {
        let known = variables::KNOWN.iter().find(|(known, _)| *known == name);
        assert!(known.is_some_and(|(_, purpose)| purpose.starts_with("tests: ")), "{name}");
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
    const GOOD: &str = "success success success";
    assert!(joined(GOOD, "1", "success skipped"));
    assert!(joined(GOOD, "2", "success success"));
    // No row was affected.
    assert!(joined(GOOD, "0", "skipped skipped"));
    for bad in ["failure", "cancelled", "skipped", ""] {
        // Failures of the matrix, and of the jobs that need it; of the tests; of a part.
        assert!(!joined(&format!("{bad} success success"), "", "skipped skipped"));
        assert!(!joined(&format!("success {bad} failure"), "1", "success skipped"));
        assert!(!joined(GOOD, "1", &format!("{bad} skipped")));
        assert!(!joined(GOOD, "2", &format!("success {bad}")));
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
