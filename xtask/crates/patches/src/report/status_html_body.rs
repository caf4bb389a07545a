//! The expanded part of a row of the page: the next step, the drift, the commits, and the patch. Each has a size limit,
//! in bytes of the page.

use espalier_core::day::day;
use espalier_core::next_command::next_command;
use espalier_series::PatchClass;

use super::cut::{fair_limit, first_hunks, first_letters, first_lines, last_parts, share};
use super::status::{Completes, HunkText, PROVISIONAL, PatchStatus, StatusReport, UpstreamCommit};
use super::status_text::{blockers, count, escape, is_marked, short, what_is_the_matter};

/// Size limit of the hunks of one patch: not every page with a large one has to be large.
const MAX_DIFF_BYTES: usize = 100_000;
/// Size limit of the drift of all patches together.
const MAX_DRIFT_BYTES: usize = 140_000;
/// Size limit of the listed commits of all patches together.
const MAX_COMMIT_BYTES: usize = 200_000;
/// Maximum number of listed commits that touched a patch's files.
const COMMITS_LISTED: usize = 12;
/// Maximum number of letters of an author's name.
const AUTHOR_LETTERS: usize = 40;
/// Maximum number of letters of a commit's subject.
pub(super) const SUBJECT_LETTERS: usize = 100;
/// Size of a diff without its hunks: its heading, and the note on what is left out.
const DIFF_FRAME: usize = 300;

/// Renders the expanded part, up to the diff.
pub(super) fn body(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    let mut body = format!(
        "<p class=\"mono\">{} <a href=\"#{}\">link to this patch</a></p>",
        escape(&patch.file),
        anchor(patch)
    );
    if let Some(next) = &patch.next {
        body += &format!("<p class=\"next\">{}</p>", escape(&hint(next)));
    }
    if !patch.blocked_by.is_empty() {
        body += &format!("<p>It needs {}.</p>", escape(&blockers(patch)));
    }
    if is_marked(patch) {
        body += &format!("<p>Provisional: {PROVISIONAL}.</p>");
    }
    body + &drift(report, patch, hint) + &commits(report, patch)
}

fn drift(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    if matches!(patch.class, PatchClass::Exact | PatchClass::Blocked) {
        return String::new();
    }
    let all = escape(&what_is_the_matter(patch));
    if all.is_empty() {
        return String::new();
    }
    let (shown, left) = first_lines(&all, share(MAX_DRIFT_BYTES, report.patches.len()));
    let more = match left {
        0 => String::new(),
        left => {
            let all = escape(&hint(&long_command(report)));
            format!("\n<p class=\"sub\">{left} more lines: <code>{all}</code></p>")
        }
    };
    format!("<h3>{}</h3><pre>{shown}</pre>{more}", drift_heading(patch.class))
}

/// The command that prints everything about this tip.
fn long_command(report: &StatusReport) -> String {
    let of_tip = || next_command("status --long", &[("--tip", Some(report.tip.name.as_str()))]);
    let suggested = report.next.iter().find(|next| next.starts_with("cargo xtask status --long"));
    suggested.cloned().unwrap_or_else(of_tip)
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
    let all: Vec<&UpstreamCommit> = report.commits_of(patch).collect();
    if all.is_empty() {
        return text;
    }
    let newest = all.iter().skip(all.len().saturating_sub(COMMITS_LISTED));
    let lines = newest.map(|commit| commit_line(report, commit)).collect();
    let lines = last_parts(lines, share(MAX_COMMIT_BYTES, report.patches.len()));
    text += "<h3>Upstream commits that changed its files</h3>";
    let earlier = all.len() - lines.len();
    if earlier > 0 {
        text += &format!("<p class=\"sub\">{} before these are left out.</p>", count(earlier));
    }
    text + &format!("<ul class=\"commits\">{}</ul>", lines.concat())
}

fn commit_line(report: &StatusReport, commit: &UpstreamCommit) -> String {
    let id = format!("<code>{}</code>", escape(short(commit)));
    let id = match &report.commit_page {
        Some(page) => format!("<a href=\"{}{}\">{id}</a>", escape(page), escape(&commit.id)),
        None => id,
    };
    format!(
        "<li>{id} {} <span class=\"sub\">{}, {}</span></li>",
        escape(&first_letters(&commit.subject, SUBJECT_LETTERS)),
        escape(&first_letters(&commit.author, AUTHOR_LETTERS)),
        day(commit.seconds)
    )
}

/// Returns the size limit of the hunks of one patch, when the diffs of all patches may take `bytes` together.
pub(super) fn diff_limit(report: &StatusReport, bytes: usize) -> usize {
    let bytes = bytes.saturating_sub(DIFF_FRAME * report.patches.len());
    let size = |hunk: &HunkText| {
        framed(hunk, "").len() + hunk.lines.iter().map(|line| coloured(line).len()).sum::<usize>()
    };
    let needs = report.patches.iter().map(|patch| patch.hunks.iter().map(size).sum::<usize>());
    fair_limit(needs.collect(), bytes).min(MAX_DIFF_BYTES)
}

/// Renders the hunks of the patch that fit into `limit` bytes.
pub(super) fn diff(patch: &PatchStatus, limit: usize) -> String {
    let (shown, left) =
        first_hunks(&patch.hunks, limit, |hunk| framed(hunk, "").len(), |line| coloured(line).len());
    let hunks: String = shown
        .iter()
        .map(|hunk| framed(hunk, &hunk.lines.iter().map(|line| coloured(line)).collect::<String>()))
        .collect();
    let more = match left {
        0 => String::new(),
        left => format!(
            "<p class=\"sub\">{left} more lines of the patch are left out here. All of it is in <code>{}</code>.</p>",
            escape(&patch.file)
        ),
    };
    format!("<h3>The patch</h3>{hunks}{more}")
}

/// Renders a hunk that has these lines.
fn framed(hunk: &HunkText, lines: &str) -> String {
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
