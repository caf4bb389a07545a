//! Check whether a place in the current file belongs to the function that a hunk was made for.

use super::function::{FunctionMap, comparable_section, is_condition, is_function_line, names_a_function};
use super::line_shape::indentation;
use crate::model::hunk_lines::LineKind;
use crate::model::patch::Hunk;
use crate::model::printable::printable;

/// The function of one hunk, and the evidence for it.
pub(crate) struct HunkFunction<'a> {
    hunk: &'a Hunk,
    /// The file the patch was made from, if it is still available.
    pre_image: Option<&'a FunctionMap<'a>>,
    /// Number of context lines before the first changed line.
    leading: usize,
    /// The last of them that is not blank: the scopes are determined there.
    anchor: usize,
}

impl<'a> HunkFunction<'a> {
    pub fn new(hunk: &'a Hunk, pre_image: Option<&'a FunctionMap<'a>>) -> HunkFunction<'a> {
        let context = || hunk.lines.iter().take_while(|line| line.kind == LineKind::Context);
        let leading = context().count();
        let solid = context().enumerate().filter(|(_, line)| indentation(line.bytes).is_some());
        let anchor = solid.map(|(at, _)| at).last().unwrap_or(leading);
        HunkFunction { hunk, pre_image, leading, anchor }
    }

    /// Returns the name to show, if it is known.
    pub fn name(&self, current: &FunctionMap<'_>) -> Option<String> {
        if !current.has_functions() {
            return None;
        }
        let in_file = self.pre_image.and_then(|map| map.function_before(self.own_first_change()));
        let name = in_file.or_else(|| self.function_in_context()).unwrap_or(&self.hunk.section);
        (!name.trim_ascii().is_empty()).then(|| printable(name.trim_ascii()))
    }

    /// Returns whether the hunk, or its result, placed after `start` lines of `current`, would be in the function it was
    /// made for, and in the same block of it. Returns `false` if the function cannot be proven; where there are no
    /// functions, no place can be in the wrong one.
    pub fn is_around(&self, current: &FunctionMap<'_>, start: usize) -> bool {
        match self.pre_image {
            Some(pre_image) => self.agrees_with(pre_image, current, start),
            None if !current.has_functions() => true,
            None => self.agrees_with_section(current, start),
        }
    }

    /// Returns the function line above the first change if the hunk, or its result, were placed after `start` lines.
    pub fn found_at(&self, current: &FunctionMap<'_>, start: usize) -> Option<String> {
        current.function_before(start + self.leading).map(printable)
    }

    fn own_first_change(&self) -> usize {
        self.hunk.old_lines_before() + self.leading
    }

    fn agrees_with(&self, pre: &FunctionMap<'_>, current: &FunctionMap<'_>, start: usize) -> bool {
        let own = pre.function_before(self.own_first_change());
        let there = current.function_before(start + self.leading);
        let own_scopes = pre.scopes_around(self.hunk.old_lines_before() + self.anchor);
        let scopes_there = current.scopes_around(start + self.anchor);
        let (Some(own_scopes), Some(scopes_there)) = (own_scopes, scopes_there) else { return false };
        let own_scopes = own_scopes.into_iter().map(|at| pre.text(at));
        own == there
            && own_scopes.eq(scopes_there.into_iter().map(|at| current.text(at)))
            && !self.is_in_other_block(pre, current, start)
    }

    /// Returns whether a line that encloses the change in its own file is elsewhere in `current`, such as a `case` label:
    /// it occurs once in either file.
    fn is_in_other_block(&self, pre: &FunctionMap<'_>, current: &FunctionMap<'_>, start: usize) -> bool {
        let changed = || self.hunk.lines.iter().skip(self.leading).map(|line| line.bytes);
        let own = pre.enclosing_lines(self.own_first_change(), changed());
        let there = current.enclosing_lines(start + self.leading, changed());
        let is_there = |own: &[u8]| there.iter().any(|at| current.text(*at) == own);
        let is_elsewhere =
            |own: &[u8]| !is_there(own) && !is_condition(own) && pre.has_once(own) && current.has_once(own);
        own.into_iter().any(|at| is_elsewhere(pre.text(at)))
    }

    /// Returns whether the section of the header names the function at `start`. A function line in the context is
    /// matched with the context, so it needs no other proof.
    fn agrees_with_section(&self, current: &FunctionMap<'_>, start: usize) -> bool {
        if self.function_in_context().is_some() {
            return true;
        }
        let section = comparable_section(&self.hunk.section);
        let proves = section.is_empty() || names_a_function(section);
        proves && section == current.section_before(start) && !current.is_closed_before(start)
    }

    fn function_in_context(&self) -> Option<&'a [u8]> {
        let context = self.hunk.lines.iter().take(self.leading);
        let functions = context.filter(|line| is_function_line(line.bytes));
        functions.map(|line| line.bytes).filter(|line| names_a_function(line)).last()
    }
}
