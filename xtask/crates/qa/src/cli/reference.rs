//! Renders the command line's definition: the reference of commands below docs/reference, manual pages, completions.

use clap::{Arg, Command};
use clap_complete::Shell;
use espalier_core::config::paths::file_name;
use espalier_core::invocation::Program;
use xtask::cli::command_of;

use super::All;
use crate::docs::{CommandsPage, GENERATED};
use crate::man::Page;

/// The page that lists all commands.
const INDEX: &str = "docs/reference/commands.md";

/// A page that describes commands of one subject.
struct Group {
    file: &'static str,
    title: &'static str,
    /// First words of the commands.
    commands: &'static [&'static str],
}

const GROUPS: [Group; 4] = [
    Group {
        file: "docs/reference/commands-series.md",
        title: "Commands for patches and pins",
        commands: &[
            "fetch", "apply", "lock", "lint", "status", "edit", "export", "init", "import", "trailers",
            "new", "bisect", "newest", "rebase", "undo", "prove",
        ],
    },
    Group {
        file: "docs/reference/commands-builds.md",
        title: "Commands that build and ship",
        commands: &[
            "build",
            "toolchain",
            "model",
            "doctor",
            "gc",
            "matrix",
            "verify",
            "release",
            "image",
            "smoke",
            "run",
        ],
    },
    Group {
        file: "docs/reference/commands-checks.md",
        title: "Commands that check",
        commands: &["sync", "canary", "page", "test", "gate", "fuzz", "docs", "man", "completions"],
    },
    Group { file: "docs/reference/commands-bench.md", title: "Benchmarks", commands: &["bench"] },
];

/// Renders the reference: the list of all commands, and a page for each group with usage and options. The files belong
/// to a clone, so they name `cargo xtask` whichever program writes them.
pub(super) fn markdown() -> Vec<CommandsPage> {
    let root = built(Program::CargoXtask, "cargo xtask");
    let commands = leaves(&root);
    let index = CommandsPage { file: INDEX, text: index(&root, &commands) };
    let of_group = |group: &Group| CommandsPage { file: group.file, text: sections(group, &commands) };
    std::iter::once(index).chain(GROUPS.iter().map(of_group)).collect()
}

fn index(root: &Command, commands: &[&Command]) -> String {
    let mut text = format!("{GENERATED}\n\n# Commands\n\n{}\n\n", about(root));
    text += "| command | what it does |\n|---|---|\n";
    for command in commands {
        let link = format!("{}#{}", file_name(group_of(command).file), anchor(command));
        text += &format!("| [`{}`]({link}) | {} |\n", bin_name(command), cell(&about(command)));
    }
    let options: Vec<&Arg> = root.get_arguments().filter(|option| option.is_global_set()).collect();
    text += &format!("\n## Options of every command\n\n{}", table(&options));
    if let Some(more) = root.get_after_help() {
        text += &format!("\n```text\n{more}\n```\n");
    }
    text
}

fn sections(group: &Group, commands: &[&Command]) -> String {
    let index = file_name(INDEX);
    let other = format!("The other commands, and the options that all have: [{index}]({index}).");
    let head = format!("{GENERATED}\n\n# {}\n\n{other}\n", group.title);
    let of_group = commands.iter().filter(|command| group.commands.contains(&first_word(command)));
    std::iter::once(head).chain(of_group.map(|command| section(command))).collect()
}

fn group_of(command: &Command) -> &'static Group {
    let name = first_word(command);
    GROUPS.iter().find(|group| group.commands.contains(&name)).expect("a test finds every command in a group")
}

/// Returns the first word after the program's name.
fn first_word(command: &Command) -> &str {
    bin_name(command).split(' ').nth(2).unwrap_or_default()
}

/// Renders a manual page for the program and one for each command.
pub(super) fn pages(program: Program) -> Vec<Page> {
    let root = match program {
        Program::CargoXtask => built(program, "cargo-xtask"),
        Program::Espalier => built(program, "espalier"),
    };
    std::iter::once(&root).chain(with_below(&root)).map(page).collect()
}

/// Returns the completions of a shell: those of `espalier`, or those of `xtask` with a function of this name that calls
/// `cargo xtask`, because shells complete cargo's commands from cargo's own list, which does not include ours.
pub(super) fn completions(shell: Shell, program: Program) -> String {
    match program {
        Program::CargoXtask => format!("{}\n\n{}\n", script(shell, program, "xtask"), function(shell)),
        Program::Espalier => format!("{}\n", script(shell, program, "espalier")),
    }
}

fn script(shell: Shell, program: Program, name: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_of::<All>(program), name, &mut script);
    espalier_series::lossy(&script).trim_end().to_string()
}

/// Returns the function `xtask`. A zsh script may begin with `#compdef`, and a PowerShell script with `using`, so it
/// goes to the end.
fn function(shell: Shell) -> &'static str {
    match shell {
        Shell::Elvish => "fn xtask {|@a| e:cargo xtask $@a }",
        Shell::Fish => "function xtask; cargo xtask $argv; end",
        Shell::PowerShell => "function xtask { cargo xtask @args }",
        _ => "xtask() { cargo xtask \"$@\"; }",
    }
}

/// Returns the command after clap's additions for parsing, such as names of binaries.
fn built(program: Program, name: &'static str) -> Command {
    let mut root = command_of::<All>(program).name(name).disable_help_flag(true);
    root.build();
    root
}

/// Returns the subcommands of a command and theirs, in the order of `--help`.
fn with_below(command: &Command) -> Vec<&Command> {
    command.get_subcommands().flat_map(|below| std::iter::once(below).chain(with_below(below))).collect()
}

/// Returns the commands without subcommands.
fn leaves(root: &Command) -> Vec<&Command> {
    with_below(root).into_iter().filter(|command| !command.has_subcommands()).collect()
}

fn page(command: &Command) -> Page {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let mut text = Vec::new();
    let man =
        clap_mangen::Man::new(command.clone()).title(name.clone()).source("Espalier").manual("Espalier");
    man.render(&mut text).expect("a vector takes all that is written to it");
    Page { name: format!("{name}.1"), text }
}

fn section(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let arguments: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_global_set()).collect();
    let options = if arguments.is_empty() { String::new() } else { format!("\n{}", table(&arguments)) };
    format!("\n## {}\n\n{}\n\n    {usage}\n{options}", bin_name(command), about(command))
}

fn table(arguments: &[&Arg]) -> String {
    let row = |argument: &&Arg| format!("| `{}` | {} |\n", cell(&shape(argument)), cell(&meaning(argument)));
    format!("| option | meaning |\n|---|---|\n{}", arguments.iter().map(row).collect::<String>())
}

/// Formats an argument as it is typed: `-j, --jobs N`.
fn shape(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let values: Vec<&str> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| &**name).collect();
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("{short}--{long} {}", values.join(" ")),
        Some(long) => format!("{short}--{long}"),
        None => values.join(" "),
    }
}

/// Returns its help, its possible values, and its default.
fn meaning(argument: &Arg) -> String {
    let mut sentences = vec![argument.get_help().map(ToString::to_string).unwrap_or_default()];
    if argument.get_action().takes_values() {
        let values: Vec<String> = argument.get_possible_values().iter().map(value).collect();
        sentences.extend((!values.is_empty()).then(|| format!("Values: {}.", values.join("; "))));
    }
    let defaults = argument.get_default_values().iter().map(|default| default.to_string_lossy());
    let defaults: Vec<String> = defaults.map(|default| format!("`{default}`")).collect();
    let says = argument.get_action().takes_values() && !defaults.is_empty();
    sentences.extend(says.then(|| format!("Default: {}.", defaults.join(", "))));
    sentences.iter().map(|sentence| ended(sentence)).collect::<Vec<_>>().join(" ")
}

fn value(value: &clap::builder::PossibleValue) -> String {
    let name = value.get_name();
    value.get_help().map_or(format!("`{name}`"), |help| format!("`{name}` ({help})"))
}

fn about(command: &Command) -> String {
    ended(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

/// Adds the full stop, which clap removes from a short help.
fn ended(sentence: &str) -> String {
    if sentence.ends_with('.') { sentence.to_string() } else { format!("{sentence}.") }
}

fn bin_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

/// Returns the anchor that GitHub generates for the heading.
fn anchor(command: &Command) -> String {
    bin_name(command).replace(' ', "-")
}

/// Escapes vertical bars, which would end a table cell, in code too.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let root = built(Program::CargoXtask, "cargo xtask");
        let names: BTreeSet<&str> = leaves(&root).into_iter().map(first_word).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands.iter().copied()).collect();
        listed.sort_unstable();
        assert_eq!(listed, Vec::from_iter(names));
    }

    #[test]
    fn every_command_and_option_says_what_it_does() {
        let root = built(Program::CargoXtask, "cargo xtask");
        for command in with_below(&root) {
            assert!(command.get_about().is_some(), "{}", bin_name(command));
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", bin_name(command), argument.get_id());
            }
        }
    }

    #[test]
    fn a_section_has_usage_values_and_defaults() {
        let root = built(Program::CargoXtask, "cargo xtask");
        let canary = root.find_subcommand("canary").unwrap();
        let text = section(canary);
        assert!(text.starts_with("\n## cargo xtask canary\n"), "{text}");
        assert!(text.contains("\n    cargo xtask canary [OPTIONS]\n"), "{text}");
        assert!(text.contains("| `--from PATH\\|URL` |"), "{text}");
        assert!(
            text.contains("Default: `gate`.") && text.contains("`status` (Compare every patch"),
            "{text}"
        );
        assert!(!text.contains("--offline"), "{text}");
    }
}
