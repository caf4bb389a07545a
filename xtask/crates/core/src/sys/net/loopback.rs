//! HTTP over the loopback, for the smoke test, the benchmarks of the server, and detection of ports in use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Error, Result};

/// Whether a program of this machine accepts connections on `port`.
pub fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether `host:port` is free; a host that is not one of our addresses counts as free.
pub fn port_is_free(host: &str, port: u16) -> bool {
    match TcpListener::bind((host, port)) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::AddrInUse,
    }
}

/// GET `url`: returns the status code and the JSON body (null if it is not JSON).
pub fn get(url: &str) -> Result<(u16, Value)> {
    answer(url, minreq::get(url).with_timeout(SECONDS).send())
}

/// POST `body` to `url`: returns the status code and the JSON body (null if it is not JSON).
pub fn post(url: &str, body: &Value) -> Result<(u16, Value)> {
    answer(url, json_request(url, body).send())
}

/// As [`post`], with an API key.
pub fn post_as(key: &str, url: &str, body: &Value) -> Result<(u16, Value)> {
    answer(url, json_request(url, body).with_header("Authorization", format!("Bearer {key}")).send())
}

/// API key and time limit of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// API key to send, if any.
    pub key: Option<&'a str>,
    /// Limit until the answer is complete; at least a second.
    pub limit: Duration,
}

/// POSTs `text`, which is JSON in any formatting, to `url`: returns the status code and the JSON body (null if it is
/// not JSON).
pub fn post_text(url: &str, text: &str, caller: Caller<'_>) -> Result<(u16, Value)> {
    answer(url, request_of(url, text, caller).send())
}

/// GET `url`: returns the status code and the body as text.
pub fn get_text(url: &str, caller: Caller<'_>) -> Result<(u16, String)> {
    let request = with_key(minreq::get(url), caller.key).with_timeout(caller.limit.as_secs().max(1));
    let response = request
        .send()
        .map_err(|error| Error::environment(format!("{url}: no answer")).detail(error.to_string()))?;
    Ok((response.status_code, espalier_series::lossy(response.as_bytes()).into_owned()))
}

/// POSTs `text` and passes each line of the answer to `look` as it arrives, until `look` stops or the answer ends.
/// Returns the status code.
pub fn post_and_read_lines(
    url: &str,
    text: &str,
    caller: Caller<'_>,
    mut look: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<u16> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::environment(format!("{url}: the answer broke off")).detail(error.to_string())
    };
    let response = request_of(url, text, caller).send_lazy().map_err(|error| failed(&error))?;
    let status = response.status_code;
    for line in BufReader::new(response).lines() {
        if look(&line.map_err(|error| failed(&error))?).is_break() {
            break;
        }
    }
    Ok(status)
}

fn request_of(url: &str, text: &str, caller: Caller<'_>) -> minreq::Request {
    with_key(minreq::post(url), caller.key)
        .with_header("Content-Type", "application/json")
        .with_body(text)
        .with_timeout(caller.limit.as_secs().max(1))
}

fn with_key(request: minreq::Request, key: Option<&str>) -> minreq::Request {
    match key {
        Some(key) => request.with_header("Authorization", format!("Bearer {key}")),
        None => request,
    }
}

fn json_request(url: &str, body: &Value) -> minreq::Request {
    request_of(url, &body.to_string(), Caller { key: None, limit: Duration::from_secs(SECONDS) })
}

/// POSTs `body`, which requests a stream, and passes each event to `look` until it stops; then closes the connection.
/// Returns the status code and, if there was no stream, the JSON body.
pub fn post_and_follow(
    url: &str,
    body: &Value,
    limit: Duration,
    mut look: impl FnMut(&Value) -> ControlFlow<()>,
) -> Result<(u16, Value)> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::environment(format!("{url}: the stream broke off")).detail(error.to_string())
    };
    let request = json_request(url, body).with_timeout(limit.as_secs().max(1));
    let mut response = request.send_lazy().map_err(|error| failed(&error))?;
    let status = response.status_code;
    if status != 200 {
        let mut bytes = Vec::new();
        response.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        return Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)));
    }
    for line in BufReader::new(response).lines() {
        let line = line.map_err(|error| failed(&error))?;
        if event_of(&line).is_some_and(|event| look(&event).is_break()) {
            break;
        }
    }
    Ok((status, Value::Null))
}

/// Parses a line of an event stream.
fn event_of(line: &str) -> Option<Value> {
    serde_json::from_str(line.strip_prefix("data:")?).ok()
}

/// POSTs `body` and disconnects after `patience`, whatever has arrived by then.
pub fn post_and_leave(url: &str, body: &Value, patience: Duration) -> Result<()> {
    let stream = send_by_hand(url, body)?;
    std::thread::sleep(patience);
    drop(stream);
    Ok(())
}

/// A sent request whose answer is not read; the client disconnects when this is dropped.
#[derive(Debug)]
pub struct Held {
    _stream: TcpStream,
}

/// POSTs `body` and keeps the connection open until the result is dropped.
pub fn post_and_hold(url: &str, body: &Value) -> Result<Held> {
    send_by_hand(url, body).map(|stream| Held { _stream: stream })
}

/// POSTs `body` and disconnects as soon as the answer begins.
pub fn post_and_hang_up(url: &str, body: &Value) -> Result<()> {
    let failed = |error: std::io::Error| Error::environment(format!("{url}: {error}"));
    send_by_hand(url, body)?.read(&mut [0; 64]).map(drop).map_err(failed)
}

/// Sends a request without waiting for the answer, which the library would do.
fn send_by_hand(url: &str, body: &Value) -> Result<TcpStream> {
    let failed = |error: std::io::Error| Error::environment(format!("{url}: {error}"));
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
    let text = body.to_string();
    let mut stream = TcpStream::connect(host).map_err(failed)?;
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
    .map_err(failed)?;
    Ok(stream)
}

/// Results of requests that were sent at once.
#[derive(Debug)]
pub struct Volley {
    /// Status code and JSON body of each, in the order of the requests.
    pub answers: Vec<(u16, Value)>,
    /// From the first request sent to the last answer received.
    pub elapsed: Duration,
}

/// POSTs all `bodies` to `url` at once, each over its own connection, and waits at most `limit`.
pub fn post_at_once(url: &str, bodies: &[Value], limit: Duration) -> Result<Volley> {
    let texts: Vec<String> = bodies.iter().map(Value::to_string).collect();
    let together = Barrier::new(texts.len().max(1));
    let sent: Vec<Sent> = std::thread::scope(|threads| {
        let send = |text| {
            let together = &together;
            threads.spawn(move || {
                together.wait();
                post_timed(url, text, limit)
            })
        };
        let running: Vec<_> = texts.into_iter().map(send).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let elapsed = match (sent.iter().map(|one| one.begin).min(), sent.iter().map(|one| one.end).max()) {
        (Some(begin), Some(end)) => end - begin,
        _ => Duration::ZERO,
    };
    let answers: Result<Vec<(u16, Value)>> = sent.into_iter().map(|one| answer(url, one.response)).collect();
    Ok(Volley { answers: answers?, elapsed })
}

struct Sent {
    begin: Instant,
    end: Instant,
    response: std::result::Result<minreq::Response, minreq::Error>,
}

/// Times a POST; parsing the JSON of the answer is not included.
fn post_timed(url: &str, text: String, limit: Duration) -> Sent {
    let request = minreq::post(url)
        .with_header("Content-Type", "application/json")
        .with_body(text)
        .with_timeout(limit.as_secs().max(1));
    let begin = Instant::now();
    let response = request.send();
    Sent { begin, end: Instant::now(), response }
}

/// A tiny model answers at once; this limit is for a busy machine.
const SECONDS: u64 = 60;

fn answer(url: &str, response: std::result::Result<minreq::Response, minreq::Error>) -> Result<(u16, Value)> {
    let response = response
        .map_err(|error| Error::environment(format!("{url}: no answer")).detail(error.to_string()))?;
    let body = serde_json::from_slice(response.as_bytes()).unwrap_or(Value::Null);
    Ok((response.status_code, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_request_ends_when_it_is_dropped() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/held", listener.local_addr().unwrap());
        let held = post_and_hold(&url, &Value::from(7)).unwrap();
        let mut stream = listener.accept().unwrap().0;
        drop(held);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("POST /held HTTP/1.1") && text.ends_with("\r\n\r\n7"), "{text}");
    }

    /// Answers `count` requests, none before all have arrived, each with its own body.
    fn echo_together(listener: &TcpListener, count: usize) {
        let mut waiting: Vec<_> = (0..count).map(|_| listener.accept().unwrap().0).collect();
        for stream in &mut waiting {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            let text = espalier_series::lossy(&bytes[..length]).into_owned();
            let body = text.split("\r\n\r\n").nth(1).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
    }

    #[test]
    fn requests_are_sent_at_once_and_answered_in_order() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/echo", listener.local_addr().unwrap());
        let bodies: Vec<Value> = (0..8).map(Value::from).collect();
        let volley = std::thread::scope(|threads| {
            threads.spawn(|| echo_together(&listener, bodies.len()));
            post_at_once(&url, &bodies, Duration::from_secs(20)).unwrap()
        });
        let expected: Vec<(u16, Value)> = bodies.into_iter().map(|body| (200, body)).collect();
        assert_eq!(volley.answers, expected);
        assert!(volley.elapsed > Duration::ZERO);
    }

    #[test]
    fn a_caller_shows_its_key_and_reads_line_by_line() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/stream", listener.local_addr().unwrap());
        let caller = Caller { key: Some("secret"), limit: Duration::from_secs(20) };
        let mut lines = Vec::new();
        let asked = std::thread::scope(|threads| {
            let server = threads.spawn(|| {
                let mut stream = listener.accept().unwrap().0;
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).unwrap();
                write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: null\n\ndata: [DONE]\n")
                    .unwrap();
                espalier_series::lossy(&bytes[..length]).into_owned()
            });
            let look = |line: &str| {
                lines.push(line.to_string());
                ControlFlow::Continue(())
            };
            assert_eq!(post_and_read_lines(&url, "{\"\\u0061\":1}", caller, look).unwrap(), 200);
            server.join().unwrap()
        });
        assert_eq!(lines, ["data: null", "", "data: [DONE]"]);
        assert!(
            asked.contains("Authorization: Bearer secret") && asked.contains("{\"\\u0061\":1}"),
            "{asked}"
        );
    }

    #[test]
    fn a_stream_is_followed_until_enough_was_seen() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/stream", listener.local_addr().unwrap());
        let mut seen = Vec::new();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut stream = listener.accept().unwrap().0;
                assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
                let text = ": ping\n\ndata: {\"at\":1}\n\ndata: {\"at\":2}\n\ndata: {\"at\":3}\n\n";
                write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{text}").unwrap();
            });
            let look = |event: &Value| {
                seen.push(event["at"].clone());
                if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let answer = post_and_follow(&url, &Value::Null, Duration::from_secs(20), look).unwrap();
            assert_eq!(answer, (200, Value::Null));
        });
        assert_eq!(seen, [1, 2]);
        assert_eq!(event_of("data: [DONE]"), None);
    }
}
