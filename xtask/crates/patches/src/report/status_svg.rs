//! The status report as one self-contained picture: the rows of the page, for viewers that cannot show HTML.

use espalier_core::config::overlay::in_the_way;
use espalier_core::config::paths::patch_number;

use super::cut::first_letters;
use super::status::{PatchStatus, StatusReport};
use super::status_html::{STYLE, kind, lane};
use super::status_text::{count, escape};
use super::svg::svg_file;

const WIDTH: usize = 960;
const MARGIN: usize = 24;
/// Top of the first row.
const TOP: usize = 112;
const ROW: usize = 38;
/// Height of the drawn part of a row.
const CARD: usize = 32;
/// Left edge of the badges.
const BADGE: usize = 468;
/// Left edge of the lanes.
const LANE: usize = 620;
const LANE_WIDTH: usize = WIDTH - MARGIN - 18 - LANE;
/// Number of letters of a subject that fit in front of its badge.
const LETTERS: usize = 46;
/// Width of a letter of a badge, generous for any font.
const LETTER: usize = 7;

/// CSS rules that the page's style sheet lacks, or that differ in a picture.
const PICTURE: &str = "\
    text { fill: var(--ink); font: 14px system-ui, sans-serif; } .title { font-size: 20px; font-weight: 600; }\n\
    .small { fill: var(--dim); font-size: 12.5px; } .card { fill: var(--card); stroke: var(--line); }\n\
    .label { fill: var(--kind, var(--dim)); font-size: 12.5px; }\n\
    .pill { fill: none; stroke: var(--kind, var(--dim)); } .end { text-anchor: end; }\n";

/// The whole file.
pub fn svg(report: &StatusReport) -> String {
    let height = TOP + ROW * report.patches.len() + MARGIN - (ROW - CARD);
    let title = format!("{} on {}", report.variant, report.upstream);
    let range = format!("{} \u{2192} {}", report.pin.shown(), report.tip.shown());
    let rows: String = (0..).zip(&report.patches).map(|(index, patch)| row(report, index, patch)).collect();
    let content = format!(
        "<title id=\"title\">{name}</title>\n\
         <style>\n{STYLE}{PICTURE}.lane {{ width: {LANE_WIDTH}px; }}\n</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" style=\"fill: var(--paper)\"/>\n\
         <text x=\"{MARGIN}\" y=\"38\"><tspan class=\"title\">{name}</tspan>\
         <tspan class=\"small\" dx=\"12\">{range}</tspan></text>\n\
         <text x=\"{MARGIN}\" y=\"62\" class=\"small\">{sums}</text>\n{axis}{rows}",
        name = escape(&title),
        range = escape(&range),
        sums = escape(&sums(report)),
        axis = axis(report),
    );
    svg_file(WIDTH, height, "role=\"img\" aria-labelledby=\"title\"", &content)
}

/// Number of patches of each class, of overlay files in the way, and of upstream commits.
fn sums(report: &StatusReport) -> String {
    let classes = report.counts().into_iter().map(|(class, many)| format!("{many} {}", class.describe()));
    let commits = report.history.as_ref().map(|commits| format!("{} upstream", count(commits.len())));
    let overlays = (!report.overlays.is_empty()).then(|| in_the_way(&report.overlays));
    let parts: Vec<String> = classes.chain(overlays).chain(commits).collect();
    parts.join(" \u{b7} ")
}

fn axis(report: &StatusReport) -> String {
    let (y, end) = (TOP - 12, LANE + LANE_WIDTH);
    format!(
        "<text x=\"{LANE}\" y=\"{y}\" class=\"small\">{}</text>\n\
         <text x=\"{end}\" y=\"{y}\" class=\"small end\">{}</text>\n",
        escape(report.pin.shown()),
        escape(report.tip.shown()),
    )
}

fn row(report: &StatusReport, index: usize, patch: &PatchStatus) -> String {
    let top = TOP + ROW * index;
    let (baseline, class) = (top + 21, patch.class.describe());
    let pill = class.len() * LETTER + 20;
    format!(
        "<g class=\"{}\"><rect class=\"card\" x=\"{MARGIN}\" y=\"{top}\" width=\"{}\" height=\"{CARD}\" rx=\"8\"/>\
         <text x=\"{}\" y=\"{baseline}\" class=\"small\">{}</text><text x=\"{}\" y=\"{baseline}\">{}</text>\
         <rect class=\"pill\" x=\"{BADGE}\" y=\"{}\" width=\"{pill}\" height=\"20\" rx=\"10\"/>\
         <text x=\"{}\" y=\"{}\" class=\"label\" text-anchor=\"middle\">{class}</text>{}</g>\n",
        kind(patch.class),
        WIDTH - 2 * MARGIN,
        MARGIN + 14,
        escape(patch_number(&patch.file)),
        MARGIN + 56,
        // SVG does not wrap text.
        escape(&first_letters(&patch.subject, LETTERS)),
        top + 6,
        BADGE + pill / 2,
        baseline - 1,
        lane(
            report,
            patch,
            &format!(" x=\"{LANE}\" y=\"{}\" width=\"{LANE_WIDTH}\" height=\"26\"", top + 3),
            None
        ),
    )
}
