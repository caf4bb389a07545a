//! Generated files, and changes to them, for the oracle test.
//!
//! Every line of a text file has an identity, so that after any shuffling of the file the test knows, without looking
//! at the text, where a change belongs.

use crate::random::Random;

#[derive(Clone)]
pub struct TaggedLine {
    /// Index in the file the patch was made from; `None` for a line that is not from there.
    pub identity: Option<usize>,
    /// The text, with its line feed if it has one.
    pub text: Vec<u8>,
}

/// A step of a change, in terms of line identities.
#[derive(Clone)]
pub enum Step {
    Delete(usize),
    Replace(usize, Vec<u8>),
    InsertAfter(usize, Vec<u8>),
}

/// A file with a change whose lines have identities.
#[derive(Clone)]
pub struct TextCase {
    pub lines: Vec<TaggedLine>,
    pub steps: Vec<Step>,
}

/// A file of a case: path, mode and content, before and after the patch.
#[derive(Clone)]
pub struct CaseFile {
    pub old: Option<(String, u32, Vec<u8>)>,
    pub new: Option<(String, u32, Vec<u8>)>,
}

/// One commit of the oracle's history, with files of its own.
#[derive(Clone)]
pub struct Case {
    pub files: Vec<CaseFile>,
    /// The identities of `files[0]` if it is a text file that is changed in place.
    pub text: Option<TextCase>,
}

pub fn content(lines: &[TaggedLine]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.text.iter().copied()).collect()
}

/// Returns `lines` after `steps`; `None` if a line that a step refers to is gone.
pub fn apply_steps(lines: &[TaggedLine], steps: &[Step]) -> Option<Vec<u8>> {
    let mut lines = lines.to_vec();
    for step in steps {
        let (Step::Delete(identity) | Step::Replace(identity, _) | Step::InsertAfter(identity, _)) = step;
        let at = lines.iter().position(|line| line.identity == Some(*identity))?;
        match step {
            Step::Delete(_) => {
                lines.remove(at);
            }
            Step::Replace(_, text) => lines[at].text = text.clone(),
            Step::InsertAfter(_, text) => {
                lines.insert(at + 1, TaggedLine { identity: None, text: text.clone() });
            }
        }
    }
    Some(content(&lines))
}

/// Names with a space, and with characters that git must quote.
const NAMES: [&str; 4] = ["a.c", "dir/long name.cpp", "dö.h", "x'y.c"];

/// Returns a case whose files are all below `folder`.
pub fn make_case(random: &mut Random, folder: &str) -> Case {
    let path = |name: &str| format!("{folder}/{name}");
    if !random.one_in(6) {
        let text = text_case(random);
        let old = content(&text.lines);
        let new = apply_steps(&text.lines, &text.steps).unwrap();
        let name = path(NAMES[random.below(NAMES.len())]);
        let mut files =
            vec![CaseFile { old: Some((name.clone(), 0o100_644, old)), new: Some((name, 0o100_644, new)) }];
        if random.one_in(5) {
            files.push(other_file(random, &path("zz_other")));
        }
        return Case { files, text: Some(text) };
    }
    Case { files: vec![other_file(random, &path("zz_other"))], text: None }
}

/// Returns any change other than one of a text file in place.
fn other_file(random: &mut Random, path: &str) -> CaseFile {
    let text = source_lines(random).concat();
    let some = |path: String, mode, bytes: Vec<u8>| Some((path, mode, bytes));
    let (path, moved) = (path.to_owned(), format!("{path}/moved to"));
    let regular = 0o100_644;
    let (old, new) = match random.below(10) {
        0 => (None, some(path, regular, text)),
        1 => (some(path, regular, text), None),
        2 => (some(path, regular, text.clone()), some(moved, regular, text)),
        3 => {
            let changed = [&text[..], b"int appended;\n"].concat();
            (some(path, regular, text), some(moved, regular, changed))
        }
        4 => (some(path.clone(), regular, text.clone()), some(path, 0o100_755, text)),
        5 => (None, some(path, 0o100_755, Vec::new())),
        6 => (some(path, regular, Vec::new()), None),
        7 => (some(path.clone(), regular, Vec::new()), some(path, regular, text)),
        8 => {
            let bytes = binary(random);
            let changed = [&bytes[..], b"\0more", &bytes[..90]].concat();
            (some(path.clone(), regular, bytes), some(path, regular, changed))
        }
        _ => (some(path.clone(), regular, binary(random)), some(path, regular, binary(random))),
    };
    CaseFile { old, new }
}

fn binary(random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..400).map(|_| random.below(256) as u8).collect();
    bytes[10] = 0;
    bytes
}

fn text_case(random: &mut Random) -> TextCase {
    let texts = source_lines(random);
    let tag = |(at, text)| TaggedLine { identity: Some(at), text };
    let lines: Vec<TaggedLine> = texts.into_iter().enumerate().map(tag).collect();
    let mut steps = Vec::new();
    let mut used = std::collections::HashSet::new();
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len() - 1);
        if used.insert(at) {
            steps.push(make_step(random, at, &lines));
        }
    }
    TextCase { lines, steps }
}

fn make_step(random: &mut Random, at: usize, lines: &[TaggedLine]) -> Step {
    let line_end = if lines[at].text.ends_with(b"\r\n") { "\r\n" } else { "\n" };
    let fresh = format!("    patched_{}(x);{line_end}", random.below(1000)).into_bytes();
    match random.below(5) {
        0 => Step::Delete(at),
        1 | 2 => Step::Replace(at, fresh),
        3 => Step::InsertAfter(at, fresh),
        // A copy of the line before it: the kind of change that is easily applied twice.
        _ => Step::InsertAfter(at, lines[at].text.clone()),
    }
}

/// Returns C-like text whose functions look alike.
fn source_lines(random: &mut Random) -> Vec<Vec<u8>> {
    let mut lines = vec!["#include <stdio.h>".to_owned(), String::new()];
    let in_class = random.one_in(4);
    let indent = if in_class { "    " } else { "" };
    if in_class {
        lines.push("struct holder {".to_owned());
    }
    for number in 0..2 + random.below(4) {
        let body = random.below(3);
        lines.push(format!("{indent}static int function_{number}(int x) {{"));
        let body = body_lines(body);
        lines.extend(body.iter().map(|line| format!("{indent}    {line}")));
        lines.push(format!("{indent}}}"));
        lines.push(String::new());
    }
    if in_class {
        lines.push("};".to_owned());
    }
    let line_end = if random.one_in(8) { "\r\n" } else { "\n" };
    let mut bytes: Vec<Vec<u8>> = lines.iter().map(|line| format!("{line}{line_end}").into_bytes()).collect();
    if random.one_in(8) {
        bytes.push(b"int last_line_without_end;".to_vec());
    }
    bytes
}

/// Returns one of three bodies; the first is much like the second.
fn body_lines(kind: usize) -> Vec<String> {
    let count = if kind == 2 { 12 } else { 8 };
    let mut lines = vec!["int y = x;".to_owned()];
    lines.extend((0..count).map(|at| match (kind, at) {
        (1, 7) => "y = other(y);".to_owned(),
        (_, 3) => "for (int i = 0; i < x; i++) {".to_owned(),
        (_, 5) => "}".to_owned(),
        _ => format!("y += step(y, {at});"),
    }));
    lines.push("return y;".to_owned());
    lines
}
