//! Answers that the front gives itself, in the formats of llama-server.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::stream::Stream;

/// Content type of JSON, as llama-server spells it.
const JSON: &str = "application/json; charset=utf-8";

/// Body of an answer.
#[derive(Debug)]
pub enum Reply {
    /// All of it; taken when it is sent.
    Whole(Option<Bytes>),
    /// A stream of the core.
    Stream(Box<Stream>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Reply::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Reply::Stream(stream) => {
                stream.poll_chunk(context).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Reply::Whole(body) => body.as_ref().is_none_or(Bytes::is_empty),
            Reply::Stream(stream) => stream.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Reply::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Reply::Stream(_) => SizeHint::default(),
        }
    }
}

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
    fn parts(self) -> (StatusCode, &'static str, String) {
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
    fn ends_connection(self) -> bool {
        matches!(self, Refusal::Slow | Refusal::Large(_))
    }

    /// Seconds until the request may be accepted.
    fn retry_after(self) -> Option<u32> {
        match self {
            Refusal::Busy => Some(1),
            Refusal::Limited(_, seconds) => Some(seconds),
            _ => None,
        }
    }

    /// The answer; `anthropic` is the format of the Messages API.
    #[must_use]
    pub fn answer(self, anthropic: bool) -> Response<Reply> {
        let (status, kind, message) = self.parts();
        let code = status.as_u16();
        let kind = if anthropic { anthropic_type(kind, code) } else { kind };
        // As the server orders the fields of the same error.
        let error = match self {
            Refusal::Loading | Refusal::Key | Refusal::NotFound => {
                format!(r#"{{"message":"{message}","type":"{kind}","code":{code}}}"#)
            }
            _ => format!(r#"{{"code":{code},"message":"{message}","type":"{kind}"}}"#),
        };
        let text = if anthropic {
            format!(r#"{{"type":"error","error":{error}}}"#)
        } else {
            format!(r#"{{"error":{error}}}"#)
        };
        let mut answer = json(status, text);
        if let Some(seconds) = self.retry_after() {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.ends_connection() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// The type that the Messages API has for an error.
fn anthropic_type(kind: &'static str, code: u16) -> &'static str {
    let known = ["invalid_request_error", "authentication_error", "not_found_error", "rate_limit_error"];
    match code {
        _ if known.contains(&kind) => kind,
        503 => "overloaded_error",
        code if code < 500 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The answer that all is well.
#[must_use]
pub fn ok() -> Response<Reply> {
    json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// An answer with a body of JSON.
#[must_use]
pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Reply> {
    whole(status, JSON, text)
}

/// An answer with a body of any type.
#[must_use]
pub fn whole(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Response<Reply> {
    let mut answer = Response::new(Reply::Whole(Some(text.into())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(refusal: Refusal, anthropic: bool) -> String {
        match refusal.answer(anthropic).into_body() {
            Reply::Whole(Some(body)) => String::from_utf8(body.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn errors_have_the_fields_of_the_server_in_its_order() {
        let not_found = r#"{"error":{"message":"File Not Found","type":"not_found_error","code":404}}"#;
        assert_eq!(text(Refusal::NotFound, false), not_found);
        let stopping =
            r#"{"error":{"code":503,"message":"The server is shutting down","type":"unavailable_error"}}"#;
        assert_eq!(text(Refusal::Stopping, false), stopping);
    }

    #[test]
    fn the_messages_api_has_its_own_types() {
        let busy = r#"{"type":"error","error":{"code":429,"message":"Too many requests are being processed, try again later","type":"rate_limit_error"}}"#;
        assert_eq!(text(Refusal::Busy, true), busy);
        assert!(text(Refusal::Loading, true).contains(r#""type":"overloaded_error""#));
        assert!(text(Refusal::Internal, true).contains(r#""type":"api_error""#));
    }
}
