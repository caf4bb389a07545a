//! The proof of a text file.

use std::cell::OnceCell;
use std::ops::Range;

use super::accounts::{Account, Accounts, Bag, LineTexts};
use super::expected::{Expected, Source};
use super::finding::{FileVersion, Finding, FindingClass, LinePlace, Undone};
use super::functions::{Functions, is_same_function};
use super::hunks::Hunks;
use super::parts::FilePart;
use super::residue::{Extra, Missing, Residue, Resolved};
use crate::model::path::RepoPath;
use crate::model::printable::printable;
use crate::text::common_words::says_something;
use crate::text::language::Language;
use crate::text::line_diff::{ChangedRun, changed_runs, lines_of, slice};

/// The four contents of a text file; a missing file counts as empty.
#[derive(Clone, Copy)]
pub(super) struct FourTexts<'a> {
    pub path: &'a RepoPath,
    pub old_before: &'a [u8],
    pub old_after: &'a [u8],
    pub new_before: &'a [u8],
    pub new_after: &'a [u8],
    /// On the old base and on the new one without any patch.
    pub bases: [&'a [u8]; 2],
    /// If they are only a part of files: which one.
    pub part: Option<&'a FilePart<'a>>,
}

/// The extent of a proof.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// Whether differences that are accounted for are listed too.
    pub lists_all: bool,
    /// Whether the places of lines are checked. The places of patches that are all checked one by one are checked.
    pub checks_places: bool,
}

/// The result for one file.
#[derive(Default)]
pub(super) struct FileProof {
    pub findings: Vec<Finding>,
    /// Number of lines that the patch changes on its old base.
    pub old_size: usize,
    /// Number of lines that it changes on its new base.
    pub new_size: usize,
    /// Whether there are lines for which a merge gives no result.
    pub has_gaps: bool,
}

/// Compares what a patch does to a text on both bases.
pub(super) fn prove_text(texts: &FourTexts<'_>, scope: Scope) -> FileProof {
    let FourTexts { path, old_before, old_after, new_before, new_after, bases, part } = *texts;
    if old_before == old_after && new_before == new_after {
        return FileProof::default();
    }
    if old_before == new_before && old_after == new_after {
        return FileProof { old_size: 1, new_size: 1, ..FileProof::default() };
    }
    let lines = LineTexts {
        old_before: lines_of(old_before),
        old_after: lines_of(old_after),
        new_before: lines_of(new_before),
        new_after: lines_of(new_after),
    };
    let mut accounts = Accounts::of(&lines);
    let (old_size, new_size) = accounts.sizes();
    let expected = Expected::new(path, old_before, old_after, new_before);
    let residue = Residue::new(&expected, &lines.new_after);
    residue.explain(&expected, &mut accounts);
    let judge = Judge {
        path,
        lines: &lines,
        is_unchanged: new_before == new_after,
        expected: &expected,
        whole: part.map_or([old_before, old_after, new_before, new_after], |part| part.whole),
        part,
        bases,
        hunks: OnceCell::new(),
        functions: Default::default(),
        own: OnceCell::new(),
        changes: OnceCell::new(),
        upstream: OnceCell::new(),
        findings: Vec::new(),
    };
    let findings = judge.findings(&accounts, residue, scope);
    FileProof { findings, old_size, new_size, has_gaps: !expected.gaps.is_empty() }
}

struct Judge<'t, 'a> {
    path: &'t RepoPath,
    lines: &'t LineTexts<'a>,
    /// Whether the patch changes nothing on its new base. It deletes no line of upstream then, and adds none.
    is_unchanged: bool,
    expected: &'t Expected<'a>,
    /// The contents of the files before and after the patch, on the old base and on the new one.
    whole: [&'a [u8]; 4],
    part: Option<&'a FilePart<'a>>,
    bases: [&'a [u8]; 2],
    // Computed at first use: most files of most moves have nothing to judge.
    /// Of the whole files.
    hunks: OnceCell<Hunks>,
    /// Of the versions that line numbers count in, in their order.
    functions: [OnceCell<Functions<'a>>; 3],
    own: OnceCell<Vec<Range<usize>>>,
    changes: OnceCell<Vec<ChangedRun>>,
    upstream: OnceCell<UpstreamLines<'a>>,
    findings: Vec<Finding>,
}

/// The changes of upstream to a file, without those of earlier patches.
struct UpstreamLines<'a> {
    /// The lines that it has added, at whatever place; a moved line is one of them.
    added: Bag<'a>,
    /// Number of times that each line was added, less those that it was deleted.
    net: Bag<'a>,
}

impl<'a> UpstreamLines<'a> {
    fn between([old, new]: [&'a [u8]; 2]) -> UpstreamLines<'a> {
        let (old, new) = (lines_of(old), lines_of(new));
        let mut added = Bag::default();
        for run in changed_runs(&old, &new) {
            added.add(slice(&new, run.new), 1);
        }
        UpstreamLines { added, net: Bag::of(&new).minus(&Bag::of(&old)) }
    }
}

impl<'a> Judge<'_, 'a> {
    fn hunks(&self) -> &Hunks {
        let [old_before, old_after, new_before, new_after] = self.whole;
        self.hunks.get_or_init(|| Hunks::new((old_before, old_after), (new_before, new_after)))
    }

    /// Returns the lines that the patch adds on its old base, from 0.
    fn own(&self) -> &[Range<usize>] {
        let runs = || changed_runs(&self.lines.old_before, &self.lines.old_after);
        self.own.get_or_init(|| runs().into_iter().map(|run| run.new).collect())
    }

    /// Returns the changes of the patch on its new base.
    fn changes(&self) -> &[ChangedRun] {
        self.changes.get_or_init(|| changed_runs(&self.lines.new_before, &self.lines.new_after))
    }

    fn upstream(&self) -> &UpstreamLines<'a> {
        self.upstream.get_or_init(|| UpstreamLines::between(self.bases))
    }

    fn functions(&self, version: FileVersion) -> &Functions<'a> {
        let [old_after, new_before, new_after] = &self.functions;
        let (functions, lines) = match version {
            FileVersion::OldAfter => (old_after, &self.lines.old_after),
            FileVersion::NewBefore => (new_before, &self.lines.new_before),
            FileVersion::NewAfter => (new_after, &self.lines.new_after),
        };
        let language = || {
            let first = self.lines.new_after.first().copied().unwrap_or_default();
            Language::of(self.path.as_bytes(), first)
        };
        functions.get_or_init(|| Functions::new(lines, language()))
    }

    fn findings(mut self, accounts: &Accounts<'a>, mut residue: Residue<'a>, scope: Scope) -> Vec<Finding> {
        if scope.lists_all {
            self.list_resolved(&residue.resolved);
        }
        for (line, account, unexplained) in accounts.unbalanced() {
            let count = unexplained.unsigned_abs();
            match unexplained < 0 {
                true => self.add_lost(line, &account, count, &mut residue),
                false => self.add_gained(line, &account, count, &mut residue, (accounts, scope)),
            }
        }
        if scope.checks_places {
            self.check_places(accounts, &residue);
        }
        if scope.lists_all {
            self.list_shared();
            self.list_context();
        }
        self.point_out_white_space();
        self.findings.sort_by(|one, other| (one.place, &one.text).cmp(&(other.place, &other.text)));
        self.findings
    }

    /// Adds the lines that the patch no longer adds, or deletes now.
    fn add_lost(&mut self, line: &'a [u8], account: &Account, count: u64, residue: &mut Residue<'a>) {
        let mut own = account.old_net().max(0) - account.new_net().max(0);
        let mut places = self.own_places(line);
        for _ in 0..count {
            let missing = residue.missing.get_mut(line).and_then(|places| places.pop_front());
            let source = missing.map(|Missing { source, .. }| source);
            let is_own = source.map_or(own > 0, |source| matches!(source, Source::Ours(_)));
            if is_own || self.is_unchanged {
                own -= 1;
                let at = take_place(&mut places, source);
                let at = at.or_else(|| position(&self.lines.old_after, &[], line));
                self.add_lost_own(line, at);
            } else {
                self.add_lost_upstream(line, source);
            }
        }
    }

    /// Returns where the patch adds `line` on its old base, in order.
    fn own_places(&self, line: &[u8]) -> Vec<usize> {
        let places = self.own().iter().cloned().flatten();
        places.filter(|at| self.lines.old_after.get(*at).is_some_and(|other| *other == line)).collect()
    }

    fn add_lost_own(&mut self, line: &'a [u8], at: Option<usize>) {
        let mut finding = self.about(FindingClass::LostOwnLine, FileVersion::OldAfter, at, line);
        if self.upstream().added.count(line) > 0 {
            let there = self.lines.new_before.iter().position(|other| *other == line);
            let there = there.map(|at| self.number(FileVersion::NewBefore, at));
            finding.evidence = there.map(|line| format!("upstream has added such a line: line {line}"));
        }
        self.findings.push(finding);
    }

    fn add_lost_upstream(&mut self, line: &'a [u8], source: Option<Source>) {
        let at = match source {
            Some(Source::Upstream(at)) => Some(at),
            _ => position(&self.lines.new_before, &self.changed(|run| &run.old), line),
        };
        let is_there = match source {
            Some(Source::Upstream(at)) => self.expected.is_added_by_upstream(at),
            _ => true,
        };
        let (class, undone) = match is_there && self.upstream().added.count(line) > 0 {
            true => (FindingClass::NewDeletion, Some(Undone::Added)),
            false => (FindingClass::LostUpstreamLine, None),
        };
        let finding = self.about(class, FileVersion::NewBefore, at, line);
        self.findings.push(Finding { undone, ..finding });
    }

    /// Adds the lines that the patch adds now, or no longer deletes.
    fn add_gained(
        &mut self,
        line: &'a [u8],
        account: &Account,
        count: u64,
        residue: &mut Residue<'a>,
        (accounts, scope): (&Accounts<'a>, Scope),
    ) {
        let mut undeleted = account.new_net().min(0) - account.old_net().min(0);
        for _ in 0..count {
            let extra = residue.extra.get_mut(line).and_then(|places| places.pop_front());
            let is_undeleted = undeleted > 0;
            undeleted -= i64::from(is_undeleted);
            let block = extra.filter(|extra| extra.in_gap).and_then(|extra| residue.resolved_at(extra.at));
            let (class, undone) = match is_undeleted || self.is_unchanged {
                true => (FindingClass::LostDeletion, None),
                false => self.class_of_gained(line, account, block, accounts),
            };
            let at = extra
                .map(|extra| extra.at)
                .or_else(|| position(&self.lines.new_after, &self.changed(|run| &run.new), line));
            if !class.is_accounted_for() || scope.lists_all {
                let finding = self.about(class, FileVersion::NewAfter, at, line);
                self.findings.push(Finding { undone, ..finding });
            }
        }
    }

    fn class_of_gained(
        &self,
        line: &[u8],
        account: &Account,
        block: Option<&Resolved<'a>>,
        accounts: &Accounts<'a>,
    ) -> (FindingClass, Option<Undone>) {
        let is_there = account.old_net() > 0 || account.new_before > 0;
        let class = match block {
            _ if self.upstream().net.count(line) < 0 && account.old_net() <= 0 => {
                return (FindingClass::Restored, Some(Undone::Deleted));
            }
            Some(block) if is_there && !self.is_retyped(line, account, block, accounts) => {
                FindingClass::Doubled
            }
            Some(_) => FindingClass::ResolvedByHand,
            None if is_there => FindingClass::Doubled,
            None => FindingClass::Added,
        };
        (class, None)
    }

    /// Returns whether a line in a gap, which the file has elsewhere too, belongs to new code that was written there. It
    /// does if the lines around it are new, and it is `return;` or the like, or no side has it there. Where all lines are
    /// those of another place, the whole block is there twice.
    fn is_retyped(
        &self,
        line: &[u8],
        account: &Account,
        block: &Resolved<'a>,
        accounts: &Accounts<'a>,
    ) -> bool {
        let is_new = |other: &&[u8]| {
            let account = accounts.get(other);
            says_something(other) && account.old_before + account.old_after + account.new_before == 0
        };
        let is_of_a_side = || account.old_net() > 0 || block.is_of_a_side(self.expected, line);
        block.lines.iter().any(is_new) && (!says_something(line) || !is_of_a_side())
    }

    /// Checks lines whose number is right: each has to be where it is expected, or, where a merge decides nothing, in the
    /// function that it was made for.
    fn check_places(&mut self, accounts: &Accounts<'a>, residue: &Residue<'a>) {
        let mut lines: Vec<&'a [u8]> = residue.missing.keys().chain(residue.extra.keys()).copied().collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            let missing = residue.missing.get(line).into_iter().flatten();
            let missing: Vec<Source> =
                missing.filter(|place| !place.in_gap).map(|place| place.source).collect();
            let mut extra: Vec<Extra> = residue.extra.get(line).into_iter().flatten().copied().collect();
            // Those of upstream, which are in gaps, last: they are where upstream has them.
            extra.sort_by_key(|extra| !self.is_added(extra.at));
            for (source, extra) in missing.iter().zip(&extra) {
                self.add_moved(line, *source, extra.at);
            }
            // A merge that added a line twice, and a person who removed one of them.
            let account = accounts.get(line);
            let too_many = self.expected.count(line) - account.new_before - account.old_net();
            let skipped = extra.len() + usize::try_from(too_many).unwrap_or_default();
            for source in missing.iter().skip(skipped) {
                self.add_other_deletion(line, *source);
            }
            let own = extra.iter().skip(missing.len()).map(|extra| extra.at);
            let own: Vec<usize> = own.filter(|at| self.is_added(*at)).collect();
            own.into_iter().for_each(|at| self.check_function(line, at));
        }
    }

    fn add_moved(&mut self, line: &'a [u8], source: Source, at: usize) {
        let (version, expected_at) = place_of(source);
        let expected = self.place_in_words(version, expected_at);
        let mut finding = self.about(FindingClass::Misplaced, FileVersion::NewAfter, Some(at), line);
        finding.evidence = Some(format!("expected {expected}"));
        self.findings.push(finding);
    }

    /// Adds a line that is missing where it is expected, although the number of such lines is right.
    fn add_other_deletion(&mut self, line: &'a [u8], source: Source) {
        let (version, at) = place_of(source);
        let mut finding = self.about(FindingClass::Misplaced, version, Some(at), line);
        finding.evidence = Some("it is missing here, although as many are there as expected".to_owned());
        self.findings.push(finding);
    }

    /// Returns whether the patch adds line `at` of the result, from 0. Another line is upstream's, wherever it is.
    fn is_added(&self, at: usize) -> bool {
        self.changes().iter().any(|run| run.new.contains(&at))
    }

    /// Checks a line that stands where no merge can say whether it belongs there.
    fn check_function(&mut self, line: &'a [u8], at: usize) {
        let made = self.own().iter().cloned().flatten();
        let made = made.filter(|own| self.lines.old_after.get(*own) == Some(&line));
        let heads: Vec<Option<&[u8]>> = made.map(|own| self.head(FileVersion::OldAfter, own)).collect();
        let here = self.head(FileVersion::NewAfter, at);
        let bases = (&self.lines.old_before[..], &self.lines.new_before[..]);
        if heads.is_empty() || heads.iter().any(|head| is_same_function((*head, here), bases)) {
            return;
        }
        let head = heads.iter().flatten().next().map_or("no function".to_owned(), |head| printable(head));
        let mut finding = self.about(FindingClass::Misplaced, FileVersion::NewAfter, Some(at), line);
        finding.evidence = Some(format!("the patch was made for {head}"));
        self.findings.push(finding);
    }

    /// Lists what was written into gaps, with the lines of upstream that are rewritten there.
    fn list_resolved(&mut self, resolved: &[Resolved<'a>]) {
        for one in resolved {
            let is_new = |source: &Source| match source {
                Source::Upstream(at) => Some(*at).filter(|at| self.expected.is_added_by_upstream(*at)),
                Source::Ours(_) => None,
            };
            let is_new_line = |line: &[u8]| one.keeps_words && self.upstream().added.count(line) > 0;
            let rewritten = one.missing.iter().filter(|(line, _)| is_new_line(line));
            let rewritten: Vec<(&'a [u8], usize)> =
                rewritten.filter_map(|(line, source)| Some((*line, is_new(source)?))).collect();
            for (line, at) in &rewritten {
                let class = FindingClass::ResolvedByHand;
                let finding = self.about(class, FileVersion::NewBefore, Some(*at), line);
                let evidence = Some("the result has every word of it".to_owned());
                self.findings.push(Finding { undone: Some(Undone::Added), evidence, ..finding });
            }
            if rewritten.is_empty() {
                let line = one.lines.first().copied().unwrap_or(b"(no line)");
                let class = FindingClass::ResolvedByHand;
                let mut finding = self.about(class, FileVersion::NewAfter, Some(one.at), line);
                finding.evidence = Some(match one.keeps_words {
                    true => "the result has the changes of both".to_owned(),
                    false => "the lines that are missing are listed".to_owned(),
                });
                self.findings.push(finding);
            }
        }
    }

    /// Lists the changes that upstream has.
    fn list_shared(&mut self) {
        for shared in &self.expected.shared {
            let line = shared.both.first().or(shared.base.first()).copied().unwrap_or_default();
            let class = FindingClass::Upstreamed;
            let mut finding = self.about(class, FileVersion::NewBefore, Some(shared.at), line);
            finding.evidence = Some(format!(
                "upstream made the same change: {} lines deleted, {} added",
                shared.base.len(),
                shared.both.len()
            ));
            self.findings.push(finding);
        }
    }

    fn list_context(&mut self) {
        // Hunks are those of whole files.
        if !self.findings.is_empty() || self.part.is_some() {
            return;
        }
        for (line, hunks) in self.hunks().with_other_context() {
            let text = "the lines around the change differ".to_owned();
            let mut finding = Finding::new(FindingClass::ContextOnly, self.path.to_string(), text);
            finding.place = Some(LinePlace { version: FileVersion::NewAfter, line });
            finding.function = self.head(FileVersion::NewAfter, line.saturating_sub(1)).map(printable);
            finding.hunks = hunks;
            self.findings.push(finding);
        }
    }

    /// Says so where a lost line and a new one differ in white space alone.
    fn point_out_white_space(&mut self) {
        let added = self.findings.iter().filter(|finding| finding.class == FindingClass::Added);
        let added: Vec<String> = added.map(|finding| without_white_space(&finding.text)).collect();
        for finding in &mut self.findings {
            let is_lost = matches!(
                finding.class,
                FindingClass::LostOwnLine | FindingClass::LostUpstreamLine | FindingClass::NewDeletion
            );
            if is_lost && added.contains(&without_white_space(&finding.text)) {
                finding.evidence = Some("a new line differs from it in white space alone".to_owned());
            }
        }
    }

    fn about(&self, class: FindingClass, version: FileVersion, at: Option<usize>, line: &[u8]) -> Finding {
        let path = match self.part {
            Some(part) if version == FileVersion::OldAfter => part.old_path,
            _ => self.path,
        };
        let mut finding = Finding::of_line(class, path.to_string(), line);
        if let Some(at) = at {
            let place = LinePlace { version, line: self.number(version, at) };
            finding.place = Some(place);
            finding.function = self.shown_head(version, at);
            finding.hunks = self.hunks().around(place);
        }
        finding
    }

    /// Returns the number, from 1, that line `at` has in its file.
    fn number(&self, version: FileVersion, at: usize) -> usize {
        self.part.map_or(at, |part| part.place(version, at)) + 1
    }

    /// Returns the head of the function of line `at`, to be shown: a method without its class has no other head.
    fn shown_head(&self, version: FileVersion, at: usize) -> Option<String> {
        let head = self.head(version, at).or_else(|| self.part?.head(version));
        head.map(printable)
    }

    fn head(&self, version: FileVersion, at: usize) -> Option<&'a [u8]> {
        self.functions(version).head(at)
    }

    /// `as in line 12 of the new base, in int f(void) {`.
    fn place_in_words(&self, version: FileVersion, at: usize) -> String {
        let file = match version {
            FileVersion::OldAfter => "the old patched file",
            FileVersion::NewBefore => "the new base",
            FileVersion::NewAfter => "the new patched file",
        };
        let place = format!("as in line {} of {file}", self.number(version, at));
        match self.shown_head(version, at) {
            Some(head) => format!("{place}, in {head}"),
            None => place,
        }
    }

    /// Returns one side of the changes of the patch on its new base.
    fn changed(&self, side: impl Fn(&ChangedRun) -> &Range<usize>) -> Vec<Range<usize>> {
        self.changes().iter().map(|run| side(run).clone()).collect()
    }
}

fn place_of(source: Source) -> (FileVersion, usize) {
    match source {
        Source::Upstream(at) => (FileVersion::NewBefore, at),
        Source::Ours(at) => (FileVersion::OldAfter, at),
    }
}

/// Takes one of the places where the patch adds a line: that of the merge if it is one of them, or else the first. In a gap
/// the merge has all lines of the patched file, and a line with the same text may be upstream's.
fn take_place(places: &mut Vec<usize>, source: Option<Source>) -> Option<usize> {
    let Some(source) = source.map(place_of) else { return take_first(places) };
    let is_it = |place: &usize| source == (FileVersion::OldAfter, *place);
    match places.iter().position(is_it) {
        Some(at) => Some(places.remove(at)),
        None => take_first(places).or((source.0 == FileVersion::OldAfter).then_some(source.1)),
    }
}

fn take_first(places: &mut Vec<usize>) -> Option<usize> {
    (!places.is_empty()).then(|| places.remove(0))
}

/// Returns the position of `line` in one of the ranges, or else anywhere.
fn position(lines: &[&[u8]], ranges: &[Range<usize>], line: &[u8]) -> Option<usize> {
    let in_range = ranges.iter().find_map(|range| {
        let at = slice(lines, range.clone()).iter().position(|other| *other == line)?;
        Some(range.start + at)
    });
    in_range.or_else(|| lines.iter().position(|other| *other == line))
}

fn without_white_space(text: &str) -> String {
    // A carriage return is shown as an escape.
    text.replace("\\r", "").chars().filter(|letter| !letter.is_whitespace()).collect()
}
