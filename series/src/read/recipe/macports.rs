//! Ports of MacPorts: the patches of `patchfiles` in a `Portfile`, with the options of `patch.args`.

use super::changes::{CHANGES, Phase, change_by, commands_in};
use super::collected::Collected;
use super::pattern::{last_component, without_variables};
use super::shell::Script;
use super::tcl::{Command, Commands, Word};
use super::{ApplyOptions, RecipePatch};
use crate::model::printable::printable;
use crate::read::apply_options::{Program, read_options};

/// Strip count of MacPorts: its `patch.pre_args` is `-p0`.
const USUAL: Option<u32> = Some(0);

/// Maximum nesting of blocks.
const DEPTH: usize = 8;

/// Options of a port that hold options of patch(1), in the order in which they are passed.
const ARGUMENTS: [&str; 3] = ["patch.pre_args", "patch.args", "patch.post_args"];

/// Reads a `Portfile`.
pub(super) fn read_macports(text: &str) -> Collected {
    let mut port = Port::default();
    port.block(text, 1, &Block::default());
    port.finish()
}

/// A port while its file is read.
#[derive(Default)]
struct Port {
    collected: Collected,
    /// The words of `patchfiles`.
    patches: Vec<String>,
    /// Patterns of the patches of variants and subports, with the reason for leaving them out.
    left_out: Vec<(String, String)>,
    /// The words of each of [`ARGUMENTS`].
    arguments: [Vec<String>; 3],
}

/// The block that a command is in.
#[derive(Clone, Default)]
struct Block {
    depth: usize,
    /// Whether it runs under a condition only.
    is_conditional: bool,
    /// Whether it prepares the sources.
    is_preparing: bool,
    /// The reason for leaving its patches out: it belongs to a variant, or to another port of the file.
    left_out: Option<String>,
}

/// An operation on a list of words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Set,
    Append,
    Prepend,
    Delete,
    Replace,
}

impl Port {
    /// Follows the commands of `text`, which begins at `line`.
    fn block(&mut self, text: &str, line: usize, block: &Block) {
        if block.depth >= DEPTH {
            let note = format!("blocks that are nested more than {DEPTH} deep were not followed");
            return self.collected.note(Some(line), note);
        }
        let mut commands = Commands::of(text, line);
        while let Some(command) = commands.next_command() {
            self.command(&command, block);
        }
        if let Some(line) = commands.unclosed {
            let note = "a quote or bracket is not closed; the commands after it were not read";
            self.collected.note(Some(line), note.to_owned());
        }
    }

    fn command(&mut self, command: &Command, block: &Block) {
        let name = command.words.first().map(|word| word.text.as_str()).unwrap_or_default();
        let inner = Block { depth: block.depth + 1, is_conditional: true, ..block.clone() };
        match name {
            "if" => {
                for body in bodies_of_if(command) {
                    self.block(&body.text, body.line, &inner);
                }
            }
            "platform" | "foreach" | "for" | "while" | "fs-traverse" => self.last_word(command, &inner),
            "variant" | "subport" => {
                let its_name = command.arguments().first().map(|word| printable(word.text.as_bytes()));
                let why = format!("the recipe applies it in the {name} `{}`", its_name.unwrap_or_default());
                self.last_word(command, &Block { left_out: block.left_out.clone().or(Some(why)), ..inner });
            }
            "pre-patch" | "patch" | "post-patch" | "post-extract" | "pre-configure" => {
                self.last_word(command, &Block { is_preparing: true, ..inner });
            }
            _ if changes_sources(command, name, block) => self.change(command, block),
            "system" | "patch.dir" | "patch.cmd" | "default_variants" => self.note(command, name, block),
            _ => self.option(command, name, block),
        }
    }

    /// Follows the block that is the last word of a command.
    fn last_word(&mut self, command: &Command, block: &Block) {
        if let Some(body) = command.arguments().last() {
            self.block(&body.text, body.line, block);
        }
    }

    /// Notes that a command which changes the sources, or how they are patched, was not followed.
    fn note(&mut self, command: &Command, name: &str, block: &Block) {
        let is_concerned = name != "system" || command.text().contains("patch");
        if is_concerned && block.left_out.is_none() {
            let text = printable(command.text().as_bytes());
            self.collected.note(Some(command.line), format!("`{text}` was not followed"));
        }
    }

    /// Adds a remark on a command that changes the sources.
    fn change(&mut self, command: &Command, block: &Block) {
        if block.left_out.is_none() {
            let text = printable(command.text().as_bytes());
            self.collected.change(Some(command.line), format!("`{text}` {CHANGES}"));
        }
    }

    /// Carries out a command such as `patchfiles-append`, if it changes an option that matters.
    fn option(&mut self, command: &Command, name: &str, block: &Block) {
        let (option, change) = change_of(name);
        let words = command.arguments().iter().map(|word| word.text.clone());
        if option == "patchfiles" {
            let words: Vec<String> = words.filter_map(|word| self.patch(command, &word)).collect();
            match &block.left_out {
                None => changed(&mut self.patches, change, words, block),
                Some(why) => self.left_out.extend(words.into_iter().map(|word| (word, why.clone()))),
            }
        } else if let Some(list) = ARGUMENTS.iter().position(|known| *known == option)
            && block.left_out.is_none()
            && let Some(list) = self.arguments.get_mut(list)
        {
            changed(list, change, words.collect(), block);
        }
    }

    /// Returns the pattern of a word of `patchfiles`, which may end with a tag of the site that serves it.
    fn patch(&mut self, command: &Command, word: &str) -> Option<String> {
        let pattern = without_variables(word.split(':').next().unwrap_or(word));
        if !pattern.contains('[') && last_component(&pattern).contains(char::is_alphanumeric) {
            return Some(pattern);
        }
        let text = format!("`{}` of `patchfiles` was not followed", printable(word.as_bytes()));
        self.collected.note(Some(command.line), text);
        None
    }

    fn finish(self) -> Collected {
        let Port { mut collected, patches, left_out, arguments } = self;
        let words: Vec<&str> = arguments.iter().flatten().map(String::as_str).collect();
        let options = match read_options(Program::Patch, &words) {
            Ok(read) => {
                for option in read.not_followed {
                    collected.note(None, format!("`{option}` of `patch.args` was not followed"));
                }
                read.options
            }
            Err(why) => {
                collected.wrong(None, format!("`patch.args`: {why}"));
                ApplyOptions::default()
            }
        };
        let named = |pattern: String, left_out: Option<String>| RecipePatch {
            pattern,
            is_glob: false,
            options,
            usual_strip: USUAL,
            left_out,
        };
        patches.into_iter().for_each(|pattern| collected.apply_named(named(pattern, None)));
        for (pattern, why) in left_out {
            collected.apply_named(named(pattern, Some(why)));
        }
        collected
    }
}

/// Returns whether a command changes files of the sources.
fn changes_sources(command: &Command, name: &str, block: &Block) -> bool {
    const FILES: [&str; 7] = ["copy", "delete", "ln", "move", "symlink", "touch", "xinstall"];
    let arguments: Vec<&str> = command.arguments().iter().map(|word| word.text.as_str()).collect();
    let of_shell = |text: &&str| {
        let script = Script::parse(text);
        commands_in(&script.top).any(|command| change_by(command, Phase::Prepare).is_some())
    };
    match name {
        "reinplace" => true,
        _ if !block.is_preparing => false,
        "file" => arguments.first().is_some_and(|word| ["copy", "delete", "rename", "link"].contains(word)),
        "system" => arguments.iter().any(of_shell),
        _ => FILES.contains(&name),
    }
}

/// Returns the blocks of an `if`: every word but conditions and keywords.
fn bodies_of_if(command: &Command) -> Vec<&Word> {
    let (mut bodies, mut is_condition) = (Vec::new(), true);
    for word in command.arguments() {
        match word.text.as_str() {
            "elseif" => is_condition = true,
            "else" | "then" => {}
            _ if is_condition => is_condition = false,
            _ => bodies.push(word),
        }
    }
    bodies
}

/// Returns the option that a command changes, and the change: `patchfiles-append` appends to `patchfiles`.
fn change_of(name: &str) -> (&str, Change) {
    match name.rsplit_once('-') {
        Some((option, "append")) => (option, Change::Append),
        Some((option, "prepend")) => (option, Change::Prepend),
        Some((option, "delete")) => (option, Change::Delete),
        Some((option, "replace")) => (option, Change::Replace),
        _ => (name, Change::Set),
    }
}

/// Changes `list`. Under a condition nothing is removed: both branches count.
fn changed(list: &mut Vec<String>, change: Change, words: Vec<String>, block: &Block) {
    let keeps = block.is_conditional;
    match change {
        Change::Append => list.extend(words),
        Change::Prepend => drop(list.splice(0..0, words)),
        Change::Set => {
            if !keeps {
                list.clear();
            }
            list.extend(words);
        }
        Change::Delete => list.retain(|word| keeps || !words.contains(word)),
        Change::Replace => {
            let mut words = words.into_iter();
            let (Some(old), Some(new)) = (words.next(), words.next()) else { return };
            let at = list.iter().position(|word| !keeps && *word == old);
            list.retain(|word| keeps || *word != old);
            list.insert(at.unwrap_or(list.len()), new);
        }
    }
}
