//! The lines that enclose a place, in functions and outside of them.

use super::function::{
    SCOPE_SEARCH_LIMIT, first_word, indentation, is_closing, is_label, opens_more_than_it_closes,
};
use super::language::Language;

/// Returns the lines that enclose the place above line `at` (from 0), innermost first: those that are indented less
/// than everything between them and the place; in languages with braces also those that open a brace or a condition of
/// the preprocessor that is not closed above the place, and in other texts its `[section]`. They need not be heads of
/// functions: a `case` label, the first line of a table's row, a key, a namespace, an `#ifdef`.
pub(crate) fn enclosing_lines(lines: &[&[u8]], at: usize, language: Language) -> Vec<usize> {
    let above = lines.get(..at).unwrap_or_default();
    let Some(mut limit) = above.iter().rev().find_map(|line| indentation(line)) else { return Vec::new() };
    let mut closed = Closed::default();
    let mut found = Vec::new();
    let mut has_section = language != Language::NotCode;
    for (line_at, line) in above.iter().enumerate().rev().take(SCOPE_SEARCH_LIMIT) {
        let text = line.trim_ascii();
        let is_open = language == Language::Braces && closed.leaves_open(text);
        let indent = indentation(line).filter(|indent| *indent < limit && can_end_a_block(text, language));
        limit = indent.unwrap_or(limit);
        let is_section = !has_section && line.starts_with(b"[") && text.ends_with(b"]");
        has_section |= is_section;
        if is_section || ((is_open || indent.is_some()) && can_enclose(text, language)) {
            found.push(line_at);
        }
    }
    found
}

/// The numbers of braces and of preprocessor conditions that were closed between a line and the place below it.
#[derive(Default)]
struct Closed {
    braces: usize,
    conditions: usize,
}

impl Closed {
    /// Returns whether `text`, the next line upwards, opens something that is still open at the place.
    fn leaves_open(&mut self, text: &[u8]) -> bool {
        if let Some(directive) = text.strip_prefix(b"#") {
            return self.leaves_condition_open(directive.trim_ascii_start());
        }
        let count = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
        let (opened, closed) = (count(b'{'), count(b'}'));
        if !opens_more_than_it_closes(text) {
            self.braces += closed - opened;
            return false;
        }
        let is_open = opened - closed > self.braces;
        self.braces = self.braces.saturating_sub(opened - closed);
        is_open
    }

    fn leaves_condition_open(&mut self, directive: &[u8]) -> bool {
        if directive.starts_with(b"endif") {
            self.conditions += 1;
            return false;
        }
        let is_open = self.conditions == 0;
        if directive.starts_with(b"if") {
            self.conditions = self.conditions.saturating_sub(1);
            return is_open;
        }
        is_open && directive.starts_with(b"el")
    }
}

/// Returns whether a block above ends at a line that is indented less. Comments, labels and opening brackets alone are
/// often indented less than the block that they are in.
fn can_end_a_block(text: &[u8], language: Language) -> bool {
    let is_comment = text.starts_with(b"//") || text.starts_with(b"/*") || text.starts_with(b"*");
    let is_of_switch = matches!(first_word(text), b"case" | b"default");
    let is_plain_label = language == Language::Braces && is_label(text) && !is_of_switch;
    !is_comment && !is_plain_label && (has_word(text) || is_closing(text))
}

fn can_enclose(text: &[u8], language: Language) -> bool {
    let is_statement = language == Language::Braces && text.ends_with(b";");
    has_word(text) && !is_closing(text) && !is_statement
}

fn has_word(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::enclosing_lines;
    use crate::model::printable::printable;
    use crate::text::language::Language;
    use crate::text::line_diff::lines_of;

    fn around(text: &str, below: &str, language: Language) -> Vec<String> {
        let lines = lines_of(text.as_bytes());
        let at = text.lines().position(|line| line.trim() == below).unwrap() + 1;
        let text = |at: usize| printable(lines[at].trim_ascii());
        enclosing_lines(&lines, at, language).into_iter().map(text).collect()
    }

    #[test]
    fn a_place_in_a_case_is_enclosed_by_its_label() {
        let text = "int f(int op) {\n    switch (op) {\n        case A:\n            a();\n            break;\n        \
                    case B:\n        {\n            // About b.\n            b();\n        } break;\n    }\n}\n";
        assert_eq!(around(text, "b();", Language::Braces), ["case B:", "switch (op) {", "int f(int op) {"]);
        assert_eq!(around(text, "a();", Language::Braces), ["case A:", "switch (op) {", "int f(int op) {"]);
    }

    #[test]
    fn namespaces_and_conditions_enclose_without_indentation() {
        let text = "#if X\n#include <x>\n#endif\nnamespace a {\nint f(void) {\n    return 1;\n}\n} // namespace a\n\
                    namespace b {\n#ifdef Y\nint f(int x,\n      int y) {\nend:\n    if (x) {\n        g();\n    } else {\n        \
                    h();\n    }\n    z();\n}\n#endif\n}\n";
        assert_eq!(
            around(text, "z();", Language::Braces),
            ["int y) {", "int f(int x,", "#ifdef Y", "namespace b {"]
        );
    }

    #[test]
    fn rows_and_keys_enclose_in_any_file() {
        let table =
            "static row t[] = {\n    { \"one\",\n      1,\n    },\n    { \"two\",\n      2,\n    },\n};\n";
        assert_eq!(around(table, "2,", Language::Braces), ["{ \"two\",", "static row t[] = {"]);
        let yaml = "one:\n  steps:\n    - a\ntwo:\n  steps:\n    - b\n";
        assert_eq!(around(yaml, "- b", Language::NotCode), ["steps:", "two:"]);
        let toml = "[one]\na = 1\n[two]\na = [\n  1,\n]\nb = 2\n";
        assert_eq!(around(toml, "b = 2", Language::NotCode), ["[two]"]);
        assert_eq!(around(toml, "1,", Language::NotCode), ["a = [", "[two]"]);
        let python =
            "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2\n";
        assert_eq!(around(python, "return 2", Language::Indentation), ["def f(self):", "class B:"]);
    }
}
