//! The expanded part of a row of the page: the next step, the drift, the commits, and the patch. Each has a size limit.

use espalier_core::day::day;
use espalier_series::PatchClass;

use super::cut::{first_hunks, first_lines, share};
use super::status::{Completes, HunkText, PatchStatus, StatusReport, UpstreamCommit};
use super::status_text::{count, escape, short, what_is_the_matter};

/// Size limit of all diffs together, in bytes: a page of 120 patches stays below 1 MB.
const MAX_DIFF_BYTES: usize = 300_000;
/// Size limit of the drift of all patches together, in bytes.
const MAX_DRIFT_BYTES: usize = 150_000;
/// Maximum number of listed commits that touched a patch's files.
const COMMITS_LISTED: usize = 12;

/// Renders the expanded part.
pub(super) fn body(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    let mut body = format!(
        "<p class=\"mono\">{} <a href=\"#{}\">link to this patch</a></p>",
        escape(&patch.file),
        anchor(patch)
    );
    if let Some(next) = patch.next {
        body += &format!("<p class=\"next\">{}</p>", escape(&hint(next)));
    }
    if !patch.blocked_by.is_empty() {
        body += &format!("<p>It needs {}.</p>", escape(&patch.blocked_by.join(", ")));
    }
    if patch.provisional {
        body += "<p>Provisional: an earlier patch failed, and this one was tried without it.</p>";
    }
    body + &drift(report, patch, hint) + &commits(report, patch) + &diff(report, patch)
}

fn drift(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    if patch.class == PatchClass::Exact {
        return String::new();
    }
    let all = what_is_the_matter(patch);
    let (shown, left) = first_lines(&all, share(MAX_DRIFT_BYTES, report.patches.len()));
    let more = match left {
        0 => String::new(),
        left => {
            let all = escape(&hint("cargo xtask status --long"));
            format!("\n<p class=\"sub\">{left} more lines: <code>{all}</code></p>")
        }
    };
    format!("<h3>{}</h3><pre>{}</pre>{more}", drift_heading(patch.class), escape(shown))
}

/// The heading of the drift; a patch that needs no decision is not described as failing.
fn drift_heading(class: PatchClass) -> &'static str {
    match class {
        _ if class.applies() => "How it differs there",
        PatchClass::Upstreamed | PatchClass::PartlyUpstreamed => "What upstream has",
        _ => "Why it does not apply",
    }
}

fn commits(report: &StatusReport, patch: &PatchStatus) -> String {
    let mut text = String::new();
    if let Some(commit) = report.cause_of(patch) {
        let line = commit_line(report, commit);
        text += &format!("<h3>{} since</h3><ul class=\"commits\">{line}</ul>", patch.class.describe());
    }
    let earlier = patch.touched_by.len().saturating_sub(COMMITS_LISTED);
    let lines: String =
        report.commits_of(patch).skip(earlier).map(|commit| commit_line(report, commit)).collect();
    if lines.is_empty() {
        return text;
    }
    text += "<h3>Upstream commits that changed its files</h3>";
    if earlier > 0 {
        text += &format!("<p class=\"sub\">{} before these are left out.</p>", count(earlier));
    }
    text + &format!("<ul class=\"commits\">{lines}</ul>")
}

fn commit_line(report: &StatusReport, commit: &UpstreamCommit) -> String {
    let id = format!("<code>{}</code>", escape(short(commit)));
    let id = match &report.commit_page {
        Some(page) => format!("<a href=\"{}{}\">{id}</a>", escape(page), escape(&commit.id)),
        None => id,
    };
    format!(
        "<li>{id} {} <span class=\"sub\">{}, {}</span></li>",
        escape(&commit.subject),
        escape(&commit.author),
        day(commit.seconds)
    )
}

fn diff(report: &StatusReport, patch: &PatchStatus) -> String {
    let (shown, left) = first_hunks(&patch.hunks, share(MAX_DIFF_BYTES, report.patches.len()));
    let hunks: String = shown.iter().map(hunk).collect();
    let more = match left {
        0 => String::new(),
        left => format!(
            "<p class=\"sub\">{left} more lines of the patch are left out here. All of it is in <code>{}</code>.</p>",
            escape(&patch.file)
        ),
    };
    format!("<h3>The patch</h3>{hunks}{more}")
}

fn hunk(hunk: &HunkText) -> String {
    let lines: String = hunk.lines.iter().map(|line| coloured(line)).collect();
    format!(
        "<details class=\"hunk\"><summary class=\"mono\">{} {}</summary><pre>{lines}</pre></details>",
        escape(&hunk.path),
        escape(&hunk.header)
    )
}

fn coloured(line: &str) -> String {
    let text = escape(line);
    match line.chars().next() {
        Some('+') => format!("<ins>{text}</ins>\n"),
        Some('-') => format!("<del>{text}</del>\n"),
        _ => format!("{text}\n"),
    }
}

/// The anchor of the patch: `paged-0001-slug`. It is inside the expandable part, so that following a link expands it.
pub(super) fn anchor(patch: &PatchStatus) -> String {
    let file = patch.file.trim_start_matches("patches/").trim_end_matches(".patch");
    file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
