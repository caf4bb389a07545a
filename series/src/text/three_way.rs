//! Three-way merge of texts, by git's rules.
//!
//! Git's `ort` compares the base with either side by histogram diff, and reports a conflict wherever both sides changed
//! the same or adjacent lines, unless both made the same change. This module does the same;
//! `tests/series/merge_oracle.rs` checks it against `git merge-file`. The presentation of a conflict does not affect
//! the verdict.

use std::ops::Range;

use imara_diff::Token;

use super::line_diff::{ChangedRun, LineNumbers, lines_of, slice};
use super::markers::{Labels, MarkedText, Side, Sides, add_marked, add_marked_whole};

/// A base and two texts derived from it.
pub(crate) struct ThreeWay<'a> {
    pub base: Vec<&'a [u8]>,
    pub ours: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
    /// Changes from base to ours.
    by_ours: Vec<ChangedRun>,
    numbers: LineNumbers<'a>,
    numbered_base: Vec<Token>,
    numbered_ours: Vec<Token>,
    /// Changed regions, from top to bottom. The lines between them are unchanged on both sides.
    regions: Vec<Region>,
}

/// Consecutive lines of one text.
pub(crate) struct Lines<'m, 'a> {
    /// Position of the first, from 0.
    pub first: usize,
    pub lines: &'m [&'a [u8]],
}

/// A piece of the merged text.
pub(crate) enum Piece<'m, 'a> {
    /// Lines that theirs did not change.
    Ours(Lines<'m, 'a>),
    /// Lines that only theirs changed.
    Theirs(Lines<'m, 'a>),
    /// Both changed the lines of the base to these.
    Alike { base: &'m [&'a [u8]], ours: Lines<'m, 'a> },
    /// A conflict, or a region whose place is uncertain.
    Open { base: &'m [&'a [u8]], ours: Lines<'m, 'a>, theirs: Lines<'m, 'a> },
}

/// Number of occurrences of each line in the base and in ours.
pub(crate) struct Occurrences<'m> {
    base: &'m [Token],
    ours: &'m [Token],
    counts: Vec<(usize, usize)>,
}

impl Occurrences<'_> {
    /// Returns the number of occurrences of line `at` of the base in the base, and in ours.
    pub fn of_base_line(&self, at: usize) -> (usize, usize) {
        self.of(self.base.get(at))
    }

    /// Returns the same for line `at` of our side.
    pub fn of_our_line(&self, at: usize) -> (usize, usize) {
        self.of(self.ours.get(at))
    }

    fn of(&self, line: Option<&Token>) -> (usize, usize) {
        line.and_then(|line| self.counts.get(line.0 as usize)).copied().unwrap_or_default()
    }
}

/// A changed region: its lines in all three texts, from 0.
pub(crate) struct Region {
    pub base: Range<usize>,
    pub ours: Range<usize>,
    theirs: Range<usize>,
    by: By,
    /// Number of lines that theirs removed and added here.
    size_of_theirs: usize,
}

impl Region {
    /// Returns the first line in theirs, from 1.
    pub fn line_of_theirs(&self) -> usize {
        self.theirs.start + 1
    }

    /// Returns whether both sides changed it, with different results.
    pub fn is_conflict(&self) -> bool {
        self.by == By::Both
    }

    /// Returns whether both sides made the same change.
    pub fn is_alike(&self) -> bool {
        self.by == By::Alike
    }
}

/// The side that changed a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Ours,
    Theirs,
    /// Both, with the same result.
    Alike,
    /// Both, with different results: a conflict.
    Both,
}

impl<'a> ThreeWay<'a> {
    pub fn new(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> ThreeWay<'a> {
        let (base, ours, theirs) = (lines_of(base), lines_of(ours), lines_of(theirs));
        let mut numbers = LineNumbers::new(base.len() + ours.len());
        let [numbered_base, numbered_ours, numbered_theirs] =
            [&base, &ours, &theirs].map(|text| numbers.of(text));
        let by_ours = numbers.runs(&numbered_base, &numbered_ours);
        let by_theirs = numbers.runs(&numbered_base, &numbered_theirs);
        let regions = regions(&by_ours, &by_theirs, &ours, &theirs);
        ThreeWay { base, ours, theirs, by_ours, numbers, numbered_base, numbered_ours, regions }
    }

    /// Returns the changes from base to ours.
    pub fn by_ours(&self) -> &[ChangedRun] {
        &self.by_ours
    }

    /// Returns the number of occurrences of each line.
    pub fn occurrences(&self) -> Occurrences<'_> {
        let mut counts = vec![(0, 0); self.numbers.count()];
        let mut count = |lines: &[Token], add: fn(&mut (usize, usize))| {
            lines.iter().for_each(|line| counts.get_mut(line.0 as usize).into_iter().for_each(add));
        };
        count(&self.numbered_base, |(in_base, _)| *in_base += 1);
        count(&self.numbered_ours, |(_, in_ours)| *in_ours += 1);
        Occurrences { base: &self.numbered_base, ours: &self.numbered_ours, counts }
    }

    /// Returns the changes from base to ours, computed on the reversed texts.
    pub fn by_ours_from_below(&self) -> Vec<ChangedRun> {
        let (base, ours) = (reversed(&self.numbered_base), reversed(&self.numbered_ours));
        let from_end = |range: &Range<usize>, of: usize| of - range.end..of - range.start;
        let turn = |run: ChangedRun| ChangedRun {
            old: from_end(&run.old, base.len()),
            new: from_end(&run.new, ours.len()),
        };
        self.numbers.runs(&base, &ours).into_iter().rev().map(turn).collect()
    }

    /// Returns whether there is a conflict.
    pub fn has_conflict(&self) -> bool {
        self.regions.iter().any(Region::is_conflict)
    }

    /// Returns the regions where changes of theirs were merged into ours.
    pub fn landed(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|region| region.by == By::Theirs)
    }

    /// Returns the regions where both sides made the same change.
    pub fn alike(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().filter(|region| region.is_alike())
    }

    /// Returns the regions that theirs changed, alone or as well, which are at least partly in these lines of the base.
    /// An insertion is at the line below it.
    pub fn changed_by_theirs(&self, lines: Range<usize>) -> impl Iterator<Item = &Region> {
        let is_above = |region: &Region| region.base.end.max(region.base.start + 1) <= lines.start;
        let first = self.regions.partition_point(is_above);
        let rest = self.regions.get(first..).unwrap_or_default().iter();
        rest.take_while(move |region| region.base.start < lines.end).filter(|region| region.by != By::Ours)
    }

    /// Returns the lines of theirs in a region; those of the base if theirs has none.
    pub fn written_at(&self, region: &Region) -> &[&'a [u8]] {
        match slice(&self.theirs, region.theirs.clone()) {
            [] => slice(&self.base, region.base.clone()),
            lines => lines,
        }
    }

    /// Returns the number of changed lines of theirs that ours has already, and their total number.
    pub fn lines_there(&self) -> (usize, usize) {
        let size = |region: &Region| region.size_of_theirs;
        (self.alike().map(size).sum(), self.regions.iter().map(size).sum())
    }

    /// Returns whether the only changes that both sides made alike are deletions, and theirs made others. A line that both
    /// deleted is gone, whatever each deleted it for: unlike an addition, it cannot be meant twice. Beside an equal line it
    /// can, because each side may have deleted another one; and a line that ours has elsewhere instead was moved.
    pub fn shares_only_deletions(&self) -> bool {
        let line = |at: Option<usize>| at.and_then(|at| self.base.get(at));
        let is_certain = |region: &Region| {
            let Range { start, end } = region.base;
            let is_next_to_equal = line(Some(end)).is_some_and(|below| line(Some(start)) == Some(below))
                || line(start.checked_sub(1)).is_some_and(|above| line(end.checked_sub(1)) == Some(above));
            start < end && region.ours.is_empty() && !is_next_to_equal
        };
        let (there, of) = self.lines_there();
        there > 0 && there < of && self.alike().all(is_certain) && !self.has_moved_a_deletion()
    }

    /// Returns whether ours has a line that both sides deleted as often as the base.
    fn has_moved_a_deletion(&self) -> bool {
        let occurrences = self.occurrences();
        let is_moved = |at: usize| {
            let (in_base, in_ours) = occurrences.of_base_line(at);
            in_ours >= in_base
        };
        self.alike().flat_map(|region| region.base.clone()).any(is_moved)
    }

    /// Returns the place in ours of these lines of the base, from 0; `None` unless ours has all of them, with nothing
    /// between them.
    pub fn place_of(&self, lines: &Range<usize>) -> Option<usize> {
        let above = self.by_ours.partition_point(|run| run.old.end <= lines.start);
        if self.by_ours.get(above).is_some_and(|run| run.old.start < lines.end) {
            return None;
        }
        let last = above.checked_sub(1).and_then(|last| self.by_ours.get(last));
        Some(last.map_or(lines.start, |run| run.line_below(lines.start)))
    }

    /// Returns the merged text in pieces, from top to bottom. Regions that start on a line of our side that is in
    /// `uncertain` count as conflicts.
    pub fn pieces(&self, uncertain: &[usize]) -> Vec<Piece<'_, 'a>> {
        let mut pieces = Vec::with_capacity(2 * self.regions.len() + 1);
        let mut at = 0;
        for region in &self.regions {
            let base = slice(&self.base, region.base.clone());
            let ours = self.our_lines(region.ours.clone());
            let theirs =
                Lines { first: region.theirs.start, lines: slice(&self.theirs, region.theirs.clone()) };
            pieces.push(Piece::Ours(self.our_lines(at..region.ours.start)));
            pieces.push(match region.by {
                By::Both => Piece::Open { base, ours, theirs },
                By::Theirs if uncertain.contains(&region.ours.start) => Piece::Open { base, ours, theirs },
                By::Theirs => Piece::Theirs(theirs),
                By::Alike => Piece::Alike { base, ours },
                By::Ours => Piece::Ours(ours),
            });
            at = region.ours.end;
        }
        pieces.push(Piece::Ours(self.our_lines(at..self.ours.len())));
        pieces
    }

    fn our_lines(&self, range: Range<usize>) -> Lines<'_, 'a> {
        Lines { first: range.start, lines: slice(&self.ours, range) }
    }

    /// Writes the merged text, with conflict markers at conflicts and at the regions that start on a line of our side
    /// that is in `ambiguous`.
    pub fn write(&self, labels: &Labels, ambiguous: &[usize]) -> MarkedText {
        self.write_with(|text, region, sides| match region.by {
            By::Both => add_marked(text, sides, labels, true),
            By::Theirs if ambiguous.contains(&region.ours.start) => add_marked(text, sides, labels, false),
            By::Theirs => text.add(sides.theirs.lines),
            By::Ours | By::Alike => text.add(sides.ours.lines),
        })
    }

    /// Writes the merged text, with conflict markers where both sides made the same change.
    pub fn write_alike(&self, labels: &Labels) -> MarkedText {
        self.write_with(|text, region, sides| match region.by {
            By::Alike | By::Both => add_marked_whole(text, sides, labels),
            By::Theirs => text.add(sides.theirs.lines),
            By::Ours => text.add(sides.ours.lines),
        })
    }

    fn write_with(&self, mut add: impl FnMut(&mut MarkedText, &Region, &Sides<'_, 'a>)) -> MarkedText {
        let mut text = MarkedText::default();
        let mut at = 0;
        for region in &self.regions {
            let sides = Sides {
                base: side(&self.base, &region.base),
                ours: side(&self.ours, &region.ours),
                theirs: side(&self.theirs, &region.theirs),
            };
            text.add(slice(&self.ours, at..region.ours.start));
            add(&mut text, region, &sides);
            at = region.ours.end;
        }
        text.add(slice(&self.ours, at..self.ours.len()));
        text
    }
}

fn side<'l, 'a>(lines: &'l [&'a [u8]], range: &Range<usize>) -> Side<'l, 'a> {
    Side { start: range.start, lines: slice(lines, range.clone()) }
}

fn reversed(lines: &[Token]) -> Vec<Token> {
    lines.iter().rev().copied().collect()
}

fn regions(
    by_ours: &[ChangedRun],
    by_theirs: &[ChangedRun],
    ours: &[&[u8]],
    theirs: &[&[u8]],
) -> Vec<Region> {
    let (mut left, mut right) = (Cursor::new(by_ours), Cursor::new(by_theirs));
    let mut regions = Vec::new();
    while let Some(start) = [left.next_start(), right.next_start()].into_iter().flatten().min() {
        let (from_left, from_right) = (left.line(start), right.line(start));
        let (left_before, right_before) = (left.done, right.done);
        let mut end = start;
        while left.takes_what_touches(&mut end) || right.takes_what_touches(&mut end) {}
        let (in_ours, in_theirs) = (from_left..left.line(end), from_right..right.line(end));
        let by = match (left.done > left_before, right.done > right_before) {
            (true, false) => By::Ours,
            (false, _) => By::Theirs,
            _ if slice(ours, in_ours.clone()) == slice(theirs, in_theirs.clone()) => By::Alike,
            _ => By::Both,
        };
        let size_of_theirs = right.size_since(right_before);
        regions.push(Region { base: start..end, ours: in_ours, theirs: in_theirs, by, size_of_theirs });
    }
    regions
}

/// A position in the changes of one side, from top to bottom.
struct Cursor<'a> {
    runs: &'a [ChangedRun],
    done: usize,
}

impl<'a> Cursor<'a> {
    fn new(runs: &'a [ChangedRun]) -> Cursor<'a> {
        Cursor { runs, done: 0 }
    }

    fn next_start(&self) -> Option<usize> {
        self.runs.get(self.done).map(|run| run.old.start)
    }

    /// Takes the next change if it begins at or before `end`, and advances `end` to the end of both.
    fn takes_what_touches(&mut self, end: &mut usize) -> bool {
        let Some(run) = self.runs.get(self.done).filter(|run| run.old.start <= *end) else { return false };
        *end = run.old.end.max(*end);
        self.done += 1;
        true
    }

    /// Returns the position of line `base` of the base in this side, after the changes that were taken.
    fn line(&self, base: usize) -> usize {
        match self.done.checked_sub(1).and_then(|last| self.runs.get(last)) {
            Some(last) => last.line_below(base),
            None => base,
        }
    }

    fn size_since(&self, before: usize) -> usize {
        self.runs.get(before..self.done).unwrap_or_default().iter().map(ChangedRun::size).sum()
    }
}
