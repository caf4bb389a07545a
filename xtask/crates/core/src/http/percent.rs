//! Percent encoding.

/// Percent-encodes `text`, except for letters and digits of ASCII and the characters in `kept`.
pub fn percent_encoded(text: &str, kept: &[u8]) -> String {
    let encoded = |byte: u8| match byte.is_ascii_alphanumeric() || kept.contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn bytes_that_are_not_kept_are_encoded() {
        assert_eq!(percent_encoded("o:sync/v1", b"-._~"), "o%3Async%2Fv1");
        assert_eq!(percent_encoded("a b/é", b"/"), "a%20b/%C3%A9");
    }
}
