//! `/metrics` of a server.

use std::time::Duration;

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::net::server::Server;

/// It takes well under a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(15);

/// Returns the status and the text of `/metrics`.
///
/// # Errors
///
/// The server does not answer in time.
pub fn metrics(server: &Server) -> Result<(u16, String)> {
    server.request(&Request::get("/metrics"), LIMIT).map(|response| response.status_and_text())
}

/// Returns a value of `/metrics`, by its name without `llamacpp:`.
///
/// # Errors
///
/// If there is no such metric: a missing one must not be read as 0.
pub fn metric(server: &Server, name: &str) -> Result<f64> {
    let (status, text) = metrics(server)?;
    let number = metric_text(&text, name).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Error::no(format!("/metrics, answered {status}, has no metric `llamacpp:{name}`")))
}

/// Returns the metric's value as the text has it.
pub fn metric_text<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!("llamacpp:{name} ");
    text.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "# HELP llamacpp:a_total x\nllamacpp:a_total_more 2\nllamacpp:a_total 1.5\n";
        assert_eq!(metric_text(text, "a_total"), Some("1.5"));
        assert_eq!(metric_text(text, "b"), None);
    }
}
