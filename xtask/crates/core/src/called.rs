//! The program and the global arguments of a run, which the commands that it prints repeat: they can be typed as they
//! are, and name the same project and variant.

use serde_json::Value;
use shlex::Shlex;

use super::next_command::quoted;

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

/// Keys of JSON output whose strings are content: of patches, commits and files. All other strings are
/// completed.
const KEYS_OF_CONTENT: [&str; 7] =
    ["author", "difference", "hunks", "range_diff", "script", "subject", "text"];

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
    /// Returns `text` with this run's program in every `cargo xtask` command, and with the arguments that the command
    /// lacks.
    pub fn complete(&self, text: &str) -> String {
        if self.program == Program::CargoXtask && self.root.is_none() && self.variant.is_none() {
            return text.to_string();
        }
        text.split_inclusive('\n').map(|line| self.complete_line(line)).collect()
    }

    /// Completes the strings of JSON output, except those that are content.
    pub fn complete_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.complete(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.complete_json(value)),
            Value::Object(fields) => {
                let fields = fields.iter_mut().filter(|(key, _)| !KEYS_OF_CONTENT.contains(&key.as_str()));
                fields.for_each(|(_, value)| self.complete_json(value));
            }
            _ => {}
        }
    }

    /// Returns `text` with this run's program in every command, and without its arguments.
    pub fn named(&self, text: &str) -> String {
        Called { program: self.program, ..Called::default() }.complete(text)
    }

    fn complete_line(&self, line: &str) -> String {
        // Lines of a patch are not changed.
        if line.trim_start().starts_with(['+', '-', '|']) {
            return line.to_string();
        }
        let mut parts = line.split(Program::CargoXtask.words());
        let mut text = parts.next().unwrap_or_default().to_string();
        for part in parts {
            text += self.program.words();
            text += &self.complete_command(part);
        }
        text
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
        let root = root.map(|root| format!(" --root {}", quoted(root))).unwrap_or_default();
        let takes = self.takes_variant.iter().find(|takes| takes.command == name);
        let takes = takes.filter(|takes| !has(&words, "--help") && !takes.is_named(&words));
        let variant = self.variant.as_ref().zip(takes).map(|(variant, takes)| takes.naming(variant));
        format!(" {name}{root}{}{arguments}", variant.unwrap_or_default())
    }
}

impl TakesVariant {
    /// Returns the words that name `variant`.
    fn naming(&self, variant: &str) -> String {
        let flag = if self.is_positional { "" } else { "--variant " };
        format!(" {flag}{}", quoted(variant))
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
            ("  + cargo xtask lint\n", "  + cargo xtask lint\n"),
        ] {
            assert_eq!(called().complete(printed), completed);
        }
        assert_eq!(Called::default().complete("cargo xtask lint\n"), "cargo xtask lint\n");
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
            assert_eq!(called().complete(printed), completed);
        }
    }

    #[test]
    fn the_commands_of_json_answers_are_completed_and_texts_of_patches_are_not() {
        let answer = |lock: &str| {
            serde_json::json!({
                "checks": [{ "name": "lint", "error": format!("error: no\n  next: {lock}") }],
                "error": { "what": "no", "hints": [lock] },
                "findings": [{ "hint": lock, "line": 1 }],
                "next": lock,
                "patches": [{
                    "hunks": [{ "lines": ["cargo xtask lock"] }],
                    "range_diff": "cargo xtask lock",
                    "subject": "cargo xtask lock",
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
            ("+ cargo xtask lint\n", "+ cargo xtask lint\n"),
        ] {
            assert_eq!(without.complete(printed), completed);
        }
        let with_root = installed(Some("w"));
        assert_eq!(with_root.complete("cargo xtask edit"), "espalier edit --root w mine");
        assert_eq!(with_root.named("cargo xtask edit"), "espalier edit");
        assert_eq!(Called::default().named("cargo xtask edit"), "cargo xtask edit");
        let mut answer = serde_json::json!({ "next": "cargo xtask lock", "subject": "cargo xtask lock" });
        without.complete_json(&mut answer);
        assert_eq!(answer, serde_json::json!({ "next": "espalier lock", "subject": "cargo xtask lock" }));
    }
}
