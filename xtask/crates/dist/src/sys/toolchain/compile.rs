//! Parts of a toolchain that are distributed as sources: compiled in scratch space with the machine's own compiler.

use std::path::{Path, PathBuf};

use espalier_core::config::toolchains::Build;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::{self, Run, Seen, Watch};
use espalier_core::sys::machine::{owned, tools};
use espalier_core::ui::{Progress, Unit};

use super::{Work, files};
use crate::plan::ninja;

impl Work<'_> {
    pub(super) fn compile(&self, build: &Build) -> Result<()> {
        let (cmake, ninja) = (self.tool("cmake")?, self.tool("ninja")?);
        let folder = self.scratch_for("build")?;
        let ui = self.setup.ui;
        ui.status("Compiling", format!("{} for the toolchain {}", build.target, self.name));
        let progress = &mut ui.progress(build.target.as_str(), Some(0), Unit::Steps);
        let source = self.path(&build.source);
        watch(configure(&cmake, &ninja, &source, &folder, build), progress)?;
        let compile = Run::new(&ninja).env("NINJA_STATUS", ninja::STATUS).arg("-C").arg(&folder);
        watch(compile.arg(build.target.as_str()), progress)?;
        for (to, from) in &build.take {
            files::copy(&folder.join(from.as_str()), &self.path(to))?;
        }
        owned::remove_folder(&folder)
    }

    fn tool(&self, name: &str) -> Result<PathBuf> {
        let setup = self.setup;
        let tool = setup.tools.get(name).ok_or_else(|| {
            Error::usage(format!("`pins.toml` pins no tool `{name}`")).hint(format!("add [tools.{name}]"))
        })?;
        tools::provide(tool, setup.layout, setup.offline, setup.ui)
    }
}

fn configure(cmake: &Path, ninja: &Path, source: &Path, folder: &Path, build: &Build) -> Run {
    let entries = build.cmake.iter().map(|(key, value)| format!("-D{key}={value}"));
    let make = format!("-DCMAKE_MAKE_PROGRAM={}", ninja.display());
    let run = Run::new(cmake).args(["-G", "Ninja", "-S"]).arg(source).arg("-B").arg(folder);
    run.args(["-DCMAKE_BUILD_TYPE=Release".to_string(), make]).args(entries)
}

/// Runs with progress; a failure shows the first error.
fn watch(run: Run, progress: &mut Progress) -> Result<()> {
    let (words, mut output) = (run.words(), String::new());
    let status = run.watch(|seen| {
        if let Seen::Line(line) = seen {
            output.push_str(line);
            output.push('\n');
            if let Some(count) = ninja::count(line) {
                progress.set_total(count.total);
                progress.note(ninja::short_name(count.doing));
                progress.set(count.done);
            }
        }
        Watch::GoOn
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(process::failed(&words, status, &ninja::first_error(&output).excerpt)),
    }
}
