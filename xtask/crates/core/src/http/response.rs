//! Responses, parsed as they arrive.

use std::time::Duration;

use serde_json::Value;

/// A response as far as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code; `None` until the head is complete.
    pub status: Option<u16>,
    /// The headers: names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, with chunks joined.
    pub body: Vec<u8>,
    /// Whether the end of the body arrived. If only the end of the connection shows it, this is set with the head.
    pub is_whole: bool,
    /// All bytes, including the head.
    pub bytes: Vec<u8>,
    /// Arrival of each part: time since the request was sent, and total bytes received by then.
    pub arrivals: Vec<(Duration, usize)>,
    /// From sending to the end.
    pub took: Duration,
    /// The end of the connection.
    pub ending: Ending,
    /// Number of bytes that were parsed.
    parsed: usize,
    framing: Framing,
}

/// End of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The server closed it.
    #[default]
    Closed,
    /// The client disconnected as planned.
    Left,
    /// No byte arrived for longer than allowed.
    Silent,
    /// The system reported a broken connection.
    Broken(String),
}

/// The rule that determines the end of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    /// The end of the connection.
    #[default]
    Close,
    /// Its length in bytes.
    Length(usize),
    /// A chunk of size 0. The number counts the missing bytes of the current chunk, including the line end after it.
    Chunks(usize),
    /// None: a chunk has no size, so nothing after it can be read.
    Malformed,
}

/// Length of a line end.
const LINE_END: usize = 2;

/// Maximum length of a head in bytes, and of the line with the size of a chunk.
const HEAD_LIMIT: usize = 1 << 20;

/// Maximum length of a response in bytes, several times that of any response of a check: a server that never ends one
/// must not take all memory.
const LENGTH_LIMIT: usize = 256 << 20;

impl Response {
    /// Returns a response of which nothing arrived.
    #[must_use]
    pub fn none(ending: Ending) -> Response {
        Response { ending, ..Response::default() }
    }

    /// Adds bytes that arrived at `time`.
    pub fn push(&mut self, bytes: &[u8], time: Duration) {
        self.bytes.extend_from_slice(bytes);
        self.arrivals.push((time, self.bytes.len()));
        if self.status.is_none() {
            self.take_head();
        }
        match self.framing {
            _ if self.status.is_none() => {}
            Framing::Malformed => {}
            Framing::Chunks(left) => self.take_chunks(left),
            Framing::Close => self.take_rest(),
            Framing::Length(length) => {
                self.take_rest();
                self.is_whole = self.body.len() >= length;
                // More is not a part of the body, however much of it happens to have arrived.
                self.body.truncate(length);
            }
        }
    }

    fn take_head(&mut self) {
        let Some(end) = find(&self.bytes, b"\r\n\r\n") else { return };
        (self.status, self.headers) = parse_head(&espalier_series::lossy(&self.bytes[..end]));
        if self.status.is_none() {
            return;
        }
        self.parsed = end + 2 * LINE_END;
        let length = self.header("content-length").and_then(|length| length.parse().ok());
        self.framing = match (self.header("transfer-encoding"), length, self.status) {
            (Some(coding), _, _) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunks(0),
            (_, Some(length), _) => Framing::Length(length),
            // These have no body.
            (_, _, Some(204 | 304)) => Framing::Length(0),
            _ => Framing::Close,
        };
        self.is_whole = self.framing == Framing::Close;
    }

    fn take_rest(&mut self) {
        self.body.extend_from_slice(&self.bytes[self.parsed..]);
        self.parsed = self.bytes.len();
    }

    fn take_chunks(&mut self, mut left: usize) {
        while !self.is_whole {
            let mut rest = &self.bytes[self.parsed..];
            if left == 0 {
                let Some(end) = find(rest, b"\r\n").filter(|end| *end <= HEAD_LIMIT) else {
                    if rest.len() > HEAD_LIMIT {
                        self.framing = Framing::Malformed;
                        return;
                    }
                    break;
                };
                let Some(size) = chunk_size(&rest[..end]) else {
                    self.framing = Framing::Malformed;
                    return;
                };
                rest = &rest[end + LINE_END..];
                self.is_whole = size == 0;
                left = size.saturating_add(LINE_END);
            }
            let (data, taken) = (left.saturating_sub(LINE_END), rest.len().min(left));
            self.body.extend_from_slice(&rest[..taken.min(data)]);
            self.parsed = self.bytes.len() - rest.len() + taken;
            left -= taken;
            if left > 0 {
                break;
            }
        }
        self.framing = Framing::Chunks(left);
    }

    /// Returns the reason why no more of it can be read: it is malformed, or exceeds a limit.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let length = self.bytes.len();
        if self.status.is_none() && length > HEAD_LIMIT {
            return Some(format!("the first {length} bytes of the response have no head"));
        }
        if length > LENGTH_LIMIT {
            return Some(format!("the response has more than {LENGTH_LIMIT} bytes"));
        }
        (self.framing == Framing::Malformed).then(|| "a chunk of the response has no size".to_string())
    }

    /// Whether it is complete although the connection may still be open.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_whole && self.framing != Framing::Close
    }

    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> String {
        espalier_series::lossy(&self.body).into_owned()
    }

    /// Returns the body as JSON; null if it is something else.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the status, 0 if there is none, and the body as text.
    #[must_use]
    pub fn status_and_text(&self) -> (u16, String) {
        (self.status.unwrap_or(0), self.text())
    }

    /// Returns the status, 0 if there is none, and the body as JSON.
    #[must_use]
    pub fn status_and_json(&self) -> (u16, Value) {
        (self.status.unwrap_or(0), self.json())
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Parses the status and the headers of a response; the names of the headers are in lower case.
#[must_use]
pub fn parse_head(text: &str) -> (Option<u16>, Vec<(String, String)>) {
    let status = text.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    let headers = text.lines().filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_string()));
    (status, headers.collect())
}

/// Parses the line before a chunk: its size, and extensions, which have no meaning here.
fn chunk_size(line: &[u8]) -> Option<usize> {
    let line = espalier_series::lossy(line);
    let size = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(size, 16).ok()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

    fn arrived(text: &str, at_once: usize) -> Response {
        let mut response = Response::none(Ending::Closed);
        text.as_bytes().chunks(at_once).for_each(|part| response.push(part, Duration::ZERO));
        response
    }

    #[test]
    fn chunks_are_joined_in_whatever_parts_they_arrive() {
        for at_once in 1..=CHUNKED.len() {
            let response = arrived(CHUNKED, at_once);
            assert_eq!((response.status, response.text().as_str()), (Some(200), "abcde"), "{at_once}");
            assert!(response.is_complete(), "{at_once} bytes at once");
        }
        let cut = arrived(&CHUNKED[..CHUNKED.len() - 7], 1000);
        assert_eq!((cut.text().as_str(), cut.is_whole), ("abcde", false));
    }

    #[test]
    fn a_chunk_may_have_extensions_and_must_have_a_size() {
        let extended = CHUNKED.replace("3\r\n", "3;a=b; c\r\n").replace("0\r\n", "0 ;d\r\n");
        let response = arrived(&extended, 7);
        assert_eq!(
            (response.text().as_str(), response.is_complete(), response.fault()),
            ("abcde", true, None)
        );
        let endless = "1".repeat(HEAD_LIMIT + 1);
        for size in ["x\r\n", "\r\n", endless.as_str()] {
            let response = arrived(&CHUNKED.replace("2\r\n", size), 1 << 16);
            assert_eq!((response.text().as_str(), response.is_complete()), ("abc", false));
            assert_eq!(response.fault().as_deref(), Some("a chunk of the response has no size"));
        }
    }

    #[test]
    fn a_response_has_limits() {
        let mut response = arrived(&"x".repeat(HEAD_LIMIT), 1 << 16);
        assert_eq!(response.fault(), None);
        response.push(b"x", Duration::ZERO);
        let why = format!("the first {} bytes of the response have no head", HEAD_LIMIT + 1);
        assert_eq!(response.fault(), Some(why));
        let long = Response { status: Some(200), bytes: vec![0; LENGTH_LIMIT + 1], ..Response::default() };
        assert_eq!(long.fault(), Some(format!("the response has more than {LENGTH_LIMIT} bytes")));
    }

    #[test]
    fn a_length_determines_the_end() {
        for at_once in [1, 1000] {
            let longer = arrived("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}trailing", at_once);
            assert_eq!((longer.text().as_str(), longer.is_complete()), ("{}", true));
        }
        let response = arrived("HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}", 1000);
        assert_eq!((response.status, response.is_complete()), (Some(400), true));
        assert!(!arrived("HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\n{}", 1000).is_whole);
        assert!(arrived("HTTP/1.1 204 No Content\r\n\r\n", 1000).is_complete());
    }

    #[test]
    fn an_end_that_only_the_connection_shows_is_never_awaited() {
        let response = arrived("HTTP/1.1 200 OK\r\nX-A: b: c\r\n\r\n{}", 1000);
        assert_eq!(response.headers, [("x-a".to_string(), "b: c".to_string())]);
        assert!(response.is_whole && !response.is_complete());
        for cut in ["HTTP/1.1 200 OK\r\n", "nonsense\r\n\r\n"] {
            assert_eq!((arrived(cut, 1000).status, arrived(cut, 1000).is_whole), (None, false));
        }
    }
}
