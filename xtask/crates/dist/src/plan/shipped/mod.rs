//! Documents that ship with a package: licences, a list of its components (SBOM), its provenance; and the audit of all
//! three, for a package or for an archive of one.

pub mod audit;
pub mod cyclonedx;
pub mod library_names;
pub mod licence_text;
pub mod provenance;
pub mod release;
pub mod sbom;

use std::collections::BTreeMap;

use espalier_core::config::lock::LockedFile;

/// Version of the documents' content; incremented on every change, so that packages are rebuilt.
pub const FORMAT: u32 = 1;

/// The manifest, at the top of every package.
pub const MANIFEST: &str = "manifest.json";
/// The CycloneDX document.
pub const SBOM: &str = "sbom.cdx.json";
/// The in-toto statement.
pub const PROVENANCE: &str = "provenance.json";
/// Folder of all licence texts.
pub const LICENCES: &str = "licenses";
/// Folder of the upstream licence texts, at the same paths as in its tree.
pub const UPSTREAM_LICENCES: &str = "licenses/upstream";
/// Folder of the licence texts of the crates that are linked, each in a folder `NAME-VERSION`.
pub const CRATE_LICENCES: &str = "licenses/crates";
/// The licence texts of all packages in the web page.
pub const PAGE_LICENCES: &str = "licenses/web-page.txt";

/// The origin of a package, as far as it is not in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The project's version.
    pub version: String,
    /// The upstream project, such as `llama.cpp`.
    pub upstream: String,
    /// URL of its git repository; `None` when the sources are only packages or folders.
    pub url: Option<String>,
    /// The pinned commit, when the pin is not a tag.
    pub commit: Option<String>,
    /// Patches in the order in which they apply.
    pub patches: Vec<PatchNote>,
    /// Our overlay files in the tree.
    pub overlays: Vec<LockedFile>,
    /// Rust crates in the libraries that are linked, including Rust's standard libraries.
    pub crates: Vec<Library>,
    /// npm packages in the web page.
    pub page: Vec<Library>,
    /// Other inputs that determine the output, by name, with their sha256.
    pub inputs: BTreeMap<String, String>,
    /// SPDX id of the upstream licence, if its text is well known.
    pub licence: Option<String>,
}

/// Summary of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchNote {
    /// Path relative to the root.
    pub file: String,
    /// Digest of the patch file.
    pub sha256: String,
    /// The first line of its message.
    pub subject: String,
    /// The value of its trailer `Upstream-Status`; empty without one.
    pub status: String,
}

/// A third-party library, by name and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// Name in its registry.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// The licence that it declares, usually an SPDX expression; empty when it declares none.
    pub licence: String,
}

/// The content of a package: sha256 of every file by its path, and the documents that describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// sha256 of every file, in lower-case hexadecimal.
    pub files: BTreeMap<String, String>,
    /// The bytes of those of `manifest.json`, `sbom.cdx.json` and `provenance.json` that exist.
    pub texts: BTreeMap<String, Vec<u8>>,
    /// Entries that are not regular files: each is a finding.
    pub others: Vec<String>,
}
