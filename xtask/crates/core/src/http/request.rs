//! Requests.

use std::time::Duration;

/// A request. Nothing in it is validated: checks send malformed requests on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path, including the leading slash.
    pub path: String,
    /// Headers besides those that every request has, by name and value.
    pub headers: Vec<(String, String)>,
    /// The body; may be empty.
    pub body: String,
    /// Pacing of the body; sent at once if absent.
    pub pacing: Option<Pacing>,
}

/// A body that is sent in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Bytes per part, at least 1.
    pub bytes: usize,
    /// Delay after each part.
    pub pause: Duration,
}

/// The moment when the client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// Only after the server has closed the connection.
    Never,
    /// After this time, whatever has arrived.
    AfterTime(Duration),
    /// After this many events of a stream; 0: at the first byte.
    AfterEvents(usize),
    /// After this time, or as soon as the response is complete: a server that refuses a request may keep the
    /// connection open for a while.
    WhenAnswered(Duration),
}

impl Request {
    /// Returns a request without a body.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Request {
        Request { method: "GET", path: path.into(), ..Request::default() }
    }

    /// Returns a request with `body`: a JSON value, or any text.
    #[must_use]
    pub fn post(path: impl Into<String>, body: impl ToString) -> Request {
        Request { method: "POST", path: path.into(), body: body.to_string(), ..Request::default() }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Request {
        self.headers.push((name.to_string(), value.into()));
        self
    }

    /// Adds an API key, if there is one.
    #[must_use]
    pub fn with_key(self, key: Option<&str>) -> Request {
        match key {
            Some(key) => self.with_header("Authorization", format!("Bearer {key}")),
            None => self,
        }
    }

    /// Returns the text before the body, for the server at `host`.
    #[must_use]
    pub fn head(&self, host: &str) -> String {
        let Request { method, path, headers, body, .. } = self;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
    }
}

impl Disconnect {
    /// Returns the time after which the client disconnects, whatever has arrived.
    #[must_use]
    pub fn time(self) -> Option<Duration> {
        match self {
            Disconnect::AfterTime(time) | Disconnect::WhenAnswered(time) => Some(time),
            Disconnect::Never | Disconnect::AfterEvents(_) => None,
        }
    }
}
