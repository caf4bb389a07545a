//! Bytes of files and commits in JSON: exact, whatever they are, and of limited size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use espalier_series::RepoPath;
use serde::Serialize;

/// Bytes in JSON: as text if they are UTF-8, otherwise in base64.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Content {
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// Number of bytes that were left out at the end.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl Content {
    /// Returns the first `limit` bytes of `bytes`, up to the end of a line if there is one.
    pub fn of(bytes: &[u8], limit: usize) -> Content {
        let kept = first_bytes(bytes, limit);
        let left_out = bytes.len() - kept.len();
        match std::str::from_utf8(kept) {
            Ok(text) => Content { text: Some(text.to_string()), base64: None, left_out },
            Err(_) => Content { text: None, base64: Some(STANDARD.encode(kept)), left_out },
        }
    }
}

fn first_bytes(bytes: &[u8], limit: usize) -> &[u8] {
    let Some(kept) = bytes.get(..limit).filter(|_| limit < bytes.len()) else { return bytes };
    let line = kept.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    let line = line.and_then(|end| kept.get(..end)).unwrap_or(kept);
    // A character that the limit splits is left out as a whole.
    match std::str::from_utf8(line) {
        Err(error) if error.error_len().is_none() => line.get(..error.valid_up_to()).unwrap_or(line),
        _ => line,
    }
}

/// A path in JSON. A validated path has no character that a terminal would interpret, so its text is exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathText {
    /// The path; bytes that are not UTF-8 are escaped as `\xNN`.
    path: String,
    /// The exact bytes in base64, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
}

impl PathText {
    /// Returns the path for display.
    pub fn as_str(&self) -> &str {
        &self.path
    }
}

impl From<&RepoPath> for PathText {
    fn from(path: &RepoPath) -> PathText {
        PathText::from(path.as_bytes())
    }
}

impl From<&[u8]> for PathText {
    fn from(path: &[u8]) -> PathText {
        let escaped = || path.utf8_chunks().map(escaped_chunk).collect();
        match std::str::from_utf8(path) {
            Ok(text) => PathText { path: text.to_string(), path_base64: None },
            Err(_) => PathText { path: escaped(), path_base64: Some(STANDARD.encode(path)) },
        }
    }
}

fn escaped_chunk(chunk: std::str::Utf8Chunk<'_>) -> String {
    let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
    std::iter::once(chunk.valid().to_string()).chain(invalid).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::{Content, PathText};

    #[test]
    fn bytes_that_are_not_text_are_exact_too() {
        assert_eq!(to_value(Content::of(b"a\n", 9)).unwrap(), json!({ "text": "a\n" }));
        assert_eq!(to_value(Content::of(b"\xff\0", 9)).unwrap(), json!({ "base64": "/wA=" }));
        let escapes = to_value(Content::of(b"\x1b[2J", 9)).unwrap();
        assert_eq!(escapes, json!({ "text": "\u{1b}[2J" }));
        assert_eq!(
            to_value(PathText::from(&b"src/\xc3\xbc.c"[..])).unwrap(),
            json!({ "path": "src/\u{fc}.c" })
        );
        let odd = to_value(PathText::from(&b"src/na\xefve.c"[..])).unwrap();
        assert_eq!(odd, json!({ "path": "src/na\\xefve.c", "path_base64": "c3JjL25h73ZlLmM=" }));
    }

    #[test]
    fn cut_lines_are_counted() {
        let cut = |bytes: &[u8], limit| to_value(Content::of(bytes, limit)).unwrap();
        assert_eq!(cut(b"one\ntwo\nthree\n", 9), json!({ "text": "one\ntwo\n", "left_out": 6 }));
        assert_eq!(cut("a\u{fc}b".as_bytes(), 2), json!({ "text": "a", "left_out": 3 }));
        assert_eq!(cut(b"one\n", 4), json!({ "text": "one\n" }));
        assert_eq!(cut(b"", 0), json!({ "text": "" }));
    }
}
