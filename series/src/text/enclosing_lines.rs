//! The lines that enclose others, in functions and outside of them.

use std::cmp::Reverse;

use super::brackets::{Balance, BracketCounter};
use super::common_words::says_something;
use super::language::Language;
use super::line_shape::{first_word, indentation, is_closing, is_label};

/// The lines of a text that enclose others: a `case` label, the first line of a table's row, a key, a namespace, the
/// head of a macro, an `#ifdef`.
///
/// A line encloses those below it that are indented more, up to the first that is not. In languages with braces, a line
/// that opens a brace also encloses the others up to the closing brace, and a condition of the preprocessor those up to
/// its end; in a text that is not code, so does a `[section]` up to the next one.
pub(crate) struct EnclosingLines {
    blocks: Vec<Block>,
    /// At `n`: the blocks that are open above line `n` (from 0).
    open: Vec<Open>,
}

/// The innermost open block, and that of the innermost open condition of the preprocessor.
#[derive(Clone, Copy, Default)]
struct Open {
    block: Option<usize>,
    condition: Option<usize>,
}

/// The lines that one line encloses. Each is linked to the one around it, and stays when it is closed.
#[derive(Clone, Copy)]
struct Block {
    /// The line that encloses them, from 0.
    line: usize,
    indent: usize,
    /// Whether lines that are not indented more are enclosed too.
    has_end: bool,
    outer: Option<usize>,
}

impl EnclosingLines {
    pub fn new(lines: &[&[u8]], language: Language) -> EnclosingLines {
        let mut reader = Reader::new(language);
        let mut open = vec![reader.open];
        for (at, line) in lines.iter().enumerate() {
            reader.read(at, line);
            open.push(reader.open);
        }
        EnclosingLines { blocks: reader.blocks, open }
    }

    /// Returns the lines that enclose a line with the indentation `indent` that is put above line `at` (from 0),
    /// innermost first.
    pub fn around(&self, at: usize, indent: usize) -> Vec<usize> {
        let Open { block, condition } = self.open.get(at).copied().unwrap_or_default();
        let blocks = outwards(&self.blocks, block).chain(outwards(&self.blocks, condition));
        let enclosing = blocks.filter(|block| block.has_end || block.indent < indent);
        let mut lines: Vec<usize> = enclosing.map(|block| block.line).collect();
        lines.sort_unstable_by_key(|line| Reverse(*line));
        lines
    }
}

/// Iterates over a block and those around it.
fn outwards(blocks: &[Block], innermost: Option<usize>) -> impl Iterator<Item = &Block> {
    let first = innermost.and_then(|at| blocks.get(at));
    std::iter::successors(first, move |block| blocks.get(block.outer?))
}

/// A condition of the preprocessor that is open.
#[derive(Clone, Copy)]
struct Condition {
    /// The blocks that were open above it.
    before: Open,
    /// The block of its first line.
    block: usize,
}

/// Reads a text from the top, line by line.
struct Reader {
    language: Language,
    brackets: BracketCounter,
    blocks: Vec<Block>,
    open: Open,
    conditions: Vec<Condition>,
    /// The blocks that are open around the current macro.
    around_macro: Option<Open>,
    /// The last label of a `switch`.
    label: Option<usize>,
}

impl Reader {
    fn new(language: Language) -> Reader {
        Reader {
            language,
            brackets: BracketCounter::default(),
            blocks: Vec::new(),
            open: Open::default(),
            conditions: Vec::new(),
            around_macro: None,
            label: None,
        }
    }

    fn read(&mut self, at: usize, line: &[u8]) {
        let text = line.trim_ascii();
        if self.brackets.is_within() {
            self.brackets.count(text);
        } else if self.language == Language::Braces && text.starts_with(b"#") {
            self.read_directive(at, text);
        } else if self.language == Language::NotCode && is_section(line) {
            self.open.block = Some(self.add(at, None));
        } else {
            self.read_line(at, line);
        }
        if !text.ends_with(b"\\")
            && let Some(around) = self.around_macro.take()
        {
            self.open = around;
        }
    }

    /// Reads a line of the preprocessor. Each branch of a condition begins with the blocks that were open above the
    /// condition; those that the last branch leaves open stay open.
    fn read_directive(&mut self, at: usize, text: &[u8]) {
        let directive = text.get(1..).unwrap_or_default().trim_ascii_start();
        match first_word(directive) {
            b"if" | b"ifdef" | b"ifndef" => {
                let before = self.open;
                let block = self.add(at, before.condition);
                self.conditions.push(Condition { before, block });
                self.open.condition = Some(block);
            }
            b"elif" | b"elifdef" | b"elifndef" | b"else" => {
                let Some(&Condition { before, block }) = self.conditions.last() else { return };
                let own = if says_something(directive) { self.add(at, Some(block)) } else { block };
                self.open = Open { block: before.block, condition: Some(own) };
            }
            b"endif" => {
                let Some(condition) = self.conditions.pop() else { return };
                self.open.condition = condition.before.condition;
            }
            b"define" if text.ends_with(b"\\") => {
                let around = *self.around_macro.get_or_insert(self.open);
                self.open.block = Some(self.add(at, around.block));
            }
            _ => {}
        }
    }

    fn read_line(&mut self, at: usize, line: &[u8]) {
        let text = line.trim_ascii();
        let has_braces = self.language == Language::Braces;
        let balance = if has_braces { self.brackets.count(text) } else { Balance::default() };
        let is_comment = has_braces && (text.starts_with(b"//") || text.starts_with(b"/*"));
        let Some(indent) = block_indentation(line, self.language).filter(|_| !is_comment) else { return };
        let is_label = has_braces && is_of_switch(text);
        let joins_label = is_label && self.label.is_some_and(|label| label + 1 == at);
        let closes_brace = has_braces && text.starts_with(b"}");
        let continues = !closes_brace && (is_closing(text) || balance.parentheses < 0 || text == b"{");
        let ends_equals = !continues && !joins_label;
        self.leave_while(|block| {
            block.indent > indent || (ends_equals && block.indent == indent && !block.has_end)
        });
        for _ in balance.braces..0 {
            self.leave_if(|block| block.has_end && (!closes_brace || block.indent == indent));
        }
        if is_label {
            self.label = Some(at);
        }
        let is_statement = has_braces && text.ends_with(b";");
        let has_end = balance.braces > 0;
        if (is_label || says_something(text)) && !continues && !is_closing(text) && !is_statement {
            let outer = self.open.block;
            self.open.block = Some(self.push(Block { line: at, indent, has_end, outer }));
        } else if has_end {
            // The brace below a head, or behind the last of its lines.
            let is_head = |block: &Block| !block.has_end && (block.indent == indent || text != b"{");
            if let Some(head) = self.innermost().filter(|block| continues && is_head(block)) {
                self.open.block = Some(self.push(Block { has_end, ..head }));
            }
        }
    }

    fn innermost(&self) -> Option<Block> {
        self.blocks.get(self.open.block?).copied()
    }

    fn leave_if(&mut self, is_left: impl Fn(&Block) -> bool) {
        if let Some(block) = self.innermost().filter(is_left) {
            self.open.block = block.outer;
        }
    }

    fn leave_while(&mut self, is_left: impl Fn(&Block) -> bool) {
        while let Some(block) = self.innermost().filter(&is_left) {
            self.open.block = block.outer;
        }
    }

    /// Adds the block of line `at`, whose end does not depend on indentation.
    fn add(&mut self, at: usize, outer: Option<usize>) -> usize {
        self.push(Block { line: at, indent: 0, has_end: true, outer })
    }

    fn push(&mut self, block: Block) -> usize {
        self.blocks.push(block);
        self.blocks.len() - 1
    }
}

/// Returns the indentation of `line`, which tells the blocks that it is in; `None` for a label, which is often indented
/// less than they are. Those of a `switch` are not.
pub(crate) fn block_indentation(line: &[u8], language: Language) -> Option<usize> {
    let text = line.trim_ascii();
    let is_plain_label = language == Language::Braces && is_label(text) && !is_of_switch(text);
    indentation(line).filter(|_| !is_plain_label)
}

fn is_of_switch(text: &[u8]) -> bool {
    matches!(first_word(text), b"case" | b"default")
}

/// Returns whether `line` begins a section of an .ini or .toml file.
fn is_section(line: &[u8]) -> bool {
    let name = line.iter().find(|byte| **byte != b'[');
    line.starts_with(b"[")
        && name.is_some_and(u8::is_ascii_alphabetic)
        && line.trim_ascii_end().ends_with(b"]")
}

#[cfg(test)]
mod tests {
    use super::EnclosingLines;
    use crate::model::printable::printable;
    use crate::text::language::Language;
    use crate::text::line_diff::lines_of;
    use crate::text::line_shape::indentation;

    /// Returns the lines that enclose one that is added below the line `above`, and is indented as much.
    fn around(text: &str, above: &str, language: Language) -> Vec<String> {
        let lines = lines_of(text.as_bytes());
        let at = text.lines().position(|line| line.trim() == above).unwrap();
        let enclosing = EnclosingLines::new(&lines, language).around(at + 1, indentation(lines[at]).unwrap());
        enclosing.into_iter().map(|at| printable(lines[at].trim_ascii())).collect()
    }

    #[test]
    fn a_place_in_a_case_is_enclosed_by_its_labels() {
        let text = "int f(int op) {\n    switch (op) {\n        case A:\n            a();\n            break;\n        \
                    case B:\n        case C:\n        {\n            // About c.\n            c();\n        } break;\n        \
                    default:\n            {\n                d();\n            }\n    }\n    e();\n}\n";
        let outer = ["switch (op) {", "int f(int op) {"];
        let in_switch = |labels: &[&'static str]| [labels, &outer[..]].concat();
        assert_eq!(around(text, "a();", Language::Braces), in_switch(&["case A:"]));
        assert_eq!(around(text, "c();", Language::Braces), in_switch(&["case C:", "case B:"]));
        assert_eq!(around(text, "d();", Language::Braces), in_switch(&["default:"]));
        assert_eq!(around(text, "case A:", Language::Braces), outer);
        assert_eq!(around(text, "e();", Language::Braces), ["int f(int op) {"]);
    }

    #[test]
    fn namespaces_and_conditions_enclose_without_indentation() {
        let text = "#if X\n#include <x>\n#endif\nnamespace a {\nint f(void) {\n    return 1;\n}\n} // namespace a\n\
                    namespace b\n{\n#ifdef Y\nint f(int x,\n      int y) {\nend:\n    if (x) {\n        g();\n    } else {\n        \
                    h();\n    }\n    z();\n}\n#endif\nint last;\n}\nint after;\n";
        let outer = ["int f(int x,", "#ifdef Y", "namespace b"];
        let in_if = [&["if (x) {"][..], &outer[..]].concat();
        assert_eq!(around(text, "g();", Language::Braces), in_if);
        assert_eq!(around(text, "h();", Language::Braces), in_if);
        assert_eq!(around(text, "z();", Language::Braces), outer);
        assert_eq!(around(text, "int last;", Language::Braces), ["namespace b"]);
        assert_eq!(around(text, "int after;", Language::Braces), [""; 0]);
    }

    /// Each branch of a condition may open a brace that is closed once, a macro one that is never closed.
    #[test]
    fn braces_that_are_not_in_pairs_enclose_nothing_else() {
        let text = "int f(int x) {\n#if A\n    if (x == '{') {\n#elif B\n    if (x == 1) {\n#else\n    if (x == 2) {\n#endif\n        \
                    a();\n    }\n    b();\n}\n#define TWO(x) \\\n    do { \\\n        c(x); \\\n    g({ x\nvoid g() {\n    /* {\n       \
                    { */\n    const char * s = R\"({\n})\";\n    d();\n}\nint h;\n";
        assert_eq!(around(text, "a();", Language::Braces), ["if (x == 2) {", "int f(int x) {"]);
        assert_eq!(around(text, "b();", Language::Braces), ["int f(int x) {"]);
        assert_eq!(around(text, "c(x); \\", Language::Braces), ["#define TWO(x) \\"]);
        assert_eq!(around(text, "d();", Language::Braces), ["void g() {"]);
        assert_eq!(around(text, "int h;", Language::Braces), [""; 0]);
    }

    #[test]
    fn rows_and_keys_enclose_in_any_file() {
        let table = "static row t[] = {\n    { \"one\",\n      1 },\n    { \"two\",\n      2,\n    },\n    { 3, 4 },\n};\nint n;\n";
        assert_eq!(around(table, "2,", Language::Braces), ["{ \"two\",", "static row t[] = {"]);
        assert_eq!(around(table, "{ 3, 4 },", Language::Braces), ["static row t[] = {"]);
        assert_eq!(around(table, "int n;", Language::Braces), [""; 0]);
        let yaml = "one:\n  steps:\n    - a\ntwo:\n  steps:\n    - b\n";
        assert_eq!(around(yaml, "- b", Language::NotCode), ["steps:", "two:"]);
        let toml = "[one]\na = 1\n[two]\na = [\n  1,\n]\nb = 2\n";
        assert_eq!(around(toml, "b = 2", Language::NotCode), ["[two]"]);
        assert_eq!(around(toml, "1,", Language::NotCode), ["a = [", "[two]"]);
        let python = "class A:\n    def f(\n        self,\n    ):\n        if x:\n            a()\n        else:\n            b()\n";
        assert_eq!(around(python, "a()", Language::Indentation), ["if x:", "def f(", "class A:"]);
        assert_eq!(around(python, "b()", Language::Indentation), ["def f(", "class A:"]);
    }
}
