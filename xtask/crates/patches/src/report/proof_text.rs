//! The proof of a move for a terminal, and as Markdown.

use espalier_core::config::intended::render_entry;
use espalier_series::{FileVersion, FindingClass, LinePlace, PatchProof, ProofFinding};

use super::proof::{MoveProof, ProvenSeries, entry_for};
use super::status_text::{code, escape, indented};

/// Maximum number of differences that a section of a report shows: a pull request has a limit, and the rest is printed by
/// `prove`.
const FINDINGS_SHOWN: usize = 50;

/// Renders one line for each patch, then every difference that has to be fixed or named as intended. `is_long` adds those
/// that are accounted for, and the hunks.
pub fn text(proof: &MoveProof, is_long: bool) -> String {
    let mut text = format!("{}\n", headline(proof));
    for series in &proof.series {
        text += &format!("\n{}: {}\n", series.variant, bases(series));
        let width = series.proof.patches.iter().map(|patch| verdict(patch).len()).max().unwrap_or(0);
        for patch in &series.proof.patches {
            text += &format!("  {:width$}  {}\n", verdict(patch), names(patch));
        }
        for (name, finding) in all(series).filter(|(_, finding)| is_long || finding.is_open()) {
            text += &format!("\n{name}: {}\n", sentence(finding));
            remarks(finding).iter().for_each(|remark| text += &format!("  {remark}\n"));
            if is_long {
                hunks(finding).iter().for_each(|hunk| text += &indented(hunk));
            }
        }
    }
    for overlay in &proof.overlays {
        text += &format!("\nnot a part of the proof: the overlay file {overlay} differs\n");
    }
    for stale in &proof.stale {
        text += &format!("\n{stale}\n");
    }
    text += &way_out(proof);
    text.trim_end().to_string()
}

/// `a is proved`, or how much is left.
fn headline(proof: &MoveProof) -> String {
    let what = format!("the move from {} to {}", proof.old, proof.new);
    let (open, stale) = (proof.open().len(), proof.stale.len());
    match (open, stale) {
        (0, 0) => format!("{what} is proved: {}", counts(proof)),
        (0, _) => format!("{what} is not proved: {stale} entries name differences that are not there"),
        (1, _) => format!("{what} is not proved: 1 difference"),
        (_, _) => format!("{what} is not proved: {open} differences"),
    }
}

/// `the changes of 3 patches are the same on either base`.
fn counts(proof: &MoveProof) -> String {
    let patches = proof.series.iter().flat_map(|series| &series.proof.patches).count();
    let intended = |finding: &&ProofFinding| finding.intended.is_some();
    let intended = proof.series.iter().flat_map(|series| series.proof.findings()).filter(intended).count();
    let patches = if patches == 1 { "1 patch".to_string() } else { format!("{patches} patches") };
    match intended {
        0 => format!("the changes of {patches} are the same on either base"),
        1 => format!("the changes of {patches} are the same on either base, but for 1 intended difference"),
        _ => format!(
            "the changes of {patches} are the same on either base, but for {intended} intended differences"
        ),
    }
}

fn bases(series: &ProvenSeries) -> String {
    format!("from {} to {}", series.old.name, series.new.name)
}

/// Returns the most severe that is to be said of a patch.
fn verdict(patch: &PatchProof) -> String {
    let open = patch.findings.iter().filter(|finding| finding.is_open()).count();
    let has = |class: FindingClass| patch.findings.iter().any(|finding| finding.class == class);
    match open {
        0 if patch.findings.iter().any(|finding| finding.intended.is_some()) => "intended".to_string(),
        0 if has(FindingClass::ResolvedByHand) => "resolved by hand".to_string(),
        0 if has(FindingClass::Upstreamed) => "upstreamed".to_string(),
        0 if has(FindingClass::ContextOnly) => "context only".to_string(),
        0 => "the same".to_string(),
        1 => "1 difference".to_string(),
        _ => format!("{open} differences"),
    }
}

fn names(patch: &PatchProof) -> String {
    let (old, new) = (patch.old.join(" + "), patch.new.join(" + "));
    match (patch.old.is_empty(), patch.new.is_empty()) {
        (_, true) => format!("{old} (dropped)"),
        (true, _) => format!("{new} (new)"),
        _ if old == new => new,
        _ => format!("{old} -> {new}"),
    }
}

fn all(series: &ProvenSeries) -> impl Iterator<Item = (String, &ProofFinding)> {
    let patches = series.proof.patches.iter().flat_map(|patch| {
        let name = patch.name();
        patch.findings.iter().map(move |finding| (name.clone(), finding))
    });
    let together = format!("{}, all patches together", series.variant);
    patches.chain(series.proof.whole.iter().map(move |finding| (together.clone(), finding)))
}

/// `lost-own-line: src/a.c:7 in int f(void) {: a();`
pub fn sentence(finding: &ProofFinding) -> String {
    let place = finding.place.map(|place| format!(":{}", place.line)).unwrap_or_default();
    let function = finding.function.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
    format!("{}: {}{place}{function}: {}", finding.class.name(), finding.path, finding.text.trim())
}

fn remarks(finding: &ProofFinding) -> Vec<String> {
    let version = finding.place.map(|LinePlace { version, .. }| match version {
        FileVersion::OldAfter => "the line number is that of the old patched file",
        FileVersion::NewBefore => "the line number is that of the new base",
        FileVersion::NewAfter => "the line number is that of the new patched file",
    });
    let intended = finding.intended.as_ref().map(|why| format!("intended: {why}"));
    let evidence = finding.evidence.clone();
    version.map(str::to_string).into_iter().chain(evidence).chain(intended).collect()
}

/// Returns the hunks, each with a name.
fn hunks(finding: &ProofFinding) -> Vec<String> {
    let named = [("old", &finding.hunks.old), ("new", &finding.hunks.new)];
    let shown = named.into_iter().filter_map(|(name, hunk)| Some((name, hunk.as_ref()?)));
    shown.map(|(name, hunk)| format!("the {name} hunk:\n{hunk}")).collect()
}

/// Returns what to do about open differences, with the first one as an example.
fn way_out(proof: &MoveProof) -> String {
    let Some((_, first)) = proof.open().into_iter().next() else { return String::new() };
    let file = proof.intended_in.first().map_or("the file beside the report of the move", String::as_str);
    let example = indented(&render_entry(&entry_for(first, "...")));
    format!("\nfix the series, or, if a difference is intended, give its reason in {file}:\n\n{example}")
}

/// Renders the section of a report: a heading, a table of the patches, and every difference.
pub fn markdown(proof: &MoveProof) -> String {
    let mut text = format!("## Proof of the move\n\n{}.\n", capitalized(&headline(proof)));
    for series in &proof.series {
        text += &format!(
            "\n{}, {}:\n\n| patch | change on the new base |\n|---|---|\n",
            series.variant,
            bases(series)
        );
        for patch in &series.proof.patches {
            text += &format!("| {} | {} |\n", code(&names(patch)), verdict(patch));
        }
        // What changed around a patch is in the section with the differences of the patches.
        let is_listed = |finding: &ProofFinding| finding.class != FindingClass::ContextOnly;
        let mut listed: Vec<_> = all(series).filter(|(_, finding)| is_listed(finding)).collect();
        listed.sort_by_key(|(_, finding)| !finding.is_open());
        for (name, finding) in listed.iter().take(FINDINGS_SHOWN) {
            let details = remarks(finding).into_iter().chain(hunks(finding)).collect::<Vec<_>>().join("\n");
            text += &format!(
                "\n<details><summary>{}: {}</summary>\n\n{}\n</details>\n",
                escape(name),
                escape(&sentence(finding)),
                indented(&details)
            );
        }
        if listed.len() > FINDINGS_SHOWN {
            text += &format!("\n{} more are printed by `prove --long`.\n", listed.len() - FINDINGS_SHOWN);
        }
    }
    for line in proof
        .overlays
        .iter()
        .map(|file| format!("not a part of the proof: {file}"))
        .chain(proof.stale.clone())
    {
        text += &format!("\n* {}\n", code(&line));
    }
    text
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use espalier_core::config::intended::Intended;

    use super::super::proof::tests::{finding, proof};
    use super::*;

    #[test]
    fn an_open_difference_comes_with_its_entry() {
        let mut proof = proof(vec![finding(FindingClass::LostOwnLine, "    a();")]);
        proof.intended_in.push("docs/syncs/v1-to-v2.toml".into());
        insta::assert_snapshot!(text(&proof, false), @r#"
        the move from HEAD~1 to HEAD is not proved: 1 difference

        p: from v1 to v2
          1 difference  0001-a.patch

        0001-a.patch: lost-own-line: src/a.c:7 in int f(void) {: a();
          the line number is that of the new patched file

        fix the series, or, if a difference is intended, give its reason in docs/syncs/v1-to-v2.toml:

            [[intended]]
            class = "lost-own-line"
            path = "src/a.c"
            line = "a();"
            why = "..."
        "#);
        let entry = Intended { why: "upstream has b()".into(), ..entry_for(proof.open()[0].1, "") };
        proof.name_intended("docs/syncs/v1-to-v2.toml", &[entry], &[0]);
        insta::assert_snapshot!(text(&proof, false), @"
        the move from HEAD~1 to HEAD is proved: the changes of 1 patch are the same on either base, but for 1 intended difference

        p: from v1 to v2
          intended  0001-a.patch
        ");
    }

    #[test]
    fn a_section_has_every_difference_with_its_hunks() {
        let proof = proof(vec![finding(FindingClass::Doubled, "    a();")]);
        insta::assert_snapshot!(markdown(&proof), @"
        ## Proof of the move

        The move from HEAD~1 to HEAD is not proved: 1 difference.

        p, from v1 to v2:

        | patch | change on the new base |
        |---|---|
        | `0001-a.patch` | 1 difference |

        <details><summary>0001-a.patch: doubled: src/a.c:7 in int f(void) {: a();</summary>

            the line number is that of the new patched file
            the new hunk:
            @@ -7 +7 @@
            -a
            +b

        </details>
        ");
    }
}
