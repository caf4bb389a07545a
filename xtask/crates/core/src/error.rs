//! Errors as part of the product: what happened, where, what was expected, and the next step.
//!
//! The kind of an error determines its exit code; hints are separate data, so that `--json` and the terminal show the
//! same text.

use std::fmt;

use espalier_series::TreeError;
use serde_json::{Map, Value};

/// The meaning of an error for the caller; each kind has one exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A check failed: drift, the gate, lint. Exit code 1.
    No,
    /// The command line or a project file is wrong. Exit code 2.
    Usage,
    /// Environment error: network, disk, a missing tool; nothing that changing project files can fix. Exit code 3.
    Environment,
    /// Manual action required, such as resolving a conflict. Exit code 4.
    Conflict,
}

impl Kind {
    /// The process exit code for this kind.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::No => 1,
            Kind::Usage => 2,
            Kind::Environment => 3,
            Kind::Conflict => 4,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::No => "no",
            Kind::Usage => "usage",
            Kind::Environment => "environment",
            Kind::Conflict => "conflict",
        }
    }
}

/// An error that a person can act on.
#[derive(Clone, Debug)]
pub struct Error {
    /// The kind, which determines the exit code.
    pub kind: Kind,
    /// One sentence: what happened.
    pub what: String,
    /// Details: the place, what was expected, what was found; each entry may have several lines.
    pub details: Vec<String>,
    /// Next commands or changes.
    pub hints: Vec<String>,
    /// Data for programs: keys beside `error` in JSON.
    pub data: Map<String, Value>,
}

/// The result of a fallible function of this tool.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`; `what` describes what happened.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Error { kind, what: what.into(), details: Vec::new(), hints: Vec::new(), data: Map::new() }
    }

    /// A check failed (exit code 1).
    pub fn no(what: impl Into<String>) -> Self {
        Self::new(Kind::No, what)
    }

    /// A file or a flag is wrong (exit code 2).
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Kind::Usage, what)
    }

    /// Environment error (exit code 3).
    pub fn environment(what: impl Into<String>) -> Self {
        Self::new(Kind::Environment, what)
    }

    /// Adds a detail, shown below the first sentence.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        if !detail.trim().is_empty() {
            self.details.push(detail);
        }
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds data for programs: the key `key` of the JSON output, beside `error`.
    #[must_use]
    pub fn with_data(mut self, key: &str, value: Value) -> Self {
        self.data.insert(key.to_string(), value);
        self
    }

    /// Returns the error with paths below `root` (which has no trailing slash) shown relative to it, prefixed by
    /// `shown_root`.
    #[must_use]
    pub fn relative_to(self, root: &str, shown_root: &str) -> Self {
        let prefix = format!("{root}/");
        let shorten = |text: String| text.replace(&prefix, shown_root);
        Error {
            kind: self.kind,
            what: shorten(self.what),
            details: self.details.into_iter().map(shorten).collect(),
            hints: self.hints.into_iter().map(shorten).collect(),
            data: self.data,
        }
    }

    /// The error as JSON, with the same text.
    pub fn to_json(&self) -> Value {
        let mut json = self.data.clone();
        let error = serde_json::json!({
            "kind": self.kind.name(),
            "what": self.what,
            "details": self.details,
            "hints": self.hints,
        });
        json.insert("error".to_string(), error);
        Value::Object(json)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "error: {}", self.what)?;
        for detail in &self.details {
            write!(out, "\n{}", indent(detail))?;
        }
        for hint in &self.hints {
            write!(out, "\n  next: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}").trim_end().to_string()).collect();
    lines.join("\n")
}

/// A tree that cannot be read is an environment error.
impl From<TreeError> for Error {
    fn from(error: TreeError) -> Error {
        Error::environment(error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_the_root() {
        let error = Error::no("`/a/b/c.toml` is bad").hint("rm /a/b/c.toml").relative_to("/a/b", "");
        assert_eq!(error.to_string(), "error: `c.toml` is bad\n  next: rm c.toml");
    }

    #[test]
    fn an_error_reads_what_where_next() {
        let error = Error::environment("no source served the pin")
            .detail("git: host not found\nnpm: not installed")
            .hint("install npm");
        assert_eq!(
            error.to_string(),
            "error: no source served the pin\n  git: host not found\n  npm: not installed\n  next: install npm"
        );
        assert_eq!(error.kind.exit_code(), 3);
    }

    #[test]
    fn data_is_for_programs_only() {
        let error = Error::no("it does not apply").with_data("conflict", serde_json::json!({ "schema": 1 }));
        let error = error.relative_to("/a", "");
        assert_eq!(error.to_string(), "error: it does not apply");
        assert_eq!(error.to_json()["conflict"]["schema"], 1);
        assert_eq!(error.to_json()["error"]["what"], "it does not apply");
    }
}
