//! SIGKILL at a chosen moment.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable that multiplies the number of kills of every test, each of which has as many as it needs to
/// detect most faults in a normal test run.
const FACTOR: &str = "ESPALIER_KILL_FACTOR";

/// Returns the number of kills of a test: `usual`, times the value of `ESPALIER_KILL_FACTOR`.
pub fn points(usual: usize) -> usize {
    usual * super::count(FACTOR, 1)
}

/// The results of the kills of one test, printed at the end for runs with `--nocapture`.
pub struct Kills {
    name: &'static str,
    while_running: usize,
    too_late: usize,
    found: BTreeMap<&'static str, usize>,
}

impl Kills {
    /// Creates empty results.
    pub fn of(name: &'static str) -> Kills {
        Kills { name, while_running: 0, too_late: 0, found: BTreeMap::new() }
    }

    /// Runs to the end, or until `limit`, then sends SIGKILL. Returns the duration of the run.
    pub fn run(&mut self, command: Command, limit: Duration) -> Duration {
        self.run_until(command, limit, || false)
    }

    /// Does the same, but kills as soon as `is_time` returns true.
    pub fn run_until(&mut self, command: Command, limit: Duration, is_time: impl Fn() -> bool) -> Duration {
        let (ran, was_killed) = run_and_kill_when(command, limit, is_time);
        let count = if was_killed { &mut self.while_running } else { &mut self.too_late };
        *count += 1;
        ran
    }

    /// Counts the state that a kill left.
    pub fn left(&mut self, what: &'static str) {
        *self.found.entry(what).or_default() += 1;
    }
}

impl Drop for Kills {
    fn drop(&mut self) {
        let Kills { name, while_running, too_late, found } = self;
        let verdict = if std::thread::panicking() { "the last one FAILED" } else { "all right" };
        eprintln!("{name}: {while_running} killed, {too_late} had ended before; {found:?}; {verdict}");
    }
}

/// Returns shell commands for a fake program that is slow while the file `slow` exists, and then creates
/// `$BESIDE/waits`. It polls: a killed run leaves it behind with the run lock, which it releases as soon as the file is
/// removed, or after a minute.
pub fn wait_while(slow: &str) -> String {
    format!(
        "[ -e \"{slow}\" ] && touch \"$BESIDE/waits\"\nturns=0\n\
         while [ -e \"{slow}\" ] && [ $turns -lt 600 ]; do sleep 0.1; turns=$((turns + 1)); done\n"
    )
}

/// Runs to the end, or until `limit`, then sends SIGKILL. Returns the duration of the run.
pub fn run_and_kill(command: Command, limit: Duration) -> Duration {
    run_and_kill_when(command, limit, || false).0
}

/// Does the same, but kills as soon as `is_time` returns true. Returns also whether the program was still running.
pub fn run_and_kill_when(
    mut command: Command,
    limit: Duration,
    is_time: impl Fn() -> bool,
) -> (Duration, bool) {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while begin.elapsed() < limit && !is_time() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(300).min(limit));
    }
    let ran = begin.elapsed();
    // It may have exited just before.
    let _ = child.kill();
    let status = child.wait().unwrap();
    (ran, status.signal() == Some(9))
}
