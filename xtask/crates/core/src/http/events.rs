//! Server-sent events, line by line. llama-server writes the data of an event on one line, so an event has arrived with
//! that line, not only with the empty one after it.

use std::borrow::Cow;

use serde_json::Value;

/// A line of a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The end of an event, or a comment, which keeps the connection open.
    Ignored,
    /// The name of the event whose data follows.
    Name(&'a str),
    /// The data of an event.
    Data(&'a str),
    /// A line that is not part of such a stream.
    Other(&'a str),
}

impl<'a> Line<'a> {
    /// Parses a line without its line end.
    #[must_use]
    pub fn parse(line: &'a str) -> Line<'a> {
        match line.split_once(':') {
            Some(("", _)) => Line::Ignored,
            Some(("event", name)) => Line::Name(name.trim()),
            Some(("data", data)) => Line::Data(data.trim()),
            None if line.is_empty() => Line::Ignored,
            _ => Line::Other(line),
        }
    }

    /// Returns the data of an event, if the line is data and JSON.
    #[must_use]
    pub fn json(self) -> Option<Value> {
        match self {
            Line::Data(data) => serde_json::from_str(data).ok(),
            _ => None,
        }
    }
}

/// The position in a body that is still arriving, of which complete lines are read.
#[derive(Debug, Default)]
pub struct Lines {
    read: usize,
}

impl Lines {
    /// Returns the next line of `body` without its line end; `None` until all of it has arrived.
    pub fn next_line<'a>(&mut self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        let rest = &body[self.read..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.read += end + 1;
        let line = &rest[..end];
        Some(espalier_series::lossy(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_kind() {
        assert_eq!((Line::parse(""), Line::parse(": ping")), (Line::Ignored, Line::Ignored));
        assert_eq!(Line::parse("event: message_stop"), Line::Name("message_stop"));
        assert_eq!(
            (Line::parse("data:[DONE]"), Line::parse("data: 1 ")),
            (Line::Data("[DONE]"), Line::Data("1"))
        );
        assert_eq!(
            (Line::parse("error: x"), Line::parse("data")),
            (Line::Other("error: x"), Line::Other("data"))
        );
        assert_eq!(Line::parse("data: {\"at\":1}").json().unwrap()["at"], 1);
        assert_eq!((Line::parse("data: [DONE]").json(), Line::parse("{}").json()), (None, None));
    }

    #[test]
    fn a_line_is_read_once_all_of_it_has_arrived() {
        let mut lines = Lines::default();
        let mut next = |body: &'static str| lines.next_line(body.as_bytes());
        assert_eq!(next("data: 1\r"), None);
        assert_eq!(next("data: 1\r\n\ndata: 2").as_deref(), Some("data: 1"));
        assert_eq!(next("data: 1\r\n\ndata: 2").as_deref(), Some(""));
        assert_eq!(next("data: 1\r\n\ndata: 2"), None);
        assert_eq!(next("data: 1\r\n\ndata: 2\n").as_deref(), Some("data: 2"));
    }
}
