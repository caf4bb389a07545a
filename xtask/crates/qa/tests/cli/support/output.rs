//! The output of a run, with everything removed that differs between machines.

use std::fmt;

/// Standard output, standard error and exit code of one run.
#[derive(Clone, Debug)]
pub struct Output {
    /// `None` if it was killed by a signal.
    pub code: Option<i32>,
    /// Normalised standard output.
    pub stdout: String,
    /// Normalised standard error.
    pub stderr: String,
}

impl Output {
    /// Captures a finished process; the first text of each pair in `names` is replaced by the second.
    pub fn new(output: &std::process::Output, names: &[(String, &str)]) -> Self {
        let normal = |bytes: &[u8]| normalise(&String::from_utf8_lossy(bytes), names);
        Output { code: output.status.code(), stdout: normal(&output.stdout), stderr: normal(&output.stderr) }
    }

    /// Asserts that the run succeeded.
    #[track_caller]
    pub fn success(self) -> Self {
        self.code(0)
    }

    /// Asserts that the exit code is `code`.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Parses standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// Asserts that standard error does not contain `words`.
    #[track_caller]
    pub fn says_nothing_of(self, words: &str) -> Self {
        assert!(!self.stderr.contains(words), "{self}");
        self
    }

    /// Asserts that standard error contains every one of `words`.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "standard error lacks {word:?}\n{self}");
        }
        self
    }

    /// Asserts that standard error begins with `lines`, and removes them: many snapshots share them.
    #[track_caller]
    pub fn after(mut self, lines: &[&str]) -> Self {
        let start = lines.join("\n") + "\n";
        let Some(rest) = self.stderr.strip_prefix(start.as_str()).map(str::to_string) else {
            panic!("standard error does not begin with\n{start}\n{self}")
        };
        self.stderr = rest;
        self
    }

    /// Asserts that standard output after success, or standard error, ends with `lines`, and removes them.
    #[track_caller]
    pub fn until(mut self, lines: &[&str]) -> Self {
        let end = lines.join("\n");
        let is_success = self.code == Some(0);
        let text = if is_success { &self.stdout } else { &self.stderr };
        let Some(rest) = text.trim_end().strip_suffix(end.as_str()).map(str::to_string) else {
            panic!("the output does not end with\n{end}\n{self}")
        };
        *(if is_success { &mut self.stdout } else { &mut self.stderr }) = rest;
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("killed".to_string(), |code| code.to_string());
        writeln!(out, "exit: {code}")?;
        writeln!(out, "-- stdout --\n{}", self.stdout.trim_end())?;
        write!(out, "-- stderr --\n{}", self.stderr.trim_end())
    }
}

fn normalise(text: &str, names: &[(String, &str)]) -> String {
    let mut text = text.to_string();
    for (long, short) in names {
        text = text.replace(long, short);
    }
    hide_scratch(&hide_times(&text))
}

/// Replaces `in 1.2 s` by `in [TIME]`.
fn hide_times(text: &str) -> String {
    let mut parts = text.split(" in ");
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let number = part.chars().take_while(|c| c.is_ascii_digit() || *c == '.').count();
        let rest = &part[number..];
        let is_time = number > 0 && rest.starts_with(" s");
        shown += " in ";
        shown += &if is_time { format!("[TIME]{}", &rest[2..]) } else { part.to_string() };
    }
    shown
}

/// Replaces the random suffix of a scratch folder's name by `[RANDOM]`.
fn hide_scratch(text: &str) -> String {
    let mark = "/tmp/fetch-";
    let mut parts = text.split(mark);
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        shown += mark;
        shown += "[RANDOM]";
        shown += part.get(6..).unwrap_or_default();
    }
    shown
}
