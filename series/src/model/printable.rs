//! Sanitising of untrusted bytes for display.

/// Maximum number of characters of one line that a report shows.
const SHOWN_CHARACTERS: usize = 160;

/// Returns `bytes` as one line of text that is safe on a terminal.
///
/// Control characters (a patch may hold terminal escapes) and bytes that are not UTF-8 are
/// escaped, a final line feed is left out, and long lines are cut.
pub fn printable(bytes: &[u8]) -> String {
    printable_and_cut(bytes).0
}

/// As [`printable`]; the second part is whether the line was cut.
pub(crate) fn printable_and_cut(bytes: &[u8]) -> (String, bool) {
    let without_line_feed = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut shown = String::new();
    let mut count = 0usize;
    for chunk in without_line_feed.utf8_chunks() {
        for character in chunk.valid().chars() {
            if count == SHOWN_CHARACTERS {
                shown.push('…');
                return (shown, true);
            }
            push_safe(&mut shown, character);
            count += 1;
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
            count += 1;
        }
    }
    (shown, false)
}

/// Escapes everything in a text of several lines that a terminal would interpret or hide.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' { shown.push('\n') } else { push_safe(&mut shown, character) }
    }
    shown
}

/// The same for JSON: escaped characters are inside of strings, and keep their meaning. A line feed stands between
/// values, because serializers escape those in strings.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && obeyed_or_hidden(character) {
            let units = character
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<String>();
            shown.push_str(&units);
        } else {
            shown.push(character);
        }
    }
    shown
}

fn push_safe(shown: &mut String, character: char) {
    match character {
        '\t' => shown.push('\t'),
        '\r' => shown.push_str("\\r"),
        _ if obeyed_or_hidden(character) => shown.extend(character.escape_unicode()),
        _ => shown.push(character),
    }
}

/// Returns whether a terminal interprets or hides a character: control characters, bidirectional marks that make a line
/// read differently, line separators, and zero-width characters.
pub(crate) fn obeyed_or_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{printable, visible, visible_json};

    #[test]
    fn escapes_what_a_terminal_would_obey() {
        assert_eq!(printable(b"a\x1b[2Jb\r\n"), "a\\u{1b}[2Jb\\r");
        assert_eq!(printable(b"\xff\xc3\xb6"), "\\xffö");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    }

    #[test]
    fn shows_what_has_no_width() {
        for hidden in ['\u{206f}', '\u{feff}', '\u{200b}', '\u{2028}', '\u{e0041}', '\u{61c}', '\u{9b}'] {
            let shown = visible(&format!("a{hidden}b\n\tc"));
            assert_eq!(shown, format!("a\\u{{{:x}}}b\n\tc", u32::from(hidden)));
        }
        assert_eq!(visible("öx日本 ✓"), "öx日本 ✓");
    }

    #[test]
    fn json_means_the_same() {
        let json = serde_json::to_string("a\u{9b}b\u{202e}c\u{e0041}\n").unwrap();
        let shown = visible_json(&json);
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "a\u{9b}b\u{202e}c\u{e0041}\n");
    }

    #[test]
    fn cuts_long_lines() {
        assert_eq!(printable(&[b'x'; 500]).chars().count(), 161);
    }
}
