//! The proof of files with moved functions: each function by itself, as if it were a file, and the files without them.
//!
//! All lines are in exactly one part, and each part is proved like a file. So the change of a patch in a moved function
//! is proved if it is the same on the same lines of the function, and nothing else may differ, in the function or around
//! it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::calls::ChangedBaseFile;
use super::finding::{FileVersion, Finding, FindingClass, LinePlace};
use super::hunks::Hunks;
use super::moved_functions::{Copies, MergedFile, MovedFunction, Moves, Spot, holds};
use super::parts::{FilePart, Kept};
use super::text::{FileProof, FourTexts, Scope, prove_text};
use crate::model::printable::printable;
use crate::text::line_diff::{changed_runs, lines_of};

/// Takes the functions of `files` that upstream moved into account: `proofs` are those of the whole files. `others` are
/// the other files that differ between the bases.
pub(super) fn prove_apart(
    files: &[MergedFile<'_>],
    others: &[&ChangedBaseFile],
    scope: Scope,
    proofs: &mut Vec<FileProof>,
) {
    let Moves { moved, copied } = Moves::find(files, others);
    if !moved.is_empty() {
        Apart::prove(files, &moved, scope).replace(proofs);
    }
    if scope.checks_places {
        let found: Vec<(usize, Finding)> =
            copied.iter().flat_map(|copies| in_a_copy(files, copies)).collect();
        for (file, finding) in found {
            if let Some(proof) = proofs.get_mut(file) {
                add_unless_known(proof, finding);
            }
        }
    }
}

/// The proofs of all parts.
struct Apart {
    functions: Vec<FileProof>,
    /// Files without their moved functions, each with its index.
    rest: Vec<(usize, FileProof)>,
}

impl Apart {
    fn prove(files: &[MergedFile<'_>], moved: &[MovedFunction], scope: Scope) -> Apart {
        let affected: BTreeSet<usize> =
            moved.iter().flat_map(|function| [function.old.file, function.new.file]).collect();
        let rest = |file: usize| Some((file, prove_rest(file, files, moved, scope)?));
        Apart {
            functions: moved.iter().filter_map(|function| prove_function(function, files, scope)).collect(),
            rest: affected.into_iter().filter_map(rest).collect(),
        }
    }

    /// Puts the proofs of the parts in the place of those of whole files, unless that leaves more differences open: what
    /// a patch adds directly above or below a function goes with it, or stays, as a person decides. Then only the places
    /// of lines around the functions are those of the proofs of whole files.
    fn replace(self, proofs: &mut Vec<FileProof>) {
        let whole = self.rest.iter().filter_map(|(file, _)| proofs.get(*file));
        let in_whole: usize = whole.map(count_open).sum();
        let parts = self.functions.iter().chain(self.rest.iter().map(|(_, proof)| proof));
        let in_parts: usize = parts.map(count_open).sum();
        if in_parts > in_whole {
            return self.add_to(proofs);
        }
        for (file, rest) in self.rest {
            let Some(proof) = proofs.get_mut(file) else { continue };
            let about_file = std::mem::take(&mut proof.findings).into_iter().filter(is_about_file);
            let findings = about_file.chain(rest.findings).collect();
            *proof = FileProof { findings, ..rest };
        }
        proofs.extend(self.functions);
    }

    /// Adds the differences of the parts to those of whole files.
    fn add_to(self, proofs: &mut Vec<FileProof>) {
        let in_functions = self.functions.into_iter().flat_map(|proof| proof.findings);
        let in_rest = self.rest.into_iter().flat_map(|(_, proof)| proof.findings);
        let in_rest = in_rest.filter(|finding| finding.class != FindingClass::Misplaced);
        let is_known = |finding: &Finding| {
            let mut known = proofs.iter().flat_map(|proof| &proof.findings);
            known.any(|known| is_same(known, finding))
        };
        let open = in_functions.chain(in_rest).filter(|finding| finding.is_open() && !is_known(finding));
        let findings = open.collect();
        proofs.push(FileProof { findings, ..FileProof::default() });
    }
}

fn count_open(proof: &FileProof) -> usize {
    proof.findings.iter().filter(|finding| finding.is_open() && !is_about_file(finding)).count()
}

/// Returns whether a difference is one of the name or the mode of a file, which parts do not have.
fn is_about_file(finding: &Finding) -> bool {
    finding.class == FindingClass::ModeOrName
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    (one.class, &one.path, one.place, &one.text) == (other.class, &other.path, other.place, &other.text)
}

/// Proves a function, from its head to its last line.
fn prove_function(function: &MovedFunction, files: &[MergedFile<'_>], scope: Scope) -> Option<FileProof> {
    let MovedFunction { old, new } = function;
    let (from, to) = (files.get(old.file)?.texts?, files.get(new.file)?.texts?);
    let old_before = Kept::only(&old.before).text(from.old_before);
    let kept = [&old.after, &new.before, &new.after].map(Kept::only);
    let heads =
        Some([head_at(from.old_before, old.before.start)?, head_at(to.new_before, new.before.start)?]);
    let whole = [from.old_before, from.old_after, to.new_before, to.new_after];
    let part = FilePart { kept, whole, old_path: from.path, heads };
    let mut proof = prove_part(to, &old_before, &part, scope);
    if scope.lists_all {
        proof.findings.push(moved_finding(&part, (&from, &to), function));
    }
    Some(proof)
}

/// Proves a file without the functions that were moved.
fn prove_rest(
    file: usize,
    files: &[MergedFile<'_>],
    moved: &[MovedFunction],
    scope: Scope,
) -> Option<FileProof> {
    let texts = files.get(file)?.texts?;
    let old_before = cuts(file, moved, |function| &function.old, |spot| &spot.before);
    let kept = [
        Kept::without(cuts(file, moved, |function| &function.old, |spot| &spot.after), texts.old_after),
        Kept::without(cuts(file, moved, |function| &function.new, |spot| &spot.before), texts.new_before),
        Kept::without(cuts(file, moved, |function| &function.new, |spot| &spot.after), texts.new_after),
    ];
    let old_before = Kept::without(old_before, texts.old_before).text(texts.old_before);
    let whole = [texts.old_before, texts.old_after, texts.new_before, texts.new_after];
    let part = FilePart { kept, whole, old_path: texts.path, heads: None };
    Some(prove_part(texts, &old_before, &part, scope))
}

/// Returns the lines of the functions that are in a file.
fn cuts(
    file: usize,
    moved: &[MovedFunction],
    spot: fn(&MovedFunction) -> &Spot,
    lines: fn(&Spot) -> &Range<usize>,
) -> Vec<Range<usize>> {
    let here = moved.iter().map(spot).filter(|spot| spot.file == file);
    here.map(|spot| lines(spot).clone()).collect()
}

/// Proves a part of the file `texts`. Of the bases without patches only the difference between the part on either base
/// is known, which is upstream's too.
fn prove_part(texts: FourTexts<'_>, old_before: &[u8], part: &FilePart<'_>, scope: Scope) -> FileProof {
    let [_, old_after, new_before, new_after] = part.whole;
    let [kept_old_after, kept_new_before, kept_new_after] = &part.kept;
    let (old_after, new_before, new_after) =
        (kept_old_after.text(old_after), kept_new_before.text(new_before), kept_new_after.text(new_after));
    let texts = FourTexts {
        path: texts.path,
        old_before,
        old_after: &old_after,
        new_before: &new_before,
        new_after: &new_after,
        bases: [old_before, &new_before],
        part: Some(part),
    };
    prove_text(&texts, scope)
}

/// Returns the remark that upstream moved a function.
fn moved_finding(
    part: &FilePart<'_>,
    (from, to): (&FourTexts<'_>, &FourTexts<'_>),
    function: &MovedFunction,
) -> Finding {
    let text = "upstream has moved the function".to_owned();
    let mut finding = Finding::new(FindingClass::ContextOnly, to.path.to_string(), text);
    let version = FileVersion::NewAfter;
    finding.place = Some(LinePlace { version, line: function.new.after.start + 1 });
    finding.function = part.head(version).map(printable);
    finding.evidence =
        Some(format!("on the old base it is in {}:{}", from.path, function.old.before.start + 1));
    finding
}

/// Returns a difference for each copy of a function that the patch changes: it may be the wrong one.
fn in_a_copy(files: &[MergedFile<'_>], copies: &Copies) -> Vec<(usize, Finding)> {
    let evidence = format!(
        "upstream has several functions in place of the one that the patch was made for: on the new base in {}",
        places(files, copies)
    );
    let changed = copies.spots.iter().filter_map(|spot| {
        let mut finding = misplaced_in(&files.get(spot.file)?.texts?, spot)?;
        finding.evidence = Some(evidence.clone());
        Some((spot.file, finding))
    });
    changed.collect()
}

/// `src/a.c:7, src/b.c`.
fn places(files: &[MergedFile<'_>], copies: &Copies) -> String {
    let here = copies.spots.iter().filter_map(|spot| {
        let path = files.get(spot.file)?.texts?.path;
        Some(format!("{path}:{}", spot.before.start + 1))
    });
    here.chain(copies.elsewhere.iter().map(|path| printable(path))).collect::<Vec<_>>().join(", ")
}

/// Returns the difference for the first line that the patch changes in a function; `None` if there is none.
fn misplaced_in(texts: &FourTexts<'_>, spot: &Spot) -> Option<Finding> {
    let (before, after) = (lines_of(texts.new_before), lines_of(texts.new_after));
    let runs = changed_runs(&before, &after);
    let at = runs.iter().find(|run| holds(&spot.before, &run.old))?.new.start;
    let place = LinePlace { version: FileVersion::NewAfter, line: at + 1 };
    let line = after.get(at).copied().unwrap_or_default();
    let mut finding = Finding::of_line(FindingClass::Misplaced, texts.path.to_string(), line);
    finding.place = Some(place);
    finding.function = head_at(texts.new_before, spot.before.start).map(printable);
    finding.hunks =
        Hunks::new((texts.old_before, texts.old_after), (texts.new_before, texts.new_after)).around(place);
    Some(finding)
}

fn head_at(text: &[u8], at: usize) -> Option<&[u8]> {
    Some(lines_of(text).get(at)?.trim_ascii())
}

/// Adds a difference to those of a file unless one is open at its line.
fn add_unless_known(proof: &mut FileProof, finding: Finding) {
    if !proof.findings.iter().any(|known| known.is_open() && known.place == finding.place) {
        proof.findings.push(finding);
    }
}
