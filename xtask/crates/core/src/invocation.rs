//! The program and the global arguments of a run, which the commands that it prints repeat: they can be typed as they
//! are, and name the same project and variant.

use std::ops::Range;

use serde_json::Value;
use shlex::Shlex;

use super::next_command::{flag_with, quoted};

/// The program that runs: two have the same commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// `cargo xtask`, in a clone of Espalier. All texts in the sources name this one.
    #[default]
    CargoXtask,
    /// `espalier`, installed by `cargo install`.
    Espalier,
}

impl Program {
    /// Returns the words that a user types to start it.
    pub fn words(self) -> &'static str {
        match self {
            Program::CargoXtask => "cargo xtask",
            Program::Espalier => "espalier",
        }
    }
}

/// Keys of JSON output whose strings are hints. All other strings may be content, of patches, commits and files.
const KEYS_OF_HINTS: [&str; 3] = ["hint", "hints", "next"];

/// Keys of JSON output whose strings are content only: no line of theirs is a hint, whatever it begins with.
const KEYS_OF_CONTENT: [&str; 11] = [
    "author",
    "difference",
    "edits",
    "from",
    "hunks",
    "message",
    "range_diff",
    "related",
    "script",
    "subject",
    "text",
];

/// The beginning of a line that is a hint.
const HINT: &str = "next: ";

/// The program and the arguments of this run, which every printed command has to repeat.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// The program that runs.
    pub program: Program,
    /// `--root`, as typed.
    pub root: Option<String>,
    /// The variant, if one was named.
    pub variant: Option<String>,
    /// The commands that take a variant.
    pub takes_variant: Vec<TakesVariant>,
}

/// A command that takes a variant.
#[derive(Clone, Debug)]
pub struct TakesVariant {
    /// Its name.
    pub command: String,
    /// Whether it takes the variant by position, and not with `--variant`.
    pub is_positional: bool,
    /// Its flags that are followed by a value.
    pub flags_with_value: Vec<String>,
}

impl Called {
    /// Returns `text` with its hints completed: the lines that begin with `next: `. Other lines may have content, in
    /// which nothing may change, even if it looks like a command.
    pub fn complete(&self, text: &str) -> String {
        if self.adds_nothing() {
            return text.to_string();
        }
        let completed = |line: &str| match line.trim_start().starts_with(HINT) {
            true => self.complete_hint(line),
            false => line.to_string(),
        };
        text.split_inclusive('\n').map(completed).collect()
    }

    /// Returns `hint`, a text that this tool wrote, with this run's program in every `cargo xtask` command, and with
    /// the arguments that the command lacks. Quoted words are content.
    pub fn complete_hint(&self, hint: &str) -> String {
        if self.adds_nothing() {
            return hint.to_string();
        }
        let (mut text, mut rest) = (String::new(), hint);
        while let Some(at) = find_command(rest) {
            let (before, command) = rest.split_at(at);
            let command = command.strip_prefix(Program::CargoXtask.words()).unwrap_or_default();
            let end = find_command(command).unwrap_or(command.len());
            let (command, after) = command.split_at(end);
            text += before;
            text += self.program.words();
            text += &self.complete_command(command);
            rest = after;
        }
        text + rest
    }

    /// Completes the strings of JSON output, except those that are content.
    pub fn complete_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.complete(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.complete_json(value)),
            Value::Object(fields) => {
                let fields = fields.iter_mut().filter(|(key, _)| !KEYS_OF_CONTENT.contains(&key.as_str()));
                for (key, value) in fields {
                    match KEYS_OF_HINTS.contains(&key.as_str()) {
                        true => self.complete_json_hint(value),
                        false => self.complete_json(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Completes a hint in JSON output: a string, or several.
    fn complete_json_hint(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.complete_hint(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.complete_json_hint(value)),
            other => self.complete_json(other),
        }
    }

    /// Returns the same run without its arguments: its program alone.
    #[must_use]
    pub fn program_only(&self) -> Called {
        Called { program: self.program, ..Called::default() }
    }

    fn adds_nothing(&self) -> bool {
        self.program == Program::CargoXtask && self.root.is_none() && self.variant.is_none()
    }

    /// `rest` is the text after `cargo xtask`, up to the next `cargo xtask`.
    fn complete_command(&self, rest: &str) -> String {
        let Some(command) = rest.strip_prefix(' ') else { return rest.to_string() };
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let (name, arguments) =
            command.split_at(command.find(|letter| !is_name(letter)).unwrap_or(command.len()));
        if name.is_empty() || name.starts_with('-') {
            return rest.to_string();
        }
        let end = ["&&", "`", "    #"].iter().filter_map(|end| arguments.find(end)).min();
        let arguments_here = arguments.get(..end.unwrap_or(arguments.len())).unwrap_or(arguments);
        let words: Vec<String> = Shlex::new(arguments_here).collect();
        let root = self.root.as_ref().filter(|_| !has(&words, "--root"));
        let root = root.map(|root| format!(" {}", flag_with("--root", root))).unwrap_or_default();
        let takes = self.takes_variant.iter().find(|takes| takes.command == name);
        let takes = takes.filter(|takes| !has(&words, "--help") && !takes.is_named(&words));
        let variant = self.variant.as_ref().zip(takes).map(|(variant, takes)| takes.naming(variant));
        format!(" {name}{root}{}{arguments}", variant.unwrap_or_default())
    }
}

impl TakesVariant {
    /// Returns the words that name `variant`.
    fn naming(&self, variant: &str) -> String {
        let named = || flag_with("--variant", variant);
        format!(" {}", if self.is_positional { quoted(variant) } else { named() })
    }

    /// Returns whether a command with `arguments` names a variant.
    fn is_named(&self, arguments: &[String]) -> bool {
        if !self.is_positional {
            return has(arguments, "--variant");
        }
        let mut arguments = arguments.iter().take_while(|word| *word != "--");
        while let Some(word) = arguments.next() {
            if !word.starts_with('-') {
                return true;
            }
            if self.flags_with_value.iter().any(|flag| flag == word) {
                arguments.next();
            }
        }
        false
    }
}

/// Returns the position of the first `cargo xtask` in `hint` that is not in a quoted word.
fn find_command(hint: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let rest = hint.get(from..)?;
        let at = rest.find(Program::CargoXtask.words())?;
        match quoted_word(rest).filter(|word| word.start < at) {
            Some(word) => from += word.end,
            None => return Some(from + at),
        }
    }
}

/// Returns the place of the first word in `text` that is in single quotes, as [`quoted`] writes it. An apostrophe
/// within a word of prose does not begin one.
fn quoted_word(text: &str) -> Option<Range<usize>> {
    let begins = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|letter| letter.is_whitespace() || "=:($".contains(letter))
    };
    let start = text.match_indices('\'').map(|(at, _)| at).find(begins)?;
    let mut end = start + 1;
    loop {
        end += text[end..].find('\'').map_or(text.len() - end, |at| at + 1);
        // `'\''` is a quote in the word.
        if !text[end..].starts_with("\\''") {
            return Some(start..end);
        }
        end += 3;
    }
}

fn has(arguments: &[String], flag: &str) -> bool {
    let mut flags = arguments.iter().take_while(|word| *word != "--");
    flags.any(|word| word.split('=').next() == Some(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called() -> Called {
        let takes = |command: &str, is_positional| TakesVariant {
            command: command.to_string(),
            is_positional,
            flags_with_value: vec!["--set".to_string(), "--root".to_string()],
        };
        let takes_variant = vec![
            takes("lint", false),
            takes("rebase", false),
            takes("init", false),
            takes("edit", true),
            takes("trailers", true),
        ];
        let (root, variant) = (Some("../w p".into()), Some("mine".into()));
        Called { program: Program::CargoXtask, root, variant, takes_variant }
    }

    #[test]
    fn every_command_gets_what_it_lacks() {
        let same = "cargo xtask lint --root ../other --variant other";
        for (printed, completed) in [
            ("next: cargo xtask lock    # x", "next: cargo xtask lock --root '../w p'    # x"),
            ("cargo xtask lint --long", "cargo xtask lint --root '../w p' --variant mine --long"),
            ("cargo xtask run -- --variant x", "cargo xtask run --root '../w p' -- --variant x"),
            (
                "see `cargo xtask rebase`, mkdir DIR && cargo xtask init --root DIR",
                "see `cargo xtask rebase --root '../w p' --variant mine`, mkdir DIR && cargo xtask init --variant mine \
                 --root DIR",
            ),
            ("cargo xtask init --help", "cargo xtask init --root '../w p' --help"),
            (same, same),
            ("cargo xtask --help", "cargo xtask --help"),
            (
                r"git add 'cargo xtask lint' 'it'\''s cargo xtask lock' && cargo xtask lock",
                r"git add 'cargo xtask lint' 'it'\''s cargo xtask lock' && cargo xtask lock --root '../w p'",
            ),
            ("if it's gone: cargo xtask lock", "if it's gone: cargo xtask lock --root '../w p'"),
            (
                "cargo xtask trailers --set 'Why: cargo xtask lint' && cargo xtask lock",
                "cargo xtask trailers --root '../w p' mine --set 'Why: cargo xtask lint' && cargo xtask lock --root \
                 '../w p'",
            ),
        ] {
            assert_eq!(called().complete_hint(printed), completed);
        }
        assert_eq!(Called::default().complete_hint("cargo xtask lint"), "cargo xtask lint");
        let dashed = Called { root: Some("-p".into()), ..Called::default() };
        assert_eq!(dashed.complete_hint("cargo xtask lock"), "cargo xtask lock --root=-p");
        assert_eq!(dashed.complete_hint("cargo xtask lock --root=-q"), "cargo xtask lock --root=-q");
    }

    /// A subject, a line of a patch or the output of git may look like a command.
    #[test]
    fn only_hints_are_completed() {
        for content in [
            "  new      0001 (doc: run cargo xtask lint && cargo xtask apply) -> 0001-doc.patch",
            "doc: run `cargo xtask lint` first\n",
            "+    next: cargo xtask lint",
            "cargo xtask lint",
        ] {
            assert_eq!(called().complete(content), content);
        }
        let text = "error: no (run cargo xtask lint)\n  next: cargo xtask lock\nnext: `cargo xtask edit`\n";
        let completed = "error: no (run cargo xtask lint)\n  next: cargo xtask lock --root '../w p'\nnext: `cargo \
                         xtask edit --root '../w p' mine`\n";
        assert_eq!(called().complete(text), completed);
    }

    #[test]
    fn a_variant_that_is_taken_by_position_is_named_once() {
        for (printed, completed) in [
            ("cargo xtask edit    # fix it", "cargo xtask edit --root '../w p' mine    # fix it"),
            ("`cargo xtask edit` and `export`", "`cargo xtask edit --root '../w p' mine` and `export`"),
            ("cargo xtask edit --discard", "cargo xtask edit --root '../w p' mine --discard"),
            ("cargo xtask edit theirs --discard", "cargo xtask edit --root '../w p' theirs --discard"),
            (
                "cargo xtask edit --root ../x --discard theirs",
                "cargo xtask edit --root ../x --discard theirs",
            ),
            ("cargo xtask edit --root ../x", "cargo xtask edit mine --root ../x"),
            ("cargo xtask edit --help", "cargo xtask edit --root '../w p' --help"),
            (
                r"cargo xtask trailers --set 'Why: it'\''s new'",
                r"cargo xtask trailers --root '../w p' mine --set 'Why: it'\''s new'",
            ),
            (
                "cargo xtask trailers --set 'Why: new' theirs",
                "cargo xtask trailers --root '../w p' --set 'Why: new' theirs",
            ),
        ] {
            assert_eq!(called().complete_hint(printed), completed);
        }
    }

    #[test]
    fn the_commands_of_json_answers_are_completed_and_texts_of_patches_are_not() {
        let answer = |lock: &str| {
            serde_json::json!({
                "checks": [{ "name": "lint", "error": format!("error: no\n  next: {lock}") }],
                "error": { "what": "no", "hints": [lock] },
                "findings": [{ "hint": lock, "line": 1 }],
                "message": "next: cargo xtask lock",
                "next": [lock],
                "patches": [{
                    "file": "patches/cargo xtask lock",
                    "from": "0001 (next: cargo xtask lock)",
                    "hunks": [{ "lines": ["next: cargo xtask lock"] }],
                    "next": lock,
                    "range_diff": "next: cargo xtask lock",
                    "subject": "next: cargo xtask lock",
                }],
            })
        };
        let (mut completed, expected) =
            (answer("cargo xtask lock"), answer("cargo xtask lock --root '../w p'"));
        called().complete_json(&mut completed);
        assert_eq!(completed, expected);
    }

    #[test]
    fn the_commands_of_an_installed_program_name_it() {
        let installed = |root: Option<&str>| Called {
            program: Program::Espalier,
            root: root.map(String::from),
            ..called()
        };
        let without = Called { variant: None, ..installed(None) };
        for (printed, completed) in [
            ("next: cargo xtask lock    # x", "next: espalier lock    # x"),
            ("see `cargo xtask --help` of `cargo xtask`", "see `espalier --help` of `espalier`"),
            ("CXX=/cxx cargo xtask build && cargo xtask run", "CXX=/cxx espalier build && espalier run"),
        ] {
            assert_eq!(without.complete_hint(printed), completed);
        }
        assert_eq!(without.complete("+ cargo xtask lint\n"), "+ cargo xtask lint\n");
        let with_root = installed(Some("w"));
        assert_eq!(with_root.complete_hint("cargo xtask edit"), "espalier edit --root w mine");
        assert_eq!(with_root.program_only().complete_hint("cargo xtask edit"), "espalier edit");
        assert_eq!(Called::default().complete_hint("cargo xtask edit"), "cargo xtask edit");
        let mut answer = serde_json::json!({ "next": "cargo xtask lock", "subject": "cargo xtask lock" });
        without.complete_json(&mut answer);
        assert_eq!(answer, serde_json::json!({ "next": "espalier lock", "subject": "cargo xtask lock" }));
    }
}
