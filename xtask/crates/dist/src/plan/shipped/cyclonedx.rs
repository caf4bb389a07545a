//! The subset of CycloneDX 1.6 that a package needs. Other optional fields are omitted when writing and ignored when
//! reading.

use serde::{Deserialize, Serialize};

/// The document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bom {
    /// URL of the format's schema.
    #[serde(rename = "$schema", default)]
    pub schema: String,
    /// Always `CycloneDX`.
    pub bom_format: String,
    /// Version of the format.
    pub spec_version: String,
    /// Edition of the document.
    pub version: u32,
    /// The subject of the document.
    pub metadata: Metadata,
    /// Its components.
    pub components: Vec<Component>,
}

/// The subject of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// The package.
    pub component: Component,
}

/// A part of a package.
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
    /// The changes made to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pedigree: Option<Pedigree>,
    /// Its nested components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<Component>,
    /// Data without a field of its own in the format.
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
    /// The digest in lower-case hexadecimal.
    pub content: String,
}

/// A licence, by id or by name, or an expression of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Licence {
    /// An SPDX expression.
    Expression {
        /// The expression, such as `MIT OR Apache-2.0`.
        expression: String,
    },
    /// One licence.
    One {
        /// The licence.
        license: LicenceIdentity,
    },
}

/// A licence by its SPDX id or, without one, by a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LicenceIdentity {
    /// SPDX id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Any name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The origin of a component, and the changes made to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pedigree {
    /// The components that it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Component>,
    /// The changes.
    pub patches: Vec<Patch>,
}

/// A change of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// `unofficial`, or `backport` for an upstream change.
    #[serde(rename = "type")]
    pub kind: String,
    /// The location of the change.
    pub diff: Diff,
    /// The purpose of the change.
    pub resolves: Vec<Issue>,
}

/// The location of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Path relative to the root of the project.
    pub url: String,
}

/// The purpose of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// `enhancement`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The patch's subject.
    pub name: String,
    /// Its upstream status.
    pub description: String,
}

/// Data without a field of its own in the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Name that begins with `espalier:`.
    pub name: String,
    /// Its value.
    pub value: String,
}
