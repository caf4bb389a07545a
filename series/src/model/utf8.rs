//! Conversion of bytes to text: strict for text that is written again, lossy for text that is only shown or searched.

use std::borrow::Cow;

use super::printable::printable;

/// The first line that is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUtf8 {
    /// Its number, from 1.
    pub line: usize,
    /// The line, its invalid bytes escaped as `\xNN`.
    pub found: String,
}

/// Returns `bytes` as text.
///
/// # Errors
///
/// The first line that is not UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str, NotUtf8> {
    std::str::from_utf8(bytes).map_err(|_| {
        let lines = || (1..).zip(bytes.split(|byte| *byte == b'\n'));
        let bad = lines().find(|(_, line)| std::str::from_utf8(line).is_err());
        let (line, found) = bad.unwrap_or((1, bytes));
        NotUtf8 { line, found: printable(found) }
    })
}

/// Returns `bytes` as text to show or to search. Invalid UTF-8 becomes U+FFFD, so the result must never be written back
/// as bytes: [`utf8`] is for that. All lossy conversions of the tool use this function; `clippy.toml` bans others.
#[expect(clippy::disallowed_methods, reason = "the one place")]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::{NotUtf8, utf8};

    #[test]
    fn names_the_line_and_its_bytes() {
        assert_eq!(utf8("ä\nb".as_bytes()), Ok("ä\nb"));
        let bad = NotUtf8 { line: 2, found: "J\\xf6rg".to_owned() };
        assert_eq!(utf8(b"a\nJ\xf6rg\nc\xff\n"), Err(bad));
    }
}
