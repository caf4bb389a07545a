//! Errors that the front answers itself.

use hyper::StatusCode;

/// An error that the front answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The model is being loaded.
    Loading,
    /// The server is shutting down.
    Stopping,
    /// No key, or another one.
    Key,
    /// Several keys.
    SeveralKeys,
    /// The route would not apply the limits or the models of the key.
    Restricted,
    /// No such route.
    NotFound,
    /// The body is not one that can be read.
    Malformed(&'static str),
    /// The body did not arrive in time.
    Slow,
    /// The body is larger than this.
    Large(usize),
    /// So many requests are running or waiting.
    Busy,
    /// The key has used up its tokens or requests, for so many seconds.
    Limited(&'static str, u32),
    /// The core failed.
    Internal,
}

impl Refusal {
    /// Status, type and message of the error.
    #[must_use]
    pub fn parts(self) -> (StatusCode, &'static str, String) {
        let (status, kind, message) = match self {
            Refusal::Loading => (StatusCode::SERVICE_UNAVAILABLE, "unavailable_error", "Loading model"),
            Refusal::Stopping => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable_error", "The server is shutting down")
            }
            Refusal::Key => (StatusCode::UNAUTHORIZED, "authentication_error", "Invalid API Key"),
            Refusal::SeveralKeys => {
                let message = "several API keys came with the request";
                (StatusCode::BAD_REQUEST, "invalid_request_error", message)
            }
            Refusal::Restricted => {
                let message = "An API key with limits or models may not use this route";
                (StatusCode::FORBIDDEN, "permission_error", message)
            }
            Refusal::NotFound => (StatusCode::NOT_FOUND, "not_found_error", "File Not Found"),
            Refusal::Malformed(message) => (StatusCode::BAD_REQUEST, "invalid_request_error", message),
            Refusal::Slow => {
                let message = "the body of the request did not arrive in time";
                (StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
            }
            Refusal::Large(limit) => {
                let message = format!("the body of the request is larger than {limit} bytes");
                return (StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message);
            }
            Refusal::Busy => {
                let message = "Too many requests are being processed, try again later";
                (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            }
            Refusal::Limited(unit, _) => {
                let message = format!("The API key has used up its {unit} per minute, try again later");
                return (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
            }
            Refusal::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "server_error", "Internal Server Error"),
        };
        (status, kind, message.to_string())
    }

    /// The reason in one word, for the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Loading => "loading",
            Refusal::Stopping => "stopping",
            Refusal::Key => "key",
            Refusal::SeveralKeys => "several_keys",
            Refusal::Restricted => "restricted",
            Refusal::NotFound => "not_found",
            Refusal::Malformed(_) => "malformed",
            Refusal::Slow => "slow_body",
            Refusal::Large(_) => "large_body",
            Refusal::Busy => "busy",
            Refusal::Limited(..) => "rate_limit",
            Refusal::Internal => "internal",
        }
    }

    /// Whether more of the request may follow, so that the connection cannot be used again.
    #[must_use]
    pub fn ends_connection(self) -> bool {
        matches!(self, Refusal::Slow | Refusal::Large(_))
    }

    /// Seconds until the request may be accepted.
    #[must_use]
    pub fn retry_after(self) -> Option<u32> {
        match self {
            Refusal::Busy => Some(1),
            Refusal::Limited(_, seconds) => Some(seconds),
            _ => None,
        }
    }
}
