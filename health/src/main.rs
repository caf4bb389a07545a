//! Health check of a container's server. Exits with 0 if its `/health` answers 200, else with 1 and a line with the
//! reason.
//!
//! It has its own HTTP client, the second in this repository: an image has no shell and no curl, and the program is
//! compiled for it alone, so it depends on no crate. It needs only the status line of one response.
//!
//! It reads the server's own variables: `LLAMA_ARG_HOST`, `LLAMA_ARG_PORT` and `LLAMA_ARG_API_PREFIX`. A user who
//! passes these as arguments instead has to set the environment too.

#![allow(clippy::disallowed_methods, reason = "it is not part of the tool, and this is all that it does")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Timeout of the whole request.
const PATIENCE: Duration = Duration::from_secs(4);

/// Address and path of the request.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    host: String,
    port: u16,
    path: String,
}

impl Question {
    /// Reads the environment; `variable` returns the value of a variable.
    fn new(variable: impl Fn(&str) -> Option<String>) -> Result<Question, String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let host = match set("LLAMA_ARG_HOST").as_deref() {
            None | Some("0.0.0.0" | "localhost") => "127.0.0.1".to_string(),
            Some("::") => "::1".to_string(),
            Some(host) => host.to_string(),
        };
        let port = set("LLAMA_ARG_PORT").unwrap_or_else(|| "8080".to_string());
        let port = port.parse().map_err(|_| format!("LLAMA_ARG_PORT is `{port}`, which is not a port"))?;
        let path = set("LLAMA_ARG_API_PREFIX").unwrap_or_default() + "/health";
        match path.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Question { host, port, path }),
            false => Err("LLAMA_ARG_API_PREFIX is not a path".to_string()),
        }
    }

    fn address(&self) -> Result<SocketAddr, String> {
        let mut found =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(|error| error.to_string())?;
        found.next().ok_or_else(|| format!("{} has no address", self.host))
    }

    /// Returns the status of the server's response.
    fn ask(&self, patience: Duration) -> Result<u16, String> {
        let (end, text) = (Instant::now() + patience, |error: std::io::Error| error.to_string());
        let mut stream = TcpStream::connect_timeout(&self.address()?, patience).map_err(text)?;
        let request = format!("GET {} HTTP/1.0\r\nHost: {}\r\n\r\n", self.path, self.host);
        stream.set_write_timeout(Some(patience)).map_err(text)?;
        stream.write_all(request.as_bytes()).map_err(text)?;
        let mut answer = Vec::new();
        let mut part = [0; 256];
        // Only the first line matters; the timeout also covers a server that sends it byte by byte.
        while !answer.contains(&b'\n') && answer.len() < 1024 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("it does not answer in time".to_string());
            }
            stream.set_read_timeout(Some(left)).map_err(text)?;
            match stream.read(&mut part).map_err(text)? {
                0 => break,
                count => answer.extend_from_slice(&part[..count]),
            }
        }
        status(&answer).ok_or_else(|| "its answer is not HTTP".to_string())
    }
}

/// Parses the status from the first line of a response.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|word| word.starts_with("HTTP/"))?;
    words.next()?.parse().ok()
}

fn main() -> ExitCode {
    let question = Question::new(|name| std::env::var(name).ok());
    let result = question.and_then(|question| {
        let status =
            question.ask(PATIENCE).map_err(|why| format!("{}:{}: {why}", question.host, question.port))?;
        if status == 200 { Ok(()) } else { Err(format!("{} answers {status}", question.path)) }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            // A closed pipe must not change the exit code.
            let _ = writeln!(std::io::stderr(), "unhealthy: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
