//! The class of one hunk of a file that differs from the one its patch was made from.

use super::drift::{HunkClass, HunkDrift, Placement};
use super::nearest::nearest_candidate;
use crate::model::patch::Hunk;
use crate::model::signed::signed;
use crate::text::function::FunctionMap;
use crate::text::line_index::LineIndex;
use crate::text::same_function::HunkFunction;
use crate::text::search::find_all;

/// Limit of the places that are reported: with this many the hunk is ambiguous.
const PLACES_SHOWN: usize = 16;

/// The current file, prepared for looking up hunks.
pub(crate) struct CurrentFile<'a> {
    pub index: &'a LineIndex<'a>,
    pub functions: &'a FunctionMap<'a>,
    /// The file that the patch was made from, if it is still available.
    pub pre_image: Option<&'a FunctionMap<'a>>,
}

/// Classifies the hunk `number` (from 1) by the places where its lines are. If a replay has decided its class, the
/// places only illustrate it.
pub(crate) fn classify_hunk(
    file: &CurrentFile<'_>,
    hunk: &Hunk,
    number: usize,
    decided: Option<HunkClass>,
) -> HunkDrift {
    let function = HunkFunction::new(hunk, file.pre_image);
    let mut fits = find_places(file, &function, hunk.pre_image());
    let mut results = find_places(file, &function, hunk.post_image());
    let class = decided.unwrap_or_else(|| decide(hunk, &fits, &results));
    match decided {
        Some(HunkClass::Exact) => fits = vec![own_place(file, &function, hunk, 0)],
        Some(HunkClass::Shifted { offset }) => fits = vec![own_place(file, &function, hunk, offset)],
        Some(HunkClass::Merged | HunkClass::PartlyUpstreamed) => {
            // Upstream changed its own place, so any place that has all of its lines is another one.
            fits.clear();
            results.clear();
        }
        _ => {}
    }
    let nearest = match class {
        HunkClass::Conflict if fits.is_empty() => {
            nearest_candidate(file.index, |start| function.found_at(file.functions, start), hunk)
        }
        _ => None,
    };
    HunkDrift {
        number,
        header: hunk.header(),
        patch_line: hunk.line,
        class,
        function: function.name(file.functions),
        fits_at: fits,
        result_at: results,
        nearest,
    }
}

fn find_places<'b>(
    file: &CurrentFile<'_>,
    function: &HunkFunction<'_>,
    lines: impl Iterator<Item = &'b [u8]>,
) -> Vec<Placement> {
    let Some(needle) = file.index.ids_of(lines) else {
        return Vec::new();
    };
    let starts = find_all(&file.index.ids, &needle, PLACES_SHOWN);
    starts.into_iter().map(|start| placement(file, function, start)).collect()
}

fn placement(file: &CurrentFile<'_>, function: &HunkFunction<'_>, start: usize) -> Placement {
    Placement {
        line: start + 1,
        function: function.found_at(file.functions, start),
        same_function: function.is_around(file.functions, start),
    }
}

/// Returns the place of a hunk that a replay found `offset` lines further down.
fn own_place(file: &CurrentFile<'_>, function: &HunkFunction<'_>, hunk: &Hunk, offset: i64) -> Placement {
    let start = usize::try_from(signed(hunk.old_lines_before()) + offset).unwrap_or_default();
    Placement { same_function: true, ..placement(file, function, start) }
}

/// Decides the class of a hunk. The result in the right function outweighs places where the hunk would fit elsewhere; a
/// place where the hunk fits counts only if it is the only one.
fn decide(hunk: &Hunk, fits: &[Placement], results: &[Placement]) -> HunkClass {
    let result_here = only(results.iter().filter(|place| place.same_function));
    let mut fits_here = fits.iter().filter(|place| place.same_function);
    match (result_here, fits_here.next()) {
        (Some(_), None) => return HunkClass::Upstreamed,
        (Some(result), Some(fit)) => match result_or_fit(hunk, result, fit) {
            Seen::Result => return HunkClass::Upstreamed,
            Seen::Both => return HunkClass::Ambiguous,
            Seen::Fit => {}
        },
        (None, _) => {}
    }
    match fits {
        [] if results.iter().filter(|place| place.same_function).count() > 1 => HunkClass::Ambiguous,
        [] => HunkClass::Conflict,
        [place] => placed(hunk, place),
        _ => HunkClass::Ambiguous,
    }
}

fn only<T>(mut places: impl Iterator<Item = T>) -> Option<T> {
    let first = places.next()?;
    places.next().is_none().then_some(first)
}

enum Seen {
    Fit,
    Result,
    Both,
}

/// Decides between the hunk's pre-image and its result if both are found in one function. If they overlap, one is a
/// part of the other, and only the longer one is really present; a hunk that adds a line equal to its neighbour is the
/// usual case.
fn result_or_fit(hunk: &Hunk, result: &Placement, fit: &Placement) -> Seen {
    let overlap = result.line < fit.line + hunk.old_count && fit.line < result.line + hunk.new_count;
    match hunk.old_count.cmp(&hunk.new_count) {
        std::cmp::Ordering::Less if overlap => Seen::Result,
        std::cmp::Ordering::Greater if overlap => Seen::Fit,
        _ => Seen::Both,
    }
}

fn placed(hunk: &Hunk, place: &Placement) -> HunkClass {
    let offset = signed(place.line) - signed(hunk.old_lines_before() + 1);
    match place.same_function {
        true => HunkClass::at_offset(offset),
        false => HunkClass::MovedFunction { offset },
    }
}
