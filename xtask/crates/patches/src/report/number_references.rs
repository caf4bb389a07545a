//! References to patches by their number, in texts outside of the series. A patch that is dropped renumbers all that
//! follow it.

use std::collections::BTreeMap;

use espalier_core::config::paths::patch_number;

use super::rebase::{NumberReference, PatchMove, RebaseReport};

/// Number of digits in the file name of a patch.
const DIGITS: usize = 4;

/// A series whose patches have other numbers.
#[derive(Debug)]
pub struct Renumbered<'r> {
    series: &'r str,
    /// Whether `patch 0006` without a variant can be a patch of this one.
    is_default: bool,
    /// The new number of each patch by the old one, where they differ.
    numbers: BTreeMap<&'r str, Option<&'r str>>,
}

/// Returns the series of a rebase whose patches have other numbers; `default` is the project's default variant.
pub fn renumbered<'r>(report: &'r RebaseReport, default: &str) -> Vec<Renumbered<'r>> {
    let mut all: Vec<Renumbered<'r>> = Vec::new();
    for patch in &report.patches {
        let (old, new) = (patch_number(&patch.file), patch.new_file.as_deref().map(patch_number));
        if new == Some(old) {
            continue;
        }
        let series = series_of(&mut all, patch, default);
        series.numbers.insert(old, new);
    }
    all
}

fn series_of<'a, 'r>(
    all: &'a mut Vec<Renumbered<'r>>,
    patch: &'r PatchMove,
    default: &str,
) -> &'a mut Renumbered<'r> {
    let at = all.iter().position(|renumbered| renumbered.series == patch.series).unwrap_or(all.len());
    if at == all.len() {
        let series = patch.series.as_str();
        all.push(Renumbered { series, is_default: series == default, numbers: BTreeMap::new() });
    }
    &mut all[at]
}

impl Renumbered<'_> {
    /// Returns the places in the text of `file` that name one of the patches by its old number.
    pub fn references_in(&self, file: &str, text: &str) -> Vec<NumberReference> {
        let mut found = Vec::new();
        let mut line_number = 0;
        for part in parts(file, text) {
            let is_about = self.is_named_in(file) || part.iter().any(|line| self.is_named_in(line));
            for line in part {
                line_number += 1;
                for at in numbers_in(line) {
                    let old = line.get(at..at + DIGITS).unwrap_or_default();
                    let Some((old, new)) = self.numbers.get_key_value(old) else { continue };
                    if self.is_meant((line, at), is_about) {
                        found.push(NumberReference {
                            file: file.to_string(),
                            line: line_number,
                            series: self.series.to_string(),
                            old: (*old).to_string(),
                            new: new.map(String::from),
                        });
                    }
                }
            }
        }
        found
    }

    /// Whether a text names the series: as a word of its own, so `paged` is not in `paged-more`.
    fn is_named_in(&self, text: &str) -> bool {
        let mut places = text.match_indices(self.series);
        places.any(|(at, name)| {
            let (before, after) = (text.get(..at), text.get(at + name.len()..));
            !before.is_some_and(|text| text.ends_with(is_of_a_name))
                && !after.is_some_and(|text| text.starts_with(is_of_a_name))
        })
    }

    /// Whether the number at `at` of a line is that of a patch of this series. `is_about` is whether the text around
    /// the line names the series.
    fn is_meant(&self, (line, at): (&str, usize), is_about: bool) -> bool {
        let (before, after) =
            (line.get(..at).unwrap_or_default(), line.get(at + DIGITS..).unwrap_or_default());
        if before.trim_end().to_ascii_lowercase().ends_with("decision") || before.ends_with("decisions/") {
            return false;
        }
        match after.trim_start().strip_prefix("of ") {
            Some(owner) => {
                let rest = owner.trim_start_matches('`').strip_prefix(self.series);
                rest.is_some_and(|rest| !rest.starts_with(is_of_a_name))
            }
            None => is_about || self.is_default && before.to_ascii_lowercase().contains("patch"),
        }
    }
}

fn is_of_a_name(character: char) -> bool {
    character.is_alphanumeric() || character == '-' || character == '_'
}

/// Returns the lines of a text by section, or by paragraph where `#` begins a comment.
fn parts<'t>(file: &str, text: &'t str) -> Vec<Vec<&'t str>> {
    let is_markdown = file.ends_with(".md");
    let begins = |line: &str| if is_markdown { line.starts_with('#') } else { line.trim().is_empty() };
    let mut parts: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if begins(line) {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(line);
        }
    }
    parts
}

/// Returns the positions of the words of a line that begin with four digits, and no more.
fn numbers_in(line: &str) -> Vec<usize> {
    let bytes = line.as_bytes();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.');
    let begins = |at: &usize| {
        let digits = bytes.get(*at..*at + DIGITS).is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let after = bytes.get(*at + DIGITS);
        // A sentence may end after it.
        digits && !is_part(before) && !after.is_some_and(u8::is_ascii_alphanumeric)
    };
    (0..bytes.len()).filter(begins).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixes() -> Renumbered<'static> {
        let numbers = BTreeMap::from([("0020", None), ("0026", Some("0025"))]);
        Renumbered { series: "server-fixes", is_default: false, numbers }
    }

    fn shown(series: &Renumbered<'_>, file: &str, text: &str) -> Vec<String> {
        series.references_in(file, text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_reference_is_found_where_the_series_is_named() {
        let suites = "# The bound that patch 0026 of server-fixes sets.\n[[programs]]\n\n# Patch 0026 of paged.\n\n\
                      # Of patch 0020 of server-fixes.\n";
        assert_eq!(
            shown(&fixes(), "ci/suites/suites.toml", suites),
            [
                "ci/suites/suites.toml:1: patch 0026 of server-fixes is 0025 now",
                "ci/suites/suites.toml:6: patch 0020 of server-fixes was dropped",
            ]
        );
        let guide = "# Options\n\nPatch 0026.\n\n## Fixes\n\nVariant `server-fixes`.\n\nWith patch 0026, 10026 and 2.0026.\n\
                     [decision 0026](../decisions/0026-x.md)\n\n## More\n\nPatch 0026 of `server-fixes-more`.\n";
        let place = "docs/options.md:9: patch 0026 of server-fixes is 0025 now";
        assert_eq!(shown(&fixes(), "docs/options.md", guide), [place]);
        assert_eq!(shown(&fixes(), "docs/server-fixes.md", "0026 does it\n").len(), 1);
    }

    #[test]
    fn the_default_variant_need_not_be_named() {
        let numbers = BTreeMap::from([("0004", Some("0003"))]);
        let paged = Renumbered { series: "paged", is_default: true, numbers };
        assert_eq!(shown(&paged, "a.md", "Patch 0004 and 0004.\n").len(), 2);
        assert!(shown(&paged, "a.md", "0004 of them, patch 0004 of server-fixes\n").is_empty());
    }
}
