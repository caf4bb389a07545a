//! Messages to the person who runs the server.

use std::io::Write;

/// Writes one line to stderr. A closed stderr is no reason to fail, so errors are dropped.
pub(crate) fn line_to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "espalier: {text}");
}
