//! The place of each hunk in a file.
//!
//! A hunk whose context fits at several places belongs to the function that its header names. The hunks of a file keep
//! their order and do not overlap, so each leaves enough lines for those below it. Of the remaining places, the nearest
//! to the expected one is chosen: the place that the hunk would have if it had moved as far as the nearest hunk whose
//! place is certain. The beginning of the file counts as a hunk that did not move. A hunk that was at the end of the
//! file stays there.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::loose_hunk::{HunkPosition, LooseHunk};
use crate::model::printable::printable;
use crate::model::signed::signed;
use crate::text::function::{FunctionMap, is_function_line, is_section, names_a_function};
use crate::text::language::Language;
use crate::text::line_index::LineIndex;
use crate::text::search::find_all;

/// Maximum number of places that a report lists.
const PLACES_SHOWN: usize = 4;
/// Context is not reduced below this number of lines above and below a change.
const LEAST_CONTEXT: usize = 1;
/// Maximum number of places whose enclosing methods are looked up: each takes a separate search.
const METHODS_LIMIT: usize = 100;
/// Maximum number of places that are kept for later hunks.
const PLACES_KEPT: usize = 1 << 20;

/// A file that a diff changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHere {
    /// Its content.
    pub content: Vec<u8>,
    /// Whether the diff was made from this content.
    pub is_base: bool,
    /// Another content that the diff states it was made from, if git can merge from it.
    pub base: Option<Vec<u8>>,
}

/// A file that a diff changes, prepared for looking up hunks.
pub(super) struct File<'f> {
    index: &'f LineIndex<'f>,
    functions: FunctionMap<'f>,
    is_base: bool,
    may_fuzz: bool,
    searches: RefCell<Searches>,
}

/// The results of earlier searches. Each hunk is looked up more than once, and the hunks of a generated diff are often
/// alike: in a file of equal lines, each search would list all of them again.
#[derive(Default)]
struct Searches {
    /// The places of a run of lines, by the ids of the lines.
    places: HashMap<Vec<u32>, Rc<[usize]>>,
    /// Number of places in all of them.
    kept: usize,
}

impl Searches {
    fn places_of(&mut self, lines: Vec<u32>, index: &LineIndex<'_>) -> Rc<[usize]> {
        if let Some(known) = self.places.get(&lines) {
            return Rc::clone(known);
        }
        let places: Rc<[usize]> = find_all(&index.ids, &lines, usize::MAX).into();
        if self.kept + places.len() <= PLACES_KEPT {
            self.kept += places.len();
            self.places.insert(lines, Rc::clone(&places));
        }
        places
    }
}

/// The decision about one hunk.
pub(super) struct Decision {
    /// The line of its place, from 0.
    pub start: Option<usize>,
    /// The header for its place; `None` if it has no place, or git finds the place by itself.
    pub header: Option<Vec<u8>>,
    /// The note for the user.
    pub report: Option<String>,
    /// Whether its context fits, but nowhere in the function that its header names.
    pub is_elsewhere: bool,
}

/// The decisions about the hunks of one file.
pub(super) struct Decisions {
    /// One for each hunk, in order.
    pub hunks: Vec<Decision>,
    /// The file after all hunks; `None` if a hunk has no place.
    pub content: Option<Vec<u8>>,
}

/// A hunk with the places at which it fits.
struct Candidate<'h, 'a> {
    hunk: &'h LooseHunk<'a>,
    /// The first lines of the places, compared with as much context as fits anywhere, in order.
    fits: Rc<[usize]>,
    /// Numbers of context lines ignored above and below.
    trimmed: [usize; 2],
    /// Number of lines compared.
    size: usize,
    /// The places in the function that its header names; all places if none is in it. In order.
    choices: Rc<[usize]>,
    section: Section,
    /// Whether it was made at the end of a file, and fits at the end of this one.
    is_at_end: bool,
}

/// Whether the places of a hunk are in the function that its header names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// At least one place is in it.
    Found,
    /// No place is in it.
    Elsewhere,
    /// The header names none, or one found by rules that are not known here.
    Unknown,
}

/// A hunk whose place is known, or the beginning of the file.
#[derive(Clone, Copy, Default)]
pub(super) struct Anchor {
    /// Number of lines above it in the old file, by its header.
    pub stated: usize,
    /// Number of lines from the place that its header states to the actual one.
    pub offset: i64,
}

impl Candidate<'_, '_> {
    /// Returns the choices that end at or above line `limit`.
    fn choices_above(&self, limit: usize) -> &[usize] {
        let count = self.choices.partition_point(|start| *start + self.size <= limit);
        self.choices.get(..count).unwrap_or_default()
    }

    fn at(&self, start: usize) -> Anchor {
        let stated = self.hunk.stated;
        Anchor { stated, offset: signed(start) - signed(stated + self.trimmed[0]) }
    }

    /// Returns `None` while several places are possible, or none is in the named function.
    fn anchor(&self) -> Option<Anchor> {
        let [start] = self.choices[..] else { return None };
        (self.section != Section::Elsewhere).then(|| self.at(start))
    }
}

/// A hunk whose place was decided.
struct PlacedHunk<'h, 'a> {
    hunk: &'h LooseHunk<'a>,
    /// The first line compared.
    start: usize,
    size: usize,
    trimmed: [usize; 2],
}

/// The hunks whose places were decided so far.
#[derive(Default)]
struct Placed<'h, 'a> {
    /// In the order of the diff.
    hunks: Vec<PlacedHunk<'h, 'a>>,
    /// The ranges of lines that they change: start and end.
    lines: BTreeMap<usize, usize>,
    last: Anchor,
}

impl<'h, 'a> Placed<'h, 'a> {
    fn push(&mut self, candidate: &Candidate<'h, 'a>, start: usize) {
        let Candidate { hunk, size, trimmed, .. } = *candidate;
        self.hunks.push(PlacedHunk { hunk, start, size, trimmed });
        self.lines.insert(start, start + size);
        self.last = candidate.at(start);
    }

    /// Returns the first line below all of them.
    fn end(&self) -> usize {
        self.lines.last_key_value().map_or(0, |(_, end)| *end)
    }

    /// Returns whether `size` lines from `start` on overlap none of them: git never changes a line twice.
    fn leave_free(&self, start: usize, size: usize) -> bool {
        self.lines.range(..start + size).next_back().is_none_or(|(_, end)| *end <= start)
    }

    /// Returns the number of lines that the hunks above `start` add.
    fn growth_above(&self, start: usize) -> i64 {
        self.hunks.iter().filter(|above| above.start < start).map(|above| above.hunk.growth()).sum()
    }

    /// Returns the file after all of them.
    fn content(mut self, lines: &[&[u8]]) -> Vec<u8> {
        self.hunks.sort_by_key(|placed| placed.start);
        let (mut content, mut done) = (Vec::new(), 0);
        for placed in self.hunks {
            content.extend(lines.get(done..placed.start).unwrap_or_default().iter().copied());
            content.extend(placed.hunk.result(placed.trimmed));
            done = placed.start + placed.size;
        }
        content.extend(lines.get(done..).unwrap_or_default().iter().copied());
        content.concat()
    }
}

/// Constraints from the hunks below one.
#[derive(Clone, Copy)]
struct Below {
    /// The first line that they need.
    limit: usize,
    /// The first of them whose place is certain.
    anchor: Option<Anchor>,
}

impl Below {
    /// Returns the constraints for the hunk above `candidate`.
    fn with(self, candidate: &Candidate<'_, '_>) -> Below {
        let last = candidate.choices_above(self.limit).last().copied();
        Below { limit: last.unwrap_or(self.limit), anchor: candidate.anchor().or(self.anchor) }
    }
}

impl<'f> File<'f> {
    pub fn new(path: &[u8], here: &FileHere, index: &'f LineIndex<'f>, may_fuzz: bool) -> File<'f> {
        let language = Language::of(path, &here.content);
        let functions = FunctionMap::new(&index.lines, language);
        File { index, functions, is_base: here.is_base, may_fuzz, searches: RefCell::default() }
    }

    /// Decides the place of each of `hunks`, which are in order.
    pub fn decide(&self, hunks: &[LooseHunk<'_>], reverse: bool) -> Decisions {
        let mut below = Below { limit: usize::MAX, anchor: None };
        let mut belows = Vec::with_capacity(hunks.len());
        for hunk in hunks.iter().rev() {
            belows.push(below);
            below = below.with(&self.candidate(hunk, None));
        }
        let mut placed = Placed::default();
        let mut decisions = Vec::with_capacity(hunks.len());
        for (hunk, below) in hunks.iter().zip(belows.into_iter().rev()) {
            let mut candidate = self.candidate(hunk, None);
            if !candidate.fits.iter().any(|start| placed.leave_free(*start, candidate.size)) {
                let is_free = |start: usize, size: usize| placed.leave_free(start, size);
                candidate = self.candidate(hunk, Some(&is_free));
            }
            let anchors = Anchors { above: placed.last, below: below.anchor };
            let start = choose(&candidate, &placed, anchors, below.limit);
            decisions.push(self.decision(&candidate, start, anchors, &placed, reverse));
            if let Some(start) = start {
                placed.push(&candidate, start);
            }
        }
        let is_whole = placed.hunks.len() == hunks.len();
        Decisions { hunks: decisions, content: is_whole.then(|| placed.content(&self.index.lines)) }
    }

    fn decision(
        &self,
        candidate: &Candidate<'_, '_>,
        start: Option<usize>,
        anchors: Anchors,
        placed: &Placed<'_, '_>,
        reverse: bool,
    ) -> Decision {
        let header = |start: usize| {
            let place = HunkPosition { start, trimmed: candidate.trimmed[0] };
            candidate.hunk.header_at(place, placed.growth_above(start), reverse)
        };
        let has_choice = candidate.fits.len() > 1;
        Decision {
            start,
            header: start.filter(|_| has_choice).map(header),
            report: start.and_then(|start| self.report(candidate, start, anchors, placed.end() <= start)),
            is_elsewhere: candidate.section == Section::Elsewhere,
        }
    }

    /// Returns the places for `hunk` for which `free` returns true; it is called with the first line and the number of
    /// lines. Without it, all places are returned.
    fn candidate<'h, 'a>(&self, hunk: &'h LooseHunk<'a>, free: Option<IsFree<'_>>) -> Candidate<'h, 'a> {
        let mut candidate = self.fits(hunk, free);
        let [above, _] = candidate.trimmed;
        let section = hunk.section_below(above);
        candidate.choices = self.in_section(section, &candidate.fits).into();
        let is_among = |places: &[usize]| places.binary_search(&hunk.stated).is_ok();
        let is_at_its_line = self.is_base && above == 0 && is_among(&candidate.fits);
        // Unless the hunk was edited by hand and kept its `index` line: its own line is then in another function.
        if is_at_its_line && (candidate.choices.is_empty() || is_among(&candidate.choices)) {
            return Candidate { choices: Rc::from([hunk.stated]), ..candidate };
        }
        if !candidate.choices.is_empty() {
            candidate.section = Section::Found;
        } else {
            candidate.choices = Rc::clone(&candidate.fits);
            let is_known = self.knows_section(section) && !hunk.shows_function(above);
            candidate.section = if is_known { Section::Elsewhere } else { Section::Unknown };
        }
        if let Some(last) = self.last_place(&candidate) {
            candidate.choices = Rc::from([last]);
            candidate.is_at_end = true;
        }
        candidate
    }

    /// Returns the end of the file if the hunk was made there: it has less context below than above. patch(1) has the
    /// same rule.
    fn last_place(&self, candidate: &Candidate<'_, '_>) -> Option<usize> {
        let is_cut = candidate.hunk.trailing() < candidate.hunk.leading() && candidate.trimmed[1] == 0;
        let last = candidate.choices.last().copied().filter(|_| is_cut)?;
        (last + candidate.size == self.index.lines.len()).then_some(last)
    }

    /// Returns all places that are `free`, with as much context as fits anywhere; context is reduced the way git does
    /// it.
    fn fits<'h, 'a>(&self, hunk: &'h LooseHunk<'a>, free: Option<IsFree<'_>>) -> Candidate<'h, 'a> {
        let expected: Vec<&[u8]> = hunk.expected().collect();
        let (mut leading, mut trailing) = (hunk.leading(), hunk.trailing());
        let (all_leading, all_trailing) = (leading, trailing);
        let (fits, trimmed, size) = loop {
            let (above, below) = (all_leading - leading, all_trailing - trailing);
            let shortened = expected.get(above..expected.len() - below).unwrap_or_default();
            let mut starts = self.find(shortened);
            if let Some(is_free) = free {
                starts = starts.iter().copied().filter(|start| is_free(*start, shortened.len())).collect();
            }
            let starts = if above + below == 0 { self.anchored(hunk, starts) } else { starts };
            let is_enough = leading <= LEAST_CONTEXT && trailing <= LEAST_CONTEXT;
            if !starts.is_empty() || is_enough || !self.may_fuzz {
                break (starts, [above, below], shortened.len());
            }
            let is_shortened_above = leading >= trailing;
            leading -= usize::from(is_shortened_above);
            trailing -= usize::from(trailing > leading);
        };
        Candidate {
            hunk,
            fits,
            trimmed,
            size,
            choices: Rc::default(),
            section: Section::Unknown,
            is_at_end: false,
        }
    }

    /// Returns the places of a run of lines, in order.
    pub(super) fn find(&self, lines: &[&[u8]]) -> Rc<[usize]> {
        let ids = self.index.ids_of(lines.iter().copied());
        ids.map(|ids| self.searches.borrow_mut().places_of(ids, self.index)).unwrap_or_default()
    }

    /// Filters `starts`: a hunk without context below belongs at the end of the file, and one for line 1 at its
    /// beginning. If none is left, reduced context allows all of them.
    fn anchored(&self, hunk: &LooseHunk<'_>, starts: Rc<[usize]>) -> Rc<[usize]> {
        let (at_begin, at_end) = (hunk.stated == 0, hunk.trailing() == 0);
        if !at_begin && !at_end {
            return starts;
        }
        let size = hunk.expected().count();
        let is_anchored =
            |start: &usize| (!at_begin || *start == 0) && (!at_end || start + size == self.index.lines.len());
        let anchored: Rc<[usize]> = starts.iter().copied().filter(is_anchored).collect();
        if anchored.is_empty() && self.may_fuzz { starts } else { anchored }
    }

    /// Returns those of `starts` that are in the function `section`: by the rule of git and `diff -p`, for which the
    /// last line that is not indented names it; else by rules for the language, which skip labels and recognize
    /// methods.
    pub(super) fn in_section(&self, section: &[u8], starts: &[usize]) -> Vec<usize> {
        let functions = &self.functions;
        let is_around = |at: &usize| is_section(section, functions.text(*at));
        let rules: [&dyn Fn(usize) -> bool; 4] = [
            &|at| functions.section_before(at) == section,
            &|at| is_section(section, functions.section_before(at)),
            &|at| functions.function_before(at).is_some_and(|line| is_section(section, line)),
            &|at| {
                let scopes = (starts.len() <= METHODS_LIMIT).then(|| functions.scopes_around(at)).flatten();
                scopes.is_some_and(|scopes| scopes.iter().any(is_around))
            },
        ];
        if section.is_empty() {
            return Vec::new();
        }
        let found = rules.iter().map(|rule| starts.iter().copied().filter(|at| rule(*at)).collect());
        found.into_iter().find(|found: &Vec<usize>| !found.is_empty()).unwrap_or_default()
    }

    /// Returns whether a place outside of `section` is worth a report: a line of the file has that name, or no line has
    /// it and it names a function. A name that only indented lines have was found by rules for the language.
    fn knows_section(&self, section: &[u8]) -> bool {
        let has =
            |text: fn(&[u8]) -> &[u8]| self.index.lines.iter().any(|line| is_section(section, text(line)));
        let is_here = || is_function_line(section) && has(|line| line);
        let is_gone = || names_a_function(section) && !has(<[u8]>::trim_ascii_start);
        self.functions.has_functions() && (is_here() || is_gone())
    }

    /// Returns the note for the user if `candidate` is put at `start`, unless that place is obvious.
    fn report(
        &self,
        candidate: &Candidate<'_, '_>,
        start: usize,
        anchors: Anchors,
        is_in_order: bool,
    ) -> Option<String> {
        let why = anchors.why(candidate, start);
        let fits = lines(&candidate.fits);
        let report = match candidate.section {
            Section::Elsewhere => Some(self.report_elsewhere(candidate, start, why)),
            _ if candidate.fits.len() == 1 => None,
            Section::Found if candidate.choices.len() == 1 && candidate.at(start).offset == 0 => None,
            Section::Found if candidate.choices.len() == 1 && !candidate.is_at_end => {
                let section = printable(candidate.hunk.section_below(candidate.trimmed[0]));
                Some(format!(
                    "fits at {fits}; it was put at line {}, in `{section}`, which it names",
                    start + 1
                ))
            }
            _ if candidate.at(start).offset == 0 && (self.is_base || anchors.did_not_move()) => None,
            _ => Some(format!("fits at {fits}; it was put at line {}, {why}", start + 1)),
        };
        match report {
            None if !is_in_order => Some(format!("fits only at {fits}, above the hunk before it")),
            Some(report) if !is_in_order => Some(format!("{report}, above the hunk before it")),
            report => report,
        }
    }

    fn report_elsewhere(&self, candidate: &Candidate<'_, '_>, start: usize, why: &str) -> String {
        let there = match self.functions.section_before(start) {
            [] => "no function".to_owned(),
            section => format!("`{}`", printable(section.trim_ascii())),
        };
        let made_for = printable(candidate.hunk.section_below(candidate.trimmed[0]));
        match &candidate.fits[..] {
            [only] => format!("was made for `{made_for}`, and is in {there} at line {}", only + 1),
            fits => format!(
                "was made for `{made_for}`, and fits elsewhere only, at {}; it was put at line {}, {why}",
                lines(fits),
                start + 1
            ),
        }
    }
}

/// Tells whether a number of lines, from a first one on, is free.
type IsFree<'f> = &'f dyn Fn(usize, usize) -> bool;

/// The nearest placed hunk above and the nearest certain one below.
#[derive(Clone, Copy)]
pub(super) struct Anchors {
    /// The nearest one above, or the beginning of the file.
    pub above: Anchor,
    /// The nearest one below whose place is certain.
    pub below: Option<Anchor>,
}

impl Anchors {
    /// Returns the one that is nearer to line `stated` in the file that the diff was made from.
    pub(super) fn nearer(self, stated: usize) -> Anchor {
        let distance_above = stated.abs_diff(self.above.stated);
        let is_nearer = |below: &Anchor| below.stated >= stated && below.stated - stated < distance_above;
        self.below.filter(is_nearer).unwrap_or(self.above)
    }

    /// Returns whether both exist and are at the lines that their headers state.
    fn did_not_move(self) -> bool {
        self.above.offset == 0 && self.below.is_some_and(|below| below.offset == 0)
    }

    /// Returns the reason why a hunk was put at `start` and not at another place.
    fn why(self, candidate: &Candidate<'_, '_>, start: usize) -> &'static str {
        let offset = candidate.at(start).offset;
        if candidate.is_at_end {
            "at the end of the file"
        } else if offset == 0 {
            "as its header says"
        } else if offset == self.above.offset {
            "where the hunk above it went"
        } else if self.below.is_some_and(|below| below.offset == offset) {
            "where the hunk below it went"
        } else {
            "the nearest"
        }
    }
}

/// Returns the place for `candidate`: if possible below the hunks above it, and leaving enough lines for those below
/// it.
fn choose(
    candidate: &Candidate<'_, '_>,
    placed: &Placed<'_, '_>,
    anchors: Anchors,
    limit: usize,
) -> Option<usize> {
    let stated = candidate.hunk.stated;
    let expected = signed(stated + candidate.trimmed[0]) + anchors.nearer(stated).offset;
    let begin = candidate.choices.partition_point(|start| *start < placed.end());
    let below_others = candidate.choices.get(begin..).unwrap_or_default();
    let between = candidate.choices_above(limit).get(begin..).unwrap_or_default();
    let nearest_free = |places: &[usize]| {
        let free = places.iter().copied().filter(|start| placed.leave_free(*start, candidate.size));
        free.min_by_key(|start| signed(*start).abs_diff(expected))
    };
    nearest(between, expected)
        .or_else(|| nearest(below_others, expected))
        .or_else(|| nearest_free(&candidate.choices))
        .or_else(|| nearest_free(&candidate.fits))
}

/// Returns the one of `places`, which are in order, that is nearest to `expected`.
fn nearest(places: &[usize], expected: i64) -> Option<usize> {
    let next = places.partition_point(|start| signed(*start) < expected);
    let around = places.iter().copied().skip(next.saturating_sub(1)).take(2);
    around.min_by_key(|start| signed(*start).abs_diff(expected))
}

/// Formats lines as `line 1`, `lines 1 and 2`; of many, the first ones.
pub(super) fn lines(starts: &[usize]) -> String {
    let shown: Vec<String> = starts.iter().take(PLACES_SHOWN).map(|start| (start + 1).to_string()).collect();
    match (&shown[..], starts.len() - shown.len()) {
        ([only], _) => format!("line {only}"),
        ([first @ .., last], 0) => format!("lines {} and {last}", first.join(", ")),
        (shown, more) => format!("lines {} and {more} more", shown.join(", ")),
    }
}
