//! Warnings of environment variables that nothing reads, because they are misspelt: an option would silently keep its
//! default.

use espalier_names::variables::misspelt;

use crate::report;

/// Writes a warning to stderr for each variable of the environment that resembles a known one and is none.
pub fn warn_of_misspelt() {
    let names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    for warning in misspelt(names.iter().map(String::as_str)) {
        report::line_to_stderr(&format!("warning: {warning}"));
    }
}
