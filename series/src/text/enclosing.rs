//! The function around a place, from its head to its end.

use std::ops::Range;

use super::function::{FunctionMap, heads_a_function, indentation};
use super::language::Language;
use super::line_diff::lines_of;
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
    let language = Language::of(path, text);
    let functions = FunctionMap::new(&lines, language);
    let at = at.min(lines.len().checked_sub(1)?);
    let head = head_around(&functions, at)?;
    let found = head..end_of(&lines, head, language);
    let name = printable(functions.text(head));
    found.contains(&at).then_some(EnclosingFunction { name, lines: found })
}

fn head_around(functions: &FunctionMap<'_>, at: usize) -> Option<usize> {
    if !functions.has_functions() {
        return None;
    }
    let heads = functions.enclosing_heads();
    let head = |at: usize| heads.get(at).copied().flatten();
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

fn is_first_line(text: &[u8]) -> bool {
    heads_a_function(text) && (text.ends_with(b"{") || text.ends_with(b":"))
}

/// Returns the line after the last one of the function whose head is line `head`.
fn end_of(lines: &[&[u8]], head: usize, language: Language) -> usize {
    let outer = lines.get(head).and_then(|line| indentation(line)).unwrap_or(0);
    let is_outer = |line: &[u8]| indentation(line).is_some_and(|indent| indent <= outer);
    let mut after = lines.iter().enumerate().skip(head + 1).filter(|(_, line)| is_outer(line));
    let end = after.find_map(|(at, line)| {
        let closes = line.trim_ascii_start().starts_with(b"}");
        match language {
            Language::Braces => closes.then_some(at + 1),
            // The bracket that ends a list of parameters is not the end of the function.
            _ => (!line.trim_ascii_start().starts_with(b")")).then_some(at),
        }
    });
    let end = end.unwrap_or(lines.len());
    let is_blank = |line: &&&[u8]| line.trim_ascii().is_empty();
    end - lines.get(head + 1..end).unwrap_or_default().iter().rev().take_while(is_blank).count()
}

#[cfg(test)]
mod tests {
    use super::enclosing_function;

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
}
