//! Output while a command works: status lines and progress, never on stdout.
//!
//! Status goes to stderr, data to stdout. Without a terminal a progress bar becomes an occasional line, so that a CI
//! log shows progress and stays short.

use std::io::{self, Write};
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use espalier_series::{visible, visible_json};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::invocation::{Called, Program};

/// Verbosity of a command on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// Status lines and progress.
    Normal,
    /// Warnings and errors only; the result of a command is printed elsewhere.
    Quiet,
}

/// Output for status lines and progress.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    talk: Talk,
}

impl Ui {
    /// Creates an output with the verbosity `talk`.
    pub fn new(talk: Talk) -> Self {
        Ui { talk }
    }

    /// Prints one status line: a right-aligned verb and its object, as cargo does.
    pub fn status(&self, verb: &str, what: impl std::fmt::Display) {
        if self.talk == Talk::Normal {
            say(&format!("{verb:>12} {what}"));
        }
    }

    /// Prints a warning: something the user should know that does not stop the command.
    pub fn warn(&self, what: impl std::fmt::Display) {
        say(&format!("warning: {what}"));
    }

    /// Returns a bar over `total` units, or a spinner if the total is unknown.
    pub fn progress(&self, label: &str, total: Option<u64>, unit: Unit) -> Progress {
        let bar =
            if self.talk == Talk::Quiet { ProgressBar::hidden() } else { BARS.add(new_bar(total, unit)) };
        bar.set_message(visible(label));
        let plain = self.talk == Talk::Normal && bar.is_hidden();
        let (begin, note) = (Instant::now(), String::new());
        Progress { bar, label: label.to_string(), note, total, unit, plain, begin, last_line: begin }
    }
}

/// The bars of all threads, each in a line of its own.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The program and the options that this run was called with; set once, before the first output.
static CALLED: OnceLock<Called> = OnceLock::new();

/// Makes every printed command repeat the program and the options of this run: done here, because all text passes here.
pub fn called_with(called: Called) {
    let _ = CALLED.set(called);
}

/// Returns the program that the user called.
pub fn program() -> Program {
    CALLED.get().map_or_else(Program::default, |called| called.program)
}

/// Returns `hint` as this run prints it: for texts in which hints are not lines of their own.
pub fn hint(hint: &str) -> String {
    CALLED.get().map_or_else(|| hint.to_string(), |called| called.complete_hint(hint))
}

/// Returns the text of a file or of a page on GitHub with this run's program in its hints. They do not repeat the
/// options: readers have other folders.
pub fn named(text: &str) -> String {
    CALLED.get().map_or_else(|| text.to_string(), |called| called.program_only().complete(text))
}

/// As [`named`], for one hint, which need not be a line of its own.
pub fn named_hint(hint: &str) -> String {
    CALLED.get().map_or_else(|| hint.to_string(), |called| called.program_only().complete_hint(hint))
}

fn complete(text: &str) -> String {
    CALLED.get().map_or_else(|| text.to_string(), |called| called.complete(text))
}

/// Prints a line to stderr. Write errors are ignored: the work continues without an audience.
///
/// All text passes here or through [`answer`]: names, subjects and paths come from other people, and could contain
/// escape sequences that a terminal would obey.
pub fn say(text: &str) {
    let line = format!("{}\n", visible(&complete(text)));
    let _ = BARS.suspend(|| io::stderr().write_all(line.as_bytes()));
}

/// The answer of a command on stdout.
#[derive(Clone, Debug)]
pub enum Answer {
    /// For people; an empty one prints nothing.
    Text(String),
    /// For machines.
    Json(serde_json::Value),
}

/// Writes the answer.
///
/// # Errors
///
/// When standard output cannot be written to: it is closed, or the disk is full.
pub fn answer(answer: &Answer) -> io::Result<()> {
    let text = match answer {
        Answer::Text(text) if text.is_empty() => return Ok(()),
        Answer::Text(text) => visible(&complete(text)),
        Answer::Json(json) => {
            let mut json = json.clone();
            CALLED.get().into_iter().for_each(|called| called.complete_json(&mut json));
            visible_json(&json.to_string())
        }
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The unit of a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown as MiB.
    Bytes,
    /// Plain counts.
    Steps,
}

/// A running progress display; removed when dropped.
pub struct Progress {
    bar: ProgressBar,
    label: String,
    note: String,
    total: Option<u64>,
    unit: Unit,
    plain: bool,
    begin: Instant,
    last_line: Instant,
}

/// Without a terminal, the interval between lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(20);

impl Progress {
    /// Moves to `done` units.
    pub fn set(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.plain && self.last_line.elapsed() >= PLAIN_INTERVAL {
            self.last_line = Instant::now();
            say(&format!("{:>12} {}", "...", self.line(done, self.begin.elapsed())));
        }
    }

    /// Changes the total, once it is known.
    pub fn set_total(&mut self, total: u64) {
        self.total = Some(total);
        self.bar.set_length(total);
    }

    /// Shows the current item beside the bar.
    pub fn note(&mut self, note: &str) {
        self.note = note.to_string();
        self.bar.set_message(visible(&format!("{} {note}", self.label)));
    }

    fn line(&self, done: u64, elapsed: Duration) -> String {
        let show = |count: u64| match self.unit {
            Unit::Bytes => format!("{:.1} MiB", count as f64 / 1_048_576.0),
            Unit::Steps => count.to_string(),
        };
        let label = format!("{} {}", self.label, self.note);
        let label = label.trim_end();
        let Some(total) = self.total else { return format!("{label} {}", show(done)) };
        let left = time_left(elapsed, done, total).map(|left| format!(", {} left", about(left)));
        format!("{label} {} of {}{}", show(done), show(total), left.unwrap_or_default())
    }
}

/// Estimates the remaining time by linear extrapolation; `None` while too little is done.
fn time_left(elapsed: Duration, done: u64, total: u64) -> Option<Duration> {
    let part = done as f64 / total.max(1) as f64;
    (0.01..1.0).contains(&part).then(|| elapsed.mul_f64((1.0 - part) / part))
}

/// Formats a duration as an estimate, without spurious precision.
fn about(time: Duration) -> String {
    match time.as_secs() {
        0..90 => format!("about {} s", time.as_secs().max(1)),
        seconds @ 90..5400 => format!("about {} min", (seconds + 30) / 60),
        seconds => format!("about {:.1} h", seconds as f64 / 3600.0),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn new_bar(total: Option<u64>, unit: Unit) -> ProgressBar {
    let template = match (total, unit) {
        (Some(_), Unit::Bytes) => "{bar:30} {bytes:>11}/{total_bytes} {bytes_per_sec:>13} {wide_msg}",
        (Some(_), Unit::Steps) => "{bar:30} {pos:>5}/{len} {elapsed:>4} ({eta} left) {wide_msg}",
        (None, Unit::Bytes) => "{spinner} {bytes:>11} {bytes_per_sec:>13} {wide_msg}",
        (None, Unit::Steps) => "{spinner} {pos:>5} {elapsed:>4} {wide_msg}",
    };
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    // The templates above are constants; one that indicatif cannot read falls back to its default.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(done: u64, total: Option<u64>, seconds: u64) -> String {
        let mut progress = Ui::new(Talk::Quiet).progress("reading", total, Unit::Steps);
        progress.note("a/b");
        progress.line(done, Duration::from_secs(seconds))
    }

    #[test]
    fn a_line_says_how_long_the_rest_takes() {
        assert_eq!(line(25, Some(100), 60), "reading a/b 25 of 100, about 3 min left");
        assert_eq!(line(99, Some(100), 60), "reading a/b 99 of 100, about 1 s left");
        assert_eq!(line(10, Some(1000), 600), "reading a/b 10 of 1000, about 16.5 h left");
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(line(0, Some(100), 60), "reading a/b 0 of 100");
        assert_eq!(line(100, Some(100), 60), "reading a/b 100 of 100");
        assert_eq!(line(3, None, 60), "reading a/b 3");
    }
}
