//! Upstream's C++ test programs, in the build folder of a variant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use espalier_core::sys::machine::process::{Ended, Run};
use espalier_core::sys::net::server::without_user_config;

use super::Suite;
use super::outcome::{self, Outcome, Outcomes};
use crate::gate::suites::declared::Program;
use crate::serving::switches::with_feature;

/// The programs of one variant.
pub struct Programs {
    /// The programs, in order.
    pub programs: Vec<Program>,
    /// Whether to switch on features that stock does not have.
    pub has_features: bool,
    /// Folder of the programs.
    pub folder: PathBuf,
    /// Folder of the sources that they were built from.
    pub tree: PathBuf,
    /// Working folder, which also receives their output.
    pub work: PathBuf,
    /// The tiny trained model.
    pub model: PathBuf,
}

/// Timeout of a program; the longest takes a minute or two on two cores.
const LIMIT: Duration = Duration::from_secs(15 * 60);

impl Suite for Programs {
    fn alone(&self, test: &str) -> Result<Outcomes> {
        let (name, case) = test.split_once(CASE).map_or((test, None), |(name, case)| (name, Some(case)));
        match self.programs.iter().find(|program| program.name() == name) {
            Some(program) => self.run(program, case),
            None => Ok(Outcomes::new()),
        }
    }
}

/// Returns the names of the programs that passed on ours and have no cases, or those that are `recorded` of stock; and
/// the programs to run on stock for comparison. The models that one of these generates are input of others.
pub fn without_comparison(
    programs: &[Program],
    outcomes: &Outcomes,
    recorded: impl Fn(&Program) -> bool,
) -> (BTreeSet<String>, Vec<Program>) {
    let has_passed = |program: &Program| outcomes.get(&program.name()) == Some(&Outcome::Passed);
    let is_settled = |program: &Program| has_passed(program) && (!program.cases || recorded(program));
    let uses_models = |program: &Program| program.arguments.iter().any(|argument| argument.contains(MODELS));
    let needs_models = programs.iter().any(|program| uses_models(program) && !is_settled(program));
    let (settled, due): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| is_settled(program) && !(needs_models && uses_models(program)));
    (settled.into_iter().map(Program::name).collect(), due.into_iter().cloned().collect())
}

/// Placeholder for the folder of generated models.
const MODELS: &str = "{models}";

/// Separator between the name of a program and that of its case.
pub const CASE: &str = ": ";

impl Programs {
    /// Runs all programs and returns their outcomes.
    pub fn all(&self) -> Result<Outcomes> {
        owned::remove_folder(&self.work)?;
        disk::create_folder(&self.models())?;
        let mut outcomes = Outcomes::new();
        for program in &self.programs {
            outcomes.extend(self.run(program, None)?);
        }
        Ok(outcomes)
    }

    /// Returns the programs that should report cases and did not.
    pub fn silent(&self, outcomes: &Outcomes) -> Vec<String> {
        let tells = |name: &str| outcomes.keys().any(|test| test.starts_with(&format!("{name}{CASE}")));
        let names = self.programs.iter().filter(|program| program.cases).map(Program::name);
        names.filter(|name| !tells(name)).collect()
    }

    fn models(&self) -> PathBuf {
        self.work.join("models")
    }

    fn run(&self, program: &Program, case: Option<&str>) -> Result<Outcomes> {
        let feature = program.enable.as_deref().filter(|_| self.has_features);
        let current = if program.in_sources { &self.tree } else { &self.work };
        let run = with_feature(Run::new(self.folder.join(&program.target)), feature).current_folder(current);
        let run = without_user_config(run);
        let arguments = program.arguments.iter().map(|argument| self.argument(argument));
        let ended = match (program.cases, case) {
            (true, Some(case)) => run.args(arguments).args(["--output", "sql", "-o", without_count(case)]),
            (true, None) => run.args(arguments).args(["--output", "sql"]),
            (false, _) => run.args(arguments),
        }
        .finish_within(LIMIT)?;
        let name = program.name();
        disk::write_atomically(&self.work.join(format!("{name}.log")), ended.output.as_bytes())?;
        let cases = if program.cases { outcome::read_cases(&ended.output) } else { Outcomes::new() };
        let mut outcomes: Outcomes =
            cases.into_iter().map(|(case, outcome)| (format!("{name}{CASE}{case}"), outcome)).collect();
        outcomes.insert(name, outcome_of(&ended));
        Ok(outcomes)
    }

    fn argument(&self, argument: &str) -> String {
        let show = |path: &Path| path.display().to_string();
        argument.replace("{model}", &show(&self.model)).replace(MODELS, &show(&self.models()))
    }
}

/// Strips the number of a case: cases with the same name are numbered, and run together.
fn without_count(case: &str) -> &str {
    case.rsplit_once(" #").map_or(case, |(case, _)| case)
}

fn outcome_of(ended: &Ended) -> Outcome {
    match ended.status {
        Some(status) if status.success() => Outcome::Passed,
        Some(status) if status.code().is_some() => Outcome::Failed(ended.how()),
        _ => Outcome::Crashed(ended.how()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(target: &str, arguments: &[&str], cases: bool) -> Program {
        let arguments = arguments.iter().map(|argument| (*argument).to_string()).collect();
        let target = target.to_string();
        Program { target, arguments, name: None, enable: None, cases, in_sources: false, pin: None }
    }

    /// Names of the programs that stock runs when these fail on ours.
    fn due(failed: &[&str], is_recorded: bool) -> Vec<String> {
        let programs = [
            program("ops", &[], true),
            program("alloc", &[], false),
            program("archs", &["-o", MODELS], false),
            program("state", &["-m", "{models}/a.gguf"], false),
        ];
        let outcome = |name: &str| match failed.contains(&name) {
            true => Outcome::Failed(String::new()),
            false => Outcome::Passed,
        };
        let outcomes = programs.iter().map(|program| (program.name(), outcome(&program.name()))).collect();
        let (settled, due) = without_comparison(&programs, &outcomes, |_| is_recorded);
        assert_eq!(settled.len() + due.len(), programs.len());
        due.iter().map(Program::name).collect()
    }

    #[test]
    fn stock_runs_what_has_cases_or_did_not_pass_and_what_that_reads() {
        assert_eq!(due(&[], false), ["ops"]);
        assert_eq!(due(&["alloc"], false), ["ops", "alloc"]);
        assert_eq!(due(&["state"], false), ["ops", "archs", "state"]);
        assert_eq!(due(&[], true), [""; 0]);
        assert_eq!(due(&["ops"], true), ["ops"]);
    }

    #[test]
    fn a_program_without_an_outcome_is_compared() {
        let programs = [program("alloc", &[], false)];
        let (settled, due) = without_comparison(&programs, &Outcomes::new(), |_| true);
        assert!(settled.is_empty() && due.len() == 1);
    }
}
