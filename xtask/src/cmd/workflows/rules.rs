//! Our own rules for workflow files, which no linter has: actions pinned to commits, least privilege, time limits, one
//! job that depends on all others.
//!
//! They check lines, not YAML: the files are our own, small and indented by two, and a file in any other style breaks a
//! rule rather than passing unchecked.

/// The job that a branch rule requires, in the workflow that runs on every change.
const JOIN_JOB: &str = "required";

/// Every rule that the workflow called `name` breaks.
pub fn broken(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let jobs = jobs(&lines);
    let mut broken = Vec::new();
    let mut rule = |holds: bool, says: String| {
        if !holds {
            broken.push(says);
        }
    };
    rule(lines.contains(&"permissions: {}"), "`permissions: {}` is missing at the top".to_string());
    // A called workflow uses its caller's concurrency group.
    let is_called = lines.contains(&"  workflow_call:");
    rule(is_called || lines.contains(&"concurrency:"), "`concurrency:` is missing at the top".to_string());
    rule(!jobs.is_empty(), "there are no jobs, indented by two".to_string());
    for line in lines.iter().filter(|line| line.contains("uses:")) {
        rule(is_pinned(line), format!("not pinned to a commit, with its version behind it: {}", line.trim()));
    }
    let checkouts = lines.iter().filter(|line| line.contains("actions/checkout@")).count();
    let kept = lines.iter().filter(|line| line.trim() == "persist-credentials: false").count();
    rule(kept == checkouts, "a checkout without `persist-credentials: false`".to_string());
    for line in scripts(&lines).iter().filter(|line| line.contains("${{")) {
        rule(false, format!("an expression in a script, where `env:` belongs: {}", line.trim()));
    }
    for what in excess_privileges(&lines) {
        rule(false, what);
    }
    for line in lines.iter().filter(|line| is_unpinned_image(line)) {
        rule(false, format!("an image without its digest: {}", line.trim()));
    }
    let compares = scripts(&lines).iter().any(|line| line.contains("--changed-since"));
    let has_history = lines.iter().any(|line| line.trim() == "fetch-depth: 0");
    rule(
        !compares || has_history,
        "`--changed-since` without `fetch-depth: 0`: everything would be built".to_string(),
    );
    let without_limit = jobs.iter().filter(|job| !job.has_limit());
    broken.extend(without_limit.map(|job| format!("the job `{}` has no `timeout-minutes`", job.name)));
    if name.ends_with("ci.yml") && !joins_all(&jobs) {
        broken.push(format!("the job `{JOIN_JOB}` has to need every other job, always, and fail"));
    }
    broken
}

struct Job<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
}

impl Job<'_> {
    /// Whether its time is limited; a called workflow has its own limits.
    fn has_limit(&self) -> bool {
        let starts = |what: &str| self.lines.iter().any(|line| line.starts_with(what));
        starts("    timeout-minutes: ") || starts("    uses: ./")
    }
}

fn jobs<'a>(lines: &[&'a str]) -> Vec<Job<'a>> {
    let mut jobs: Vec<Job<'a>> = Vec::new();
    let inside = lines.iter().skip_while(|line| **line != "jobs:").skip(1);
    for line in inside.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        match (name.and_then(|rest| rest.strip_suffix(':')), jobs.last_mut()) {
            (Some(name), _) => jobs.push(Job { name, lines: Vec::new() }),
            (None, Some(job)) => job.lines.push(line),
            (None, None) => {}
        }
    }
    jobs
}

/// Returns the privileges that untrusted changes would have but must not.
fn excess_privileges(lines: &[&str]) -> Vec<String> {
    let foreign = triggers(lines).filter(|line| ["pull_request_target:", "workflow_run:"].contains(line));
    let foreign =
        foreign.map(|line| format!("untrusted changes would run with the repository's privileges: {line}"));
    let runs_on_pulls = triggers(lines).any(|line| line == "pull_request:");
    let rights = lines.iter().filter(|line| runs_on_pulls && line.ends_with(": write"));
    let rights = rights
        .map(|line| format!("write permission in a workflow that runs on pull requests: {}", line.trim()));
    foreign.chain(rights).collect()
}

/// The triggers of a workflow: the keys below `on:`.
fn triggers<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let inside = lines.iter().skip_while(|line| **line != "on:").skip(1);
    inside.take_while(|line| line.is_empty() || line.starts_with(' ')).map(|line| line.trim())
}

/// Whether the line is a `container:` or `image:` without a digest, whose name may refer to another image later.
/// Expressions come from `ci/flavors.toml`, where a digest is required.
fn is_unpinned_image(line: &str) -> bool {
    let value = ["container: ", "image: "].iter().find_map(|key| line.trim_start().strip_prefix(key));
    value.is_some_and(|image| !image.starts_with("${{") && !image.contains("@sha256:"))
}

/// Whether the line is `uses: owner/name@` and 40 hexadecimal digits, then ` # v` and a version; or one of our
/// workflows.
fn is_pinned(line: &str) -> bool {
    if line.trim_start().starts_with("uses: ./.github/workflows/") {
        return true;
    }
    let Some((action, version)) = line.split_once(" # v") else { return false };
    let commit = action.rsplit_once('@').map_or("", |(_, commit)| commit);
    commit.len() == 40
        && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// The lines of shell scripts.
fn scripts<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut scripts = Vec::new();
    let mut block = None;
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let key = line.trim_start().trim_start_matches("- ");
        if key.starts_with("run:") {
            block = Some(indent);
            scripts.push(*line);
        } else if line.is_empty() || block.is_some_and(|start| indent > start + 1 && !is_sibling(line, start))
        {
            scripts.push(line);
        } else {
            block = None;
        }
    }
    scripts
}

/// Whether the line is a key of the same step as `- run:`, indented by two more than its dash.
fn is_sibling(line: &str, start: usize) -> bool {
    let indent = line.len() - line.trim_start().len();
    let key = line.trim_start().split(':').next().unwrap_or_default();
    indent == start + 2
        && ["name", "env", "with", "if", "uses", "shell", "id", "working-directory"].contains(&key)
}

fn joins_all(jobs: &[Job<'_>]) -> bool {
    let Some(join) = jobs.iter().find(|job| job.name == JOIN_JOB) else { return false };
    let others: Vec<&str> = jobs.iter().map(|job| job.name).filter(|name| *name != JOIN_JOB).collect();
    let needs = format!("    needs: [{}]", others.join(", "));
    let has = |line: &str| join.lines.contains(&line);
    let looks_at = |job: &&str| {
        let result = format!("needs.{job}.result }}}}");
        join.lines.iter().any(|line| line.contains(&result))
    };
    !others.is_empty() && has(&needs) && has("    if: ${{ always() }}") && others.iter().all(looks_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name: ci

on:
  push:
  pull_request:

permissions: {}

concurrency:
  group: ci

jobs:
  test:
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v1.2.3
        with:
          persist-credentials: false
          fetch-depth: 0
      - run: cargo xtask matrix --changed-since
        env:
          A: ${{ github.ref }}
  part:
    uses: ./.github/workflows/rows.yml
  required:
    needs: [test, part]
    if: ${{ always() }}
    timeout-minutes: 5
    steps:
      - name: x
        env:
          RESULTS: ${{ needs.test.result }} ${{ needs.part.result }}
        run: |
          echo $RESULTS
";

    fn broken_by(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        broken("ci.yml", &GOOD.replacen(from, to, 1)).join("\n")
    }

    #[test]
    fn a_good_file_breaks_no_rule() {
        assert_eq!(broken("ci.yml", GOOD), [""; 0]);
    }

    #[test]
    fn each_rule_can_be_broken() {
        assert!(
            broken_by("@0123456789012345678901234567890123456789 # v1.2.3", "@v1").contains("not pinned")
        );
        assert!(broken_by(" # v1.2.3", "").contains("not pinned"));
        assert!(broken_by("permissions: {}", "permissions: write-all").contains("`permissions: {}`"));
        assert!(broken_by("concurrency:", "x:").contains("`concurrency:`"));
        assert!(broken_by("    timeout-minutes: 5\n", "").contains("the job `test` has no"));
        assert!(broken_by("          persist-credentials: false\n", "").contains("a checkout"));
        assert!(broken_by("-since\n", "-since ${{ github.ref }}\n").contains("in a script"));
        assert!(broken_by("$RESULTS\n", "${{ github.head_ref }}\n").contains("in a script"));
        assert!(broken_by("uses: ./.github/workflows/", "uses: ./").contains("not pinned"));
        assert!(broken_by("  push:\n", "  pull_request_target:\n").contains("repository's privileges"));
        assert!(
            broken_by("    if:", "    permissions:\n      packages: write\n    if:")
                .contains("write permission")
        );
        assert!(broken_by("    if:", "    container: debian:12\n    if:").contains("without its digest"));
        assert!(broken_by("          fetch-depth: 0\n", "").contains("`fetch-depth: 0`"));
        assert!(broken_by("[test, part]", "[test]").contains("`required`"));
        assert!(broken_by(" ${{ needs.part.result }}", "").contains("`required`"));
        assert!(broken_by("    if: ${{ always() }}\n", "").contains("`required`"));
        assert!(
            broken_by("  required:", "  more:\n    timeout-minutes: 1\n  required:").contains("`required`")
        );
    }
}
