//! The patches of a series before and after a move that correspond to each other: by name, by subject, and by the lines
//! that they change, so that renamed, split and joined patches are found.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::lint::order::series_entry;
use crate::model::hunk_lines::LineKind;
use crate::model::patch::{Content, Patch};

/// Patches that are compared with each other: consecutive ones of either series. A side without patches is an empty
/// range at the position where they would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Positions in the old series, from 0.
    pub old: Range<usize>,
    /// Positions in the new series, from 0.
    pub new: Range<usize>,
}

impl Group {
    /// Returns whether it is one patch before and after.
    pub fn is_pair(&self) -> bool {
        self.old.len() == 1 && self.new.len() == 1
    }
}

/// Returns every patch of both series in exactly one group, in the order of the old series.
pub(super) fn groups(old: &[&Patch], new: &[&Patch]) -> Vec<Group> {
    let links = Links::between(old, new).found;
    let mut labels = Labels::new(old.len(), new.len());
    links.iter().for_each(|(from, to)| labels.join(*from, *to));
    labels.fill_gaps();
    let mut groups: Vec<Group> = labels.linked();
    let alone = labels.alone(&groups);
    groups.extend(alone);
    groups.sort_by_key(|group| (group.old.start, group.old.end, group.new.start));
    groups
}

/// Pairs of corresponding patches.
struct Links<'p> {
    old: &'p [&'p Patch],
    new: &'p [&'p Patch],
    found: Vec<(usize, usize)>,
}

impl<'p> Links<'p> {
    fn between(old: &'p [&'p Patch], new: &'p [&'p Patch]) -> Links<'p> {
        let mut links = Links { old, new, found: Vec::new() };
        links.by_key(|patch| series_entry(&patch.name).map(|entry| entry.slug));
        links.by_key(|patch| Some(patch.subject.clone()));
        links.by_lines();
        links
    }

    fn has_old(&self, at: usize) -> bool {
        self.found.iter().any(|(old, _)| *old == at)
    }

    fn has_new(&self, at: usize) -> bool {
        self.found.iter().any(|(_, new)| *new == at)
    }

    /// Links the patches that are left and whose key only one patch on the other side has.
    fn by_key(&mut self, key: impl Fn(&Patch) -> Option<String>) {
        let keys = |patches: &[&Patch]| patches.iter().map(|patch| key(patch)).collect::<Vec<_>>();
        let (old, new) = (keys(self.old), keys(self.new));
        for (to, wanted) in new.iter().enumerate().filter(|(_, wanted)| wanted.is_some()) {
            let here = new.iter().enumerate().filter(|(at, other)| *other == wanted && !self.has_new(*at));
            let there = old.iter().enumerate().filter(|(at, other)| *other == wanted && !self.has_old(*at));
            let there: Vec<usize> = there.map(|(at, _)| at).collect();
            if let ([from], 1) = (&there[..], here.count()) {
                self.found.push((*from, to));
            }
        }
    }

    /// Links each patch that is left to the one that has at least half of its changed lines.
    fn by_lines(&mut self) {
        let lines = |patches: &[&'p Patch]| patches.iter().copied().map(ChangedLines::of).collect::<Vec<_>>();
        let (old, new) = (lines(self.old), lines(self.new));
        for to in (0..new.len()).filter(|at| !self.has_new(*at)).collect::<Vec<_>>() {
            let from = new.get(to).and_then(|lines| lines.most_in(&old));
            self.found.extend(from.map(|from| (from, to)));
        }
        for from in (0..old.len()).filter(|at| !self.has_old(*at)).collect::<Vec<_>>() {
            let to = old.get(from).and_then(|lines| lines.most_in(&new));
            self.found.extend(to.map(|to| (from, to)));
        }
    }
}

/// The lines that a patch adds and deletes, with the number of times. Lines without a letter or digit are in every patch.
struct ChangedLines<'p>(HashMap<(bool, &'p [u8]), usize>);

impl<'p> ChangedLines<'p> {
    fn of(patch: &'p Patch) -> ChangedLines<'p> {
        let mut lines = HashMap::new();
        for file in &patch.files {
            let Content::Text(hunks) = &file.content else { continue };
            for line in hunks.iter().flat_map(|hunk| hunk.lines.iter()) {
                let says_something = line.bytes.iter().any(u8::is_ascii_alphanumeric);
                if line.kind != LineKind::Context && says_something {
                    *lines.entry((line.kind == LineKind::Add, line.bytes)).or_default() += 1;
                }
            }
        }
        ChangedLines(lines)
    }

    fn count(&self) -> usize {
        self.0.values().sum()
    }

    fn in_common_with(&self, other: &ChangedLines<'_>) -> usize {
        let counts =
            self.0.iter().map(|(line, count)| other.0.get(line).map_or(0, |there| *there.min(count)));
        counts.sum()
    }

    /// Returns the position of the patch with most of these lines, if it has at least half of them. Of equal ones it is
    /// the first.
    fn most_in(&self, others: &[ChangedLines<'_>]) -> Option<usize> {
        let common = others.iter().map(|other| self.in_common_with(other)).enumerate();
        let most = common.max_by_key(|(at, common)| (*common, Reverse(*at)));
        most.filter(|(_, common)| *common > 0 && 2 * common >= self.count()).map(|(at, _)| at)
    }
}

/// The group of each patch, as a number.
struct Labels {
    old: Vec<usize>,
    new: Vec<usize>,
}

impl Labels {
    /// Puts every patch into a group of its own.
    fn new(old: usize, new: usize) -> Labels {
        Labels { old: (0..old).collect(), new: (old..old + new).collect() }
    }

    fn join(&mut self, from: usize, to: usize) {
        if let (Some(keep), Some(drop)) = (self.old.get(from).copied(), self.new.get(to).copied()) {
            self.merge(keep, drop);
        }
    }

    fn merge(&mut self, keep: usize, drop: usize) {
        self.old
            .iter_mut()
            .chain(&mut self.new)
            .filter(|label| **label == drop)
            .for_each(|label| *label = keep);
    }

    /// Adds to each group the patches between its own, so that the trees before and after a group differ by its patches
    /// alone.
    fn fill_gaps(&mut self) {
        while let Some((keep, drop)) = self.gap() {
            self.merge(keep, drop);
        }
    }

    /// Returns a group with others between its patches, and one of those.
    fn gap(&self) -> Option<(usize, usize)> {
        [&self.old, &self.new].into_iter().find_map(|side| {
            side.iter().enumerate().find_map(|(at, label)| {
                let last = side.iter().rposition(|other| other == label)?;
                let between = side.get(at..last)?.iter().find(|other| *other != label)?;
                Some((*label, *between))
            })
        })
    }

    /// Returns the groups with patches on both sides.
    fn linked(&self) -> Vec<Group> {
        let labels: BTreeSet<usize> = self.old.iter().copied().collect();
        let group = |label| Some(Group { old: span(&self.old, label)?, new: span(&self.new, label)? });
        labels.into_iter().filter_map(group).collect()
    }

    /// Returns the patches that only one side has, each behind the groups of the patches before it.
    fn alone(&self, linked: &[Group]) -> Vec<Group> {
        let old = (0..self.old.len()).filter(|at| !linked.iter().any(|group| group.old.contains(at)));
        let old = old.map(|at| {
            let before = linked.iter().filter(|group| group.old.start < at);
            let place = before.map(|group| group.new.end).max().unwrap_or(0);
            Group { old: at..at + 1, new: place..place }
        });
        let new = (0..self.new.len()).filter(|at| !linked.iter().any(|group| group.new.contains(at)));
        let new = new.map(|at| {
            let before = linked.iter().filter(|group| group.new.start < at);
            let place = before.map(|group| group.old.end).max().unwrap_or(0);
            Group { old: place..place, new: at..at + 1 }
        });
        old.chain(new).collect()
    }
}

/// Returns the positions from the first to the last patch of the group `label`.
fn span(labels: &[usize], label: usize) -> Option<Range<usize>> {
    let first = labels.iter().position(|other| *other == label)?;
    let last = labels.iter().rposition(|other| *other == label)?;
    Some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::{Group, groups};
    use crate::model::patch::Patch;
    use crate::read::parse::parse;

    /// Returns a patch that adds `lines` to a new file.
    fn patch(name: &str, subject: &str, lines: &[&str]) -> Patch {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let id = crate::model::object_id::ObjectId::of_blob(text.as_bytes());
        let added: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        let count = lines.len();
        let mail = format!(
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
             From: A U Thor <author@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
             Subject: [PATCH] {subject}\n\n---\n\n\
             diff --git a/{subject} b/{subject}\nnew file mode 100644\n\
             index 0000000000000000000000000000000000000000..{id}\n--- /dev/null\n+++ b/{subject}\n\
             @@ -0,0 +1,{count} @@\n{added}"
        );
        parse(name, mail.as_bytes()).unwrap()
    }

    fn of(old: &[Patch], new: &[Patch]) -> Vec<Group> {
        groups(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>())
    }

    fn group(old: std::ops::Range<usize>, new: std::ops::Range<usize>) -> Group {
        Group { old, new }
    }

    #[test]
    fn a_renumbered_and_a_renamed_patch_are_found() {
        let old = [
            patch("0001-a.patch", "a", &["int a1;", "int a2;"]),
            patch("0002-b.patch", "b", &["int b1;", "int b2;"]),
            patch("0003-c.patch", "c", &["int c1;", "int c2;"]),
        ];
        let new = [
            patch("0001-b.patch", "b", &["int other;", "int lines;"]),
            patch("0002-see.patch", "see", &["int c1;", "int c2;", "int c3;"]),
        ];
        assert_eq!(of(&old, &new), [group(0..1, 0..0), group(1..2, 0..1), group(2..3, 1..2)]);
    }

    #[test]
    fn a_split_and_a_joined_patch_are_one_group() {
        let whole = [patch("0001-a.patch", "a", &["int a1;", "int a2;", "int a3;", "int a4;"])];
        let parts = [
            patch("0001-a.patch", "a", &["int a1;", "int a2;"]),
            patch("0002-rest.patch", "rest", &["int a3;", "int a4;"]),
        ];
        assert_eq!(of(&whole, &parts), [group(0..1, 0..2)]);
        assert_eq!(of(&parts, &whole), [group(0..2, 0..1)]);
    }

    #[test]
    fn a_patch_between_the_parts_of_a_split_one_joins_them() {
        let between = || patch("0002-b.patch", "b", &["int b1;", "int b2;"]);
        let old = [patch("0001-a.patch", "a", &["int a1;", "int a2;", "int a3;"]), between()];
        let new = [
            patch("0001-a.patch", "a", &["int a1;"]),
            between(),
            patch("0003-rest.patch", "rest", &["int a2;", "int a3;"]),
        ];
        assert_eq!(of(&old, &new), [group(0..2, 0..3)]);
    }

    #[test]
    fn patches_that_swap_places_stay_pairs_and_a_new_one_has_its_own_place() {
        let (a, b) = (|n| patch(n, "a", &["int a1;"]), |n| patch(n, "b", &["int b1;"]));
        let old = [a("0001-a.patch"), b("0002-b.patch")];
        let new = [b("0001-b.patch"), a("0002-a.patch"), patch("0003-c.patch", "c", &["int c1;"])];
        assert_eq!(of(&old, &new), [group(0..1, 1..2), group(1..2, 0..1), group(2..2, 2..3)]);
    }
}
