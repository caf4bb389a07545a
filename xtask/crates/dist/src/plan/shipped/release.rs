//! A release: packages as archives, their checksums, the changes, and a script that installs one of them.

use serde::{Deserialize, Serialize};

use super::PatchNote;
use crate::plan::manifest::Manifest;

/// Checksums of all files of a release.
pub const SUMS: &str = "SHA256SUMS";
/// Machine-readable contents of a release.
pub const INDEX: &str = "manifest.json";
/// Contents of a release for people.
pub const CHANGES: &str = "CHANGES.md";
/// The script that installs an archive.
pub const INSTALL: &str = "install.sh";

/// The name of a package in a release: of its folder, and of its archive without the extension.
#[must_use]
pub fn name(version: &str, manifest: &Manifest) -> String {
    let Manifest { variant, flavor, platform, .. } = manifest;
    format!("espalier-{version}-{variant}-{flavor}-{platform}")
}

/// `manifest.json` of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The project's version.
    pub version: String,
    /// Every archive.
    pub archives: Vec<Archive>,
}

/// One archive of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archive {
    /// File name.
    pub file: String,
    /// Digest.
    pub sha256: String,
    /// Size.
    pub bytes: u64,
    /// Variant name.
    pub variant: String,
    /// Flavor name.
    pub flavor: String,
    /// Target platform of its programs.
    pub platform: String,
    /// The pin's tag or commit.
    pub pin: String,
    /// The tree that was built.
    pub tree: String,
}

/// `SHA256SUMS`: file and digest, sorted, as `sha256sum --check` reads it.
#[must_use]
pub fn sums(digests: &[(String, String)]) -> String {
    let mut lines: Vec<String> = digests.iter().map(|(file, digest)| format!("{digest}  {file}\n")).collect();
    lines.sort_by(|left, right| left[64.min(left.len())..].cmp(&right[64.min(right.len())..]));
    lines.concat()
}

/// The install script for one version, with the variant that it installs by default. `url` is the download location;
/// empty when it is unknown.
#[must_use]
pub fn install_script(version: &str, variant: &str, url: &str) -> String {
    include_str!("install.sh")
        .replace("@VERSION@", version)
        .replace("@VARIANT@", variant)
        .replace("@URL@", url.trim_end_matches('/'))
}

/// Whether `url` can be inserted into the script without escaping: it contains nothing that ends a quote.
#[must_use]
pub fn is_url(url: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%+@".contains(c);
    url.starts_with("https://") && url.chars().all(is_plain)
}

/// The text below the heading `## [version]` of a changelog, up to the next such heading.
#[must_use]
pub fn changelog_entry(changelog: &str, version: &str) -> Option<String> {
    let heading = format!("## [{version}]");
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(&heading)).peekable();
    lines.next()?;
    let entry: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Some(entry.join("\n").trim().to_string())
}

/// A variant of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its upstream, such as `llama.cpp`.
    pub upstream: String,
    /// The pin's tag or commit.
    pub pin: String,
    /// The pinned tree.
    pub base_tree: String,
    /// The tree that was built.
    pub tree: String,
    /// Its patches, in the order in which they apply.
    pub patches: Vec<PatchNote>,
}

/// Renders `CHANGES.md`: the changelog entry, then the pin and patches of each variant.
#[must_use]
pub fn changes(version: &str, entry: &str, variants: &[Variant]) -> String {
    let mut text = format!("# Espalier {version}\n\n{entry}\n");
    for variant in variants {
        let Variant { name, upstream, pin, base_tree, tree, patches } = variant;
        text += &format!("\n## `{name}`\n\n{upstream} {pin}, tree `{base_tree}`");
        if patches.is_empty() {
            text += ", as it is.\n";
            continue;
        }
        text +=
            &format!("; patched by {}, tree `{tree}`.\n\n| patch | upstream |\n|---|---|\n", patches.len());
        let row = |patch: &PatchNote| format!("| {} | {} |\n", cell(&patch.subject), cell(&patch.status));
        text.extend(patches.iter().map(row));
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "# Changelog\n\n## [Unreleased]\n\nsoon\n\n## [0.2.0] - 2026-01-02\n\n### Added\n\n* b\n\n\
                       ## [0.1.0]\n\n* a\n";

    #[test]
    fn an_entry_ends_where_the_next_begins() {
        assert_eq!(changelog_entry(LOG, "0.2.0").as_deref(), Some("### Added\n\n* b"));
        assert_eq!(changelog_entry(LOG, "0.1.0").as_deref(), Some("* a"));
        assert_eq!(changelog_entry(LOG, "0.3.0"), None);
        assert_eq!(changelog_entry(LOG, "0.2"), None);
    }

    #[test]
    fn changes_name_every_patch_with_what_upstream_thinks_of_it() {
        let patch = PatchNote { subject: "a | b".into(), status: "Pending".into(), ..PatchNote::default() };
        let variant = |name: &str, patches| Variant {
            name: name.into(),
            upstream: "llama.cpp".into(),
            pin: "v1".into(),
            base_tree: "11".into(),
            tree: "22".into(),
            patches,
        };
        let text = changes("0.1.0", "* a", &[variant("paged", vec![patch]), variant("stock", vec![])]);
        assert_eq!(
            text,
            "# Espalier 0.1.0\n\n* a\n\n## `paged`\n\nllama.cpp v1, tree `11`; patched by 1, tree `22`.\n\n\
             | patch | upstream |\n|---|---|\n| a \\| b | Pending |\n\n## `stock`\n\nllama.cpp v1, tree `11`, as it is.\n"
        );
    }

    #[test]
    fn sums_are_sorted_by_file_and_a_url_ends_no_quote() {
        let digest = |c: &str| c.repeat(64);
        let list = [("b".to_string(), digest("1")), ("a".to_string(), digest("2"))];
        assert_eq!(sums(&list), format!("{}  a\n{}  b\n", digest("2"), digest("1")));
        assert!(is_url("https://example.invalid/a/v0.1.0"));
        assert!(!is_url("https://x/'; rm -rf ~ '") && !is_url("http://x"));
    }
}
