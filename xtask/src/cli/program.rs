//! The definition of the command line of each program: the same commands under two names.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};
use espalier_core::invocation::Program;

use super::{Cli, Commands};

/// Returns the definition of the command line of `program`.
#[must_use]
pub fn command_of<C: Commands>(program: Program) -> Command {
    let command = Cli::<C>::command();
    if program == Program::CargoXtask {
        return command;
    }
    let words = program.words();
    renamed(command, program).name(words).bin_name(words).mut_subcommand("completions", |completions| {
        // Those of `cargo xtask` are for a function.
        completions.about("Print the completions of a shell")
    })
}

/// Replaces `cargo xtask` in the help of a command, of its arguments and of the commands below it.
fn renamed(mut command: Command, program: Program) -> Command {
    if let Some(about) = command.get_about().map(|about| named(about, program)) {
        command = command.about(about);
    }
    if let Some(about) = command.get_long_about().map(|about| named(about, program)) {
        command = command.long_about(about);
    }
    let command = command.mut_args(|argument| renamed_argument(argument, program));
    command.mut_subcommands(|below| renamed(below, program))
}

fn renamed_argument(mut argument: Arg, program: Program) -> Arg {
    if let Some(help) = argument.get_help().map(|help| named(help, program)) {
        argument = argument.help(help);
    }
    if let Some(help) = argument.get_long_help().map(|help| named(help, program)) {
        argument = argument.long_help(help);
    }
    argument
}

fn named(text: &StyledStr, program: Program) -> String {
    text.to_string().replace(Program::CargoXtask.words(), program.words())
}
