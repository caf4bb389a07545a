//! HTTPS through the `curl` program; docs/decisions/0006-curl-speaks-to-github.md gives the reasons.
//!
//! Every setting, above all the token, is passed to curl on its standard input: nothing appears in an argument list,
//! in an environment or on disk. Redirects are not followed.

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::plan::github_reply::Reply;
use crate::sys::machine::disk;
use crate::sys::machine::process::{Finished, Run};
use crate::sys::machine::secret::Secret;

/// Limit of a reply in bytes, larger than any that is expected.
const REPLY_LIMIT: usize = 16 * 1024 * 1024;

/// Time limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: Duration,
    /// In total.
    pub total: Duration,
}

/// One request.
#[derive(Debug)]
pub struct Request<'a> {
    /// `GET`, `POST` or `PATCH`.
    pub method: &'static str,
    /// Target.
    pub url: &'a str,
    /// JSON body.
    pub body: Option<&'a str>,
}

/// Result of a request.
#[derive(Debug)]
pub enum Answer {
    /// The other side replied.
    Reply(Reply),
    /// It did not, for this reason.
    Nothing {
        /// curl's message.
        why: String,
        /// Whether the request may have arrived all the same.
        maybe_arrived: bool,
    },
}

/// Sends `request` with `token`; temporary files go to `scratch`.
pub fn send(request: &Request<'_>, token: &Secret, timeouts: Timeouts, scratch: &Path) -> Result<Answer> {
    let folder = disk::scratch_folder(scratch, "github")?;
    let (headers, body) = (folder.path().join("headers"), folder.path().join("body"));
    if let Some(text) = request.body {
        disk::write_atomically(&body, text.as_bytes())?;
    }
    let config_text = config(request, token, timeouts, &headers, &body);
    // `-q` first: a `.curlrc` could follow redirects or write a trace.
    let run = Run::new("curl").args(["-q", "--config", "-"]).install_hint(INSTALL);
    let finished = run.converse(config_text.as_bytes(), REPLY_LIMIT)?;
    if !finished.status.success() {
        return nothing(&finished, token);
    }
    let head = disk::read_if_there(&headers)?.unwrap_or_default();
    Ok(Answer::Reply(Reply::new(&espalier_series::lossy(&head), finished.stdout)))
}

const INSTALL: &str = "install curl (Debian: `apt-get install curl`)";

fn config(request: &Request<'_>, token: &Secret, timeouts: Timeouts, headers: &Path, body: &Path) -> String {
    let quoted = |key: &str, value: &str| format!("{key} = \"{}\"\n", escape(value));
    let header = |value: &str| quoted("header", value);
    let mut text = quoted("url", request.url) + &quoted("request", request.method);
    text += &header(&format!("Authorization: Bearer {}", token.reveal()));
    text += &header("Accept: application/vnd.github+json");
    text += &header("X-GitHub-Api-Version: 2022-11-28");
    text += &quoted("user-agent", "espalier-xtask");
    text += &quoted("proto", if request.url.starts_with("https:") { "=https" } else { "=http" });
    text += &quoted("connect-timeout", &seconds(timeouts.connect));
    text += &quoted("max-time", &seconds(timeouts.total));
    text += &quoted("max-filesize", &REPLY_LIMIT.to_string());
    text += &quoted("dump-header", &headers.display().to_string());
    text += "silent\nshow-error\nglobeoff\nsuppress-connect-headers\n";
    if request.body.is_some() {
        text += &header("Content-Type: application/json");
        text += &quoted("data-binary", &format!("@{}", body.display()));
    }
    text
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// Escapes a value: inside double quotes curl reads a backslash as an escape, and a line end would start another
/// option.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ")
}

/// curl's exit codes for a request that was not sent: no proxy, no host, no connection, no TLS.
const NOT_SENT: [i32; 5] = [5, 6, 7, 35, 60];
/// Further exit codes for which a retry may help: time-out, cut off while sending or receiving, empty reply.
const CUT_OFF: [i32; 7] = [16, 18, 28, 52, 55, 56, 92];

fn nothing(finished: &Finished, token: &Secret) -> Result<Answer> {
    let code = finished.status.code().unwrap_or(-1);
    let stderr = token.hide_in(finished.stderr.trim());
    let why = stderr.lines().last().unwrap_or("curl was killed").chars().take(300).collect::<String>();
    if NOT_SENT.contains(&code) || CUT_OFF.contains(&code) {
        return Ok(Answer::Nothing { why, maybe_arrived: CUT_OFF.contains(&code) });
    }
    Err(Error::environment(format!("curl failed with exit code {code}")).detail(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_quotes() {
        let token = Secret::new("a\"b\\c").unwrap();
        let request = Request { method: "GET", url: "http://127.0.0.1/\"\nlocation", body: None };
        let timeouts = Timeouts { connect: Duration::from_secs(1), total: Duration::from_millis(2500) };
        let text = config(&request, &token, timeouts, Path::new("/h"), Path::new("/b"));
        assert!(text.contains("header = \"Authorization: Bearer a\\\"b\\\\c\"\n"), "{text}");
        assert!(text.contains("url = \"http://127.0.0.1/\\\" location\"\n"), "{text}");
        assert!(text.contains("max-time = \"2.500\"\n"), "{text}");
        assert!(!text.lines().any(|line| line == "location" || line.starts_with("data")), "{text}");
    }
}
