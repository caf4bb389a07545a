//! A front with the mock, and clients that speak HTTP/1.1 byte by byte.

use std::ffi::c_void;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_front::abi::{ANTHROPIC, DISPATCH, HEALTH, METRICS, MONITOR, RawOptions, Text};
use espalier_front::ffi::{
    espalier_front_close, espalier_front_drain, espalier_front_listen, espalier_front_open,
    espalier_front_route, espalier_front_stop,
};
use espalier_front::server::Front;

use crate::core::{Mock, Script, TABLE};

/// Options of a test.
#[derive(Clone, Debug)]
pub struct Options {
    pub hosts: Vec<String>,
    pub keys: Vec<&'static str>,
    pub key_file: String,
    pub counts_tokens: bool,
    pub access_log: String,
    pub certificate: String,
    pub private_key: String,
    pub client_ca: String,
    pub prefix: &'static str,
    pub cors_origins: &'static str,
    pub port: u16,
    pub max_body: u64,
    pub header_ms: u32,
    pub body_ms: u32,
    pub write_ms: u32,
    pub max_calls: u32,
    pub max_connections: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            hosts: vec!["127.0.0.1".to_string()],
            keys: Vec::new(),
            key_file: String::new(),
            counts_tokens: true,
            access_log: String::new(),
            certificate: String::new(),
            private_key: String::new(),
            client_ca: String::new(),
            prefix: "",
            cors_origins: "*",
            port: 0,
            max_body: 1 << 20,
            header_ms: 10_000,
            body_ms: 10_000,
            write_ms: 10_000,
            max_calls: 300,
            max_connections: 1000,
        }
    }
}

/// A file, removed at the end of its test.
#[derive(Debug)]
pub struct File(String);

impl File {
    pub fn new(test: &str, text: &str) -> File {
        let name = format!("espalier-front-{test}-{}", std::process::id());
        let file = File(std::env::temp_dir().join(name).to_str().unwrap().to_string());
        file.write(text);
        file
    }

    pub fn path(&self) -> &str {
        &self.0
    }

    pub fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    pub fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const ROUTES: [(&str, &str, u32, Script); 15] = [
    ("GET", "/health", HEALTH, Script::Failing),
    ("GET", "/metrics", MONITOR, Script::Echo),
    ("GET", "/totals", MONITOR | METRICS, Script::Totals),
    ("GET", "/echo", 0, Script::Echo),
    ("POST", "/echo", 0, Script::Echo),
    ("POST", "/predict", DISPATCH, Script::Echo),
    ("POST", "/slots/:id_slot", 0, Script::Echo),
    ("POST", "/v1/messages", ANTHROPIC, Script::Echo),
    ("POST", "/hold", 0, Script::Hold),
    ("POST", "/late", 0, Script::Late),
    ("POST", "/stream", 0, Script::Stream),
    ("POST", "/quiet", 0, Script::Quiet),
    ("POST", "/blocking", 0, Script::Blocking),
    ("GET", "/endless", 0, Script::Endless),
    ("GET", "/failing", 0, Script::Failing),
];

/// A front, closed at the end of its test.
#[derive(Debug)]
pub struct Server {
    pub mock: Arc<Mock>,
    pub port: u16,
    front: *mut Front,
}

// SAFETY: the functions that tests call from other threads are those that the header allows there.
unsafe impl Sync for Server {}
// SAFETY: a front belongs to no thread.
unsafe impl Send for Server {}

impl Server {
    pub fn new() -> Server {
        Server::with(|_| {})
    }

    pub fn with(change: impl Fn(&mut Options)) -> Server {
        let mut options = Options::default();
        change(&mut options);
        Server::open(&options).unwrap_or_else(|log| panic!("{log}"))
    }

    /// Opens a front with all routes; an error is what it logged.
    pub fn open(options: &Options) -> Result<Server, String> {
        let mock = Mock::new();
        let texts =
            |texts: &[&str]| texts.iter().map(|text| Text::of(text.as_bytes())).collect::<Vec<Text>>();
        let hosts: Vec<&str> = options.hosts.iter().map(String::as_str).collect();
        let (hosts, keys) = (texts(&hosts), texts(&options.keys));
        let raw = RawOptions {
            hosts: hosts.as_ptr(),
            n_hosts: hosts.len(),
            keys: keys.as_ptr(),
            n_keys: keys.len(),
            key_file: Text::of(options.key_file.as_bytes()),
            access_log: Text::of(options.access_log.as_bytes()),
            certificate: Text::of(options.certificate.as_bytes()),
            private_key: Text::of(options.private_key.as_bytes()),
            client_ca: Text::of(options.client_ca.as_bytes()),
            prefix: Text::of(options.prefix.as_bytes()),
            cors_origins: Text::of(options.cors_origins.as_bytes()),
            cors_methods: Text::of(b"GET, POST"),
            cors_headers: Text::of(b"*"),
            max_body: options.max_body,
            cors_credentials: 1,
            port: u32::from(options.port),
            reuse_port: 0,
            counts_tokens: u32::from(options.counts_tokens),
            header_ms: options.header_ms,
            body_ms: options.body_ms,
            write_ms: options.write_ms,
            max_calls: options.max_calls,
            max_connections: options.max_connections,
        };
        let core = Arc::as_ptr(&mock).cast_mut().cast::<c_void>();
        // SAFETY: options and table are valid, and the mock outlives the front, which `Server` closes first.
        let front = unsafe { espalier_front_open(&raw const raw, &raw const TABLE, core) };
        if front.is_null() {
            return Err(mock.log());
        }
        for (number, (method, path, flags, script)) in ROUTES.into_iter().enumerate() {
            mock.add(script);
            let (method, path) = (Text::of(method.as_bytes()), Text::of(path.as_bytes()));
            // SAFETY: the front is open, and no other thread uses it yet.
            let route = unsafe { espalier_front_route(front, method, path, flags) };
            assert_eq!(route as usize, number);
        }
        let mut port = 0;
        // SAFETY: as above, and `port` is writable.
        let result = unsafe { espalier_front_listen(front, &raw mut port) };
        let server = Server { mock, port: u16::try_from(port).unwrap(), front };
        if result == 0 { Ok(server) } else { Err(server.mock.log()) }
    }

    /// Adds a route to the front that listens.
    pub fn route_too_late(&self) -> u32 {
        // SAFETY: the front is open, and the result says that it did not change.
        unsafe { espalier_front_route(self.front, Text::of(b"GET"), Text::of(b"/late"), 0) }
    }

    pub fn drain(&self, ms: u32) {
        // SAFETY: the front is open.
        unsafe { espalier_front_drain(self.front, ms) }
    }

    /// As SIGHUP does.
    pub fn reload(&self) {
        // SAFETY: the front is open.
        unsafe { &*self.front }.reload();
    }

    pub fn stop(&self) {
        // SAFETY: the front is open.
        unsafe { espalier_front_stop(self.front) }
    }

    pub fn open_connections(&self) -> usize {
        // SAFETY: the front is open.
        unsafe { &*self.front }.open_connections()
    }

    pub fn live_calls(&self) -> usize {
        // SAFETY: the front is open.
        unsafe { &*self.front }.live_calls()
    }

    pub fn client(&self) -> Client {
        Client::new(self.port)
    }

    /// Sends one request on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut client = self.client();
        client.send(&request(method, path, headers, body));
        client.answer()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing waits for all calls: a test that failed because one is stuck would not end.
        if std::thread::panicking() {
            return;
        }
        // SAFETY: the front is open, and not used afterwards.
        unsafe { espalier_front_close(self.front) }
    }
}

/// The text of a request; `headers` are lines that end in CRLF.
pub fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = if body.is_empty() && method != "POST" {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}{length}\r\n{body}")
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Returns the value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A client.
#[derive(Debug)]
pub struct Client<S = TcpStream> {
    stream: S,
    /// Bytes that were read, but are not part of what was returned.
    rest: Vec<u8>,
}

impl Client {
    pub fn new(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client::over(stream)
    }

    /// Sends the end, but continues to read.
    pub fn half_close(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub fn over(stream: S) -> Client<S> {
        Client { stream, rest: Vec::new() }
    }

    pub fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Sends as far as the server reads.
    pub fn send_if_possible(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// Reads more; returns false at the end.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}, after {:?}", String::from_utf8_lossy(&self.rest)),
        }
    }

    fn take_until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.rest.windows(end.len()).position(|window| window == end) {
                let taken: Vec<u8> = self.rest.drain(..at + end.len()).collect();
                return Some(String::from_utf8_lossy(&taken[..at]).into_owned());
            }
            if !self.read() {
                return None;
            }
        }
    }

    fn take(&mut self, count: usize) -> String {
        while self.rest.len() < count {
            assert!(self.read(), "the connection was closed");
        }
        String::from_utf8_lossy(&self.rest.drain(..count).collect::<Vec<u8>>()).into_owned()
    }

    /// Reads the head of an answer; `None` if the connection is closed before.
    pub fn head(&mut self) -> Option<Answer> {
        let head = self.take_until(b"\r\n\r\n")?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Answer { status, head, body: String::new() })
    }

    /// Reads a chunk of a body; `None` after the last one.
    pub fn chunk(&mut self) -> Option<String> {
        let size = self.take_until(b"\r\n").expect("the connection was closed");
        let size = usize::from_str_radix(&size, 16).unwrap();
        let chunk = self.take(size);
        assert_eq!(self.take(2), "\r\n");
        (size > 0).then_some(chunk)
    }

    /// Reads an answer to a request that is not HEAD.
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.head().expect("the connection was closed");
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                answer.body += &chunk;
            }
        } else if let Some(length) = answer.header("content-length") {
            answer.body = self.take(length.parse().unwrap());
        }
        answer
    }

    /// Reads everything until the connection is closed.
    pub fn until_closed(&mut self) -> String {
        while self.read() {}
        String::from_utf8_lossy(&self.rest.split_off(0)).into_owned()
    }

    /// Takes a few bytes of what has arrived, or will.
    pub fn read_some(&mut self, count: usize) {
        let mut buffer = vec![0; count];
        self.stream.read_exact(&mut buffer).unwrap();
    }
}

/// Runs a test in a process of its own, which ignores SIGHUP until the front handles it, as the server does. Returns
/// whether this is that process.
#[cfg(target_os = "linux")]
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "FRONT_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut alone = std::process::Command::new("nohup");
    let alone = alone.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--test-threads=1"]);
    let output = alone.env(ALONE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    false
}

/// Sends SIGHUP to this process.
#[cfg(target_os = "linux")]
pub fn hang_up() {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-HUP", &std::process::id().to_string()]).status().unwrap().success());
}

/// Returns how long a function took.
pub fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = run();
    (result, begin.elapsed())
}
