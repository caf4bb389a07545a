//! One HTTP exchange over a connection of its own, byte by byte with the times at which they came: for clients that
//! go away at any moment, and for who wants to see what a library would hide.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path, from its slash.
    pub path: String,
    /// An API key.
    pub key: Option<String>,
    /// `X-Conversation-Id`.
    pub conversation: Option<String>,
    /// The body; may be empty.
    pub body: String,
}

/// When the client goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// When the server closes the connection.
    Never,
    /// After this time, whatever has come.
    AfterTime(Duration),
    /// After so many events of a stream; 0: with the first byte.
    AfterEvents(usize),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The server closed the connection.
    Closed,
    /// The client went away as it wanted to.
    Left,
    /// Nothing came for longer than was allowed.
    Silent,
    /// The system says that the connection broke.
    Broken(String),
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Everything, with the head of the answer.
    pub bytes: Vec<u8>,
    /// When each part came, since the question was sent, and how many bytes there were then.
    pub arrivals: Vec<(Duration, usize)>,
    /// From sending to the end.
    pub took: Duration,
    /// How it ended.
    pub ending: Ending,
}

impl Exchange {
    /// Nothing was sent, and this is why.
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

/// How often a client looks whether it wants to go.
const TICK: Duration = Duration::from_millis(10);

/// Asks `host:port`; `most_silence` is the longest time without a byte.
pub fn ask(host: &str, question: &Question, leave: Leave, most_silence: Duration) -> Exchange {
    let begin = Instant::now();
    let mut exchange =
        Exchange { bytes: Vec::new(), arrivals: Vec::new(), took: Duration::ZERO, ending: Ending::Closed };
    exchange.ending = match send(host, question) {
        Ok(stream) => listen(stream, begin, leave, most_silence, &mut exchange),
        Err(error) => Ending::Broken(error.to_string()),
    };
    exchange.took = begin.elapsed();
    exchange
}

fn send(host: &str, question: &Question) -> std::io::Result<TcpStream> {
    let Question { method, path, key, conversation, body } = question;
    let header = |name: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |value| format!("{name}{value}\r\n"))
    };
    let key = header("Authorization: Bearer ", key);
    let conversation = header("X-Conversation-Id: ", conversation);
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(TICK))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{key}{conversation}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    Ok(stream)
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
        Leave::AfterEvents(0) => !bytes.is_empty(),
        Leave::AfterEvents(count) => bytes.windows(6).filter(|part| part == b"\ndata:").count() >= count,
    }
}
