//! `manifest.json`: the inputs and files of a package, sufficient to reproduce it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::web_page;

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Variant name.
    pub variant: String,
    /// Flavor name.
    pub flavor: String,
    /// Target platform of its programs; empty in packages of older versions of this tool.
    #[serde(default)]
    pub platform: String,
    /// The pin's tag or commit.
    pub pin: String,
    /// The pinned tree.
    pub base_tree: String,
    /// The tree that was built.
    pub tree: String,
    /// sha256 of every patch, by file.
    pub patches: BTreeMap<String, String>,
    /// Version string reported by the C++ compiler.
    pub compiler: String,
    /// CMake cache entries that it was configured with, without paths of the build machine.
    pub flags: BTreeMap<String, String>,
    /// sha256 of every file of the package, by its path in it.
    pub files: BTreeMap<String, String>,
    /// The web page in the server, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<web_page::ManifestPage>,
    /// Digest of all inputs of the build.
    pub inputs: String,
}

/// Record of the last finished build, by which the next one detects that nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Digest of all inputs of the build.
    pub inputs: String,
    /// Digest of those inputs that are sources; empty in stamps of older versions of this tool.
    #[serde(default)]
    pub sources: String,
    /// Size in bytes and modification time in nanoseconds of every file of the package.
    pub files: BTreeMap<String, (u64, u128)>,
}

/// Returns the command that builds the package of a variant: the one place that writes it.
pub fn build_command(variant: &str, flavor: &str) -> String {
    format!("cargo xtask build --variant {variant} --flavor {flavor}")
}

/// Returns the cache entries without those that are paths on the build machine.
pub fn portable_flags(entries: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_path = |value: &str| value.starts_with('/') || value.contains(":\\");
    entries.iter().filter(|(_, value)| !is_path(value)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_build_machine_stay_out() {
        let entries = BTreeMap::from([
            ("GGML_NATIVE".to_string(), "ON".to_string()),
            ("CMAKE_C_COMPILER".to_string(), "/usr/bin/cc".to_string()),
        ]);
        assert_eq!(portable_flags(&entries).keys().collect::<Vec<_>>(), ["GGML_NATIVE"]);
    }
}
