//! Findings for a terminal: in full when there are few, grouped by rule when there are many.

use super::Options;
use super::reported::Reported;

/// Up to this number, all findings are printed in full.
const FEW: usize = 25;
/// Above that number, at most this many are printed for each rule.
const SHOWN_OF_A_RULE: usize = 3;

/// Builds the text: the fixes, the findings, and their number.
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

/// Returns the first findings of each rule in full, the number of further ones, and how to print them.
fn by_rule(findings: &[Reported]) -> Vec<String> {
    let mut sorted: Vec<&Reported> = findings.iter().collect();
    // Stable sort: within a rule the order of files and lines is kept.
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
