//! As much HTTP as the fake server needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// What a client asks.
pub struct Asked {
    pub path: String,
    /// Who asks, as they show it.
    pub key: String,
    pub body: Value,
}

/// Nothing if the client went away before it had asked.
pub fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_string();
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => key = value.trim().to_string(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, key, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

/// Answers; that a client went away is part of what is asked.
pub fn reply(stream: &mut TcpStream, status: u16, body: &Value) {
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Some Reason\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Begins a stream of events.
pub fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
}

/// One event; an error when the client is gone.
pub fn send(stream: &mut TcpStream, event: &Value) -> std::io::Result<()> {
    write!(stream, "data: {event}\n\n")
}
