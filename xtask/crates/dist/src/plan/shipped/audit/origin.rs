//! Checks that the provenance covers these files, and names the same inputs as the manifest and the lock.

use std::collections::BTreeMap;

use espalier_core::config::lock::LockedVariant;

use super::{differences, unequal};
use crate::plan::manifest::Manifest;
use crate::plan::shipped::PROVENANCE;
use crate::plan::shipped::provenance::{
    ALL_INPUTS, BUILD_TYPE, BUILT_TREE, OVERLAY, PATCH, PINNED_TREE, PREDICATE, Resource, STATEMENT,
    Statement,
};

/// All findings about the provenance; `locked` is the variant in the repository's lock.
pub(super) fn findings(
    statement: &Statement,
    manifest: &Manifest,
    locked: Option<&LockedVariant>,
) -> Vec<String> {
    let mut found = wrong_facts(statement, manifest);
    found.extend(wrong_files(statement, manifest, locked));
    found
}

/// Facts that differ from those of the manifest.
fn wrong_facts(statement: &Statement, manifest: &Manifest) -> Vec<String> {
    let definition = &statement.predicate.build_definition;
    let inputs = &definition.resolved_dependencies;
    let digest = |name: &str, algorithm: &str| {
        let input = inputs.iter().find(|input| input.name == name)?;
        input.digest.get(algorithm).map(String::as_str)
    };
    let decided = &definition.internal_parameters;
    let parameter = |name: &str| definition.external_parameters.get(name).map(String::as_str);
    unequal(
        &format!("`{PROVENANCE}`"),
        &[
            ("the kind of statement", Some(&statement.kind), STATEMENT),
            ("the kind of predicate", Some(&statement.predicate_type), PREDICATE),
            ("the kind of build", Some(&definition.build_type), BUILD_TYPE),
            ("the variant", parameter("variant"), &manifest.variant),
            ("the flavor", parameter("flavor"), &manifest.flavor),
            ("the compiler", Some(&decided.compiler), &manifest.compiler),
            ("the platform", Some(&decided.platform), &manifest.platform),
            ("all inputs", digest(ALL_INPUTS, "sha256"), &manifest.inputs),
            ("the pinned tree", digest(PINNED_TREE, "gitTree"), &manifest.base_tree),
            ("the built tree", digest(BUILT_TREE, "gitTree"), &manifest.tree),
        ],
    )
}

/// Settings of CMake, and digests of files, that differ from those of the manifest and of the lock.
fn wrong_files(statement: &Statement, manifest: &Manifest, locked: Option<&LockedVariant>) -> Vec<String> {
    let whose = format!("`{PROVENANCE}`");
    let definition = &statement.predicate.build_definition;
    let inputs = &definition.resolved_dependencies;
    let cmake = &definition.internal_parameters.cmake;
    let flags = (cmake.iter().collect(), manifest.flags.iter().collect());
    let mut found = differences(&whose, &flags.0, "manifest.json", &flags.1);
    let is_subject = |(file, _): &(&String, &String)| *file != PROVENANCE;
    let files = manifest.files.iter().filter(is_subject).collect();
    let subjects = digests(statement.subject.iter(), "");
    found.extend(differences(&whose, &subjects.iter().collect(), "manifest.json", &files));
    let patches = digests(inputs.iter(), PATCH);
    found.extend(differences(
        &whose,
        &patches.iter().collect(),
        "manifest.json",
        &manifest.patches.iter().collect(),
    ));
    if let Some(locked) = locked {
        let overlays = digests(inputs.iter(), OVERLAY);
        let expected: BTreeMap<&String, &String> =
            locked.overlays.iter().map(|file| (&file.path, &file.sha256)).collect();
        found.extend(differences(&whose, &overlays.iter().collect(), "espalier.lock", &expected));
    }
    found
}

/// sha256 by name of the resources whose name begins with `prefix`, which is stripped.
fn digests<'a>(resources: impl Iterator<Item = &'a Resource>, prefix: &str) -> BTreeMap<String, String> {
    let digest = |resource: &Resource| {
        let name = resource.name.strip_prefix(prefix)?.to_string();
        Some((name, resource.digest.get("sha256").cloned().unwrap_or_else(|| "nothing".to_string())))
    };
    resources.filter_map(digest).collect()
}
