//! The differences that the entries of `docs/syncs/OLD-to-NEW.toml` name.

use std::collections::BTreeMap;

use espalier_core::config::intended::{Intended, NamedDifferences};
use espalier_series::{FindingClass, ProofFinding};

/// A place of an entry for differences that are alike.
pub(super) struct Slot<'e> {
    /// The index of the entry.
    pub at: usize,
    /// The entry.
    pub entry: &'e Intended,
    subject: Subject<'e>,
    /// Maximum number of differences.
    capacity: usize,
}

impl Slot<'_> {
    /// Returns whether its entry names no differences, but their number.
    pub fn has_number_alone(&self) -> bool {
        matches!(self.entry.named, NamedDifferences::Number(_))
    }
}

/// The differences that a slot takes, among those of the class, file and function of its entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject<'e> {
    /// Those of the line with this digest.
    Line(&'e str),
    /// Those that are not about one line, by their description.
    Whole(&'e str),
    /// All of them: a lost patch, or an entry with a number alone.
    Any,
}

/// The differences that each slot takes: as many as possible in all.
///
/// Each difference goes to the narrowest entry about it. If that would leave another difference without an entry, one of
/// them goes to a broader entry: so it does not depend on the order of the entries whether a move is proved, and entries
/// that were written for all differences name them all.
pub(super) struct Shares<'e> {
    /// The slots of all entries, in their order.
    pub slots: Vec<Slot<'e>>,
    /// For each slot the differences that it takes.
    pub counted: Vec<Vec<usize>>,
    /// For each difference the slots about it, the narrowest first.
    about: Vec<Vec<usize>>,
}

impl<'e> Shares<'e> {
    pub fn of(findings: &[&mut ProofFinding], entries: &'e [Intended]) -> Shares<'e> {
        let slots = slots_of(entries);
        let about = findings.iter().map(|finding| slots_about(finding, &slots)).collect();
        let mut shares = Shares { counted: vec![Vec::new(); slots.len()], slots, about };
        for finding in 0..findings.len() {
            shares.place(finding, &mut vec![false; shares.slots.len()]);
        }
        shares
    }

    /// Finds a slot for a difference; `tried` has the slots that have no place for it. Returns whether there is one.
    fn place(&mut self, finding: usize, tried: &mut [bool]) -> bool {
        let about = self.about[finding].clone();
        let has_place = |slot: &&usize| self.counted[**slot].len() < self.slots[**slot].capacity;
        if let Some(free) = about.iter().find(has_place) {
            self.counted[*free].push(finding);
            return true;
        }
        for slot in about {
            if std::mem::replace(&mut tried[slot], true) {
                continue;
            }
            for at in 0..self.counted[slot].len() {
                let other = self.counted[slot][at];
                if self.place(other, tried) {
                    self.counted[slot][at] = finding;
                    return true;
                }
            }
        }
        false
    }

    /// Returns whether the slot at `index` is full, and every difference that it is about has a slot.
    pub fn takes_all_about(&self, index: usize) -> bool {
        let is_full = self.counted[index].len() == self.slots[index].capacity;
        let has_slot = |finding: usize| self.counted.iter().flatten().any(|other| *other == finding);
        let mut about = (0..self.about.len()).filter(|finding| self.about[*finding].contains(&index));
        is_full && about.all(has_slot)
    }

    /// Returns what is wrong with the entry at index `at`: it names differences that are not there, or none at all.
    pub fn stale(&self, at: usize, entry: &Intended) -> Vec<String> {
        if let NamedDifferences::Number(count) = entry.named {
            let about = about(entry, Subject::Any);
            return vec![format!(
                "an entry names no line, only `count = {count}`, and covers nothing: {about}"
            )];
        }
        let slots = self.slots.iter().zip(&self.counted).filter(|(slot, _)| slot.at == at);
        let slots: Vec<(&Slot<'_>, usize)> = slots.map(|(slot, share)| (slot, share.len())).collect();
        if slots.len() > 1 && slots.iter().all(|(_, there)| *there == 0) {
            let about = about(entry, Subject::Any);
            return vec![format!("none of {} differences is there: {about}", entry.named.count())];
        }
        let wrong = slots.into_iter().filter(|(slot, there)| *there < slot.capacity);
        let wrong = wrong.map(|(slot, there)| {
            let about = about(entry, slot.subject);
            match there {
                0 => format!("no difference {about}"),
                _ => format!("{} are named, and there are only {there}: differences {about}", slot.capacity),
            }
        });
        wrong.collect()
    }
}

fn slots_of(entries: &[Intended]) -> Vec<Slot<'_>> {
    let mut slots = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let mut add = |subject, capacity| slots.push(Slot { at, entry, subject, capacity });
        match &entry.named {
            NamedDifferences::Lines(lines) => {
                lines.iter().for_each(|(line, count)| add(Subject::Line(line), *count));
            }
            NamedDifferences::Whole(what, count) => add(Subject::Whole(what), *count),
            NamedDifferences::Patch(count) | NamedDifferences::Number(count) => add(Subject::Any, *count),
        }
    }
    slots
}

/// Returns the slots about `finding`, the narrowest first.
fn slots_about(finding: &ProofFinding, slots: &[Slot<'_>]) -> Vec<usize> {
    let is_about_it = |at: &usize| slots.get(*at).is_some_and(|slot| is_about(slot, finding));
    let mut about: Vec<usize> = (0..slots.len()).filter(is_about_it).collect();
    about.sort_by_key(|at| slots.get(*at).map(breadth));
    about
}

fn is_about(slot: &Slot<'_>, finding: &ProofFinding) -> bool {
    let entry = slot.entry;
    let is_in = |head: &String| finding.function.as_ref() == Some(head);
    let is_named = match slot.subject {
        Subject::Line(digest) => finding.digest.as_deref() == Some(digest),
        Subject::Whole(what) => finding.digest.is_none() && finding.text.trim() == what,
        Subject::Any => true,
    };
    is_named
        && entry.class == finding.class
        && entry.path == finding.path
        && entry.function.as_ref().is_none_or(is_in)
}

/// Returns a rank: an entry about the function comes before one about the whole file, and in either one about the line
/// before one about any line. So each counts what the narrower ones do not.
fn breadth(slot: &Slot<'_>) -> (bool, bool) {
    (slot.entry.function.is_none(), slot.subject == Subject::Any)
}

/// `` `doubled` of src/a.c, in `int f(void) {`: the line 4f5b1a3c0d2e ``
fn about(entry: &Intended, subject: Subject<'_>) -> String {
    let place = entry.function.as_ref().map(|head| format!(", in `{head}`")).unwrap_or_default();
    let subject = match subject {
        Subject::Line(digest) => format!(": the line {digest}"),
        Subject::Whole(what) => format!(": {what}"),
        Subject::Any => String::new(),
    };
    format!("`{}` of {}{place}{subject}", entry.class.name(), entry.path)
}

/// Returns a line of a file as it is shown in a sentence.
pub fn shown_line(line: &str) -> String {
    match line.trim() {
        "" => "a blank line".to_string(),
        line => format!("`{line}`"),
    }
}

/// Returns what names all of `findings`, if one entry can.
pub(super) fn names_of(findings: &[&ProofFinding]) -> Option<NamedDifferences> {
    let first = findings.first()?;
    let digests = findings.iter().map(|finding| finding.digest.as_deref());
    if let Some(digests) = digests.collect::<Option<Vec<&str>>>() {
        return Some(NamedDifferences::lines(digests));
    }
    let is_like_it =
        |finding: &&ProofFinding| finding.digest.is_none() && subject_of(finding) == subject_of(first);
    let named = match subject_of(first) {
        Some(what) => NamedDifferences::Whole(what.to_string(), findings.len()),
        None => NamedDifferences::Patch(findings.len()),
    };
    findings.iter().all(is_like_it).then_some(named)
}

/// Returns the description of a difference that is not about one line; `None` for a line, and for a lost patch, which the
/// path names.
fn subject_of(finding: &ProofFinding) -> Option<&str> {
    let is_described = finding.digest.is_none() && finding.class != FindingClass::LostPatch;
    is_described.then(|| finding.text.trim())
}

/// Returns entries without reasons: one for the lines of one class in one function, and one for each other difference.
pub(super) fn entries_for(findings: &[&ProofFinding]) -> Vec<Intended> {
    let mut groups: BTreeMap<_, Vec<&ProofFinding>> = BTreeMap::new();
    for finding in findings {
        let group = (&finding.path, &finding.function, finding.class, subject_of(finding));
        groups.entry(group).or_default().push(finding);
    }
    let entry = |group: Vec<&ProofFinding>| {
        Some(Intended { named: names_of(&group)?, ..entry_for(group.first()?, "") })
    };
    groups.into_values().filter_map(entry).collect()
}

/// Returns the entry that names `finding` as intended.
pub fn entry_for(finding: &ProofFinding, why: &str) -> Intended {
    Intended {
        class: finding.class,
        path: finding.path.clone(),
        function: finding.function.clone(),
        named: names_of(&[finding]).unwrap_or(NamedDifferences::Number(1)),
        why: why.to_string(),
    }
}
