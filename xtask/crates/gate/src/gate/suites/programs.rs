//! Upstream's C++ test programs, in the build folder of a variant.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Suite;
use super::outcome::{self, Outcome, Outcomes};
use crate::error::Result;
use crate::plan::suites::Program;
use crate::serving::switches::with_feature;
use crate::sys::machine::disk;
use crate::sys::machine::ours;
use crate::sys::machine::process::{Ended, Run};

/// The programs of one variant.
pub struct Programs<'a> {
    /// The programs, in order.
    pub programs: &'a [Program],
    /// Whether to switch on features that stock does not have.
    pub has_features: bool,
    /// Folder of the programs.
    pub folder: PathBuf,
    /// Working folder, which also receives their output.
    pub work: PathBuf,
    /// The tiny trained model.
    pub model: PathBuf,
}

/// Timeout of a program; the longest takes a minute or two on two cores.
const LIMIT: Duration = Duration::from_secs(15 * 60);

impl Suite for Programs<'_> {
    fn all(&self) -> Result<Outcomes> {
        ours::remove_folder(&self.work)?;
        disk::create_folder(&self.models())?;
        let mut outcomes = Outcomes::new();
        for program in self.programs {
            outcomes.extend(self.run(program, None)?);
        }
        Ok(outcomes)
    }

    fn alone(&self, test: &str) -> Result<Outcomes> {
        let (name, case) = test.split_once(CASE).map_or((test, None), |(name, case)| (name, Some(case)));
        match self.programs.iter().find(|program| program.name() == name) {
            Some(program) => self.run(program, case),
            None => Ok(Outcomes::new()),
        }
    }
}

/// Separator between the name of a program and that of its case.
const CASE: &str = ": ";

impl Programs<'_> {
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
        let run =
            with_feature(Run::new(self.folder.join(&program.target)), feature).current_folder(&self.work);
        let arguments = program.arguments.iter().map(|argument| self.argument(argument));
        let ended = match (program.cases, case) {
            (true, Some(case)) => run.args(arguments).args(["--output", "sql", "-o", without_count(case)]),
            (true, None) => run.args(arguments).args(["--output", "sql"]),
            (false, _) => run.args(arguments),
        }
        .finish_within(LIMIT)?;
        let name = program.name();
        disk::write_atomically(&self.work.join(format!("{name}.log")), ended.said.as_bytes())?;
        let cases = if program.cases { outcome::read_cases(&ended.said) } else { Outcomes::new() };
        let mut outcomes: Outcomes =
            cases.into_iter().map(|(case, outcome)| (format!("{name}{CASE}{case}"), outcome)).collect();
        outcomes.insert(name, outcome_of(&ended));
        Ok(outcomes)
    }

    fn argument(&self, argument: &str) -> String {
        let show = |path: &Path| path.display().to_string();
        argument.replace("{model}", &show(&self.model)).replace("{models}", &show(&self.models()))
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
