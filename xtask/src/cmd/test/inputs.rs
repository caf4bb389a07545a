//! The inputs of each step now and when it last passed here, from which `--changed` knows what it can leave out.

use crate::context::Context;
use crate::error::Result;
use crate::plan::tested::{self, BUILDS, Digests, PARTS, Part, REPOSITORY};
use crate::sys::machine::process::Run;
use crate::sys::machine::{compilers, disk};
use crate::sys::project::root;

/// The step whose tests are remembered in parts.
const UNIT: &str = "unit";

/// The project as it is before the steps run: what is edited meanwhile counts as changed the next time.
pub(super) struct Inputs {
    leaving_out: bool,
    tools: String,
    project: Digests,
}

impl Inputs {
    /// Reads the whole project; `leaving_out` is what `--changed` asks for. CI runs everything.
    pub(super) fn read(context: &Context, leaving_out: bool) -> Result<Inputs> {
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        if leaving_out && is_ci {
            context.ui.warn("`CI` is set: every step runs, whatever `--changed` would leave out");
        }
        let project = root::digests(context.layout.root())?;
        Ok(Inputs { leaving_out: leaving_out && !is_ci, tools: tools(), project })
    }

    /// Whether a step need not run.
    pub(super) fn leave_out(&self, context: &Context, step: &str) -> Result<bool> {
        Ok(self.leaving_out && !BUILDS.contains(&step) && self.reason(context, step)?.is_none())
    }

    /// Why a step has to run; nothing if it would read what it read when it passed.
    pub(super) fn reason(&self, context: &Context, step: &str) -> Result<Option<String>> {
        if step == UNIT {
            let due = self.due_parts(context)?.into_iter().next();
            return Ok(due.map(|(part, reason)| format!("{}: {reason}", part.name)));
        }
        self.compare(context, step, &tested::inputs(step, &self.project))
    }

    /// The parts of the step `unit` that have to run, and why. Without `--changed` that is all of them.
    pub(super) fn due_parts(&self, context: &Context) -> Result<Vec<(Part, String)>> {
        let mut due = Vec::new();
        for part in PARTS.iter().chain([&REPOSITORY]) {
            let reason = self.compare(context, part.name, &part.inputs(&self.project))?;
            let reason = reason.or_else(|| (!self.leaving_out).then(String::new));
            due.extend(reason.map(|reason| (*part, reason)));
        }
        // The tests that read the repository are among those of the tool.
        if due.iter().any(|(part, _)| part.package == REPOSITORY.package && !part.reading_the_repository) {
            due.retain(|(part, _)| !part.reading_the_repository);
        }
        Ok(due)
    }

    fn compare(&self, context: &Context, name: &str, inputs: &Digests) -> Result<Option<String>> {
        let recorded = disk::read_if_there(&context.layout.tested(name))?;
        let recorded = recorded.map(|bytes| crate::series::lossy(&bytes).into_owned());
        Ok(tested::reason(recorded.as_deref(), &self.tools, inputs))
    }

    /// A step has ended: writes down with what it passed, or that it did not.
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

/// The compilers, in one line: another one may compile the same sources otherwise.
fn tools() -> String {
    let rust = Run::new("rustc").arg("--version").success().unwrap_or_default();
    let cxx = compilers::compilers().map(|compilers| compilers.version).unwrap_or_default();
    format!("{}; {cxx}", crate::series::lossy(&rust).trim())
}
