//! A long step of a build: its output goes to a log, and a failure shows the first error.

use std::path::{Path, PathBuf};

use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::{LogFile, Run, Seen, Watch};

use crate::plan::ninja;

/// A watched step and its log.
pub(super) struct Watched<'a> {
    /// The context, for the log's folder and the output.
    pub(super) context: &'a Context,
    /// Name of the step and of its log.
    pub(super) name: String,
    /// Folder that it writes to: its disk is checked for free space when the step fails.
    pub(super) folder: PathBuf,
}

impl Watched<'_> {
    /// Runs to completion; `on_line` receives every line.
    ///
    /// # Errors
    ///
    /// The program could not be started or failed, or the log cannot be written.
    pub(super) fn run(&self, run: Run, mut on_line: impl FnMut(&str)) -> Result<()> {
        let path = self.context.layout.log(&self.name);
        let words = run.words();
        let mut log = LogFile::create(&path)?;
        log.line(&format!("$ {words}"))?;
        let mut whole = String::new();
        let mut log_failure = None;
        let status = run.watch(|seen| {
            if let Seen::Line(line) = seen {
                whole.push_str(line);
                whole.push('\n');
                on_line(line);
                log_failure = log_failure.take().or(log.line(line).err());
            }
            if log_failure.is_some() { Watch::Kill } else { Watch::GoOn }
        })?;
        if let Some(error) = log_failure {
            return Err(error);
        }
        if status.success() {
            return Ok(());
        }
        Err(self.explain_failure(&whole, &path))
    }

    fn explain_failure(&self, output: &str, log: &Path) -> Error {
        let found = ninja::first_error(output);
        let what = match &found.failed {
            Some(object) => format!("{}: `{object}` could not be built", self.name),
            None => format!("{} failed", self.name),
        };
        // On a full disk a linker may only report that it crashed, so the disk itself is checked too.
        let full = output.contains("No space left on device") || disk::is_full(&self.folder);
        let error = if full { Error::environment(what) } else { Error::no(what) };
        let error = error.detail(found.excerpt);
        if full {
            return error.hint(disk::FREE_SOME);
        }
        error.hint(format!("the whole output: {}", self.context.layout.show(log)))
    }
}
