//! `provenance.json` of a package: an in-toto statement with SLSA's predicate, which lists the inputs that the files
//! were made from. It is not signed: a signer is named in the envelope.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Origin;
use crate::plan::manifest::Manifest;

/// The type of the statement.
pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of the predicate.
pub const PREDICATE: &str = "https://slsa.dev/provenance/v1";
/// The build process: `cargo xtask build`, whose options are the external parameters.
pub const BUILD_TYPE: &str = "urn:espalier:build:v1";
/// Builder id of an unsigned statement: without a signature there is no evidence of the build machine.
pub const UNSIGNED: &str = "urn:espalier:unsigned";
/// The name of the pinned tree among the inputs.
pub const PINNED_TREE: &str = "pinned tree";
/// The name of the tree that was built.
pub const BUILT_TREE: &str = "built tree";
/// The name of the digest of everything that the build read.
pub const ALL_INPUTS: &str = "all inputs";
/// Prefix of the names of patch files among the inputs.
pub const PATCH: &str = "patch:";
/// Prefix of the paths of overlay files among the inputs.
pub const OVERLAY: &str = "overlay:";

/// The statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// [`STATEMENT`].
    #[serde(rename = "_type")]
    pub kind: String,
    /// The files that were made.
    pub subject: Vec<Resource>,
    /// [`PREDICATE`].
    pub predicate_type: String,
    /// The predicate about them.
    pub predicate: Predicate,
}

/// SLSA's predicate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    /// The build's parameters and inputs.
    pub build_definition: Definition,
    /// The builder.
    pub run_details: Value,
}

/// The parameters and inputs of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// [`BUILD_TYPE`].
    pub build_type: String,
    /// The requested variant and flavor.
    pub external_parameters: BTreeMap<String, String>,
    /// Parameters chosen by the tool.
    pub internal_parameters: Decided,
    /// All inputs by digest.
    pub resolved_dependencies: Vec<Resource>,
}

/// Parameters chosen by the tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Version string reported by the C++ compiler.
    pub compiler: String,
    /// CMake cache entries.
    pub cmake: BTreeMap<String, String>,
    /// Target platform of the programs.
    pub platform: String,
    /// The project's version.
    pub version: String,
}

/// A file or another input with a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Its download location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its name: a file of the package, or of the project.
    pub name: String,
    /// Digests by algorithm.
    pub digest: BTreeMap<String, String>,
}

/// The statement about the package that `manifest` describes, with the files that it lists.
#[must_use]
pub fn statement(origin: &Origin, manifest: &Manifest) -> Statement {
    let asked = [("variant", &manifest.variant), ("flavor", &manifest.flavor)];
    let asked = asked.map(|(name, value)| (name.to_string(), value.clone())).into();
    Statement {
        kind: STATEMENT.to_string(),
        subject: manifest.files.iter().map(|(file, digest)| resource(file, "sha256", digest)).collect(),
        predicate_type: PREDICATE.to_string(),
        predicate: Predicate {
            build_definition: Definition {
                build_type: BUILD_TYPE.to_string(),
                external_parameters: asked,
                internal_parameters: Decided {
                    compiler: manifest.compiler.clone(),
                    cmake: manifest.flags.clone(),
                    platform: manifest.platform.clone(),
                    version: origin.version.clone(),
                },
                resolved_dependencies: inputs(origin, manifest),
            },
            run_details: json!({ "builder": { "id": UNSIGNED } }),
        },
    }
}

fn inputs(origin: &Origin, manifest: &Manifest) -> Vec<Resource> {
    let mut pinned = resource(PINNED_TREE, "gitTree", &manifest.base_tree);
    pinned.uri = origin.url.as_ref().map(|url| format!("git+{url}@{}", manifest.pin));
    let commit = origin.commit.iter().map(|commit| ("gitCommit".to_string(), commit.clone()));
    pinned.digest.extend(commit);
    let mut inputs = vec![pinned, resource(BUILT_TREE, "gitTree", &manifest.tree)];
    inputs.extend(origin.patches.iter().map(|one| digested(PATCH, &one.file, &one.sha256)));
    inputs.extend(origin.overlays.iter().map(|one| digested(OVERLAY, &one.path, &one.sha256)));
    inputs.extend(origin.inputs.iter().map(|(name, digest)| resource(name, "sha256", digest)));
    inputs.push(resource(ALL_INPUTS, "sha256", &manifest.inputs));
    inputs.extend(manifest.page.iter().map(|page| resource("web page sources", "gitTree", &page.tree)));
    inputs
}

fn digested(prefix: &str, file: &str, digest: &str) -> Resource {
    resource(&format!("{prefix}{file}"), "sha256", digest)
}

fn resource(name: &str, algorithm: &str, digest: &str) -> Resource {
    let digest = [(algorithm.to_string(), digest.to_string())].into();
    Resource { uri: None, name: name.to_string(), digest }
}
