//! The commands of a shell text: their words without quotes, variables as written. Nothing is executed.

use std::collections::HashMap;

use super::pattern::{assignment_in, patch_in};
use crate::model::printable::printable;

/// One part of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Statement {
    /// `NAME=words`, `NAME=(words)` or `for NAME in words`.
    Assign {
        /// Name of the variable.
        name: String,
        /// Whether the words are added to its value.
        is_added: bool,
        /// The words.
        words: Vec<String>,
    },
    /// A command.
    Command(Command),
}

/// A command of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// Number of the line where it begins, from 1.
    pub line: usize,
    /// Its words, without quotes.
    pub words: Vec<String>,
    /// The file that its input is read from.
    pub input: Option<String>,
    /// The file, or the descriptor, that its output is written to.
    pub output: Option<String>,
    /// Whether its input is in the script, or the output of a substitution.
    pub has_text: bool,
    /// Whether its input is the output of the command before it.
    pub is_piped: bool,
}

impl Command {
    /// Returns it as one line for messages.
    pub fn text(&self) -> String {
        let input = self.input.as_ref().map(|input| format!(" < {input}")).unwrap_or_default();
        printable(format!("{}{input}", self.words.join(" ")).as_bytes())
    }

    /// Returns the same, with the file that its output is written to.
    pub fn whole_text(&self) -> String {
        let output = self.output.as_ref().map(|output| format!(" > {output}")).unwrap_or_default();
        format!("{}{}", self.text(), printable(output.as_bytes()))
    }
}

/// The statements of a shell text.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Statements outside of functions.
    pub top: Vec<Statement>,
    /// The body of each function.
    pub functions: HashMap<String, Vec<Statement>>,
    /// Words that name patches, in the order of the text.
    pub named: Vec<String>,
    /// The line of a quote or bracket that is not closed.
    pub unclosed: Option<usize>,
}

impl Script {
    /// Parses `text`.
    pub fn parse(text: &str) -> Script {
        let scanner = Scanner { rest: text, line: 1, documents: Vec::new(), unclosed: None };
        let mut parser = Parser {
            scanner,
            script: Script::default(),
            open: Vec::new(),
            functions: Vec::new(),
            declared: None,
            redirection: None,
            current: Command::default(),
        };
        while let Some((line, token)) = parser.scanner.token() {
            parser.take(line, token);
        }
        parser.end_command();
        Script { unclosed: parser.scanner.unclosed, ..parser.script }
    }

    /// Appends another script, which begins after line `line` of the file.
    pub fn append(&mut self, other: Script, line: usize) {
        let later = |mut statement: Statement| {
            if let Statement::Command(command) = &mut statement {
                command.line += line;
            }
            statement
        };
        self.top.extend(other.top.into_iter().map(later));
        for (name, body) in other.functions {
            self.functions.entry(name).or_default().extend(body.into_iter().map(later));
        }
        self.named.extend(other.named);
        self.unclosed = self.unclosed.or(other.unclosed.map(|unclosed| unclosed + line));
    }

    /// Appends `statement` to `function`, or to the statements outside of functions.
    pub fn push(&mut self, function: Option<&str>, statement: Statement) {
        let (words, input) = match &statement {
            Statement::Assign { words, .. } => (words, None),
            Statement::Command(command) => (&command.words, command.input.as_ref()),
        };
        let parts = words.iter().chain(input).flat_map(|word| word.split_whitespace());
        // `{a,b}.patch` and `{a.patch,b.patch}` name patches too.
        let is_patch = |part: &&str| patch_in(part.trim_end_matches('}')).is_some();
        self.named.extend(parts.filter(is_patch).map(str::to_owned));
        match function {
            Some(name) => self.functions.entry(name.to_owned()).or_default().push(statement),
            None => self.top.push(statement),
        }
    }
}

enum Token {
    Word(String),
    End,
    Pipe,
    Open,
    Close,
    Redirection(Redirection),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirection {
    /// `<`.
    File,
    /// `<<<`.
    Text,
    /// `<<`.
    Document,
    /// `>`.
    Output,
}

/// Splits a text into tokens.
struct Scanner<'t> {
    rest: &'t str,
    line: usize,
    /// Delimiters of the here-documents that begin at the next line.
    documents: Vec<String>,
    unclosed: Option<usize>,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = self.rest.get(letter.len_utf8()..).unwrap_or_default();
        self.line += usize::from(letter == '\n');
        Some(letter)
    }

    /// Skips `begin` without counting lines; returns whether the text begins with it.
    fn take(&mut self, begin: &str) -> bool {
        let rest = self.rest.strip_prefix(begin);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns the next token and its line.
    fn token(&mut self) -> Option<(usize, Token)> {
        loop {
            self.skip_blanks();
            let line = self.line;
            let token = match self.peek()? {
                '\n' => {
                    self.bump();
                    self.skip_documents();
                    Token::End
                }
                '&' if self.take("&>") => Token::Redirection(Redirection::Output),
                '|' if self.take("||") => Token::End,
                '|' => {
                    self.bump();
                    self.take("&");
                    Token::Pipe
                }
                '<' if self.take("<<<") => Token::Redirection(Redirection::Text),
                '<' if self.take("<<") => {
                    self.take("-");
                    Token::Redirection(Redirection::Document)
                }
                '>' => {
                    while self.take(">") || self.take("|") || self.take("&") {}
                    Token::Redirection(Redirection::Output)
                }
                letter @ (';' | '&' | '(' | ')' | '<') => {
                    self.bump();
                    match letter {
                        '(' => Token::Open,
                        ')' => Token::Close,
                        '<' => Token::Redirection(Redirection::File),
                        _ => Token::End,
                    }
                }
                _ => Token::Word(self.word()),
            };
            // A number before `>` or `<` is that of a descriptor.
            let is_descriptor = matches!(&token, Token::Word(word) if word.parse::<u8>().is_ok());
            if !(is_descriptor && matches!(self.peek(), Some('<' | '>'))) {
                return Some((line, token));
            }
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => {
                    self.bump();
                }
                Some('\\') if self.take("\\\r\n") || self.take("\\\n") => self.line += 1,
                Some('#') => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = self.rest.get(end..).unwrap_or_default();
                }
                _ => return,
            }
        }
    }

    /// Skips the here-documents that begin here.
    fn skip_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.documents) {
            let begin = self.line;
            loop {
                let Some(line) = self.rest.split_inclusive('\n').next() else {
                    self.unclosed = self.unclosed.or(Some(begin));
                    return;
                };
                self.rest = self.rest.get(line.len()..).unwrap_or_default();
                self.line += usize::from(line.ends_with('\n'));
                if line.trim() == delimiter {
                    break;
                }
            }
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self.peek() {
            match letter {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\'' | '"' | '`' => self.quoted(letter, &mut word),
                '$' | '%' => self.variable(&mut word),
                '\\' => {
                    self.bump();
                    word.extend(self.bump().filter(|letter| *letter != '\n'));
                }
                letter => {
                    word.push(letter);
                    self.bump();
                }
            }
        }
        word
    }

    /// Reads up to the closing quote. The quotes are left out, unless they stand for the output of a command.
    fn quoted(&mut self, quote: char, word: &mut String) {
        let begin = self.line;
        self.bump();
        word.extend((quote == '`').then_some(quote));
        while let Some(letter) = self.peek() {
            if letter == '$' && quote == '"' {
                self.variable(word);
                continue;
            }
            self.bump();
            match letter {
                letter if letter == quote => {
                    word.extend((quote == '`').then_some(quote));
                    return;
                }
                '\\' if quote == '"' => match self.bump() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                    Some(other) => word.extend(['\\', other]),
                },
                letter => word.push(letter),
            }
        }
        self.unclosed = self.unclosed.or(Some(begin));
    }

    /// Reads `$NAME`, or `${...}`, `$(...)` and `%{...}` with everything in the brackets.
    fn variable(&mut self, word: &mut String) {
        let begin = self.line;
        let sign = self.bump();
        word.extend(sign);
        let open = self.peek();
        let close = match open {
            Some('{') => '}',
            Some('(') if sign == Some('$') => ')',
            _ => return,
        };
        let mut depth = 0usize;
        while let Some(letter) = self.bump() {
            word.push(letter);
            if Some(letter) == open {
                depth += 1;
            } else if letter == close {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            } else if letter == '\\' {
                word.extend(self.bump());
            }
        }
        self.unclosed = self.unclosed.or(Some(begin));
    }
}

/// Builds statements from tokens.
struct Parser<'t> {
    scanner: Scanner<'t>,
    script: Script,
    /// The open braces, innermost last: whether they are those of a function.
    open: Vec<bool>,
    /// The functions whose bodies are open.
    functions: Vec<String>,
    /// The function whose body comes next.
    declared: Option<String>,
    /// A redirection whose file comes next.
    redirection: Option<Redirection>,
    /// The command as far as it has been read.
    current: Command,
}

/// Words of the shell's grammar that come before a command or end one.
const RESERVED: [&str; 12] =
    ["then", "do", "else", "elif", "if", "while", "until", "!", "time", "fi", "done", "esac"];

/// Commands that assign variables.
const DECLARATIONS: [&str; 5] = ["local", "export", "declare", "readonly", "typeset"];

impl Parser<'_> {
    fn take(&mut self, line: usize, token: Token) {
        let redirection = self.redirection.take();
        if !matches!(token, Token::Word(_)) {
            // `< <(command)`.
            self.current.has_text |= redirection.is_some_and(|it| it != Redirection::Output);
        }
        match token {
            Token::Word(word) => match redirection {
                Some(redirection) => self.redirect(redirection, word),
                None => self.word(line, word),
            },
            Token::End | Token::Close => self.end_command(),
            Token::Pipe => {
                self.end_command();
                self.current.is_piped = true;
            }
            Token::Open => self.open(line),
            Token::Redirection(redirection) => self.redirection = Some(redirection),
        }
    }

    fn redirect(&mut self, redirection: Redirection, word: String) {
        match redirection {
            Redirection::File => self.current.input = Some(word),
            Redirection::Text => self.current.has_text = true,
            Redirection::Document => {
                self.current.has_text = true;
                self.scanner.documents.push(word);
            }
            Redirection::Output => self.current.output = Some(word),
        }
    }

    fn word(&mut self, line: usize, word: String) {
        let first = self.current.words.first().map(String::as_str);
        match (first, word.as_str()) {
            (None, "{") => {
                let name = self.declared.take();
                self.begin(name);
            }
            (None, "}") => {
                if self.open.pop() == Some(true) {
                    self.functions.pop();
                }
            }
            (None, reserved) if RESERVED.contains(&reserved) => {}
            (Some("function"), "{") => {
                let name = self.current.words.get(1).cloned();
                self.current = Command::default();
                self.begin(name);
            }
            _ => {
                if first.is_none() {
                    self.current.line = line;
                }
                self.declared = None;
                self.current.words.push(word);
            }
        }
    }

    /// Begins the body of the function `name`, or a group of commands.
    fn begin(&mut self, name: Option<String>) {
        self.open.push(name.is_some());
        if let Some(name) = name {
            self.script.functions.entry(name.clone()).or_default();
            self.functions.push(name);
        }
    }

    /// Handles an opening bracket: of an array, of a function's definition, or of commands.
    fn open(&mut self, line: usize) {
        let array = self.current.words.last().and_then(|word| assignment_in(word));
        if let Some((name, is_added, "")) = array {
            let (name, is_added) = (name.to_owned(), is_added);
            let words = self.array(line);
            self.current = Command::default();
            return self.push(Statement::Assign { name, is_added, words });
        }
        self.scanner.skip_blanks();
        if !self.current.words.is_empty() && self.scanner.take(")") {
            let command = std::mem::take(&mut self.current);
            self.declared = command.words.into_iter().next_back();
        } else {
            self.end_command();
        }
    }

    /// Reads the words of an array up to its closing bracket.
    fn array(&mut self, line: usize) -> Vec<String> {
        let mut words = Vec::new();
        while let Some((_, token)) = self.scanner.token() {
            match token {
                Token::Word(word) => words.push(word),
                Token::Close => return words,
                _ => {}
            }
        }
        self.scanner.unclosed = self.scanner.unclosed.or(Some(line));
        words
    }

    fn end_command(&mut self) {
        let command = std::mem::take(&mut self.current);
        let words = &command.words;
        let Some(first) = words.first() else {
            // The command after a pipe may be on the next line.
            self.current.is_piped = command.is_piped;
            return;
        };
        if ["for", "select"].contains(&first.as_str()) {
            return self.begin_loop(words);
        }
        let declares = DECLARATIONS.contains(&first.as_str());
        let begin = usize::from(declares);
        let is_assignment =
            |word: &&String| assignment_in(word).is_some() || (declares && word.starts_with('-'));
        let count = words.iter().skip(begin).take_while(is_assignment).count();
        if !declares && count < words.len() {
            let words = words.iter().skip(count).cloned().collect();
            return self.push(Statement::Command(Command { words, ..command }));
        }
        for (name, is_added, value) in words.iter().filter_map(|word| assignment_in(word)) {
            // The output of a command is one word here.
            let words = match value.contains("$(") || value.contains('`') {
                true => vec![value.to_owned()],
                false => value.split_whitespace().map(str::to_owned).collect(),
            };
            self.push(Statement::Assign { name: name.to_owned(), is_added, words });
        }
    }

    /// Reads `for NAME in words`. The body is then read once, with all of the words as the value of the variable.
    fn begin_loop(&mut self, words: &[String]) {
        let Some(name) = words.get(1) else { return };
        let values = words.iter().position(|word| word == "in").and_then(|at| words.get(at + 1..));
        let words = values.map_or_else(|| vec!["$@".to_owned()], <[String]>::to_vec);
        self.push(Statement::Assign { name: name.clone(), is_added: false, words });
    }

    fn push(&mut self, statement: Statement) {
        self.script.push(self.functions.last().map(String::as_str), statement);
    }
}

#[cfg(test)]
mod tests {
    use super::{Script, Statement};

    /// Returns the statements as lines; those of a function after its name.
    fn lines(text: &str) -> Vec<String> {
        let script = Script::parse(text);
        let mut functions: Vec<_> = script.functions.iter().collect();
        functions.sort_by_key(|(name, _)| *name);
        let of_functions =
            functions.into_iter().flat_map(|(name, body)| body.iter().map(move |it| (name.as_str(), it)));
        script.top.iter().map(|it| ("", it)).chain(of_functions).map(|(name, it)| line(name, it)).collect()
    }

    fn line(function: &str, statement: &Statement) -> String {
        let prefix = if function.is_empty() { String::new() } else { format!("{function}: ") };
        match statement {
            Statement::Assign { name, is_added, words } => {
                format!("{prefix}{name}{}={words:?}", if *is_added { "+" } else { "" })
            }
            Statement::Command(command) => {
                let pipe = if command.is_piped { "| " } else { "" };
                let text = if command.has_text { " <<" } else { "" };
                format!("{prefix}{}: {pipe}{}{text}", command.line, command.text())
            }
        }
    }

    #[test]
    fn commands_and_their_inputs() {
        let text = "# a comment; patch x\npatch -p1 \\\n  -i \"../a b.patch\" # why\nA=1 patch -R<'b.patch' >/dev/null 2>&1 && echo #x\n\
                    cat c.patch |\n  patch -p0 || exit 1\npatch <<-EOF\n\tquote \" in it\n\tEOF\nif [ -f x ]; then patch < $x; fi\n\
                    patch -p1 < <(xz -d x.xz)\npatch <<< \"$text\"\n";
        assert_eq!(
            lines(text),
            [
                "2: patch -p1 -i ../a b.patch",
                "4: patch -R < b.patch",
                "4: echo",
                "5: cat c.patch",
                "6: | patch -p0",
                "6: exit 1",
                "7: patch <<",
                "10: [ -f x ]",
                "10: patch < $x",
                "11: patch -p1 <<",
                "11: xz -d x.xz",
                "12: patch <<",
            ]
        );
    }

    #[test]
    fn variables_arrays_and_functions() {
        let text = "source=(\"x-$v.tar.gz::https://x.org/$v\"\n  a.patch 'b.patch') # all\nsource+=(c.patch)\n\
                    source_text=\"a.tar.gz\n\tb.patch\n\"\nlocal p=\"${1##*/}\" -r q='x y'\nset[2]=z\n\
                    prepare() {\n  cd x\n  for f in \"${source[@]}\"; do\n    [[ $f = *.patch ]] || continue\n    patch -i \"$f\"\n  done\n}\n\
                    function other {\n  { a; }\n  b \"$(echo \"1 2\")\" %{?x: y}\n}\nlast () { c; }\nend\n";
        assert_eq!(
            lines(text),
            [
                "source=[\"x-$v.tar.gz::https://x.org/$v\", \"a.patch\", \"b.patch\"]",
                "source+=[\"c.patch\"]",
                "source_text=[\"a.tar.gz\", \"b.patch\"]",
                "p=[\"${1##*/}\"]",
                "q=[\"x\", \"y\"]",
                "set+=[\"z\"]",
                "21: end",
                "last: 20: c",
                "other: 17: a",
                "other: 18: b $(echo \"1 2\") %{?x: y}",
                "prepare: 10: cd x",
                "prepare: f=[\"${source[@]}\"]",
                "prepare: 12: [[ $f = *.patch ]]",
                "prepare: 12: continue",
                "prepare: 13: patch -i $f",
            ]
        );
        let named = Script::parse(text).named;
        assert_eq!(named, ["a.patch", "b.patch", "c.patch", "b.patch", "*.patch"]);
    }

    #[test]
    fn the_line_of_an_open_quote_is_known() {
        for (text, line) in [
            ("a\nb \"c\nd", Some(2)),
            ("a 'b", Some(1)),
            ("x\ny=(a\nb", Some(2)),
            ("${a", Some(1)),
            ("cat <<E\nx\n", Some(2)),
            ("cat <<E\nE\n\"a\" $(b) `c` ${d}", None),
        ] {
            assert_eq!(Script::parse(text).unclosed, line, "{text}");
        }
        // A text without an end of any kind is read in one pass.
        let script = Script::parse(&"< ( { $( \" ".repeat(10_000));
        assert!(script.unclosed.is_some());
    }
}
