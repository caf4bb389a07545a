//! Percent encoding, of paths and of queries.

/// Parameters by name, in the order of the request.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn digit(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn decode(text: &[u8], plus: u8) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push(high << 4 | low);
                at += 3;
                continue;
            }
            (b'+', ..) => decoded.push(plus),
            // A `%` that encodes no byte stands for itself.
            (byte, ..) => decoded.push(byte),
        }
        at += 1;
    }
    decoded
}

/// Decodes a path or a part of one.
#[must_use]
pub fn path(text: &[u8]) -> Vec<u8> {
    decode(text, b'+')
}

/// Decodes a query.
#[must_use]
pub fn query(text: &str) -> Pairs {
    let parameters = text.split('&').filter(|parameter| !parameter.is_empty());
    let pair = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        (decode(name.as_bytes(), b' '), decode(value.as_bytes(), b' '))
    };
    parameters.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once_and_keeps_its_plus_signs() {
        assert_eq!(path(b"/a%2Fb+c%20d"), b"/a/b+c d");
        assert_eq!(path(b"/%2525"), b"/%25", "once");
        assert_eq!(path(b"%zz%4%"), b"%zz%4%", "no encoding");
    }

    #[test]
    fn a_query_keeps_order_and_repeated_names() {
        let pairs = query("a=1&b=%26+x&&a=2&flag&=v&e==");
        let expected: [(&[u8], &[u8]); 6] =
            [(b"a", b"1"), (b"b", b"& x"), (b"a", b"2"), (b"flag", b""), (b"", b"v"), (b"e", b"=")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_vec(), value.to_vec())));
        assert!(query("").is_empty());
    }
}
