//! One HTTP exchange over its own connection, recorded byte by byte with arrival times: for clients that disconnect
//! at any moment, and for checks of what an HTTP library would hide.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path, including the leading slash.
    pub path: String,
    /// An API key.
    pub key: Option<String>,
    /// `X-Conversation-Id`.
    pub conversation: Option<String>,
    /// More headers, by name and value.
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
pub enum Leave {
    /// Only after the server has closed the connection.
    Never,
    /// After this time, whatever has arrived.
    AfterTime(Duration),
    /// After this many events of a stream; 0: at the first byte.
    AfterEvents(usize),
    /// After this time, or as soon as an answer with a `Content-Length` is complete: a server that refuses a request
    /// may keep the connection open for a while.
    WhenAnswered(Duration),
}

/// End of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closed the connection.
    Closed,
    /// The client disconnected as planned.
    Left,
    /// No byte arrived for longer than allowed.
    Silent,
    /// The system reported a broken connection.
    Broken(String),
}

/// A recorded exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// All bytes received, including the head of the answer.
    pub bytes: Vec<u8>,
    /// Arrival of each part: time since the request was sent, and total bytes received by then.
    pub arrivals: Vec<(Duration, usize)>,
    /// From sending to the end.
    pub took: Duration,
    /// The end of the exchange.
    pub ending: Ending,
}

impl Exchange {
    /// Returns an exchange in which nothing was sent, with the reason.
    #[must_use]
    pub fn never(why: String) -> Exchange {
        Exchange {
            bytes: Vec::new(),
            arrivals: Vec::new(),
            took: Duration::ZERO,
            ending: Ending::Broken(why),
        }
    }
}

/// Interval at which a client checks whether to disconnect.
const TICK: Duration = Duration::from_millis(10);

/// A server that reads nothing for this long has failed.
const LONGEST_WRITE: Duration = Duration::from_secs(60);

/// Sends the request to `host:port`; `most_silence` is the longest allowed time without a byte.
pub fn ask(host: &str, question: &Question, leave: Leave, most_silence: Duration) -> Exchange {
    let begin = Instant::now();
    let mut exchange =
        Exchange { bytes: Vec::new(), arrivals: Vec::new(), took: Duration::ZERO, ending: Ending::Closed };
    exchange.ending = match connect(host) {
        Ok(mut stream) => {
            // A server that refuses a request may close the connection before all of it was sent: its answer still
            // counts.
            let sent = send(&mut stream, host, question, || wants_to_go(leave, begin, &[]));
            let ending = listen(stream, begin, leave, most_silence, &mut exchange);
            match sent {
                Err(error) if exchange.bytes.is_empty() => Ending::Broken(error.to_string()),
                _ => ending,
            }
        }
        Err(error) => Ending::Broken(error.to_string()),
    };
    exchange.took = begin.elapsed();
    exchange
}

fn connect(host: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(LONGEST_WRITE))?;
    Ok(stream)
}

/// Sends head and body; calls `wants_to_go` before each part of a paced body.
fn send(
    stream: &mut TcpStream,
    host: &str,
    question: &Question,
    wants_to_go: impl Fn() -> bool,
) -> std::io::Result<()> {
    stream.write_all(head_of(host, question).as_bytes())?;
    let Some(Pacing { bytes, pause }) = question.pacing else {
        return stream.write_all(question.body.as_bytes());
    };
    for part in question.body.as_bytes().chunks(bytes.max(1)) {
        if wants_to_go() {
            break;
        }
        stream.write_all(part)?;
        std::thread::sleep(pause);
    }
    Ok(())
}

fn head_of(host: &str, question: &Question) -> String {
    let Question { method, path, key, conversation, headers, body, .. } = question;
    let header = |name: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |value| format!("{name}{value}\r\n"))
    };
    let key = header("Authorization: Bearer ", key);
    let conversation = header("X-Conversation-Id: ", conversation);
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{key}{conversation}{more}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
}

fn listen(
    mut stream: TcpStream,
    begin: Instant,
    leave: Leave,
    most_silence: Duration,
    to: &mut Exchange,
) -> Ending {
    let mut buffer = [0; 16 * 1024];
    let mut last = begin;
    loop {
        if wants_to_go(leave, begin, &to.bytes) {
            return Ending::Left;
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ending::Closed,
            Ok(count) => {
                to.bytes.extend_from_slice(&buffer[..count]);
                to.arrivals.push((begin.elapsed(), to.bytes.len()));
                last = Instant::now();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if last.elapsed() > most_silence {
                    return Ending::Silent;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Ending::Broken(error.to_string()),
        }
    }
}

fn wants_to_go(leave: Leave, begin: Instant, bytes: &[u8]) -> bool {
    match leave {
        Leave::Never => false,
        Leave::AfterTime(time) => begin.elapsed() >= time,
        Leave::WhenAnswered(time) => begin.elapsed() >= time || is_complete(bytes),
        Leave::AfterEvents(0) => !bytes.is_empty(),
        Leave::AfterEvents(count) => bytes.windows(6).filter(|part| part == b"\ndata:").count() >= count,
    }
}

/// Whether an answer states its length and is complete.
fn is_complete(bytes: &[u8]) -> bool {
    /// Maximum length of a head.
    const HEAD: usize = 16 * 1024;
    let beginning = &bytes[..bytes.len().min(HEAD)];
    let Some(end) = beginning.windows(4).position(|part| part == b"\r\n\r\n") else { return false };
    let head = espalier_series::lossy(&beginning[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| bytes.len() - end - 4 >= length)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    /// Serves the first connection with `answer` after it has read a request that ends with `end`, and returns what
    /// it read. Closing with unread data would reset the connection.
    fn exchange_with(question: &Question, leave: Leave, end: &str, answer: &str) -> (Exchange, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let host = listener.local_addr().unwrap().to_string();
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
            (ask(&host, question, leave, LONG), server.join().unwrap())
        })
    }

    #[test]
    fn more_headers_are_sent_before_the_body() {
        let headers = vec![("X-One".to_string(), "1".to_string()), ("X-Two".to_string(), "2".to_string())];
        let question =
            Question { method: "POST", path: "/a".into(), headers, body: "{}".into(), ..Question::default() };
        let (exchange, sent) = exchange_with(&question, Leave::Never, "{}", "HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!((exchange.ending, exchange.bytes.len()), (Ending::Closed, 19));
        assert!(sent.contains("X-One: 1\r\nX-Two: 2\r\n") && sent.ends_with("\r\n\r\n{}"), "{sent}");
    }

    #[test]
    fn an_answer_is_complete_when_it_has_its_length() {
        assert!(is_complete(b"HTTP/1.1 400 X\r\nContent-Length: 2\r\n\r\n{}"));
        assert!(!is_complete(b"HTTP/1.1 400 X\r\nContent-Length: 3\r\n\r\n{}"));
        assert!(!is_complete(b"HTTP/1.1 200 OK\r\n\r\n{}") && !is_complete(b"HTTP/1.1 200 OK\r\n"));
    }

    #[test]
    fn a_paced_body_ends_when_its_client_goes_away() {
        let pacing = Some(Pacing { bytes: 1, pause: Duration::from_millis(20) });
        let body = "x".repeat(10_000);
        let question = Question { method: "POST", path: "/a".into(), body, pacing, ..Question::default() };
        let leave = Leave::AfterTime(Duration::from_millis(200));
        let (exchange, sent) = exchange_with(&question, leave, "an end that never comes", "");
        assert_eq!(exchange.ending, Ending::Left);
        assert!(sent.contains("Content-Length: 10000\r\n\r\nx") && sent.len() < 1000, "{}", sent.len());
    }
}
