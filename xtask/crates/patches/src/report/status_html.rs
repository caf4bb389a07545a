//! The status report as one self-contained page: the series as rows, upstream's commits as a timeline with every drift
//! at its commit, and each patch behind a click. No scripts, no external resources.

use espalier_core::config::paths::patch_number;
use espalier_core::day::day;
use espalier_series::PatchClass;

use super::cut::{first_letters, share};
use super::status::{Completes, PROVISIONAL, PatchStatus, StatusReport, UpstreamCommit, meaning};
use super::status_html_body::{SUBJECT_LETTERS, anchor, body, diff, diff_limit};
use super::status_text::{count, escape, is_marked, other_headline, short};

pub(super) const STYLE: &str = include_str!("status.css");

/// Maximum size of a page in bytes: what is left beside all other parts is for the diffs. A series of several hundred
/// patches takes more, since each of them keeps a row.
const MAX_PAGE_BYTES: usize = 1_000_000;
/// Size limit of the lanes of all patches together, in bytes.
const MAX_LANE_BYTES: usize = 280_000;
/// Maximum number of dots in a lane; commits that are closer together share one.
const DOTS: usize = 40;
/// Maximum number of letters of a patch's subject.
const PATCH_LETTERS: usize = 160;
/// Maximum number of overlay files in the way that are shown.
const OVERLAYS_SHOWN: usize = 40;

/// The whole page, with hints for its readers.
pub fn html(report: &StatusReport, hint: Completes<'_>) -> String {
    let head = head(report);
    let rows = (0..).zip(&report.patches).map(|(at, patch)| heading(report, at) + &row(report, patch, hint));
    let rows: Vec<String> = rows.collect();
    let used = head.len() + END.len() + rows.iter().map(|row| row.len() + END_OF_ROW.len()).sum::<usize>();
    let limit = diff_limit(report, MAX_PAGE_BYTES.saturating_sub(used));
    let rows: String = rows
        .iter()
        .zip(&report.patches)
        .map(|(row, patch)| row.clone() + &diff(patch, limit) + END_OF_ROW)
        .collect();
    format!("{head}{rows}{END}")
}

const END: &str = "</main>\n</body></html>\n";

/// Everything above the rows.
fn head(report: &StatusReport) -> String {
    let StatusReport { variant, upstream, pin, tip, .. } = report;
    let title = escape(&format!("{variant} on {upstream}: {} to {}", pin.shown(), tip.shown()));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n{STYLE}{}</style></head>\n\
         <body>\n<main>\n<h1>{} <small>on {} {} \u{2192} {}</small></h1>\n{}{}{}{}{}",
        filter_rules(report),
        escape(variant),
        escape(upstream),
        escape(pin.shown()),
        escape(tip.shown()),
        subtitle(report),
        overlays(report),
        chips(report),
        legend(report),
        axis(report),
    )
}

fn subtitle(report: &StatusReport) -> String {
    let exact = format!("{} of {} patches are exact", report.exact(), report.patches.len());
    let commits = match &report.history {
        Some(commits) => {
            format!("upstream is {} ahead of the {}", count(commits.len()), report.kind_of_pin())
        }
        None => "the tip came without its history, so no commit can be named".to_string(),
    };
    let others = report.others.iter().map(other_headline).chain(report.notices());
    let others: String = others.map(|words| format!("<p class=\"sub\">{}</p>\n", escape(&words))).collect();
    format!(
        "<p class=\"sub\">{exact} \u{b7} {commits} \u{b7} tree <code>{}</code></p>\n{others}",
        escape(&report.tip.tree)
    )
}

/// The overlay files that are in the way.
fn overlays(report: &StatusReport) -> String {
    let shown = report.overlays.iter().take(OVERLAYS_SHOWN);
    let shown: String = shown.map(|clash| format!("<pre>{}</pre>\n", escape(&clash.to_string()))).collect();
    match report.overlays.len().saturating_sub(OVERLAYS_SHOWN) {
        0 => shown,
        left => format!("{shown}<p class=\"sub\">and {left} more overlay files</p>\n"),
    }
}

/// The filter chips: the selected one decides which class of rows is shown. It works by CSS alone.
fn chips(report: &StatusReport) -> String {
    let chip = |kind: &str, word: &str, words: String, checked: &str| {
        format!(
            "<input type=\"radio\" name=\"show\" id=\"show-{word}\"{checked}>\
             <label class=\"chip {kind}\" for=\"show-{word}\">{words}</label>"
        )
    };
    let all = chip("", "all", format!("all {}", report.patches.len()), " checked");
    let of_class = |(class, count): (PatchClass, usize)| {
        chip(kind(class), &class_word(class), format!("{count} {}", class.describe()), "")
    };
    let classes: String = report.counts().into_iter().map(of_class).collect();
    format!("<fieldset class=\"chips\"><legend>Show</legend>{all}{classes}</fieldset>\n")
}

/// Explains the class names and the dots that occur on the page.
fn legend(report: &StatusReport) -> String {
    let of_class = |(class, _): (PatchClass, usize)| {
        let word = class.describe();
        format!("<dt class=\"{}\">{word}</dt><dd>{}</dd>", kind(class), meaning(class))
    };
    let mut entries: String = report.counts().into_iter().map(of_class).collect();
    if report.patches.iter().any(is_marked) {
        entries += &format!("<dt>provisional</dt><dd>{PROVISIONAL}</dd>");
    }
    if report.history.is_some() {
        entries += "<dt>\u{25cf}</dt><dd>an upstream commit that changed a file of the patch, or several; of many dots, only \
                    the newest name theirs; until the first one the line is green, from there it has the colour of the \
                    class</dd>";
    }
    format!("<dl class=\"legend\">{entries}</dl>\n")
}

fn filter_rules(report: &StatusReport) -> String {
    let rule = |(class, _): (PatchClass, usize)| {
        let word = class_word(class);
        format!("body:has(#show-{word}:checked) .patch:not(.is-{word}) {{ display: none; }}\n")
    };
    report.counts().into_iter().map(rule).collect()
}

/// The class as one word, for ids and CSS rules.
fn class_word(class: PatchClass) -> String {
    class.describe().replace(' ', "-")
}

fn axis(report: &StatusReport) -> String {
    let last = match report.history.as_deref() {
        Some([.., last]) => format!("{} ({})", report.tip.shown(), day(last.seconds)),
        _ => report.tip.shown().to_string(),
    };
    format!(
        "<div class=\"axis\" aria-hidden=\"true\"><span></span><span></span><span><span>{}</span><span>{}</span></span></div>\n",
        escape(report.pin.shown()),
        escape(&last)
    )
}

/// The heading of the first patch in a folder. Each folder counts from 0001; a series in one folder has no heading.
fn heading(report: &StatusReport, at: usize) -> String {
    let folder = |at: usize| report.patches[at].file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_first = at == 0 || folder(at - 1) != folder(at);
    if !is_first || folder(0) == folder(report.patches.len() - 1) {
        return String::new();
    }
    format!("<h2 class=\"series\">{}</h2>\n", escape(folder(at)))
}

/// The row of a patch, up to its diff.
fn row(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    format!(
        "<details class=\"patch {} is-{}\"><summary class=\"row\">\
         <h2 class=\"name\"><b>{}</b>{}</h2><span class=\"badge\">{}{}</span>{}</summary>\n\
         <div class=\"body\" id=\"{id}\">{}",
        kind(patch.class),
        class_word(patch.class),
        escape(patch_number(&patch.file)),
        escape(&first_letters(&patch.subject, PATCH_LETTERS)),
        patch.class.describe(),
        if is_marked(patch) { ", provisional" } else { "" },
        lane(report, patch, "", report.commit_page.as_deref()),
        body(report, patch, hint),
        id = anchor(patch),
    )
}

const END_OF_ROW: &str = "</div></details>\n";

/// The patch's timeline: neutral until a commit touches one of its files, then coloured by its current class.
/// `place_in_picture` is its position in a larger picture; a dot links to its commit below `commit_page`.
pub(super) fn lane(
    report: &StatusReport,
    patch: &PatchStatus,
    place_in_picture: &str,
    commit_page: Option<&str>,
) -> String {
    let history = report.history.as_deref().unwrap_or_default();
    let first = patch.touched_by.first().map(|at| place(*at, history));
    let calm_until = first.unwrap_or(if patch.class == PatchClass::Exact { 100.0 } else { 0.0 });
    let dots = dots(report, patch, commit_page);
    format!(
        "<svg class=\"lane\"{place_in_picture} role=\"img\" aria-label=\"{}\">\
         <line x1=\"{calm_until:.2}%\" x2=\"100%\" y1=\"13\" y2=\"13\"/>\
         <line class=\"calm\" x1=\"0\" x2=\"{calm_until:.2}%\" y1=\"13\" y2=\"13\"/>{dots}</svg>",
        count(patch.touched_by.len())
    )
}

/// The dots of a lane, oldest first. The newest name their commit, as far as the lane's share of the page allows; the
/// others are marks alone.
fn dots(report: &StatusReport, patch: &PatchStatus, commit_page: Option<&str>) -> String {
    let history = report.history.as_deref().unwrap_or_default();
    let slot = |at: &usize| at * DOTS / history.len().max(1);
    let groups: Vec<&[usize]> = patch.touched_by.chunk_by(|left, right| slot(left) == slot(right)).collect();
    let mut left = share(MAX_LANE_BYTES, report.patches.len());
    let mut dots = Vec::new();
    for (older, group) in groups.into_iter().enumerate().rev() {
        let Some((at, commit)) = group.last().and_then(|at| Some((*at, history.get(*at)?))) else { continue };
        let x = place(at, history);
        let (mark, named) = (mark(x), linked(commit_page, commit, dot(x, &words(commit, group.len()))));
        // The older dots have to fit as well.
        let is_named = named.len() + older * mark.len() <= left;
        let drawn = if is_named { named } else { mark };
        left = left.saturating_sub(drawn.len());
        dots.push(drawn);
    }
    dots.into_iter().rev().collect()
}

/// The position of the commit with the index `at`, in percent of the lane.
fn place(at: usize, history: &[UpstreamCommit]) -> f64 {
    100.0 * (at + 1) as f64 / history.len().max(1) as f64
}

fn linked(commit_page: Option<&str>, commit: &UpstreamCommit, dot: String) -> String {
    match commit_page {
        Some(page) => format!("<a href=\"{}{}\">{dot}</a>", escape(page), escape(&commit.id)),
        None => dot,
    }
}

/// A dot that names its commit.
fn dot(x: f64, words: &str) -> String {
    format!("<circle cx=\"{x:.2}%\" cy=\"13\" r=\"6\"><title>{}</title></circle>", escape(words))
}

/// A dot that names none.
fn mark(x: f64) -> String {
    format!("<circle cx=\"{x:.2}%\" cy=\"13\" r=\"6\"/>")
}

/// Names a commit, or the last of several that are close together.
fn words(commit: &UpstreamCommit, near: usize) -> String {
    let others = if near > 1 { format!("{}, the last: ", count(near)) } else { String::new() };
    let subject = first_letters(&commit.subject, SUBJECT_LETTERS);
    format!("{others}{} {subject} ({})", short(commit), day(commit.seconds))
}

/// The CSS class that gives a patch class its colour.
pub(super) fn kind(class: PatchClass) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::{DOTS, MAX_PAGE_BYTES, STYLE, html};
    use crate::report::status::{HunkText, PatchStatus, ReportedTree, StatusReport, UpstreamCommit};
    use crate::report::status_svg::svg;
    use crate::report::status_text::{long_text, markdown, text};
    use espalier_core::config::pins::Verification;
    use espalier_series::{ObjectId, PatchClass};

    /// A report on a series of 120 patches whose files each of 1,000 commits changed, with long names everywhere.
    fn long_report() -> StatusReport {
        const COMMITS: usize = 1_000;
        let place = |name: &str| ReportedTree::new(name, ObjectId::ZERO, Verification::default());
        let commit = |at: usize| UpstreamCommit {
            id: format!("{at:040x}"),
            subject: format!("server : fix <{at}> & \"{}\"", "x".repeat(300)),
            author: "An Author ".repeat(20),
            seconds: 1_577_934_245 + 3_600 * at as i64,
        };
        let hunk = |at: usize| HunkText {
            path: "tools/server/server-context.cpp".into(),
            header: format!("@@ -{at},7 +{at},37 @@ void server_context::run<T>(int value) {{"),
            lines: vec!["+    std::vector<int> & values = take<int>(\"a\");".into(); 30],
        };
        let patch = |at: usize| PatchStatus {
            file: format!("patches/paged/{:04}-{}.patch", at + 1, "slug-".repeat(10)),
            subject: "server: say & do ".repeat(20),
            class: PatchClass::Conflict,
            provisional: true,
            blocked_by: (0..at).map(|at| format!("{at:04}-{}.patch", "slug-".repeat(10))).collect(),
            conflicts: vec!["src/server.cpp: upstream changed the <same> lines".into(); 200],
            upstream: Vec::new(),
            notes: Vec::new(),
            files: Vec::new(),
            touched_by: (0..COMMITS).collect(),
            caused_by: Some(COMMITS - 1),
            next: None,
            hunks: (0..30).map(hunk).collect(),
        };
        StatusReport {
            variant: "paged".into(),
            upstream: "llama.cpp".into(),
            generation: None,
            pin: place("v1"),
            tip: place("v2"),
            inexact_at_pin: false,
            patches: (0..120).map(patch).collect(),
            others: Vec::new(),
            overlays: Vec::new(),
            commit_page: Some("https://github.com/ggml-org/llama.cpp/commit/".into()),
            next: Vec::new(),
            history: Some((0..COMMITS).map(commit).collect()),
        }
        .with_next_steps(Some("cargo xtask rebase --to v2"))
    }

    #[test]
    fn the_page_and_the_picture_of_a_long_series_are_at_most_a_megabyte() {
        let report = long_report();
        let page = html(&report, &|hint: &str| hint.to_string());
        assert!(page.len() <= MAX_PAGE_BYTES, "{} bytes", page.len());
        assert!(page.len() > MAX_PAGE_BYTES / 10 * 9, "the rest is for the diffs: {} bytes", page.len());
        for (part, times) in [
            ("<details class=\"patch", 120),
            ("<h3>The patch</h3>", 120),
            ("more lines of the patch are left out", 120),
            ("before these are left out", 120),
            ("<circle", 120 * DOTS),
        ] {
            assert_eq!(page.matches(part).count(), times, "{part}");
        }
        assert!(page.matches("<title>").count() > 2 * 120, "each lane names its newest commits");
        assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
        let picture = svg(&report);
        assert!(picture.len() <= MAX_PAGE_BYTES, "{} bytes", picture.len());
        assert_eq!(picture.matches("<circle").count(), 120 * DOTS);
    }

    #[test]
    fn every_form_has_the_notice_of_an_unverified_tree() {
        let plain = |hint: &str| hint.to_string();
        let mut report = long_report();
        report.patches.truncate(1);
        let forms = |report: &StatusReport| {
            [text(report, &plain), long_text(report), markdown(report), html(report, &plain)]
        };
        assert!(forms(&report).iter().all(|form| !form.contains("unverified: ")));
        report.tip.verification = Verification::Unverified;
        let notice = "unverified: the tree id of v2 is that of unpacked files";
        forms(&report).iter().for_each(|form| assert_eq!(form.matches(notice).count(), 1, "{form}"));
        // The pin is another place with the same tree.
        report.pin.verification = Verification::Unverified;
        forms(&report).iter().for_each(|form| assert_eq!(form.matches("unverified: ").count(), 1, "{form}"));
        report.pin.tree = "1".repeat(40);
        forms(&report).iter().for_each(|form| assert_eq!(form.matches("unverified: ").count(), 2, "{form}"));
    }

    #[test]
    fn a_line_names_only_the_first_patches_that_block_one() {
        let text = text(&long_report(), &|hint: &str| hint.to_string());
        assert!(text.contains(" and 116 more)"), "{text}");
        assert!(text.lines().all(|line| line.len() < 400), "{text}");
    }

    fn page(report: &StatusReport) -> String {
        html(report, &|hint: &str| hint.to_string())
    }

    #[test]
    fn each_of_several_folders_has_a_heading() {
        let mut report = long_report();
        report.patches.truncate(3);
        let headings = |report: &StatusReport| page(report).matches("<h2 class=\"series\">").count();
        assert_eq!(headings(&report), 0);
        report.patches[2].file = "patches/more/0001-slug.patch".into();
        assert_eq!(headings(&report), 2);
        assert!(page(&report).contains("<h2 class=\"series\">patches/more</h2>\n<details"));
    }

    #[test]
    fn a_merged_patch_without_details_has_no_box_for_them() {
        let mut report = long_report();
        report.patches.truncate(1);
        report.patches[0].class = PatchClass::Merged;
        assert!(page(&report).contains("<h3>How it differs there</h3>"));
        report.patches[0].conflicts.clear();
        assert!(!page(&report).contains("<h3>How it differs there</h3>"));
    }

    #[test]
    fn the_command_for_all_lines_names_the_tip() {
        let mut report = long_report();
        assert!(page(&report).contains("more lines: <code>cargo xtask status --long --tip v2</code>"));
        report.next = vec!["cargo xtask status --long --tip main".into()];
        assert!(page(&report).contains("more lines: <code>cargo xtask status --long --tip main</code>"));
    }

    #[test]
    fn nothing_is_left_out_of_a_short_series() {
        let mut report = long_report();
        report.patches.truncate(3);
        let page = html(&report, &|hint: &str| hint.to_string());
        assert!(!page.contains("of the patch are left out"), "{} bytes", page.len());
        assert_eq!(page.matches("<title>").count(), 1 + 3 * DOTS);
    }

    /// The relative luminance of a colour, from 0 to 1 (WCAG 2.1).
    fn luminance(colour: &str) -> f64 {
        let digits: Vec<u32> = colour.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        let pairs: Vec<u32> = match digits.len() {
            3 => digits.iter().map(|digit| digit * 17).collect(),
            _ => digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect(),
        };
        let linear = |byte: &u32| {
            let part = f64::from(*byte) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let weights = [0.2126, 0.7152, 0.0722];
        pairs.iter().map(linear).zip(weights).map(|(part, weight)| part * weight).sum()
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Checks the contrast of every text colour on each of its backgrounds, in light and dark mode.
    #[test]
    fn every_colour_can_be_read() {
        let colour_in = |part: &str, name: &str| -> String {
            let from = part.split(&format!("--{name}: #")).nth(1).unwrap();
            from.chars().take_while(char::is_ascii_hexdigit).collect()
        };
        let parts: Vec<&str> = STYLE.split("prefers-color-scheme").collect();
        assert_eq!(parts.len(), 2);
        for part in parts {
            for text in ["ink", "dim", "good", "move", "bad", "done", "wait"] {
                for background in ["paper", "card"] {
                    let seen = contrast(&colour_in(part, text), &colour_in(part, background));
                    assert!(seen >= 4.5, "{text} on {background}: {seen:.2}");
                }
            }
        }
    }
}
