//! The compiler cache of one build: its settings and its statistics.

use std::path::{Path, PathBuf};

use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;

use crate::plan::compiler_cache::Objects;

/// Variables that set the language; ccache counts each as an input.
const LANGUAGES: [&str; 4] = ["LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"];

/// A compiler cache in use by one build.
pub struct CompilerCache {
    program: PathBuf,
    kind: Kind,
}

enum Kind {
    /// ccache writes the log of this build here.
    Ccache(PathBuf),
    /// sccache's counters are global: their values when the build began.
    Sccache(Objects),
    /// Another cache, without statistics that we can read.
    Unknown,
}

impl CompilerCache {
    /// Starts to observe `launcher`; `folder` takes its log.
    ///
    /// # Errors
    ///
    /// The log of the previous build cannot be removed.
    pub fn begin(launcher: &Path, folder: &Path) -> Result<CompilerCache> {
        let program = launcher.to_path_buf();
        let kind = match launcher.file_stem().and_then(|name| name.to_str()) {
            Some("ccache") => {
                let log = folder.join("espalier-ccache.log");
                disk::remove_file(&log)?;
                Kind::Ccache(log)
            }
            Some("sccache") => objects_of_sccache(launcher).map_or(Kind::Unknown, Kind::Sccache),
            _ => Kind::Unknown,
        };
        Ok(CompilerCache { program, kind })
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> String {
        self.program.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Sets up `run` for the cache: paths below `root` count as the same in every checkout, and so do languages, so
    /// that compilers print the same errors in all of them.
    #[must_use]
    pub fn configure(&self, run: Run, root: &Path) -> Run {
        let Kind::Ccache(log) = &self.kind else { return run };
        let run = LANGUAGES.iter().fold(run, |run, name| run.without_env(name));
        let run = run.env("CCACHE_STATSLOG", log);
        if std::env::var_os("CCACHE_BASEDIR").is_some() { run } else { run.env("CCACHE_BASEDIR", root) }
    }

    /// Returns its statistics; `None` if it reports none.
    #[must_use]
    pub fn objects(&self) -> Option<Objects> {
        match &self.kind {
            Kind::Ccache(log) => {
                let log = disk::read_if_there(log).ok()??;
                Some(Objects::of_ccache(&espalier_series::lossy(&log)))
            }
            Kind::Sccache(before) => objects_of_sccache(&self.program).map(|now| now.since(*before)),
            Kind::Unknown => None,
        }
    }
}

fn objects_of_sccache(program: &Path) -> Option<Objects> {
    let answer = Run::new(program).args(["--show-stats", "--stats-format", "json"]).success().ok()?;
    Objects::of_sccache(&answer)
}
