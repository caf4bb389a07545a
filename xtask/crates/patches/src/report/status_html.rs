//! The status report as one self-contained page: the series as rows, upstream's commits as a timeline with every drift
//! at its commit, and each patch behind a click. No scripts, no external resources.

use espalier_core::day::day;
use espalier_series::PatchClass;

use super::status::{Completes, PatchStatus, StatusReport, UpstreamCommit, meaning};
use super::status_html_body::{anchor, body};
use super::status_text::{count, escape, number, short};

pub(super) const STYLE: &str = include_str!("status.css");

/// Maximum number of dots in a lane; commits that are closer together share one.
const DOTS: usize = 40;

/// The whole page, with hints for its readers.
pub fn html(report: &StatusReport, hint: Completes<'_>) -> String {
    let StatusReport { variant, upstream, pin, tip, .. } = report;
    let title = escape(&format!("{variant} on {upstream}: {} to {}", pin.name, tip.name));
    let rows: String = report.patches.iter().map(|patch| row(report, patch, hint)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n{STYLE}{}</style></head>\n\
         <body>\n<main>\n<h1>{} <small>on {} {} \u{2192} {}</small></h1>\n{}{}{}{}{}{rows}</main>\n</body></html>\n",
        filter_rules(report),
        escape(variant),
        escape(upstream),
        escape(&pin.name),
        escape(&tip.name),
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
        Some(commits) => format!("upstream is {} ahead of the pin", count(commits.len())),
        None => "the tip came without its history, so no commit can be named".to_string(),
    };
    format!(
        "<p class=\"sub\">{exact} \u{b7} {commits} \u{b7} tree <code>{}</code></p>\n",
        escape(&report.tip.tree)
    )
}

/// The overlay files that are in the way.
fn overlays(report: &StatusReport) -> String {
    report.overlays.iter().map(|clash| format!("<pre>{}</pre>\n", escape(&clash.to_string()))).collect()
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
    if report.patches.iter().any(|patch| patch.provisional) {
        entries += &format!(
            "<dt>{PROVISIONAL}</dt><dd>an earlier patch of the same files is not exact: this verdict may \
                             change once that one is resolved</dd>"
        );
    }
    if report.history.is_some() {
        entries += "<dt>\u{25cf}</dt><dd>an upstream commit that changed a file of the patch; until the first one the line is \
                    green, from there it has the colour of the class</dd>";
    }
    format!("<dl class=\"legend\">{entries}</dl>\n")
}

const PROVISIONAL: &str = "provisional";

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
        Some([.., last]) => format!("{} ({})", report.tip.name, day(last.seconds)),
        _ => report.tip.name.clone(),
    };
    format!(
        "<div class=\"axis\" aria-hidden=\"true\"><span></span><span></span><span><span>{}</span><span>{}</span></span></div>\n",
        escape(&report.pin.name),
        escape(&last)
    )
}

fn row(report: &StatusReport, patch: &PatchStatus, hint: Completes<'_>) -> String {
    format!(
        "<details class=\"patch {} is-{}\"><summary class=\"row\">\
         <h2 class=\"name\"><b>{}</b>{}</h2><span class=\"badge\">{}{}</span>{}</summary>\n\
         <div class=\"body\" id=\"{id}\">{}</div></details>\n",
        kind(patch.class),
        class_word(patch.class),
        escape(number(patch)),
        escape(&patch.subject),
        patch.class.describe(),
        if patch.provisional { ", provisional" } else { "" },
        lane(report, patch, "", report.commit_page.as_deref()),
        body(report, patch, hint),
        id = anchor(patch),
    )
}

/// The patch's timeline: neutral until a commit touches one of its files, then coloured by its current class.
/// `place_in_picture` is its position in a larger picture; a dot links to its commit below `commit_page`.
pub(super) fn lane(
    report: &StatusReport,
    patch: &PatchStatus,
    place_in_picture: &str,
    commit_page: Option<&str>,
) -> String {
    let history = report.history.as_deref().unwrap_or_default();
    let place = |at: usize| 100.0 * (at + 1) as f64 / history.len().max(1) as f64;
    let first = patch.touched_by.first().map(|at| place(*at));
    let calm_until = first.unwrap_or(if patch.class == PatchClass::Exact { 100.0 } else { 0.0 });
    let slot = |at: &usize| at * DOTS / history.len().max(1);
    let dots: String = patch
        .touched_by
        .chunk_by(|left, right| slot(left) == slot(right))
        .filter_map(|near| Some((place(*near.last()?), history.get(*near.last()?)?, near.len())))
        .map(|(x, commit, near)| linked(commit_page, commit, dot(x, commit, near)))
        .collect();
    format!(
        "<svg class=\"lane\"{place_in_picture} role=\"img\" aria-label=\"{}\">\
         <line x1=\"{calm_until:.2}%\" x2=\"100%\" y1=\"13\" y2=\"13\"/>\
         <line class=\"calm\" x1=\"0\" x2=\"{calm_until:.2}%\" y1=\"13\" y2=\"13\"/>{dots}</svg>",
        count(patch.touched_by.len())
    )
}

fn linked(commit_page: Option<&str>, commit: &UpstreamCommit, dot: String) -> String {
    match commit_page {
        Some(page) => format!("<a href=\"{}{}\">{dot}</a>", escape(page), escape(&commit.id)),
        None => dot,
    }
}

/// One commit, or the last of several that are close together.
fn dot(x: f64, commit: &UpstreamCommit, near: usize) -> String {
    let others = if near > 1 { format!("{}, the last: ", count(near)) } else { String::new() };
    let words = format!("{others}{} {} ({})", short(commit), commit.subject, day(commit.seconds));
    format!("<circle cx=\"{x:.2}%\" cy=\"13\" r=\"6\"><title>{}</title></circle>", escape(&words))
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
    use super::STYLE;

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
