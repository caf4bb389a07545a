//! The proof of a move for a terminal, and as Markdown.

use espalier_core::config::intended::render_entry;
use espalier_core::config::pins::short_name;
use espalier_series::{FindingClass, GoneWord, LostCalls, PatchProof, ProofFinding, WordUse};

use super::proof::{MoveProof, ProvenSeries};
use super::proof_entries::{Entry, HunkLimits, all, entries};
use super::proof_intended::entry_for;
use super::status_text::{code, escape, indented};

/// Maximum number of entries of a series that a section of a report shows: a pull request has a limit, and the rest is
/// printed by `prove`.
const ENTRIES_SHOWN: usize = 50;
/// Maximum number of intended entries of a series in a section: each is one line.
const INTENDED_SHOWN: usize = 100;
/// The hunks of an entry in a section.
const HUNKS_IN_SECTION: HunkLimits = HunkLimits { hunks: 1, lines: 12 };
/// Maximum number of lines of hunks in a section.
const HUNK_LINES_IN_SECTION: usize = 160;
/// The hunks of an entry in a terminal. The lines of a hunk have a limit of their own.
const HUNKS_IN_TERMINAL: HunkLimits = HunkLimits { hunks: 4, lines: 64 };
/// Maximum number of notes of one kind: of functions that are called less often, and of words that are gone.
const NOTES_SHOWN: usize = 20;
/// Maximum number of places that a note names.
const PLACES_SHOWN: usize = 5;
/// Said once: most line numbers are of this file.
const LINE_NUMBERS: &str = "line numbers are those of the new patched file, unless another one is named";

/// Renders one line for each patch, then the differences that have to be fixed or named as intended: one entry for those of
/// a class in a function. `is_long` adds those that are accounted for, all lines, and the hunks.
pub fn text(proof: &MoveProof, is_long: bool) -> String {
    let mut text = format!("{}\n", headline(proof));
    let is_listed = |finding: &ProofFinding| is_long || finding.is_open();
    if proof.series.iter().flat_map(all).any(|(_, finding)| is_listed(finding) && finding.place.is_some()) {
        text += &format!("{LINE_NUMBERS}\n");
    }
    for series in &proof.series {
        text += &format!("\n{}: {}\n", series.variant, bases(series));
        let width = series.proof.patches.iter().map(|patch| verdict(patch).len()).max().unwrap_or(0);
        for patch in &series.proof.patches {
            text += &format!("  {:width$}  {}\n", verdict(patch), names(patch));
        }
        for entry in entries(series, is_listed) {
            text += &format!("\n{}", in_terminal(&entry, is_long));
        }
        notes(series).iter().for_each(|note| text += &format!("\n{note}\n"));
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
        (0, 0) if !proof.compares_patches() => format!("{what} has no patch to compare"),
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
    format!("from {} to {}", short_name(&series.old.name), short_name(&series.new.name))
}

/// Returns the most severe finding of a patch.
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

/// Returns the differences that have to be fixed or named as intended, one line for each entry.
pub fn open_sentences(proof: &MoveProof) -> Vec<String> {
    let open = proof.series.iter().flat_map(|series| entries(series, ProofFinding::is_open));
    open.map(|entry| format!("{}: {}", entry.name, entry.sentence())).collect()
}

/// The reason of an intended difference is enough: its hunks are no longer in question.
fn in_terminal(entry: &Entry<'_>, is_long: bool) -> String {
    let mut text = format!("{}: {}\n", entry.name, entry.sentence());
    let is_named = is_long && entry.intended().is_some();
    let digests = entry.digests(is_long).filter(|_| entry.is_open() || is_named);
    let lines = entry.remarks().into_iter().chain(entry.lines(is_long)).chain(digests);
    lines.for_each(|line| text += &format!("  {line}\n"));
    if is_long && entry.intended().is_none() {
        entry.hunks(HUNKS_IN_TERMINAL).iter().for_each(|hunk| text += &indented(hunk));
    }
    text
}

/// Returns the notes, which need no reason.
fn notes(series: &ProvenSeries) -> Vec<String> {
    let lost = &series.proof.lost_calls;
    let mut notes: Vec<String> = lost.iter().take(NOTES_SHOWN).map(note).collect();
    if lost.len() > NOTES_SHOWN {
        let more = lost.len() - NOTES_SHOWN;
        notes.push(format!("note: upstream calls {more} more changed functions less often: see --json"));
    }
    notes.extend(notes_on_words(series));
    notes
}

/// Returns the notes on words that patches or overlay files use and that upstream no longer has.
pub fn notes_on_words(series: &ProvenSeries) -> Vec<String> {
    notes_on_gone_words(&series.proof.gone_words)
}

/// As [`notes_on_words`], on the words themselves.
pub fn notes_on_gone_words(gone: &[GoneWord]) -> Vec<String> {
    let mut notes: Vec<String> = gone.iter().take(NOTES_SHOWN).map(note_on_word).collect();
    if gone.len() > NOTES_SHOWN {
        let more = gone.len() - NOTES_SHOWN;
        notes.push(format!("note: {more} more words that patches use are gone from upstream: see --json"));
    }
    notes
}

fn note_on_word(gone: &GoneWord) -> String {
    let GoneWord { word, files, uses } = gone;
    format!(
        "note: `{word}` is gone from the files that upstream changed (before: in {})\n  used in {}: check that it is \
         still what is meant, and that it compiles",
        shortened(files),
        shortened(&uses.iter().map(place_of_use).collect::<Vec<_>>())
    )
}

/// `src/a.c:7 (0001-a.patch)`, or the place in an overlay file.
fn place_of_use(used: &WordUse) -> String {
    let WordUse { patch, path, line } = used;
    let patch = patch.as_ref().map(|patch| format!(" ({patch})")).unwrap_or_default();
    format!("{path}:{line}{patch}")
}

/// Returns the first of `places`, and the number of the others.
fn shortened(places: &[String]) -> String {
    let shown = places.get(..PLACES_SHOWN).unwrap_or(places).join(", ");
    match places.len().checked_sub(PLACES_SHOWN) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

fn note(lost: &LostCalls) -> String {
    let LostCalls { function, patches, calls, files } = lost;
    let files: Vec<String> = files
        .iter()
        .map(|file| format!("{} ({} before, {} now)", file.path, file.calls.before, file.calls.after))
        .collect();
    format!(
        "note: {} changes `{function}`, which upstream calls less often (before: {}, now: {}, in the files that it \
         changed)\n  fewer in {}: check that the change is not needed where the calls were",
        patches.join(", "),
        calls.before,
        calls.after,
        files.join(", ")
    )
}

/// Returns what to do about open differences, with the first one as an example.
fn way_out(proof: &MoveProof) -> String {
    let Some((_, first)) = proof.open().into_iter().next() else { return String::new() };
    let file = proof.intended_in.first().map_or("the file beside the report of the move", String::as_str);
    let example = indented(&render_entry(&entry_for(first, "...")));
    format!("\nfix the series, or, if a difference is intended, give its reason in {file}:\n\n{example}")
}

/// Renders the section of a report: a heading, a table of the patches, and the differences. Its length has a limit,
/// whatever the number of differences is.
pub fn markdown(proof: &MoveProof) -> String {
    let mut text = format!("## Proof of the move\n\n{}.\n", capitalized(&headline(proof)));
    if proof.series.iter().flat_map(all).any(|(_, finding)| is_in_section(finding) && finding.place.is_some())
    {
        text += &format!("\n{}.\n", capitalized(LINE_NUMBERS));
    }
    let mut room = HUNK_LINES_IN_SECTION;
    for series in &proof.series {
        text += &table(series);
        text += &listed(series, &mut room);
        notes(series).iter().for_each(|note| text += &format!("\n* {}\n", escape(note)));
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

/// Whether a section has the difference. What changed around a patch is in the one with the differences of the patches.
fn is_in_section(finding: &ProofFinding) -> bool {
    finding.class != FindingClass::ContextOnly
}

fn table(series: &ProvenSeries) -> String {
    let mut text = format!(
        "\n{}, {}:\n\n| patch | change on the new base |\n|---|---|\n",
        series.variant,
        bases(series)
    );
    for patch in &series.proof.patches {
        text += &format!("| {} | {} |\n", code(&names(patch)), verdict(patch));
    }
    text
}

/// Renders the differences of a series, those to be fixed or named first; of intended ones, only a list with the reasons.
/// `room` is the number of lines of hunks that the section still has room for.
fn listed(series: &ProvenSeries, room: &mut usize) -> String {
    let (intended, mut others): (Vec<Entry<'_>>, Vec<Entry<'_>>) =
        entries(series, is_in_section).into_iter().partition(|entry| entry.intended().is_some());
    others.sort_by_key(|entry| !entry.is_open());
    let mut text = String::new();
    for entry in others.iter().take(ENTRIES_SHOWN) {
        text += &folded(entry, room);
    }
    text += &more(others.len(), ENTRIES_SHOWN);
    if !intended.is_empty() {
        text += "\nIntended differences, with their reasons:\n\n";
    }
    for entry in intended.iter().take(INTENDED_SHOWN) {
        let why = entry.intended().unwrap_or_default();
        text += &format!("* {}: {}: {}\n", escape(&entry.name), escape(&entry.sentence()), escape(why));
    }
    text + &more(intended.len(), INTENDED_SHOWN)
}

fn more(count: usize, limit: usize) -> String {
    match count.checked_sub(limit) {
        Some(more @ 1..) => format!("\n{more} more are printed by `prove --long`.\n"),
        _ => String::new(),
    }
}

/// Renders an entry whose details are folded.
fn folded(entry: &Entry<'_>, room: &mut usize) -> String {
    let mut details = entry.remarks();
    details.extend(entry.lines(false));
    let hunks = entry.hunks(HUNKS_IN_SECTION);
    let size = hunks.iter().map(|hunk| hunk.lines().count()).sum::<usize>();
    match room.checked_sub(size) {
        Some(left) => {
            *room = left;
            details.extend(hunks);
        }
        None => details.push("its hunks are printed by `prove --long`".to_string()),
    }
    format!(
        "\n<details><summary>{}: {}</summary>\n\n{}\n</details>\n",
        escape(&entry.name),
        escape(&entry.sentence()),
        indented(&details.join("\n"))
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use espalier_core::config::intended::{Intended, NamedDifferences};
    use espalier_series::{Calls, CallsInFile, FileVersion, HunkPair, LinePlace};

    use super::super::proof::tests::{finding, proof};
    use super::*;

    #[test]
    fn an_open_difference_comes_with_its_entry() {
        let mut proof = proof(vec![finding(FindingClass::LostOwnLine, "    a();")]);
        proof.intended_in.push("docs/syncs/v1-to-v2.toml".into());
        insta::assert_snapshot!(text(&proof, false), @r#"
        the move from HEAD~1 to HEAD is not proved: 1 difference
        line numbers are those of the new patched file, unless another one is named

        p: from v1 to v2
          1 difference  0001-a.patch

        0001-a.patch: lost-own-line: src/a.c:7, in `int f(void) {`: `a();`
          digest: cd06e8a6b636

        fix the series, or, if a difference is intended, give its reason in docs/syncs/v1-to-v2.toml:

            [[intended]]
            class = "lost-own-line"
            path = "src/a.c"
            function = "int f(void) {"
            line = "cd06e8a6b636"
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
    fn without_a_patch_nothing_is_called_proved() {
        let mut nothing = proof(Vec::new());
        nothing.series[0].proof.patches.clear();
        for proof in [nothing, MoveProof { series: Vec::new(), ..proof(Vec::new()) }] {
            assert!(proof.holds() && !proof.is_proved());
            let report = text(&proof, false);
            assert!(report.starts_with("the move from HEAD~1 to HEAD has no patch to compare"), "{report}");
            assert!(!markdown(&proof).contains("is proved"), "{}", markdown(&proof));
        }
    }

    #[test]
    fn a_sentence_shows_blank_lines_and_names_a_function_once() {
        let sentence = |finding: ProofFinding| open_sentences(&proof(vec![finding])).concat();
        let added = |text: &str| finding(FindingClass::Added, text);
        let place = "0001-a.patch: added: src/a.c";
        assert_eq!(sentence(added("   ")), format!("{place}:7, in `int f(void) {{`: a blank line"));
        assert_eq!(sentence(added("int f(void) {")), format!("{place}:7: `int f(void) {{`"));
        let mut whole = added("the whole file (3 lines)");
        (whole.place, whole.digest, whole.function) = (None, None, None);
        assert_eq!(sentence(whole), format!("{place}: the whole file (3 lines)"));
    }

    #[test]
    fn commits_are_cut_and_lost_calls_are_noted() {
        let mut proof = proof(Vec::new());
        let series = &mut proof.series[0];
        series.new.name = "0c1e57098bba43ac29e6e3b677cdceebdd22334f".into();
        let calls = Calls { before: 4, after: 3 };
        series.proof.lost_calls.push(LostCalls {
            function: "check".into(),
            patches: vec!["0001-a.patch".into()],
            calls,
            files: vec![CallsInFile { path: "src/b.c".into(), calls }],
        });
        insta::assert_snapshot!(text(&proof, false), @"
        the move from HEAD~1 to HEAD is proved: the changes of 1 patch are the same on either base

        p: from v1 to 0c1e57098bba
          the same  0001-a.patch

        note: 0001-a.patch changes `check`, which upstream calls less often (before: 4, now: 3, in the files that it changed)
          fewer in src/b.c (4 before, 3 now): check that the change is not needed where the calls were
        ");
        assert!(
            markdown(&proof).contains("\n* note: 0001-a.patch changes `check`, "),
            "{}",
            markdown(&proof)
        );
    }

    #[test]
    fn words_that_are_gone_are_noted_with_their_places() {
        let mut proof = proof(Vec::new());
        let used = |patch: Option<&str>, path: &str, line: usize| WordUse {
            patch: patch.map(String::from),
            path: path.into(),
            line,
        };
        let patched = (7..13).map(|line| used(Some("0001-a.patch"), "src/a.c", line));
        let uses = patched.chain([used(None, "overlay/shim/own.h", 3)]).collect();
        let gone = GoneWord { word: "parser_params".into(), files: vec!["src/b.h".into()], uses };
        proof.series[0].proof.gone_words = vec![gone; NOTES_SHOWN + 1];
        let notes = notes_on_words(&proof.series[0]);
        assert_eq!(notes.len(), NOTES_SHOWN + 1);
        insta::assert_snapshot!(notes[0], @"
        note: `parser_params` is gone from the files that upstream changed (before: in src/b.h)
          used in src/a.c:7 (0001-a.patch), src/a.c:8 (0001-a.patch), src/a.c:9 (0001-a.patch), src/a.c:10 (0001-a.patch), src/a.c:11 (0001-a.patch) and 2 more: check that it is still what is meant, and that it compiles
        ");
        assert_eq!(
            notes[NOTES_SHOWN],
            "note: 1 more words that patches use are gone from upstream: see --json"
        );
        assert!(text(&proof, false).contains(&notes[0]));
        assert!(markdown(&proof).contains("\n* note: `parser_params` is gone"), "{}", markdown(&proof));
    }

    #[test]
    fn many_differences_of_a_function_are_one_entry_with_one_hunk() {
        let lost = |line: usize| {
            let place = Some(LinePlace { version: FileVersion::NewAfter, line });
            ProofFinding { place, ..finding(FindingClass::LostOwnLine, &format!("    a{line}();")) }
        };
        let proof = proof((7..164).map(lost).collect());
        let head = "0001-a.patch: lost-own-line: src/a.c, in `int f(void) {`: 157 lines: 7-163\n";
        let short = text(&proof, false);
        let lines = "  7: `a7();`\n  8: `a8();`\n  9: `a9();`\n  10: `a10();`\n  11: `a11();`\n";
        let more = "  ... and 152 more, printed by `prove --long`\n";
        assert!(short.contains(&format!("\n{head}{lines}{more}")), "{short}");
        let long = text(&proof, true);
        assert!(long.contains("  163: `a163();`\n") && !long.contains("more, printed"), "{long}");
        for report in [long, markdown(&proof)] {
            assert_eq!(report.matches("@@ -7 +7 @@").count(), 1, "{report}");
        }
        let page = markdown(&proof);
        assert!(page.contains(": 157 lines: 7-163</summary>") && page.lines().count() < 40, "{page}");
    }

    /// 161 differences of a real move made a section of 7,200 lines.
    #[test]
    fn a_section_is_short_whatever_the_number_and_the_size_of_its_differences() {
        let hunk = |at: usize| format!("@@ -{at} +{at} @@\n{}", "+line\n".repeat(60));
        let found = |at: usize| ProofFinding {
            function: Some(format!("int f{}(void) {{", at / 2)),
            hunks: HunkPair { old: Some(hunk(at / 2)), new: Some(hunk(at / 2 + 1)) },
            ..finding(FindingClass::ResolvedByHand, "    a();")
        };
        let page = markdown(&proof((0..161).map(found).collect()));
        assert!(page.lines().count() < 900, "{} lines", page.lines().count());
        assert!(page.contains("its hunks are printed by `prove --long`"), "{page}");
        assert!(page.contains("\n31 more are printed by `prove --long`.\n"), "{page}");
    }

    #[test]
    fn intended_differences_are_a_list_with_their_reasons() {
        let mut proof = proof(vec![finding(FindingClass::LostOwnLine, "    a();"); 2]);
        let named = NamedDifferences::lines(["cd06e8a6b636", "cd06e8a6b636"]);
        let entry = Intended { why: "upstream has b<T>()".into(), named, ..entry_for(proof.open()[0].1, "") };
        proof.name_intended("docs/syncs/v1-to-v2.toml", &[entry], &[0]);
        let page = markdown(&proof);
        let listed = "\nIntended differences, with their reasons:\n\n* 0001-a.patch: lost-own-line: src/a.c, in `int \
                      f(void) {`: 2 lines: 7: upstream has b&lt;T&gt;()\n";
        assert!(page.contains(listed), "{page}");
        let long = text(&proof, true);
        assert!(long.contains("  intended: upstream has b<T>()\n"), "{long}");
        assert!(long.ends_with("\n  digests: cd06e8a6b636, cd06e8a6b636"), "{long}");
        for report in [page, long] {
            assert!(!report.contains("@@ -7 +7 @@"), "{report}");
        }
    }

    #[test]
    fn a_section_has_every_difference_with_its_hunks() {
        let proof = proof(vec![finding(FindingClass::Doubled, "    a();")]);
        insta::assert_snapshot!(markdown(&proof), @"
        ## Proof of the move

        The move from HEAD~1 to HEAD is not proved: 1 difference.

        Line numbers are those of the new patched file, unless another one is named.

        p, from v1 to v2:

        | patch | change on the new base |
        |---|---|
        | `0001-a.patch` | 1 difference |

        <details><summary>0001-a.patch: doubled: src/a.c:7, in `int f(void) {`: `a();`</summary>

            the new hunk:
            @@ -7 +7 @@
            -a
            +b

        </details>
        ");
    }
}
