//! What a command showed of a flavor: one file of `ci/proofs/` for each flavor and variant.

use serde::{Deserialize, Serialize};

use super::flavors::platform::Platform;
use super::name::Name;
use crate::error::{Error, Result};

/// How far a build got. Without a proof a flavor is declared, and that is all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// CMake took the flavor's entries and found its compiler and libraries.
    Configured,
    /// Everything was compiled, linked and packaged.
    Compiled,
    /// The packaged server answered the smoke test, and found a device where the flavor is for one.
    Run,
}

impl Level {
    /// The word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Configured => "configured",
            Level::Compiled => "compiled",
            Level::Run => "run",
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
    /// How far it got.
    pub level: Level,
    /// What was typed.
    pub command: String,
    /// The day, in UTC, as `2026-01-31`.
    pub date: String,
    /// The pin's tag or commit.
    pub pin: String,
    /// The tree that was built.
    pub tree: String,
    /// The machine it was built on.
    pub platform: Platform,
    /// How many cores that machine had.
    pub cores: usize,
    /// Seconds of the flavor's own part: the web page is not in it, nor the programs that it takes of another.
    pub seconds: u64,
    /// The processors' seconds of the same, which other work on the machine does not stretch; 0 where they were not told.
    pub processor_seconds: u64,
    /// Bytes of the package; 0 where none was made.
    pub bytes: u64,
    /// Bytes of the modules that are the flavor's own; 0 where it has none.
    pub module_bytes: u64,
    /// The C++ compiler's own words.
    pub compiler: String,
    /// The processors of the accelerator that it was compiled for; empty where there are none to choose.
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
