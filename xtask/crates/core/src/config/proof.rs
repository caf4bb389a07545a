//! Build proofs: recorded results of building a flavor, one file in `ci/proofs/` for each flavor and variant.

use serde::{Deserialize, Serialize};

use super::flavors::platform::Platform;
use super::name::Name;
use crate::error::{Error, Result};

/// Support tier that a build reached. A flavor without a proof is only declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// CMake accepted the flavor's entries and found its compiler and libraries.
    Configured,
    /// Everything was compiled, linked and packaged.
    Compiled,
    /// The packaged server passed the smoke test, and found a device if the flavor is for one.
    Run,
}

impl Level {
    /// The name for display.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Configured => "configured",
            Level::Compiled => "compiled",
            Level::Run => "run",
        }
    }

    /// Returns the support tier, with the level that reached it.
    #[must_use]
    pub fn tier(level: Option<Level>) -> String {
        match level {
            Some(Level::Run) => "1 (run)".to_string(),
            Some(Level::Compiled) => "2 (compiled)".to_string(),
            Some(Level::Configured) => "3 (configured)".to_string(),
            None => "3 (declared)".to_string(),
        }
    }
}

/// A finished build from an empty folder, without a compiler cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Flavor name.
    pub flavor: Name,
    /// Variant name.
    pub variant: Name,
    /// Support tier that it reached.
    pub level: Level,
    /// The command line.
    pub command: String,
    /// The day, in UTC, as `2026-01-31`.
    pub date: String,
    /// The pin's tag or commit.
    pub pin: String,
    /// The tree that was built.
    pub tree: String,
    /// Platform of the build machine.
    pub platform: Platform,
    /// Number of cores of that machine.
    pub cores: usize,
    /// Wall-clock seconds of the flavor's own part, without the web page and without the programs of its host flavor.
    pub seconds: u64,
    /// CPU seconds of the same part, which other load on the machine does not inflate; 0 when they were not reported.
    pub processor_seconds: u64,
    /// Size of the package in bytes; 0 when none was made.
    pub bytes: u64,
    /// Size of the flavor's own modules in bytes; 0 when it has none.
    pub module_bytes: u64,
    /// Version string reported by the C++ compiler.
    pub compiler: String,
    /// GPU architectures that it was compiled for; empty when the flavor has none to choose.
    pub architectures: String,
}

impl Proof {
    /// Reads a file of `ci/proofs/`.
    ///
    /// # Errors
    ///
    /// A usage error that names the file.
    pub fn parse(file: &str, text: &str) -> Result<Proof> {
        serde_json::from_str(text).map_err(|error| {
            Error::usage(format!("invalid `{file}`"))
                .detail(error.to_string())
                .hint(format!("it is written by `cargo xtask build --record`: git checkout {file}"))
        })
    }

    /// The file's text.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }
}
