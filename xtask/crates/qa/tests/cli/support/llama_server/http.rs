//! The subset of HTTP that the fake servers need.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A client's request.
pub struct Asked {
    pub path: String,
    /// The API key that the client sent.
    pub key: String,
    pub body: Value,
}

/// Reads a request; returns `None` if the client disconnected before it was complete.
pub fn read(stream: &TcpStream) -> Option<Asked> {
    let (head, body) = read_texts(stream)?;
    let path = head.split(' ').nth(1)?.to_string();
    let key = header(&head, "authorization").unwrap_or_default().to_string();
    Some(Asked { path, key, body: serde_json::from_str(&body).unwrap_or(Value::Null) })
}

/// As [`read`]: returns the head, with the empty line at its end, and the body.
pub fn read_texts(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).unwrap()))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Sends an answer; a disconnected client is ignored because tests disconnect on purpose.
pub fn reply(stream: &mut TcpStream, status: u16, body: &Value) {
    reply_text(stream, status, "Content-Type: application/json\r\n", &body.to_string());
}

/// As [`reply`], with any headers, each with its line end, and any body.
pub fn reply_text(stream: &mut TcpStream, status: u16, headers: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Some Reason\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// Starts a stream of events.
pub fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
}

/// Sends one event; fails if the client has disconnected.
pub fn send(stream: &mut TcpStream, event: &Value) -> std::io::Result<()> {
    write!(stream, "data: {event}\n\n")
}
