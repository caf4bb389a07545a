//! The metadata of an image: its configuration, its manifest, and the index of its folder.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{HEALTH, PACKAGE, USER};
use crate::plan::manifest::Manifest;

/// The file that marks a folder as an image layout.
pub const LAYOUT: &str = "oci-layout";
/// The file that lists the images in such a folder.
pub const INDEX: &str = "index.json";
/// Folder of everything else, by digest.
pub const BLOBS: &str = "blobs/sha256";
/// Default port of a server.
const PORT: u16 = 8080;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A content-addressed blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// sha256 of the file.
    pub sha256: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A written layer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// The compressed file.
    pub blob: Blob,
    /// sha256 of the tar in it.
    pub tar_sha256: String,
    /// The size of the tar in bytes.
    pub tar_bytes: u64,
}

/// Metadata of an image that its package does not have.
#[derive(Clone, Copy, Debug)]
pub struct Naming<'a> {
    /// The project's version.
    pub version: &'a str,
    /// An SPDX expression for the whole content of the image.
    pub licences: &'a str,
    /// The environment that its base requires.
    pub environment: &'a BTreeMap<String, String>,
}

/// `oci-layout`.
#[must_use]
pub fn layout() -> Value {
    json!({ "imageLayoutVersion": "1.0.0" })
}

/// The name under which tools list the image.
#[must_use]
pub fn tag(package: &Manifest) -> String {
    format!("{}-{}-{}", package.variant, package.flavor, package.pin)
}

/// The labels that describe an image to people and tools.
#[must_use]
pub fn labels(package: &Manifest, naming: Naming<'_>) -> BTreeMap<String, String> {
    let title = format!("espalier-{}-{}", package.variant, package.flavor);
    let standard = [
        ("title", title.as_str()),
        ("version", naming.version),
        ("revision", &package.tree),
        ("licenses", naming.licences),
    ];
    let standard =
        standard.map(|(key, value)| (format!("org.opencontainers.image.{key}"), value.to_string()));
    standard.into_iter().chain(own_labels(package).map(|(key, value)| (key, value.to_string()))).collect()
}

/// The labels in a configuration.
#[must_use]
pub fn labels_of(config: &Value) -> Value {
    config["config"]["Labels"].clone()
}

/// The labels that contradict the package in the image.
#[must_use]
pub fn wrong_labels(labels: &Value, package: &Manifest) -> Vec<String> {
    let other = own_labels(package).into_iter().filter(|(key, value)| labels[key] != *value);
    other.map(|(key, value)| format!("the label `{key}` is not `{value}`")).collect()
}

/// The labels that name what is in the package.
fn own_labels(package: &Manifest) -> [(String, &str); 4] {
    let Manifest { variant, flavor, pin, tree, .. } = package;
    let own = [("variant", variant), ("flavor", flavor), ("pin", pin), ("tree", tree)];
    own.map(|(key, value)| (format!("dev.espalier.{key}"), value.as_str()))
}

/// The configuration. It has no timestamp, so that building an image twice gives the same image.
#[must_use]
pub fn config(package: &Manifest, naming: Naming<'_>, layers: &[Sealed]) -> Value {
    let diffs: Vec<String> = layers.iter().map(|layer| format!("sha256:{}", layer.tar_sha256)).collect();
    const SECOND: u64 = 1_000_000_000;
    let ours = [
        format!("PATH=/{PACKAGE}/bin:/usr/bin"),
        "LLAMA_ARG_HOST=0.0.0.0".to_string(),
        format!("LLAMA_ARG_PORT={PORT}"),
    ];
    let of_the_base = naming.environment.iter().map(|(key, value)| format!("{key}={value}"));
    json!({
        "architecture": architecture(&package.platform),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { format!("{PORT}/tcp"): {} },
            "Env": ours.into_iter().chain(of_the_base).collect::<Vec<_>>(),
            "Entrypoint": [format!("/{PACKAGE}/bin/llama-server")],
            "WorkingDir": "/",
            "Labels": labels(package, naming),
            "StopSignal": "SIGTERM",
            // Docker's extension, which other tools read too. The start period is long because a large model takes a
            // while to load.
            "Healthcheck": {
                "Test": ["CMD", format!("/{HEALTH}")],
                "Interval": 15 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 600 * SECOND, "Retries": 3,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": diffs },
    })
}

/// The OCI name of a platform's architecture.
fn architecture(platform: &str) -> &'static str {
    if platform.ends_with("aarch64") { "arm64" } else { "amd64" }
}

/// The manifest.
#[must_use]
pub fn manifest(config: &Blob, layers: &[Sealed]) -> Value {
    let layers: Vec<Value> = layers.iter().map(|layer| descriptor(LAYER_TYPE, &layer.blob)).collect();
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, config),
        "layers": layers,
    })
}

/// `index.json`.
#[must_use]
pub fn index(package: &Manifest, manifest: &Blob) -> Value {
    let mut entry = descriptor(MANIFEST_TYPE, manifest);
    entry["platform"] = json!({ "architecture": architecture(&package.platform), "os": "linux" });
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": tag(package) });
    json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry] })
}

fn descriptor(kind: &str, blob: &Blob) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", blob.sha256), "size": blob.bytes })
}

/// Builds one SPDX expression from the licences that an SBOM names by their SPDX ids, and those of the base.
#[must_use]
pub fn licences(sbom: &Value, base: &str) -> String {
    let components = sbom["components"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = components.iter().flat_map(|one| one["licenses"].as_array().into_iter().flatten());
    let ids = named.filter_map(|one| one["license"]["id"].as_str().or(one["expression"].as_str()));
    let mut all: Vec<String> =
        ids.flat_map(|id| id.split(" AND ")).chain(base.split(" AND ")).map(bracketed).collect();
    all.retain(|id| !id.is_empty());
    all.sort();
    all.dedup();
    all.join(" AND ")
}

/// Normalizes a choice, so that the same alternatives give the same text in any order.
fn bracketed(id: &str) -> String {
    let mut choice: Vec<&str> = id.trim_matches(['(', ')']).split(" OR ").collect();
    choice.sort_unstable();
    if choice.len() > 1 { format!("({})", choice.join(" OR ")) } else { id.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_one_expression() {
        let bom = json!({ "components": [
            { "licenses": [{ "license": { "id": "MIT" } }] },
            { "licenses": [{ "expression": "MIT OR Apache-2.0" }] },
            { "licenses": [{ "expression": "Apache-2.0 OR MIT" }] },
            { "licenses": [{ "license": { "name": "licenses/x.txt" } }] },
            { "type": "file" },
        ] });
        let base = "LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1";
        assert_eq!(
            licences(&bom, base),
            "(Apache-2.0 OR MIT) AND GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1-or-later AND MIT"
        );
        assert_eq!(licences(&Value::Null, ""), "");
    }
}
