//! `manifest.json`: what a package is made of. Enough to build the same one again.

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
    /// What its programs run on; a package of an older version of this tool does not say.
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
    /// The C++ compiler's own words.
    pub compiler: String,
    /// CMake cache entries that it was configured with; paths of the build machine are left out.
    pub flags: BTreeMap<String, String>,
    /// sha256 of every file of the package, by its path in it.
    pub files: BTreeMap<String, String>,
    /// The web page in the server, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<web_page::Named>,
    /// Digest of everything that the build read.
    pub inputs: String,
}

/// What the last finished build left behind, so that the next one can see that nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Digest of everything that the build read.
    pub inputs: String,
    /// Size in bytes and modification time in nanoseconds of every file of the package.
    pub files: BTreeMap<String, (u64, u128)>,
}

/// Cache entries that say where something lies on the build machine and not what was built.
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
