//! Diffs, as text.

use espalier_series::Hunk;

use crate::report::content::PathText;

/// Returns `hunks` of one file as a diff, byte for byte as in a patch file.
pub fn diff_text<'h>([old_path, new_path]: [&[u8]; 2], hunks: impl IntoIterator<Item = &'h Hunk>) -> Vec<u8> {
    let [old_path, new_path] = [old_path, new_path].map(PathText::from);
    let mut text = format!("--- a/{}\n+++ b/{}\n", old_path.as_str(), new_path.as_str()).into_bytes();
    hunks.into_iter().for_each(|hunk| add_hunk(&mut text, hunk));
    text
}

/// Returns one hunk as a patch file has it.
pub fn hunk_text(hunk: &Hunk) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes_of(hunk));
    add_hunk(&mut text, hunk);
    text
}

/// Returns the line that stands for the diff of a file that comes or goes.
pub fn of_file(what: &str, path: &[u8]) -> Vec<u8> {
    format!("{what} {}\n", PathText::from(path).as_str()).into_bytes()
}

/// Returns the size of a hunk in a diff, in bytes, about.
fn bytes_of(hunk: &Hunk) -> usize {
    hunk.lines.iter().map(|line| line.bytes.len() + 1).sum()
}

/// Returns the indices of those of `hunks`, the most important first, that fit into `limit` bytes together, in
/// ascending order: at least the first one.
pub fn fitting(hunks: &[(usize, &Hunk)], limit: usize) -> Vec<usize> {
    let mut size = 0;
    let fits = |(_, hunk): &&(usize, &Hunk)| {
        let is_first = size == 0;
        size += bytes_of(hunk);
        is_first || size <= limit
    };
    let mut kept: Vec<usize> = hunks.iter().take_while(fits).map(|(at, _)| *at).collect();
    kept.sort_unstable();
    kept
}

fn add_hunk(text: &mut Vec<u8>, hunk: &Hunk) {
    text.extend(hunk.header().as_bytes());
    if !hunk.section.is_empty() {
        text.push(b' ');
        text.extend(&hunk.section);
    }
    text.push(b'\n');
    for line in hunk.lines.iter() {
        text.push(line.kind.sign());
        text.extend(line.bytes);
        if line.lacks_final_newline() {
            text.extend(b"\n\\ No newline at end of file\n");
        }
    }
}
