//! Findings for a terminal: each one while they are few, by rule when they are many.

use super::Options;
use super::look::Reported;

/// So many findings are read one by one.
const FEW: usize = 25;
/// Of more, so many of each rule are shown.
const SHOWN_OF_A_RULE: usize = 3;

/// What was fixed, what was found, and how much that is.
pub fn text(patches: &[String], findings: &[Reported], fixed: &[String], options: &Options) -> String {
    let verb = if options.dry_run { "would fix" } else { "fixed" };
    let mut lines: Vec<String> = fixed.iter().map(|change| format!("{verb}: {change}")).collect();
    if !fixed.is_empty() && !options.dry_run {
        lines.push("  next: cargo xtask lock    # records the new names".to_string());
    }
    match options.long || findings.len() <= FEW {
        true => lines.extend(findings.iter().map(Reported::to_string)),
        false => lines.extend(by_rule(findings)),
    }
    lines.push(match findings.len() {
        0 => format!("{} patches, no findings", patches.len()),
        count => format!("{count} findings in {} patches", patches.len()),
    });
    lines.join("\n")
}

/// The first of each rule in full, how many more there are, and how to see them.
fn by_rule(findings: &[Reported]) -> Vec<String> {
    let mut sorted: Vec<&Reported> = findings.iter().collect();
    // The order inside a rule stays that of files and lines.
    sorted.sort_by_key(|finding| &finding.rule);
    let rules = sorted.chunk_by(|left, right| left.rule == right.rule);
    let mut lines: Vec<String> = rules.flat_map(one_rule).collect();
    lines.push("  next: cargo xtask lint --long    # every finding".to_string());
    lines
}

fn one_rule(findings: &[&Reported]) -> Vec<String> {
    let mut lines: Vec<String> =
        findings.iter().take(SHOWN_OF_A_RULE).map(|finding| finding.to_string()).collect();
    let more = findings.len().saturating_sub(SHOWN_OF_A_RULE);
    if let (Some(finding), 1..) = (findings.first(), more) {
        lines.push(format!("  and {more} more [{}]", finding.rule));
    }
    lines
}
