//! The status report as one self-contained page: the series as rows, upstream's commits as a timeline,
//! each drift where it happened, the hunks on a click. No script, nothing loaded from anywhere.

use super::status::{HunkText, PatchStatus, StatusReport, UpstreamCommit};
use super::status_text::{escape, number, short, what_is_the_matter};
use crate::series::PatchClass;

const STYLE: &str = include_str!("status.css");

/// The whole page.
pub fn html(report: &StatusReport) -> String {
    let StatusReport { variant, upstream, pin, tip, .. } = report;
    let title = escape(&format!("{variant} on {upstream}: {} to {}", pin.name, tip.name));
    let rows: String = report.patches.iter().map(|patch| row(report, patch)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n{STYLE}</style></head>\n\
         <body>\n<h1>{} <small>on {} {} \u{2192} {}</small></h1>\n{}{}\n{}{rows}</body></html>\n",
        escape(variant),
        escape(upstream),
        escape(&pin.name),
        escape(&tip.name),
        subtitle(report),
        chips(report),
        axis(report),
    )
}

fn subtitle(report: &StatusReport) -> String {
    let exact = format!("{} of {} patches are exact", report.exact(), report.patches.len());
    let commits = match &report.history {
        Some(commits) => format!("{} upstream commits since the pin", commits.len()),
        None => "the tip came without its history, so no commit can be named".to_string(),
    };
    format!(
        "<p class=\"sub\">{exact} \u{b7} {commits} \u{b7} tree <code>{}</code></p>\n",
        escape(&report.tip.tree)
    )
}

fn chips(report: &StatusReport) -> String {
    let chip = |(class, count): (PatchClass, usize)| {
        format!("<li class=\"chip {}\">{count} {}</li>", kind(class), class.describe())
    };
    format!("<ul class=\"chips\">{}</ul>", report.counts().into_iter().map(chip).collect::<String>())
}

fn axis(report: &StatusReport) -> String {
    let last = match report.history.as_deref() {
        Some([.., last]) => format!("{} ({})", report.tip.name, day(last.seconds)),
        _ => report.tip.name.clone(),
    };
    format!(
        "<div class=\"axis\"><span></span><span></span><span><span>{}</span><span>{}</span></span></div>\n",
        escape(&report.pin.name),
        escape(&last)
    )
}

fn row(report: &StatusReport, patch: &PatchStatus) -> String {
    let kind = kind(patch.class);
    format!(
        "<details class=\"patch {kind}\"><summary class=\"row\">\
         <span class=\"name\" title=\"{}\"><b>{}</b>{}</span><span class=\"badge\">{}</span>{}</summary>\n\
         <div class=\"body\">{}</div></details>\n",
        escape(&patch.file),
        escape(number(patch)),
        escape(&patch.subject),
        patch.class.describe(),
        lane(report, patch),
        body(report, patch),
    )
}

/// The patch's line through time: calm until a commit touches one of its files, then as it is now.
fn lane(report: &StatusReport, patch: &PatchStatus) -> String {
    let total = report.history.as_ref().map_or(0, Vec::len);
    let place = |at: usize| 100.0 * (at + 1) as f64 / total.max(1) as f64;
    let first = patch.touched_by.first().map(|at| place(*at));
    let calm_until = first.unwrap_or(if patch.class == PatchClass::Exact { 100.0 } else { 0.0 });
    let dots: String = patch
        .touched_by
        .iter()
        .filter_map(|at| Some((place(*at), report.history.as_ref()?.get(*at)?)))
        .map(|(x, commit)| dot(x, commit))
        .collect();
    format!(
        "<svg class=\"lane\" role=\"img\" aria-label=\"{} commits\">\
         <line x1=\"{calm_until:.2}%\" x2=\"100%\" y1=\"13\" y2=\"13\"/>\
         <line class=\"calm\" x1=\"0\" x2=\"{calm_until:.2}%\" y1=\"13\" y2=\"13\"/>{dots}</svg>",
        patch.touched_by.len()
    )
}

fn dot(x: f64, commit: &UpstreamCommit) -> String {
    let words = format!("{} {} ({})", short(commit), commit.subject, day(commit.seconds));
    format!("<circle cx=\"{x:.2}%\" cy=\"13\" r=\"6\"><title>{}</title></circle>", escape(&words))
}

fn body(report: &StatusReport, patch: &PatchStatus) -> String {
    let mut body = format!("<p class=\"mono\">{}</p>", escape(&patch.file));
    if let Some(next) = patch.next {
        body += &format!("<p class=\"next\">{}</p>", escape(next));
    }
    if !patch.blocked_by.is_empty() {
        body += &format!("<p>It needs {}.</p>", escape(&patch.blocked_by.join(", ")));
    }
    if patch.provisional {
        body += "<p>Provisional: an earlier patch failed, and this one was tried without it.</p>";
    }
    if patch.class != PatchClass::Exact {
        body += &format!("<h3>What is the matter</h3><pre>{}</pre>", escape(&what_is_the_matter(patch)));
    }
    if let Some(commit) = report.cause_of(patch) {
        let line = commit_line(commit);
        body += &format!("<h3>{} since</h3><ul class=\"commits\">{line}</ul>", patch.class.describe());
    }
    let commits: String = report.commits_of(patch).map(commit_line).collect();
    if !commits.is_empty() {
        body +=
            &format!("<h3>Upstream commits that changed its files</h3><ul class=\"commits\">{commits}</ul>");
    }
    body += "<h3>The patch</h3>";
    body + &patch.hunks.iter().map(hunk).collect::<String>()
}

fn commit_line(commit: &UpstreamCommit) -> String {
    format!(
        "<li><code>{}</code> {} <span class=\"sub\">{}, {}</span></li>",
        escape(short(commit)),
        escape(&commit.subject),
        escape(&commit.author),
        day(commit.seconds)
    )
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
        Some('+') => format!("<span class=\"plus\">{text}</span>\n"),
        Some('-') => format!("<span class=\"minus\">{text}</span>\n"),
        _ => format!("{text}\n"),
    }
}

/// The colour that a class has.
fn kind(class: PatchClass) -> &'static str {
    match class {
        PatchClass::Exact => "good",
        PatchClass::Upstreamed | PatchClass::PartlyUpstreamed => "done",
        PatchClass::Shifted | PatchClass::Merged | PatchClass::Followed => "move",
        PatchClass::Blocked => "wait",
        PatchClass::MovedFunction
        | PatchClass::Ambiguous
        | PatchClass::Conflict
        | PatchClass::TargetRenamed
        | PatchClass::TargetDeleted
        | PatchClass::Refused => "bad",
    }
}

/// `2026-01-31`, in UTC, by the civil calendar (Howard Hinnant's `civil_from_days`).
pub(super) fn day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_795_219_200), "2026-11-21");
        assert_eq!(day(-1), "1969-12-31");
    }
}
