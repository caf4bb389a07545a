//! Parser for HTTP responses.

/// An HTTP response. The body may be truncated if the client disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body, with chunks joined.
    pub body: Vec<u8>,
    /// Whether the end of the body arrived.
    pub is_whole: bool,
}

/// Parses a response; `None` if its head is incomplete.
pub fn decode(bytes: &[u8]) -> Option<Reply> {
    let end = find(bytes, b"\r\n\r\n")?;
    let head = espalier_series::lossy(&bytes[..end]).to_lowercase();
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let rest = &bytes[end + 4..];
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let (body, is_whole) = match (head.contains("transfer-encoding: chunked"), length) {
        (true, _) => join_chunks(rest),
        (false, Some(length)) => (rest.to_vec(), rest.len() >= length),
        (false, None) => (rest.to_vec(), true),
    };
    Some(Reply { status, body, is_whole })
}

fn join_chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = find(rest, b"\r\n") {
        let size = usize::from_str_radix(espalier_series::lossy(&rest[..line]).trim(), 16);
        let Ok(size) = size else { break };
        if size == 0 {
            return (body, true);
        }
        let chunk = &rest[line + 2..];
        body.extend_from_slice(&chunk[..size.min(chunk.len())]);
        if chunk.len() < size + 2 {
            break;
        }
        rest = &chunk[size + 2..];
    }
    (body, false)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_and_a_cut_answer_is_not_whole() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let reply = decode(bytes).unwrap();
        assert_eq!((reply.status, &reply.body[..], reply.is_whole), (200, &b"abcde"[..], true));
        let cut = decode(&bytes[..bytes.len() - 7]).unwrap();
        assert_eq!((&cut.body[..], cut.is_whole), (&b"abcde"[..], false));
        assert_eq!(decode(b"HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn a_length_says_when_it_is_whole() {
        let reply = decode(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!((reply.status, reply.is_whole), (400, true));
        assert!(!decode(b"HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\n{}").unwrap().is_whole);
    }
}
