//! All refusals of a patch, file by file: [`parse`](super::parse) stops at the first.

use super::mail::ends_message;
use super::parse::parse;
use super::parse_error::ParseError;
use super::quoted_path::header_paths;

/// One file of a patch that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRefusal {
    /// Its path, if the patch names one.
    pub path: Option<Vec<u8>>,
    /// The refusal. Its line is counted in the text of this file alone.
    pub error: ParseError,
}

/// Parses `text`, which [`parse`] refuses, once for each file. Returns an empty list if each file alone is accepted:
/// then the patch as a whole is refused.
pub fn refusals(name: &str, text: &[u8]) -> Vec<FileRefusal> {
    let (head, files) = split_files(text);
    let refuse = |file: &Vec<u8>| {
        let error = parse(name, &[head.as_slice(), file].concat()).err()?;
        Some(FileRefusal { path: path_of(file), error })
    };
    files.iter().filter_map(refuse).collect()
}

/// Splits off the mail, and each `diff --git` with its lines. No line of a hunk or of a binary patch starts like that.
fn split_files(text: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut head, mut files): (Vec<u8>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let mut in_message = true;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        in_message = in_message && !ends_message(line.strip_suffix(b"\n").unwrap_or(line));
        if !in_message && line.starts_with(b"diff --git ") {
            files.push(Vec::new());
        }
        files.last_mut().unwrap_or(&mut head).extend_from_slice(line);
    }
    (head, files)
}

/// Returns the path on the new side. Lines that name it again are preferred: they also cover renames.
fn path_of(file: &[u8]) -> Option<Vec<u8>> {
    let first = file.split(|byte| *byte == b'\n').next()?;
    let (_, new) = header_paths(first.strip_prefix(b"diff --git ")?, None)?;
    Some(new.strip_prefix(b"b/").unwrap_or(&new).to_vec())
}

#[cfg(test)]
mod tests {
    use super::refusals;
    use crate::{PathRefusal, Refusal};

    #[test]
    fn every_file_is_looked_at() {
        let file = |path: &str, mode: &str| {
            format!(
                "diff --git {path}\nnew file mode {mode}\nindex {}..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n",
                "0".repeat(40)
            )
        };
        let text = format!(
            "From {} Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: s\n\n---\n\n{}{}{}",
            "0".repeat(40),
            file("a/link b/link", "120000"),
            file("a/good b/good", "100644"),
            file(r#""a/t\tb" "b/t\tb""#, "100644"),
        );
        let found = refusals("0001-s.patch", text.as_bytes());
        let found: Vec<_> = found.iter().map(|file| (file.path.as_deref(), file.error.refusal)).collect();
        let tab = Refusal::BadPath(PathRefusal::ControlCharacter);
        assert_eq!(found, [(Some(&b"link"[..]), Refusal::SymlinkMode), (Some(b"t\tb"), tab)]);
    }
}
