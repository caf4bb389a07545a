//! Our own rules for workflow files, which no linter has: actions pinned to commits, least rights, time limits,
//! one job that needs all.
//!
//! They look at lines, not at YAML: the files are ours, small and indented by two, and a file that is written in
//! another way breaks a rule rather than passing unseen.

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
    rule(lines.contains(&"concurrency:"), "`concurrency:` is missing at the top".to_string());
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
    for job in &jobs {
        let limited = job.lines.iter().any(|line| line.starts_with("    timeout-minutes: "));
        rule(limited, format!("the job `{}` has no `timeout-minutes`", job.name));
    }
    if name.ends_with("ci.yml") {
        rule(joins_all(&jobs), format!("the job `{JOIN_JOB}` has to need every other job, always, and fail"));
    }
    broken
}

struct Job<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
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

/// `uses: owner/name@` and 40 hexadecimal digits, then ` # v` and a version.
fn is_pinned(line: &str) -> bool {
    let Some((action, version)) = line.split_once(" # v") else { return false };
    let commit = action.rsplit_once('@').map_or("", |(_, commit)| commit);
    commit.len() == 40
        && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// The lines that a shell reads.
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

/// A key beside `- run:` stands two further than its dash.
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
    let looks = join.lines.iter().any(|line| line.contains("needs.*.result"));
    !others.is_empty() && has(&needs) && has("    if: ${{ always() }}") && looks
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name: ci

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
      - run: cargo xtask test
        env:
          A: ${{ github.ref }}
  required:
    needs: [test]
    if: ${{ always() }}
    timeout-minutes: 5
    steps:
      - name: x
        env:
          RESULTS: ${{ join(needs.*.result, ' ') }}
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
        assert!(broken_by("xtask test\n", "xtask ${{ github.ref }}\n").contains("in a script"));
        assert!(broken_by("$RESULTS\n", "${{ github.head_ref }}\n").contains("in a script"));
        assert!(broken_by("[test]", "[]").contains("`required`"));
        assert!(broken_by("    if: ${{ always() }}\n", "").contains("`required`"));
        assert!(
            broken_by("  required:", "  more:\n    timeout-minutes: 1\n  required:").contains("`required`")
        );
    }
}
