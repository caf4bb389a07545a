//! The proof of a move as data: every series, compared with what it was, and the differences that a person has named as
//! intended.

use std::collections::BTreeMap;
use std::fmt;

use espalier_core::config::intended::{Intended, intended_file, read_intended};
use espalier_core::config::snippet::SourceText;
use espalier_core::error::{Error, Result};
use espalier_series::{FindingClass, PatchProof, ProofFinding, SeriesProof, Undone, says_something};
use serde::Serialize;

use super::status::Place;

/// The proof of one series.
#[derive(Debug, Clone, Serialize)]
pub struct ProvenSeries {
    /// The variant that has the series.
    pub variant: String,
    /// The tree below its first patch, before the move.
    pub old: Place,
    /// The tree below its first patch, after the move.
    pub new: Place,
    /// Every patch, and the whole series.
    #[serde(flatten)]
    pub proof: SeriesProof,
}

/// The proof of a move.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MoveProof {
    /// The state of the repository before the move, as named by the user.
    pub old: String,
    /// The state after it.
    pub new: String,
    /// Every series.
    pub series: Vec<ProvenSeries>,
    /// Overlay files that differ between the states. They are no part of the proof.
    pub overlays: Vec<String>,
    /// The files that name intended differences, whether they exist or not.
    pub intended_in: Vec<String>,
    /// Entries of those files that count more differences than there are.
    pub stale: Vec<String>,
}

/// An upstream change since the old pin that a patch now reverts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revert {
    /// The patch's file name.
    pub patch: String,
    /// The file.
    pub path: String,
    /// Line number from 1 in the file before the patch, or after it for a restored line; `None` for a whole file.
    pub line: Option<usize>,
    /// The line, sanitized for display.
    pub text: String,
    /// The upstream change.
    pub undone: Undone,
    /// Whether a resolution rewrites the line and keeps every word of it: the proof accepts that.
    pub is_rewritten: bool,
}

impl fmt::Display for Revert {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Revert { patch, path, text, .. } = self;
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        match self.undone {
            Undone::Added if self.is_rewritten => {
                write!(out, "{patch} rewrites {path}{line}, which upstream added: {text}")
            }
            Undone::Added => write!(out, "{patch} deletes {path}{line}, which upstream added: {text}"),
            Undone::Deleted => {
                write!(out, "{patch} brings back {path}{line}, which upstream deleted: {text}")
            }
            Undone::Binary => {
                write!(out, "{patch} replaces {path}, which is binary, and upstream changed it too")
            }
        }
    }
}

impl MoveProof {
    /// Whether patches were compared, and the proof holds.
    pub fn is_proved(&self) -> bool {
        self.compares_patches() && self.holds()
    }

    /// Whether every difference is accounted for or named as intended, and no entry names a difference that is not there.
    /// So it is without a patch, of which nothing is proved.
    pub fn holds(&self) -> bool {
        self.stale.is_empty() && self.series.iter().all(|series| series.proof.is_proved())
    }

    /// Whether there is a patch in either state of a series.
    pub fn compares_patches(&self) -> bool {
        self.series.iter().any(|series| !series.proof.patches.is_empty())
    }

    /// Returns the differences that have to be fixed or named as intended, each with the patch that has it, or the
    /// variant.
    pub fn open(&self) -> Vec<(String, &ProofFinding)> {
        self.series.iter().flat_map(ProvenSeries::open).collect()
    }

    /// Takes over the reasons of the project, which are in one file for each pair of pins; `read` returns the content
    /// of a file, by its path from the root, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// That of `read`, or an entry is not valid, as without a reason.
    pub fn take_reasons(&mut self, read: impl Fn(&str) -> Result<Option<Vec<u8>>>) -> Result<()> {
        let mut files: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, series) in self.series.iter().enumerate() {
            files.entry(intended_file(&series.old.name, &series.new.name)).or_default().push(at);
        }
        for (file, places) in files {
            let text = read(&file)?.unwrap_or_default();
            let text =
                String::from_utf8(text).map_err(|_| Error::usage(format!("`{file}` is not UTF-8 text")))?;
            let entries = read_intended(SourceText { name: &file, text: &text })?;
            self.name_intended(&file, &entries, &places);
        }
        Ok(())
    }

    /// Takes over the reasons in `entries`, read from `file`, for the series at `places`.
    pub fn name_intended(&mut self, file: &str, entries: &[Intended], places: &[usize]) {
        let series = self.series.iter_mut().enumerate().filter(|(at, _)| places.contains(at));
        let findings = series.flat_map(|(_, series)| series.proof.findings_mut());
        let mut findings: Vec<&mut ProofFinding> =
            findings.filter(|finding| !finding.class.is_accounted_for()).collect();
        let shares = Shares::of(&findings, entries);
        for (entry, share) in entries.iter().zip(&shares.counted) {
            share.iter().for_each(|at| findings[*at].intended = Some(entry.why.clone()));
        }
        let left =
            entries.iter().zip(&shares.counted).map(|(entry, share)| (entry, entry.count - share.len()));
        let unused = left.filter(|(_, left)| *left > 0);
        self.stale.extend(unused.map(|(entry, left)| format!("{file}: {}", stale(entry, left))));
        self.intended_in.push(file.to_string());
    }

    /// Returns entries without reasons for all open differences, by the file that they belong in.
    pub fn missing_entries(&self) -> BTreeMap<String, Vec<Intended>> {
        let mut open: BTreeMap<String, Vec<&ProofFinding>> = BTreeMap::new();
        for series in &self.series {
            let found = series.open().into_iter().map(|(_, finding)| finding);
            open.entry(intended_file(&series.old.name, &series.new.name)).or_default().extend(found);
        }
        open.retain(|_, findings| !findings.is_empty());
        open.into_iter().map(|(file, findings)| (file, entries_for(&findings))).collect()
    }
}

/// `no difference `doubled` of src/a.c: a();`
fn stale(entry: &Intended, left: usize) -> String {
    let place = entry.function.as_ref().map(|head| format!(", in `{head}`")).unwrap_or_default();
    let line = entry.line.as_ref().map(|line| format!(": {}", shown_line(line))).unwrap_or_default();
    let about = format!("`{}` of {}{place}{line}", entry.class.name(), entry.path);
    match entry.count - left {
        0 => format!("no difference {about}"),
        there => format!("count = {}, and there are only {there}: differences {about}", entry.count),
    }
}

/// Returns a line of a file as it is shown in a sentence.
pub fn shown_line(line: &str) -> String {
    match line.trim() {
        "" => "a blank line".to_string(),
        line => format!("`{line}`"),
    }
}

/// Returns entries without reasons: one for the lines of one class in one function, or, if that is a single line, for
/// this line.
fn entries_for(findings: &[&ProofFinding]) -> Vec<Intended> {
    let mut groups: BTreeMap<_, Vec<&ProofFinding>> = BTreeMap::new();
    for finding in findings {
        let group = (&finding.path, &finding.function, finding.class, finding.place.is_some());
        groups.entry(group).or_default().push(finding);
    }
    let entry = |group: Vec<&ProofFinding>| {
        let first = group.first()?;
        let is_one_line = group.iter().all(|finding| finding.text.trim() == first.text.trim());
        let line = entry_for(first, "").line.filter(|_| is_one_line);
        let function = first.function.clone();
        Some(Intended { function, line, count: group.len(), ..entry_for(first, "") })
    };
    groups.into_values().filter_map(entry).collect()
}

/// The differences that each entry counts: as many as possible in all, and in an entry at most its count.
///
/// Each difference goes to the narrowest entry about it. If that would leave another difference without an entry, one of
/// them goes to a broader entry: so it does not depend on the order of the entries whether a move is proved, and entries
/// that were written for all differences name them all.
struct Shares<'e> {
    entries: &'e [Intended],
    /// For each difference the entries about it, the narrowest first.
    about: Vec<Vec<usize>>,
    /// For each entry the differences that it counts.
    counted: Vec<Vec<usize>>,
}

impl<'e> Shares<'e> {
    fn of(findings: &[&mut ProofFinding], entries: &'e [Intended]) -> Shares<'e> {
        let about = findings.iter().map(|finding| entries_about(finding, entries)).collect();
        let mut shares = Shares { entries, about, counted: vec![Vec::new(); entries.len()] };
        for finding in 0..findings.len() {
            shares.place(finding, &mut vec![false; entries.len()]);
        }
        shares
    }

    /// Finds an entry for a difference; `tried` has the entries that have no place for it. Returns whether there is one.
    fn place(&mut self, finding: usize, tried: &mut [bool]) -> bool {
        let about = self.about[finding].clone();
        let has_place = |entry: &&usize| self.counted[**entry].len() < self.entries[**entry].count;
        if let Some(free) = about.iter().find(has_place) {
            self.counted[*free].push(finding);
            return true;
        }
        for entry in about {
            if std::mem::replace(&mut tried[entry], true) {
                continue;
            }
            for at in 0..self.counted[entry].len() {
                let other = self.counted[entry][at];
                if self.place(other, tried) {
                    self.counted[entry][at] = finding;
                    return true;
                }
            }
        }
        false
    }
}

/// Returns the entries about `finding`, the narrowest first.
fn entries_about(finding: &ProofFinding, entries: &[Intended]) -> Vec<usize> {
    let is_about_it = |at: &usize| entries.get(*at).is_some_and(|entry| is_about(entry, finding));
    let mut about: Vec<usize> = (0..entries.len()).filter(is_about_it).collect();
    about.sort_by_key(|at| entries.get(*at).map(breadth));
    about
}

fn is_about(entry: &Intended, finding: &ProofFinding) -> bool {
    let line = finding.place.map(|_| finding.text.trim());
    let is_in = |head: &String| finding.function.as_ref() == Some(head);
    entry.class == finding.class
        && entry.path == finding.path
        && entry.function.as_ref().is_none_or(is_in)
        && entry.line.as_deref().is_none_or(|wanted| line == Some(wanted))
}

/// Returns a rank: an entry about the function comes before one about the whole file, and in either one about the line
/// before one about any line. So each counts what the narrower ones do not.
fn breadth(entry: &Intended) -> (bool, bool) {
    (entry.function.is_none(), entry.line.is_none())
}

/// Returns the entry that names `finding` as intended.
pub fn entry_for(finding: &ProofFinding, why: &str) -> Intended {
    Intended {
        class: finding.class,
        path: finding.path.clone(),
        function: None,
        line: finding.place.map(|_| finding.text.trim().to_string()),
        count: 1,
        why: why.to_string(),
    }
}

impl ProvenSeries {
    /// Returns the differences that have to be fixed or named as intended, each with the patch that has it, or the
    /// variant.
    pub fn open(&self) -> Vec<(String, &ProofFinding)> {
        let patches = self.proof.patches.iter().flat_map(|patch| {
            let name = patch.name();
            patch.findings.iter().map(move |finding| (name.clone(), finding))
        });
        let whole = self.proof.whole.iter().map(|finding| (self.variant.clone(), finding));
        patches.chain(whole).filter(|(_, finding)| finding.is_open()).collect()
    }

    /// Accounts for dropped patches that upstream's commits contain, given the name of each and what is known of it:
    /// upstream may have changed their lines since.
    pub fn account_for_taken(&mut self, taken: &[(String, String)]) {
        for patch in self.proof.patches.iter_mut().filter(|patch| patch.new.is_empty()) {
            for finding in &mut patch.findings {
                let reason = taken.iter().find(|(name, _)| *name == finding.path);
                if let Some((_, why)) = reason.filter(|_| finding.class == FindingClass::LostPatch) {
                    finding.intended = Some(why.clone());
                }
            }
        }
    }

    /// Returns the guard against silent reverts: the upstream changes since the old base that patches reverse now, whether
    /// or not the proof accounts for them. It is what happens when a conflict is resolved by taking the side of the patch.
    /// Lines such as `} else {` are in every file, and left out.
    pub fn reverts(&self) -> Vec<Revert> {
        let of_patch = |patch: &PatchProof| {
            let name = patch.name();
            let undone = patch.findings.iter().filter_map(|finding| Some((finding, finding.undone?)));
            let reverts = undone.map(|(finding, undone)| Revert {
                patch: name.clone(),
                path: finding.path.clone(),
                line: finding.place.map(|place| place.line),
                text: if undone == Undone::Binary { String::new() } else { finding.text.trim().to_string() },
                undone,
                is_rewritten: finding.class == FindingClass::ResolvedByHand,
            });
            reverts.collect::<Vec<_>>()
        };
        let mut reverts: Vec<Revert> = self.proof.patches.iter().flat_map(of_patch).collect();
        reverts.retain(|revert| revert.undone == Undone::Binary || says_something(revert.text.as_bytes()));
        reverts.sort_by(|left, right| {
            (&left.patch, &left.path, left.line).cmp(&(&right.patch, &right.path, right.line))
        });
        reverts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use espalier_core::config::pins::Verification;
    use espalier_series::{FileVersion, HunkPair, LinePlace};

    use super::*;

    pub fn finding(class: FindingClass, text: &str) -> ProofFinding {
        ProofFinding {
            class,
            path: "src/a.c".into(),
            function: Some("int f(void) {".into()),
            place: Some(LinePlace { version: FileVersion::NewAfter, line: 7 }),
            text: text.into(),
            evidence: None,
            undone: None,
            hunks: HunkPair { old: None, new: Some("@@ -7 +7 @@\n-a\n+b".into()) },
            intended: None,
        }
    }

    pub fn proof(findings: Vec<ProofFinding>) -> MoveProof {
        let place = |name: &str| Place {
            name: name.into(),
            tree: "11".into(),
            verification: Verification::default(),
        };
        let patch =
            PatchProof { old: vec!["0001-a.patch".into()], new: vec!["0001-a.patch".into()], findings };
        let proof = SeriesProof { patches: vec![patch], ..SeriesProof::default() };
        let series = ProvenSeries { variant: "p".into(), old: place("v1"), new: place("v2"), proof };
        MoveProof { old: "HEAD~1".into(), new: "HEAD".into(), series: vec![series], ..MoveProof::default() }
    }

    #[test]
    fn each_entry_names_as_many_differences_as_it_counts() {
        let lost = || finding(FindingClass::LostOwnLine, "    a();");
        let entry = |count: usize| Intended { count, ..entry_for(&lost(), "upstream has b()") };
        let left = |entries: &[Intended]| {
            let mut proof = proof(vec![lost(), lost()]);
            proof.name_intended("f.toml", entries, &[0]);
            (proof.open().len(), proof.stale.len(), proof.is_proved())
        };
        assert_eq!(left(&[]), (2, 0, false));
        assert_eq!(left(&[entry(1)]), (1, 0, false));
        assert_eq!(left(&[entry(2)]), (0, 0, true));
        assert_eq!(left(&[entry(1), entry(1)]), (0, 0, true));
        let other = Intended { path: "src/b.c".into(), ..entry(1) };
        assert_eq!(left(&[entry(2), other]), (0, 1, false), "an entry that is not needed");
        assert_eq!(left(&[entry(3)]), (0, 1, false), "one more could hide behind it");
    }

    #[test]
    fn an_entry_about_a_function_or_a_file_names_as_many_differences_as_it_counts() {
        let added = |text: &str, function: &str| ProofFinding {
            function: Some(function.into()),
            ..finding(FindingClass::Added, text)
        };
        let findings = || vec![added("a();", "f"), added("b();", "f"), added("c();", "g"), added("", "g")];
        let entry = |function: Option<&str>, count: usize| Intended {
            function: function.map(String::from),
            line: None,
            count,
            ..entry_for(&added("a();", "f"), "the test is rewritten")
        };
        let left = |entries: &[Intended]| {
            let mut proof = proof(findings());
            proof.name_intended("f.toml", entries, &[0]);
            (proof.open().len(), proof.stale)
        };
        assert_eq!(left(&[entry(None, 4)]), (0, Vec::new()));
        assert_eq!(left(&[entry(None, 3)]).0, 1, "it hides no further one");
        assert_eq!(left(&[entry(Some("f"), 2)]).0, 2);
        // The narrower one first, in whatever order they are.
        assert_eq!(left(&[entry(None, 2), entry(Some("f"), 2)]), (0, Vec::new()));
        let many = ["f.toml: count = 3, and there are only 2: differences `added` of src/a.c, in `f`"];
        assert_eq!(left(&[entry(None, 2), entry(Some("f"), 3)]).1, many);
        let none = ["f.toml: no difference `added` of src/a.c, in `h`"];
        assert_eq!(left(&[entry(None, 4), entry(Some("h"), 1)]).1, none);
    }

    #[test]
    fn missing_entries_name_all_that_is_open_and_nothing_more() {
        let elsewhere = |text: &str| ProofFinding {
            function: Some("int g(void) {".into()),
            ..finding(FindingClass::Added, text)
        };
        let mut whole = finding(FindingClass::ModeOrName, "the mode is 100755, and 100644 was expected");
        (whole.place, whole.function) = (None, None);
        let added = |text: &str| finding(FindingClass::Added, text);
        let findings =
            vec![added("a();"), added("b();"), added("b();"), elsewhere("}"), elsewhere("}"), whole];
        let mut proof = proof(findings);
        let missing = proof.missing_entries();
        let entries = &missing["docs/syncs/v1-to-v2.toml"];
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| (entry.class.name(), entry.function.as_deref(), entry.line.as_deref(), entry.count))
            .collect();
        let (f, g) = (Some("int f(void) {"), Some("int g(void) {"));
        let expected = [("mode-or-name", None, None, 1), ("added", f, None, 3), ("added", g, Some("}"), 2)];
        assert_eq!(shown, expected);
        assert!(entries.iter().all(|entry| entry.why.is_empty()));
        let file = "docs/syncs/v1-to-v2.toml";
        proof.name_intended(file, entries, &[0]);
        assert!(proof.is_proved() && proof.missing_entries().is_empty());
    }

    /// The blank line outside of functions has an entry without a function, which is also about the blank line in `f`.
    #[test]
    fn an_entry_for_a_line_outside_of_functions_does_not_take_one_from_a_function() {
        let added = |text: &str, function: Option<&str>| ProofFinding {
            function: function.map(String::from),
            ..finding(FindingClass::Added, text)
        };
        let findings = || vec![added("", Some("f")), added("a();", Some("f")), added("", None)];
        assert_eq!(after_writing(findings()), (0, Vec::new()));
    }

    /// Returns the number of open differences, and the entries that count too many, once the missing entries have been
    /// written and have reasons.
    fn after_writing(findings: Vec<ProofFinding>) -> (usize, Vec<String>) {
        let entries = proof(findings.clone()).missing_entries().remove("docs/syncs/v1-to-v2.toml");
        let mut filled = entries.unwrap_or_default();
        filled.iter_mut().for_each(|entry| entry.why = "so".into());
        let mut again = proof(findings);
        again.name_intended("f.toml", &filled, &[0]);
        (again.open().len(), again.stale)
    }

    #[test]
    fn entries_for_all_differences_prove_the_move() {
        let mut state = 1_u32;
        let mut pick = |of: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % of
        };
        let mut any = || {
            let class = [FindingClass::Added, FindingClass::Doubled][pick(2) as usize];
            let mut any = finding(class, ["", "a();", "b();"][pick(3) as usize]);
            any.function = [None, Some("f".to_string()), Some("g".to_string())][pick(3) as usize].clone();
            if pick(5) == 0 {
                (any.place, any.function) = (None, None);
            }
            any
        };
        for size in (1..40).cycle().take(400) {
            let findings: Vec<ProofFinding> = (0..size).map(|_| any()).collect();
            assert_eq!(after_writing(findings.clone()), (0, Vec::new()), "{findings:#?}");
        }
    }

    /// `b();` in `f` is all that the entry about `f` can count, so `a();` goes to the one about the line.
    #[test]
    fn a_difference_goes_to_a_broader_entry_if_another_needs_the_narrower_one() {
        let added = |text: &str| finding(FindingClass::Added, text);
        let line = entry_for(&added("a();"), "so");
        let function = Intended { function: added("").function, line: None, ..line.clone() };
        for findings in [vec![added("a();"), added("b();")], vec![added("b();"), added("a();")]] {
            let mut proof = proof(findings);
            proof.name_intended("f.toml", &[function.clone(), line.clone()], &[0]);
            assert_eq!((proof.open().len(), proof.stale), (0, Vec::new()));
        }
    }

    #[test]
    fn an_entry_about_a_line_is_not_about_a_whole_file() {
        let mut whole = finding(FindingClass::NewDeletion, "the whole file (3 lines)");
        let line = entry_for(&whole, "so");
        whole.place = None;
        let entry = entry_for(&whole, "so");
        assert_eq!(entry.line, None);
        assert!(is_about(&entry, &whole));
        assert!(!is_about(&line, &whole));
    }

    #[test]
    fn a_dropped_patch_that_upstream_contains_is_accounted_for() {
        let mut proof =
            proof(vec![finding(FindingClass::LostPatch, "2 of its 2 changes are not in upstream")]);
        let series = &mut proof.series[0];
        series.proof.patches[0].new.clear();
        series.proof.patches[0].findings[0].path = "0001-a.patch".into();
        series.account_for_taken(&[("0002-b.patch".into(), "taken".into())]);
        assert!(!series.proof.is_proved());
        series.account_for_taken(&[("0001-a.patch".into(), "taken upstream by 1234".into())]);
        assert!(series.proof.is_proved());
    }

    #[test]
    fn reverts_are_what_upstream_did_in_lines_that_say_something() {
        let undone = |text: &str, undone| ProofFinding {
            undone: Some(undone),
            ..finding(FindingClass::NewDeletion, text)
        };
        let mut whole = undone("the whole file (3 lines)", Undone::Added);
        whole.place = None;
        let proof = proof(vec![
            finding(FindingClass::LostOwnLine, "    ours();"),
            undone("    }", Undone::Added),
            undone("    } else {", Undone::Deleted),
            undone("    check();", Undone::Added),
            undone("    back();", Undone::Deleted),
            ProofFinding { class: FindingClass::ResolvedByHand, ..undone("    f(a, b);", Undone::Added) },
            undone("the content is another", Undone::Binary),
            whole,
        ]);
        assert_eq!(proof.series[0].reverts().iter().filter(|revert| revert.is_rewritten).count(), 1);
        let reverts: Vec<String> = proof.series[0].reverts().iter().map(ToString::to_string).collect();
        let (binary, lines) = reverts.split_last().unwrap();
        assert_eq!(
            lines,
            [
                "0001-a.patch deletes src/a.c, which upstream added: the whole file (3 lines)",
                "0001-a.patch deletes src/a.c:7, which upstream added: check();",
                "0001-a.patch brings back src/a.c:7, which upstream deleted: back();",
                "0001-a.patch rewrites src/a.c:7, which upstream added: f(a, b);",
            ]
        );
        assert!(binary.starts_with("0001-a.patch replaces src/a.c, "), "{binary}");
    }
}
