//! The place of each hunk in a file.
//!
//! A hunk whose context fits at several places belongs to the function that its header names. The hunks of a file keep
//! their order and do not overlap, so each leaves enough lines for those below it. Of the remaining places, the nearest
//! to the expected one is chosen: the place that the hunk would have if it had moved as far as the nearest hunk whose
//! place is certain. The beginning of the file counts as a hunk that did not move. A hunk that was at the end of the
//! file stays there.

use std::collections::BTreeMap;

use super::loose_hunk::{LooseHunk, Place};
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
}

/// The decision about one hunk.
pub(super) struct Decision {
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
    /// The first lines of the places, compared with as much context as fits anywhere.
    fits: Vec<usize>,
    /// Numbers of context lines ignored above and below.
    trimmed: [usize; 2],
    /// Number of lines compared.
    size: usize,
    /// The places in the function that its header names; all places if none is in it.
    choices: Vec<usize>,
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
struct Anchor {
    stated: usize,
    /// Number of lines from the place that its header states to the actual one.
    offset: i64,
}

impl Candidate<'_, '_> {
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

    /// Returns whether all of them end at or before `start`.
    fn are_above(&self, start: usize) -> bool {
        self.lines.last_key_value().is_none_or(|(_, end)| *end <= start)
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
        let leaves_lines = |start: &&usize| **start + candidate.size <= self.limit;
        let last = candidate.choices.iter().rfind(leaves_lines).copied();
        Below { limit: last.unwrap_or(self.limit), anchor: candidate.anchor().or(self.anchor) }
    }
}

impl<'f> File<'f> {
    pub fn new(path: &[u8], here: &FileHere, index: &'f LineIndex<'f>, may_fuzz: bool) -> File<'f> {
        let language = Language::of(path, &here.content);
        File { index, functions: FunctionMap::new(&index.lines, language), is_base: here.is_base, may_fuzz }
    }

    /// Decides the place of each of `hunks`, which are in order.
    pub fn decide(&self, hunks: &[LooseHunk<'_>], reverse: bool) -> Decisions {
        let mut below = Below { limit: usize::MAX, anchor: None };
        let mut belows = Vec::with_capacity(hunks.len());
        for hunk in hunks.iter().rev() {
            belows.push(below);
            below = below.with(&self.candidate(hunk, &|_, _| true));
        }
        let mut placed = Placed::default();
        let mut decisions = Vec::with_capacity(hunks.len());
        for (hunk, below) in hunks.iter().zip(belows.into_iter().rev()) {
            let mut candidate = self.candidate(hunk, &|_, _| true);
            if !candidate.fits.iter().any(|start| placed.leave_free(*start, candidate.size)) {
                candidate = self.candidate(hunk, &|start, size| placed.leave_free(start, size));
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
            let place = Place { start, trimmed: candidate.trimmed[0] };
            candidate.hunk.header_at(place, placed.growth_above(start), reverse)
        };
        let has_choice = candidate.fits.len() > 1;
        Decision {
            header: start.filter(|_| has_choice).map(header),
            report: start.and_then(|start| self.report(candidate, start, anchors, placed.are_above(start))),
            is_elsewhere: candidate.section == Section::Elsewhere,
        }
    }

    /// Returns the places for `hunk` for which `free` returns true; it is called with the first line and the number of
    /// lines.
    fn candidate<'h, 'a>(
        &self,
        hunk: &'h LooseHunk<'a>,
        free: &dyn Fn(usize, usize) -> bool,
    ) -> Candidate<'h, 'a> {
        let mut candidate = self.fits(hunk, free);
        let [above, _] = candidate.trimmed;
        let section = hunk.section_below(above);
        candidate.choices = self.in_section(section, &candidate.fits);
        let is_at_its_line = self.is_base && above == 0 && candidate.fits.contains(&hunk.stated);
        // Unless the hunk was edited by hand and kept its `index` line: its own line is then in another function.
        if is_at_its_line && (candidate.choices.is_empty() || candidate.choices.contains(&hunk.stated)) {
            return Candidate { choices: vec![hunk.stated], ..candidate };
        }
        if !candidate.choices.is_empty() {
            candidate.section = Section::Found;
        } else {
            candidate.choices.clone_from(&candidate.fits);
            let is_known = self.knows_section(section) && !hunk.shows_function(above);
            candidate.section = if is_known { Section::Elsewhere } else { Section::Unknown };
        }
        if let Some(last) = self.last_place(&candidate) {
            candidate.choices = vec![last];
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
    fn fits<'h, 'a>(
        &self,
        hunk: &'h LooseHunk<'a>,
        free: &dyn Fn(usize, usize) -> bool,
    ) -> Candidate<'h, 'a> {
        let expected: Vec<&[u8]> = hunk.expected().collect();
        let (mut leading, mut trailing) = (hunk.leading(), hunk.trailing());
        let (all_leading, all_trailing) = (leading, trailing);
        let (fits, trimmed, size) = loop {
            let (above, below) = (all_leading - leading, all_trailing - trailing);
            let shortened = expected.get(above..expected.len() - below).unwrap_or_default();
            let mut starts = self.find(shortened);
            starts.retain(|start| free(*start, shortened.len()));
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
            choices: Vec::new(),
            section: Section::Unknown,
            is_at_end: false,
        }
    }

    fn find(&self, lines: &[&[u8]]) -> Vec<usize> {
        let ids = self.index.ids_of(lines.iter().copied());
        ids.map(|ids| find_all(&self.index.ids, &ids, usize::MAX)).unwrap_or_default()
    }

    /// Filters `starts`: a hunk without context below belongs at the end of the file, and one for line 1 at its
    /// beginning. If none is left, reduced context allows all of them.
    fn anchored(&self, hunk: &LooseHunk<'_>, starts: Vec<usize>) -> Vec<usize> {
        let (at_begin, at_end) = (hunk.stated == 0, hunk.trailing() == 0);
        let size = hunk.expected().count();
        let is_anchored =
            |start: &usize| (!at_begin || *start == 0) && (!at_end || start + size == self.index.lines.len());
        let anchored: Vec<usize> = starts.iter().copied().filter(is_anchored).collect();
        if anchored.is_empty() && self.may_fuzz { starts } else { anchored }
    }

    /// Returns those of `starts` that are in the function `section`: by the rule of git and `diff -p`, for which the
    /// last line that is not indented names it; else by rules for the language, which skip labels and recognize
    /// methods.
    fn in_section(&self, section: &[u8], starts: &[usize]) -> Vec<usize> {
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

/// The nearest placed hunk above and the nearest certain one below.
#[derive(Clone, Copy)]
struct Anchors {
    above: Anchor,
    /// The nearest one below whose place is certain.
    below: Option<Anchor>,
}

impl Anchors {
    /// Returns the one that is nearer to line `stated` in the file that the diff was made from.
    fn nearer(self, stated: usize) -> Anchor {
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
    let nearest = |places: &[usize], is_possible: &dyn Fn(usize) -> bool| {
        let possible = places.iter().copied().filter(|start| is_possible(*start));
        possible.min_by_key(|start| signed(*start).abs_diff(expected))
    };
    let is_free = |start: usize| placed.leave_free(start, candidate.size);
    let fits_above = |start: usize| placed.are_above(start) && start + candidate.size <= limit;
    nearest(&candidate.choices, &fits_above)
        .or_else(|| nearest(&candidate.choices, &|start| placed.are_above(start)))
        .or_else(|| nearest(&candidate.choices, &is_free))
        .or_else(|| nearest(&candidate.fits, &is_free))
}

/// Formats lines as `line 1`, `lines 1 and 2`; of many, the first ones.
fn lines(starts: &[usize]) -> String {
    let shown: Vec<String> = starts.iter().take(PLACES_SHOWN).map(|start| (start + 1).to_string()).collect();
    match (&shown[..], starts.len() - shown.len()) {
        ([only], _) => format!("line {only}"),
        ([first @ .., last], 0) => format!("lines {} and {last}", first.join(", ")),
        (shown, more) => format!("lines {} and {more} more", shown.join(", ")),
    }
}
