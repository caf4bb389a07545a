//! Functions that upstream moved, within a file or to another one, and that a patch changes.
//!
//! To a merge of files, upstream deleted such a function and added it elsewhere, or put another head above it: the change
//! of the patch is in conflict, or its place is uncertain. The function is known all the same if one function of the old
//! base and one of the new base are alike, and neither is like any other in a file that differs between the bases. It may
//! have another head then, and upstream may have edited it.

use std::ops::Range;

use super::calls::ChangedBaseFile;
use super::functions::is_same_function;
use super::text::FourTexts;
use crate::text::enclosing::EnclosingFunctions;
use crate::text::language::Language;
use crate::text::likeness::{SIMILAR_PERCENT, percent_alike, percent_within};
use crate::text::line_diff::{ChangedRun, changed_runs, histogram_runs, image, lines_of, run_at, slice};

/// A file, and the result of its merge.
pub(super) struct MergedFile<'a> {
    /// Its contents, if they can be compared line by line.
    pub texts: Option<FourTexts<'a>>,
    /// Whether the merge leaves places open.
    pub has_gaps: bool,
}

/// The lines of a function before and after the patch, from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    /// Index of the file.
    pub file: usize,
    pub before: Range<usize>,
    pub after: Range<usize>,
}

/// A function that upstream moved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MovedFunction {
    /// On the old base.
    pub old: Spot,
    /// On the new base.
    pub new: Spot,
}

/// Functions that upstream made of one: it is not known which of them a patch was made for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copies {
    /// Those in the files of the patch.
    pub spots: Vec<Spot>,
    /// Other files that have one.
    pub elsewhere: Vec<Vec<u8>>,
}

/// The functions that a patch changes on its old base, and that are not in their place on the new one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    pub moved: Vec<MovedFunction>,
    pub copied: Vec<Copies>,
}

impl Moves {
    /// Finds them in the files of a patch; `others` are the other files that differ between the bases.
    pub fn find(files: &[MergedFile<'_>], others: &[&ChangedBaseFile]) -> Moves {
        let mut gone: Vec<(usize, Range<usize>)> = Vec::new();
        for (at, file) in files.iter().enumerate().filter(|(_, file)| file.has_gaps) {
            gone.extend(Sides::of(file).gone().into_iter().map(|function| (at, function)));
        }
        let mut moves = Moves::default();
        if !gone.is_empty() {
            let search = Search { sides: files.iter().map(Sides::of).collect(), others };
            gone.iter().for_each(|(file, function)| search.follow(*file, function, &mut moves));
        }
        moves
    }
}

/// A text before and after the patch.
#[derive(Default)]
struct Side<'a> {
    lines: Vec<&'a [u8]>,
    functions: Vec<Range<usize>>,
    /// The changes of the patch.
    runs: Vec<ChangedRun>,
}

impl<'a> Side<'a> {
    fn new(path: &[u8], before: &'a [u8], after: &'a [u8]) -> Side<'a> {
        let lines = lines_of(before);
        let functions = EnclosingFunctions::new(&lines, Language::of(path, before)).all();
        let runs = changed_runs(&lines, &lines_of(after));
        Side { lines, functions, runs }
    }

    fn head(&self, at: usize) -> Option<&'a [u8]> {
        self.lines.get(at).map(|line| line.trim_ascii())
    }

    fn text(&self, function: &Range<usize>) -> Vec<u8> {
        slice(&self.lines, function.clone()).concat()
    }

    fn is_alike(&self, function: &Range<usize>, text: &[u8]) -> bool {
        let lines = slice(&self.lines, function.clone());
        let size: usize = lines.iter().map(|line| line.len()).sum();
        let (shorter, longer) = (size.min(text.len()), size.max(text.len()));
        // Most functions are of another size, and need no closer look.
        shorter * 100 >= longer * usize::from(SIMILAR_PERCENT)
            && percent_alike(&lines.concat(), text) >= SIMILAR_PERCENT
    }

    fn spot(&self, file: usize, before: &Range<usize>) -> Option<Spot> {
        Some(Spot { file, before: before.clone(), after: lines_after(before, &self.runs)? })
    }
}

/// Returns whether a change of the lines `place` is within a function. An insertion above its head, or below its last
/// line, is not.
pub(super) fn holds(function: &Range<usize>, place: &Range<usize>) -> bool {
    match place.is_empty() {
        true => function.start < place.start && place.start < function.end,
        false => function.start <= place.start && place.end <= function.end,
    }
}

/// Returns the lines of `function` after the changes `runs`; `None` if one of them goes beyond its first or last line.
fn lines_after(function: &Range<usize>, runs: &[ChangedRun]) -> Option<Range<usize>> {
    let is_above = |run: &ChangedRun| run.old.end <= function.start;
    let is_within = |run: &ChangedRun| holds(function, &run.old);
    let is_below = |run: &ChangedRun| run.old.start >= function.end;
    if !runs.iter().all(|run| is_above(run) || is_within(run) || is_below(run)) {
        return None;
    }
    let first = runs.iter().rfind(|run| is_above(run));
    let last = runs.iter().rfind(|run| is_above(run) || is_within(run));
    let start = first.map_or(function.start, |run| run.line_below(function.start));
    let end = last.map_or(function.end, |run| run.line_below(function.end));
    Some(start..end)
}

/// A file on both bases.
#[derive(Default)]
struct Sides<'a> {
    old: Side<'a>,
    new: Side<'a>,
}

impl<'a> Sides<'a> {
    fn of(file: &MergedFile<'a>) -> Sides<'a> {
        let Some(texts) = &file.texts else { return Sides::default() };
        let path = texts.path.as_bytes();
        Sides {
            old: Side::new(path, texts.old_before, texts.old_after),
            new: Side::new(path, texts.new_before, texts.new_after),
        }
    }

    /// Returns the functions that the patch changes on its old base, and that are not in their place on the new one.
    fn gone(&self) -> Vec<Range<usize>> {
        let upstream = histogram_runs(&self.old.lines, &self.new.lines);
        let is_changed = |function: &&Range<usize>| self.old.runs.iter().any(|run| holds(function, &run.old));
        let changed = self.old.functions.iter().filter(is_changed);
        changed.filter(|function| !self.is_in_place(&upstream, function)).cloned().collect()
    }

    /// Returns whether a diff maps the head of the function to that of a function that is like it, or upstream rewrote
    /// the head there.
    fn is_in_place(&self, upstream: &[ChangedRun], function: &Range<usize>) -> bool {
        let text = self.old.text(function);
        let is_head = |there: usize| match image(upstream, function.start) {
            Some(same) => there == same,
            None => {
                let is_replaced =
                    run_at(upstream, function.start).is_some_and(|run| run.new.contains(&there));
                is_replaced && self.is_same_head(function.start, there)
            }
        };
        let mut there = self.new.functions.iter().filter(|there| is_head(there.start));
        there.any(|there| self.new.is_alike(there, &text))
    }

    fn is_same_head(&self, old: usize, new: usize) -> bool {
        let heads = (self.old.head(old), self.new.head(new));
        is_same_function(heads, (&self.old.lines, &self.new.lines))
    }
}

/// All functions among which one is searched for.
struct Search<'s, 'a> {
    sides: Vec<Sides<'a>>,
    others: &'s [&'s ChangedBaseFile],
}

impl<'a> Search<'_, 'a> {
    /// Adds what became of `function`, which is in `file` on the old base.
    fn follow(&self, file: usize, function: &Range<usize>, moves: &mut Moves) {
        let Some(source) = self.sides.get(file).map(|sides| &sides.old) else { return };
        let text = source.text(function);
        let there = self.alike(&text, |sides| &sides.new);
        let of_it = there.iter().filter(|(to, found)| self.is_like_one(*to, found));
        let mut of_it: Vec<Spot> =
            of_it.filter_map(|(to, found)| self.sides.get(*to)?.new.spot(*to, found)).collect();
        let others = self.others.iter().filter(|other| has_alike(&other.path, &other.new, &text));
        let elsewhere: Vec<Vec<u8>> = others.map(|other| other.path.clone()).collect();
        if of_it.len() + elsewhere.len() > 1 {
            moves.copied.push(Copies { spots: of_it, elsewhere });
        } else if let ([_], [], Some(old)) = (&there[..], &elsewhere[..], source.spot(file, function)) {
            moves.moved.extend(of_it.pop().map(|new| MovedFunction { old, new }));
        }
    }

    /// Returns the functions on one base that are like `text`, each with the index of its file.
    fn alike(
        &self,
        text: &[u8],
        side: for<'r> fn(&'r Sides<'a>) -> &'r Side<'a>,
    ) -> Vec<(usize, Range<usize>)> {
        let mut found = Vec::new();
        for (file, sides) in self.sides.iter().enumerate() {
            let side = side(sides);
            let alike = side.functions.iter().filter(|function| side.is_alike(function, text));
            found.extend(alike.map(|function| (file, function.clone())));
        }
        found
    }

    /// Returns whether a function of the new base is like only one of the old base.
    fn is_like_one(&self, file: usize, function: &Range<usize>) -> bool {
        let Some(text) = self.sides.get(file).map(|sides| sides.new.text(function)) else { return false };
        self.alike(&text, |sides| &sides.old).len() == 1
            && !self.others.iter().any(|other| has_alike(&other.path, &other.old, &text))
    }
}

/// Returns whether `content` has a function that is like `text`.
fn has_alike(path: &[u8], content: &[u8], text: &[u8]) -> bool {
    if percent_within(text, content) < SIMILAR_PERCENT {
        return false;
    }
    let side = Side::new(path, content, content);
    side.functions.iter().any(|function| side.is_alike(function, text))
}

#[cfg(test)]
mod tests {
    use super::{ChangedRun, holds, lines_after};

    #[test]
    fn a_change_is_within_a_function_if_no_line_of_it_is_outside() {
        let function = 10..20;
        for place in [10..11, 10..20, 19..20, 11..11, 19..19] {
            assert!(holds(&function, &place), "{place:?}");
        }
        for place in [9..10, 9..11, 19..21, 20..21, 10..10, 20..20] {
            assert!(!holds(&function, &place), "{place:?}");
        }
    }

    #[test]
    fn a_function_keeps_its_first_and_last_line() {
        let run = |old: std::ops::Range<usize>, new| ChangedRun { old, new };
        assert_eq!(lines_after(&(10..20), &[]), Some(10..20));
        // Two lines more above, one less inside, and one more below.
        let runs = [run(0..0, 0..2), run(12..13, 14..14), run(20..20, 21..22)];
        assert_eq!(lines_after(&(10..20), &runs), Some(12..21));
        // Lines directly above its head are not in it.
        assert_eq!(lines_after(&(10..20), &[run(10..10, 10..13)]), Some(13..23));
        assert_eq!(lines_after(&(10..20), &[run(10..11, 10..12)]), Some(10..21));
        assert_eq!(lines_after(&(10..20), &[run(19..21, 19..19)]), None);
    }
}
