//! The client of every server on the loopback. docs/decisions/0028-one-http-client-of-our-own-for-loopback-servers.md
//! gives the reasons.
//!
//! Each request has its own connection. The client records when each part of the response arrives, and can disconnect
//! at any moment.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::http::{Disconnect, Ending, Line, Lines, Request, Response};
use crate::sys::machine::threads;

/// A client of one server.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    address: SocketAddr,
}

/// A sent request whose response is not read; the client disconnects when this is dropped.
#[derive(Debug)]
pub struct Held {
    _stream: TcpStream,
}

/// Responses to requests that were sent at once.
#[derive(Debug)]
pub struct Volley {
    /// Status code and JSON body of each, in the order of the requests.
    pub answers: Vec<(u16, Value)>,
    /// From the first request sent to the last response received.
    pub elapsed: Duration,
}

/// Returns the result of a callback that is called while a response arrives.
pub fn stop_if(is_enough: bool) -> ControlFlow<()> {
    match is_enough {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// A server that accepts no connection, or reads nothing, for this long has failed.
const LONGEST_WRITE: Duration = Duration::from_secs(60);

/// A socket accepts no timeout of zero.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

impl Client {
    /// Returns a client of the server that listens on `port` of the loopback.
    pub fn on_port(port: u16) -> Client {
        Client { address: (Ipv4Addr::LOCALHOST, port).into() }
    }

    /// Returns the server's address: `http://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sends a request and records the response until the client disconnects; `most_silence` is the longest allowed
    /// time without a byte.
    pub fn send(&self, request: &Request, disconnect: Disconnect, most_silence: Duration) -> Response {
        let (mut lines, mut events) = (Lines::default(), 0);
        self.exchange(request, disconnect.time(), most_silence, |response| match disconnect {
            Disconnect::Never | Disconnect::AfterTime(_) => stop_if(false),
            Disconnect::WhenAnswered(_) => stop_if(response.is_complete()),
            Disconnect::AfterEvents(count) => {
                while let Some(line) = lines.next_line(&response.body) {
                    events += usize::from(matches!(Line::parse(&line), Line::Data(_)));
                }
                stop_if(events >= count)
            }
        })
    }

    /// Sends a request and waits at most `limit` for the whole response.
    pub fn request(&self, request: &Request, limit: Duration) -> Result<Response> {
        let response = self.exchange(request, Some(limit), limit, |response| stop_if(response.is_complete()));
        match response.is_complete() || response.is_whole && response.ending == Ending::Closed {
            true => Ok(response),
            false => Err(self.failed(request, "no answer", &response)),
        }
    }

    /// Sends a request for a stream and passes each event to `look` as it arrives, until `look` stops or the response
    /// ends. Returns the status code and, if there was no stream, the JSON body.
    pub fn follow(
        &self,
        request: &Request,
        limit: Duration,
        mut look: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(u16, Value)> {
        let (mut lines, mut is_enough) = (Lines::default(), false);
        let response = self.exchange(request, Some(limit), limit, |response| {
            while let Some(line) = lines.next_line(&response.body).filter(|_| !is_enough) {
                is_enough = Line::parse(&line).json().is_some_and(|event| look(&event).is_break());
            }
            stop_if(is_enough || response.is_complete())
        });
        let has_ended = is_enough || response.is_complete() || response.ending == Ending::Closed;
        match response.status.filter(|_| has_ended) {
            Some(200) => Ok((200, Value::Null)),
            Some(status) => Ok((status, response.json())),
            None => Err(self.failed(request, "no complete response", &response)),
        }
    }

    /// Sends a request and keeps the connection open, reading nothing, until the result is dropped.
    pub fn hold(&self, request: &Request) -> Result<Held> {
        let failed =
            |error: std::io::Error| Error::environment(format!("{}{}: {error}", self.base(), request.path));
        let mut stream = self.connect(LONGEST_WRITE).map_err(failed)?;
        self.write(&mut stream, request, || Duration::MAX).map_err(failed)?;
        Ok(Held { _stream: stream })
    }

    /// Sends all `requests` at once and waits at most `limit` for each response.
    pub fn at_once(&self, requests: &[Request], limit: Duration) -> Result<Volley> {
        let together = Barrier::new(requests.len().max(1));
        let sent = threads::at_once(requests.iter().collect(), |request| {
            together.wait();
            let begin = Instant::now();
            let response = self.request(request, limit)?;
            Ok((begin, Instant::now(), response))
        })?;
        let (begin, end) = (sent.iter().map(|one| one.0).min(), sent.iter().map(|one| one.1).max());
        let elapsed = begin.zip(end).map_or(Duration::ZERO, |(begin, end)| end - begin);
        Ok(Volley { answers: sent.into_iter().map(|(.., one)| one.status_and_json()).collect(), elapsed })
    }

    fn failed(&self, request: &Request, what: &str, response: &Response) -> Error {
        let why = match &response.ending {
            Ending::Broken(why) => why.clone(),
            Ending::Closed => "the server closed the connection before the response was complete".to_string(),
            Ending::Left | Ending::Silent => {
                format!("the response was incomplete after {:.1} s", response.took.as_secs_f64())
            }
        };
        Error::environment(format!("{}{}: {what}", self.base(), request.path)).detail(why)
    }

    /// Sends a request and reads until `look`, which is called when more has arrived, stops; until `total` has passed
    /// since the request was sent; or until nothing has arrived for `silence`.
    fn exchange(
        &self,
        request: &Request,
        total: Option<Duration>,
        silence: Duration,
        look: impl FnMut(&Response) -> ControlFlow<()>,
    ) -> Response {
        let begin = Instant::now();
        let left = || total.map_or(Duration::MAX, |total| total.saturating_sub(begin.elapsed()));
        let mut response = Response::none(Ending::Closed);
        response.ending = match self.connect(left()) {
            Err(error) => Ending::Broken(error.to_string()),
            Ok(mut stream) => {
                // A server that refuses a request may close the connection before all of it was sent: its response
                // still counts.
                let sent = self.write(&mut stream, request, left);
                let ending = read(&mut stream, &mut response, (begin, silence), left, look);
                match sent {
                    Err(error) if response.bytes.is_empty() => Ending::Broken(error.to_string()),
                    _ => ending,
                }
            }
        };
        response.took = begin.elapsed();
        response
    }

    fn connect(&self, left: Duration) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, left.clamp(SHORTEST_WAIT, LONGEST_WRITE))?;
        // A part of a request must not wait for the acknowledgement of the one before.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends head and body, together unless the body is paced, until `left` returns no time.
    fn write(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        left: impl Fn() -> Duration,
    ) -> std::io::Result<()> {
        let (head, body) = (request.head(&self.address.to_string()), request.body.as_bytes());
        let Some(pacing) = request.pacing else {
            return write_part(stream, &[head.as_bytes(), body].concat(), &left);
        };
        write_part(stream, head.as_bytes(), &left)?;
        for part in body.chunks(pacing.bytes.max(1)).take_while(|_| !left().is_zero()) {
            write_part(stream, part, &left)?;
            std::thread::sleep(pacing.pause);
        }
        Ok(())
    }
}

/// Sends `bytes`; those that the server does not read while `left` returns some time are not sent.
fn write_part(stream: &mut TcpStream, mut bytes: &[u8], left: &impl Fn() -> Duration) -> std::io::Result<()> {
    while !bytes.is_empty() && !left().is_zero() {
        stream.set_write_timeout(Some(left().clamp(SHORTEST_WAIT, LONGEST_WRITE)))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) && left().is_zero() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Reads a response to a request that was sent at `begin`; `left` returns the time that is left for it.
fn read(
    stream: &mut TcpStream,
    response: &mut Response,
    (begin, silence): (Instant, Duration),
    left: impl Fn() -> Duration,
    mut look: impl FnMut(&Response) -> ControlFlow<()>,
) -> Ending {
    let mut buffer = [0; 16 * 1024];
    let mut last = begin;
    while !left().is_zero() {
        let wait = left().min(silence.saturating_sub(last.elapsed())).max(SHORTEST_WAIT);
        match stream.set_read_timeout(Some(wait)).and_then(|()| stream.read(&mut buffer)) {
            Ok(0) => return Ending::Closed,
            Ok(count) => {
                last = Instant::now();
                response.push(&buffer[..count], begin.elapsed());
                if look(response).is_break() {
                    return Ending::Left;
                }
                if let Some(why) = response.fault() {
                    return Ending::Broken(why);
                }
            }
            Err(error) if is_timeout(&error) => {
                if last.elapsed() >= silence {
                    return Ending::Silent;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Ending::Broken(error.to_string()),
        }
    }
    Ending::Left
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::http::Pacing;

    const LONG: Duration = Duration::from_secs(20);

    /// Serves the first connection with `answer` after it has read a request that ends with `end`. Returns the result
    /// of `act`, and what the server read. Closing with unread data would reset the connection.
    fn served<T>(answer: &str, end: &str, act: impl FnOnce(Client) -> T) -> (T, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::on_port(listener.local_addr().unwrap().port());
        std::thread::scope(|threads| {
            let server = threads.spawn(|| {
                let mut stream = listener.accept().unwrap().0;
                let mut bytes = Vec::new();
                while !bytes.ends_with(end.as_bytes()) {
                    let mut part = [0; 4096];
                    match stream.read(&mut part).unwrap() {
                        0 => break,
                        more => bytes.extend_from_slice(&part[..more]),
                    }
                }
                // The client may have disconnected.
                let _ = stream.write_all(answer.as_bytes());
                espalier_series::lossy(&bytes).into_owned()
            });
            (act(client), server.join().unwrap())
        })
    }

    const UNFRAMED: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    const STREAM: &str =
        ": ping\n\ndata: {\"at\":1}\n\ndata: {\"at\":2}\n\ndata: {\"at\":3}\n\ndata: [DONE]\n";

    #[test]
    fn a_response_is_recorded_until_the_server_closes() {
        let request = Request::post("/a", "{}").with_key(Some("secret")).with_header("X-One", "1");
        let (response, sent) =
            served(UNFRAMED, "{}", |client| client.send(&request, Disconnect::Never, LONG));
        assert_eq!((&response.ending, response.bytes.len()), (&Ending::Closed, UNFRAMED.len()));
        assert_eq!(response.arrivals.last().map(|(_, bytes)| *bytes), Some(UNFRAMED.len()));
        assert!(sent.starts_with("POST /a HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n{}"), "{sent}");
        assert!(sent.contains("\r\nAuthorization: Bearer secret\r\nX-One: 1\r\n"), "{sent}");
    }

    #[test]
    fn a_client_disconnects_after_its_events() {
        let answer = format!("{UNFRAMED}{STREAM}");
        let sent = |disconnect| {
            served(&answer, "{}", |client| client.send(&Request::post("/a", "{}"), disconnect, LONG)).0.ending
        };
        assert_eq!(sent(Disconnect::AfterEvents(2)), Ending::Left);
        assert_eq!(sent(Disconnect::AfterEvents(5)), Ending::Closed);
    }

    #[test]
    fn a_paced_body_ends_when_its_client_disconnects() {
        let pacing = Some(Pacing { bytes: 1, pause: Duration::from_millis(20) });
        let request = Request { pacing, ..Request::post("/a", "x".repeat(10_000)) };
        let disconnect = Disconnect::AfterTime(Duration::from_millis(200));
        let send = |client: Client| client.send(&request, disconnect, LONG);
        let (response, sent) = served("", "an end that never comes", send);
        assert_eq!(response.ending, Ending::Left);
        assert!(sent.contains("Content-Length: 10000\r\n\r\nx") && sent.len() < 1000, "{}", sent.len());
    }

    #[test]
    fn a_response_that_ends_too_early_or_too_late_is_an_error() {
        let asked = |answer: &str, limit| {
            served(answer, "{}", |client| client.request(&Request::post("/a", "{}"), limit)).0
        };
        assert_eq!(asked("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", LONG).unwrap().body, b"[]");
        let error = asked("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n[]", LONG).unwrap_err().to_string();
        assert!(error.contains("/a: no answer") && error.contains("closed the connection"), "{error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::on_port(listener.local_addr().unwrap().port());
        let error = client.request(&Request::get("/a"), Duration::from_millis(50)).unwrap_err().to_string();
        assert!(error.contains("the response was incomplete after"), "{error}");
    }

    #[test]
    fn a_server_that_reads_nothing_does_not_delay_the_end_of_a_request() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::on_port(listener.local_addr().unwrap().port());
        // More than the system accepts before the server reads.
        let request = Request::post("/a", "x".repeat(64 << 20));
        let begin = Instant::now();
        let error = client.request(&request, Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.contains("the response was incomplete after"), "{error}");
        assert!(begin.elapsed() < LONG);
    }

    #[test]
    fn a_malformed_response_is_not_awaited() {
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n";
        let request = Request::post("/a", "{}");
        let error = served(answer, "{}", |client| client.request(&request, LONG)).0.unwrap_err().to_string();
        assert!(
            error.contains("/a: no answer") && error.contains("a chunk of the response has no size"),
            "{error}"
        );
    }

    #[test]
    fn a_stream_is_followed_until_enough_was_received() {
        let followed = |answer: &str, most: usize| {
            let mut seen = Vec::new();
            let look = |event: &Value| {
                seen.push(event["at"].clone());
                stop_if(seen.len() == most)
            };
            let follow = |client: Client| client.follow(&Request::post("/stream", "{}"), LONG, look);
            let (status, body) = served(answer, "{}", follow).0.unwrap();
            (status, body, seen)
        };
        let answer = format!("{UNFRAMED}{STREAM}");
        assert_eq!(followed(&answer, 2), (200, Value::Null, vec![1.into(), 2.into()]));
        assert_eq!(followed(&answer, 9).2, [1, 2, 3]);
        let refusal = "HTTP/1.1 400 X\r\nContent-Length: 3\r\n\r\n[1]";
        assert_eq!(followed(refusal, 9), (400, serde_json::json!([1]), Vec::new()));
    }

    #[test]
    fn a_held_request_ends_when_it_is_dropped() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::on_port(listener.local_addr().unwrap().port());
        let held = client.hold(&Request::post("/held", 7)).unwrap();
        let mut stream = listener.accept().unwrap().0;
        drop(held);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("POST /held HTTP/1.1") && text.ends_with("\r\n\r\n7"), "{text}");
    }

    /// Answers `count` requests whose body is one byte, each with its own body, none before all have arrived.
    fn echo_together(listener: &TcpListener, count: usize) {
        let mut waiting: Vec<_> = (0..count).map(|_| listener.accept().unwrap().0).collect();
        for stream in &mut waiting {
            let mut bytes = Vec::new();
            while bytes.iter().rev().nth(1) != Some(&b'\n') {
                let mut part = [0; 4096];
                let length = stream.read(&mut part).unwrap();
                bytes.extend_from_slice(&part[..length]);
            }
            let body = char::from(bytes[bytes.len() - 1]);
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{body}").unwrap();
        }
    }

    #[test]
    fn requests_are_sent_at_once_and_answered_in_order() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client::on_port(listener.local_addr().unwrap().port());
        let requests: Vec<Request> = (0..8).map(|number| Request::post("/echo", number)).collect();
        let volley = std::thread::scope(|threads| {
            threads.spawn(|| echo_together(&listener, requests.len()));
            client.at_once(&requests, LONG).unwrap()
        });
        let expected: Vec<(u16, Value)> = (0..8).map(|number| (200, Value::from(number))).collect();
        assert_eq!(volley.answers, expected);
        assert!(volley.elapsed > Duration::ZERO);
    }
}
