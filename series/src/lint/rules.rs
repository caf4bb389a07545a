//! Relaxation of lint rules by a project. By default none is relaxed.

use super::requirements::TRAILER_KEYS;

/// The rules of one project. The default is the strictest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintRules {
    required: Vec<&'static str>,
    allowed: Vec<PathPattern>,
}

impl Default for LintRules {
    fn default() -> Self {
        LintRules { required: TRAILER_KEYS.map(|(key, _)| key).to_vec(), allowed: Vec::new() }
    }
}

impl LintRules {
    /// Returns the rules with only these trailers required; each is one of [`TRAILER_KEYS`].
    #[must_use]
    pub fn requiring(self, required: Vec<&'static str>) -> Self {
        LintRules { required, ..self }
    }

    /// Returns the rules with these paths allowed besides sources.
    #[must_use]
    pub fn allowing(self, allowed: Vec<PathPattern>) -> Self {
        LintRules { allowed, ..self }
    }

    /// Returns the trailers that every patch must have, in the order in which they are written.
    pub fn required(&self) -> &[&'static str] {
        &self.required
    }

    /// Returns whether a patch may touch `path` although it is not a source.
    pub(crate) fn allows(&self, path: &[u8]) -> bool {
        self.allowed.iter().any(|pattern| pattern.holds(path))
    }
}

/// A set of paths: a folder with its contents, all files with a suffix, or one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// `docs/`
    Folder(String),
    /// `*.md`
    Ending(String),
    /// `README.md`
    File(String),
}

impl PathPattern {
    /// Parses a pattern; `None` if it is none of the three.
    pub fn read(text: &str) -> Option<PathPattern> {
        let (is_ending, rest) = text.strip_prefix('*').map_or((false, text), |rest| (true, rest));
        if rest.is_empty() || rest.contains('*') || rest.starts_with('/') {
            return None;
        }
        Some(match (is_ending, rest.strip_suffix('/')) {
            (true, None) => PathPattern::Ending(rest.to_owned()),
            (true, Some(_)) => return None,
            (false, Some(_)) => PathPattern::Folder(rest.to_owned()),
            (false, None) => PathPattern::File(rest.to_owned()),
        })
    }

    fn holds(&self, path: &[u8]) -> bool {
        match self {
            PathPattern::Folder(folder) => path.starts_with(folder.as_bytes()),
            PathPattern::Ending(ending) => path.ends_with(ending.as_bytes()),
            PathPattern::File(file) => path == file.as_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LintRules, PathPattern};

    #[test]
    fn patterns_are_folders_endings_or_files() {
        let rules = ["docs/", "*.md", "data/logo.png"].map(|text| PathPattern::read(text).unwrap());
        let rules = LintRules::default().allowing(rules.to_vec());
        for path in ["docs/a.txt", "docs/b/c.png", "README.md", "x/y.md", "data/logo.png"] {
            assert!(rules.allows(path.as_bytes()), "{path}");
        }
        for path in ["src/docs/a.txt", "README.mdx", "x/data/logo.png", "docs"] {
            assert!(!rules.allows(path.as_bytes()), "{path}");
        }
        for bad in ["", "*", "/docs/", "a*b", "**/x", "*/"] {
            assert_eq!(PathPattern::read(bad), None, "{bad}");
        }
    }
}
