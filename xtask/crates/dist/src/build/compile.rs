//! Running Ninja, and statistics of the compiler cache.

use std::path::PathBuf;

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_core::ui::Unit;

use super::{Build, Tools};
use crate::packaged::not_built;
use crate::plan::{ninja, reference};
use crate::sys::compiler_cache::CompilerCache;
use crate::sys::compilers;
use crate::web_page::Choice;

/// The CMake option that creates targets for upstream's tests.
const TESTS: &str = "LLAMA_BUILD_TESTS";

impl Build<'_> {
    pub(super) fn compile_run(&self, tools: &Tools, targets: &[String]) -> Run {
        let run =
            Run::new(&tools.ninja).env("NINJA_STATUS", ninja::STATUS).arg("-C").arg(self.build_folder());
        // Parts of upstream are configured during compilation and look for a Ninja on PATH.
        let run = tools.ninja.parent().into_iter().fold(run, Run::with_programs_of);
        let jobs = self.options.jobs.map(|jobs| ["-j".to_string(), jobs.to_string()]);
        let run = run.args(jobs.iter().flatten()).args(targets);
        let disabled = [("CCACHE_DISABLE", "1"), ("SCCACHE_RECACHE", "1")];
        let disabled = disabled.into_iter().filter(|_| self.options.recompile);
        let run = disabled.fold(run, |run, (variable, value)| run.env(variable, value));
        tools.cache.iter().fold(run, |run, cache| cache.configure(run, self.context.layout.root()))
    }

    /// Compiles the package's targets, and reports the hit rate of the compiler cache.
    pub(super) fn compile_package(&self, tools: &Tools, inputs: &str) -> Result<()> {
        self.compile_targets(tools, "build")?;
        tools.cache.as_ref().map_or(Ok(()), |cache| self.report_hits(cache, inputs))
    }

    /// Compiles the package's targets, as far as they are not up to date.
    pub(super) fn compile_targets(&self, tools: &Tools, log_name: &str) -> Result<()> {
        let compiled = self.compile(self.compile_run(tools, self.targets()), log_name);
        compiled.map_err(|error| if self.options.reference { error.hint(reference::HINT) } else { error })
    }

    /// Reports the hits of the compiler cache. One without hits for what was compiled here before is too small, or its
    /// keys contain something that they should not.
    fn report_hits(&self, cache: &CompilerCache, inputs: &str) -> Result<()> {
        let Some(objects) = cache.objects().filter(|objects| objects.all() > 0) else { return Ok(()) };
        let (ui, name) = (&self.context.ui, cache.name());
        ui.status("Cached", format!("{name} had {} of {} objects", objects.found, objects.all()));
        let compiled = self.context.layout.compiled(inputs);
        if objects.found == 0 && disk::exists(&compiled) {
            let what = self.name();
            ui.warn(format!(
                "{name} had nothing of {what}, which was compiled here before: `{name} --show-stats`"
            ));
        }
        disk::write_atomically(&compiled, b"")
    }

    fn compile(&self, run: Run, log_name: &str) -> Result<()> {
        self.context.ui.status("Compiling", self.name());
        let mut progress = self.context.ui.progress(&self.name(), Some(0), Unit::Steps);
        self.watched(run, &format!("{log_name}-{}", self.name()), |line| {
            if let Some(count) = ninja::count(line) {
                progress.set_total(count.total);
                progress.note(ninja::short_name(count.doing));
                progress.set(count.done);
            }
        })
    }

    /// Compiles `targets` of the upstream tests in the folder of a finished build and returns the folder they are in.
    /// The package and its stamp stay unchanged, and so does what the next build compiles: it names its targets
    /// explicitly. The caller holds the run lock.
    pub fn compile_tests(&self, targets: &[String]) -> Result<PathBuf> {
        let folder = self.build_folder();
        if !disk::exists(&folder.join("build.ninja")) {
            return Err(not_built(&self.variant.name, self.flavor.name));
        }
        // Without a target Ninja would build everything.
        if !targets.is_empty() {
            // The page of the finished build is already in its folder.
            let tools = self.tools(compilers::compilers()?, Choice::NoneThere)?;
            self.configure_tests(&tools)?;
            self.compile(self.compile_run(&tools, targets), "tests")?;
        }
        Ok(folder.join("bin"))
    }

    /// Creates the targets of upstream's tests. Configures every time, which takes seconds: an interrupted run leaves
    /// a CMake cache that is newer than Ninja's files, and these run the CMake that wrote them, which may no longer
    /// exist, nor its Ninja.
    ///
    /// The next build is not configured again, because its arguments are compared with those of the last build. If they
    /// have changed, it starts without the CMake cache, and so without the entries that are set here.
    fn configure_tests(&self, tools: &Tools) -> Result<()> {
        self.context.ui.status("Configuring", format!("{} with upstream's tests", self.name()));
        let ninja = format!("-DCMAKE_MAKE_PROGRAM={}", tools.ninja.display());
        let mut arguments = vec![format!("-D{TESTS}=ON"), ninja];
        // A flavor that names a file of its own there keeps it: without it, its package would be compiled again.
        if !self.cache_entries()?.contains_key(reference::INCLUDE) {
            self.write_compared()?;
            arguments.push(format!("-D{}={}", reference::INCLUDE, self.compared_file().display()));
        }
        let run = Run::new(&tools.cmake).args(&arguments).arg(self.build_folder());
        self.watched(run, &format!("configure-tests-{}", self.name()), |_| {})
    }
}
