//! Ways to damage a patch, or to change the files under it.

use crate::oracle_sources::TaggedLine;
use crate::random::Random;

/// The files under a mutated patch: path, mode, content.
pub type Files = Vec<(String, u32, Vec<u8>)>;

/// Damages the text of a patch.
pub fn mutate_patch(random: &mut Random, text: &[u8], other: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    // Most of a patch file is its message; half of the damage is applied to the diff.
    let first = lines.iter().position(|line| line.starts_with(b"diff --git")).unwrap_or(0);
    let first = if random.one_in(8) { 0 } else { first };
    let at = first + random.below(lines.len() - first);
    match random.below(16) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.truncate(at + 1),
        3 => return text[..random.below(text.len())].to_vec(),
        4 => {
            let to = first + random.below(lines.len() - first);
            lines.swap(at, to);
        }
        5 => flip_byte(random, &mut lines[at]),
        6 => toggle_carriage_return(&mut lines[at]),
        7 => change_number(random, &mut lines),
        8 => lines.insert(at, b"\\ No newline at end of file\n".to_vec()),
        9 => change_first_byte(random, &mut lines[at]),
        10 => replace_path(random, &mut lines),
        11 => replace_mode(random, &mut lines),
        12 => lines.retain(|line| !line.starts_with(b"index ")),
        13 => move_hunk(random, &mut lines),
        14 => lines.extend(other.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec)),
        _ => rewrite_context(random, &mut lines),
    }
    lines.concat()
}

fn flip_byte(random: &mut Random, line: &mut [u8]) {
    let at = random.below(line.len());
    line[at] ^= 1 << random.below(8);
}

fn toggle_carriage_return(line: &mut Vec<u8>) {
    if line.ends_with(b"\r\n") {
        line.truncate(line.len() - 2);
        line.push(b'\n');
    } else if line.ends_with(b"\n") {
        line.truncate(line.len() - 1);
        line.extend_from_slice(b"\r\n");
    }
}

fn hunk_headers(lines: &[Vec<u8>]) -> Vec<usize> {
    (0..lines.len()).filter(|at| lines[*at].starts_with(b"@@ ")).collect()
}

fn change_number(random: &mut Random, lines: &mut [Vec<u8>]) {
    let headers = hunk_headers(lines);
    if headers.is_empty() {
        return;
    }
    let line = &mut lines[*random.pick(&headers)];
    let digits: Vec<usize> = (0..line.len().min(20)).filter(|at| line[*at].is_ascii_digit()).collect();
    let at = *random.pick(&digits);
    match random.below(3) {
        0 => line[at] = b'0' + random.below(10) as u8,
        1 => {
            line.splice(at..at, *b"99999999999999999999");
        }
        _ => line.insert(at, b'1'),
    }
}

fn change_first_byte(random: &mut Random, line: &mut [u8]) {
    line[0] = *random.pick(b" +-\\@d");
}

const HOSTILE_PATHS: [&str; 8] =
    ["../x", "/tmp/x", ".git/config", "a/.GIT/x", "a\\b", "C:x", "link/x", "git~1/x"];

/// Replaces the first path of the patch everywhere.
fn replace_path(random: &mut Random, lines: &mut [Vec<u8>]) {
    let header = lines.iter().find(|line| line.starts_with(b"diff --git a/"));
    let Some(text) = header.and_then(|line| std::str::from_utf8(line).ok()) else {
        return;
    };
    let Some((path, _)) = text["diff --git a/".len()..].split_once(" b/") else {
        return;
    };
    let path = path.to_owned();
    let hostile = *random.pick(&HOSTILE_PATHS);
    for line in lines {
        if let Ok(text) = std::str::from_utf8(line) {
            *line = text.replace(&path, hostile).into_bytes();
        }
    }
}

fn replace_mode(random: &mut Random, lines: &mut [Vec<u8>]) {
    let mode = *random.pick(&["120000", "160000", "100755", "020666", "100664", "0"]);
    for line in lines {
        if let Ok(text) = std::str::from_utf8(line) {
            *line = text.replace("100644", mode).into_bytes();
        }
    }
}

/// Moves a hunk by rewriting both starts, as a careless manual rebase does.
fn move_hunk(random: &mut Random, lines: &mut [Vec<u8>]) {
    let headers = hunk_headers(lines);
    if headers.is_empty() {
        return;
    }
    let line = &mut lines[*random.pick(&headers)];
    let start = 1 + random.below(60);
    let text = String::from_utf8_lossy(line).into_owned();
    let mut parts = text.splitn(4, ' ');
    let (_, old, new, rest) = (parts.next(), parts.next(), parts.next(), parts.next());
    let count = |range: Option<&str>| {
        range.and_then(|range| range.split_once(',')).map_or(String::new(), |(_, count)| format!(",{count}"))
    };
    *line =
        format!("@@ -{start}{} +{start}{} {}", count(old), count(new), rest.unwrap_or("@@\n")).into_bytes();
}

fn rewrite_context(random: &mut Random, lines: &mut [Vec<u8>]) {
    let context: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with(b"     ")).collect();
    if !context.is_empty() {
        lines[*random.pick(&context)] = b"     rewritten();\n".to_vec();
    }
}

/// Changes a text file as upstream might, keeping the identity of every line that stays.
pub fn mutate_lines(random: &mut Random, lines: &[TaggedLine]) -> Vec<TaggedLine> {
    let mut lines = lines.to_vec();
    for _ in 0..=random.below(3) {
        mutate_lines_once(random, &mut lines);
    }
    end_all_lines_but_the_last(&mut lines);
    lines
}

/// A last line without a line feed may have moved above others.
fn end_all_lines_but_the_last(lines: &mut [TaggedLine]) {
    let Some((_, above)) = lines.split_last_mut() else {
        return;
    };
    for line in above.iter_mut().filter(|line| !line.text.ends_with(b"\n")) {
        line.text.push(b'\n');
        line.identity = None;
    }
}

fn mutate_lines_once(random: &mut Random, lines: &mut Vec<TaggedLine>) {
    let at = random.below(lines.len());
    match random.below(9) {
        0 => lines.insert(at, stranger(b"    upstream_added();\n")),
        1 => {
            for _ in 0..1 + random.below(5) {
                lines.insert(0, stranger(b"#define HEAD 1\n"));
            }
        }
        2 if lines.len() > 1 => {
            lines.remove(at);
        }
        3 => lines[at] = stranger(b"    upstream_changed();\n"),
        4 => duplicate_function(random, lines),
        5 | 6 => delete_function(random, lines),
        7 => move_function(random, lines),
        _ => toggle_carriage_return_of(lines, at),
    }
    if lines.is_empty() {
        lines.push(stranger(b"int nothing_left;\n"));
    }
}

fn toggle_carriage_return_of(lines: &mut [TaggedLine], at: usize) {
    toggle_carriage_return(&mut lines[at].text);
    lines[at].identity = None;
}

fn stranger(text: &[u8]) -> TaggedLine {
    TaggedLine { identity: None, text: text.to_vec() }
}

/// Returns the range of one of the functions, if any is left.
fn pick_function(random: &mut Random, lines: &[TaggedLine]) -> Option<std::ops::Range<usize>> {
    let is_start = |line: &TaggedLine| line.text.trim_ascii().starts_with(b"static int");
    let starts: Vec<usize> = (0..lines.len()).filter(|at| is_start(&lines[*at])).collect();
    let start = *starts.get(random.below(starts.len().max(1)))?;
    let end = starts.iter().copied().find(|next| *next > start).unwrap_or(lines.len());
    Some(start..end)
}

fn duplicate_function(random: &mut Random, lines: &mut Vec<TaggedLine>) {
    let Some(range) = pick_function(random, lines) else {
        return;
    };
    let mut copy = lines[range.clone()].to_vec();
    for line in &mut copy {
        line.identity = None;
    }
    let number = random.below(100).to_string();
    let name = String::from_utf8_lossy(&copy[0].text).replace("function_", &format!("copy_{number}_"));
    copy[0].text = name.into_bytes();
    let at = if random.one_in(2) { range.start } else { range.end };
    lines.splice(at..at, copy);
}

fn delete_function(random: &mut Random, lines: &mut Vec<TaggedLine>) {
    if let Some(range) = pick_function(random, lines) {
        lines.drain(range);
    }
}

fn move_function(random: &mut Random, lines: &mut Vec<TaggedLine>) {
    let Some(range) = pick_function(random, lines) else {
        return;
    };
    let moved: Vec<TaggedLine> = lines.drain(range).collect();
    let at = pick_function(random, lines).map_or(lines.len(), |range| range.start);
    lines.splice(at..at, moved);
}

/// Changes the files under a patch without regard to their content.
pub fn mutate_files(random: &mut Random, files: &mut Files) {
    if files.is_empty() {
        files.push(("other".to_owned(), 0o100_644, b"int x;\n".to_vec()));
        return;
    }
    let at = random.below(files.len());
    match random.below(6) {
        0 => {
            files.remove(at);
        }
        1 => files[at].1 = 0o100_755,
        2 => files[at].2.push(b'x'),
        3 => files[at].0.push_str("-renamed"),
        4 => files[at].1 = 0o120_000,
        _ => {
            let upper = files[at].0.to_ascii_uppercase();
            files[at].0 = upper;
        }
    }
}
