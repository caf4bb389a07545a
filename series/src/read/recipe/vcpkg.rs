//! Ports of vcpkg: the patches of `PATCHES` in `portfile.cmake`, and those that the commands of the port apply.

use super::ApplyOptions;
use super::changes::{CHANGES, Phase};
use super::collected::Collected;
use super::pattern::patch_in;
use super::script::{Builtins, Run};
use super::shell::{Command, Script, Statement};
use crate::model::printable::printable;

/// Strip count of `vcpkg_apply_patches`, which runs `git apply`.
const USUAL: Option<u32> = Some(1);

/// Reads a `portfile.cmake`.
pub(super) fn read_vcpkg(text: &str) -> Collected {
    let (calls, unclosed) = calls_in(text);
    let mut script = Script { unclosed, ..Script::default() };
    let mut conditions = 0usize;
    for call in calls {
        match call.words.first().map(String::as_str) {
            Some("if") => conditions += 1,
            Some("endif") => conditions = conditions.saturating_sub(1),
            _ => {}
        }
        let assignment = assignment(&call, conditions > 0);
        script.push(None, assignment.unwrap_or(Statement::Command(call)));
    }
    let mut run = Run::new(&script, &Vcpkg, Collected::default());
    run.top_with(vec![(0, Phase::Build)]);
    run.collected
}

/// Splits a text of CMake into calls, whose first word is the name in lower case, and the line of what is not closed.
fn calls_in(text: &str) -> (Vec<Command>, Option<usize>) {
    let mut words = Words { rest: text, line: 1, unclosed: None };
    let (mut calls, mut depth) = (Vec::new(), 0usize);
    let mut call = Command::default();
    while let Some((line, part)) = words.next_part() {
        match part {
            CmakeToken::Open => depth += 1,
            CmakeToken::Close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    calls.push(std::mem::take(&mut call));
                }
            }
            CmakeToken::Word(name) if depth == 0 => {
                call = Command { line, words: vec![name.to_ascii_lowercase()], ..Command::default() };
            }
            CmakeToken::Word(word) => call.words.push(word),
        }
    }
    if depth > 0 {
        words.unclosed = words.unclosed.or(Some(call.line));
    }
    (calls, words.unclosed)
}

enum CmakeToken {
    Open,
    Close,
    /// A word without its quotes.
    Word(String),
}

/// Reads the words of a text of CMake.
struct Words<'t> {
    rest: &'t str,
    line: usize,
    unclosed: Option<usize>,
}

impl<'t> Words<'t> {
    /// Skips `length` bytes and returns them.
    fn skip(&mut self, length: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// Skips up to and including `end`; returns the text before it.
    fn skip_past(&mut self, end: &str) -> &'t str {
        match self.rest.find(end) {
            Some(at) => {
                let skipped = self.skip(at);
                self.skip(end.len());
                skipped
            }
            None => {
                self.unclosed = self.unclosed.or(Some(self.line));
                self.skip(self.rest.len())
            }
        }
    }

    /// Returns the next word or bracket, and its line.
    fn next_part(&mut self) -> Option<(usize, CmakeToken)> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.skip(blank);
            let line = self.line;
            let part = match self.rest.chars().next()? {
                '#' => {
                    self.skip_comment();
                    continue;
                }
                '(' => CmakeToken::Open,
                ')' => CmakeToken::Close,
                '"' => {
                    self.skip(1);
                    return Some((line, CmakeToken::Word(self.quoted())));
                }
                _ => return Some((line, CmakeToken::Word(self.unquoted()))),
            };
            self.skip(1);
            return Some((line, part));
        }
    }

    /// Skips a comment: the rest of the line, or what is in its brackets.
    fn skip_comment(&mut self) {
        self.skip(1);
        if let Some(end) = bracket_in(self.rest) {
            self.bracketed(&end);
        } else {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// Reads `[==[text]==]`, whose end is `end`.
    fn bracketed(&mut self, end: &str) -> &'t str {
        self.skip(end.len());
        self.skip_past(end)
    }

    /// Reads the rest of a quoted word.
    fn quoted(&mut self) -> String {
        let is_end = |(at, _): &(usize, &str)| !self.rest.get(..*at).is_some_and(|text| text.ends_with('\\'));
        let end = self.rest.match_indices('"').find(is_end).map(|(at, _)| at);
        match end {
            Some(end) => {
                let word = self.skip(end).to_owned();
                self.skip(1);
                word
            }
            None => self.skip_past("\"").to_owned(),
        }
    }

    fn unquoted(&mut self) -> String {
        if let Some(end) = bracket_in(self.rest) {
            return self.bracketed(&end).to_owned();
        }
        let is_end = |letter: char| letter.is_whitespace() || "()\"#".contains(letter);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        self.skip(end.max(1)).to_owned()
    }
}

/// Returns the end of the bracket that `text` begins with: `]==]` for `[==[`.
fn bracket_in(text: &str) -> Option<String> {
    let rest = text.strip_prefix('[')?;
    let inner = rest.trim_start_matches('=');
    inner.starts_with('[').then(|| format!("]{}]", "=".repeat(rest.len() - inner.len())))
}

/// Returns a call as an assignment, if it sets a variable.
fn assignment(call: &Command, is_conditional: bool) -> Option<Statement> {
    let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
    let is_url = |word: &&&str| word.contains("://");
    let (name, is_added, words) = match words.as_slice() {
        ["set", name, words @ ..] => (*name, is_conditional, owned(words)),
        ["list", "APPEND" | "PREPEND", name, words @ ..] => (*name, true, owned(words)),
        ["list", "INSERT", name, _, words @ ..] => (*name, true, owned(words)),
        ["foreach", name, "IN", "LISTS", lists @ ..] => {
            (*name, false, lists.iter().map(|list| format!("${{{list}}}")).collect())
        }
        ["foreach", name, words @ ..] => (*name, false, owned(words)),
        // What it downloads is applied through the variable.
        ["vcpkg_download_distfile", name, words @ ..] => {
            (*name, false, words.iter().filter(is_url).map(|url| (*url).to_owned()).collect())
        }
        _ => return None,
    };
    Some(Statement::Assign { name: name.to_owned(), is_added, words })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

struct Vcpkg;

impl Builtins for Vcpkg {
    fn run(&self, command: &Command, run: &mut Run<'_>) -> bool {
        let words = command.words.get(1..).unwrap_or_default();
        let mut parts = words.split(|word| is_keyword(word));
        // The words before the first keyword.
        let mut first = parts.next().unwrap_or_default();
        let keywords = words.iter().filter(|word| is_keyword(word));
        for (keyword, values) in keywords.zip(parts) {
            match keyword.as_str() {
                "PATCHES" => apply_patches(values, command, run),
                "COMMAND" => run_program(values, command, run),
                _ => name_in(values, command, run),
            }
        }
        if changes_sources(command) {
            run.collected.change(Some(command.line), format!("`{}` {CHANGES}", command.text()));
        }
        match command.words.first().map(String::as_str) {
            Some("message") => first = &[],
            Some("list") if words.iter().any(|word| patch_in(word).is_some()) => {
                run.collected.note(Some(command.line), format!("`{}` was not followed", command.text()));
            }
            _ => {}
        }
        name_in(first, command, run);
        true
    }
}

/// Subcommands of `file` that change the files that they name.
const EDITS: [&str; 9] = [
    "APPEND",
    "CONFIGURE",
    "CREATE_LINK",
    "GENERATE",
    "REMOVE",
    "REMOVE_RECURSE",
    "RENAME",
    "TOUCH",
    "WRITE",
];

/// Returns whether a call changes a file of the sources, and not one that was built or installed.
fn changes_sources(command: &Command) -> bool {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let is_source = |word: &&str| word.contains("SOURCE");
    match words.as_slice() {
        ["vcpkg_replace_string", file, ..] => {
            !["CURRENT_PACKAGES_DIR", "CURRENT_BUILDTREES_DIR"].iter().any(|folder| file.contains(folder))
        }
        ["configure_file", _, to, ..] | ["file", "COPY_FILE", _, to, ..] => is_source(to),
        ["file", "COPY" | "INSTALL", rest @ ..] => {
            rest.iter().skip_while(|word| **word != "DESTINATION").nth(1).is_some_and(is_source)
        }
        ["file", subcommand, rest @ ..] => EDITS.contains(subcommand) && rest.iter().any(is_source),
        _ => false,
    }
}

/// Returns whether a word is a keyword of CMake's commands, such as `PATCHES` or `WORKING_DIRECTORY`.
fn is_keyword(word: &str) -> bool {
    let is_upper = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    word.len() > 1
        && word.chars().all(is_upper)
        && word.starts_with(|letter: char| letter.is_ascii_uppercase())
}

fn apply_patches(values: &[String], command: &Command, run: &mut Run<'_>) {
    for value in values {
        let words = run.expanded(value);
        for word in &words {
            match patch_in(word) {
                Some(patch) => run.collected.apply(patch, ApplyOptions::default(), USUAL),
                None => {
                    let text = format!("`{}` of `PATCHES` was not followed", printable(word.as_bytes()));
                    run.collected.note(Some(command.line), text);
                }
            }
        }
    }
}

/// Follows a program that the port runs.
fn run_program(values: &[String], command: &Command, run: &mut Run<'_>) {
    run.program(&Command { line: command.line, words: values.to_vec(), ..Command::default() }, None);
}

/// Records that a command names patches and was not followed.
fn name_in(values: &[String], command: &Command, run: &mut Run<'_>) {
    for patch in values.iter().filter_map(|word| patch_in(word)) {
        run.collected.name_in_command(patch, command.text());
    }
}
