//! The differences of a proof as entries: those of one class in one function of a file, made by one patch, are one entry.

use espalier_series::{FileVersion, FindingClass, ProofFinding};

use super::proof::ProvenSeries;
use super::proof_intended::shown_line;

/// Maximum number of lines that an entry lists unless all are wanted.
const LINES_SHOWN: usize = 5;
/// Maximum number of line numbers, or ranges of them, in a sentence.
const RANGES_SHOWN: usize = 12;

/// Differences of one class in one function of a file, made by one patch.
pub(super) struct Entry<'p> {
    /// The patch, or the variant with all its patches.
    pub name: String,
    /// At least one, in the order of their lines.
    findings: Vec<&'p ProofFinding>,
}

/// The limits of the hunks that an entry shows.
#[derive(Clone, Copy)]
pub(super) struct HunkLimits {
    /// Maximum number of hunks on each base.
    pub hunks: usize,
    /// Maximum number of lines of each.
    pub lines: usize,
}

/// Returns the differences of `series` for which `is_listed` holds, as entries.
pub(super) fn entries(series: &ProvenSeries, is_listed: impl Fn(&ProofFinding) -> bool) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (name, finding) in all(series).filter(|(_, finding)| is_listed(finding)) {
        match entries.iter().rposition(|entry| entry.takes(&name, finding)) {
            Some(at) => entries[at].findings.push(finding),
            None => entries.push(Entry { name, findings: vec![finding] }),
        }
    }
    with_blank_lines_joined(entries)
}

/// Returns all differences, each with the patch that has it, or the variant.
pub(super) fn all(series: &ProvenSeries) -> impl Iterator<Item = (String, &ProofFinding)> {
    let patches = series.proof.patches.iter().flat_map(|patch| {
        let name = patch.name();
        patch.findings.iter().map(move |finding| (name.clone(), finding))
    });
    let together = format!("{}, all patches together", series.variant);
    patches.chain(series.proof.whole.iter().map(move |finding| (together.clone(), finding)))
}

/// Joins the entries of a file that are about blank lines alone, whatever functions the lines are in.
fn with_blank_lines_joined(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut joined: Vec<Entry<'_>> = Vec::new();
    for entry in entries {
        let place = match entry.is_blank() {
            true => joined.iter().position(|other| other.is_blank() && other.is_like(&entry)),
            false => None,
        };
        match place {
            Some(at) => joined[at].findings.extend(entry.findings),
            None => joined.push(entry),
        }
    }
    joined
}

/// Returns whether two differences are of the same class, file, version of it, and reason.
fn are_alike(one: &ProofFinding, other: &ProofFinding) -> bool {
    let version = |finding: &ProofFinding| finding.place.map(|place| place.version);
    one.class == other.class
        && one.path == other.path
        && version(one) == version(other)
        && one.intended == other.intended
}

fn is_blank_line(finding: &ProofFinding) -> bool {
    finding.place.is_some() && finding.text.trim().is_empty()
}

impl Entry<'_> {
    fn takes(&self, name: &str, finding: &ProofFinding) -> bool {
        let is_same = |first: &&ProofFinding| first.function == finding.function && are_alike(first, finding);
        // One that is not about a line stands alone.
        self.name == name && finding.place.is_some() && self.findings.first().is_some_and(is_same)
    }

    fn is_like(&self, other: &Entry<'_>) -> bool {
        let firsts = self.findings.first().zip(other.findings.first());
        self.name == other.name && firsts.is_some_and(|(one, other)| are_alike(one, other))
    }

    fn is_blank(&self) -> bool {
        self.findings.iter().all(|finding| is_blank_line(finding))
    }

    /// Returns whether it has to be fixed or named as intended.
    pub fn is_open(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_open())
    }

    /// Returns the reason why it is intended, if a person gave one.
    pub fn intended(&self) -> Option<&str> {
        self.findings.first()?.intended.as_deref()
    }

    /// Describes it in one line, with the number of differences if they are several.
    pub fn sentence(&self) -> String {
        match &self.findings[..] {
            [] => String::new(),
            [finding] => sentence(finding),
            [first, ..] => self.sentence_of_several(first),
        }
    }

    /// ``lost-own-line: src/a.c, in `int f(void) {`: 3 lines: 7, 9-10``
    fn sentence_of_several(&self, first: &ProofFinding) -> String {
        let is_one_function = self.findings.iter().all(|finding| finding.function == first.function);
        let head = first.function.as_ref().filter(|_| is_one_function);
        let function = head.map(|head| format!(", in `{head}`")).unwrap_or_default();
        let what = match () {
            () if first.class == FindingClass::ContextOnly => "places",
            () if self.is_blank() => "blank lines",
            () => "lines",
        };
        let (class, path, count) = (first.class.name(), &first.path, self.findings.len());
        format!("{class}: {path}{function}: {count} {what}: {}", self.ranges())
    }

    /// `7, 9-10`.
    fn ranges(&self) -> String {
        let numbers = self.findings.iter().filter_map(|finding| Some(finding.place?.line));
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        let ranges: Vec<String> = numbers.chunk_by(|one, next| one + 1 == *next).map(range).collect();
        let shown = ranges.get(..RANGES_SHOWN).unwrap_or(&ranges).join(", ");
        match ranges.len().checked_sub(RANGES_SHOWN) {
            Some(1..) => format!("{shown}, ..."),
            _ => shown,
        }
    }

    /// Returns the lines of an entry that has several, or the first of them. Blank ones are only counted.
    pub fn lines(&self, is_all: bool) -> Vec<String> {
        let is_listed =
            |finding: &&&ProofFinding| finding.class != FindingClass::ContextOnly && !is_blank_line(finding);
        if self.findings.len() == 1 {
            return Vec::new();
        }
        let common = self.common_evidence();
        let mut lines: Vec<String> =
            self.findings.iter().filter(is_listed).map(|finding| listed(finding, common)).collect();
        let more = lines.len().saturating_sub(LINES_SHOWN);
        if !is_all && more > 0 {
            lines.truncate(LINES_SHOWN);
            lines.push(format!("... and {more} more, printed by `prove --long`"));
        }
        lines
    }

    /// Returns the evidence that all differences have.
    fn common_evidence(&self) -> Option<&str> {
        let first = self.findings.first()?.evidence.as_deref();
        first.filter(|_| self.findings.iter().all(|finding| finding.evidence.as_deref() == first))
    }

    /// Returns the digests that name its lines as intended, or those of the first lines; `None` if it is not about lines.
    pub fn digests(&self, is_all: bool) -> Option<String> {
        let digests = self.findings.iter().map(|finding| finding.digest.as_deref());
        let digests = digests.collect::<Option<Vec<&str>>>()?;
        let limit = if is_all { digests.len() } else { LINES_SHOWN };
        let shown = digests.get(..limit).unwrap_or(&digests).join(", ");
        let more = if digests.len() > limit { ", ..." } else { "" };
        let name = if digests.len() == 1 { "digest" } else { "digests" };
        Some(format!("{name}: {shown}{more}"))
    }

    /// Returns what holds for all its differences.
    pub fn remarks(&self) -> Vec<String> {
        let place = self.findings.first().and_then(|finding| finding.place);
        let what =
            if self.findings.len() == 1 { "the line number is that" } else { "the line numbers are those" };
        let version = place.and_then(|place| match place.version {
            FileVersion::OldAfter => Some(format!("{what} of the old patched file")),
            FileVersion::NewBefore => Some(format!("{what} of the new base")),
            FileVersion::NewAfter => None,
        });
        let evidence = self.common_evidence().map(str::to_string);
        let intended = self.intended().map(|why| format!("intended: {why}"));
        version.into_iter().chain(evidence).chain(intended).collect()
    }

    /// Returns the hunks, each once and with a name.
    pub fn hunks(&self, limits: HunkLimits) -> Vec<String> {
        let mut hunks: Vec<(&str, &String)> = Vec::new();
        for finding in &self.findings {
            let named = [("old", &finding.hunks.old), ("new", &finding.hunks.new)];
            for (name, hunk) in named {
                let Some(hunk) = hunk else { continue };
                if !hunks.contains(&(name, hunk)) {
                    hunks.push((name, hunk));
                }
            }
        }
        let more = hunks.len().saturating_sub(2 * limits.hunks);
        let shown = hunks.iter().take(2 * limits.hunks);
        let mut shown: Vec<String> = shown
            .map(|(name, hunk)| format!("the {name} hunk:\n{}", beginning(hunk, limits.lines)))
            .collect();
        if more > 0 {
            shown.push(format!("... and {more} more hunks"));
        }
        shown
    }
}

fn range(numbers: &[usize]) -> String {
    match numbers {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
    }
}

/// ``7: `a();` ``, with the evidence if the other lines have another one.
fn listed(finding: &ProofFinding, common: Option<&str>) -> String {
    let place = finding.place.map(|place| format!("{}: ", place.line)).unwrap_or_default();
    let evidence = finding.evidence.as_deref().filter(|evidence| Some(*evidence) != common);
    let evidence = evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    format!("{place}{}{evidence}", shown_text(finding))
}

fn beginning(hunk: &str, limit: usize) -> String {
    if hunk.lines().count() <= limit {
        return hunk.to_string();
    }
    let shown: Vec<&str> = hunk.lines().take(limit).collect();
    format!("{}\n... more lines, printed by `prove --long`", shown.join("\n"))
}

/// ``lost-own-line: src/a.c:7, in `int f(void) {`: `a();` ``
fn sentence(finding: &ProofFinding) -> String {
    let place = finding.place.map(|place| format!(":{}", place.line)).unwrap_or_default();
    // The head of a function is in the function too.
    let head = finding.function.as_ref().filter(|head| head.trim() != finding.text.trim());
    let function = head.map(|head| format!(", in `{head}`")).unwrap_or_default();
    format!("{}: {}{place}{function}: {}", finding.class.name(), finding.path, shown_text(finding))
}

/// The line, or the description of a difference that is not about one line.
fn shown_text(finding: &ProofFinding) -> String {
    match finding.place.is_some() && finding.class != FindingClass::ContextOnly {
        true => shown_line(&finding.text),
        false => finding.text.trim().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use espalier_series::{HunkPair, LinePlace, line_digest};

    use super::super::proof::tests::{finding, proof};
    use super::*;

    fn at(line: usize, class: FindingClass, text: &str) -> ProofFinding {
        let place = Some(LinePlace { version: FileVersion::NewAfter, line });
        ProofFinding { place, ..finding(class, text) }
    }

    fn sentences(findings: Vec<ProofFinding>) -> Vec<String> {
        let proof = proof(findings);
        entries(&proof.series[0], |_| true).iter().map(Entry::sentence).collect()
    }

    #[test]
    fn lines_of_one_class_in_one_function_are_one_entry() {
        let added = |line: usize, text: &str| at(line, FindingClass::Added, text);
        let elsewhere = ProofFinding { function: None, ..added(90, "e();") };
        let mut mode = finding(FindingClass::ModeOrName, "the mode is 100755, and 100644 was expected");
        (mode.place, mode.digest, mode.function) = (None, None, None);
        let found = sentences(vec![
            added(7, "a();"),
            at(8, FindingClass::Doubled, "b();"),
            added(9, "c();"),
            added(10, ""),
            elsewhere,
            mode.clone(),
            mode,
        ]);
        assert_eq!(
            found,
            [
                "added: src/a.c, in `int f(void) {`: 3 lines: 7, 9-10",
                "doubled: src/a.c:8, in `int f(void) {`: `b();`",
                "added: src/a.c:90: `e();`",
                "mode-or-name: src/a.c: the mode is 100755, and 100644 was expected",
                "mode-or-name: src/a.c: the mode is 100755, and 100644 was expected",
            ]
        );
    }

    #[test]
    fn blank_lines_alone_are_one_entry_for_a_file() {
        let blank = |line: usize, function: Option<&str>| ProofFinding {
            function: function.map(String::from),
            ..at(line, FindingClass::LostDeletion, "  ")
        };
        let single = sentences(vec![blank(3, None)]);
        assert_eq!(single, ["lost-deletion: src/a.c:3: a blank line"]);
        let several = sentences(vec![blank(3, None), blank(5, Some("f")), blank(9, Some("g"))]);
        assert_eq!(several, ["lost-deletion: src/a.c: 3 blank lines: 3, 5, 9"]);
    }

    #[test]
    fn an_entry_lists_its_first_lines_and_each_hunk_once() {
        let hunks = |old: &str| HunkPair { old: Some(old.into()), new: Some("@@ n @@\n+a\n+b\n+c".into()) };
        let mut findings: Vec<ProofFinding> =
            (1..9).map(|line| at(line, FindingClass::Added, &format!("a{line}();"))).collect();
        findings.iter_mut().for_each(|finding| finding.hunks = hunks("@@ o @@\n-a"));
        findings[7].hunks = hunks("@@ other @@\n-b");
        findings[0].evidence = Some("upstream has it".into());
        let proof = proof(findings);
        let entries = entries(&proof.series[0], |_| true);
        let [entry] = &entries[..] else { panic!("{} entries", entries.len()) };
        let lines = entry.lines(false);
        assert_eq!(lines[0], "1: `a1();` (upstream has it)");
        assert_eq!(lines[4..], ["5: `a5();`", "... and 3 more, printed by `prove --long`"]);
        assert_eq!(entry.lines(true).len(), 8);
        let digests = |count: usize| {
            let digests = (1..=count).map(|line| line_digest(format!("a{line}();").as_bytes()));
            digests.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(entry.digests(false), Some(format!("digests: {}, ...", digests(5))));
        assert_eq!(entry.digests(true), Some(format!("digests: {}", digests(8))));
        let all = [
            "the old hunk:\n@@ o @@\n-a",
            "the new hunk:\n@@ n @@\n+a\n+b\n+c",
            "the old hunk:\n@@ other @@\n-b",
        ];
        assert_eq!(entry.hunks(HunkLimits { hunks: 2, lines: 9 }), all);
        let cut = "the new hunk:\n@@ n @@\n+a\n... more lines, printed by `prove --long`";
        assert_eq!(entry.hunks(HunkLimits { hunks: 1, lines: 2 }), [all[0], cut, "... and 1 more hunks"]);
    }

    #[test]
    fn many_line_numbers_are_cut() {
        let findings = (0..20).map(|line| at(2 * line + 1, FindingClass::Added, "a();")).collect();
        let found = sentences(findings);
        assert_eq!(
            found,
            ["added: src/a.c, in `int f(void) {`: 20 lines: 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, ..."]
        );
    }
}
