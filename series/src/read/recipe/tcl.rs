//! The commands of a Tcl text: their words without quotes and outer braces, variables as written. Nothing is executed.

/// A command of a Tcl text.
pub(super) struct Command {
    /// Number of the line where it begins, from 1.
    pub line: usize,
    /// Its words, of which the first one is its name.
    pub words: Vec<Word>,
}

/// A word of a command.
pub(super) struct Word {
    /// Number of the line where it begins.
    pub line: usize,
    /// The text. That of a word in braces may be a script of its own.
    pub text: String,
}

impl Command {
    /// Returns the words after the name.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns the first line of the command, for messages.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        words.join(" ").lines().next().unwrap_or_default().trim().to_owned()
    }
}

/// Reads the commands of a Tcl text, one after the other.
pub(super) struct Commands<'t> {
    rest: &'t str,
    line: usize,
    /// The line of a quote, bracket or brace that is not closed.
    pub unclosed: Option<usize>,
}

impl<'t> Commands<'t> {
    /// Prepares to read `text`, which begins at `line` of the recipe.
    pub fn of(text: &'t str, line: usize) -> Commands<'t> {
        Commands { rest: text, line, unclosed: None }
    }

    /// Returns the next command.
    pub fn next_command(&mut self) -> Option<Command> {
        while !self.rest.is_empty() {
            self.skip_while(|letter| letter.is_whitespace() || letter == ';');
            if self.rest.starts_with('#') {
                self.skip_comment();
                continue;
            }
            let line = self.line;
            let mut words = Vec::new();
            while let Some(word) = self.word() {
                words.push(word);
            }
            if !words.is_empty() {
                return Some(Command { line, words });
            }
        }
        None
    }

    /// Skips `length` bytes and returns them.
    fn skip(&mut self, length: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    fn skip_while(&mut self, is_skipped: impl Fn(char) -> bool) {
        let length = self.rest.find(|letter: char| !is_skipped(letter)).unwrap_or(self.rest.len());
        self.skip(length);
    }

    /// Skips a comment: the line, and those after it while a line ends in a backslash.
    fn skip_comment(&mut self) {
        let mut is_escaped = false;
        let end = self.rest.find(|letter: char| {
            let is_end = letter == '\n' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        });
        self.skip(end.unwrap_or(self.rest.len()));
    }

    /// Returns the next word of a command; none at its end.
    fn word(&mut self) -> Option<Word> {
        let is_blank = |letter: char| letter.is_whitespace() && letter != '\n';
        self.skip_while(is_blank);
        while self.rest.starts_with("\\\n") {
            self.skip(2);
            self.skip_while(is_blank);
        }
        let line = self.line;
        let mut text = match self.rest.chars().next()? {
            '\n' | ';' => return None,
            '{' => self.braced(),
            '"' => self.quoted(),
            _ => String::new(),
        };
        self.append_bare(&mut text);
        Some(Word { line, text })
    }

    /// Reads a text in braces, and returns it without them.
    fn braced(&mut self) -> String {
        let length = self.length_of(0, '{', '}');
        let whole = self.skip(length);
        let inner = whole.strip_prefix('{').unwrap_or(whole);
        inner.strip_suffix('}').unwrap_or(inner).to_owned()
    }

    /// Reads a text in quotes, and returns it without them.
    fn quoted(&mut self) -> String {
        let line = self.line;
        self.skip(1);
        let mut is_escaped = false;
        let end = self.rest.find(|letter: char| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        });
        if end.is_none() {
            self.unclosed = self.unclosed.or(Some(line));
        }
        let text = self.skip(end.unwrap_or(self.rest.len())).replace("\\\n", " ");
        self.skip(1);
        text
    }

    /// Appends the letters up to the next space or the end of the command to `text`. A command in brackets and a name
    /// in braces are part of the word.
    fn append_bare(&mut self, text: &mut String) {
        while let Some(letter) = self.rest.chars().next() {
            let length = match letter {
                ';' => break,
                _ if letter.is_whitespace() || self.rest.starts_with("\\\n") => break,
                '[' => self.length_of(0, '[', ']'),
                '$' if self.rest.starts_with("${") => self.length_of(1, '{', '}'),
                '\\' => 1 + self.rest.chars().nth(1).map_or(0, char::len_utf8),
                _ => letter.len_utf8(),
            };
            text.push_str(self.skip(length));
        }
    }

    /// Returns the length of the text up to the bracket that closes the one at `offset`; all of it if none does.
    fn length_of(&mut self, offset: usize, open: char, close: char) -> usize {
        let inner = self.rest.get(offset..).unwrap_or_default();
        match closing(inner, open, close) {
            Some(end) => offset + end + close.len_utf8(),
            None => {
                self.unclosed = self.unclosed.or(Some(self.line));
                self.rest.len()
            }
        }
    }
}

/// Returns the place of the bracket that closes the first one of `text`.
fn closing(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0usize;
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if letter == '\\' {
            is_escaped = true;
        } else if letter == open {
            depth += 1;
        } else if letter == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}
