//! The files that a patch may touch: sources and the files that build them, but none that an overlay owns.

use super::finding::{Finding, LintRule};
use super::rules::LintRules;
use crate::model::patch::{Content, FilePatch, Patch};
use crate::model::path::RepoPath;

/// Folders whose files serve upstream's contributors and CI, not the build.
const FOLDERS: [&str; 2] = ["docs/", ".github/"];

/// Suffixes of documents and pictures.
const ENDINGS: [&str; 10] = [".md", ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".ico", ".svg", ".pdf"];

/// Checks that a patch is source-only: documents drift with every release and change no program, and a checkout without
/// them must not break.
pub(crate) fn check_source_only(patch: &Patch, rules: &LintRules) -> Vec<Finding> {
    let not_source = |path: &RepoPath| !is_source(path.as_bytes()) && !rules.allows(path.as_bytes());
    let hint =
        "take the file out of the patch with `cargo xtask edit` and `export`, or allow it in `ci/lint.toml`";
    let mut found = each_path(
        patch,
        not_source,
        LintRule::NotSource,
        |path| format!("`{path}` is not a source file"),
        hint,
    );
    found.extend(patch.files.iter().filter_map(|file| binary(patch, file, rules, hint)));
    found
}

/// Returns the finding for a binary change, which can be neither reviewed nor merged.
fn binary(patch: &Patch, file: &FilePatch, rules: &LintRules, hint: &str) -> Option<Finding> {
    let is_meant = |path: &&RepoPath| is_source(path.as_bytes()) && !rules.allows(path.as_bytes());
    let path = file.path().filter(is_meant).filter(|_| matches!(file.content, Content::Binary(_)))?;
    let message = format!("`{path}` is changed as a binary file");
    Some(Finding::new(&patch.name, Some(file.line), LintRule::NotSource, [&message, hint]))
}

/// Returns a finding for each path that an overlay file owns; `owner_of` returns its description.
pub fn lint_owners(patch: &Patch, owner_of: impl Fn(&RepoPath) -> Option<String>) -> Vec<Finding> {
    let says = |path: &RepoPath| format!("`{path}` is {}", owner_of(path).unwrap_or_default());
    let hint = "make the change in the overlay, and take the file out of the patch";
    each_path(patch, |path| owner_of(path).is_some(), LintRule::OverlayPath, says, hint)
}

fn each_path(
    patch: &Patch,
    is_bad: impl Fn(&RepoPath) -> bool,
    rule: LintRule,
    says: impl Fn(&RepoPath) -> String,
    hint: &str,
) -> Vec<Finding> {
    let bad_path = |file: &FilePatch| file.paths().find(|path| is_bad(path)).cloned();
    let bad = patch.files.iter().filter_map(|file| Some((file.line, bad_path(file)?)));
    bad.map(|(line, path)| Finding::new(&patch.name, Some(line), rule, [&says(&path), hint])).collect()
}

/// Files that control how git treats others.
const FOR_GIT: [&str; 2] = [".gitattributes", ".gitmodules"];

fn is_source(path: &[u8]) -> bool {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    !FOR_GIT.iter().any(|other| name == other.as_bytes())
        && !FOLDERS.iter().any(|folder| path.starts_with(folder.as_bytes()))
        && !ENDINGS.iter().any(|ending| path.ends_with(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::is_source;

    #[test]
    fn files_that_are_not_sources_are_known() {
        for path in [
            "README.md",
            "docs/build.txt",
            ".github/workflows/a.yml",
            "a/Logo.PNG",
            "x/README.MD",
            ".gitmodules",
            "a/.gitattributes",
        ] {
            assert!(!is_source(path.as_bytes()), "{path}");
        }
        for path in ["src/a.cpp", "CMakeLists.txt", "tools/docs/a.h", "a.md.in", "docs.c"] {
            assert!(is_source(path.as_bytes()), "{path}");
        }
    }
}
