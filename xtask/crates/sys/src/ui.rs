//! What people see while a command works: status lines, progress, and nothing on stdout.
//!
//! Talk goes to stderr, data to stdout. Without a terminal a progress bar becomes a line now and
//! then, so that a CI log shows that something is alive and stays short.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::series::{visible, visible_json};

/// How much a command says on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// Status lines and progress.
    Normal,
    /// Errors only.
    Quiet,
}

/// Where status lines and progress go.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    talk: Talk,
}

impl Ui {
    /// A voice that says as much as `talk` allows.
    pub fn new(talk: Talk) -> Self {
        Ui { talk }
    }

    /// One status line: a right-aligned verb and what it is done to, as cargo does.
    pub fn status(&self, verb: &str, what: impl std::fmt::Display) {
        if self.talk == Talk::Normal {
            say(&format!("{verb:>12} {what}"));
        }
    }

    /// Something that a person should know and that stops nothing.
    pub fn warn(&self, what: impl std::fmt::Display) {
        say(&format!("warning: {what}"));
    }

    /// A bar over `total` units (bytes when `bytes`), or a spinner when the total is unknown.
    pub fn progress(&self, label: &str, total: Option<u64>, unit: Unit) -> Progress {
        let bar = if self.talk == Talk::Quiet { ProgressBar::hidden() } else { new_bar(total, unit) };
        bar.set_message(visible(label));
        let plain = self.talk == Talk::Normal && bar.is_hidden();
        Progress { bar, label: label.to_string(), total, unit, plain, last_line: Instant::now() }
    }
}

/// One piece of talk. When nobody can hear it the work goes on: there is nobody to tell.
///
/// All text passes here or through [`answer`]: names, subjects and paths are other people's, and a terminal would
/// obey what is in them.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(format!("{}\n", visible(text)).as_bytes());
}

/// What a command answers, on stdout.
#[derive(Clone, Debug)]
pub enum Answer {
    /// For people; nothing is written when it is empty.
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
        Answer::Text(text) => visible(text),
        Answer::Json(json) => visible_json(&json.to_string()),
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// What a progress bar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, shown as MiB.
    Bytes,
    /// Plain counts.
    Steps,
}

/// A running progress display; it vanishes when dropped.
pub struct Progress {
    bar: ProgressBar,
    label: String,
    total: Option<u64>,
    unit: Unit,
    plain: bool,
    last_line: Instant,
}

/// Without a terminal, one line this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(20);

impl Progress {
    /// Moves to `done` units.
    pub fn set(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.plain && self.last_line.elapsed() >= PLAIN_INTERVAL {
            self.last_line = Instant::now();
            say(&format!("{:>12} {}", "...", self.line(done)));
        }
    }

    /// Changes the total, when it becomes known on the way.
    pub fn set_total(&mut self, total: u64) {
        self.total = Some(total);
        self.bar.set_length(total);
    }

    /// Shows what is being worked on behind the bar.
    pub fn note(&mut self, note: &str) {
        self.bar.set_message(visible(&format!("{} {note}", self.label)));
    }

    fn line(&self, done: u64) -> String {
        let show = |count: u64| match self.unit {
            Unit::Bytes => format!("{:.1} MiB", count as f64 / 1_048_576.0),
            Unit::Steps => count.to_string(),
        };
        match self.total {
            Some(total) => format!("{} {} of {}", self.label, show(done), show(total)),
            None => format!("{} {}", self.label, show(done)),
        }
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
        (Some(_), Unit::Steps) => "{bar:30} {pos:>5}/{len} {elapsed:>4} {wide_msg}",
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
