//! The report of a rebase for a terminal.

use espalier_core::config::overlay::in_the_way;

use super::proof::Revert;
use super::proof_text::notes_on_words;
use super::rebase::{Fate, NumberReference, PatchMove, RebaseReport};

/// Maximum number of references that are shown.
const REFERENCES_SHOWN: usize = 20;

/// Renders a table of all patches, then the changes of each of them, then the warnings.
pub fn text(report: &RebaseReport) -> String {
    let mut text = format!("{}\n", headline(report));
    report.to.notice().iter().for_each(|notice| text += &format!("{notice}\n"));
    text += &table(report);
    text += &changes(report);
    text += &counters_in_doubt(report);
    text += &reverts(report);
    for note in report.proof.iter().flat_map(notes_on_words) {
        text += &format!("\n{note}\n");
    }
    text += &unproved(report);
    text += &references(&report.references);
    for clash in &report.overlays {
        text += &format!("\n{clash}\n");
    }
    if !report.next.is_empty() {
        text += "\n";
    }
    for command in &report.next {
        text += &format!("next: {command}\n");
    }
    text.trim_end().to_string()
}

/// Returns a line for each patch, with its notes below it.
fn table(report: &RebaseReport) -> String {
    let mut text = String::new();
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
    text
}

/// Returns how the patches have changed.
fn changes(report: &RebaseReport) -> String {
    let mut text = String::new();
    for patch in &report.patches {
        if let Some(diff) = &patch.range_diff {
            let file = patch.new_file.as_ref().unwrap_or(&patch.file);
            text += &format!("\n{file}: {}\n", patch.fate.describe());
            diff.lines().for_each(|line| text += &format!("{}\n", format!("  {line}").trim_end()));
        }
    }
    text
}

/// Names the trimmed patches that may keep a counter which is too low: the move is done, and no later check asks again.
fn counters_in_doubt(report: &RebaseReport) -> String {
    let trimmed = report.patches.iter().filter(|patch| patch.counter_in_doubt && !patch.fate.waits());
    let files: String =
        trimmed.map(|patch| format!("  {}\n", patch.new_file.as_ref().unwrap_or(&patch.file))).collect();
    if files.is_empty() {
        return files;
    }
    format!(
        "\nwarning: trimmed patches keep upstream's value of a possible counter; if both sides added an entry, it is too \
         low: set it with `cargo xtask edit`\n{files}"
    )
}

/// Renders what patches undo. A line that a resolution rewrites is to be reviewed, and accepted by the proof.
fn reverts(report: &RebaseReport) -> String {
    let listed = |title: &str, reverts: &[&Revert]| match reverts {
        [] => String::new(),
        _ => format!(
            "\n{title}:\n{}",
            reverts.iter().map(|revert| format!("  {revert}\n")).collect::<String>()
        ),
    };
    let undone: Vec<&Revert> = report.undone().collect();
    let rewritten: Vec<&Revert> = report.reverts.iter().filter(|revert| revert.is_rewritten).collect();
    listed("warning: patches undo what upstream did since the old pin", &undone)
        + &listed("note: resolutions rewrite lines of upstream, and keep every word of them", &rewritten)
}

/// Warns of what `prove` refuses. Within the pin, nothing differs but what a person has edited.
fn unproved(report: &RebaseReport) -> String {
    if !report.written || report.is_there() {
        return String::new();
    }
    let mut text = match (&report.generation, report.is_proved()) {
        (_, true) => String::new(),
        (None, false) => {
            "\nwarning: the move made differences that nothing accounts for; `prove` lists them\n".to_string()
        }
        (Some(generation), false) => format!(
            "\nwarning: patches make other changes on the generation {generation}, and nothing accounts for them; \
             `prove --generation {generation}` lists them\n"
        ),
    };
    if !report.stale.is_empty() {
        text += "\nwarning: `prove` refuses these entries about intended differences:\n";
        report.stale.iter().for_each(|entry| text += &format!("  {entry}\n"));
    }
    text
}

fn references(references: &[NumberReference]) -> String {
    if references.is_empty() {
        return String::new();
    }
    let mut text =
        "\nwarning: patches have other numbers now, and these places may name them by the old ones:\n"
            .to_string();
    for reference in references.iter().take(REFERENCES_SHOWN) {
        text += &format!("  {reference}\n");
    }
    match references.len().checked_sub(REFERENCES_SHOWN) {
        Some(more @ 1..) => text + &format!("  and {more} more\n"),
        _ => text,
    }
}

fn headline(report: &RebaseReport) -> String {
    let RebaseReport { upstream, from, to, patches, .. } = report;
    let variant = variants(report);
    if report.written && report.is_there() {
        return format!("{variant}: {} patches, already on {upstream} {}", patches.len(), to.name);
    }
    let waits: Vec<String> = [Fate::Conflict, Fate::Blocked, Fate::PartlyUpstreamed, Fate::Upstreamed]
        .into_iter()
        .filter_map(|fate| counted(report, fate, if fate == Fate::Conflict { "in " } else { "" }))
        .collect();
    let stays = report.count(|fate| !matches!(fate, Fate::Dropped | Fate::Upstreamed));
    let (count, verb) = match (report.written, waits.is_empty(), report.overlays.is_empty()) {
        (true, _, _) => (stays, "now on"),
        (false, false, _) => (report.count(Fate::goes_by_itself), "can move without a decision to"),
        (false, true, true) => (stays, "would move to"),
        (false, true, false) => (stays, "cannot move to"),
    };
    let mut line = format!(
        "{variant}: {count} of {} patches, from {upstream} {}, {verb} {}",
        patches.len(),
        from.name,
        to.name
    );
    if !waits.is_empty() {
        line += &format!(": {}", waits.join(", "));
    }
    if !report.overlays.is_empty() {
        let separator = if waits.is_empty() { ':' } else { ';' };
        line += &format!("{separator} {}", in_the_way(&report.overlays));
    }
    line + &counted(report, Fate::Dropped, "").map(|dropped| format!("; {dropped}")).unwrap_or_default()
}

/// Returns the number of patches with a fate, in words; `None` if there are none.
fn counted(report: &RebaseReport, fate: Fate, before: &str) -> Option<String> {
    let count = report.count(|other| other == fate);
    (count > 0).then(|| format!("{count} {before}{}", fate.describe()))
}

/// The named variant, then the others whose series move with it; a generation with the series that are used there.
fn variants(report: &RebaseReport) -> String {
    let others = report.patches.iter().map(|patch| &patch.series).filter(|name| **name != report.variant);
    let mut names: Vec<&str> = others.map(String::as_str).collect();
    names.dedup();
    if let Some(generation) = &report.generation {
        return format!("the generation {generation} ({})", names.join(", "));
    }
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

#[cfg(test)]
mod tests {
    use espalier_core::config::pins::Verification;
    use espalier_series::{FindingClass, ProofFinding};

    use super::super::proof::tests::{finding, proof};
    use super::super::rebase::ReportedTree;
    use super::*;

    fn patch(file: &str, new_file: Option<&str>, fate: Fate) -> PatchMove {
        let range_diff = (fate == Fate::Changed).then(|| "@@\n+x".to_string());
        PatchMove {
            new_file: new_file.map(String::from),
            ..PatchMove::new("p", (file, "s"), (fate, range_diff))
        }
    }

    fn report(written: bool, patches: Vec<PatchMove>) -> RebaseReport {
        let place = |name: &str| ReportedTree {
            name: name.into(),
            tree: "ab".repeat(20),
            verification: Verification::default(),
        };
        RebaseReport {
            variant: "p".into(),
            generation: None,
            upstream: "hello".into(),
            from: place("v1"),
            to: place("v2"),
            tree: "cd".repeat(20),
            patches,
            reverts: Vec::new(),
            proof: Vec::new(),
            stale: Vec::new(),
            overlays: Vec::new(),
            references: Vec::new(),
            written,
            next: vec!["cargo xtask lint".into()],
        }
    }

    #[test]
    fn a_dry_run_has_the_number_of_patches_that_can_move() {
        let fates = [Fate::Unchanged, Fate::Changed, Fate::Conflict, Fate::Blocked, Fate::Upstreamed];
        let patches = fates.iter().map(|fate| patch("p/0001-a.patch", None, *fate)).collect();
        let text = text(&report(false, patches));
        let headline = "p: 2 of 5 patches, from hello v1, can move without a decision to v2: 1 in conflict, 1 blocked, \
                        1 upstreamed\n";
        assert!(text.starts_with(headline), "{text}");
        assert!(text.ends_with("\n\nnext: cargo xtask lint"), "{text}");
    }

    #[test]
    fn a_tree_of_unpacked_files_is_unverified() {
        let text_of = |verification: Verification| {
            let report = report(false, Vec::new());
            text(&RebaseReport { to: ReportedTree { verification, ..report.to.clone() }, ..report })
        };
        let text = text_of(Verification::Unverified);
        assert!(text.contains("\nunverified: the tree id of v2 is that of unpacked files"), "{text}");
        assert!(!text_of(Verification::Verified).contains("unverified"));
    }

    #[test]
    fn a_generation_is_named_with_the_series_that_are_used_there() {
        let of = |series: &str| PatchMove {
            series: series.into(),
            ..patch("p/0001-a.patch", Some("p/0001-a@b1.patch"), Fate::Unchanged)
        };
        let report = report(true, vec![of("fixes"), of("fixes"), of("p")]);
        let report = RebaseReport { variant: "p-b1".into(), generation: Some("b1".into()), ..report };
        let headline = "the generation b1 (fixes, p): 3 of 3 patches, from hello v1, now on v2\n";
        assert!(text(&report).starts_with(headline), "{}", text(&report));
    }

    #[test]
    fn differences_that_prove_refuses_are_warnings() {
        let series = |findings| proof(findings).series;
        let open = || finding(FindingClass::Added, "a();");
        let moved = RebaseReport { proof: series(vec![open()]), ..report(true, Vec::new()) };
        assert!(
            text(&moved)
                .contains("\nwarning: the move made differences that nothing accounts for; `prove` lists")
        );
        let on_generation = RebaseReport { generation: Some("b1".into()), ..moved };
        let unproved = "\nwarning: patches make other changes on the generation b1, and nothing accounts for them; \
                        `prove --generation b1` lists them\n";
        assert!(text(&on_generation).contains(unproved), "{}", text(&on_generation));
        let intended = ProofFinding { intended: Some("upstream has b()".into()), ..open() };
        let named = RebaseReport { proof: series(vec![intended]), ..on_generation.clone() };
        assert!(!text(&named).contains("warning"), "{}", text(&named));
        let entry = "docs/syncs/v1-to-v2.toml: no difference `added` of src/a.c";
        let stale = text(&RebaseReport { stale: vec![entry.into()], ..named });
        let warning = "\nwarning: `prove` refuses these entries about intended differences:\n";
        assert!(stale.contains(&format!("{warning}  {entry}\n")), "{stale}");
        assert!(!text(&RebaseReport { written: false, ..on_generation }).contains("warning"));
    }

    #[test]
    fn dropped_patches_are_counted_and_the_new_names_are_used() {
        let patches = vec![
            patch("p/0001-a.patch", None, Fate::Dropped),
            patch("p/0002-b.patch", Some("p/0001-b.patch"), Fate::Changed),
        ];
        let text = text(&report(true, patches));
        assert!(text.starts_with("p: 1 of 2 patches, from hello v1, now on v2; 1 dropped\n"), "{text}");
        assert!(text.contains("\np/0001-b.patch: changed\n"), "{text}");
    }
}
