//! Paths as git writes them: plain, or in double quotes with C escapes.

/// Decodes the quoted path at the start of `text`.
///
/// `text` starts with a double quote. Returns the decoded bytes and the rest after the closing quote, or `None` if the
/// quoting is malformed.
pub(crate) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut decoded = Vec::new();
    loop {
        let (first, after) = rest.split_first()?;
        match first {
            b'"' => return Some((decoded, after)),
            b'\\' => {
                let (byte, after_escape) = unescape(after)?;
                decoded.push(byte);
                rest = after_escape;
            }
            byte => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
}

/// Decodes the part after a backslash: one letter, or three octal digits up to `377`.
fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (first, rest) = text.split_first()?;
    let byte = match first {
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        b'"' | b'\\' => *first,
        b'0'..=b'3' => return unescape_octal(text),
        _ => return None,
    };
    Some((byte, rest))
}

fn unescape_octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_at_checked(3)?;
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` would accept a sign, but the first digit is known to be one of 0 to 3.
    let byte = u8::from_str_radix(digits, 8).ok()?;
    Some((byte, rest))
}

/// Decodes a path that fills all of `text`, quoted or plain.
pub(crate) fn whole_path(text: &[u8]) -> Option<Vec<u8>> {
    if !text.starts_with(b"\"") {
        return Some(text.to_vec());
    }
    let (decoded, rest) = unquote(text)?;
    rest.is_empty().then_some(decoded)
}

/// Returns the two paths of a `diff --git` line, with their `a/` and `b/`.
///
/// `text` is the line after `diff --git `. Two plain paths can be told apart only if they are the same path, or if
/// `known_old` (from a `rename from` line) marks the end of the first.
pub(crate) fn header_paths(text: &[u8], known_old: Option<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
    if text.starts_with(b"\"") {
        let (old, rest) = unquote(text)?;
        return Some((old, whole_path(rest.strip_prefix(b" ")?)?));
    }
    if let Some(quote) = text.iter().position(|byte| *byte == b'"') {
        let (old, new) = text.split_at_checked(quote)?;
        return Some((old.strip_suffix(b" ")?.to_vec(), whole_path(new)?));
    }
    let old_length = match known_old {
        Some(path) => path.len().checked_add(2)?,
        None => text.len().checked_sub(1)? / 2,
    };
    let (old, rest) = text.split_at_checked(old_length)?;
    Some((old.to_vec(), rest.strip_prefix(b" ")?.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::{header_paths, unquote, whole_path};

    #[test]
    fn decodes_escapes() {
        let quoted = br#""a/f\303\266\t\"\\o" rest"#;
        let (path, rest) = unquote(quoted).unwrap();
        assert_eq!(path, b"a/f\xc3\xb6\t\"\\o");
        assert_eq!(rest, b" rest");
    }

    #[test]
    fn refuses_bad_escapes() {
        for bad in [&br#""a"#[..], br#""a\"#, br#""a\x""#, br#""\400""#, br#""\3""#, br#""\3+1""#] {
            assert_eq!(unquote(bad), None, "{}", crate::model::utf8::lossy(bad));
        }
        assert_eq!(whole_path(br#""a" b"#), None);
    }

    #[test]
    fn splits_header_paths() {
        let pair = |old: &str, new: &str| Some((old.into(), new.into()));
        assert_eq!(header_paths(b"a/x b/x", None), pair("a/x", "b/x"));
        assert_eq!(header_paths(b"a/x y b/x y", None), pair("a/x y", "b/x y"));
        assert_eq!(header_paths(b"a/x b/long", Some(b"x")), pair("a/x", "b/long"));
        assert_eq!(header_paths(br#""a/x\t" b/y"#, None), pair("a/x\t", "b/y"));
        assert_eq!(header_paths(br#"a/x "b/\ty""#, None), pair("a/x", "b/\ty"));
        assert_eq!(header_paths(b"", None), None);
    }
}
