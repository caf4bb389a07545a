//! The brackets of code, without those in comments and literals.

use memchr::memmem;

use super::language::Language;

/// Maximum length of the delimiter of a raw string in C++.
const DELIMITER_LIMIT: usize = 16;
/// Maximum length of an escape in a character literal, without its first two bytes: `'\u{1f600}'`.
const ESCAPE_LIMIT: usize = 8;
/// Maximum number of bytes behind a quote or a slash that are searched for a literal of JavaScript.
const SEARCH_LIMIT: usize = 1000;

/// The brackets of a line. Only those of a language with braces are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LineBrackets {
    /// The line, from 0, with the beginning of the comment or literal that this line begins in.
    pub within: Option<usize>,
    /// Whether it opens a brace, which it may close again.
    pub has_brace: bool,
    /// The opening braces less the closing ones.
    pub braces: i32,
    /// The opening parentheses less the closing ones.
    pub parentheses: i32,
}

/// Reads the brackets of each of `lines`, a whole text. A line of the preprocessor opens and closes none.
///
/// Comments and literals may take several lines. One that has no end is none: what looks like its beginning was misread,
/// so every line from there on is read by itself.
pub(crate) fn read_brackets(lines: &[&[u8]], language: Language) -> Vec<LineBrackets> {
    if language == Language::NotCode {
        return vec![LineBrackets::default(); lines.len()];
    }
    let mut reader = BracketReader { language, open: None };
    let mut read: Vec<LineBrackets> =
        lines.iter().enumerate().map(|(at, line)| reader.read(at, line)).collect();
    if let Some(open) = reader.open {
        read.truncate(open.line + 1);
        let misread = lines.iter().enumerate().skip(open.line + 1);
        read.extend(misread.map(|(at, line)| BracketReader { language, open: None }.read(at, line)));
    }
    read
}

/// Reads code from the top, line by line.
struct BracketReader {
    language: Language,
    open: Option<OpenLiteral>,
}

/// A comment or literal that the next line begins in.
struct OpenLiteral {
    /// The line with its beginning, from 0.
    line: usize,
    end: End,
}

/// The end of a comment or literal that may take several lines.
enum End {
    /// `*/`
    Comment,
    /// Quotes without a backslash before them.
    Quotes(&'static [u8]),
    /// The end of a raw string.
    Raw(Vec<u8>),
}

impl End {
    /// Returns the text behind the end, if `text` has it.
    fn behind<'l>(&self, text: &'l [u8]) -> Option<&'l [u8]> {
        let end: &[u8] = match self {
            End::Comment => b"*/",
            End::Quotes(quotes) => quotes,
            End::Raw(end) => end,
        };
        let slashes = |at: usize| text.get(..at).map_or(0, |before| trailing(before, b'\\'));
        let is_escaped = |at: &usize| matches!(self, End::Quotes(_)) && slashes(*at) % 2 == 1;
        let at = memmem::find_iter(text, end).find(|at| !is_escaped(at))?;
        text.get(at + end.len()..)
    }
}

impl BracketReader {
    /// Reads `line`, the next one, which is line `number` from 0.
    fn read(&mut self, number: usize, line: &[u8]) -> LineBrackets {
        let within = self.open.as_ref().map(|open| open.line);
        let mut found = LineBrackets { within, ..LineBrackets::default() };
        let mut rest = line;
        loop {
            if let Some(open) = &self.open {
                let Some(behind) = open.end.behind(rest) else { break };
                rest = behind;
                self.open = None;
            }
            let Some(at) = rest.iter().position(|byte| is_read(*byte)) else { break };
            let (before, after) = line.split_at(line.len() - rest.len() + at + 1);
            let (end, after) = read_token(self.language, before, after, &mut found);
            self.open = end.map(|end| OpenLiteral { line: number, end });
            rest = after;
        }
        let is_directive = within.is_none() && line.trim_ascii_start().starts_with(b"#");
        match self.language {
            Language::Braces if !is_directive => found,
            _ => LineBrackets { within, ..LineBrackets::default() },
        }
    }
}

/// The end of the comment or literal that a token begins if that may take several lines, and the text behind the token.
type Token<'l> = (Option<End>, &'l [u8]);

/// Reads the token that begins with the last byte of `before`; `after` is the text behind that byte.
fn read_token<'l>(language: Language, before: &[u8], after: &'l [u8], found: &mut LineBrackets) -> Token<'l> {
    match language {
        Language::Braces => read_token_of_braces(before, after, found),
        _ => read_token_of_indentation(before, after),
    }
}

fn read_token_of_indentation<'l>(before: &[u8], after: &'l [u8]) -> Token<'l> {
    match before.last() {
        Some(b'"') if after.starts_with(b"\"\"") => long(End::Quotes(b"\"\"\""), after, 2),
        Some(b'\'') if after.starts_with(b"''") => long(End::Quotes(b"'''"), after, 2),
        Some(quote @ (b'"' | b'\'')) => (None, after_string(after, *quote)),
        Some(b'#') => (None, &[]),
        _ => (None, after),
    }
}

fn read_token_of_braces<'l>(before: &[u8], after: &'l [u8], found: &mut LineBrackets) -> Token<'l> {
    let Some((first, before)) = before.split_last() else { return (None, after) };
    match first {
        b'{' => {
            found.braces += 1;
            found.has_brace = true;
        }
        b'}' => found.braces -= 1,
        b'(' => found.parentheses += 1,
        b')' => found.parentheses -= 1,
        b'/' if after.starts_with(b"/") => return (None, &[]),
        b'/' if after.starts_with(b"*") => return long(End::Comment, after, 1),
        b'/' => return (None, after_pattern(before, after)),
        // Go and JavaScript.
        b'`' => return long(End::Quotes(b"`"), after, 0),
        b'"' => {
            return match end_of_raw_string(before, after) {
                Some(end) => long(End::Raw(end), after, 0),
                None => (None, after_string(after, b'"')),
            };
        }
        b'\'' => return (None, after_character(after)),
        _ => {}
    }
    (None, after)
}

/// Returns the token of a comment or literal up to `end`, of which `length` bytes of `after` are the beginning.
fn long(end: End, after: &[u8], length: usize) -> Token<'_> {
    (Some(end), after.get(length..).unwrap_or_default())
}

/// Returns whether a byte can be a bracket, or begin a comment or a literal.
fn is_read(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'(' | b')' | b'/' | b'`' | b'"' | b'\'' | b'#')
}

/// Returns the number of bytes at the end of `text` that are `wanted`.
fn trailing(text: &[u8], wanted: u8) -> usize {
    text.iter().rev().take_while(|byte| **byte == wanted).count()
}

/// Returns the end of a raw string of C++ or Rust whose quote is between `before` and `after`.
fn end_of_raw_string(before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let hashes = trailing(before, b'#');
    let prefix = before.get(..before.len() - hashes)?;
    match prefix.rsplit(|byte| !is_of_word(byte)).next()? {
        b"r" | b"br" | b"cr" => Some([&b"\""[..], &b"#".repeat(hashes)].concat()),
        b"R" | b"LR" | b"uR" | b"UR" | b"u8R" if hashes == 0 => {
            let length = after.iter().take(DELIMITER_LIMIT + 1).position(|byte| *byte == b'(')?;
            let delimiter = after.get(..length).filter(|delimiter| !delimiter.contains(&b'"'))?;
            Some([&b")"[..], delimiter, b"\""].concat())
        }
        _ => None,
    }
}

/// Returns the text behind a string up to `quote`. One that has no end takes the whole line.
fn after_string(text: &[u8], quote: u8) -> &[u8] {
    let mut rest = text;
    loop {
        match rest {
            [] => return rest,
            [first, after @ ..] if *first == quote => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
        }
    }
}

/// Returns the text behind a regular expression of JavaScript, whose slash is between `before` and `after`. Any other
/// slash divides, and begins nothing.
fn after_pattern<'l>(before: &[u8], after: &'l [u8]) -> &'l [u8] {
    if before.trim_ascii_end().last().is_none_or(|byte| !b"(,=:[!&|?".contains(byte)) {
        return after;
    }
    let (mut is_in_class, mut is_escaped) = (false, false);
    for (at, byte) in after.iter().enumerate().take(SEARCH_LIMIT) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            b'/' if !is_in_class => return after.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    after
}

/// Returns the text behind a character literal, whose quote is before `text`. Any other quote, such as that of a
/// lifetime or between digits, begins nothing, unless a backtick in the line shows that it is a string of JavaScript.
fn after_character(text: &[u8]) -> &[u8] {
    let near = text.get(..SEARCH_LIMIT).unwrap_or(text);
    let code = memmem::find(near, b"//").and_then(|at| near.get(..at)).unwrap_or(near);
    match text {
        _ if code.contains(&b'`') => after_string(text, b'\''),
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
    use super::{LineBrackets, read_brackets};
    use crate::text::language::Language;

    fn read(lines: &[&str], language: Language) -> Vec<LineBrackets> {
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        read_brackets(&lines, language)
    }

    fn balances(lines: &[&str]) -> Vec<(i32, i32)> {
        let read = read(lines, Language::Braces);
        read.into_iter().map(|LineBrackets { braces, parentheses, .. }| (braces, parentheses)).collect()
    }

    fn within(lines: &[&str], language: Language) -> Vec<bool> {
        read(lines, language).into_iter().map(|line| line.within.is_some()).collect()
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
            ("f(u8R\"({)\", r#\"{\"}\"#, br\"\\\", b) {", (1, 0)),
            ("f(FOR\"(\", a) {", (1, 0)),
            ("g(a, /[{/]\\/{`/, b / c) {", (1, 0)),
            ("f('```{', `'`, '{', x) {", (1, 0)),
            ("f('', '{' ? `{`: x) { // `", (1, 0)),
            ("f(`\\`{\\\\`) {", (1, 0)),
            ("fn f<'a>(x: &'a str) { // `", (1, 0)),
        ] {
            assert_eq!(balances(&[line]), [balance], "{line}");
        }
    }

    #[test]
    fn comments_and_raw_strings_take_several_lines() {
        assert_eq!(balances(&["/* {", "{ it's", "} */ }", "{"]), [(0, 0), (0, 0), (-1, 0), (1, 0)]);
        assert_eq!(balances(&["x = R\"({", "  \"a\": 1", "})\");", "{"]), [(0, 0), (0, 0), (0, -1), (1, 0)]);
        assert_eq!(balances(&["x = `${", "a {", "}`; {"]), [(0, 0), (0, 0), (1, 0)]);
        assert_eq!(balances(&["f(r#\"{", "\"{\"", "\"#); {"]), [(0, 1), (0, 0), (1, -1)]);
        assert_eq!(within(&["/* a */ /*", "b", "*/", "c"], Language::Braces), [false, true, true, false]);
    }

    #[test]
    fn lines_of_the_preprocessor_open_and_close_nothing() {
        assert_eq!(balances(&["# define BEGIN {", "#if f(", "{"]), [(0, 0), (0, 0), (1, 0)]);
        assert_eq!(within(&["#endif /* a", "b", "*/", "c"], Language::Braces), [false, true, true, false]);
    }

    #[test]
    fn strings_in_three_quotes_take_several_lines() {
        let python =
            ["x = \"#\" + '''a", "# \"\"\"", "''' # '''", "y = 'a\"\"\"s {'", "f(\"\"\"", "\"\"\")", "z"];
        let expected = [false, true, true, false, false, true, false];
        assert_eq!(within(&python, Language::Indentation), expected);
        assert!(read(&python, Language::Indentation).iter().all(|line| line.braces == 0));
        assert_eq!(within(&python, Language::NotCode), [false; 7]);
    }

    #[test]
    fn a_literal_without_an_end_is_none() {
        let lines = ["/* a", "*/", "s/`/x/ {", "a {", "/* b", "*/ c {"];
        assert_eq!(balances(&lines), [(0, 0), (0, 0), (0, 0), (1, 0), (0, 0), (1, 0)]);
        assert_eq!(within(&lines, Language::Braces), [false, true, false, false, false, false]);
    }
}
