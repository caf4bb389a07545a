//! The status report for a terminal and as Markdown.

use espalier_core::config::overlay::in_the_way;
use espalier_core::config::paths::patch_number;
use espalier_core::config::pins::short_name;
use espalier_series::{PatchClass, PatchDrift};

use super::status::{
    Completes, PROVISIONAL, PatchStatus, SeriesStatus, StatusReport, UpstreamCommit, why_not_moved,
};

/// Number of shown commits that touched a patch's files: the newest, which are the most likely to be of interest.
const COMMITS_SHOWN: usize = 5;

/// Maximum number of named patches that a blocked one waits for.
const BLOCKERS_NAMED: usize = 3;

/// Renders one line for each patch, with the responsible commit for those that are not exact, and the next step for
/// each class.
pub fn text(report: &StatusReport, hint: Completes<'_>) -> String {
    let mut parts = vec![headline(report)];
    parts.extend(report.notices());
    parts.push(table(report, &report.patches));
    for other in &report.others {
        parts.extend([other_headline(other), table(report, &other.patches)]);
    }
    parts.extend(report.overlays.iter().map(ToString::to_string));
    parts.push(steps(report, hint));
    let next: Vec<String> = report.next.iter().map(|command| format!("next: {command}")).collect();
    parts.push(next.join("\n"));
    joined(parts)
}

fn joined(mut parts: Vec<String>) -> String {
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// The next step for each class, and the meaning of the mark `provisional`, each once.
fn steps(report: &StatusReport, hint: Completes<'_>) -> String {
    let mut steps: Vec<(PatchClass, &str)> =
        report.all_patches().filter_map(|patch| Some((patch.class, patch.next.as_deref()?))).collect();
    steps.sort_unstable();
    steps.dedup();
    let steps = steps.into_iter().map(|(class, step)| format!("  {}: {}", class.describe(), hint(step)));
    let provisional = provisional(report).map(|words| format!("  {words}"));
    steps.chain(provisional).collect::<Vec<_>>().join("\n")
}

/// Explains the mark `provisional`, if a line has it.
fn provisional(report: &StatusReport) -> Option<String> {
    report.all_patches().any(is_marked).then(|| format!("provisional: {PROVISIONAL}"))
}

/// Whether the line of a patch has the mark `provisional`: for a blocked one it would repeat the class.
pub(super) fn is_marked(patch: &PatchStatus) -> bool {
    patch.provisional && patch.class != PatchClass::Blocked
}

fn table(report: &StatusReport, patches: &[PatchStatus]) -> String {
    let width = patches.iter().map(|patch| patch.class.describe().len()).max().unwrap_or(0);
    let line = |patch: &PatchStatus| {
        let since = report.cause_of(patch).map(|commit| format!(", since {}", short(commit)));
        let since = since.unwrap_or_default();
        format!("  {:width$}  {}{}{since}", patch.class.describe(), patch.file, remark(patch))
    };
    patches.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Renders all details of every patch that is not exact; [`text`] has the exact ones.
pub fn long_text(report: &StatusReport) -> String {
    let all_details = |patches: &[PatchStatus]| -> Vec<String> {
        let inexact = patches.iter().filter(|patch| patch.class != PatchClass::Exact);
        inexact.map(|patch| details(report, patch).trim_end().to_string()).collect()
    };
    let mut parts = vec![headline(report)];
    parts.extend(report.notices());
    parts.extend(report.overlays.iter().map(ToString::to_string));
    parts.extend(provisional(report));
    parts.extend(all_details(&report.patches));
    for other in &report.others {
        parts.push(other_headline(other));
        parts.extend(all_details(&other.patches));
    }
    joined(parts)
}

/// Renders the report as Markdown for a step summary, an issue or a pull request.
pub fn markdown(report: &StatusReport) -> String {
    let mut text = format!(
        "{}\n\n| patch | class | since | changed upstream by |\n|---|---|---|---|\n",
        headline(report)
    );
    for patch in report.all_patches() {
        let commits: Vec<String> =
            newest(report, patch).map(|commit| format!("`{}`", short(commit))).collect();
        let class = format!("{}{}", patch.class.describe(), remark(patch));
        let since = report.cause_of(patch).map(|commit| format!("`{}`", short(commit))).unwrap_or_default();
        text += &format!("| `{}` | {} | {since} | {} |\n", patch.file, cell(&class), commits.join(" "));
    }
    let others = report.others.iter().map(other_headline);
    for words in others.chain(report.notices()).chain(provisional(report)) {
        text += &format!("\n{words}\n");
    }
    for clash in &report.overlays {
        text += &format!("\n{}", indented(&clash.to_string()));
    }
    for patch in report.all_patches().filter(|patch| patch.class != PatchClass::Exact) {
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
    let inexact = report.inexact_series();
    let first = match !inexact.is_empty() && pin.tree != tip.tree {
        true => why_not_moved(&inexact, pin) + "\n\n",
        false => String::new(),
    };
    let kind = report.kind_of_pin();
    let since = match &report.history {
        Some(commits) if pin.tree != tip.tree => format!(", {} after {}", count(commits.len()), pin.shown()),
        _ if pin.tree == tip.tree => format!(", the {kind}"),
        _ => format!(", {kind} {}, no history available", pin.shown()),
    };
    let overlays = match report.overlays.is_empty() {
        true => String::new(),
        false => format!("; {}", in_the_way(&report.overlays)),
    };
    format!(
        "{first}{variant}: {} of {} patches are exact at {upstream} {}{since}{overlays}",
        report.exact(),
        patches.len(),
        tip.shown()
    )
}

/// Number of exact patches of another series on the pin.
pub(super) fn other_headline(other: &SeriesStatus) -> String {
    let SeriesStatus { variant, patches, .. } = other;
    format!("{variant}, which moves with the pin: {} of {} patches are exact", other.exact(), patches.len())
}

/// `1 commit`, `2 commits`.
pub fn count(commits: usize) -> String {
    if commits == 1 { "1 commit".to_string() } else { format!("{commits} commits") }
}

fn remark(patch: &PatchStatus) -> String {
    let mut remark = String::new();
    if !patch.blocked_by.is_empty() {
        remark += &format!(" (by {})", blockers(patch));
    }
    if is_marked(patch) {
        remark += " (provisional)";
    }
    remark
}

/// The first patches that a blocked one waits for, and the number of the others.
pub(super) fn blockers(patch: &PatchStatus) -> String {
    let (named, others) = patch.blocked_by.split_at(patch.blocked_by.len().min(BLOCKERS_NAMED));
    let others = (!others.is_empty()).then(|| format!(" and {} more", others.len()));
    named.join(", ") + &others.unwrap_or_default()
}

/// All details of a patch that is not exact.
pub fn details(report: &StatusReport, patch: &PatchStatus) -> String {
    let mut text = details_with_cause(report, patch);
    let cause = report.cause_of(patch).map(|commit| &commit.id);
    for commit in newest(report, patch).filter(|commit| Some(&commit.id) != cause) {
        text += &format!("  changed by {} {} ({})\n", short(commit), commit.subject, commit.author);
    }
    if patch.touched_by.len() > COMMITS_SHOWN {
        text += &format!("  and by {} before\n", count(patch.touched_by.len() - COMMITS_SHOWN));
    }
    text + &next_step(patch)
}

/// As [`details`], for a report that stays as it is while the patch is broken in the same way: without the commits that
/// changed its files, to which every further one is added.
pub fn details_of_break(report: &StatusReport, patch: &PatchStatus) -> String {
    details_with_cause(report, patch) + &next_step(patch)
}

fn details_with_cause(report: &StatusReport, patch: &PatchStatus) -> String {
    let heading = format!("{}: {}{}", patch.file, patch.class.describe(), remark(patch));
    let mut text = format!("{heading}\n{}", what_is_the_matter(patch));
    if let Some(commit) = report.cause_of(patch) {
        let class = patch.class.describe();
        text += &format!("  {class} since {} {} ({})\n", short(commit), commit.subject, commit.author);
    }
    text
}

fn next_step(patch: &PatchStatus) -> String {
    patch.next.as_ref().map(|next| format!("  next: {next}\n")).unwrap_or_default()
}

/// The notes of a rebase, then the drift of the patch's files. Drift lines name the patch by its number only: its path
/// is in the heading above them.
pub(super) fn what_is_the_matter(patch: &PatchStatus) -> String {
    let lines =
        patch.conflicts.iter().chain(&patch.notes).chain(&patch.upstream).flat_map(|note| note.lines());
    let text: String = lines.map(|line| format!("  {line}\n")).collect();
    // Omit the drift of hunks that are merged automatically: it needs no attention. That of a blocked patch was found
    // on a tree without the patches that block it, and upstream may not have caused it.
    if patch.class == PatchClass::Blocked || patch.class.applies() && patch.class != PatchClass::Shifted {
        return text;
    }
    let drift = PatchDrift {
        patch: patch_number(&patch.file).to_string(),
        class: patch.class,
        files: patch.files.clone(),
    };
    let drift = drift.to_string();
    text + drift.split_once('\n').map_or("", |(_, files)| files)
}

fn newest<'a>(report: &'a StatusReport, patch: &'a PatchStatus) -> impl Iterator<Item = &'a UpstreamCommit> {
    let earlier = patch.touched_by.len().saturating_sub(COMMITS_SHOWN);
    report.commits_of(patch).skip(earlier)
}

/// The abbreviated commit id.
pub fn short(commit: &UpstreamCommit) -> &str {
    short_name(&commit.id)
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
