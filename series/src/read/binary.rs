//! `GIT binary patch`: base 85 lines around a zlib stream, for each direction.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::cursor::{Cursor, RawLine};
use super::parse_error::{ParseError, Refusal};
use crate::model::delta::delta_sizes;
use crate::model::patch::{BinaryHalf, BinaryPatch};

/// The alphabet git uses for base 85.
const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Reads both halves, after the line `GIT binary patch`.
///
/// `budget` is the number of bytes left for all binary content of the patch, results of deltas included.
pub(crate) fn read_binary_patch(
    cursor: &mut Cursor<'_>,
    budget: &mut u64,
) -> Result<BinaryPatch, ParseError> {
    let forward = read_half(cursor, budget)?;
    let has_reverse = is_half(cursor.peek());
    let reverse = has_reverse.then(|| read_half(cursor, budget)).transpose()?;
    Ok(BinaryPatch { forward, reverse })
}

fn is_half(line: Option<RawLine<'_>>) -> bool {
    line.is_some_and(|line| line.bytes.starts_with(b"literal ") || line.bytes.starts_with(b"delta "))
}

fn read_half(cursor: &mut Cursor<'_>, budget: &mut u64) -> Result<BinaryHalf, ParseError> {
    let line = cursor.require("`literal <size>` or `delta <size>`")?;
    let (is_delta, stated_size) = half_header(&line)?;
    let compressed = read_base85_lines(cursor)?;
    let bytes = inflate(&compressed, stated_size, budget, &line)?;
    if !is_delta {
        return Ok(BinaryHalf::Literal(bytes));
    }
    let malformed = || line.refused(Refusal::BadBinaryPatch, "a git delta");
    let (_, result_size) = delta_sizes(&bytes).ok_or_else(malformed)?;
    spend(budget, result_size, &line)?;
    Ok(BinaryHalf::Delta(bytes))
}

fn half_header(line: &RawLine<'_>) -> Result<(bool, u64), ParseError> {
    let bad = || line.refused(Refusal::BadBinaryPatch, "`literal <size>` or `delta <size>`");
    let (is_delta, size) = match line.bytes.strip_prefix(b"literal ") {
        Some(size) => (false, size),
        None => (true, line.bytes.strip_prefix(b"delta ").ok_or_else(bad)?),
    };
    if size.is_empty() || !size.iter().all(u8::is_ascii_digit) {
        return Err(bad());
    }
    let text = std::str::from_utf8(size).map_err(|_| bad())?;
    let size = text.parse().map_err(|_| line.refused(Refusal::BinaryTooLarge, "at most 256 MiB"))?;
    Ok((is_delta, size))
}

fn spend(budget: &mut u64, size: u64, line: &RawLine<'_>) -> Result<(), ParseError> {
    *budget = budget
        .checked_sub(size)
        .ok_or_else(|| line.refused(Refusal::BinaryTooLarge, "at most 256 MiB in one patch"))?;
    Ok(())
}

/// Inflates at most `stated_size` bytes; the buffer grows with the actual output.
fn inflate(
    compressed: &[u8],
    stated_size: u64,
    budget: &mut u64,
    line: &RawLine<'_>,
) -> Result<Vec<u8>, ParseError> {
    spend(budget, stated_size, line)?;
    let mut bytes = Vec::new();
    let mut decoder = ZlibDecoder::new(compressed).take(stated_size.saturating_add(1));
    let inflated = decoder.read_to_end(&mut bytes);
    let consumed_all = decoder.into_inner().total_in() == compressed.len() as u64;
    let is_right_size = bytes.len() as u64 == stated_size;
    if inflated.is_err() || !is_right_size || !consumed_all {
        let expected = "a zlib stream of exactly the stated size";
        return Err(line.refused(Refusal::BadBinaryPatch, expected));
    }
    Ok(bytes)
}

/// Reads base 85 lines up to the blank line that ends a half.
fn read_base85_lines(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ParseError> {
    let mut bytes = Vec::new();
    loop {
        let line = cursor.require("a base 85 line, or the blank line after the last one")?;
        if line.bytes.is_empty() && line.has_line_feed {
            return Ok(bytes);
        }
        decode_line(line.bytes, &mut bytes).ok_or_else(|| {
            line.refused(Refusal::BadBinaryPatch, "a length letter and groups of five base 85 digits")
        })?;
    }
}

/// Appends one line: a letter for the number of bytes (`A` is 1, `z` is 52), then groups of five
/// digits for four bytes each, the last group padded.
fn decode_line(line: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    let (letter, digits) = line.split_first()?;
    let mut left = match letter {
        b'A'..=b'Z' => usize::from(letter - b'A') + 1,
        b'a'..=b'z' => usize::from(letter - b'a') + 27,
        _ => return None,
    };
    if digits.len() != left.div_ceil(4) * 5 {
        return None;
    }
    for group in digits.chunks(5) {
        let word = decode_group(group)?.to_be_bytes();
        let used = left.min(4);
        bytes.extend_from_slice(word.get(..used)?);
        left -= used;
    }
    Some(())
}

fn decode_group(group: &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for digit in group {
        let worth = ALPHABET.iter().position(|known| known == digit)?;
        value = value.checked_mul(85)?.checked_add(u32::try_from(worth).ok()?)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{decode_line, read_binary_patch};
    use crate::model::patch::BinaryHalf;
    use crate::read::cursor::Cursor;
    use crate::read::parse_error::Refusal;

    /// Output of git 2.47 for a file that goes from the 5 bytes `\0abc\n` to nothing.
    const REMOVED: &str = "literal 0\nHcmV?d00001\n\nliteral 5\nMcmZQbOiJbg00VykF#rGn\n\n";

    fn refusal(text: &str, mut budget: u64) -> Refusal {
        read_binary_patch(&mut Cursor::new(text.as_bytes()), &mut budget).unwrap_err().refusal
    }

    #[test]
    fn reads_what_git_wrote() {
        let mut budget = 1000;
        let patch = read_binary_patch(&mut Cursor::new(REMOVED.as_bytes()), &mut budget).unwrap();
        assert_eq!(patch.forward, BinaryHalf::Literal(Vec::new()));
        assert_eq!(patch.reverse, Some(BinaryHalf::Literal(b"\0abc\n".to_vec())));
        assert_eq!(budget, 995);
    }

    #[test]
    fn refuses_each_by_its_own_name() {
        assert_eq!(refusal("literal 0\nHcmV?d00001\n", 9), Refusal::TruncatedPatch);
        assert_eq!(refusal("literal 1\nHcmV?d00001\n\n", 9), Refusal::BadBinaryPatch);
        assert_eq!(refusal("literal 10\nHcmV?d00001\n\n", 9), Refusal::BinaryTooLarge);
        assert_eq!(refusal("literal 99999999999999999999999\n", 9), Refusal::BinaryTooLarge);
        assert_eq!(refusal("literal -1\n", 9), Refusal::BadBinaryPatch);
        assert_eq!(refusal("weird 1\n", 9), Refusal::BadBinaryPatch);
        assert_eq!(refusal("literal 0\nHcmV?d0000\n\n", 9), Refusal::BadBinaryPatch);
        assert_eq!(refusal("literal 0\n!cmV?d00001\n\n", 9), Refusal::BadBinaryPatch);
        assert_eq!(refusal("delta 0\nHcmV?d00001\n\n", 9), Refusal::BadBinaryPatch);
    }

    #[test]
    fn refuses_digits_past_four_bytes() {
        assert_eq!(decode_line(b"D~~~~~", &mut Vec::new()), None);
    }
}
