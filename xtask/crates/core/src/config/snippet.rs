//! Errors in files that people write: the line, underlined, and why.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// The text of a project file, with the name that errors show.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// Path as the user knows it, relative to the root.
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl SourceText<'_> {
    /// Reads TOML into `T`; a mistake becomes an error that shows the line, underlined.
    pub fn parse_toml<T: DeserializeOwned>(&self) -> Result<T> {
        toml::from_str(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.error_at(span, error.message())
        })
    }

    /// A usage error that points at `span` (bytes) of this text.
    pub fn error_at(&self, span: Range<usize>, label: &str) -> Error {
        Error::usage(format!("invalid `{}`", self.name)).detail(self.render(span, label))
    }

    fn render(&self, span: Range<usize>, label: &str) -> String {
        let end = span.end.min(self.text.len());
        let span = span.start.min(end)..end;
        let snippet = Snippet::source(self.text)
            .path(self.name)
            .annotation(AnnotationKind::Primary.span(span).label(label));
        let report = [Level::ERROR.primary_title(label).element(snippet)];
        // Skip the title, which repeats the label: our own first line already names the error.
        let rendered = Renderer::plain().render(&report);
        rendered.lines().skip(1).collect::<Vec<_>>().join("\n")
    }
}
