//! Tests that hold a patch: those that its trailer names, and those of `ci/suites/suites.toml` whose comment names it or
//! that it adds itself.

use espalier_core::config::paths::patch_number;
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_series::{Content, LineKind, Patch};

use crate::rebase::target::SeriesMove;
use crate::report::conflict::Verification;

/// The file, relative to the root. Only a clone of Espalier has it.
const SUITES: &str = "ci/suites/suites.toml";

/// Returns the tests of one patch.
pub fn read(series_move: &SeriesMove<'_>, file: &PatchFile, patch: &Patch) -> Result<Vec<Verification>> {
    let mut found = from_trailers(patch);
    let path = series_move.context.layout.suites().join("suites.toml");
    let Some(suites) = disk::read_text_if_there(&path)? else { return Ok(found) };
    let variant = series_move.stack.variant.name.as_str();
    let is_default = series_move.pins.default_variant.as_str() == variant;
    let number = patch_number(&file.file);
    let slug = file.name().strip_suffix(".patch").unwrap_or(file.name());
    found.extend(from_suites(&suites, &NamedPatch { number, slug, variant, is_default, patch }));
    Ok(found)
}

fn from_trailers(patch: &Patch) -> Vec<Verification> {
    let trailers = patch.trailers.iter().filter(|trailer| trailer.key.eq_ignore_ascii_case("Verified-by"));
    let tests = trailers.flat_map(|trailer| trailer.value.split(';')).map(str::trim);
    let tests = tests.filter(|test| !test.is_empty());
    tests.map(|test| Verification { source: "Verified-by".to_string(), text: test.to_string() }).collect()
}

/// A patch with its names in comments.
struct NamedPatch<'p> {
    /// `0006`
    number: &'p str,
    /// `0006-some-words`
    slug: &'p str,
    variant: &'p str,
    /// Whether `patch 0006` without a variant is a patch of this one.
    is_default: bool,
    patch: &'p Patch,
}

/// Reads the file as paragraphs: a comment, and the entry that it is about.
fn from_suites(suites: &str, patch: &NamedPatch<'_>) -> Vec<Verification> {
    let mut found = Vec::new();
    let mut line = 1;
    for paragraph in suites.split("\n\n") {
        let comment: String = paragraph
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .map(|line| format!("{line} "))
            .collect();
        let mut tests = Vec::new();
        if patch.is_named_in(&comment) {
            tests.extend(entry(paragraph));
        }
        if value(paragraph, "variant").is_some_and(|variant| variant == patch.variant) {
            tests.extend(quoted(paragraph).filter(|name| patch.adds(name)).map(str::to_string));
        }
        let source = format!("{SUITES}:{line}");
        found.extend(tests.into_iter().map(|text| Verification { source: source.clone(), text }));
        line += paragraph.lines().count() + 1;
    }
    found
}

/// Returns the name of the entry of a paragraph: its target with its name, or its first key.
fn entry(paragraph: &str) -> Option<String> {
    match (value(paragraph, "target"), value(paragraph, "name")) {
        (Some(target), Some(name)) => Some(format!("{target}: {name}")),
        (Some(target), None) => Some(target.to_string()),
        (None, _) => {
            let key = paragraph.lines().find_map(|line| line.split_once(" = "))?.0;
            (!key.starts_with('#')).then(|| key.to_string())
        }
    }
}

fn value<'p>(paragraph: &'p str, key: &str) -> Option<&'p str> {
    let value = paragraph.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
    value.split('"').next()
}

fn quoted(paragraph: &str) -> impl Iterator<Item = &str> {
    let entries = paragraph.lines().filter(|line| !line.starts_with('#'));
    entries.flat_map(|line| line.split('"').skip(1).step_by(2))
}

impl NamedPatch<'_> {
    /// Whether a comment has `patch NUMBER`, or `patch NUMBER of VARIANT`, or the name of its file.
    fn is_named_in(&self, comment: &str) -> bool {
        if comment.contains(self.slug) {
            return true;
        }
        let numbers = comment.match_indices(self.number);
        let mut numbers =
            numbers.filter(|(at, _)| comment.get(..*at).is_some_and(|text| text.contains("patch")));
        numbers.any(|(at, number)| {
            let after = comment.get(at + number.len()..).unwrap_or_default();
            match after.trim_start().strip_prefix("of ") {
                Some(variant) => variant.split([' ', '.', ',', ')', ':']).next() == Some(self.variant),
                None => self.is_default && !after.starts_with(|next: char| next.is_ascii_alphanumeric()),
            }
        })
    }

    /// Whether it adds the test `name`: `file.py::`, or the name of a function, perhaps after the file.
    fn adds(&self, name: &str) -> bool {
        let (file, function) = name.split_once("::").unwrap_or(("", name));
        let mut files =
            self.patch.files.iter().filter(|changed| {
                changed.path().is_some_and(|path| path.as_bytes().ends_with(file.as_bytes()))
            });
        files.any(|changed| {
            let Content::Text(hunks) = &changed.content else { return false };
            let definition = format!("def {function}");
            let mut lines = hunks.iter().flat_map(|hunk| hunk.lines.iter());
            let is_new = |bytes: &[u8]| espalier_series::lossy(bytes).trim_start().starts_with(&definition);
            function.is_empty() || lines.any(|line| line.kind == LineKind::Add && is_new(line.bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use espalier_series::parse;

    use super::{NamedPatch, from_suites, from_trailers};

    const SUITES: &str = "# About this file.\n\n# Only our build has these (patch 0007).\nown-cases = [\"tcq\"]\n\n\
        # Attention, behind the call site of patch\n# 0006: few rows.\n[[programs]]\ntarget = \"test-ops\"\n\
        name = \"flash\"\n\n# The bounds that patch 0002 of fixes sets.\n[[programs]]\ntarget = \"test-grammar\"\n\n\
        [[own]]\nvariant = \"fixes\"\nnames = [\n    \"test_limits.py::\",\n    \"test_counts\",\n]\n";

    const PATCH: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\n\
        Date: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] x\n\nVerified-by: cargo test; the smoke test\n---\n\
        diff --git a/unit/test_more.py b/unit/test_more.py\n\
        index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n\
        --- a/unit/test_more.py\n+++ b/unit/test_more.py\n@@ -1 +1,2 @@\n import x\n+def test_counts():\n";

    fn named(number: &str, variant: &str, is_default: bool) -> Vec<(String, String)> {
        let patch = parse("0001-x.patch", PATCH.as_bytes()).unwrap();
        let slug = format!("{number}-x");
        let patch = NamedPatch { number, slug: &slug, variant, is_default, patch: &patch };
        from_suites(SUITES, &patch).into_iter().map(|found| (found.source, found.text)).collect()
    }

    fn one(line: usize, text: &str) -> Vec<(String, String)> {
        vec![(format!("ci/suites/suites.toml:{line}"), text.to_string())]
    }

    #[test]
    fn a_comment_names_the_patch_that_its_entry_tests() {
        assert_eq!(named("0007", "paged", true), one(3, "own-cases"));
        assert_eq!(named("0006", "paged", true), one(6, "test-ops: flash"));
        assert!(named("0006", "other", false).is_empty());
        assert!(named("0002", "paged", true).is_empty());
    }

    #[test]
    fn a_test_that_the_patch_adds_is_its_own() {
        let both = [one(12, "test-grammar"), one(16, "test_counts")].concat();
        assert_eq!(named("0002", "fixes", false), both);
        assert_eq!(named("0003", "fixes", false), one(16, "test_counts"));
    }

    #[test]
    fn the_trailer_names_several() {
        let patch = parse("0001-x.patch", PATCH.as_bytes()).unwrap();
        let tests: Vec<String> = from_trailers(&patch).into_iter().map(|found| found.text).collect();
        assert_eq!(tests, ["cargo test", "the smoke test"]);
    }
}
