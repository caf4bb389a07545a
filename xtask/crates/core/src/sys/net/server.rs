//! A `llama-server` on the loopback: started, awaited, asked, and killed when dropped.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::exchange::{self, Exchange, Leave, Question};
use super::loopback::{self, Caller, Held, Volley};
use super::port::ReservedPort;
use crate::error::{Error, Kind, Result};
use crate::sys::machine::process::{Finished, Run, Started, ending};
use crate::sys::machine::threads::result_of;
use crate::sys::machine::{disk, memory, process, processor_time};

/// A running server, on a port that is reserved for it from before it starts until this value is dropped: after it
/// has ended, no other program can answer in its place.
pub struct Server {
    started: Started,
    base: String,
    log: PathBuf,
    _port: ReservedPort,
}

impl Server {
    /// Starts `run` on a port of the loopback, with its output redirected to `log`, and waits until it is ready.
    pub fn start(run: Run, log: &Path) -> Result<Server> {
        let port = ReservedPort::new()?;
        let run = run.args(["--host", "127.0.0.1", "--port"]).arg(port.number().to_string());
        let started = run.start_logged(log)?;
        let base = format!("http://127.0.0.1:{}", port.number());
        let server = Server { started, base, log: log.to_path_buf(), _port: port };
        server.wait_until_ready().map_err(|error| error.detail(last_words(log)))?;
        Ok(server)
    }

    /// Returns its address: `http://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    fn wait_until_ready(&self) -> Result<()> {
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        while begin.elapsed() < READY_LIMIT {
            if let Some(status) = self.started.ended() {
                let how = ending(status);
                return Err(Error::no(format!("the server ended before it was ready: {how}")));
            }
            if matches!(self.get("/health"), Ok((200, _))) {
                return Ok(());
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        Err(Error::no(format!("the server was not ready after {} seconds", READY_LIMIT.as_secs())))
    }

    /// Sends a request with the URL of `path`. If a server on this machine does not answer, it has failed: the
    /// network cannot be the cause. A server that has exited gets no request: a listener on its port would be another
    /// program.
    fn ask<T>(&self, path: &str, ask: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let answer = match self.started.ended() {
            Some(status) => Err(Error::no(format!("{path}: the server has ended: {}", ending(status)))),
            None => ask(&format!("{}{path}", self.base)),
        };
        answer.map_err(|error| Error { kind: Kind::No, ..error }.detail(last_words(&self.log)))
    }

    /// GET `path`: returns the status code and the JSON body (null if it is not JSON).
    pub fn get(&self, path: &str) -> Result<(u16, Value)> {
        self.ask(path, loopback::get)
    }

    /// POST `body` to `path`: returns the status code and the JSON body (null if it is not JSON).
    pub fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.ask(path, |url| loopback::post(url, body))
    }

    /// As [`Server::post`], with an API key.
    pub fn post_as(&self, key: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.ask(path, |url| loopback::post_as(key, url, body))
    }

    /// POSTs `text`, which is JSON in any formatting: returns the status code and the JSON body (null if it is not
    /// JSON).
    pub fn post_text(&self, path: &str, text: &str, caller: Caller<'_>) -> Result<(u16, Value)> {
        self.ask(path, |url| loopback::post_text(url, text, caller))
    }

    /// GET `path`: returns the status code and the body as text.
    pub fn get_text(&self, path: &str, caller: Caller<'_>) -> Result<(u16, String)> {
        self.ask(path, |url| loopback::get_text(url, caller))
    }

    /// POSTs `text` and passes each line of the answer to `look` as it arrives, until `look` stops or the answer
    /// ends. Returns the status code.
    pub fn read_lines(
        &self,
        path: &str,
        body: &Value,
        caller: Caller<'_>,
        look: impl FnMut(&str) -> ControlFlow<()>,
    ) -> Result<u16> {
        self.ask(path, |url| loopback::post_and_read_lines(url, &body.to_string(), caller, look))
    }

    /// POSTs `body` to `path` and disconnects as soon as the answer begins.
    pub fn post_and_hang_up(&self, path: &str, body: &Value) -> Result<()> {
        self.ask(path, |url| loopback::post_and_hang_up(url, body))
    }

    /// POSTs `body` to `path` and disconnects after `patience`, whatever has arrived by then.
    pub fn post_and_leave(&self, path: &str, body: &Value, patience: Duration) -> Result<()> {
        self.ask(path, |url| loopback::post_and_leave(url, body, patience))
    }

    /// POSTs `body` to `path` and keeps the connection open, reading nothing, until the result is dropped.
    pub fn post_and_hold(&self, path: &str, body: &Value) -> Result<Held> {
        self.ask(path, |url| loopback::post_and_hold(url, body))
    }

    /// POSTs `body`, which requests a stream, and passes each event to `look` until it stops; then closes the
    /// connection. Returns the status code and, if there was no stream, the JSON body.
    pub fn follow(
        &self,
        path: &str,
        body: &Value,
        look: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(u16, Value)> {
        self.ask(path, |url| loopback::post_and_follow(url, body, VOLLEY_LIMIT, look))
    }

    /// Sends a request and returns every byte received; `most_silence` is the longest allowed time without one.
    pub fn exchange(&self, question: &Question, leave: Leave, most_silence: Duration) -> Exchange {
        match self.started.ended() {
            Some(status) => Exchange::never(format!("the server has ended: {}", ending(status))),
            None => exchange::ask(self.base.trim_start_matches("http://"), question, leave, most_silence),
        }
    }

    /// Describes how it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        self.started.ended().map(ending)
    }

    /// Returns the server's output so far.
    pub fn said(&self) -> Result<String> {
        Ok(espalier_series::lossy(&disk::read(&self.log)?).into_owned())
    }

    /// Returns its resident memory in bytes; `None` where the system does not report it.
    pub fn resident_bytes(&self) -> Option<u64> {
        memory::resident_bytes(self.started.id())
    }

    /// Returns the maximum of its resident memory in bytes since it started, or since [`Server::reset_peak`].
    pub fn peak_bytes(&self) -> Option<u64> {
        memory::peak_bytes(self.started.id())
    }

    /// Resets that maximum to the current resident memory; returns whether the system did so.
    pub fn reset_peak(&self) -> bool {
        memory::reset_peak(self.started.id())
    }

    /// Returns the processor time of all its threads; `None` where the system does not report it.
    pub fn processor_time(&self) -> Option<Duration> {
        processor_time::of_process(self.started.id())
    }

    /// Kills it at once.
    pub fn kill(&self) {
        self.started.kill();
    }

    /// POSTs all `bodies` to `path` at once.
    pub fn post_at_once(&self, path: &str, bodies: &[Value]) -> Result<Volley> {
        self.ask(path, |url| loopback::post_at_once(url, bodies, VOLLEY_LIMIT))
    }

    /// POSTs all `bodies` to `path` at once and waits at most `limit`.
    pub fn post_at_once_within(&self, path: &str, bodies: &[Value], limit: Duration) -> Result<Volley> {
        self.ask(path, |url| loopback::post_at_once(url, bodies, limit))
    }

    /// As `post_at_once`; calls `look` repeatedly until the last answer has arrived.
    pub fn post_and_look(
        &self,
        path: &str,
        bodies: &[Value],
        mut look: impl FnMut(&Server),
    ) -> Result<Volley> {
        std::thread::scope(|threads| {
            let volley = threads.spawn(|| self.post_at_once(path, bodies));
            while !volley.is_finished() {
                look(self);
            }
            result_of(volley)
        })
    }

    /// Returns an error if it has exited.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.started.ended() {
            None => Ok(()),
            Some(_) => Err(Error::no("the server ended by itself after it had answered")),
        }
    }
}

/// First delay between checks whether a server is ready: shorter than a fake server takes to start; it doubles each
/// time, so that polling does not slow down a server that is loading a model.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Loading a small model takes well under a second on an idle machine.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// It takes seconds on an idle machine; this limit is for a busy or slow one.
const VOLLEY_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Returns the last lines of a server's log.
pub fn last_words(log: &Path) -> String {
    let said = disk::read_text(log).unwrap_or_default();
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Returns the output of `program --help`.
pub fn help_of(program: &Path) -> Result<String> {
    say(program, "--help").map(|finished| espalier_series::lossy(&finished.stdout).into_owned())
}

/// Returns the output of `program --version`, both streams.
pub fn version_of(program: &Path) -> Result<String> {
    let finished = say(program, "--version")?;
    Ok(format!("{}{}", espalier_series::lossy(&finished.stdout), finished.stderr))
}

fn say(program: &Path, flag: &str) -> Result<Finished> {
    let run = Run::new(program).arg(flag);
    let words = run.words();
    let finished = run.finish()?;
    match finished.status.success() {
        true => Ok(finished),
        false => Err(process::failed(&words, finished.status, &finished.stderr)),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const PORT: &str = "FAKE_PORT_OF_SERVER";

    /// Answers every request with `status` until `/end` is requested.
    fn answer_all(listener: &TcpListener, status: u16) {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            // The client may have disconnected.
            let _ = write!(stream, "HTTP/1.1 {status} Some Reason\r\nContent-Length: 2\r\n\r\n{{}}");
            if bytes[..count].starts_with(b"GET /end ") {
                return;
            }
        }
    }

    #[test]
    #[ignore = "the fake server itself, which a test starts"]
    fn serve() {
        let Ok(port) = std::env::var(PORT) else { return };
        answer_all(&TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().unwrap())).unwrap(), 200);
        std::process::exit(7);
    }

    fn fake() -> Run {
        let program = std::env::current_exe().unwrap();
        let serve = concat!(module_path!(), "::serve").split_once("::").unwrap().1;
        let command = format!("{PORT}=$4 exec '{}' {serve} --exact --ignored --nocapture", program.display());
        Run::new("sh").args(["-c", &command, "sh"])
    }

    #[test]
    fn whoever_takes_the_port_of_a_server_that_has_ended_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(fake(), &folder.path().join("log")).unwrap();
        assert_eq!(server.get("/props").unwrap().0, 200);
        server.get("/end").unwrap();
        while server.started.ended().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let port: u16 = server.base().rsplit_once(':').unwrap().1.parse().unwrap();
        let another = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        std::thread::spawn(move || answer_all(&another, 503));
        let error = server.get("/props").unwrap_err().to_string();
        assert!(error.contains("/props: the server has ended: exit code 7"), "{error}");
        let question = Question { method: "GET", path: "/props".into(), ..Question::default() };
        let exchange = server.exchange(&question, Leave::Never, Duration::from_secs(20));
        assert_eq!(exchange.ending, exchange::Ending::Broken("the server has ended: exit code 7".into()));
    }
}
