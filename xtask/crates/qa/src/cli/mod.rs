//! The command line of the program with all commands.

mod reference;

use clap::Subcommand;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::invocation::Program;
use xtask::cli::{Command, Commands, OwnCommands};

use crate::{bench, canary, completions, docs, fuzz, gate, long, man, page, sync, test};

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
    /// Move the pin, series and lock to another upstream commit and write a report; change nothing unless every check
    /// passes.
    Sync(sync::Options),
    /// Try the series on upstream's tip: fetch, status, contract, build, gate.
    Canary(canary::Options),
    /// Test the web page of the built server in a browser: ask, attach files, reload.
    Page(page::Options),
    /// Run the checks that CI's `test` job runs, step by step.
    Test(test::Options),
    /// Compare stock and a variant: logits, the servers' answers, upstream's own tests.
    Gate(gate::Options),
    /// Fuzz the paged server with random options and clients.
    #[command(subcommand)]
    Fuzz(fuzz::Fuzzer),
    /// Measure; needs a quiet machine.
    #[command(subcommand)]
    Bench(bench::Benchmark),
    /// Regenerate the generated documents, such as the reference of commands, or check them.
    Docs(docs::Options),
    /// Write the manual pages.
    Man(man::Options),
    /// Print the completions of a shell for `xtask`, a function that calls `cargo xtask`.
    Completions(completions::Options),
}

impl Commands for All {
    type Own = All;

    fn own(&self) -> Option<&All> {
        Some(self)
    }
}

impl OwnCommands for All {
    fn writes_nothing(&self) -> bool {
        matches!(self, All::Everyday(command) if command.writes_nothing())
    }

    fn run(&self, context: &Context, program: Program) -> Result<Outcome> {
        match self {
            All::Everyday(command) => command.run(context, program),
            All::Checks(command) => command.run(context, program),
        }
    }
}

impl Checks {
    fn run(&self, context: &Context, program: Program) -> Result<Outcome> {
        match self {
            Checks::Sync(options) => sync::run(context, options),
            Checks::Canary(options) => canary::run(context, options),
            Checks::Page(options) => page::run(context, options),
            Checks::Test(options) if options.long => long::run(context, options),
            Checks::Test(options) => test::run(context, options, &reference::markdown()),
            Checks::Gate(options) => gate::run(context, options),
            Checks::Fuzz(what) => fuzz::run(context, what),
            Checks::Bench(what) => bench::run(context, what),
            Checks::Docs(options) => docs::run(context, options, &reference::markdown()),
            Checks::Man(options) => man::run(options, &reference::pages(program)),
            Checks::Completions(options) => {
                Ok(completions::run(&reference::completions(options.shell, program)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, ValueEnum};
    use xtask::cli::{Everyday, command_of};

    use super::*;
    use crate::bench::fairness::Scenario;
    use crate::fuzz::plan::model::ModelKind;
    use crate::report::canary::Level;
    use crate::serving::bench_model::BenchModel;
    use crate::serving::test_server::TestServer;

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

    fn names<V: ValueEnum>() -> Vec<String> {
        let name = |value: &V| value.to_possible_value().unwrap().get_name().to_string();
        V::value_variants().iter().map(name).collect()
    }

    #[test]
    fn all_that_reports_name_can_be_typed() {
        assert_eq!(names::<TestServer>(), TestServer::ALL.map(TestServer::name));
        assert_eq!(names::<Scenario>(), Scenario::ALL.map(Scenario::name));
        assert_eq!(names::<BenchModel>(), BenchModel::ALL.map(BenchModel::name));
        assert_eq!(names::<ModelKind>(), ModelKind::ALL.map(ModelKind::name));
        // The canary does not end before it has compared anything.
        assert_eq!(names::<Level>(), Level::ALL.map(Level::name)[1..]);
    }

    /// Returns the words of every command without subcommands.
    fn commands(root: &clap::Command) -> Vec<Vec<String>> {
        let with_below = |command: &clap::Command| {
            let below = match command.has_subcommands() {
                true => commands(command),
                false => vec![Vec::new()],
            };
            let name = vec![command.get_name().to_string()];
            below.into_iter().map(move |words| [name.clone(), words].concat()).collect::<Vec<_>>()
        };
        root.get_subcommands().flat_map(with_below).collect()
    }

    /// Options as text: those that were parsed, and the default ones.
    type ParsedAndDefault = [String; 2];

    fn both<T: Default + std::fmt::Debug>(parsed: &T) -> Option<ParsedAndDefault> {
        Some([format!("{parsed:#?}"), format!("{:#?}", T::default())])
    }

    /// Returns `None` for options without a default: some argument is required, or they are only ever typed.
    fn of_command(command: &Command) -> Option<ParsedAndDefault> {
        match command {
            Command::Fetch(options) => both(options),
            Command::Apply(options) => both(options),
            Command::Lock(options) => both(options),
            Command::Lint(options) => both(options),
            Command::Status(options) => both(options),
            Command::Edit(options) => both(options),
            Command::Export(options) => both(options),
            Command::Bisect(options) => both(options),
            Command::Newest(options) => both(options),
            Command::Rebase(options) => both(options),
            Command::Undo(options) => both(options),
            Command::Build(options) => both(options),
            Command::Model(options) => both(options),
            Command::Doctor(options) => both(options),
            Command::Gc(options) => both(options),
            Command::Matrix(options) => both(options),
            Command::Release(options) => both(options),
            Command::Image(options) => both(options),
            Command::Smoke(options) => both(options),
            Command::Run(options) => both(options),
            Command::Init(_) | Command::Import(_) | Command::Trailers(_) | Command::New(_) => None,
            Command::Toolchain(_) | Command::Verify(_) | Command::Prove(_) => None,
        }
    }

    fn of_check(check: &Checks) -> Option<ParsedAndDefault> {
        match check {
            Checks::Page(options) => both(options),
            Checks::Test(options) => both(options),
            Checks::Gate(options) => both(options),
            Checks::Docs(options) => both(options),
            Checks::Bench(bench::Benchmark::KvQuality(options)) => both(options),
            Checks::Bench(_) | Checks::Fuzz(_) | Checks::Canary(_) => None,
            Checks::Sync(_) | Checks::Man(_) | Checks::Completions(_) => None,
        }
    }

    /// Code that starts a command takes `Options::default()` for what it does not set.
    #[test]
    fn default_options_are_those_of_a_command_line_without_arguments() {
        let root = command_of::<All>(Program::CargoXtask);
        let mut compared = 0;
        for words in commands(&root) {
            let line = std::iter::once("cargo xtask").chain(words.iter().map(String::as_str));
            // Some argument is required.
            let Ok(matches) = root.clone().try_get_matches_from(line) else { continue };
            let found = match All::from_arg_matches(&matches).unwrap() {
                All::Everyday(command) => of_command(&command),
                All::Checks(check) => of_check(&check),
            };
            let Some([parsed, default]) = found else { continue };
            assert_eq!(default, parsed, "{}", words.join(" "));
            compared += 1;
        }
        assert_eq!(compared, 25);
    }
}
