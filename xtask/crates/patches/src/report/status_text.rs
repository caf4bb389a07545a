//! The status report for a terminal and as Markdown.

use espalier_core::config::overlay::in_the_way;
use espalier_series::{PatchClass, PatchDrift};

use super::status::{Completes, PatchStatus, StatusReport, UpstreamCommit, why_not_moved};

/// Number of shown commits that touched a patch's files: the newest, which are the most likely to be of interest.
const COMMITS_SHOWN: usize = 5;

/// Renders one line for each patch, with the responsible commit for those that are not exact, and the next step for
/// each class.
pub fn text(report: &StatusReport, hint: Completes<'_>) -> String {
    let mut text = format!("{}\n\n{}{}", headline(report), table(report), overlays(report));
    let mut steps: Vec<(PatchClass, &str)> =
        report.patches.iter().filter_map(|patch| Some((patch.class, patch.next?))).collect();
    steps.sort_unstable();
    steps.dedup();
    if !steps.is_empty() {
        text += "\n";
    }
    for (class, step) in steps {
        text += &format!("  {}: {}\n", class.describe(), hint(step));
    }
    if !report.next.is_empty() {
        text += "\n";
    }
    for command in &report.next {
        text += &format!("next: {command}\n");
    }
    text.trim_end().to_string()
}

fn overlays(report: &StatusReport) -> String {
    report.overlays.iter().map(|clash| format!("\n{clash}\n")).collect()
}

fn table(report: &StatusReport) -> String {
    let width = report.patches.iter().map(|patch| patch.class.describe().len()).max().unwrap_or(0);
    let mut table = String::new();
    for patch in &report.patches {
        table += &format!("  {:width$}  {}{}", patch.class.describe(), patch.file, remark(patch));
        if let Some(commit) = report.cause_of(patch) {
            table += &format!(", since {}", short(commit));
        }
        table += "\n";
    }
    table
}

/// Renders the table, then all details of every patch that is not exact.
pub fn long_text(report: &StatusReport) -> String {
    let mut text = format!("{}\n\n{}{}", headline(report), table(report), overlays(report));
    for patch in report.patches.iter().filter(|patch| patch.class != PatchClass::Exact) {
        text += &format!("\n{}", details(report, patch));
    }
    text.trim_end().to_string()
}

/// Renders the report as Markdown for a step summary, an issue or a pull request.
pub fn markdown(report: &StatusReport) -> String {
    let mut text = format!(
        "{}\n\n| patch | class | since | changed upstream by |\n|---|---|---|---|\n",
        headline(report)
    );
    for patch in &report.patches {
        let commits: Vec<String> =
            newest(report, patch).map(|commit| format!("`{}`", short(commit))).collect();
        let class = format!("{}{}", patch.class.describe(), remark(patch));
        let since = report.cause_of(patch).map(|commit| format!("`{}`", short(commit))).unwrap_or_default();
        text += &format!("| `{}` | {} | {since} | {} |\n", patch.file, cell(&class), commits.join(" "));
    }
    for clash in &report.overlays {
        text += &format!("\n{}", indented(&clash.to_string()));
    }
    for patch in report.patches.iter().filter(|patch| patch.class != PatchClass::Exact) {
        let heading = format!("{}: {}", patch.file, patch.class.describe());
        text += &format!("\n<details><summary>{}</summary>\n\n", escape(&heading));
        // Indented, not fenced: no line of a patch can end the block.
        text += &indented(&details(report, patch));
        text += "\n</details>\n";
    }
    text
}

fn headline(report: &StatusReport) -> String {
    let StatusReport { variant, upstream, pin, tip, patches, .. } = report;
    let first = match report.inexact_at_pin && pin.tree != tip.tree {
        true => why_not_moved(&[variant], pin) + "\n\n",
        false => String::new(),
    };
    let since = match &report.history {
        Some(commits) if pin.tree != tip.tree => format!(", {} after {}", count(commits.len()), pin.name),
        _ if pin.tree == tip.tree => ", the pin".to_string(),
        _ => format!(", pin {}, no history available", pin.name),
    };
    let overlays = match report.overlays.is_empty() {
        true => String::new(),
        false => format!("; {}", in_the_way(&report.overlays)),
    };
    format!(
        "{first}{variant}: {} of {} patches are exact at {upstream} {}{since}{overlays}",
        report.exact(),
        patches.len(),
        tip.name
    )
}

/// `1 commit`, `2 commits`.
pub fn count(commits: usize) -> String {
    if commits == 1 { "1 commit".to_string() } else { format!("{commits} commits") }
}

fn remark(patch: &PatchStatus) -> String {
    let mut remark = String::new();
    if !patch.blocked_by.is_empty() {
        remark += &format!(" (by {})", patch.blocked_by.join(", "));
    }
    if patch.provisional {
        remark += " (provisional)";
    }
    remark
}

/// All details of a patch that is not exact.
pub fn details(report: &StatusReport, patch: &PatchStatus) -> String {
    let mut text = format!("{}: {}\n{}", patch.file, patch.class.describe(), what_is_the_matter(patch));
    if let Some(commit) = report.cause_of(patch) {
        let class = patch.class.describe();
        text += &format!("  {class} since {} {} ({})\n", short(commit), commit.subject, commit.author);
    }
    let cause = report.cause_of(patch).map(|commit| &commit.id);
    for commit in newest(report, patch).filter(|commit| Some(&commit.id) != cause) {
        text += &format!("  changed by {} {} ({})\n", short(commit), commit.subject, commit.author);
    }
    if patch.touched_by.len() > COMMITS_SHOWN {
        text += &format!("  and by {} before\n", count(patch.touched_by.len() - COMMITS_SHOWN));
    }
    if let Some(next) = patch.next {
        text += &format!("  next: {next}\n");
    }
    text
}

/// The notes of a rebase, then the drift of the patch's files. Drift lines name the patch by its number only: its path
/// is in the heading above them.
pub(super) fn what_is_the_matter(patch: &PatchStatus) -> String {
    let said =
        patch.conflicts.iter().chain(&patch.notes).chain(&patch.upstream).flat_map(|note| note.lines());
    let said: String = said.map(|line| format!("  {line}\n")).collect();
    // Omit the drift of hunks that are merged automatically: it needs no attention.
    if patch.class.applies() && patch.class != PatchClass::Shifted {
        return said;
    }
    let drift =
        PatchDrift { patch: number(patch).to_string(), class: patch.class, files: patch.files.clone() };
    let text = drift.to_string();
    said + text.split_once('\n').map_or("", |(_, files)| files)
}

/// `0001` of `patches/paged/0001-slug.patch`.
pub(super) fn number(patch: &PatchStatus) -> &str {
    let file = patch.file.rsplit('/').next().unwrap_or(&patch.file);
    file.split('-').next().unwrap_or(file)
}

fn newest<'a>(report: &'a StatusReport, patch: &'a PatchStatus) -> impl Iterator<Item = &'a UpstreamCommit> {
    let earlier = patch.touched_by.len().saturating_sub(COMMITS_SHOWN);
    report.commits_of(patch).skip(earlier)
}

/// The abbreviated commit id.
pub fn short(commit: &UpstreamCommit) -> &str {
    commit.id.get(..12).unwrap_or(&commit.id)
}

/// Indents each line of `text`, as a code block of Markdown.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Escapes text for a table cell, which a `|` would end.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Renders one line of untrusted text as a code span, so that it cannot create a link or a mention or close an issue.
/// Safe in tables.
pub fn code(text: &str) -> String {
    let text = cell(&text.replace(['\n', '\r'], " "));
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let room = if longest == 0 { "" } else { " " };
    format!("{fence}{room}{text}{room}{fence}")
}

/// Escapes text for HTML content and attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
