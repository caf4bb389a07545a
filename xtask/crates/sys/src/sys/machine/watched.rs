//! Programs that download: watched while their folder grows, given up when nothing happens for long.

use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::disk;
use super::process::{self, Run, Seen, Watch};
use crate::error::{Error, Result};
use crate::ui::Progress;

/// A program that downloads into a folder.
pub(in crate::sys) struct Download<'a> {
    /// What it is, for people: `git`.
    pub program: &'static str,
    /// What grows.
    pub folder: &'a Path,
    /// Without a word or a byte for this long, it is given up.
    pub patience: Duration,
    /// Shows how the folder grows.
    pub progress: &'a mut Progress,
    /// Cuts a line down to what is worth telling; nothing where it is not.
    pub speech: fn(&str) -> Option<String>,
}

/// A source that shows no sign of life for this long is given up.
pub(in crate::sys) const PATIENCE: Duration = Duration::from_secs(60);

/// And for this long where the disk is full: apt-get waits there for ever.
const HOPELESS: Duration = Duration::from_secs(10);

impl Download<'_> {
    /// Runs until it ends, and adds to `said` what it says.
    ///
    /// # Errors
    ///
    /// It could not be started, or it was given up; the error tells what it said last.
    pub fn run(self, run: Run, said: &mut Vec<String>) -> Result<ExitStatus> {
        let mut life = SignsOfLife { last: Instant::now(), size: 0 };
        let mut given_up = false;
        let status = run.watch(|seen| {
            match seen {
                Seen::Line(line) => {
                    life.sign();
                    said.extend((self.speech)(line));
                }
                Seen::Tick => {
                    let size = disk::size_below(self.folder);
                    life.size(size);
                    self.progress.set(size);
                }
            }
            let silent = life.last.elapsed();
            given_up = silent > self.patience || silent > HOPELESS && disk::is_full(self.folder);
            if given_up { Watch::Kill } else { Watch::GoOn }
        })?;
        if !given_up {
            return Ok(status);
        }
        let silent = life.last.elapsed().as_secs();
        let what = format!("{} showed no sign of life for {silent} seconds", self.program);
        Err(Error::surroundings(what).detail(process::last_words(&said.join("\n"))))
    }
}

/// When a program last said something, or its folder last changed its size.
struct SignsOfLife {
    last: Instant,
    /// In bytes.
    size: u64,
}

impl SignsOfLife {
    fn sign(&mut self) {
        self.last = Instant::now();
    }

    fn size(&mut self, size: u64) {
        if size != self.size {
            self.size = size;
            self.sign();
        }
    }
}

/// Nothing when it ended well, else the error in its own words.
pub(in crate::sys) fn succeeded(
    program: &str,
    words: &str,
    status: ExitStatus,
    said: &[String],
) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(with_words(program, process::failed(words, status, ""), said))
}

/// The most lines that are shown besides the one that tells why.
const OTHERS_SHOWN: usize = 8;

/// The program's own words say more than its exit code: the line that tells why, then the others.
fn with_words(program: &str, error: Error, said: &[String]) -> Error {
    let lines: Vec<&str> = said.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let Some(reason) = reason_in(&lines) else { return error };
    let mut told = Error::surroundings(format!("{program} says: {}", without_mark(reason)));
    let mut others: Vec<&str> = Vec::new();
    for line in lines.into_iter().map(without_mark) {
        if line != without_mark(reason) && line != CONSEQUENCE && !others.contains(&line) {
            others.push(line);
        }
    }
    // One detail a line: whoever shows them indents each.
    told.details = others.iter().take(OTHERS_SHOWN).map(|line| (*line).to_string()).collect();
    told.hints = error.hints;
    told.hints.extend(way_to_trust(said.iter().map(String::as_str)));
    told
}

/// What git adds when the other side has ended because of the reason that was given before.
const CONSEQUENCE: &str = "the remote end hung up unexpectedly";

/// The line that tells why a program failed: that the disk is full, else the first that is marked as an error, else the
/// first at all. What a program says before it fails is often about something else.
fn reason_in<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let has = |line: &&&str, words: &str| line.to_ascii_lowercase().contains(words);
    let full = || lines.iter().find(|line| has(line, "no space left"));
    let quota = || lines.iter().find(|line| has(line, "enospc") || has(line, "quota exceeded"));
    let marked = || lines.iter().find(|line| without_mark(line) != **line);
    full().or_else(quota).or_else(marked).or(lines.first()).copied()
}

/// What programs write before an error; a server's line that git passes on has its own mark.
const MARKS: [&str; 5] = ["fatal: ", "error: ", "ERROR: ", "E: ", "npm error "];

fn without_mark(line: &str) -> &str {
    let bare = line.strip_prefix("remote: ").unwrap_or(line);
    MARKS.iter().find_map(|mark| bare.strip_prefix(mark)).unwrap_or(line)
}

/// git's own way out of a repository of somebody else's, when it says that it does not read one.
pub(in crate::sys) fn way_to_trust<'a>(mut said: impl Iterator<Item = &'a str>) -> Option<String> {
    said.find(|line| line.contains("safe.directory")).map(|line| line.trim().to_string())
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
        let told = |said: &[&str]| {
            let said: Vec<String> = said.iter().map(|line| (*line).to_string()).collect();
            with_words("git", Error::surroundings("exit code 128"), &said).to_string()
        };
        assert_eq!(
            told(&[
                "remote: Enumerating objects: 11, done.",
                "remote: fatal: unable to read 1",
                "fatal: early EOF"
            ]),
            "error: git says: unable to read 1\n  remote: Enumerating objects: 11, done.\n  early EOF"
        );
        assert_eq!(
            told(&["ssh: connect to host x: refused", "fatal: Could not read from remote repository.", ""]),
            "error: git says: Could not read from remote repository.\n  ssh: connect to host x: refused"
        );
        assert_eq!(
            told(&["code ENOSPC", "nospc ENOSPC: no space left on device, write"]),
            "error: git says: nospc ENOSPC: no space left on device, write\n  code ENOSPC"
        );
        assert_eq!(told(&["plain", "words"]), "error: git says: plain\n  words");
        assert_eq!(told(&[" "]), "error: exit code 128");
    }

    #[test]
    fn a_silent_program_is_ended_and_told_of() {
        let (ended, took) = watch("echo asking the host; exec sleep 30", Duration::from_secs(1));
        let error = ended.unwrap_err().to_string();
        assert_eq!(error, "error: sh showed no sign of life for 1 seconds\n  asking the host");
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
