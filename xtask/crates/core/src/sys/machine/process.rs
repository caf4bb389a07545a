//! Child processes: every call is logged on request, gets a useful error when it fails, and dies with this process.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

use super::inherited_lock;
use crate::error::{Error, Result};
use crate::next_command::quoted;

/// A program with its arguments, ready to run. Standard input is empty unless a file is named.
#[derive(Debug)]
pub struct Run {
    command: Command,
    program: String,
    /// A folder prepended to PATH.
    programs_of: Option<PathBuf>,
    install_hint: Option<String>,
}

/// Result of a finished program.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

/// Result of a program that had a time limit.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; `None` if it had to be killed.
    pub status: Option<ExitStatus>,
    /// Time limit.
    pub limit: Duration,
    /// Output of both streams, line by line.
    pub output: String,
}

impl Ended {
    /// Describes in words how it ended.
    pub fn how(&self) -> String {
        let late = || format!("still running after {} minutes", self.limit.as_secs() / 60);
        self.status.map_or_else(late, ending)
    }
}

/// An event of a running program, for the watcher of `Run::watch`.
pub enum Seen<'a> {
    /// One line of its standard output or standard error, without the line end.
    Line(&'a str),
    /// No output for `TICK`.
    Tick,
}

/// Decision of a watcher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Keep it running.
    GoOn,
    /// Kill it.
    Kill,
}

impl Run {
    /// Creates a run of `program`: a name on PATH, or a path.
    pub fn new(program: impl AsRef<OsStr>) -> Run {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).env("LC_ALL", "C");
        // The child may run upstream's code, which must not see the user's tokens.
        for name in TOKENS {
            command.env_remove(name);
        }
        die_with_parent(&mut command);
        Run {
            command,
            program: program.to_string_lossy().into_owned(),
            programs_of: None,
            install_hint: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Run {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Run {
        self.command.env(key, value);
        self
    }

    /// Sets an environment variable, unless the caller of this run has set it.
    #[must_use]
    pub fn env_unless_set(mut self, key: &str, value: impl AsRef<OsStr>) -> Run {
        if !self.command.get_envs().any(|(name, set)| name == key && set.is_some()) {
            self.command.env(key, value);
        }
        self
    }

    /// Prepends `folder` to PATH for the child's own children, not for finding the child itself.
    #[must_use]
    pub fn with_programs_of(mut self, folder: &Path) -> Run {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        // A folder whose name cannot be in PATH is skipped.
        if let Ok(path) =
            std::env::join_paths([folder].into_iter().chain(folders.iter().map(PathBuf::as_path)))
            && !folders.iter().any(|known| known == folder)
        {
            self.command.env("PATH", path);
            self.programs_of = Some(folder.to_path_buf());
        }
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn without_env(mut self, key: impl AsRef<OsStr>) -> Run {
        self.command.env_remove(key);
        self
    }

    /// Clears the environment except for the variables in `keep`: for third-party code.
    #[must_use]
    pub fn with_environment_of(mut self, keep: &[&str]) -> Run {
        self.command.env_clear().env("LC_ALL", "C");
        for (name, value) in keep.iter().filter_map(|name| Some((name, std::env::var_os(name)?))) {
            self.command.env(name, value);
        }
        self
    }

    /// Keeps the locks of this run from it: for programs that use the network, since they may leave a helper in the
    /// background that would hold the locks, such as git's credential cache.
    #[must_use]
    pub fn without_locks(mut self) -> Run {
        inherited_lock::keep_from(&mut self.command);
        self
    }

    /// Runs in `folder`.
    #[must_use]
    pub fn current_folder(mut self, folder: &Path) -> Run {
        self.command.current_dir(folder);
        self
    }

    /// Reads its standard input from a file.
    pub fn input(mut self, file: &Path) -> Result<Run> {
        let file = std::fs::File::open(file).map_err(|error| super::disk::explain("read", file, &error))?;
        self.command.stdin(Stdio::from(file));
        Ok(self)
    }

    /// Sets the hint for a program that is not installed.
    #[must_use]
    pub fn install_hint(mut self, hint: impl Into<String>) -> Run {
        self.install_hint = Some(hint.into());
        self
    }

    /// Returns the command line, for plans and messages.
    pub fn words(&self) -> String {
        let words: Vec<String> = std::iter::once(self.command.get_program())
            .chain(self.command.get_args())
            .map(|word| quoted(&word.to_string_lossy()))
            .collect();
        let path = self
            .programs_of
            .iter()
            .map(|folder| format!("PATH={}:$PATH ", quoted(&folder.to_string_lossy())));
        path.collect::<String>() + &words.join(" ")
    }

    /// Runs to completion and captures all output, whatever the exit status.
    pub fn finish(mut self) -> Result<Finished> {
        let output = self.command.output().map_err(|error| self.not_started(&error))?;
        let stderr = espalier_series::lossy(&output.stderr).into_owned();
        Ok(Finished { status: output.status, stdout: output.stdout, stderr })
    }

    /// Runs to completion and returns its stdout; a failure is an error with the program's output.
    pub fn success(self) -> Result<Vec<u8>> {
        let words = self.words();
        let finished = self.finish()?;
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        Err(failed(&words, finished.status, &finished.stderr))
    }

    /// Writes `input` to its stdin and captures at most `limit` bytes of output: if there is more, the program is
    /// killed and an error returned.
    pub fn converse(mut self, input: &[u8], limit: usize) -> Result<Finished> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let (stderr, stdout) = std::thread::scope(|threads| {
            let errors = threads.spawn(|| read_at_most(stderr, limit));
            // It may exit before reading all of it: its exit status tells why.
            threads.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
            let stdout = read_at_most(child.stdout.take(), limit);
            if stdout.len() > limit {
                // Fails if the child has already exited, which is fine.
                let _ = child.kill();
            }
            (errors.join().unwrap_or_default(), stdout)
        });
        let status = child.wait().map_err(|error| self.not_started(&error))?;
        if stdout.len() > limit {
            return Err(Error::environment(format!("`{}` printed more than {limit} bytes", self.program)));
        }
        Ok(Finished { status, stdout, stderr: espalier_series::lossy(&stderr).into_owned() })
    }

    /// Runs to completion while `reader` reads its standard output; an error of `reader` takes precedence over the
    /// exit status.
    ///
    /// # Errors
    ///
    /// The program could not be started, `reader` failed, or the program failed: its output.
    pub fn read_stdout<T>(mut self, reader: impl FnOnce(&mut dyn Read) -> Result<T>) -> Result<T> {
        let words = self.words();
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (read, stderr) = std::thread::scope(|threads| {
            let errors = threads.spawn(|| read_at_most(stderr, WORDS_LIMIT));
            let read = stdout.map(|mut stdout| {
                let read = reader(&mut stdout);
                // The rest is drained: a program whose pipe is closed would fail.
                let _ = io::copy(&mut stdout, &mut io::sink());
                read
            });
            (read, errors.join().unwrap_or_default())
        });
        let status = child.wait().map_err(|error| self.not_started(&error))?;
        match read {
            Some(Ok(_)) if !status.success() => Err(failed(&words, status, &espalier_series::lossy(&stderr))),
            Some(read) => read,
            None => Err(Error::environment(format!("`{words}` has no output"))),
        }
    }

    /// Runs on the terminal: for programs that people watch, such as `cargo test`. All of its output goes to stderr,
    /// so that our standard output holds only the answer.
    pub fn show(mut self) -> Result<ExitStatus> {
        self.command.stdout(io::stderr());
        self.command.status().map_err(|error| self.not_started(&error))
    }

    /// Runs and passes every line, and a tick for every quiet moment, to `watcher`, which may kill the program.
    pub fn watch(mut self, mut watcher: impl FnMut(Seen<'_>) -> Watch) -> Result<ExitStatus> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let lines = read_lines(&mut child);
        loop {
            let verdict = match lines.recv_timeout(TICK) {
                Ok(line) => watcher(Seen::Line(&line)),
                Err(mpsc::RecvTimeoutError::Timeout) => watcher(Seen::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            };
            if verdict == Watch::Kill {
                // Fails if the child has already exited, which is fine.
                let _ = child.kill();
                break;
            }
        }
        child.wait().map_err(|error| self.not_started(&error))
    }

    /// Runs to completion, or kills it after `limit`.
    pub fn finish_within(self, limit: Duration) -> Result<Ended> {
        let begin = Instant::now();
        let (mut output, mut killed) = (String::new(), false);
        let status = self.watch(|seen| {
            if let Seen::Line(line) = seen {
                output.push_str(line);
                output.push('\n');
            }
            killed = begin.elapsed() > limit;
            if killed { Watch::Kill } else { Watch::GoOn }
        })?;
        Ok(Ended { status: (!killed).then_some(status), limit, output })
    }

    /// Starts it with its output redirected to `log`; it is killed when the value is dropped.
    pub fn start_logged(mut self, log: &Path) -> Result<Started> {
        let LogFile { file, .. } = LogFile::create(log)?;
        let copy = file.try_clone().map_err(|error| super::disk::explain("write", log, &error))?;
        self.command.stdout(file).stderr(copy);
        Ok(Started { child: Mutex::new(self.spawn()?) })
    }

    /// Replaces this process with the program where the system supports that, otherwise runs it; returns its exit
    /// code.
    pub fn replace(mut self) -> Result<u8> {
        self.command.stdin(Stdio::inherit());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            outlive_parent(&mut self.command);
            let error = self.command.exec();
            Err(self.not_started(&error))
        }
        #[cfg(not(unix))]
        {
            let status = self.command.status().map_err(|error| self.not_started(&error))?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
    }

    fn spawn(&mut self) -> Result<Child> {
        self.command.spawn().map_err(|error| self.not_started(&error))
    }

    fn not_started(&self, io_error: &io::Error) -> Error {
        let reason = match io_error.kind() {
            io::ErrorKind::NotFound => "no such program on PATH".to_string(),
            _ => super::disk::reason(io_error),
        };
        let error = Error::environment(format!("could not run `{}`", self.program)).detail(reason);
        match &self.install_hint {
            Some(hint) => error.hint(hint.clone()),
            None => error,
        }
    }
}

/// Variables in which people and GitHub's runners keep a token.
pub const TOKENS: [&str; 2] = ["GITHUB_TOKEN", "GH_TOKEN"];

/// Reads up to `limit` plus one byte: the extra byte shows that there was more.
fn read_at_most(stream: Option<impl Read>, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    if let Some(stream) = stream {
        // After a read error, the bytes read so far are used.
        let _ = stream.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// Maximum number of bytes of a program's standard error that are kept.
const WORDS_LIMIT: usize = 1 << 20;

/// Interval of ticks while the program prints nothing.
const TICK: Duration = Duration::from_millis(100);

/// A program in the background; it is killed when dropped.
pub struct Started {
    child: Mutex<Child>,
}

impl Started {
    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Returns the exit status, if it has exited.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Kills it at once; it remains a zombie until it is waited for.
    pub fn kill(&self) {
        // Fails if the child has already exited, which is fine.
        let _ = self.child().kill();
    }

    /// Asks it to end, with SIGTERM; kills it where the system has no signals. Does nothing if it has already exited.
    pub fn terminate(&self) {
        let mut child = self.child();
        // The id of a child that was waited for may belong to another process. One that exits meanwhile is fine.
        if matches!(child.try_wait(), Ok(None)) {
            #[cfg(unix)]
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            #[cfg(not(unix))]
            let _ = child.kill();
        }
    }

    /// Several threads may query the same server. A panic in one of them cannot leave the child in an inconsistent
    /// state.
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Either call fails only if the child has already exited, which is fine.
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Returns the error for a program that failed: its command line and the end of its output.
pub fn failed(words: &str, status: ExitStatus, output: &str) -> Error {
    failed_so(words, &ending(status), output)
}

/// As [`failed`], for an ending that is already described in words.
pub fn failed_so(words: &str, how: &str, output: &str) -> Error {
    Error::environment(format!("`{words}` failed: {how}")).detail(last_words(output))
}

/// Returns the end of a program's output.
pub fn last_words(output: &str) -> String {
    let tail: Vec<&str> = output.lines().rev().filter(|line| !line.trim().is_empty()).take(12).collect();
    tail.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Describes in words how a program ended.
pub fn ending(status: ExitStatus) -> String {
    /// The signal with which the system and people kill programs.
    const KILL: i32 = 9;
    match (status.code(), signal(status)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) if signal != KILL => format!("signal {signal}"),
        (None, _) => "it was killed".to_string(),
    }
}

/// Returns the signal that killed it; `None` where the system has no signals.
#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

fn read_lines(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || forward_lines(stream, &sender));
    }
    receiver
}

/// Forwards lines; splits at carriage returns too, which progress displays of other programs print.
fn forward_lines(stream: Box<dyn Read + Send>, sender: &mpsc::Sender<String>) {
    for chunk in BufReader::new(stream).split(b'\n') {
        let Ok(chunk) = chunk else { return };
        for line in chunk.split(|byte| *byte == b'\r').filter(|line| !line.is_empty()) {
            if sender.send(espalier_series::lossy(line).into_owned()).is_err() {
                return;
            }
        }
    }
}

/// Otherwise a compiler driver could outlive a killed run and write while the next run works.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let set = || {
        let signal = Some(Signal::KILL);
        rustix::process::set_parent_process_death_signal(signal).map_err(io::Error::from)
    };
    // SAFETY: the closure makes one prctl call, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(set) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

/// For a program that replaces this one, whose parent is not ours to follow: a shell can end before it.
#[cfg(target_os = "linux")]
fn outlive_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let set = || rustix::process::set_parent_process_death_signal(None).map_err(io::Error::from);
    // SAFETY: the closure makes one prctl call, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(set) };
}

#[cfg(all(unix, not(target_os = "linux")))]
fn outlive_parent(_command: &mut Command) {}

/// Returns a nested cargo: variables that the outer cargo set for us, which would change its fingerprints, are
/// removed.
pub fn cargo(target: &Path) -> Run {
    cargo_here().env("CARGO_TARGET_DIR", target)
}

/// Returns the cargo that runs this program, with its default target directory.
pub fn cargo_here() -> Run {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut run = Run::new(cargo);
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        let is_ours = name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST")
            || ["CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"].contains(&&*name);
        if is_ours {
            run = run.without_env(&key);
        }
    }
    run
}

/// The log of a step, written line by line while it runs.
pub struct LogFile {
    path: PathBuf,
    file: std::fs::File,
}

impl LogFile {
    /// Creates an empty log at `path`.
    pub fn create(path: &Path) -> Result<LogFile> {
        if let Some(folder) = path.parent() {
            super::disk::create_folder(folder)?;
        }
        let file =
            std::fs::File::create(path).map_err(|error| super::disk::explain("write", path, &error))?;
        Ok(LogFile { path: path.to_path_buf(), file })
    }

    /// Appends one line.
    pub fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.file, "{line}").map_err(|error| super::disk::explain("write", &self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_explained_with_its_hint() {
        let error = Run::new("no-such-program-here").install_hint("install it").finish().unwrap_err();
        assert_eq!(error.kind, crate::error::Kind::Environment);
        assert!(error.to_string().contains("could not run `no-such-program-here`"));
        assert!(error.to_string().contains("next: install it"));
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_is_named_unless_it_kills() {
        let ended = |script: &str| ending(Run::new("sh").args(["-c", script]).finish().unwrap().status);
        let endings = ["exit 3", "kill -SEGV $$", "kill -KILL $$"].map(ended);
        assert_eq!(endings, ["exit code 3", "signal 11", "it was killed"]);
    }

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        assert_eq!(Run::new("a").args(["b c", "d'e", "-f=1"]).words(), r"a 'b c' 'd'\''e' -f=1");
    }

    #[cfg(unix)]
    #[test]
    fn child_processes_find_our_programs() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join("espalier-test-ninja");
        std::fs::write(&ours, "#!/bin/sh\necho ours").unwrap();
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o755)).unwrap();
        let run = || Run::new("sh").args(["-c", "espalier-test-ninja"]);
        assert!(run().success().is_err());
        let with_ours = run().with_programs_of(folder.path());
        let path = format!("PATH={}:$PATH sh -c espalier-test-ninja", folder.path().display());
        assert_eq!(with_ours.words(), path);
        assert_eq!(with_ours.success().unwrap(), b"ours\n");
        assert_eq!(run().with_programs_of(Path::new("/bin")).words(), run().words(), "it is there already");
    }
}
