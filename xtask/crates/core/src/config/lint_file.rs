//! `ci/lint.toml`: the lint rules that this project relaxes.

use espalier_series::{LintRules, PathPattern, TRAILER_KEYS};
use serde::Deserialize;
use toml::Spanned;

use super::snippet::SourceText;
use crate::error::Result;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawRules {
    allow_paths: Option<Vec<Spanned<String>>>,
    require_trailers: Option<Vec<Spanned<String>>>,
}

/// Reads the text of `ci/lint.toml`. Rules that it does not mention stay as strict as without the file.
///
/// # Errors
///
/// An unknown key, an invalid pattern, or a trailer that lint does not know, each with its line.
pub fn read_lint_rules(source: SourceText<'_>) -> Result<LintRules> {
    let raw: RawRules = source.parse_toml()?;
    let mut rules = LintRules::default();
    if let Some(paths) = &raw.allow_paths {
        let patterns: Result<Vec<PathPattern>> = paths.iter().map(|path| pattern(source, path)).collect();
        rules = rules.allowing(patterns?);
    }
    if let Some(keys) = &raw.require_trailers {
        let keys: Result<Vec<&str>> = keys.iter().map(|key| trailer(source, key)).collect();
        rules = rules.requiring(keys?);
    }
    Ok(rules)
}

fn pattern(source: SourceText<'_>, raw: &Spanned<String>) -> Result<PathPattern> {
    let label = "a folder (`docs/`), an ending (`*.md`) or one file (`README.md`)";
    PathPattern::read(raw.get_ref()).ok_or_else(|| source.error_at(raw.span(), label))
}

fn trailer(source: SourceText<'_>, raw: &Spanned<String>) -> Result<&'static str> {
    let known = TRAILER_KEYS.map(|(key, _)| key);
    let label = format!("a trailer that lint knows: {}", known.join(", "));
    known.into_iter().find(|key| *key == raw.get_ref()).ok_or_else(|| source.error_at(raw.span(), &label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LintRules> {
        read_lint_rules(SourceText { name: "ci/lint.toml", text })
    }

    #[test]
    fn rules_that_are_not_mentioned_stay_strict() {
        assert_eq!(read("").unwrap(), LintRules::default());
        let rules = read("require-trailers = [\"Upstream-Status\"]\nallow-paths = [\"*.md\"]\n").unwrap();
        assert_eq!(rules.required(), ["Upstream-Status"]);
        assert!(read("require-trailers = []").unwrap().required().is_empty());
    }

    #[test]
    fn mistakes_are_underlined() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert!(refusal("allow-path = []").contains("^^^^^^^^^^ unknown field `allow-path`"));
        assert!(refusal("allow-paths = [\"**/x\"]").contains("^^^^^^ a folder (`docs/`)"));
        assert!(refusal("require-trailers = [\"Bug\"]").contains("^^^^^ a trailer that lint knows"));
    }
}
