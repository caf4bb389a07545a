//! Interpretation of replies from GitHub. Their content is untrusted and is checked before use.

use serde_json::Value;

use crate::error::Error;
use crate::http::parse_head;

/// A reply as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status; 0 when the reply has none.
    pub status: u16,
    /// Header names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Classification of a reply by how to proceed.
#[derive(Debug)]
pub enum Meaning {
    /// Success, with the parsed body.
    Good(Value),
    /// A server error: the request may be retried.
    Trouble(String),
    /// No reply was received.
    Silence {
        /// The reason.
        why: String,
        /// Whether the request may have arrived nevertheless.
        maybe_arrived: bool,
    },
    /// An error that a retry will not fix.
    Refused(Error),
}

impl Reply {
    /// Builds a reply from the body and the header lines, of which only the last block counts.
    pub fn new(head: &str, body: Vec<u8>) -> Reply {
        let head = head.replace("\r\n", "\n");
        let block = head.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let (status, headers) = parse_head(block);
        Reply { status: status.unwrap_or(0), headers, body }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    /// Interprets the reply to a request described by `what` ("list the issues"); `now` is in seconds since 1970.
    pub fn meaning(&self, what: &str, now: u64) -> Meaning {
        match self.status {
            200..=299 => self.content(what),
            500..=599 | 0 => Meaning::Trouble(format!("GitHub answered {}", self.status)),
            _ if self.is_rate_limit() => Meaning::Refused(self.rate_limited(what, now)),
            _ => Meaning::Refused(self.explain(what)),
        }
    }

    fn content(&self, what: &str) -> Meaning {
        match serde_json::from_slice(&self.body) {
            Ok(value) => Meaning::Good(value),
            Err(_) => Meaning::Refused(
                Error::environment(format!("could not {what}: GitHub's reply is not JSON"))
                    .hint("is GITHUB_API_URL the address of GitHub's API?"),
            ),
        }
    }

    fn is_rate_limit(&self) -> bool {
        let used_up = self.number("x-ratelimit-remaining") == Some(0);
        self.status == 429 || (self.status == 403 && (used_up || self.header("retry-after").is_some()))
    }

    fn rate_limited(&self, what: &str, now: u64) -> Error {
        let reset = self.number("x-ratelimit-reset").map(|at| at.saturating_sub(now));
        let wait = self.number("retry-after").or(reset).unwrap_or(60);
        Error::environment(format!("could not {what}: GitHub's rate limit is exhausted"))
            .hint(format!("run the same command again after {}", duration(wait)))
    }

    fn explain(&self, what: &str) -> Error {
        let error = Error::environment(format!("could not {what}: GitHub answered {}", self.status))
            .detail(self.message());
        match self.status {
            300..=399 => {
                error.hint("the repository was renamed, or GITHUB_API_URL is not exactly the API's address")
            }
            401 => error.hint("the token is invalid or has expired: set GITHUB_TOKEN to a valid one"),
            403 => error.hint(self.missing_permission()),
            404 => error.hint("check GITHUB_REPOSITORY, and that the token can access that repository"),
            410 => error.hint("issues are disabled in that repository: enable them in its settings"),
            _ => error,
        }
    }

    fn missing_permission(&self) -> String {
        match self.header("x-accepted-github-permissions") {
            Some(wanted) => format!("give the token this permission: {}", clean(wanted)),
            None => "give the token the permission to write: `permissions: issues: write`, or \
                     `pull-requests: write`, in the workflow"
                .to_string(),
        }
    }

    /// GitHub's error message, followed by one line for each rejected field.
    fn message(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(clean);
        let fields = body.get("errors").and_then(Value::as_array).into_iter().flatten().take(5);
        let fields = fields.filter_map(|error| {
            text(error, "message")
                .or_else(|| Some(format!("{}: {}", text(error, "field")?, text(error, "code")?)))
        });
        text(&body, "message").into_iter().chain(fields).collect::<Vec<_>>().join("\n")
    }
}

/// Sanitizes untrusted text for display: drops control characters and truncates it to 300 characters.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(head: &str, body: &str) -> String {
        match Reply::new(head, body.into()).meaning("list the issues", 1000) {
            Meaning::Refused(error) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_last_block_of_headers_counts() {
        let reply = Reply::new("HTTP/1.1 100 Continue\r\n\r\nHTTP/2 201 \r\nX-A: b: c\r\n\r\n", vec![]);
        assert_eq!((reply.status, reply.header("x-a")), (201, Some("b: c")));
    }

    #[test]
    fn a_rate_limit_says_when_to_come_back() {
        insta::assert_snapshot!(refusal("HTTP/2 403\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1600\r\n", "{}"), @r"
        error: could not list the issues: GitHub's rate limit is exhausted
          next: run the same command again after 10 minutes
        ");
        assert!(refusal("HTTP/2 429\r\nRetry-After: 30\r\n", "").contains("after 30 seconds"));
    }

    #[test]
    fn a_missing_permission_or_field_is_named() {
        let head = "HTTP/2 403\r\nX-Accepted-GitHub-Permissions: issues=write\r\n";
        insta::assert_snapshot!(refusal(head, r#"{"message": "Resource not accessible\u001b[2J by integration"}"#), @r"
        error: could not list the issues: GitHub answered 403
          Resource not accessible[2J by integration
          next: give the token this permission: issues=write
        ");
        insta::assert_snapshot!(refusal("HTTP/2 422\r\n", r#"{"message": "Validation Failed", "errors": [{"field": "title", "code": "missing"}]}"#), @r"
        error: could not list the issues: GitHub answered 422
          Validation Failed
          title: missing
        ");
    }

    #[test]
    fn trouble_is_not_a_refusal() {
        for head in ["HTTP/1.1 502 Bad Gateway\r\n", "nonsense", ""] {
            assert!(matches!(Reply::new(head, vec![]).meaning("x", 0), Meaning::Trouble(_)), "{head}");
        }
        assert!(refusal("HTTP/1.1 200 OK\r\n", "<html>").contains("not JSON"));
    }
}
