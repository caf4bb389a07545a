//! A `llama-server` on the loopback: started, awaited, asked, and killed when dropped.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Client, Held, Volley};
use super::port::ReservedPort;
use crate::error::{Error, Kind, Result};
use crate::http::{Disconnect, Ending, Request, Response};
use crate::sys::machine::process::{Finished, Run, Started, ending};
use crate::sys::machine::threads::result_of;
use crate::sys::machine::{context_switches, disk, memory, process, processor_time};

/// A running server, on a port that is reserved for it from before it starts until this value is dropped: after it
/// has ended, no other program can answer in its place.
pub struct Server {
    started: Started,
    client: Client,
    log: PathBuf,
    _port: ReservedPort,
}

impl Server {
    /// Starts `run` on a port of the loopback, with its output redirected to `log`, and waits until it is ready. The
    /// server does not read the user's `config.ini`.
    pub fn start(run: Run, log: &Path) -> Result<Server> {
        let port = ReservedPort::new()?;
        let run =
            without_user_config(run).args(["--host", "127.0.0.1", "--port"]).arg(port.number().to_string());
        let started = run.start_logged(log)?;
        let client = Client::on_port(port.number());
        let server = Server { started, client, log: log.to_path_buf(), _port: port };
        server.wait_until_ready().map_err(|error| error.detail(last_words(log)))?;
        Ok(server)
    }

    /// Returns its address: `http://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        self.client.base()
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

    /// Asks for `path`. If a server on this machine does not answer, it has failed: the network cannot be the cause. A
    /// server that has exited gets no request: a listener on its port would be another program.
    fn ask<T>(&self, path: &str, ask: impl FnOnce(Client) -> Result<T>) -> Result<T> {
        let answer = match self.started.ended() {
            Some(status) => Err(Error::no(format!("{path}: the server has ended: {}", ending(status)))),
            None => ask(self.client),
        };
        answer.map_err(|error| Error { kind: Kind::No, ..error }.detail(last_words(&self.log)))
    }

    /// Sends a request and waits at most `limit` for the whole response.
    pub fn request(&self, request: &Request, limit: Duration) -> Result<Response> {
        self.ask(&request.path, |client| client.request(request, limit))
    }

    /// As [`Server::request`]: returns the status code and the JSON body (null if it is not JSON).
    pub fn json(&self, request: &Request, limit: Duration) -> Result<(u16, Value)> {
        self.request(request, limit).map(|response| response.status_and_json())
    }

    /// GET `path`: returns the status code and the JSON body (null if it is not JSON).
    pub fn get(&self, path: &str) -> Result<(u16, Value)> {
        self.json(&Request::get(path), ANSWER_LIMIT)
    }

    /// POST `body` to `path`: returns the status code and the JSON body (null if it is not JSON).
    pub fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.json(&Request::post(path, body), ANSWER_LIMIT)
    }

    /// As [`Server::post`], with an API key.
    pub fn post_as(&self, key: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        self.json(&Request::post(path, body).with_key(Some(key)), ANSWER_LIMIT)
    }

    /// Sends a request for a stream and passes each event to `look` as it arrives, until `look` stops or the response
    /// ends. Returns the status code and, if there was no stream, the JSON body.
    pub fn follow(
        &self,
        request: &Request,
        limit: Duration,
        look: impl FnMut(&Value) -> ControlFlow<()>,
    ) -> Result<(u16, Value)> {
        self.ask(&request.path, |client| client.follow(request, limit, look))
    }

    /// Sends a request and records the response until the client disconnects; `most_silence` is the longest allowed
    /// time without a byte.
    pub fn send(&self, request: &Request, disconnect: Disconnect, most_silence: Duration) -> Response {
        match self.started.ended() {
            Some(status) => {
                Response::none(Ending::Broken(format!("the server has ended: {}", ending(status))))
            }
            None => self.client.send(request, disconnect, most_silence),
        }
    }

    /// POSTs `body` to `path` and disconnects as soon as the response begins.
    pub fn post_and_hang_up(&self, path: &str, body: &Value) -> Result<()> {
        match self.send(&Request::post(path, body), Disconnect::AfterEvents(0), VOLLEY_LIMIT).ending {
            Ending::Broken(why) => Err(Error::no(format!("{path}: {why}")).detail(last_words(&self.log))),
            _ => Ok(()),
        }
    }

    /// POSTs `body` to `path` and disconnects after `patience`, whatever has arrived by then.
    pub fn post_and_leave(&self, path: &str, body: &Value, patience: Duration) -> Result<()> {
        let _held = self.post_and_hold(path, body)?;
        std::thread::sleep(patience);
        Ok(())
    }

    /// POSTs `body` to `path` and keeps the connection open, reading nothing, until the result is dropped.
    pub fn post_and_hold(&self, path: &str, body: &Value) -> Result<Held> {
        self.ask(path, |client| client.hold(&Request::post(path, body)))
    }

    /// Describes how it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        self.started.ended().map(ending)
    }

    /// Returns the server's output so far.
    pub fn log_text(&self) -> Result<String> {
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

    /// Returns how often its present threads have blocked; `None` where the system does not report it.
    pub fn context_switches(&self) -> Option<u64> {
        context_switches::voluntary(self.started.id())
    }

    /// Kills it at once.
    pub fn kill(&self) {
        self.started.kill();
    }

    /// Asks it to end (SIGTERM) and waits at most `limit`. Returns the exit code and the time that it took; `None` if it
    /// still runs.
    ///
    /// # Errors
    ///
    /// A signal ended it: it crashed.
    pub fn shut_down(&self, limit: Duration) -> Result<Option<(i32, Duration)>> {
        let begin = Instant::now();
        self.started.terminate();
        loop {
            if let Some(status) = self.started.ended() {
                let code = status.code().ok_or_else(|| {
                    let what = format!("the server did not end by itself: {}", ending(status));
                    Error::no(what).detail(last_words(&self.log))
                })?;
                return Ok(Some((code, begin.elapsed())));
            }
            if begin.elapsed() > limit {
                return Ok(None);
            }
            std::thread::sleep(FIRST_PAUSE);
        }
    }

    /// POSTs all `bodies` to `path` at once.
    pub fn post_at_once(&self, path: &str, bodies: &[Value]) -> Result<Volley> {
        self.post_at_once_within(path, bodies, VOLLEY_LIMIT)
    }

    /// POSTs all `bodies` to `path` at once and waits at most `limit`.
    pub fn post_at_once_within(&self, path: &str, bodies: &[Value], limit: Duration) -> Result<Volley> {
        let requests: Vec<Request> = bodies.iter().map(|body| Request::post(path, body)).collect();
        self.ask(path, |client| client.at_once(&requests, limit))
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

/// A tiny model answers at once; this limit is for a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// It takes seconds on an idle machine; this limit is for a busy or slow one.
const VOLLEY_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Keeps upstream's programs from reading the user's `llama.cpp/config.ini`: its options would change the results. A
/// check that sets the folder itself keeps it. The same goes for that of the whole system on Windows; on Unix it is
/// still read, since neither a variable nor an option changes its path, `/etc/llama.cpp/config.ini`.
#[must_use]
pub fn without_user_config(run: Run) -> Run {
    CONFIG_FOLDERS.into_iter().fold(run, |run, name| run.env_unless_set(name, NO_FOLDER))
}

/// Variables with the folder of the user's configuration, on Unix and on Windows, and of the system's on Windows.
const CONFIG_FOLDERS: [&str; 3] = ["XDG_CONFIG_HOME", "APPDATA", "PROGRAMDATA"];

/// A path in which no file can be.
const NO_FOLDER: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Returns the last lines of a server's log.
pub fn last_words(log: &Path) -> String {
    let text = disk::read_text(log).unwrap_or_default();
    let last: Vec<&str> = text.lines().rev().take(5).collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Returns the output of `program --help`.
pub fn help_of(program: &Path) -> Result<String> {
    run_with_flag(program, "--help").map(|finished| espalier_series::lossy(&finished.stdout).into_owned())
}

/// Returns the output of `program --version`, both streams.
pub fn version_of(program: &Path) -> Result<String> {
    let finished = run_with_flag(program, "--version")?;
    Ok(format!("{}{}", espalier_series::lossy(&finished.stdout), finished.stderr))
}

fn run_with_flag(program: &Path, flag: &str) -> Result<Finished> {
    let run = without_user_config(Run::new(program).arg(flag));
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
        let command = format!(
            "echo \"config: $XDG_CONFIG_HOME, $APPDATA, $PROGRAMDATA.\"; \
             {PORT}=$4 exec '{}' {serve} --exact --ignored --nocapture",
            program.display()
        );
        Run::new("sh").args(["-c", &command, "sh"])
    }

    #[test]
    fn a_server_reads_no_config_but_that_of_its_check() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        for (run, config) in
            [(fake(), NO_FOLDER), (fake().env("XDG_CONFIG_HOME", "/of/a/check"), "/of/a/check")]
        {
            let server = Server::start(run, &log).unwrap();
            let text = server.log_text().unwrap();
            assert!(text.contains(&format!("config: {config}, {NO_FOLDER}, {NO_FOLDER}.")), "{text}");
        }
    }

    #[test]
    fn a_server_is_asked_to_end_and_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fake = |trap: &str| {
            let program = std::env::current_exe().unwrap();
            let serve = concat!(module_path!(), "::serve").split_once("::").unwrap().1;
            let begin =
                format!("{PORT}=$4 '{}' {serve} --exact --ignored --nocapture & child=$!", program.display());
            let command = format!("{trap}; {begin}; wait $child");
            Server::start(Run::new("sh").args(["-c", &command, "sh"]), &folder.path().join("log")).unwrap()
        };
        let ends = fake("trap 'kill $child; exit 3' TERM");
        assert_eq!(ends.shut_down(Duration::from_secs(20)).unwrap().map(|(code, _)| code), Some(3));
        let stays = fake("trap '' TERM");
        assert_eq!(stays.shut_down(Duration::from_millis(50)).unwrap(), None);
        assert_eq!(stays.get("/end").unwrap().0, 200);
    }

    #[test]
    fn another_program_on_the_port_is_not_asked() {
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
        let response = server.send(&Request::get("/props"), Disconnect::Never, Duration::from_secs(20));
        assert_eq!(response.ending, Ending::Broken("the server has ended: exit code 7".into()));
    }
}
