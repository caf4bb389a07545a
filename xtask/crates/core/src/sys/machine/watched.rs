//! Programs that download: watched while their folder grows, killed after a long time without progress.

use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::disk;
use super::process::{self, Run, Seen, Watch};
use crate::error::{Error, Result};
use crate::ui::Progress;

/// A program that downloads into a folder.
pub struct Download<'a> {
    /// Name of the program, for people: `git`.
    pub program: &'static str,
    /// Folder that grows during the download.
    pub folder: &'a Path,
    /// The program is killed after this long without output or growth.
    pub patience: Duration,
    /// Display of the folder's growth.
    pub progress: &'a mut Progress,
    /// Reduces a line to the part worth showing; `None` to hide it.
    pub speech: fn(&str) -> Option<String>,
}

/// A source that makes no progress for this long is abandoned.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The limit while the disk is full: apt-get would wait for ever.
const HOPELESS: Duration = Duration::from_secs(10);

impl Download<'_> {
    /// Runs the program to completion, without the locks of this run, and appends its output to `log`.
    ///
    /// # Errors
    ///
    /// The program could not be started, or was killed for lack of progress; the error shows its last output.
    pub fn run(self, run: Run, log: &mut Vec<String>) -> Result<ExitStatus> {
        let mut activity = LastActivity { last: Instant::now(), size: 0 };
        let mut given_up = false;
        let status = run.without_locks().watch(|seen| {
            match seen {
                Seen::Line(line) => {
                    activity.record();
                    log.extend((self.speech)(line));
                }
                Seen::Tick => {
                    let size = disk::size_below(self.folder);
                    activity.size(size);
                    self.progress.set(size);
                }
            }
            let silent = activity.last.elapsed();
            given_up = silent > self.patience || silent > HOPELESS && disk::is_full(self.folder);
            if given_up { Watch::Kill } else { Watch::GoOn }
        })?;
        if !given_up {
            return Ok(status);
        }
        let silent = activity.last.elapsed().as_secs();
        let what = format!("{} made no progress for {silent} seconds", self.program);
        Err(Error::environment(what).detail(process::last_words(&log.join("\n"))))
    }
}

/// The last time that a program printed something or its folder changed size.
struct LastActivity {
    last: Instant,
    /// Size in bytes.
    size: u64,
}

impl LastActivity {
    fn record(&mut self) {
        self.last = Instant::now();
    }

    fn size(&mut self, size: u64) {
        if size != self.size {
            self.size = size;
            self.record();
        }
    }
}

/// Returns an error with the program's own message unless it succeeded.
pub fn succeeded(program: &str, words: &str, status: ExitStatus, log: &[String]) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(with_words(program, process::failed(words, status, ""), log))
}

/// Maximum number of lines shown besides the one with the reason.
const OTHERS_SHOWN: usize = 8;

/// The program's own output is more useful than its exit code: first the line with the reason, then the others.
fn with_words(program: &str, error: Error, log: &[String]) -> Error {
    let lines: Vec<&str> = log.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let Some(reason) = reason_in(&lines) else { return error };
    let mut reported = Error::environment(format!("{program} failed: {}", without_mark(reason)));
    let mut others: Vec<&str> = Vec::new();
    for line in lines.into_iter().map(without_mark) {
        if line != without_mark(reason) && line != CONSEQUENCE && !others.contains(&line) {
            others.push(line);
        }
    }
    // One detail per line, because each detail is indented when shown.
    reported.details = others.iter().take(OTHERS_SHOWN).map(|line| (*line).to_string()).collect();
    reported.hints = error.hints;
    reported.hints.extend(way_to_trust(log.iter().map(String::as_str)));
    reported
}

/// git's message when the remote has ended for a reason that it reported before.
const CONSEQUENCE: &str = "the remote end hung up unexpectedly";

/// Returns the line with the reason for a failure: "no space left", otherwise the first marked as an error, otherwise
/// the first line. Earlier output of a program is often about something else.
fn reason_in<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let has = |line: &&&str, words: &str| line.to_ascii_lowercase().contains(words);
    let full = || lines.iter().find(|line| has(line, "no space left"));
    let quota = || lines.iter().find(|line| has(line, "enospc") || has(line, "quota exceeded"));
    let marked = || lines.iter().find(|line| without_mark(line) != **line);
    full().or_else(quota).or_else(marked).or(lines.first()).copied()
}

/// Prefixes of error messages; a server's line that git passes on has its own.
const MARKS: [&str; 5] = ["fatal: ", "error: ", "ERROR: ", "E: ", "npm error "];

fn without_mark(line: &str) -> &str {
    let bare = line.strip_prefix("remote: ").unwrap_or(line);
    MARKS.iter().find_map(|mark| bare.strip_prefix(mark)).unwrap_or(line)
}

/// Returns git's own remedy if it refuses to read a repository owned by another user.
pub fn way_to_trust<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<String> {
    lines.find(|line| line.contains("safe.directory")).map(|line| line.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::{Talk, Ui, Unit};

    fn watch(script: &str, patience: Duration) -> (Result<ExitStatus>, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let progress = &mut Ui::new(Talk::Quiet).progress("x", None, Unit::Bytes);
        let speech = |line: &str| Some(line.to_string());
        let download = Download { program: "sh", folder: folder.path(), patience, progress, speech };
        let begin = Instant::now();
        let run = Run::new("sh").args(["-c", script]).current_folder(folder.path());
        (download.run(run, &mut Vec::new()), begin.elapsed())
    }

    #[test]
    fn the_line_that_tells_why_comes_first() {
        let reported = |lines: &[&str]| {
            let log: Vec<String> = lines.iter().map(|line| (*line).to_string()).collect();
            with_words("git", Error::environment("exit code 128"), &log).to_string()
        };
        assert_eq!(
            reported(&[
                "remote: Enumerating objects: 11, done.",
                "remote: fatal: unable to read 1",
                "fatal: early EOF"
            ]),
            "error: git failed: unable to read 1\n  remote: Enumerating objects: 11, done.\n  early EOF"
        );
        assert_eq!(
            reported(&[
                "ssh: connect to host x: refused",
                "fatal: Could not read from remote repository.",
                ""
            ]),
            "error: git failed: Could not read from remote repository.\n  ssh: connect to host x: refused"
        );
        assert_eq!(
            reported(&["code ENOSPC", "nospc ENOSPC: no space left on device, write"]),
            "error: git failed: nospc ENOSPC: no space left on device, write\n  code ENOSPC"
        );
        assert_eq!(reported(&["plain", "words"]), "error: git failed: plain\n  words");
        assert_eq!(reported(&[" "]), "error: exit code 128");
    }

    #[test]
    fn a_silent_program_is_killed_and_reported() {
        let (ended, took) = watch("echo asking the host; exec sleep 30", Duration::from_secs(1));
        let error = ended.unwrap_err().to_string();
        assert_eq!(error, "error: sh made no progress for 1 seconds\n  asking the host");
        assert!(took < Duration::from_secs(20));
    }

    #[test]
    fn words_and_bytes_are_signs_of_life() {
        let words = "for i in 1 2 3 4; do echo $i; sleep 0.5; done";
        let bytes = "for i in 1 2 3 4; do echo $i >>file; sleep 0.5; done";
        for script in [words, bytes] {
            let (ended, _) = watch(script, Duration::from_secs(1));
            assert!(ended.unwrap().success(), "{script}");
        }
    }
}
