//! git's binary delta: copies from the old content and inserts of new bytes.

/// Reads the sizes that a delta states: of its source, and of its result.
pub(crate) fn delta_sizes(delta: &[u8]) -> Option<(u64, u64)> {
    let (source, rest) = size(delta)?;
    let (result, _) = size(rest)?;
    Some((source, result))
}

/// Applies `delta` to `source`.
///
/// `None` when the delta is malformed, copies from outside of `source`, or does not yield
/// exactly the size that it states. Memory never exceeds that size.
pub(crate) fn apply_delta(source: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (source_size, rest) = size(delta)?;
    let (result_size, mut rest) = size(rest)?;
    if source_size != source.len() as u64 {
        return None;
    }
    let mut result = Vec::new();
    while let Some((command, after)) = rest.split_first() {
        let (piece, after) = match command {
            0 => return None,
            1..=127 => after.split_at_checked(usize::from(*command))?,
            _ => copied(source, *command, after)?,
        };
        if (result.len() + piece.len()) as u64 > result_size {
            return None;
        }
        result.extend_from_slice(piece);
        rest = after;
    }
    (result.len() as u64 == result_size).then_some(result)
}

/// Reads a size in groups of seven bits, lowest first; the high bit means that another group follows.
fn size(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut rest = bytes;
    for shift in (0..63).step_by(7) {
        let (byte, after) = rest.split_first()?;
        rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
    }
    None
}

/// Returns the bytes of a copy command. Its low four bits indicate which offset bytes follow, the next three which
/// length bytes; a length of zero means 65536.
fn copied<'a>(source: &'a [u8], command: u8, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (offset, rest) = sparse_number(command & 0x0f, bytes)?;
    let (length, rest) = sparse_number((command >> 4) & 0x07, rest)?;
    let length = if length == 0 { 0x1_0000 } else { length };
    let end = offset.checked_add(length)?;
    Some((source.get(offset..end)?, rest))
}

/// Reads a little-endian integer whose zero bytes are left out; `present` has a bit for each byte.
fn sparse_number(present: u8, bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0usize;
    let mut rest = bytes;
    for position in 0..4 {
        if present & (1 << position) != 0 {
            let (byte, after) = rest.split_first()?;
            value |= usize::from(*byte) << (8 * position);
            rest = after;
        }
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::{apply_delta, delta_sizes};

    #[test]
    fn copies_and_inserts() {
        let delta = [6, 7, 0x91, 2, 3, 3, b'x', b'y', b'z', 0x90, 1];
        assert_eq!(delta_sizes(&delta), Some((6, 7)));
        assert_eq!(apply_delta(b"abcdef", &delta).as_deref(), Some(&b"cdexyza"[..]));
    }

    #[test]
    fn refuses_what_is_malformed() {
        let cases: [&[u8]; 8] = [
            &[],
            &[6],
            &[5, 1, 0x90, 1],    // another source size
            &[6, 9, 0x90, 1],    // result too short
            &[6, 0, 0x90, 1],    // result too long
            &[6, 3, 0x91, 5, 3], // copies past the end
            &[6, 1, 0],          // reserved command
            &[6, 5, 5, b'a'],    // insert past the end
        ];
        for delta in cases {
            assert_eq!(apply_delta(b"abcdef", delta), None, "{delta:?}");
        }
        assert_eq!(delta_sizes(&[0xff; 12]), None);
    }
}
