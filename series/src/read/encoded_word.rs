//! RFC 2047: `=?UTF-8?q?J=C3=B6rg?=` in mail headers.

/// Decodes the encoded words of one unfolded header value.
///
/// Returns `None` if a word is malformed, has another charset than UTF-8, US-ASCII or ISO-8859-1, or decodes to invalid
/// text.
pub(crate) fn decode_header(value: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = value;
    let mut after_word = false;
    while let Some(start) = rest.find("=?") {
        let (plain, word_and_rest) = rest.split_at_checked(start)?;
        // Spaces between two encoded words are folding, not content.
        if !(after_word && plain.trim().is_empty()) {
            decoded.push_str(plain);
        }
        let (bytes, charset, after) = decode_word(word_and_rest)?;
        decoded.push_str(&text_of(bytes, charset)?);
        rest = after;
        after_word = true;
    }
    decoded.push_str(rest);
    Some(decoded)
}

/// Decodes the word at the start of `text`; returns its bytes, its charset, and the rest.
fn decode_word(text: &str) -> Option<(Vec<u8>, &str, &str)> {
    let (charset, rest) = text.strip_prefix("=?")?.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (payload, rest) = rest.split_once("?=")?;
    let bytes = match encoding {
        "q" | "Q" => decode_quoted(payload.as_bytes())?,
        "b" | "B" => decode_base64(payload.as_bytes())?,
        _ => return None,
    };
    Some((bytes, charset, rest))
}

fn text_of(bytes: Vec<u8>, charset: &str) -> Option<String> {
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" | "us-ascii" => String::from_utf8(bytes).ok(),
        "iso-8859-1" => Some(bytes.into_iter().map(char::from).collect()),
        _ => None,
    }
}

fn decode_quoted(payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = payload;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'_' => bytes.push(b' '),
            b'=' => {
                let (digits, after_digits) = after.split_at_checked(2)?;
                bytes.push(hex_byte(digits)?);
                rest = after_digits;
            }
            byte => bytes.push(*byte),
        }
    }
    Some(bytes)
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let mut value = 0u8;
    for digit in digits {
        let nibble = char::from(*digit).to_digit(16)?;
        value = (value << 4) | u8::try_from(nibble).ok()?;
    }
    Some(value)
}

fn decode_base64(payload: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut bit_count) = (0u32, 0u32);
    for character in payload {
        if *character == b'=' {
            break;
        }
        bits = ((bits << 6) | base64_value(*character)?) & 0xffff;
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from((bits >> bit_count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

fn base64_value(character: u8) -> Option<u32> {
    Some(u32::from(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::decode_header;

    #[test]
    fn decodes_what_git_writes() {
        let folded = "[PATCH] =?UTF-8?q?=C3=84nd=20a=20very?= =?UTF-8?q?=20long_one?=";
        assert_eq!(decode_header(folded).as_deref(), Some("[PATCH] Änd a very long one"));
        assert_eq!(decode_header("plain = text").as_deref(), Some("plain = text"));
        assert_eq!(decode_header("=?iso-8859-1?Q?=F6?= x").as_deref(), Some("ö x"));
        assert_eq!(decode_header("=?utf-8?B?SsO2cmc=?=").as_deref(), Some("Jörg"));
    }

    #[test]
    fn refuses_what_it_cannot_decode() {
        for bad in ["=?UTF-8?q?=C3?=", "=?koi8-r?q?a?=", "=?UTF-8?x?a?=", "=?UTF-8?q?=C", "=?"] {
            assert_eq!(decode_header(bad), None, "{bad}");
        }
    }
}
