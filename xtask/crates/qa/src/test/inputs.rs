//! The inputs of each step now and when it last passed here, from which `--changed` decides what to skip.

use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::project::root;
use espalier_dist::sys::compilers;

use crate::test::tested::{self, BUILDS, Digests, PARTS, REPOSITORY, UnitTestPart};

/// The step whose tests are tracked in parts.
const UNIT: &str = "unit";

/// The project before the steps run: files edited during the run count as changed in the next one.
pub(super) struct Inputs {
    leaving_out: bool,
    tools: String,
    project: Digests,
}

impl Inputs {
    /// Reads the whole project; `leaving_out` is true with `--changed`. CI runs everything.
    pub(super) fn read(context: &Context, leaving_out: bool) -> Result<Inputs> {
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        if leaving_out && is_ci {
            context.ui.warn("`CI` is set: every step runs, whatever `--changed` would leave out");
        }
        let project = root::digests(context.layout.root())?;
        Ok(Inputs { leaving_out: leaving_out && !is_ci, tools: tools(), project })
    }

    /// Whether a step can be skipped.
    pub(super) fn leave_out(&self, context: &Context, step: &str) -> Result<bool> {
        Ok(self.leaving_out && !BUILDS.contains(&step) && self.reason(context, step)?.is_none())
    }

    /// Returns why a step has to run; `None` if its inputs are the same as when it passed.
    pub(super) fn reason(&self, context: &Context, step: &str) -> Result<Option<String>> {
        if step == UNIT {
            let due = self.due_parts(context)?.into_iter().next();
            return Ok(due.map(|(part, reason)| format!("{}: {reason}", part.name)));
        }
        self.compare(context, step, &tested::inputs(step, &self.project))
    }

    /// Returns the parts of the step `unit` that have to run, and why. Without `--changed` these are all parts.
    pub(super) fn due_parts(&self, context: &Context) -> Result<Vec<(UnitTestPart, String)>> {
        let mut due = Vec::new();
        for part in PARTS.iter().chain([&REPOSITORY]) {
            let reason = self.compare(context, part.name, &part.inputs(&self.project))?;
            let reason = reason.or_else(|| (!self.leaving_out).then(String::new));
            due.extend(reason.map(|reason| (*part, reason)));
        }
        // The tests that read the repository are part of the tool's tests.
        if due.iter().any(|(part, _)| part.package == REPOSITORY.package && !part.reading_the_repository) {
            due.retain(|(part, _)| !part.reading_the_repository);
        }
        Ok(due)
    }

    fn compare(&self, context: &Context, name: &str, inputs: &Digests) -> Result<Option<String>> {
        let recorded = disk::read_if_there(&context.layout.tested(name))?;
        let recorded = recorded.map(|bytes| espalier_series::lossy(&bytes).into_owned());
        Ok(tested::reason(recorded.as_deref(), &self.tools, inputs))
    }

    /// Records, after a step has ended, the inputs with which it passed, or that it failed.
    pub(super) fn remember(&self, context: &Context, step: &str, passed: bool) -> Result<()> {
        if step != UNIT {
            return self.write(context, step, &tested::inputs(step, &self.project), passed);
        }
        let due = self.due_parts(context)?;
        let whole_tool = due.iter().any(|(part, _)| part.package == REPOSITORY.package);
        let parts = due.iter().map(|(part, _)| part).chain(whole_tool.then_some(&REPOSITORY));
        for part in parts.collect::<Vec<_>>() {
            self.write(context, part.name, &part.inputs(&self.project), passed)?;
        }
        Ok(())
    }

    fn write(&self, context: &Context, name: &str, inputs: &Digests, passed: bool) -> Result<()> {
        let file = context.layout.tested(name);
        if passed {
            disk::write_atomically(&file, tested::record(&self.tools, inputs).as_bytes())
        } else {
            disk::remove_file(&file)
        }
    }
}

/// Returns the compiler versions in one line: another compiler may compile the same sources differently.
fn tools() -> String {
    let rust = Run::new("rustc").arg("--version").success().unwrap_or_default();
    let cxx = compilers::compilers().map(|compilers| compilers.version).unwrap_or_default();
    format!("{}; {cxx}", espalier_series::lossy(&rust).trim())
}
