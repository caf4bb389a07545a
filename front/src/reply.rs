//! Answers that the front gives itself, in the formats of llama-server.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::refusal::Refusal;
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

impl Refusal {
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
