//! The brackets of code, without those in comments and literals.

use memchr::memmem;

/// Maximum length of the delimiter of a raw string in C++.
const DELIMITER_LIMIT: usize = 16;
/// Maximum length of an escape in a character literal, without its first two bytes: `'\u{1f600}'`.
const ESCAPE_LIMIT: usize = 8;

/// The opening brackets of a line less the closing ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Balance {
    pub braces: isize,
    pub parentheses: isize,
}

/// Reads code from the top, line by line: comments and literals may take several lines.
#[derive(Default)]
pub(crate) struct BracketCounter {
    /// The end of the comment or literal that the next line begins in.
    until: Option<Vec<u8>>,
}

impl BracketCounter {
    /// Returns whether the next line begins in a comment or a literal.
    pub fn is_within(&self) -> bool {
        self.until.is_some()
    }

    /// Counts the brackets of `line`, the next one.
    pub fn count(&mut self, line: &[u8]) -> Balance {
        let mut balance = Balance::default();
        let mut rest = line;
        loop {
            if let Some(end) = &self.until {
                let Some(at) = memmem::find(rest, end) else { return balance };
                rest = rest.get(at + end.len()..).unwrap_or_default();
                self.until = None;
            }
            let Some((first, mut after)) = rest.split_first() else { return balance };
            match first {
                b'{' => balance.braces += 1,
                b'}' => balance.braces -= 1,
                b'(' => balance.parentheses += 1,
                b')' => balance.parentheses -= 1,
                b'/' if after.starts_with(b"/") => return balance,
                b'/' if after.starts_with(b"*") => {
                    after = after.get(1..).unwrap_or_default();
                    self.until = Some(b"*/".to_vec());
                }
                // Go and JavaScript.
                b'`' => self.until = Some(b"`".to_vec()),
                b'R' if after.starts_with(b"\"") => self.until = end_of_raw_string(after),
                b'"' => after = after_string(after),
                b'\'' => after = after_character(after),
                _ => {}
            }
            rest = after;
        }
    }
}

/// Returns the end of a raw string of C++, whose `R` is before `text`.
fn end_of_raw_string(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_prefix(b"\"")?;
    let length = text.iter().take(DELIMITER_LIMIT + 1).position(|byte| *byte == b'(')?;
    let delimiter = text.get(..length).filter(|delimiter| !delimiter.contains(&b'"'))?;
    Some([&b")"[..], delimiter, b"\""].concat())
}

/// Returns the text behind a string, whose quote is before `text`. One that has no end takes the whole line.
fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        match rest {
            [] => return rest,
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
        }
    }
}

/// Returns the text behind a character literal, whose quote is before `text`. Any other quote, such as that of a
/// lifetime or between digits, begins nothing.
fn after_character(text: &[u8]) -> &[u8] {
    match text {
        [b'\\', _, after @ ..] => {
            let end = after.iter().take(ESCAPE_LIMIT + 1).position(|byte| *byte == b'\'');
            end.and_then(|end| after.get(end + 1..)).unwrap_or(text)
        }
        [_, b'\'', after @ ..] => after,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Balance, BracketCounter};

    fn balances(lines: &[&str]) -> Vec<(isize, isize)> {
        let mut counter = BracketCounter::default();
        let balances = lines.iter().map(|line| counter.count(line.as_bytes()));
        balances.map(|Balance { braces, parentheses }| (braces, parentheses)).collect()
    }

    #[test]
    fn brackets_in_literals_and_comments_do_not_count() {
        for (line, balance) in [
            ("int f(int a,", (0, 1)),
            ("      int b) {", (1, -1)),
            ("} else {", (0, 0)),
            ("if (c == '{') {", (1, 0)),
            ("if (c == '\\'' || c == '}') {", (1, 0)),
            ("case '\\x7b': {", (1, 0)),
            ("print(\"{\\\"(\", x); // {", (0, 0)),
            ("print(\"{ no end", (0, 1)),
            ("fn f<'a>(x: &'a str, y: &'a str) -> A<'a> {", (1, 0)),
            ("int x = 1'000; {", (1, 0)),
            ("a /* { */ b {", (1, 0)),
            ("a /*/ { */ b", (0, 0)),
            ("f(R\"x({ \")\" ( )x\", y) {", (1, 0)),
        ] {
            assert_eq!(balances(&[line]), [balance], "{line}");
        }
    }

    #[test]
    fn comments_and_raw_strings_take_several_lines() {
        assert_eq!(balances(&["/* {", "{ it's", "} */ }", "{"]), [(0, 0), (0, 0), (-1, 0), (1, 0)]);
        assert_eq!(balances(&["x = R\"({", "  \"a\": 1", "})\");", "{"]), [(0, 0), (0, 0), (0, -1), (1, 0)]);
        assert_eq!(balances(&["x = `${", "a {", "}`; {"]), [(0, 0), (0, 0), (1, 0)]);
    }
}
