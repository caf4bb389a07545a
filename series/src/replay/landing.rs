//! Checks that a merge put the lines of a patch where they belong.
//!
//! A merge considers lines alone. If a text repeats itself, upstream's change may have another equally good alignment,
//! which would put the patch's change elsewhere: so the texts are also compared from the bottom up, and both alignments
//! have to agree, unless the context of the hunk is in one of the two places only. If upstream deleted the patched
//! function and a look-alike stays, the function tells: its head must be the line that the merge maps the old head to.
//! The same applies to a line of any other kind that encloses the place, if ours has it elsewhere.

use std::cell::OnceCell;
use std::ops::Range;

use crate::judge::classify_hunk::{CurrentFile, classify_hunk};
use crate::judge::drift::{HunkClass, PatchClass};
use crate::judge::replayed::{Ambiguity, SameFunction};
use crate::model::patch::Hunk;
use crate::model::printable::printable;
use crate::text::function::{FunctionMap, is_condition};
use crate::text::language::Language;
use crate::text::line_diff::{ChangedRun, histogram_runs, image, lines_of, run_at};
use crate::text::line_index::LineIndex;
use crate::text::line_shape::indentation;
use crate::text::three_way::{Occurrences, Region, ThreeWay};

/// Facts about a file that its three texts do not have.
#[derive(Clone, Copy, Default)]
pub(crate) struct FileFacts<'k> {
    /// Reads upstream's files that base and ours come from, without any patch of the series; it returns `None` if
    /// upstream does not have both.
    pub upstream: Option<&'k dyn Fn() -> Option<[Vec<u8>; 2]>>,
    /// Functions of the file that a person has taken as the same.
    pub same: &'k [SameFunction],
}

/// Returns the uncertain places in ours, each with the known facts about it; empty if there are none. In a text without
/// functions no place can be in the wrong one.
pub(crate) fn check_landing(
    merge: &ThreeWay<'_>,
    hunks: &[Hunk],
    language: Language,
    known: FileFacts<'_>,
) -> Vec<Ambiguity> {
    if merge.landed().next().is_none() {
        return Vec::new();
    }
    let (base, ours) = (FunctionMap::new(&merge.base, language), FunctionMap::new(&merge.ours, language));
    let made_twice = already_made(&LineIndex::of_lines(&merge.ours), &ours, &base, hunks);
    let occurrences = merge.occurrences();
    let places = Places {
        merge,
        language,
        heads: Sides { base: base.enclosing_heads(), ours: ours.enclosing_heads() },
        functions: Sides { base, ours },
        from_below: merge.by_ours_from_below(),
        moved: moved_lines(merge, &occurrences),
        occurrences,
        made_twice,
        hunks,
        known,
        own: OnceCell::new(),
    };
    merge.landed().filter_map(|region| places.ambiguity(region)).collect()
}

/// Lines of the base, from 0, of the hunks whose result ours has already, in their own function.
fn already_made(
    index: &LineIndex<'_>,
    functions: &FunctionMap<'_>,
    base: &FunctionMap<'_>,
    hunks: &[Hunk],
) -> Vec<Range<usize>> {
    let file = CurrentFile { index, functions, pre_image: Some(base) };
    let is_there = |hunk: &&Hunk| {
        // Most hunks add a line that ours does not have.
        index.ids_of(hunk.post_image()).is_some()
            && classify_hunk(&file, hunk, 1, None).class == HunkClass::Upstreamed
    };
    hunks.iter().filter(is_there).map(Hunk::old_lines).collect()
}

/// Returns the lines of the base, from 0, that occur once on either side, and that the merge does not map: ours has them
/// elsewhere.
fn moved_lines(merge: &ThreeWay<'_>, occurrences: &Occurrences<'_>) -> Vec<usize> {
    let replaced = merge.by_ours().iter().flat_map(|run| run.old.clone());
    replaced.filter(|at| occurrences.of_base_line(*at) == (1, 1)).collect()
}

/// A value of the base and its counterpart on our side.
struct Sides<T> {
    base: T,
    ours: T,
}

struct Places<'m, 'a> {
    merge: &'m ThreeWay<'a>,
    language: Language,
    functions: Sides<FunctionMap<'m>>,
    /// For each line the head of its enclosing function.
    heads: Sides<Vec<Option<usize>>>,
    from_below: Vec<ChangedRun>,
    occurrences: Occurrences<'m>,
    /// The [`moved_lines`], in order.
    moved: Vec<usize>,
    made_twice: Vec<Range<usize>>,
    hunks: &'m [Hunk],
    known: FileFacts<'m>,
    /// Lines that earlier patches of the series have put into either text; read when a place is in doubt.
    own: OnceCell<Option<Sides<Vec<Range<usize>>>>>,
}

/// Two lines, one of the base and one of our side, that should be the head of the same function or scope but are not.
type OtherHead = Sides<Option<usize>>;

impl Places<'_, '_> {
    fn ambiguity(&self, region: &Region) -> Option<Ambiguity> {
        let is_made_twice = self.made_twice.iter().any(|lines| lines.contains(&region.base.start));
        if !self.is_the_same_from_below(region) && !self.is_settled_by_context(region) {
            Some(self.describe(PatchClass::Ambiguous, region, &self.heads_above(region)))
        } else if let Some(other) = self.other_place(region).filter(|other| !self.is_settled(region, other)) {
            Some(self.describe(PatchClass::MovedFunction, region, &other))
        } else if is_made_twice {
            Some(self.describe(PatchClass::Upstreamed, region, &self.heads_above(region)))
        } else {
            None
        }
    }

    /// Returns whether it has been decided that the place is right although its function has another head: an earlier
    /// patch of the series has put the lines there, or a person has taken the two functions as the same.
    fn is_settled(&self, region: &Region, heads: &OtherHead) -> bool {
        let texts = self.head_texts(heads);
        let is_it = |same: &SameFunction| {
            Some(&same.made_for) == texts.base.as_ref() && Some(&same.lands_in) == texts.ours.as_ref()
        };
        self.known.same.iter().any(is_it) || self.is_of_earlier_patch(region)
    }

    /// Returns whether the lines of the region are those of earlier patches, in the base and in ours: their place was
    /// checked when those were replayed. An added line needs one such neighbour.
    fn is_of_earlier_patch(&self, region: &Region) -> bool {
        let Some(own) = self.own.get_or_init(|| self.own_lines()) else { return false };
        let has = |lines: &[Range<usize>], at: usize| lines.iter().any(|range| range.contains(&at));
        let is_own = |base: usize, ours: usize| has(&own.base, base) && has(&own.ours, ours);
        let (base, ours) = (&region.base, &region.ours);
        if base.is_empty() {
            let above = base.start.checked_sub(1).zip(ours.start.checked_sub(1));
            return above.is_some_and(|(base, ours)| is_own(base, ours)) || is_own(base.end, ours.end);
        }
        base.clone().zip(ours.clone()).all(|(base, ours)| is_own(base, ours))
    }

    fn own_lines(&self) -> Option<Sides<Vec<Range<usize>>>> {
        let read = self.known.upstream?;
        let [pin, tip] = read()?;
        let added = |upstream: &[u8], text: &[&[u8]]| -> Vec<Range<usize>> {
            histogram_runs(&lines_of(upstream), text).into_iter().map(|run| run.new).collect()
        };
        Some(Sides { base: added(&pin, &self.merge.base), ours: added(&tip, &self.merge.ours) })
    }

    /// Returns the heads as they are shown.
    fn head_texts(&self, heads: &OtherHead) -> Sides<Option<String>> {
        let text = |functions: &FunctionMap<'_>, line: Option<usize>| {
            line.map(|line| printable(functions.text(line))).filter(|text| !text.is_empty())
        };
        Sides { base: text(&self.functions.base, heads.base), ours: text(&self.functions.ours, heads.ours) }
    }

    fn describe(&self, class: PatchClass, region: &Region, heads: &OtherHead) -> Ambiguity {
        let texts = self.head_texts(heads);
        Ambiguity {
            line: region.ours.start + 1,
            made_for: texts.base,
            made_for_line: heads.base.map(|line| line + 1),
            lands_in: texts.ours,
            lands_in_line: heads.ours.map(|line| line + 1),
            class,
        }
    }

    fn heads_above(&self, region: &Region) -> OtherHead {
        Sides {
            base: head_at(&self.heads.base, region.base.start),
            ours: head_at(&self.heads.ours, region.ours.start),
        }
    }

    /// Returns whether a place is certain although the two alignments differ. Upstream has left the lines of the hunk
    /// as they are, with nothing between them; one of them, in the same function, occurs once on either side, and both
    /// alignments have it there; and the place in the other alignment is in another function. This is what a function
    /// of the same form leads to that upstream added below. Two places in one function stay in doubt.
    fn is_settled_by_context(&self, region: &Region) -> bool {
        let has_region =
            |lines: &Range<usize>| lines.start <= region.base.start && region.base.end <= lines.end;
        let Some(lines) = self.hunks.iter().map(Hunk::old_lines).find(has_region) else { return false };
        let Some(place) = self.merge.place_of(&lines) else { return false };
        let heads = self.heads_above(region);
        let is_anchor = |at: usize| {
            let there = place + at - lines.start;
            self.occurrences.of_base_line(at) == (1, 1)
                && image(&self.from_below, at) == Some(there)
                && head_at(&self.heads.base, at) == heads.base
                && head_at(&self.heads.ours, there) == heads.ours
        };
        let is_in_function = heads.base.is_some() && heads.ours.is_some();
        is_in_function && lines.clone().any(is_anchor) && self.is_elsewhere_from_below(region, heads.ours)
    }

    /// Returns whether the lines at a region are either where the merge puts them or outside of the function `own`, in
    /// the alignment from the bottom up.
    fn is_elsewhere_from_below(&self, region: &Region, own: Option<usize>) -> bool {
        let Range { start, end } = region.base;
        (start.saturating_sub(1)..=end).all(|at| {
            image(&self.from_below, at).is_some_and(|there| {
                there + start == region.ours.start + at || head_at(&self.heads.ours, there) != own
            })
        })
    }

    /// A line that is only added needs one neighbour at its old place.
    fn is_the_same_from_below(&self, region: &Region) -> bool {
        let is_at = |base: usize, ours: usize| image(&self.from_below, base) == Some(ours);
        let (base, ours) = (&region.base, &region.ours);
        if base.is_empty() {
            let before = base.start.checked_sub(1).zip(ours.start.checked_sub(1));
            return before.is_none_or(|(base, ours)| is_at(base, ours)) || is_at(base.end, ours.end);
        }
        base.clone().zip(ours.clone()).all(|(base, ours)| is_at(base, ours))
    }

    /// Returns two lines that show that the place is another one than in the base.
    fn other_place(&self, region: &Region) -> Option<OtherHead> {
        self.other_head(region).or_else(|| self.moved_line(region))
    }

    /// Returns the line around the place that ours has elsewhere, and the one around it there: a `case` label, a key or a
    /// namespace that changed places with one of the same content. The merge may map the content of one to that of the
    /// other.
    fn moved_line(&self, region: &Region) -> Option<OtherHead> {
        if self.moved.first().is_none_or(|first| *first >= region.base.start) {
            return None;
        }
        let (base, ours) = (&self.functions.base, &self.functions.ours);
        let written = || self.merge.written_at(region).iter().copied();
        let own = base.enclosing_lines(region.base.start, written());
        let there = ours.enclosing_lines(region.ours.start, written());
        let is_there = |own: usize| there.iter().any(|at| ours.text(*at) == base.text(own));
        let is_elsewhere = |own: usize| {
            self.moved.binary_search(&own).is_ok() && !is_there(own) && !self.is_rewritten(own, &there)
        };
        let moved = own.iter().copied().find(|at| is_elsewhere(*at))?;
        let is_new = |there: usize| !own.iter().any(|at| base.text(*at) == ours.text(there));
        let other = there.iter().copied().find(|at| is_new(*at)).or(there.first().copied());
        Some(Sides { base: Some(moved), ours: other })
    }

    /// Returns whether line `own` of the base begins a condition or a loop that upstream rewrote: one of the lines
    /// `there` is new, and in its place.
    fn is_rewritten(&self, own: usize, there: &[usize]) -> bool {
        let run = run_at(self.merge.by_ours(), own).filter(|_| is_condition(self.functions.base.text(own)));
        let is_new = |at: &usize| self.occurrences.of_our_line(*at).0 == 0;
        run.is_some_and(|run| there.iter().any(|at| run.new.contains(at) && is_new(at)))
    }

    /// Returns the head of the function, or of a scope around the place, that differs in ours.
    fn other_head(&self, region: &Region) -> Option<OtherHead> {
        if self.is_outside(region) {
            return None;
        }
        let above = self.heads_above(region);
        if !self.is_same_head(above.base, above.ours) {
            return Some(above);
        }
        let own = scopes_around(&self.functions.base, region.base.start);
        let there = scopes_around(&self.functions.ours, region.ours.start);
        let (Some(own), Some(there)) = (own, there) else { return Some(above) };
        let scope = |scopes: &[usize], at: usize| scopes.get(at).copied();
        let mut pairs = (0..own.len().max(there.len()))
            .map(|at| Sides { base: scope(&own, at), ours: scope(&there, at) });
        pairs.find(|pair| !self.is_same_head(pair.base, pair.ours))
    }

    /// In languages where indentation ends a function, a line that is not indented is in none.
    fn is_outside(&self, region: &Region) -> bool {
        let mut indentations = self.merge.written_at(region).iter().filter_map(|line| indentation(line));
        self.language == Language::Indentation && indentations.next() == Some(0)
    }

    /// Returns whether the head in ours is the head in the base, perhaps rewritten. Its line decides, not its text:
    /// either the line that the merge maps the base's to, or one that upstream wrote in its place, when the old text is
    /// gone and the new one was not there before. A text that occurs once on either side is the same head, wherever the
    /// lines are.
    fn is_same_head(&self, own: Option<usize>, there: Option<usize>) -> bool {
        let (Some(own), Some(there)) = (own, there) else { return own == there };
        if image(self.merge.by_ours(), own) == Some(there) {
            return true;
        }
        let ((old_in_base, old_in_ours), (new_in_base, new_in_ours)) =
            (self.occurrences.of_base_line(own), self.occurrences.of_our_line(there));
        if self.functions.base.text(own) == self.functions.ours.text(there) {
            return old_in_base == 1 && new_in_ours == 1;
        }
        let is_replaced = run_at(self.merge.by_ours(), own).is_some_and(|run| run.new.contains(&there));
        is_replaced && old_in_ours == 0 && new_in_base == 0
    }
}

/// Returns the head of the function that a line is in.
fn head_at(heads: &[Option<usize>], at: usize) -> Option<usize> {
    heads.get(at).copied().flatten()
}

/// Returns the scopes around a place, innermost first: those of the last line before it that is not blank, because the
/// lines after it may be upstream's.
fn scopes_around(functions: &FunctionMap<'_>, at: usize) -> Option<Vec<usize>> {
    let anchor = functions.last_line_before(at, |line| indentation(line).is_some()).unwrap_or(at);
    functions.scopes_around(anchor)
}
