//! The web page that upstream's server shows at `/`: its sources, and the record that marks it as complete.

use std::collections::BTreeMap;

use espalier_core::config::pins::Version;
use serde::{Deserialize, Serialize};

use super::node_range;

/// Folder of the page's sources in upstream's tree.
pub const FOLDER: &str = "tools/ui";

/// The page of a package, as `manifest.json` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestPage {
    /// The git tree of its sources.
    pub tree: String,
    /// Digest of all its files.
    pub sha256: String,
}

/// `page.json`: written last, so that a page that has it is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The git tree of its sources.
    pub tree: String,
    /// Digest of the build recipe; the page is rebuilt when it changes.
    pub recipe: String,
    /// The Node.js version that built it.
    pub node: String,
    /// sha256 of every file, by its path below the page.
    pub files: BTreeMap<String, String>,
}

impl Record {
    /// The text from which the digest of the page is computed.
    pub fn text(&self) -> String {
        self.files.iter().map(|(file, digest)| format!("{digest}  {file}\n")).collect()
    }
}

#[derive(Deserialize)]
struct PackageLock {
    packages: BTreeMap<String, Package>,
}

#[derive(Deserialize)]
struct Package {
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    engines: serde_json::Value,
}

/// A package that does not support a version of Node.js.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompatibleNpmPackage {
    /// Its name.
    pub package: String,
    /// The versions that it requires.
    pub range: String,
}

/// The first package of a `package-lock.json` that does not support `node`. A lock that cannot be parsed refuses
/// nothing: npm will report what is wrong with it.
pub fn refusal(lock: &[u8], node: Version) -> Option<IncompatibleNpmPackage> {
    let lock: PackageLock = serde_json::from_slice(lock).ok()?;
    lock.packages.into_iter().find_map(|(path, package)| {
        let range = package.engines.get("node")?.as_str()?.to_string();
        let refuses = !package.optional && !node_range::admits(&range, node);
        let name = path.rsplit("node_modules/").next().unwrap_or(&path).to_string();
        refuses.then_some(IncompatibleNpmPackage { package: name, range })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_package_that_asks_for_another_node_is_named() {
        let lock = br#"{ "packages": {
            "": { "name": "page" },
            "node_modules/a": { "engines": { "node": ">=4" } },
            "node_modules/b": { "optional": true, "engines": { "node": ">=99" } },
            "node_modules/c": { "engines": ["node >= 99"] },
            "node_modules/a/node_modules/@x/vite": { "engines": { "node": "^20.19.0 || >=22.12.0" } }
        } }"#;
        let refused = refusal(lock, Version([18, 20, 4]));
        let expected =
            IncompatibleNpmPackage { package: "@x/vite".into(), range: "^20.19.0 || >=22.12.0".into() };
        assert_eq!(refused, Some(expected));
        assert_eq!(refusal(lock, Version([20, 20, 2])), None);
        assert_eq!(refusal(b"not JSON", Version([1, 0, 0])), None);
    }
}
