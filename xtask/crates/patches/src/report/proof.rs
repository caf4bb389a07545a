//! The proof of a move as data: every series, compared with what it was, and the differences that a person has named as
//! intended.

use std::collections::BTreeMap;
use std::fmt;

use espalier_core::config::intended::{Intended, NamedDifferences, intended_file, read_intended};
use espalier_core::config::snippet::SourceText;
use espalier_core::error::{Error, Result};
use espalier_series::{FindingClass, PatchProof, ProofFinding, SeriesProof, Undone, says_something};
use serde::Serialize;

use super::proof_intended::{Shares, entries_for, names_of};
use super::status::ReportedTree;

/// The proof of one series.
#[derive(Debug, Clone, Serialize)]
pub struct ProvenSeries {
    /// The variant that has the series.
    pub variant: String,
    /// The tree below its first patch, before the move.
    pub old: ReportedTree,
    /// The tree below its first patch, after the move.
    pub new: ReportedTree,
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
    /// Entries of those files that name differences which are not there, or none.
    pub stale: Vec<String>,
    /// By file, the entries that have a number alone, by their index, with the differences that the number is of: all
    /// those of their class, file and function that no other entry names.
    #[serde(skip)]
    pub numbered: BTreeMap<String, Vec<(usize, NamedDifferences)>>,
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
        for (index, (slot, share)) in shares.slots.iter().zip(&shares.counted).enumerate() {
            if !slot.has_number_alone() {
                share.iter().for_each(|at| findings[*at].intended = Some(slot.entry.why.clone()));
                continue;
            }
            let counted: Vec<&ProofFinding> = share.iter().map(|at| &*findings[*at]).collect();
            if let Some(named) = names_of(&counted).filter(|_| shares.takes_all_about(index)) {
                self.numbered.entry(file.to_string()).or_default().push((slot.at, named));
            }
        }
        for (at, entry) in entries.iter().enumerate() {
            self.stale.extend(shares.stale(at, entry).into_iter().map(|stale| format!("{file}: {stale}")));
        }
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
    pub fn account_for_dropped(&mut self, dropped: &[(String, String)]) {
        for patch in self.proof.patches.iter_mut().filter(|patch| patch.new.is_empty()) {
            for finding in &mut patch.findings {
                let reason = dropped.iter().find(|(name, _)| *name == finding.path);
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
    use espalier_series::{FileVersion, HunkPair, LinePlace, line_digest};

    use super::super::proof_intended::entry_for;
    use super::*;

    pub fn finding(class: FindingClass, text: &str) -> ProofFinding {
        ProofFinding {
            class,
            path: "src/a.c".into(),
            function: Some("int f(void) {".into()),
            place: Some(LinePlace { version: FileVersion::NewAfter, line: 7 }),
            text: text.into(),
            digest: Some(line_digest(text.as_bytes())),
            evidence: None,
            undone: None,
            hunks: HunkPair { old: None, new: Some("@@ -7 +7 @@\n-a\n+b".into()) },
            intended: None,
        }
    }

    pub fn proof(findings: Vec<ProofFinding>) -> MoveProof {
        let place = |name: &str| ReportedTree {
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

    /// Returns the number of open differences of a move that is named by `entries`, and what is wrong with these.
    fn left(findings: Vec<ProofFinding>, entries: &[Intended]) -> (usize, Vec<String>) {
        let mut proof = proof(findings);
        proof.name_intended("f.toml", entries, &[0]);
        (proof.open().len(), proof.stale)
    }

    fn added(text: &str, function: &str) -> ProofFinding {
        ProofFinding { function: Some(function.into()), ..finding(FindingClass::Added, text) }
    }

    /// Names these lines.
    fn named(lines: &[&str]) -> NamedDifferences {
        let digests: Vec<String> = lines.iter().map(|line| line_digest(line.as_bytes())).collect();
        NamedDifferences::lines(digests.iter().map(String::as_str))
    }

    /// Returns a finding that is not about one line.
    fn whole(class: FindingClass, text: &str) -> ProofFinding {
        ProofFinding { place: None, digest: None, function: None, ..finding(class, text) }
    }

    /// Returns an entry about these lines of a function, or of the whole file.
    fn entry(function: Option<&str>, lines: &[&str]) -> Intended {
        let function = function.map(String::from);
        Intended { function, named: named(lines), ..entry_for(&added("", "f"), "the test is rewritten") }
    }

    #[test]
    fn each_entry_names_as_many_differences_as_it_counts() {
        let both = || vec![added("    a();", "f"), added("a();", "f")];
        let one = entry(Some("f"), &["a();"]);
        assert_eq!(left(both(), &[]), (2, Vec::new()));
        assert_eq!(left(both(), std::slice::from_ref(&one)), (1, Vec::new()));
        assert_eq!(left(both(), &[entry(Some("f"), &["a();", "a();"])]), (0, Vec::new()));
        assert_eq!(left(both(), &[one.clone(), one.clone()]), (0, Vec::new()));
        let other = Intended { path: "src/b.c".into(), ..one };
        let stale = "f.toml: no difference `added` of src/b.c, in `f`: the line cd06e8a6b636";
        assert_eq!(left(both(), &[entry(None, &["a();"; 2]), other]), (0, vec![stale.to_string()]));
        let stale = "f.toml: 3 are named, and there are only 2: differences `added` of src/a.c: the line cd06e8a6b636";
        assert_eq!(left(both(), &[entry(None, &["a();"; 3])]), (0, vec![stale.to_string()]));
    }

    #[test]
    fn an_entry_about_a_function_or_a_file_covers_its_lines_and_no_others() {
        let findings = || vec![added("a();", "f"), added("b();", "f"), added("c();", "g"), added("", "g")];
        let file = entry(None, &["", "a();", "b();", "c();"]);
        assert_eq!(left(findings(), std::slice::from_ref(&file)), (0, Vec::new()));
        assert_eq!(left(findings(), &[entry(Some("f"), &["a();", "b();"])]).0, 2);
        assert_eq!(left(findings(), &[entry(None, &["", "c();"]), entry(Some("f"), &["a();", "b();"])]).0, 0);
        // As many lines, of which one is another.
        let swapped = vec![added("a();", "f"), added("x();", "f"), added("c();", "g"), added("", "g")];
        let stale = "f.toml: no difference `added` of src/a.c: the line 1f6cc8938c40";
        assert_eq!(left(swapped, &[file]), (1, vec![stale.to_string()]));
        let none = "f.toml: none of 2 differences is there: `added` of src/a.c, in `h`";
        assert_eq!(left(findings(), &[entry(Some("h"), &["a();", "b();"])]), (4, vec![none.to_string()]));
    }

    /// As entries had before they named lines. `--write-intended` completes them.
    #[test]
    fn an_entry_with_a_number_alone_covers_nothing() {
        let findings = || vec![added("a();", "f"), added("b();", "f"), added("c();", "g")];
        let number = |count| Intended { named: NamedDifferences::Number(count), ..entry(Some("f"), &[]) };
        let mut numbered = proof(findings());
        numbered.name_intended("f.toml", &[entry(Some("g"), &["c();"]), number(2)], &[0]);
        let stale = "f.toml: an entry names no line, only `count = 2`, and covers nothing: `added` of src/a.c, in `f`";
        assert_eq!((numbered.open().len(), &numbered.stale[..]), (2, &[stale.to_string()][..]));
        let lines = named(&["a();", "b();"]);
        assert_eq!(numbered.numbered["f.toml"], [(1, lines.clone())]);
        let completed = Intended { named: lines, ..number(2) };
        assert_eq!(left(findings(), &[entry(Some("g"), &["c();"]), completed]), (0, Vec::new()));
        // Which of them another number was for is not known.
        for count in [1, 3] {
            let mut other = proof(findings());
            other.name_intended("f.toml", &[number(count)], &[0]);
            assert_eq!((other.open().len(), other.numbered.len()), (3, 0), "{count}");
        }
    }

    /// The entry about `f` has a number alone, of which `b();` needs the one place: `a();` goes to the one about the line.
    #[test]
    fn a_difference_goes_to_a_broader_entry_if_another_needs_the_narrower_one() {
        let number = Intended { named: NamedDifferences::Number(1), ..entry(Some("f"), &[]) };
        for findings in [[added("a();", "f"), added("b();", "f")], [added("b();", "f"), added("a();", "f")]] {
            let mut proof = proof(findings.to_vec());
            proof.name_intended("f.toml", &[number.clone(), entry(None, &["a();"])], &[0]);
            assert_eq!(proof.open()[0].1.text, "b();");
            assert_eq!(proof.numbered["f.toml"], [(0, named(&["b();"]))]);
        }
    }

    #[test]
    fn missing_entries_name_all_that_is_open_and_nothing_more() {
        let elsewhere = |text: &str| ProofFinding {
            function: Some("int g(void) {".into()),
            ..finding(FindingClass::Added, text)
        };
        let mode = whole(FindingClass::ModeOrName, "the mode is 100755, and 100644 was expected");
        let added = |text: &str| finding(FindingClass::Added, text);
        let findings =
            vec![added("a();"), added("b();"), added("b();"), elsewhere("}"), elsewhere("}"), mode];
        let mut proof = proof(findings);
        let missing = proof.missing_entries();
        let entries = &missing["docs/syncs/v1-to-v2.toml"];
        let shown: Vec<_> = entries
            .iter()
            .map(|entry| (entry.class.name(), entry.function.as_deref(), entry.named.clone()))
            .collect();
        let (f, g) = (Some("int f(void) {"), Some("int g(void) {"));
        let mode = NamedDifferences::Whole("the mode is 100755, and 100644 was expected".into(), 1);
        let expected = [
            ("mode-or-name", None, mode),
            ("added", f, named(&["a();", "b();", "b();"])),
            ("added", g, named(&["}", "}"])),
        ];
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
                any = whole(class, &any.text);
            }
            any
        };
        for size in (1..40).cycle().take(400) {
            let findings: Vec<ProofFinding> = (0..size).map(|_| any()).collect();
            assert_eq!(after_writing(findings.clone()), (0, Vec::new()), "{findings:#?}");
        }
    }

    #[test]
    fn an_entry_about_a_whole_file_names_what_differs() {
        let mode = |text: &str| whole(FindingClass::ModeOrName, text);
        let (mode, name) =
            (mode("the mode is 100755, and 100644 was expected"), mode("the file is called b"));
        let entry = entry_for(&mode, "so");
        assert_eq!(entry.named, NamedDifferences::Whole(mode.text.clone(), 1));
        assert_eq!(left(vec![mode.clone()], std::slice::from_ref(&entry)), (0, Vec::new()));
        let stale =
            "f.toml: no difference `mode-or-name` of src/a.c: the mode is 100755, and 100644 was expected";
        assert_eq!(left(vec![name], std::slice::from_ref(&entry)), (1, vec![stale.to_string()]));
        // A line with this text is another difference, and so is the whole file for an entry about a line.
        let line = Intended { named: named(&[mode.text.as_str()]), ..entry };
        assert_eq!(left(vec![mode], &[line]).0, 1);
    }

    #[test]
    fn a_dropped_patch_that_upstream_contains_is_accounted_for() {
        let mut proof =
            proof(vec![finding(FindingClass::LostPatch, "2 of its 2 changes are not in upstream")]);
        let series = &mut proof.series[0];
        series.proof.patches[0].new.clear();
        series.proof.patches[0].findings[0].path = "0001-a.patch".into();
        series.account_for_dropped(&[("0002-b.patch".into(), "taken".into())]);
        assert!(!series.proof.is_proved());
        series.account_for_dropped(&[("0001-a.patch".into(), "taken upstream by 1234".into())]);
        assert!(series.proof.is_proved());
    }

    #[test]
    fn reverts_are_what_upstream_did_in_lines_that_say_something() {
        let undone = |text: &str, undone| ProofFinding {
            undone: Some(undone),
            ..finding(FindingClass::NewDeletion, text)
        };
        let mut whole = undone("the whole file (3 lines)", Undone::Added);
        (whole.place, whole.digest) = (None, None);
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
