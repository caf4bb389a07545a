//! Messages for the operator of the server.

use std::io::Write;

/// Writes one line to stderr. Errors are ignored: a closed stderr must not make the server fail.
pub(crate) fn line_to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr(), "espalier: {text}");
}
