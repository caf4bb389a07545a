//! Where did a merge put the lines of a patch, and is that where they were made for?
//!
//! A merge goes by lines alone. Where a text says the same twice, another reading of what upstream did may be as good
//! and put the change elsewhere: so the texts are read from below as well, and both readings have to agree. And
//! where upstream deleted the patched function and a look-alike stays, the function tells.

use std::ops::Range;

use super::outcome::Doubt;
use crate::judge::classify_hunk::{CurrentFile, classify_hunk};
use crate::judge::drift::{HunkClass, PatchClass};
use crate::model::patch::Hunk;
use crate::model::printable::printable;
use crate::text::function::{FunctionMap, indentation};
use crate::text::line_diff::ChangedRun;
use crate::text::line_index::LineIndex;
use crate::text::three_way::{Region, ThreeWay};

/// The places in ours that nobody can be sure of, each with what is known about it; empty when all is well. In a text that
/// has no functions none can be the wrong one.
pub(crate) fn check_landing(merge: &ThreeWay<'_>, hunks: &[Hunk], has_functions: bool) -> Vec<Doubt> {
    if merge.landed().next().is_none() {
        return Vec::new();
    }
    let (base, ours) = (FunctionMap::new(&merge.base), FunctionMap::new(&merge.ours));
    let made_twice = already_made(&LineIndex::of_lines(&merge.ours), &ours, &base, hunks);
    let places = Places { base, ours, from_below: merge.by_ours_from_below(), made_twice, has_functions };
    merge.landed().filter_map(|region| places.doubt(region)).collect()
}

/// Lines of the base, from 0, of the hunks whose result stands in ours already, in their own function.
fn already_made(
    index: &LineIndex<'_>,
    functions: &FunctionMap<'_>,
    base: &FunctionMap<'_>,
    hunks: &[Hunk],
) -> Vec<Range<usize>> {
    let file = CurrentFile { index, functions, pre_image: Some(base) };
    let is_there = |hunk: &&Hunk| classify_hunk(&file, hunk, 1).class == HunkClass::Upstreamed;
    hunks.iter().filter(is_there).map(Hunk::old_lines).collect()
}

struct Places<'a> {
    base: FunctionMap<'a>,
    ours: FunctionMap<'a>,
    from_below: Vec<ChangedRun>,
    made_twice: Vec<Range<usize>>,
    has_functions: bool,
}

impl Places<'_> {
    fn doubt(&self, region: &Region) -> Option<Doubt> {
        let is_made_twice = self.made_twice.iter().any(|lines| lines.contains(&region.base.start));
        let class = if !self.is_the_same_from_below(region) {
            PatchClass::Ambiguous
        } else if self.has_functions && !self.is_in_the_same_function(region) {
            PatchClass::MovedFunction
        } else if is_made_twice {
            PatchClass::Upstreamed
        } else {
            return None;
        };
        Some(Doubt {
            line: region.ours.start + 1,
            made_for: self.base.function_before(region.base.start).map(printable),
            lands_in: self.ours.function_before(region.ours.start).map(printable),
            class,
        })
    }

    /// A line that is only added needs one neighbour that is where it was.
    fn is_the_same_from_below(&self, region: &Region) -> bool {
        let is_at = |base: usize, ours: usize| image(&self.from_below, base) == Some(ours);
        let (base, ours) = (&region.base, &region.ours);
        if base.is_empty() {
            let before = base.start.checked_sub(1).zip(ours.start.checked_sub(1));
            return before.is_none_or(|(base, ours)| is_at(base, ours)) || is_at(base.end, ours.end);
        }
        base.clone().zip(ours.clone()).all(|(base, ours)| is_at(base, ours))
    }

    fn is_in_the_same_function(&self, region: &Region) -> bool {
        let own = Surroundings::of(&self.base, region.base.start);
        let there = Surroundings::of(&self.ours, region.ours.start);
        let (Some(own_scopes), Some(scopes_there)) = (own.scopes, there.scopes) else { return false };
        let are_outside = own.is_outside && there.is_outside;
        (are_outside || self.is_same_head(own.function, there.function))
            && own_scopes.len() == scopes_there.len()
            && own_scopes
                .iter()
                .zip(&scopes_there)
                .all(|(own, there)| self.is_same_head(Some(own), Some(there)))
    }

    /// Whether one is the other, perhaps rewritten: then it has kept its name, and the base did not know it yet.
    fn is_same_head(&self, own: Option<&[u8]>, there: Option<&[u8]>) -> bool {
        let (Some(own), Some(there)) = (own, there) else { return own == there };
        let is_known = || self.base.has_line(there);
        own == there || (!is_known() && name_of(own).is_some_and(|own| name_of(there) == Some(own)))
    }
}

/// What stands before the first bracket, without its type; without a bracket, what stands before a body, a base or a value.
fn name_of(head: &[u8]) -> Option<&[u8]> {
    let Some(bracket) = head.iter().position(|byte| *byte == b'(') else {
        let ends =
            |at: &usize| matches!(head.get(*at..), Some([b'{' | b';' | b'=', ..] | [b' ', b':', b' ', ..]));
        let end = (0..head.len()).find(ends).unwrap_or(head.len());
        return head.get(..end).map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
    };
    let (before, _) = head.split_at(bracket);
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b':' || *byte == b'~';
    let before = before.trim_ascii_end();
    let start = before.iter().rposition(|byte| !is_part(byte)).map_or(0, |at| at + 1);
    before.get(start..)
}

/// Where line `at` of the old text is in the new one.
fn image(runs: &[ChangedRun], at: usize) -> Option<usize> {
    let before = runs.partition_point(|run| run.old.start <= at);
    match before.checked_sub(1).and_then(|last| runs.get(last)) {
        Some(last) if at < last.old.end => None,
        Some(last) => Some(last.line_below(at)),
        None => Some(at),
    }
}

/// The function above a place, and the scopes around it, innermost first.
struct Surroundings<'a> {
    function: Option<&'a [u8]>,
    /// Whether that function, if there is any, is over.
    is_outside: bool,
    scopes: Option<Vec<&'a [u8]>>,
}

impl<'a> Surroundings<'a> {
    /// The scopes are those of the last line before the place that is not blank: what follows may be upstream's.
    fn of(functions: &FunctionMap<'a>, at: usize) -> Surroundings<'a> {
        let anchor = functions.last_line_before(at, |line| indentation(line).is_some()).unwrap_or(at);
        Surroundings {
            function: functions.function_before(at),
            is_outside: functions.is_outside_before(at),
            scopes: functions.scopes_around(anchor),
        }
    }
}
