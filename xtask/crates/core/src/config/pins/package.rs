//! Packages of registries that contain upstream's objects.

use std::collections::{BTreeMap, BTreeSet};

use super::{Pin, Source};
use crate::config::words::Sha256;

/// A package with upstream's objects, which has some revisions, each in one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its registry.
    pub registry: Registry,
    /// Package name.
    pub name: String,
    /// The exact version that has a revision, by upstream's tag or full commit id.
    pub versions: BTreeMap<String, String>,
    /// Path of the objects inside the package.
    pub member: String,
    /// Rough size of the package in bytes, for the progress bar.
    pub bytes: Option<u64>,
}

/// A registry, by its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registry {
    /// npm: the member is a git bundle of one release. The client verifies the digest that the registry states.
    Npm,
    /// pip: the member is a folder in a source distribution, below its top folder.
    Pip {
        /// Digest of the source distribution of each version.
        sha256: BTreeMap<String, Sha256>,
        /// The content of the folder.
        content: Content,
    },
}

/// The content of a folder in a source distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A git repository.
    Repository,
    /// Upstream's files, without git objects.
    Files,
}

impl Package {
    /// The program that downloads it.
    pub fn client(&self) -> &'static str {
        match self.registry {
            Registry::Npm => "npm",
            Registry::Pip { .. } => "pip",
        }
    }

    /// One exact version, as the client spells it.
    pub fn at(&self, version: &str) -> String {
        match self.registry {
            Registry::Npm => format!("{}@{version}", self.name),
            Registry::Pip { .. } => format!("{}=={version}", self.name),
        }
    }

    /// The version that has `revision`.
    pub fn version_of(&self, revision: &str) -> Option<&str> {
        self.versions.get(revision).map(String::as_str)
    }

    /// The only listed commit whose id begins with `short`.
    pub fn commit_beginning_with(&self, short: &str) -> Option<&str> {
        let mut found = self.commits_beginning_with(short);
        found.next().filter(|_| found.next().is_none())
    }

    /// The listed commits whose ids begin with `short`.
    fn commits_beginning_with(&self, short: &str) -> impl Iterator<Item = &str> {
        let is_id = |name: &str| name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_meant = move |name: &&str| is_id(name) && name.starts_with(short);
        self.versions.keys().map(String::as_str).filter(is_meant)
    }

    /// Description for display, when `revision` is fetched from it.
    pub fn describe(&self, revision: &str) -> String {
        match self.version_of(revision) {
            Some(version) => format!("{} {}", self.client(), self.at(version)),
            None => format!("{} {}", self.client(), self.name),
        }
    }
}

impl Pin {
    /// The only commit listed by a source of the pin whose id begins with `short`; `None` if `short` is listed itself,
    /// as the name of a release.
    pub fn listed_commit(&self, short: &str) -> Option<&str> {
        let packages = || {
            self.sources.iter().filter_map(|source| match source {
                Source::Package(package) => Some(package),
                Source::Git { .. } | Source::Path { .. } => None,
            })
        };
        let is_release = packages().any(|package| package.version_of(short).is_some());
        let short = short.to_ascii_lowercase();
        let found: BTreeSet<&str> =
            packages().flat_map(|package| package.commits_beginning_with(&short)).collect();
        let first = found.first().copied();
        first.filter(|_| found.len() == 1 && !is_release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::name::Name;
    use crate::config::pins::Revision;

    #[test]
    fn each_client_has_its_own_spelling_of_a_version() {
        let commit = "0aceb8d1".repeat(5);
        let versions = BTreeMap::from([(commit.clone(), "1.2".to_string())]);
        let package = |registry| Package {
            registry,
            name: "p".into(),
            versions: versions.clone(),
            member: "m".into(),
            bytes: None,
        };
        let npm = package(Registry::Npm);
        let pip = package(Registry::Pip { sha256: BTreeMap::new(), content: Content::Repository });
        assert_eq!([npm.describe(&commit), pip.describe(&commit)], ["npm p@1.2", "pip p==1.2"]);
        assert_eq!([npm.describe("v1"), pip.describe("v1")], ["npm p", "pip p"]);
    }

    #[test]
    fn a_short_id_names_one_listed_commit_or_none() {
        let ids = ["0aceb8d1".repeat(5), "0aceb8d2".repeat(5)];
        let names = ids.iter().cloned().chain(["0acetag".to_string()]);
        let versions = names.map(|name| (name, "1".to_string())).collect();
        let package =
            Package { registry: Registry::Npm, name: "p".into(), versions, member: "m".into(), bytes: None };
        assert_eq!(package.commit_beginning_with("0aceb8d1"), Some(ids[0].as_str()));
        for short in ["0aceb8d", "0acetag", "1"] {
            assert_eq!(package.commit_beginning_with(short), None, "{short}");
        }
    }

    #[test]
    fn a_short_id_names_one_commit_of_all_sources_or_none() {
        let ids = ["0aceb8d1".repeat(5), "0aceb8d2".repeat(5)];
        let package = |names: &[&str]| {
            let versions = names.iter().map(|name| (name.to_string(), "1".to_string())).collect();
            let (name, member) = ("p".to_string(), "m".to_string());
            Source::Package(Package { registry: Registry::Npm, name, versions, member, bytes: None })
        };
        let pin = |sources: Vec<Source>| Pin {
            name: Name::new("p").unwrap(),
            upstream: "p".to_string(),
            revision: Revision::parse("v1").unwrap(),
            tree: ids[0].parse().unwrap(),
            sources,
            generation_of: None,
        };
        let twice = pin(vec![package(&[&ids[0], &ids[1]]), package(&[&ids[0]])]);
        assert_eq!(twice.listed_commit("0aceb8d1"), Some(ids[0].as_str()));
        assert_eq!(twice.listed_commit("0ACEB8D1"), Some(ids[0].as_str()));
        assert_eq!((twice.listed_commit("0aceb8d"), twice.listed_commit("1234567")), (None, None));
        assert_eq!(pin(vec![package(&[&ids[0], "0aceb8d1"])]).listed_commit("0aceb8d1"), None);
        assert_eq!(pin(vec![Source::Path { path: "p".to_string() }]).listed_commit("0aceb8d1"), None);
    }
}
