//! Global arguments of a run, repeated in the commands that it prints so that they name the same project and variant.

use serde_json::Value;

use super::next_command::quoted;

/// Prefix of every printed command.
const PROGRAM: &str = "cargo xtask ";

/// Keys of JSON output whose strings may contain commands.
const KEYS_WITH_COMMANDS: [&str; 6] = ["command", "details", "hints", "mend", "next", "what"];

/// Arguments of this run that every printed command has to repeat.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// `--root`, as typed.
    pub root: Option<String>,
    /// The variant, if one was named.
    pub variant: Option<String>,
    /// The commands that take `--variant`.
    pub takes_variant: Vec<String>,
}

impl Called {
    /// Returns `text` with the arguments added to every `cargo xtask` command in it that lacks them.
    pub fn complete(&self, text: &str) -> String {
        if self.root.is_none() && self.variant.is_none() {
            return text.to_string();
        }
        text.split_inclusive('\n').map(|line| self.complete_line(line)).collect()
    }

    /// Does the same for the strings of JSON output that may contain commands. The content of patches is left as it is.
    pub fn complete_json(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match KEYS_WITH_COMMANDS.contains(&key.as_str()) {
                        true => self.complete_texts(value),
                        false => self.complete_json(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.complete_json(value)),
            _ => {}
        }
    }

    fn complete_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.complete(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.complete_texts(value)),
            _ => self.complete_json(value),
        }
    }

    fn complete_line(&self, line: &str) -> String {
        // Lines of a patch are not changed.
        if line.trim_start().starts_with(['+', '-', '|']) {
            return line.to_string();
        }
        let mut parts = line.split(PROGRAM);
        let mut text = parts.next().unwrap_or_default().to_string();
        for part in parts {
            text += PROGRAM;
            text += &self.complete_command(part);
        }
        text
    }

    /// `rest` is the text after `cargo xtask `, up to the next `cargo xtask `.
    fn complete_command(&self, rest: &str) -> String {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let (name, arguments) = rest.split_at(rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()));
        if name.is_empty() || name.starts_with('-') {
            return rest.to_string();
        }
        let end = ["&&", "`", "    #"].iter().filter_map(|end| arguments.find(end)).min();
        let arguments_here = arguments.get(..end.unwrap_or(arguments.len())).unwrap_or(arguments);
        let has = |flag: &str| arguments_here.split_whitespace().any(|word| word == flag);
        let takes_variant = self.takes_variant.iter().any(|known| known == name) && !has("--help");
        let root = self.root.as_ref().filter(|_| !has("--root")).map(|root| ("--root", root));
        let variant = self.variant.as_ref().filter(|_| takes_variant && !has("--variant"));
        let added = root.into_iter().chain(variant.map(|variant| ("--variant", variant)));
        let added: String = added.map(|(flag, value)| format!(" {flag} {}", quoted(value))).collect();
        format!("{name}{added}{arguments}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called() -> Called {
        let takes_variant = ["lint", "rebase", "init"].map(String::from).to_vec();
        Called { root: Some("../w p".into()), variant: Some("mine".into()), takes_variant }
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
    fn the_commands_of_json_answers_are_completed_and_texts_of_patches_are_not() {
        let mut answer = serde_json::json!({
            "error": { "what": "no", "hints": ["cargo xtask lock"] },
            "hunks": ["cargo xtask lock"],
            "next": "cargo xtask lock",
        });
        called().complete_json(&mut answer);
        let lock = "cargo xtask lock --root '../w p'";
        let expected = serde_json::json!({
            "error": { "what": "no", "hints": [lock] },
            "hunks": ["cargo xtask lock"],
            "next": lock,
        });
        assert_eq!(answer, expected);
    }
}
