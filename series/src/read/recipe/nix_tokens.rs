//! The tokens of a Nix expression, as far as they concern bindings and strings.

/// A token and its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Number of the line where it begins, from 1.
    pub line: usize,
    /// The token.
    pub kind: Kind,
}

/// A token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a path or a number.
    Word(String),
    /// A string without its quotes; `${...}` as written.
    Text(String),
    /// A bracket, `=` or another sign.
    Sign(char),
}

/// Splits a text into tokens; the second part is the line of a string that is not closed.
pub(super) fn tokens_of(text: &str) -> (Vec<Token>, Option<usize>) {
    let mut scanner = Scanner { rest: text, line: 1, unclosed: None };
    let mut tokens = Vec::new();
    while let Some(token) = scanner.token() {
        tokens.push(token);
    }
    (tokens, scanner.unclosed)
}

struct Scanner<'t> {
    rest: &'t str,
    line: usize,
    unclosed: Option<usize>,
}

/// Signs of two characters: an `=` in them binds nothing.
const PAIRS: [&str; 4] = ["==", "!=", "<=", ">="];

impl<'t> Scanner<'t> {
    /// Skips `length` bytes and returns them.
    fn skip(&mut self, length: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    fn token(&mut self) -> Option<Token> {
        self.skip_blanks();
        let line = self.line;
        let kind = if self.rest.starts_with("''") {
            self.skip(2);
            Kind::Text(self.indented())
        } else if self.rest.starts_with('"') {
            self.skip(1);
            Kind::Text(self.quoted())
        } else {
            let word = self.word();
            let first = self.rest.chars().next();
            match first.filter(|_| word.is_empty()) {
                Some(sign) if PAIRS.iter().any(|pair| self.rest.starts_with(*pair)) => {
                    self.skip(2);
                    Kind::Sign(if sign == '=' { '!' } else { sign })
                }
                Some(sign) => {
                    self.skip(sign.len_utf8());
                    Kind::Sign(sign)
                }
                None if word.is_empty() => return None,
                None => Kind::Word(word),
            }
        };
        Some(Token { line, kind })
    }

    fn skip_blanks(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.skip(blank);
            if self.rest.starts_with('#') {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.skip(self.rest.find("*/").map_or(self.rest.len(), |at| at + 2));
            } else {
                return;
            }
        }
    }

    /// Reads a name or a path; an expression in a path is kept as written.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.rest.chars().next() {
            if self.rest.starts_with("${") && !word.is_empty() {
                word += self.expression();
            } else if letter.is_alphanumeric() || "_-./+~".contains(letter) {
                word += self.skip(letter.len_utf8());
            } else if letter == '\'' && !word.is_empty() && !self.rest.starts_with("''") {
                word += self.skip(1);
            } else {
                break;
            }
        }
        word
    }

    /// Reads `${...}`.
    fn expression(&mut self) -> &'t str {
        let mut depth = 0usize;
        for (at, letter) in self.rest.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 1 => return self.skip(at + 1),
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        self.unclosed = self.unclosed.or(Some(self.line));
        self.skip(self.rest.len())
    }

    /// Reads the rest of a string in `"`.
    fn quoted(&mut self) -> String {
        let begin = self.line;
        let mut text = String::new();
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                '"' => {
                    self.skip(1);
                    return text;
                }
                '$' if self.rest.starts_with("${") => text += self.expression(),
                '\\' => {
                    self.skip(1);
                    let escaped = self.rest.chars().next();
                    self.skip(escaped.map_or(0, char::len_utf8));
                    text.extend(escaped.map(|letter| match letter {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    }));
                }
                letter => text += self.skip(letter.len_utf8()),
            }
        }
        self.unclosed = self.unclosed.or(Some(begin));
        text
    }

    /// Reads the rest of a string in `''`.
    fn indented(&mut self) -> String {
        let begin = self.line;
        let mut text = String::new();
        while let Some(letter) = self.rest.chars().next() {
            if let Some(after) = self.rest.strip_prefix("''") {
                self.skip(2);
                // `''$`, `'''` and `''\n` are escapes.
                match after.chars().next() {
                    Some('$') => text += self.skip(1),
                    Some('\'') => {
                        self.skip(1);
                        text += "''";
                    }
                    Some('\\') => {
                        text += self.skip(after.chars().nth(1).map_or(1, |next| 1 + next.len_utf8()))
                    }
                    _ => return text,
                }
            } else if self.rest.starts_with("${") {
                text += self.expression();
            } else {
                text += self.skip(letter.len_utf8());
            }
        }
        self.unclosed = self.unclosed.or(Some(begin));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, tokens_of};

    #[test]
    fn words_strings_and_signs() {
        let text = "{ lib, fetchpatch }: # a \"comment\n/* '' */\nrec {\n  a.patches = [ ./x-${v}.patch <nixpkgs> ];\n  b' = c == \"d\\\"${e \"f\"}\";\n\
                    prePatch = ''\n    echo ''${x} '''q''' \"${./y.patch}\"\n  '';\n}\n";
        let (tokens, unclosed) = tokens_of(text);
        let shown: Vec<String> = tokens
            .into_iter()
            .map(|token| match token.kind {
                Kind::Word(word) => format!("{}:{word}", token.line),
                Kind::Text(text) => format!("{}:{text:?}", token.line),
                Kind::Sign(sign) => sign.to_string(),
            })
            .collect();
        let wanted = "{ 1:lib , 1:fetchpatch } : 3:rec { 4:a.patches = [ 4:./x-${v}.patch < 4:nixpkgs > ] ; 5:b' = 5:c ! \
                      5:\"d\\\"${e \\\"f\\\"}\" ; 6:prePatch = 6:\"\\n    echo ${x} ''q'' \\\"${./y.patch}\\\"\\n  \" ; }";
        assert_eq!(shown.join(" "), wanted);
        assert_eq!(unclosed, None);
    }

    #[test]
    fn the_line_of_an_open_string_is_known() {
        for (text, line) in [("a\n\"b", Some(2)), ("''a\n", Some(1)), ("\"${a", Some(1)), ("/* a", None)] {
            assert_eq!(tokens_of(text).1, line, "{text}");
        }
    }
}
