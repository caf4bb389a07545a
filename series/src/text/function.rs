//! Detection of the function that contains a line, by git's rules for hunk headers.

use std::cell::OnceCell;

use super::enclosing_lines::{EnclosingLines, block_indentation};
use super::language::Language;
use super::line_shape::{first_word, indentation, is_closing, is_label, leading_white_space};

/// Length at which git cuts the section of a hunk header, in bytes.
const SECTION_LIMIT: usize = 80;
/// Number of lines above a line that are searched for its scopes. Past it they count as unknown.
const SCOPE_SEARCH_LIMIT: usize = 20_000;

/// For each line of a file, the function line above it.
pub(crate) struct FunctionMap<'a> {
    lines: &'a [&'a [u8]],
    language: Language,
    /// At `n`: the last line before line `n` that git considers a function line.
    by_git: Vec<Option<usize>>,
    /// The same without labels and access specifiers.
    strict: Vec<Option<usize>>,
    /// The same for closing braces at column 0.
    closings: Vec<Option<usize>>,
    /// Computed at first use: most files are never asked.
    enclosing: OnceCell<EnclosingLines>,
}

impl<'a> FunctionMap<'a> {
    /// Builds the map. In a file that is not source code, no line is in a function.
    pub fn new(lines: &'a [&'a [u8]], language: Language) -> FunctionMap<'a> {
        let is_code = language != Language::NotCode;
        FunctionMap {
            lines,
            language,
            by_git: last_before(lines, looks_like_function),
            strict: last_before(lines, |line| is_code && is_function_line(line)),
            closings: last_before(lines, |line| is_code && line.starts_with(b"}")),
            enclosing: OnceCell::new(),
        }
    }

    /// Returns whether lines of this file can be in a function.
    pub fn has_functions(&self) -> bool {
        self.language != Language::NotCode
    }

    /// Returns the function line before line `at` (from 0), ignoring labels.
    pub fn function_before(&self, at: usize) -> Option<&'a [u8]> {
        self.line(&self.strict, at)
    }

    /// Returns the text that git would write after `@@` for a hunk that starts at line `at` (from 0).
    pub fn section_before(&self, at: usize) -> &'a [u8] {
        self.line(&self.by_git, at).map_or(&[], cut_like_git)
    }

    /// Returns line `at` (from 0) without surrounding whitespace.
    pub fn text(&self, at: usize) -> &'a [u8] {
        self.lines.get(at).map(|line| line.trim_ascii()).unwrap_or_default()
    }

    /// Returns whether exactly one line has this text, without surrounding whitespace.
    pub fn has_once(&self, text: &[u8]) -> bool {
        self.lines.iter().filter(|line| line.trim_ascii() == text).take(2).count() == 1
    }

    /// Returns the lines that enclose `placed`, lines that are put above line `at` (from 0), innermost first. They need
    /// not be heads of functions.
    pub fn enclosing_lines<'l>(&self, at: usize, placed: impl IntoIterator<Item = &'l [u8]>) -> Vec<usize> {
        let indent = |line: &[u8]| block_indentation(line, self.language);
        let above = || self.lines.get(..at)?.iter().rev().find_map(|line| indent(line));
        let indent = placed.into_iter().find_map(indent).or_else(above).unwrap_or(0);
        let enclosing = self.enclosing.get_or_init(|| EnclosingLines::new(self.lines, self.language));
        enclosing.around(at, indent)
    }

    /// Returns the last line before line `at` (from 0) that satisfies `is_wanted`.
    pub fn last_line_before(&self, at: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Option<usize> {
        self.lines.get(..at)?.iter().rposition(|line| is_wanted(line))
    }

    fn line(&self, map: &[Option<usize>], at: usize) -> Option<&'a [u8]> {
        let found = map.get(at).copied().flatten()?;
        self.lines.get(found).map(|line| line.trim_ascii_end())
    }

    /// Returns whether the function above line `at` was closed before it, by a brace at column 0.
    pub fn is_closed_before(&self, at: usize) -> bool {
        let function = self.strict.get(at).copied().flatten();
        let closing = self.closings.get(at).copied().flatten();
        function.is_some() && closing > function
    }

    /// Returns, at `n`, the head of the function that line `n` (from 0) is in. A line that is not indented and opens
    /// nothing, such as a declaration or an import, is not a head. The result is one longer than the lines.
    pub fn enclosing_heads(&self) -> Vec<Option<usize>> {
        let mut open: Option<OpenFunction> = None;
        let mut heads = Vec::with_capacity(self.lines.len() + 1);
        heads.push(None);
        for (at, line) in self.lines.iter().enumerate() {
            open = self.open_after(open, at, line);
            heads.push(open.as_ref().map(|function| function.head));
        }
        heads
    }

    /// Returns, at `n`, the head of the function that line `n` (from 0) belongs to: one from its head to its end. A
    /// line between two functions belongs to none.
    pub fn heads_of_lines(&self) -> Vec<Option<usize>> {
        let open = self.enclosing_heads();
        let before_and_after = open.iter().zip(open.iter().skip(1)).enumerate();
        let mut heads: Vec<Option<usize>> = before_and_after
            .map(|(at, (before, after))| if *after == Some(at) { *after } else { *before })
            .collect();
        if self.language == Language::Indentation {
            self.leave_out_lines_between(&mut heads);
        }
        heads
    }

    /// If indentation ends a function, its end shows only at the next line that is not indented: the lines above that
    /// one which are between the two functions are taken out of the first.
    fn leave_out_lines_between(&self, heads: &mut [Option<usize>]) {
        let mut begun_from_below = None;
        for ((at, head), line) in heads.iter_mut().enumerate().zip(self.lines).rev() {
            let Some(function) = *head else { continue };
            let is_within = begun_from_below == Some(function) || at == function;
            if is_within || !is_between_functions(line, 0) {
                begun_from_below = Some(function);
            } else {
                *head = None;
            }
        }
    }

    /// Returns the function that is open after line `at`, given the one that was open before it.
    fn open_after(&self, open: Option<OpenFunction>, at: usize, line: &[u8]) -> Option<OpenFunction> {
        let text = line.trim_ascii();
        let has_body = opens_more_than_it_closes(text);
        if self.has_functions() && is_function_line(line) {
            return match self.opens_something(at, text) {
                true => Some(OpenFunction { head: at, has_body }),
                false => open.filter(|_| self.language == Language::Braces),
            };
        }
        let open = open.filter(|_| !line.starts_with(b"}"))?;
        let is_declaration = self.language == Language::Braces && !open.has_body && text.ends_with(b";");
        (!is_declaration).then_some(OpenFunction { has_body: open.has_body || has_body, ..open })
    }

    /// Returns whether the line `at`, which is not indented, is followed by a body or by indented lines.
    fn opens_something(&self, at: usize, text: &[u8]) -> bool {
        let below = self.lines.iter().skip(at + 1).find(|line| !line.trim_ascii().is_empty());
        if below.is_some_and(|line| line.starts_with(b"{")) {
            return true;
        }
        let goes_on = text.last().is_some_and(|byte| b"{(,:=\\".contains(byte));
        let is_indented = below.is_some_and(|line| matches!(line.first(), Some(b' ' | b'\t')));
        !is_control_flow(text) && !text.ends_with(b";") && (goes_on || is_indented)
    }

    /// Returns the scopes around line `at`, innermost first: lines above it that are indented less, each less than the
    /// one before, without control flow and statements. Finds methods, which are not at column 0. Returns `None` if the
    /// search gets too long.
    pub fn scopes_around(&self, at: usize) -> Option<Vec<usize>> {
        if !self.has_functions() {
            return Some(Vec::new());
        }
        let mut limit = self.lines.get(at..)?.iter().find_map(|line| indentation(line))?;
        let mut scopes = Vec::new();
        for (walked, (line_at, line)) in self.lines.get(..at)?.iter().enumerate().rev().enumerate() {
            if limit == 0 {
                break;
            }
            if walked == SCOPE_SEARCH_LIMIT {
                return None;
            }
            let Some(indent) = scope_indentation(line).filter(|indent| *indent < limit) else {
                continue;
            };
            limit = indent;
            let text = line.trim_ascii();
            // A scope that was closed above does not contain the line, but hides the scopes inside of it.
            if !is_control_flow(text) && !text.starts_with(b"}") && !text.ends_with(b";") {
                scopes.push(line_at);
            }
        }
        Some(scopes)
    }
}

/// A function whose end has not been found yet.
struct OpenFunction {
    head: usize,
    /// Whether its body has begun. Until then it may be a declaration.
    has_body: bool,
}

fn opens_more_than_it_closes(text: &[u8]) -> bool {
    let count = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
    count(b'{') > count(b'}')
}

/// Returns, at `n`, the last line before line `n` that satisfies `is_wanted`. The result is one longer than `lines`.
fn last_before(lines: &[&[u8]], is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Option<usize>> {
    let mut last = None;
    let mut map = vec![None];
    for (at, line) in lines.iter().enumerate() {
        if is_wanted(line) {
            last = Some(at);
        }
        map.push(last);
    }
    map
}

/// Implements git's rule if no attribute names a language: a letter, `_` or `$` at column 0.
fn looks_like_function(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'))
}

/// The same, but excluding labels and access specifiers.
pub(crate) fn is_function_line(line: &[u8]) -> bool {
    looks_like_function(line) && !is_label(line.trim_ascii())
}

/// Returns whether `section` names a function, so that equal sections mean equal functions. A label or a class contains
/// many functions.
pub(crate) fn names_a_function(section: &[u8]) -> bool {
    const HOLDERS: [&[u8]; 6] = [b"class", b"struct", b"namespace", b"union", b"enum", b"extern"];
    let text = section.trim_ascii();
    let holds_functions = HOLDERS.contains(&first_word(text)) && !text.contains(&b'(');
    is_function_line(text) && !holds_functions
}

/// Returns whether `text`, the head of a scope without its indentation, is that of a function: of a method too, but not
/// of a class.
pub(crate) fn heads_a_function(text: &[u8]) -> bool {
    let is_class = first_word(text) == b"class" && text.ends_with(b":");
    text.contains(&b'(') && !is_class && !is_control_flow(text)
}

/// Returns whether `text` begins a condition or a loop. Such a line does not identify its block: it may be rewritten
/// like any statement.
pub(crate) fn is_condition(text: &[u8]) -> bool {
    is_control_flow(text) && first_word(text) != b"case"
}

fn is_control_flow(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [b"if", b"else", b"for", b"while", b"do", b"switch", b"case", b"try", b"catch"];
    WORDS.contains(&first_word(text))
}

/// Returns the indentation of a line that can open a scope. Labels, comments and lines that start with an opening
/// bracket cannot, and are often indented less than the scope that they are in.
fn scope_indentation(line: &[u8]) -> Option<usize> {
    let text = line.trim_ascii();
    let is_mark = text.first().is_some_and(|byte| b"{()[]/*".contains(byte));
    indentation(line).filter(|_| !is_mark && !is_label(text))
}

/// Returns whether `line`, below the body of a function whose head is indented by `outer`, is no longer in the
/// function, if indentation ends one: a blank line, or one that is not indented more than the head, such as a comment,
/// a decorator or the next head.
pub(crate) fn is_between_functions(line: &[u8], outer: usize) -> bool {
    let text = line.trim_ascii();
    text.is_empty() || (leading_white_space(line).0 <= outer && !is_closing(text))
}

fn cut_like_git(line: &[u8]) -> &[u8] {
    line.get(..SECTION_LIMIT).unwrap_or(line).trim_ascii_end()
}

/// Returns whether `section`, which follows the ranges of a hunk's header, is `line`, possibly truncated: git cuts at
/// 80 bytes and `diff -p` at 40.
pub(crate) fn is_section(section: &[u8], line: &[u8]) -> bool {
    const SHORTEST_CUT: usize = 36;
    let (section, line) = (section.trim_ascii_end(), line.trim_ascii_end());
    line == section || (section.len() >= SHORTEST_CUT && line.starts_with(section))
}

/// Returns a section in the form that is compared: cut and trimmed like git's own.
pub(crate) fn comparable_section(section: &[u8]) -> &[u8] {
    cut_like_git(section)
}

#[cfg(test)]
mod tests {
    use super::{FunctionMap, heads_a_function, is_function_line, names_a_function};
    use crate::text::language::Language;

    const SOURCE: &[u8] = b"#include <x>\nstruct box {\npublic:\n    int one() {\n        if (a) {\n            b();\n        }\n    }\n};\nstatic int two(void) {\nerror:\n    c();\n}\n";

    #[test]
    fn a_name_that_begins_with_a_keyword_is_not_control_flow() {
        for (text, is_head) in
            [("do_exec_pty(int x) {", true), ("for_each(x) {", true), ("for (;;) {", false)]
        {
            assert_eq!(heads_a_function(text.as_bytes()), is_head, "{text}");
        }
    }

    #[test]
    fn finds_functions_like_git() {
        let lines: Vec<&[u8]> = SOURCE.split_inclusive(|byte| *byte == b'\n').collect();
        let map = FunctionMap::new(&lines, Language::Braces);
        assert_eq!(map.function_before(1), None);
        assert_eq!(map.section_before(5), b"public:");
        assert_eq!(map.function_before(5), Some(&b"struct box {"[..]));
        assert_eq!(map.section_before(11), b"error:");
        assert_eq!(map.function_before(11), Some(&b"static int two(void) {"[..]));
    }

    #[test]
    fn finds_the_scopes_of_a_method() {
        let lines: Vec<&[u8]> = SOURCE.split_inclusive(|byte| *byte == b'\n').collect();
        let scopes = FunctionMap::new(&lines, Language::Braces).scopes_around(5).unwrap();
        assert_eq!(scopes, [3, 1]);
    }

    fn heads(source: &str, language: Language) -> Vec<Option<usize>> {
        let lines: Vec<&[u8]> = source.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
        FunctionMap::new(&lines, language).heads_of_lines()
    }

    #[test]
    fn a_line_between_two_functions_is_in_neither() {
        let python = "import os\n\ndef f(\n    a,\n):\n# old()\n    g(a)\n\n    h(a)\n\n# About g.\n@mark(1)\n\
                      def g():\n    pass\n\n";
        let (f, g) = (Some(2), Some(12));
        let expected = [None, None, f, f, f, f, f, f, f, None, None, None, g, g, None];
        assert_eq!(heads(python, Language::Indentation), expected);
        let ruby = "def f(a)\n  a\nend\n\ndef g(a)\n  a\nend\n";
        let (f, g) = (Some(0), Some(4));
        assert_eq!(heads(ruby, Language::Indentation), [f, f, f, None, g, g, g]);
        let c = "int f(void)\n{\n    a();\n}\n\n// About g.\nint g(void) {\n    b();\n}\n";
        let (f, g) = (Some(0), Some(6));
        assert_eq!(heads(c, Language::Braces), [f, f, f, f, None, None, g, g, g]);
    }

    #[test]
    fn tells_functions_from_labels_and_classes() {
        assert!(is_function_line(b"int f(void)\n"));
        assert!(!is_function_line(b"private:\n"));
        assert!(!is_function_line(b"    int f(void)\n"));
        assert!(names_a_function(b"box::box() :"));
        assert!(names_a_function(b"struct box * f(void) {"));
        assert!(!names_a_function(b"struct box {"));
        assert!(!names_a_function(b"private:"));
        assert!(!names_a_function(b""));
    }
}
