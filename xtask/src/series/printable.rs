//! Untrusted bytes made safe to show.

/// The most characters of one line that a report shows.
const SHOWN_CHARACTERS: usize = 160;

/// `bytes` as one line of text that is safe on a terminal.
///
/// Control characters (a patch may hold terminal escapes) and bytes that are not UTF-8 are
/// escaped, a final line feed is left out, and long lines are cut.
pub fn printable(bytes: &[u8]) -> String {
    let without_line_feed = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut shown = String::new();
    let mut count = 0usize;
    for chunk in without_line_feed.utf8_chunks() {
        for character in chunk.valid().chars() {
            if count == SHOWN_CHARACTERS {
                shown.push('…');
                return shown;
            }
            push_safe(&mut shown, character);
            count += 1;
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
            count += 1;
        }
    }
    shown
}

fn push_safe(shown: &mut String, character: char) {
    match character {
        '\t' => shown.push('\t'),
        '\r' => shown.push_str("\\r"),
        // The bidirectional controls can make a line read as something else than it is.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' => {
            shown.extend(character.escape_unicode());
        }
        _ if character.is_control() => shown.extend(character.escape_unicode()),
        _ => shown.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(printable(b"a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb\\r");
        assert_eq!(printable(b"\xff\xc3\xb6"), "\\xffö");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    #[test]
    fn cuts_long_lines() {
        assert_eq!(printable(&[b'x'; 500]).chars().count(), 161);
    }
}
