//! `sbom.cdx.json` of a package: its components, and the changes made to them. It is deterministic: it has no timestamp
//! and no random number.

use espalier_core::http::percent_encoded;

use super::cyclonedx::{
    Bom, Component, Diff, Hash, Issue, Licence, LicenceIdentity, Metadata, Patch, Pedigree, Property,
};
use super::{CRATE_LICENCES, Library, Origin, PAGE_LICENCES, PatchNote, UPSTREAM_LICENCES};
use crate::plan::manifest::Manifest;

/// The CycloneDX version of the document.
pub const SPEC: &str = "1.6";

/// `bom-ref` of upstream, patched.
pub const UPSTREAM: &str = "upstream";

/// Prefix of the property with the sha256 of a patch; the patch's file follows.
pub const PATCH_SHA256: &str = "espalier:patch-sha256:";

/// The name of Rust's standard libraries.
pub const RUST: &str = "rust-std";

/// Prefix of a patch's status.
pub const STATUS: &str = "Upstream-Status: ";

/// Builds the document of the package that `manifest` describes, with the files that the manifest lists.
#[must_use]
pub fn document(origin: &Origin, manifest: &Manifest) -> Bom {
    let mut components = vec![upstream(origin, manifest)];
    components.extend(vendored(manifest));
    if !origin.overlays.is_empty() {
        components.push(overlay(origin));
    }
    components.extend(origin.crates.iter().map(|library| registered(registry_of(library), library)));
    components.extend(manifest.page.as_ref().map(|page| Component {
        components: origin.page.iter().map(|library| registered("npm", library)).collect(),
        hashes: vec![sha256(&page.sha256)],
        licenses: vec![named(PAGE_LICENCES)],
        properties: vec![property("espalier:tree", &page.tree)],
        ..component("application", "web-page", "web page of the server", &page.tree)
    }));
    components.extend(manifest.files.iter().map(|(file, digest)| Component {
        hashes: vec![sha256(digest)],
        ..component("file", &format!("file:{file}"), file, "")
    }));
    Bom {
        schema: format!("http://cyclonedx.org/schema/bom-{SPEC}.schema.json"),
        bom_format: "CycloneDX".to_string(),
        spec_version: SPEC.to_string(),
        version: 1,
        metadata: Metadata { component: package(origin, manifest) },
        components,
    }
}

fn package(origin: &Origin, manifest: &Manifest) -> Component {
    let properties = [
        ("espalier:variant", &manifest.variant),
        ("espalier:flavor", &manifest.flavor),
        ("espalier:platform", &manifest.platform),
        ("espalier:tree", &manifest.tree),
        ("espalier:compiler", &manifest.compiler),
    ];
    let name = format!("espalier-{}-{}", manifest.variant, manifest.flavor);
    Component {
        properties: properties.map(|(name, value)| property(name, value)).to_vec(),
        ..component("application", "package", &name, &origin.version)
    }
}

fn upstream(origin: &Origin, manifest: &Manifest) -> Component {
    let pristine = Component {
        purl: Some(purl_of_upstream(origin, manifest)),
        properties: vec![property("espalier:tree", &manifest.base_tree)],
        ..component("library", "upstream-as-pinned", &origin.upstream, &manifest.pin)
    };
    let digests = origin
        .patches
        .iter()
        .map(|patch| Property { name: format!("{PATCH_SHA256}{}", patch.file), value: patch.sha256.clone() });
    let licence = origin.licence.clone().map_or_else(
        || named(UPSTREAM_LICENCES),
        |id| Licence::One { license: LicenceIdentity { id: Some(id), name: None } },
    );
    Component {
        purl: pristine.purl.clone(),
        licenses: vec![licence],
        pedigree: Some(Pedigree {
            ancestors: vec![pristine],
            patches: origin.patches.iter().map(patch).collect(),
        }),
        properties: [property("espalier:tree", &manifest.tree)].into_iter().chain(digests).collect(),
        ..component("library", UPSTREAM, &origin.upstream, &manifest.pin)
    }
}

fn purl_of_upstream(origin: &Origin, manifest: &Manifest) -> String {
    let on_github = origin.url.as_deref().and_then(|url| url.split_once("github.com/"));
    let name = on_github.map(|(_, name)| name.trim_end_matches('/').trim_end_matches(".git"));
    let version = escaped(&manifest.pin);
    match name {
        Some(name) => format!("pkg:github/{}@{version}", name.to_ascii_lowercase()),
        None => format!("pkg:generic/{}@{version}", escaped(&origin.upstream)),
    }
}

fn patch(note: &PatchNote) -> Patch {
    let is_upstreams =
        ["backport", "accepted"].iter().any(|word| note.status.to_ascii_lowercase().starts_with(word));
    Patch {
        kind: if is_upstreams { "backport" } else { "unofficial" }.to_string(),
        diff: Diff { url: note.file.clone() },
        resolves: vec![Issue {
            kind: "enhancement".to_string(),
            name: note.subject.clone(),
            description: format!("{STATUS}{}", note.status),
        }],
    }
}

/// Third-party code in upstream's tree, found by its licence texts in the package.
fn vendored(manifest: &Manifest) -> Vec<Component> {
    let prefix = format!("{UPSTREAM_LICENCES}/");
    let texts = manifest.files.keys().filter_map(|file| file.strip_prefix(&prefix));
    let of_others = texts.filter(|text| text.contains('/'));
    let one = |text: &str| Component {
        licenses: vec![named(&format!("{prefix}{text}"))],
        ..component("library", &format!("vendored:{text}"), text.trim_end_matches(".txt"), &manifest.pin)
    };
    of_others.map(one).collect()
}

fn overlay(origin: &Origin) -> Component {
    let files = origin.overlays.iter().map(|file| Component {
        hashes: vec![sha256(&file.sha256)],
        ..component("file", &format!("overlay:{}", file.path), &file.path, "")
    });
    Component { components: files.collect(), ..component("library", "overlay", "overlay", &origin.version) }
}

/// The registry of a library; Rust's standard libraries are in none.
fn registry_of(library: &Library) -> &'static str {
    if library.name == RUST { "generic" } else { "cargo" }
}

fn registered(kind: &str, library: &Library) -> Component {
    let Library { name, version, licence } = library;
    let purl = format!("pkg:{kind}/{}@{}", escaped(name), escaped(version));
    let licenses = if licence.is_empty() {
        Vec::new()
    } else if is_expression(licence) {
        vec![Licence::Expression { expression: licence.replace('/', " OR ") }]
    } else {
        vec![named(licence)]
    };
    Component { licenses, purl: Some(purl.clone()), ..component("library", &purl, name, version) }
}

/// The folder with the licence texts of a crate.
#[must_use]
pub fn crate_folder(library: &Library) -> String {
    format!("{CRATE_LICENCES}/{}-{}", library.name, library.version)
}

/// Whether `text` is a list of ids with `AND`, `OR` or `WITH` between them; old crates write `/` for `OR`.
fn is_expression(text: &str) -> bool {
    let is_id = |word: &str| {
        let word = word.trim_matches(['(', ')']);
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-.+".contains(c))
    };
    let spaced = text.replace('/', " OR ");
    let words: Vec<&str> = spaced.split(' ').collect();
    let fits = |(at, word): (usize, &&str)| match at % 2 {
        0 => is_id(word),
        _ => ["AND", "OR", "WITH"].contains(word),
    };
    words.len() % 2 == 1 && words.iter().enumerate().all(fits)
}

fn component(kind: &str, bom_ref: &str, name: &str, version: &str) -> Component {
    Component {
        kind: kind.to_string(),
        bom_ref: bom_ref.to_string(),
        name: name.to_string(),
        version: version.to_string(),
        ..Component::default()
    }
}

fn property(name: &str, value: &str) -> Property {
    Property { name: name.to_string(), value: value.to_string() }
}

fn sha256(digest: &str) -> Hash {
    Hash { alg: "SHA-256".to_string(), content: digest.to_string() }
}

/// A licence whose text is at this path in the package, or that has only a name.
fn named(name: &str) -> Licence {
    Licence::One { license: LicenceIdentity { id: None, name: Some(name.to_string()) } }
}

/// Percent-encodes text for a package URL.
fn escaped(text: &str) -> String {
    percent_encoded(text, b"-._~/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_distinguished_from_names() {
        for text in ["MIT", "MIT OR Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT/Apache-2.0"] {
            assert!(is_expression(text), "{text}");
        }
        for text in ["SEE LICENSE IN a.txt", "no licence named", "", "MIT Apache-2.0", "Custom: x"] {
            assert!(!is_expression(text), "{text}");
        }
    }

    #[test]
    fn upstream_has_the_url_of_its_host() {
        let manifest: Manifest = serde_json::from_value(serde_json::json!({
            "variant": "v", "flavor": "f", "pin": "v1.0+x", "base_tree": "", "tree": "", "patches": {},
            "compiler": "", "flags": {}, "files": {}, "inputs": "",
        }))
        .unwrap();
        let purl = |url: Option<&str>| {
            let origin = Origin { upstream: "a b".into(), url: url.map(Into::into), ..Origin::default() };
            purl_of_upstream(&origin, &manifest)
        };
        assert_eq!(purl(Some("https://github.com/Org/name.git")), "pkg:github/org/name@v1.0%2Bx");
        assert_eq!(purl(Some("https://example.invalid/x")), "pkg:generic/a%20b@v1.0%2Bx");
        assert_eq!(purl(None), "pkg:generic/a%20b@v1.0%2Bx");
    }

    #[test]
    fn names_in_a_scope_are_escaped() {
        let library = Library { name: "@a/b".into(), version: "1.0".into(), licence: "MIT".into() };
        assert_eq!(registered("npm", &library).purl.unwrap(), "pkg:npm/%40a/b@1.0");
    }
}
