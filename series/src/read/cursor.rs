//! The lines of a patch file, one after the other, with their numbers.

use super::parse_error::{ParseError, Refusal};
use crate::model::lines::split_inclusive;

/// Largest line number or line count that is accepted.
pub(crate) const NUMBER_LIMIT: usize = 10_000_000;
/// Digits are counted before a number is parsed, so that it cannot overflow.
const DIGIT_LIMIT: usize = 9;

/// One line of the patch file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawLine<'a> {
    /// The line without its line feed.
    pub bytes: &'a [u8],
    /// Line number, from 1.
    pub number: usize,
    /// Whether a line feed followed it. Only the last line of a file can lack one.
    pub has_line_feed: bool,
}

impl RawLine<'_> {
    /// Creates the error for a refusal of this line.
    pub fn refused(&self, refusal: Refusal, expected: &str) -> ParseError {
        ParseError::new(self.number, refusal, self.bytes, expected)
    }
}

/// Reads a patch file line by line, with one line of look-ahead.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    ahead: Option<RawLine<'a>>,
    next_number: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a [u8]) -> Cursor<'a> {
        let mut cursor = Cursor { rest: text, ahead: None, next_number: 1 };
        cursor.read_ahead();
        cursor
    }

    /// Returns the next line without consuming it.
    pub fn peek(&self) -> Option<RawLine<'a>> {
        self.ahead
    }

    /// Returns the number of the next line; past the end, one more than the last line.
    pub fn line_number(&self) -> usize {
        self.ahead.map_or(self.next_number, |line| line.number)
    }

    /// Returns the next line without consuming it if it starts with `prefix`.
    pub fn peek_prefix(&self, prefix: &[u8]) -> Option<RawLine<'a>> {
        self.ahead.filter(|line| line.bytes.starts_with(prefix))
    }

    /// Consumes the next line.
    pub fn take(&mut self) -> Option<RawLine<'a>> {
        let line = self.ahead;
        self.read_ahead();
        line
    }

    /// Consumes the next line; at the end, refuses the patch as truncated.
    pub fn require(&mut self, expected: &str) -> Result<RawLine<'a>, ParseError> {
        let number = self.line_number();
        self.take().ok_or_else(|| ParseError::new(number, Refusal::TruncatedPatch, b"end of file", expected))
    }

    fn read_ahead(&mut self) {
        let (bytes, has_line_feed, rest) = split_line(self.rest);
        self.rest = rest;
        self.ahead = (has_line_feed || !bytes.is_empty()).then_some(RawLine {
            bytes,
            number: self.next_number,
            has_line_feed,
        });
        self.next_number += usize::from(self.ahead.is_some());
    }
}

/// Splits off the first line: without its line feed, whether it had one, and the rest.
fn split_line(text: &[u8]) -> (&[u8], bool, &[u8]) {
    let (line, rest) = split_inclusive(text);
    match line.strip_suffix(b"\n") {
        Some(bytes) => (bytes, true, rest),
        None => (line, false, rest),
    }
}

/// Reads a number of up to nine digits and at most 10,000,000.
pub(crate) fn number(digits: &[u8], line: &RawLine<'_>) -> Result<usize, ParseError> {
    let expected = "a line number or count";
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(line.refused(Refusal::BadHunkHeader, expected));
    }
    if digits.len() > DIGIT_LIMIT {
        return Err(line.refused(Refusal::NumberTooLarge, "at most 10000000"));
    }
    let value = digits.iter().fold(0usize, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    if value > NUMBER_LIMIT {
        return Err(line.refused(Refusal::NumberTooLarge, "at most 10000000"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{Cursor, number};
    use crate::read::parse_error::Refusal;

    #[test]
    fn numbers_lines_and_keeps_the_end() {
        let mut cursor = Cursor::new(b"a\n\nb");
        let lines: Vec<_> = std::iter::from_fn(|| cursor.take()).collect();
        let seen: Vec<_> = lines.iter().map(|l| (l.bytes, l.number, l.has_line_feed)).collect();
        assert_eq!(seen, [(&b"a"[..], 1, true), (b"", 2, true), (b"b", 3, false)]);
        assert_eq!(cursor.line_number(), 4);
        assert_eq!(cursor.require("x").unwrap_err().refusal, Refusal::TruncatedPatch);
    }

    #[test]
    fn refuses_absurd_numbers_by_name() {
        let line = Cursor::new(b"x").take().unwrap();
        let refusal = |digits: &[u8]| number(digits, &line).unwrap_err().refusal;
        assert_eq!(number(b"10000000", &line), Ok(10_000_000));
        assert_eq!(refusal(b"10000001"), Refusal::NumberTooLarge);
        assert_eq!(refusal(b"99999999999999999999999"), Refusal::NumberTooLarge);
        assert_eq!(refusal(b"-1"), Refusal::BadHunkHeader);
        assert_eq!(refusal(b""), Refusal::BadHunkHeader);
    }
}
