//! The report of a rebase for a terminal.

use espalier_core::config::overlay::in_the_way;

use super::rebase::{Fate, PatchMove, RebaseReport};

/// Renders a table of all patches, then the changes of each of them, then the warnings.
pub fn text(report: &RebaseReport) -> String {
    let mut text = format!("{}\n", headline(report));
    let width = report.patches.iter().map(|patch| patch.fate.describe().len()).max().unwrap_or(0);
    let mut series = None;
    for patch in &report.patches {
        if series.replace(&patch.series) != Some(&patch.series) {
            text += "\n";
        }
        text += &format!("  {:width$}  {}{}\n", patch.fate.describe(), name(patch), remark(patch));
        for note in patch.notes.iter().chain(&patch.conflicts) {
            let indent = " ".repeat(width + 4);
            note.lines().for_each(|line| text += &format!("{indent}{line}\n"));
        }
    }
    for patch in &report.patches {
        if let Some(diff) = &patch.range_diff {
            text += &format!("\n{}: {}\n", patch.file, patch.fate.describe());
            diff.lines().for_each(|line| text += &format!("{}\n", format!("  {line}").trim_end()));
        }
    }
    if !report.reverts.is_empty() {
        text += "\nwarning: patches undo what upstream did since the old pin:\n";
    }
    for revert in &report.reverts {
        text += &format!("  {revert}\n");
    }
    if report.written && report.proof.iter().any(|series| !series.proof.is_proved()) {
        text += "\nwarning: the move made differences that nothing accounts for; `prove HEAD .` lists them\n";
    }
    for clash in &report.overlays {
        text += &format!("\n{clash}\n");
    }
    text.trim_end().to_string()
}

fn headline(report: &RebaseReport) -> String {
    let RebaseReport { upstream, from, to, patches, .. } = report;
    let variant = variants(report);
    let stays =
        patches.iter().filter(|patch| !matches!(patch.fate, Fate::Dropped | Fate::Upstreamed)).count();
    let count = |fate: Fate| patches.iter().filter(|patch| patch.fate == fate).count();
    let (waits, blocked) = (count(Fate::Conflict), count(Fate::Blocked));
    if report.written && (&from.name, &from.tree) == (&to.name, &to.tree) {
        return format!("{variant}: {} patches, already on {upstream} {}", patches.len(), to.name);
    }
    let is_stopped = waits > 0 || !report.overlays.is_empty();
    let verb = match (report.written, is_stopped) {
        (true, _) => "now on",
        (false, false) => "would move to",
        (false, true) => "cannot move to",
    };
    let mut line = format!(
        "{variant}: {stays} of {} patches, from {upstream} {}, {verb} {}",
        patches.len(),
        from.name,
        to.name
    );
    if waits > 0 {
        line += &format!(" by itself: {waits} in conflict");
    }
    if blocked > 0 {
        line += &format!(", {blocked} blocked");
    }
    if !report.overlays.is_empty() {
        let separator = if waits > 0 { ';' } else { ':' };
        line += &format!("{separator} {}", in_the_way(&report.overlays));
    }
    line
}

/// The named variant, then the others whose series move with it.
fn variants(report: &RebaseReport) -> String {
    let others = report.patches.iter().map(|patch| &patch.series).filter(|name| **name != report.variant);
    let mut names: Vec<&str> = others.map(String::as_str).collect();
    names.dedup();
    names.insert(0, &report.variant);
    names.join(", ")
}

/// In the format of `status`.
fn remark(patch: &PatchMove) -> String {
    match patch.blocked_by.is_empty() {
        true => String::new(),
        false => format!(" (by {})", patch.blocked_by.join(", ")),
    }
}

fn name(patch: &PatchMove) -> String {
    match &patch.new_file {
        Some(new) if *new != patch.file => format!("{} -> {new}", patch.file),
        _ => patch.file.clone(),
    }
}
