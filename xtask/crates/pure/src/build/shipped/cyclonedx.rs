//! The part of CycloneDX 1.6 that a package needs. Optional fields that are not here are left out when written, and
//! read past.

use serde::{Deserialize, Serialize};

/// The document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bom {
    /// Where the schema of the format is.
    #[serde(rename = "$schema", default)]
    pub schema: String,
    /// Always `CycloneDX`.
    pub bom_format: String,
    /// Version of the format.
    pub spec_version: String,
    /// Edition of the document.
    pub version: u32,
    /// What the document is about.
    pub metadata: Metadata,
    /// What is in it.
    pub components: Vec<Component>,
}

/// What a document is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The package.
    pub component: Component,
}

/// Anything that is in a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// `application`, `library` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name in the document.
    #[serde(rename = "bom-ref", default, skip_serializing_if = "String::is_empty")]
    pub bom_ref: String,
    /// Its own name.
    pub name: String,
    /// Its version; a file has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Package URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purl: Option<String>,
    /// Digests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hashes: Vec<Hash>,
    /// Licences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licenses: Vec<Licence>,
    /// What was changed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pedigree: Option<Pedigree>,
    /// What is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// What the format has no field for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
}

impl Component {
    /// The value of the property called `name`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|property| property.name == name).map(|property| property.value.as_str())
    }

    /// Its sha256.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        self.hashes.iter().find(|hash| hash.alg == "SHA-256").map(|hash| hash.content.as_str())
    }
}

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hash {
    /// `SHA-256`.
    pub alg: String,
    /// In lower-case hexadecimal.
    pub content: String,
}

/// A licence: one that has an id, one that has a name, or an expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Licence {
    /// An SPDX expression.
    Expression {
        /// Such as `MIT OR Apache-2.0`.
        expression: String,
    },
    /// One licence.
    One {
        /// Which.
        license: Named,
    },
}

/// A licence by its SPDX id or, where it has none, by a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// SPDX id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where a component came from, and how it was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pedigree {
    /// What it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Component>,
    /// What was changed.
    pub patches: Vec<Patch>,
}

/// A change of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// `unofficial`, or `backport` for what upstream has.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where the change is.
    pub diff: Diff,
    /// What it is for.
    pub resolves: Vec<Issue>,
}

/// Where a change is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Relative to the root of the project.
    pub url: String,
}

/// What a change is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// `enhancement`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The patch's subject.
    pub name: String,
    /// What upstream thinks of it.
    pub description: String,
}

/// What the format has no field for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Begins with `espalier:`.
    pub name: String,
    /// Its value.
    pub value: String,
}
