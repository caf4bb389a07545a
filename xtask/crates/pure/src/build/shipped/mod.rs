//! What travels with a package: licences, a list of what is in it (SBOM), where it came from (provenance); and the
//! check of all three, of a package or of an archive of one.

pub mod audit;
pub mod cyclonedx;
pub mod library_names;
pub mod licence_text;
pub mod provenance;
pub mod release;
pub mod sbom;

use std::collections::BTreeMap;

use crate::plan::lock::LockedFile;

/// Raised whenever the documents of a package say more or something else, so that packages are made anew.
pub const FORMAT: u32 = 1;

/// What every package has at its top, beside its folders.
pub const MANIFEST: &str = "manifest.json";
/// The CycloneDX document.
pub const SBOM: &str = "sbom.cdx.json";
/// The in-toto statement.
pub const PROVENANCE: &str = "provenance.json";
/// All licence texts are below this folder.
pub const LICENCES: &str = "licenses";
/// Where the texts of upstream's tree are, at the paths that they have there.
pub const UPSTREAM_LICENCES: &str = "licenses/upstream";
/// Where the texts of the kernels' crates are, each in a folder `NAME-VERSION`.
pub const CRATE_LICENCES: &str = "licenses/crates";
/// The texts of all packages that are in the web page.
pub const PAGE_LICENCES: &str = "licenses/web-page.txt";

/// Where a package came from, as far as its manifest does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The project's version.
    pub version: String,
    /// The upstream that was followed, such as `llama.cpp`.
    pub upstream: String,
    /// Where its git repository is; nothing when only packages or folders are named.
    pub url: Option<String>,
    /// The pinned commit, where the pin is not a tag.
    pub commit: Option<String>,
    /// Patches in the order in which they apply.
    pub patches: Vec<PatchNote>,
    /// Files of ours in the tree.
    pub overlays: Vec<LockedFile>,
    /// Rust crates in the kernels' library, Rust's own libraries with them.
    pub crates: Vec<Library>,
    /// npm packages in the web page.
    pub page: Vec<Library>,
    /// What else decided the bytes, by name, each with its sha256.
    pub inputs: BTreeMap<String, String>,
    /// The SPDX id of upstream's licence, where its text is a known one.
    pub licence: Option<String>,
}

/// What people want to know of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchNote {
    /// Path relative to the root.
    pub file: String,
    /// Digest of the patch file.
    pub sha256: String,
    /// The first line of its message.
    pub subject: String,
    /// What its trailer `Upstream-Status` says; empty without one.
    pub status: String,
}

/// A library of somebody else's, by name and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// Name in its registry.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// The licence that it names, an SPDX expression as a rule; empty when it names none.
    pub licence: String,
}

/// A whole package, read: sha256 of every file by its path, and the texts that say what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// sha256 of every file, in lower-case hexadecimal.
    pub files: BTreeMap<String, String>,
    /// The bytes of `manifest.json`, `sbom.cdx.json` and `provenance.json`, as far as they are there.
    pub texts: BTreeMap<String, Vec<u8>>,
    /// What is in it and is no file: each is a finding.
    pub others: Vec<String>,
}
