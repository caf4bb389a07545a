//! Audits a package: every file against the manifest, the SBOM and the provenance against both, and all of them against
//! the lock of a repository, if there is one. Each finding is a sentence.

mod bom;
mod origin;

use std::collections::{BTreeMap, BTreeSet};

use espalier_core::config::lock::{Lock, LockedVariant};
use serde::de::DeserializeOwned;

use super::cyclonedx::Bom;
use super::provenance::Statement;
use super::{
    CRATE_LICENCES, Contents, MANIFEST, PAGE_LICENCES, PROVENANCE, PatchNote, SBOM, UPSTREAM_LICENCES,
};
use crate::plan::manifest::{Manifest, build_command};
use crate::plan::reference::is_reference;

/// Facts from the repository.
#[derive(Clone, Debug, Default)]
pub struct RepositoryFacts {
    /// Its lock; `None` without a repository.
    pub lock: Option<Lock>,
    /// Those of its patches whose files exist.
    pub patches: Vec<PatchNote>,
}

/// Result of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The manifest, if it can be read.
    pub manifest: Option<Manifest>,
    /// Descriptions of all findings.
    pub findings: Vec<String>,
}

/// Checks a package.
#[must_use]
pub fn audit(contents: &Contents, known: &RepositoryFacts) -> Audit {
    let mut findings = contents.others.clone();
    let manifest = read::<Manifest>(contents, MANIFEST, &mut findings);
    if let Some(manifest) = &manifest {
        findings.extend(files(contents, manifest));
        if let Some(bom) = read::<Bom>(contents, SBOM, &mut findings) {
            findings.extend(bom::findings(&bom, manifest, known));
        }
        if let Some(statement) = read::<Statement>(contents, PROVENANCE, &mut findings) {
            findings.extend(origin::findings(&statement, manifest, locked(manifest, known)));
        }
        findings.extend(licences(contents, manifest));
        findings.extend(lock(manifest, known));
        findings.extend(reference(manifest));
    }
    Audit { manifest, findings }
}

fn reference(manifest: &Manifest) -> Option<String> {
    let build = build_command(&manifest.variant, &manifest.flavor);
    let what = format!(
        "it is a reference for comparisons, compiled at -O1; `{build}` makes the one that can be shipped"
    );
    is_reference(&manifest.flags).then_some(what)
}

fn read<T: DeserializeOwned>(contents: &Contents, name: &str, findings: &mut Vec<String>) -> Option<T> {
    let Some(bytes) = contents.texts.get(name) else {
        findings.push(format!("there is no `{name}`"));
        return None;
    };
    serde_json::from_slice(bytes)
        .map_err(|error| findings.push(format!("`{name}` cannot be read: {error}")))
        .ok()
}

/// Checks that the package has exactly the files of the manifest, besides the manifest, which cannot list itself.
fn files(contents: &Contents, manifest: &Manifest) -> Vec<String> {
    let is_other = |(file, _): &(&String, &String)| *file != MANIFEST;
    let there: BTreeMap<&String, &String> = contents.files.iter().filter(is_other).collect();
    differences("the package", &there, MANIFEST, &manifest.files.iter().collect())
}

/// Differences between `found`, the files of `whose`, and `expected`, the files according to `expected_by`.
fn differences(
    whose: &str,
    found: &BTreeMap<&String, &String>,
    expected_by: &str,
    expected: &BTreeMap<&String, &String>,
) -> Vec<String> {
    let names: BTreeSet<&&String> = found.keys().chain(expected.keys()).collect();
    let one = |name: &&&String| match (found.get(**name), expected.get(**name)) {
        (Some(is), Some(should)) if is == should => None,
        (Some(is), Some(should)) => {
            Some(format!("`{name}`: {whose} has {is}, `{expected_by}` says {should}"))
        }
        (None, _) => Some(format!("`{name}` is missing in {whose}, `{expected_by}` has it")),
        (_, None) => Some(format!("`{name}` is in {whose}, `{expected_by}` does not have it")),
    };
    names.iter().filter_map(one).collect()
}

/// A sentence for each pair that should be equal but is not.
fn unequal(whose: &str, pairs: &[(&str, Option<&str>, &str)]) -> Vec<String> {
    let differs = pairs.iter().filter(|(_, found, expected)| *found != Some(*expected));
    let say = |(name, found, expected): &(&str, Option<&str>, &str)| {
        format!("{name}: {whose} says `{}`, expected `{expected}`", found.unwrap_or("nothing"))
    };
    differs.map(say).collect()
}

fn licences(contents: &Contents, manifest: &Manifest) -> Vec<String> {
    let has = |prefix: &str| contents.files.keys().any(|file| file.starts_with(prefix));
    let mut found = Vec::new();
    if !has(&format!("{UPSTREAM_LICENCES}/")) {
        found.push(format!("there is no licence of upstream: `{UPSTREAM_LICENCES}/` is empty"));
    }
    if manifest.page.is_some() && !has(PAGE_LICENCES) {
        found.push(format!("the server has a web page, whose licences are missing: `{PAGE_LICENCES}`"));
    }
    found
}

/// The folders of crates' licences.
fn crate_folders(manifest: &Manifest) -> BTreeSet<&str> {
    let below = manifest.files.keys().filter_map(|file| file.strip_prefix(CRATE_LICENCES)?.strip_prefix('/'));
    below.filter_map(|file| file.split('/').next()).collect()
}

fn locked<'a>(manifest: &Manifest, known: &'a RepositoryFacts) -> Option<&'a LockedVariant> {
    known.lock.as_ref()?.variants.get(&manifest.variant)
}

/// Checks the manifest against the repository's lock.
fn lock(manifest: &Manifest, known: &RepositoryFacts) -> Vec<String> {
    const LOCK: &str = "espalier.lock";
    if known.lock.is_none() {
        return Vec::new();
    }
    let Some(locked) = locked(manifest, known) else {
        return vec![format!("the variant `{}` is not in `{LOCK}`", manifest.variant)];
    };
    let patches = locked.patches.iter().map(|patch| (&patch.file, &patch.sha256)).collect();
    let mut found = differences("the package", &manifest.patches.iter().collect(), LOCK, &patches);
    found.extend(unequal(
        &format!("`{MANIFEST}`"),
        &[
            ("the pin", Some(&manifest.pin), &locked.pin),
            ("the pinned tree", Some(&manifest.base_tree), &locked.base),
            ("the tree", Some(&manifest.tree), &locked.tree),
        ],
    ));
    found
}
