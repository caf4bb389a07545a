//! SIGKILL at a chosen moment.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs to the end, or until `limit`, then SIGKILL. Gives how long it ran.
pub fn run_and_kill(command: Command, limit: Duration) -> Duration {
    run_and_kill_when(command, limit, || false)
}

/// The same, or as soon as `is_time` says so.
pub fn run_and_kill_when(mut command: Command, limit: Duration, is_time: impl Fn() -> bool) -> Duration {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while begin.elapsed() < limit && !is_time() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(300).min(limit));
    }
    let ran = begin.elapsed();
    // It may have ended by itself just before.
    let _ = child.kill();
    child.wait().unwrap();
    ran
}
