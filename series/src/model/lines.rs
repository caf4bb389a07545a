//! Splitting of text into lines.

/// Returns the first line with its line feed if it has one, and the rest.
pub(crate) fn split_inclusive(text: &[u8]) -> (&[u8], &[u8]) {
    let length = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    text.split_at_checked(length).unwrap_or((text, &[]))
}
