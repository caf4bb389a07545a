//! The function around a place, from its head to its end.

use std::ops::Range;

use super::function::{FunctionMap, heads_a_function, is_between_functions};
use super::language::Language;
use super::line_diff::lines_of;
use super::line_shape::{indentation, is_closing};
use crate::model::printable::printable;

/// A function of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnclosingFunction {
    /// The first line of its head, safe to print.
    pub name: String,
    /// Its lines, from 0.
    pub lines: Range<usize>,
}

/// Returns the function of the file `path`, whose content is `text`, that contains line `at`, from 0: a method rather
/// than its class, and a function rather than the blocks in it. `None` outside of functions, and in a file that is not
/// source code.
///
/// # Examples
///
/// ```
/// use espalier_series::enclosing_function;
///
/// let text = b"int a;\n\nint f(int x) {\n    return x;\n}\n\nint b;\n";
/// let function = enclosing_function(b"a.c", text, 3).unwrap();
/// assert_eq!((function.name.as_str(), function.lines), ("int f(int x) {", 2..5));
/// assert_eq!(enclosing_function(b"a.c", text, 6), None);
/// ```
pub fn enclosing_function(path: &[u8], text: &[u8], at: usize) -> Option<EnclosingFunction> {
    let lines = lines_of(text);
    let functions = EnclosingFunctions::new(&lines, Language::of(path, text));
    let found = functions.around(at.min(lines.len().checked_sub(1)?))?;
    Some(functions.named(found))
}

/// As [`enclosing_function`], for a place: a range of lines. One without lines is above its line, and in a function
/// only if the lines above and below it are in the same one.
///
/// # Examples
///
/// ```
/// use espalier_series::function_around_place;
///
/// let text = b"def f(x):\n    return x\n";
/// assert!(function_around_place(b"a.py", text, &(1..1)).is_some());
/// assert!(function_around_place(b"a.py", text, &(1..2)).is_some());
/// assert_eq!(function_around_place(b"a.py", text, &(2..2)), None);
/// ```
pub fn function_around_place(path: &[u8], text: &[u8], place: &Range<usize>) -> Option<EnclosingFunction> {
    let lines = lines_of(text);
    let functions = EnclosingFunctions::new(&lines, Language::of(path, text));
    let below = functions.around(place.start)?;
    if place.is_empty() && functions.around(place.start.checked_sub(1)?)? != below {
        return None;
    }
    Some(functions.named(below))
}

/// The functions of a text, to be looked up line by line.
pub(crate) struct EnclosingFunctions<'a> {
    lines: &'a [&'a [u8]],
    language: Language,
    functions: FunctionMap<'a>,
    /// Of the function that is open before each line.
    heads: Vec<Option<usize>>,
}

impl<'a> EnclosingFunctions<'a> {
    pub fn new(lines: &'a [&'a [u8]], language: Language) -> EnclosingFunctions<'a> {
        let functions = FunctionMap::new(lines, language);
        let heads = functions.enclosing_heads();
        EnclosingFunctions { lines, language, functions, heads }
    }

    /// Returns the lines of the function that contains line `at`, from 0; the first is its head. `None` outside of
    /// functions and below the last line.
    pub fn around(&self, at: usize) -> Option<Range<usize>> {
        if at >= self.lines.len() || !self.functions.has_functions() {
            return None;
        }
        let head = self.head_around(at)?;
        let found = head..end_of(self.lines, head, self.language);
        found.contains(&at).then_some(found)
    }

    /// Returns the lines of every function, methods too, from top to bottom, without functions in others and
    /// declarations.
    pub fn all(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.lines.len() {
            match self.beginning_at(at) {
                Some(function) => {
                    at = function.end;
                    found.push(function);
                }
                None => at += 1,
            }
        }
        found
    }

    /// Returns the function whose head is line `at`.
    fn beginning_at(&self, at: usize) -> Option<Range<usize>> {
        if !heads_a_function(self.text(at)) {
            return None;
        }
        // The head of a method may take several lines: those below it are in the method.
        let mut around = [at, at + 1].into_iter().filter_map(|line| self.around(line));
        around.find(|function| function.start == at && self.has_body(function))
    }

    /// Returns whether a function has a body, which a declaration has not.
    fn has_body(&self, function: &Range<usize>) -> bool {
        let opens = |text: &[u8]| text.contains(&b'{');
        let mut head = function.clone().map(|at| self.text(at));
        let last_of_head = head.find(|text| opens(text) || text.ends_with(b";"));
        self.language == Language::Indentation || last_of_head.is_some_and(opens)
    }

    /// Returns line `at`, from 0, without the white space around it.
    pub fn text(&self, at: usize) -> &'a [u8] {
        self.functions.text(at)
    }

    fn named(&self, lines: Range<usize>) -> EnclosingFunction {
        EnclosingFunction { name: printable(self.text(lines.start)), lines }
    }

    fn head_around(&self, at: usize) -> Option<usize> {
        let functions = &self.functions;
        let head = |at: usize| self.heads.get(at).copied().flatten();
        if head(at + 1) == Some(at) {
            return Some(at);
        }
        // A blank line has no indentation, so the one above it decides.
        let anchor = functions.last_line_before(at + 1, |line| indentation(line).is_some()).unwrap_or(at);
        let scopes = functions.scopes_around(anchor).unwrap_or_default();
        let outermost = scopes.into_iter().rev().find(|scope| heads_a_function(functions.text(*scope)));
        // The first line of a method is in no function yet.
        let own = Some(at).filter(|at| is_first_line(functions.text(*at)));
        outermost.or(own).or_else(|| head(at))
    }
}

fn is_first_line(text: &[u8]) -> bool {
    heads_a_function(text) && (text.ends_with(b"{") || text.ends_with(b":"))
}

/// Returns the line after the last one of the function whose head is line `head`.
fn end_of(lines: &[&[u8]], head: usize, language: Language) -> usize {
    let outer = lines.get(head).and_then(|line| indentation(line)).unwrap_or(0);
    let is_outer = |line: &[u8]| indentation(line).is_some_and(|indent| indent <= outer);
    let mut after = lines.iter().enumerate().skip(head + 1).filter(|(_, line)| is_outer(line));
    let end = after.find_map(|(at, line)| {
        let text = line.trim_ascii();
        match language {
            Language::Braces => text.starts_with(b"}").then_some(at + 1),
            _ => (!is_closing(text)).then_some(at),
        }
    });
    let end = end.unwrap_or(lines.len());
    let is_behind = |line: &&&[u8]| match language {
        Language::Indentation => is_between_functions(line, outer),
        _ => line.trim_ascii().is_empty(),
    };
    end - lines.get(head + 1..end).unwrap_or_default().iter().rev().take_while(is_behind).count()
}

#[cfg(test)]
mod tests {
    use super::{EnclosingFunctions, enclosing_function, function_around_place};
    use crate::text::language::Language;
    use crate::text::line_diff::lines_of;

    fn around(path: &str, text: &str, at: usize) -> Option<(String, std::ops::Range<usize>)> {
        let found = enclosing_function(path.as_bytes(), text.as_bytes(), at)?;
        Some((found.name, found.lines))
    }

    #[test]
    fn a_method_is_found_in_its_class() {
        let text = "struct box {\n    int one() {\n        if (a) {\n            b();\n        }\n\n        \
                    return 1;\n    }\n    int two() { return 2; }\n};\n";
        let one = Some(("int one() {".to_owned(), 1..8));
        for at in [1, 2, 3, 5, 6] {
            assert_eq!(around("a.cpp", text, at), one, "{at}");
        }
        assert_eq!(around("a.cpp", text, 8), Some(("struct box {".to_owned(), 0..10)));
        assert_eq!(around("a.cpp", text, 0), Some(("struct box {".to_owned(), 0..10)));
        assert_eq!(around("a.txt", text, 3), None);
        assert_eq!(around("a.cpp", "", 3), None);
    }

    #[test]
    fn a_head_can_take_several_lines() {
        let text = "static int f(int a,\n             int b)\n{\n    return a;\n}\nint g(void) {\n    return 1;\n}\n";
        assert_eq!(around("a.c", text, 3), Some(("static int f(int a,".to_owned(), 0..5)));
        assert_eq!(around("a.c", text, 6), Some(("int g(void) {".to_owned(), 5..8)));
    }

    #[test]
    fn indentation_ends_a_function() {
        let text = "import os\n\nclass A(B):\n    def f(self):\n        return 1\n\n    def g(\n        self,\n    ):\n        \
                    return 2\n\nprint(1)\n";
        assert_eq!(around("a.py", text, 4), Some(("def f(self):".to_owned(), 3..5)));
        assert_eq!(around("a.py", text, 9), Some(("def g(".to_owned(), 6..10)));
        assert_eq!(around("a.py", text, 11), None);
    }

    #[test]
    fn lines_between_functions_are_in_neither() {
        let text = "def f():\n    return 1\n\n\n# About g.\n@mark(1)\ndef g():\n    return 2\n";
        for at in [2, 3, 4, 5] {
            assert_eq!(around("a.py", text, at), None, "{at}");
        }
        assert_eq!(around("a.py", text, 6), Some(("def g():".to_owned(), 6..8)));
        let shell = "f() {\n    a\n}\n\ng() {\n    b\n}\n";
        assert_eq!(around("a.sh", shell, 2), Some(("f() {".to_owned(), 0..3)));
    }

    #[test]
    fn a_place_without_lines_is_in_the_function_on_both_sides_of_it() {
        let text = "int f(void) {\n    a();\n}\nint g(void) {\n    b();\n}\n";
        let name = |place: std::ops::Range<usize>| {
            function_around_place(b"a.c", text.as_bytes(), &place).map(|function| function.name)
        };
        assert_eq!(name(0..0), None);
        assert_eq!(name(1..1).as_deref(), Some("int f(void) {"));
        assert_eq!(name(2..2).as_deref(), Some("int f(void) {"), "at the end of the body");
        assert_eq!(name(3..3), None);
        assert_eq!(name(3..4).as_deref(), Some("int g(void) {"));
        assert_eq!(name(6..6), None, "at the end of the file");
        assert_eq!(name(9..9), None);
    }

    fn all(path: &str, text: &str) -> Vec<std::ops::Range<usize>> {
        let lines = lines_of(text.as_bytes());
        EnclosingFunctions::new(&lines, Language::of(path.as_bytes(), b"")).all()
    }

    #[test]
    fn functions_are_listed_without_declarations() {
        let text = "int f(int a,\n      int b);\nint x = f(1, 2);\n\nint f(int a,\n      int b)\n{\n    g(a);\n}\n\n\
                    struct box {\n    int one(int a,\n            int b) {\n        f(a, b);\n    }\n    int size;\n    \
                    void two() {\n    }\n};\nvoid three() {\n}\n";
        assert_eq!(all("a.cpp", text), [4..9, 11..15, 16..18, 19..21]);
        let python = "import os\n\nclass A(B):\n    def f(self):\n        return 1\n\n    def g(self):\n        \
                      return 2\n\nf(1)\n\ndef h():\n    pass\n";
        assert_eq!(all("a.py", python), [3..5, 6..8, 11..13]);
        assert!(all("a.txt", text).is_empty());
    }
}
