//! The command line of the program with all commands.

mod bench;
mod documents;
mod proof;
mod reference;
mod upstream;
mod values;

use clap::Subcommand;
use espalier_core::called::Program;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use xtask::cli::{Command, Commands};

use self::bench::Bench;
use self::documents::{Completions, Docs, Man};
use self::proof::{Fuzz, Gate, Page, Test};
use self::upstream::{Canary, Sync};

/// All commands.
#[derive(Debug, Subcommand)]
pub enum All {
    /// Those that build and ship.
    #[command(flatten)]
    Everyday(Command),
    /// Those that check and measure.
    #[command(flatten)]
    Checks(Checks),
}

/// The commands that check and measure.
#[derive(Debug, Subcommand)]
pub enum Checks {
    /// Move pin, series, lock and report together, once everything builds and passes; else nothing.
    Sync(Sync),
    /// Try the series on upstream's tip: fetch, status, contract, build, gate.
    Canary(Canary),
    /// Use the web page of the built server in a browser: ask, attach files, reload.
    Page(Page),
    /// Run the checks that CI's `test` job runs, step by step.
    Test(Test),
    /// Compare stock and a variant: logits, the servers' answers, upstream's own tests.
    Gate(Gate),
    /// Fuzz the paged server with random options and clients.
    Fuzz(Fuzz),
    /// Measure; needs a quiet machine.
    Bench(Bench),
    /// Regenerate docs/reference/commands.md from the command line itself, or check it.
    Docs(Docs),
    /// Write the manual pages.
    Man(Man),
    /// Print the completions of a shell for `xtask`, a function that calls `cargo xtask`.
    Completions(Completions),
}

impl Commands for All {
    fn writes_nothing(&self) -> bool {
        matches!(self, All::Everyday(command) if command.writes_nothing())
    }

    fn run(self, context: &Context, program: Program) -> Result<Outcome> {
        match self {
            All::Everyday(command) => command.run(context, program),
            All::Checks(command) => command.run(context, program),
        }
    }
}

impl Checks {
    fn run(self, context: &Context, program: Program) -> Result<Outcome> {
        match self {
            Checks::Sync(sync) => sync.run(context),
            Checks::Canary(canary) => canary.run(context),
            Checks::Page(page) => page.run(context),
            Checks::Test(test) => test.run(context),
            Checks::Gate(gate) => gate.run(context),
            Checks::Fuzz(fuzz) => fuzz.run(context),
            Checks::Bench(bench) => crate::bench::run(context, &bench.into()),
            Checks::Docs(docs) => docs.run(context),
            Checks::Man(man) => man.run(program),
            Checks::Completions(completions) => Ok(completions.run(program)),
        }
    }
}

#[cfg(test)]
mod tests {
    use xtask::cli::{Everyday, command_of};

    use super::*;

    #[test]
    fn both_programs_have_the_same_commands_with_the_same_help() {
        let commands = |root: clap::Command| {
            let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
            let mut found: Vec<_> = root
                .get_subcommands()
                .map(|command| (command.get_name().to_string(), about(command)))
                .collect();
            found.sort();
            found
        };
        let program = Program::CargoXtask;
        assert_eq!(commands(command_of::<Everyday>(program)), commands(command_of::<All>(program)));
    }

    /// Returns the short and the long help of a command, and those of all commands below it.
    fn helps(command: &mut clap::Command) -> Vec<String> {
        let own = [command.render_help().to_string(), command.render_long_help().to_string()];
        let below: Vec<String> = command.get_subcommands_mut().flat_map(helps).collect();
        own.into_iter().chain(below).collect()
    }

    #[test]
    fn no_help_of_the_installed_program_names_the_other_one() {
        let mut root = command_of::<All>(Program::Espalier);
        root.build();
        let all = helps(&mut root);
        assert!(all.len() > 80, "{} texts", all.len());
        for help in all {
            assert!(help.contains("Usage: espalier") && !help.contains("xtask"), "{help}");
        }
    }
}
