//! Where the hunks of a loose diff belong, before git looks for them.
//!
//! git takes the place nearest to the line that a hunk names at which its context fits, in whatever function that is. The
//! header names the function too: where the context fits at several places and one is in that function, the header is
//! given the line of that one, so that git finds it first. Of several in it, that is the one nearest to where the hunk above
//! went. Each such choice is reported, and each hunk that is in another function than its header says.

use super::diff_parts::{DiffPart, parts_of};
use super::hunk_lines::DiffLine;
use super::loose_hunk::{LooseHunk, Place};
use crate::model::printable::printable;
use crate::model::signed::signed;
use crate::text::function::{FunctionMap, is_section, names_a_function};
use crate::text::language::Language;
use crate::text::line_index::LineIndex;
use crate::text::search::find_all;

/// So many places are named.
const PLACES_SHOWN: usize = 4;
/// Less context than this is never enough.
const LEAST_CONTEXT: usize = 1;

/// How a loose diff is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LooseReading {
    /// How many parts are taken off its paths.
    pub strip: u32,
    /// It is applied backwards.
    pub reverse: bool,
    /// A hunk may go where only less of its context fits, as git's `-C1` allows.
    pub may_fuzz: bool,
}

/// A diff whose hunks name the lines at which they belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedHunks {
    /// The diff.
    pub diff: Vec<u8>,
    /// What a person should look at.
    pub notes: Vec<String>,
}

/// Places the hunks of `diff` in the files that are here. `file_of` is asked with a path and with the blob that the diff was
/// made from, perhaps cut short, and gives the content of the file. It gives nothing where there is no such file, and where
/// no hunk has to be searched: the file is that blob, or git will merge it.
pub fn place_hunks(
    diff: &[u8],
    reading: LooseReading,
    mut file_of: impl FnMut(&[u8], Option<&str>) -> Option<Vec<u8>>,
) -> PlacedHunks {
    let mut placed = PlacedHunks { diff: Vec::with_capacity(diff.len()), notes: Vec::new() };
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for part in parts_of(diff) {
        let stated = part.stated_blob(reading.reverse);
        let mut paths = part.paths(reading.strip, reading.reverse).into_iter();
        match paths.find_map(|path| Some((file_of(&path, stated)?, path))) {
            None => part.write(&mut placed.diff),
            Some((content, path)) => {
                // The lines of a file that the diff has changed above are not known any more.
                let may_move = !seen.contains(&path);
                place_part(&part, reading, (&path, &content), may_move, &mut placed);
                seen.push(path);
            }
        }
    }
    placed
}

fn place_part(
    part: &DiffPart<'_>,
    reading: LooseReading,
    (path, content): (&[u8], &[u8]),
    may_move: bool,
    placed: &mut PlacedHunks,
) {
    let index = LineIndex::new(content);
    let language = Language::of(path, content);
    let file = File { index: &index, functions: FunctionMap::new(&index.lines, language), reading };
    let mut state = Walk::default();
    let mut number = 0;
    for (at, line) in part.lines.iter().enumerate() {
        let hunk = (line.kind == DiffLine::HunkHead).then(|| LooseHunk::read(part, at, reading.reverse));
        let Some(hunk) = hunk.flatten() else {
            placed.diff.extend(line.bytes);
            continue;
        };
        number += 1;
        let decision = file.decide(&hunk, &state);
        let note = decision.reported.map(|report| format!("{}: hunk #{number} {report}", printable(path)));
        placed.notes.extend(note);
        match decision.moved.filter(|_| may_move) {
            Some(place) => placed.diff.extend(hunk.header_at(place, state.grown, reading.reverse)),
            None => placed.diff.extend(line.bytes),
        }
        state.pass(&hunk, decision.place);
    }
}

/// What the hunks above came to.
#[derive(Default)]
struct Walk {
    /// How far below the line that it names the last one is.
    offset: i64,
    /// Where it begins.
    last: Option<usize>,
    /// How many lines they add.
    grown: i64,
}

impl Walk {
    fn pass(&mut self, hunk: &LooseHunk<'_>, place: Option<Place>) {
        self.grown += hunk.growth();
        if let Some(place) = place {
            self.offset = signed(place.start) - signed(hunk.stated + place.trimmed);
            self.last = Some(place.start);
        }
    }

    /// The lines above the first one that is compared, if the hunk moved as far as the last one.
    fn expected(&self, hunk: &LooseHunk<'_>, trimmed: usize) -> i64 {
        signed(hunk.stated + trimmed) + self.offset
    }
}

/// Where a hunk fits, and what it took.
struct Fits {
    /// Lines above the first one that was compared.
    starts: Vec<usize>,
    /// Lines of context that were left out above the change.
    trimmed: usize,
}

/// What is done with a hunk.
struct Decision {
    /// Its place, where that is known.
    place: Option<Place>,
    /// The same, where git would not find it by itself.
    moved: Option<Place>,
    reported: Option<String>,
}

struct File<'f> {
    index: &'f LineIndex<'f>,
    functions: FunctionMap<'f>,
    reading: LooseReading,
}

impl File<'_> {
    fn decide(&self, hunk: &LooseHunk<'_>, walk: &Walk) -> Decision {
        let fits = self.fits(hunk);
        let in_order = |start: &&usize| walk.last.is_none_or(|last| **start > last);
        let ordered: Vec<usize> = fits.starts.iter().filter(in_order).copied().collect();
        let candidates = if ordered.is_empty() { &fits.starts } else { &ordered };
        let knows_function = self.knows_function(hunk);
        let is_here = |start: &&usize| !knows_function || self.is_in_section(hunk, **start);
        let here: Vec<usize> = candidates.iter().filter(is_here).copied().collect();
        // patch(1) takes the nearest too, and knows how far the hunk above went; git does not.
        let expected = walk.expected(hunk, fits.trimmed);
        let place = here.iter().copied().min_by_key(|start| signed(*start).abs_diff(expected));
        let is_forced = fits.starts.len() == 1;
        let is_stated = place == Some(hunk.stated) && fits.trimmed == 0;
        let moves = place.filter(|_| !is_forced && !is_stated);
        let reported = match (moves, &here[..]) {
            (None, []) => self.report_other_function(hunk, candidates),
            (None, _) => None,
            (Some(start), [_]) if knows_function => {
                Some(report_choice(&fits.starts, start, &self.named(hunk)))
            }
            (Some(start), _) if signed(start) == expected => {
                Some(report_choice(&fits.starts, start, "where the hunk above it went"))
            }
            (Some(start), _) => Some(report_choice(&fits.starts, start, "the nearest")),
        };
        let place = place.or(is_forced.then(|| fits.starts.first().copied()).flatten());
        let [place, moved] =
            [place, moves].map(|start| start.map(|start| Place { start, trimmed: fits.trimmed }));
        Decision { place, moved, reported }
    }

    /// All places, with as much context as fits anywhere, shortened the way git does it.
    fn fits(&self, hunk: &LooseHunk<'_>) -> Fits {
        let expected: Vec<&[u8]> = hunk.expected().collect();
        let (mut leading, mut trailing) = (hunk.leading(), hunk.trailing());
        let (all_leading, all_trailing) = (leading, trailing);
        loop {
            let (above, below) = (all_leading - leading, all_trailing - trailing);
            let shortened = expected.get(above..expected.len() - below).unwrap_or_default();
            let starts = self.find(shortened);
            let starts = if above + below == 0 { self.anchored(hunk, starts) } else { starts };
            let is_enough = leading <= LEAST_CONTEXT && trailing <= LEAST_CONTEXT;
            if !starts.is_empty() || is_enough || !self.reading.may_fuzz {
                return Fits { starts, trimmed: above };
            }
            let is_shortened_above = leading >= trailing;
            leading -= usize::from(is_shortened_above);
            trailing -= usize::from(trailing > leading);
        }
    }

    fn find(&self, lines: &[&[u8]]) -> Vec<usize> {
        let ids = self.index.ids_of(lines.iter().copied());
        ids.map(|ids| find_all(&self.index.ids, &ids, usize::MAX)).unwrap_or_default()
    }

    /// A hunk without context below belongs at the end of the file, and one for line 1 at its begin, unless it may go where
    /// less fits.
    fn anchored(&self, hunk: &LooseHunk<'_>, starts: Vec<usize>) -> Vec<usize> {
        let (at_begin, at_end) = (hunk.stated == 0, hunk.trailing() == 0);
        let size = hunk.expected().count();
        let is_anchored =
            |start: &usize| (!at_begin || *start == 0) && (!at_end || start + size == self.index.lines.len());
        let anchored: Vec<usize> = starts.iter().copied().filter(is_anchored).collect();
        if anchored.is_empty() && self.reading.may_fuzz { starts } else { anchored }
    }

    /// Whether the header of `hunk` names a function by the line that opens it, as git and `diff -p` do. A name that only
    /// indented lines have was found by rules for the language, which are not known here.
    fn knows_function(&self, hunk: &LooseHunk<'_>) -> bool {
        if !self.functions.has_functions() || !names_a_function(hunk.section) || hunk.shows_function() {
            return false;
        }
        let has = |text: fn(&[u8]) -> &[u8]| {
            self.index.lines.iter().any(|line| is_section(hunk.section, text(line)))
        };
        has(|line| line) || !has(<[u8]>::trim_ascii_start)
    }

    /// `at` is the first line that was compared.
    fn is_in_section(&self, hunk: &LooseHunk<'_>, at: usize) -> bool {
        is_section(hunk.section, self.functions.section_before(at))
    }

    fn named(&self, hunk: &LooseHunk<'_>) -> String {
        format!("in `{}`, which it names", printable(hunk.section))
    }

    fn report_other_function(&self, hunk: &LooseHunk<'_>, fits: &[usize]) -> Option<String> {
        let first = fits.first()?;
        let there = match self.functions.section_before(*first) {
            [] => "no function".to_owned(),
            section => format!("`{}`", printable(section.trim_ascii())),
        };
        let made_for = printable(hunk.section.trim_ascii());
        Some(match fits {
            [only] => format!("was made for `{made_for}`, and is in {there} at line {}", only + 1),
            _ => format!("was made for `{made_for}`, and fits elsewhere only, at {}", lines(fits)),
        })
    }
}

fn report_choice(fits: &[usize], start: usize, why: &str) -> String {
    format!("fits at {}; it was put at line {}, {why}", lines(fits), start + 1)
}

/// `line 1`, `lines 1 and 2`; of many, the first ones.
fn lines(starts: &[usize]) -> String {
    let shown: Vec<String> = starts.iter().take(PLACES_SHOWN).map(|start| (start + 1).to_string()).collect();
    match (&shown[..], starts.len() - shown.len()) {
        ([only], _) => format!("line {only}"),
        ([first @ .., last], 0) => format!("lines {} and {last}", first.join(", ")),
        (shown, more) => format!("lines {} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{LooseReading, PlacedHunks, place_hunks};

    const TWINS: &str =
        "int one() {\n    a();\n    b();\n    c();\n}\n\nint two() {\n    a();\n    b();\n    c();\n}\n";
    const CHANGE: &str = "     a();\n-    b();\n+    d();\n     c();\n";

    fn place(file: &str, hunks: &str, may_fuzz: bool) -> PlacedHunks {
        let diff = format!("--- a/x.c\n+++ b/x.c\n{hunks}");
        let reading = LooseReading { strip: 1, reverse: false, may_fuzz };
        place_hunks(diff.as_bytes(), reading, |path, _| (path == b"x.c").then(|| file.as_bytes().to_vec()))
    }

    fn header(placed: &PlacedHunks, number: usize) -> String {
        let text = String::from_utf8(placed.diff.clone()).unwrap();
        text.lines().filter(|line| line.starts_with("@@")).nth(number - 1).unwrap().to_string()
    }

    #[test]
    fn a_hunk_goes_to_the_function_that_its_header_names() {
        for line in [2, 4, 8, 30] {
            let placed = place(TWINS, &format!("@@ -{line},3 +{line},3 @@ int two() {{\n{CHANGE}"), false);
            let is_there = line == 8;
            assert_eq!(header(&placed, 1), "@@ -8,3 +8,3 @@ int two() {");
            let note =
                "x.c: hunk #1 fits at lines 2 and 8; it was put at line 8, in `int two() {`, which it names";
            assert_eq!(placed.notes, if is_there { vec![] } else { vec![note] }, "{line}");
        }
        // At exactly its own line it would be in the look-alike.
        let placed = place(TWINS, &format!("@@ -8,3 +8,3 @@ int one() {{\n{CHANGE}"), false);
        assert_eq!((header(&placed, 1).as_str(), placed.notes.len()), ("@@ -2,3 +2,3 @@ int one() {", 1));
    }

    #[test]
    fn lines_that_came_above_are_counted() {
        let hunks =
            format!("@@ -1,1 +1,2 @@\n int one() {{\n+    n();\n@@ -2,3 +3,3 @@ int two() {{\n{CHANGE}");
        let placed = place(TWINS, &hunks, false);
        assert_eq!(header(&placed, 2), "@@ -8,3 +9,3 @@ int two() {");
    }

    #[test]
    fn a_hunk_in_another_function_is_reported() {
        let notes = |file: &str, section: &str| {
            place(file, &format!("@@ -2,3 +2,3 @@{section}\n{CHANGE}"), false).notes
        };
        let one = &TWINS[..TWINS.find("int two").unwrap()];
        let other = "x.c: hunk #1 was made for `int two() {`, and is in `int one() {` at line 2";
        assert_eq!(notes(one, " int two() {"), [other]);
        let nowhere = "x.c: hunk #1 was made for `int six() {`, and fits elsewhere only, at lines 2 and 8";
        assert_eq!(notes(TWINS, " int six() {"), [nowhere]);
        for silent in [" int one() {", "", " class x {", " public:"] {
            assert_eq!(notes(one, silent), [""; 0], "{silent}");
        }
        // An indented name comes from rules for the language.
        let method = "struct x {\n    int six() {\n    }\n};\n".to_owned() + one;
        assert_eq!(notes(&method, " int six() {"), [""; 0]);
    }

    #[test]
    fn what_nothing_tells_apart_follows_the_hunk_above_or_is_reported() {
        let alike = format!("start\n{}\n{}", "    a();\n    b();\n    c();\n".repeat(2), "x\ny\n");
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n{CHANGE}");
        assert_eq!(place(&alike, &hunk(2), false).notes, [""; 0]);
        let placed = place(&alike, &hunk(3), false);
        assert_eq!(placed.notes, ["x.c: hunk #1 fits at lines 2 and 5; it was put at line 2, the nearest"]);
        assert_eq!(header(&placed, 1), "@@ -2,3 +2,3 @@");
        // The hunk above went three lines down.
        let above = "@@ -1,1 +1,1 @@\n-x\n+z\n";
        let shifted = "n\n".repeat(3) + "x\n" + &alike;
        let placed = place(
            &shifted,
            &(above.replace("-1,1 +1,1", "-1,2 +1,2").replace("+z\n", "+z\n start\n") + &hunk(3)),
            true,
        );
        assert_eq!(header(&placed, 2), "@@ -6,3 +6,3 @@");
        assert!(placed.notes[0].ends_with("at line 6, where the hunk above it went"), "{placed:?}");
    }

    #[test]
    fn less_context_counts_only_where_it_may() {
        let other = CHANGE.replace(" a();", " q();");
        let hunk = format!("@@ -2,3 +2,3 @@ int two() {{\n{}", "     r();\n".to_owned() + &other);
        let hunk = hunk.replace(",3", ",4");
        assert!(place(TWINS, &hunk, false).notes.is_empty());
        let placed = place(&TWINS.replace("a();", "q();"), &hunk, true);
        // One line of context is left out, for which git goes up one line.
        assert_eq!(header(&placed, 1), "@@ -7,4 +9,4 @@ int two() {");
    }

    #[test]
    fn many_places_and_lines_that_no_file_has_are_no_trouble() {
        let many = TWINS.repeat(100);
        let hunk = |line: usize| format!("@@ -{line},3 +{line},3 @@\n{CHANGE}");
        let placed = place(&many, &hunk(1001), false);
        assert_eq!(header(&placed, 1), "@@ -1003,3 +1003,3 @@");
        for file in [TWINS, ""] {
            let placed = place(file, &(hunk(usize::MAX) + &hunk(7)), true);
            assert_eq!(placed.notes.is_empty(), file.is_empty(), "{placed:?}");
        }
        let only_context = "@@ -9,2 +9,2 @@\n     a();\n     b();\n@@ -1,9 +1,9 @@\n";
        place(TWINS, only_context, true);
    }

    #[test]
    fn a_hunk_without_context_below_belongs_at_the_end() {
        let hunk = "@@ -1,1 +1,2 @@\n x\n+y\n";
        let placed = place("x\nx\nx\n", &hunk.replace("-1,1 +1,2", "-2,1 +2,2"), false);
        assert_eq!((placed.notes.len(), header(&placed, 1).as_str()), (0, "@@ -2,1 +2,2 @@"));
    }
}
