//! Checks that the SBOM agrees with the manifest, and its patch entries with the patches themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::{RepositoryFacts, crate_folders, differences, unequal};
use crate::plan::manifest::Manifest;
use crate::plan::shipped::cyclonedx::{Bom, Component, Patch};
use crate::plan::shipped::sbom::{PATCH_SHA256, RUST, SPEC, STATUS, UPSTREAM};
use crate::plan::shipped::{PROVENANCE, SBOM, UPSTREAM_LICENCES};

/// All findings about the SBOM.
pub(super) fn findings(bom: &Bom, manifest: &Manifest, known: &RepositoryFacts) -> Vec<String> {
    let whose = format!("`{SBOM}`");
    let package = &bom.metadata.component;
    let name = format!("espalier-{}-{}", manifest.variant, manifest.flavor);
    let mut found = unequal(
        &whose,
        &[
            ("the format", Some(&bom.bom_format), "CycloneDX"),
            ("its version", Some(&bom.spec_version), SPEC),
            ("the package", Some(&package.name), &name),
            ("the platform", package.property("espalier:platform"), &manifest.platform),
            ("the built tree", package.property("espalier:tree"), &manifest.tree),
            ("the compiler", package.property("espalier:compiler"), &manifest.compiler),
        ],
    );
    found.extend(files(bom, manifest));
    found.extend(upstream(bom, manifest, known));
    found.extend(libraries(bom, manifest));
    found
}

/// Checks that it lists every file except the SBOM itself and the provenance, which is written after it.
fn files(bom: &Bom, manifest: &Manifest) -> Vec<String> {
    let listed: Vec<(&String, String)> = bom
        .components
        .iter()
        .filter(|component| component.kind == "file")
        .map(|file| (&file.name, file.sha256().unwrap_or("nothing").to_string()))
        .collect();
    let listed = listed.iter().map(|(name, digest)| (*name, digest)).collect();
    let is_listed = |(file, _): &(&String, &String)| ![SBOM, PROVENANCE].contains(&file.as_str());
    let there = manifest.files.iter().filter(is_listed).collect();
    differences(&format!("`{SBOM}`"), &listed, "manifest.json", &there)
}

fn upstream(bom: &Bom, manifest: &Manifest, known: &RepositoryFacts) -> Vec<String> {
    let whose = format!("`{SBOM}`");
    let component = bom.components.iter().find(|component| component.bom_ref == UPSTREAM);
    let (Some(component), Some(pedigree)) =
        (component, component.and_then(|component| component.pedigree.as_ref()))
    else {
        return vec![format!("{whose} does not say what upstream is and how it was changed")];
    };
    let pinned = pedigree.ancestors.first();
    let mut found = unequal(
        &whose,
        &[
            ("the pin", Some(&component.version), &manifest.pin),
            ("the tree of upstream, patched", component.property("espalier:tree"), &manifest.tree),
            ("the pinned tree", pinned.and_then(|one| one.property("espalier:tree")), &manifest.base_tree),
            ("the pin that it was made from", pinned.map(|one| one.version.as_str()), &manifest.pin),
        ],
    );
    found.extend(patches(component, &pedigree.patches, manifest));
    found.extend(known.patches.iter().filter_map(|note| {
        let stated = pedigree.patches.iter().find(|patch| patch.diff.url == note.file)?.resolves.first();
        let is_ours = manifest.patches.get(&note.file) == Some(&note.sha256);
        let expected = (note.subject.clone(), format!("{STATUS}{}", note.status));
        let stated = stated.map(|issue| (issue.name.clone(), issue.description.clone())).unwrap_or_default();
        (is_ours && stated != expected)
            .then(|| format!("`{}`: {whose} says {:?}, the patch itself {:?}", note.file, stated, expected))
    }));
    found
}

/// Checks the patches in the pedigree, and their digests in the properties.
fn patches(component: &Component, pedigree: &[Patch], manifest: &Manifest) -> Vec<String> {
    let whose = format!("`{SBOM}`");
    let digest = |file: &str| component.property(&format!("{PATCH_SHA256}{file}")).unwrap_or("nothing");
    let listed: BTreeMap<String, String> =
        pedigree.iter().map(|patch| (patch.diff.url.clone(), digest(&patch.diff.url).to_string())).collect();
    let mut found =
        differences(&whose, &listed.iter().collect(), "manifest.json", &manifest.patches.iter().collect());
    if pedigree.len() != listed.len() {
        found.push(format!("{whose} has a patch twice"));
    }
    found
}

/// Checks that every library with a licence text is listed, and that every listed library has a text.
fn libraries(bom: &Bom, manifest: &Manifest) -> Vec<String> {
    let whose = format!("`{SBOM}`");
    let mut found = Vec::new();
    let crates: BTreeSet<String> = bom
        .components
        .iter()
        .filter(|component| component.bom_ref.starts_with("pkg:cargo/") || component.name == RUST)
        .map(|one| format!("{}-{}", one.name, one.version))
        .collect();
    let folders: BTreeSet<String> = crate_folders(manifest).into_iter().map(str::to_string).collect();
    let lists = |names: BTreeSet<&String>, what: &str| -> Vec<String> {
        names.into_iter().map(|name| format!("the crate {name} {what}")).collect()
    };
    found.extend(lists(crates.difference(&folders).collect(), "has no licence text"));
    found.extend(lists(folders.difference(&crates).collect(), "has a licence text and is not in the SBOM"));
    let prefix = format!("{UPSTREAM_LICENCES}/");
    let refs: BTreeSet<&str> = bom.components.iter().map(|component| component.bom_ref.as_str()).collect();
    let texts = manifest.files.keys().filter_map(|file| file.strip_prefix(&prefix));
    for text in texts.filter(|text| text.contains('/')) {
        if !refs.contains(format!("vendored:{text}").as_str()) {
            found.push(format!("`{prefix}{text}` is of a source that {whose} does not list"));
        }
    }
    let page = bom.components.iter().find(|component| component.bom_ref == "web-page");
    let of_manifest = manifest.page.as_ref().map(|page| (page.tree.as_str(), page.sha256.as_str()));
    let stated = page.map(|page| (page.version.as_str(), page.sha256().unwrap_or_default()));
    if stated != of_manifest {
        found.push(format!("the web page: {whose} says {stated:?}, expected {of_manifest:?}"));
    }
    found
}
