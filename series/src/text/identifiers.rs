//! Identifiers in code, and the hunks of a changed file that define or use them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::language::Language;
use super::line_diff::{hunks_between, lines_of};
use crate::model::hunk_lines::LineKind;
use crate::model::patch::Hunk;

/// Minimum length of an identifier, in bytes: shorter ones are local variables.
const SHORTEST: usize = 4;

/// Words that name nothing, in the languages of most upstreams.
const KEYWORDS: &[&str] = &[
    "alignas",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "def",
    "default",
    "define",
    "defined",
    "del",
    "delete",
    "double",
    "elif",
    "else",
    "endif",
    "enum",
    "explicit",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "from",
    "goto",
    "ifdef",
    "ifndef",
    "import",
    "include",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "None",
    "operator",
    "override",
    "pass",
    "private",
    "protected",
    "public",
    "raise",
    "return",
    "self",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "True",
    "try",
    "typedef",
    "unsigned",
    "using",
    "void",
    "volatile",
    "while",
];

/// Keywords that are followed by the name that they define.
const DEFINING: &[&str] =
    &["class", "concept", "def", "define", "enum", "fn", "namespace", "struct", "union", "using"];

/// Keywords that are followed by an expression, in which a name is only used.
const BEFORE_EXPRESSIONS: &[&str] =
    &["and", "assert", "case", "delete", "else", "goto", "import", "in", "new", "not", "return", "throw"];

/// A hunk of a changed file whose changed lines have some identifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkWithIdentifiers<'w> {
    /// The hunk.
    pub hunk: Hunk,
    /// The identifiers, each with whether one of the lines defines it rather than uses it.
    pub identifiers: BTreeMap<&'w [u8], bool>,
}

/// Returns the identifiers in the code of `text`, which is a part of the file at `path`: without comments and common
/// keywords, and none if the file is not source code.
///
/// # Examples
///
/// ```
/// use espalier_series::identifiers;
///
/// let found = identifiers(b"a.c", b"return make_ctx(model); // see also\n");
/// assert_eq!(found.into_iter().collect::<Vec<_>>(), [b"make_ctx".as_slice(), b"model"]);
/// assert!(identifiers(b"a.md", b"make_ctx\n").is_empty());
/// ```
pub fn identifiers<'t>(path: &[u8], text: &'t [u8]) -> BTreeSet<&'t [u8]> {
    let language = Language::of(path, b"");
    let mut found = BTreeSet::new();
    for line in lines_of(text) {
        let code = code_of(line, language);
        found.extend(words_of(code).map(|(_, word)| word).filter(|word| !is_keyword(word)));
    }
    found
}

/// Returns the hunks that turn `old` into `new`, two versions of the file at `path`, and whose changed lines have some
/// of the identifiers `wanted`.
///
/// # Examples
///
/// ```
/// use std::collections::HashSet;
///
/// use espalier_series::hunks_with_identifiers;
///
/// let wanted: HashSet<&[u8]> = HashSet::from([b"make_ctx".as_slice(), b"other".as_slice()]);
/// let (old, new) = (b"int make_ctx(int n);\n", b"context make_ctx(int n, int m);\n");
/// let found = hunks_with_identifiers(b"a.h", old, new, &wanted);
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].identifiers.get(b"make_ctx".as_slice()), Some(&true));
/// ```
pub fn hunks_with_identifiers<'w>(
    path: &[u8],
    old: &[u8],
    new: &[u8],
    wanted: &HashSet<&'w [u8]>,
) -> Vec<HunkWithIdentifiers<'w>> {
    let language = Language::of(path, new);
    // Most files have none, and need no diff.
    let has_any = |text: &[u8]| words_of(text).any(|(_, word)| wanted.contains(word));
    if language == Language::NotCode || !(has_any(old) || has_any(new)) {
        return Vec::new();
    }
    let with_identifiers = |hunk: Hunk| {
        let identifiers = identifiers_of(&hunk, language, wanted);
        (!identifiers.is_empty()).then_some(HunkWithIdentifiers { hunk, identifiers })
    };
    hunks_between(old, new).into_iter().filter_map(with_identifiers).collect()
}

fn identifiers_of<'w>(
    hunk: &Hunk,
    language: Language,
    wanted: &HashSet<&'w [u8]>,
) -> BTreeMap<&'w [u8], bool> {
    let mut found: BTreeMap<&'w [u8], bool> = BTreeMap::new();
    for line in hunk.lines.iter().filter(|line| line.kind != LineKind::Context) {
        let code = code_of(line.bytes, language);
        for (at, word) in words_of(code) {
            if let Some(wanted) = wanted.get(word) {
                *found.entry(*wanted).or_default() |= is_defined(code, at, word.len());
            }
        }
    }
    found
}

/// Returns the part of a line that is code.
pub(crate) fn code_of(line: &[u8], language: Language) -> &[u8] {
    let text = line.trim_ascii();
    let is_comment = text.starts_with(b"/*") || text.starts_with(b"* ");
    match language {
        Language::NotCode => b"",
        Language::Braces if is_comment => b"",
        _ => without_comment(text, language),
    }
}

/// Returns the part of a line before a comment that ends with the line.
pub(crate) fn without_comment(text: &[u8], language: Language) -> &[u8] {
    let comment: &[u8] = if language == Language::Indentation { b"#" } else { b"//" };
    let end = text.windows(comment.len()).position(|part| part == comment).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// Iterates over the words that are long enough to be identifiers, each with its position.
fn words_of(code: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    names_in(code).filter(|(_, word)| word.len() >= SHORTEST)
}

/// Iterates over the names in `code`, each with its position: words of letters, digits and `_` that do not begin with a
/// digit, keywords among them.
pub(crate) fn names_in(code: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    let words = code.split(|byte| !is_part_of_name(*byte)).map(move |word| {
        let at = next;
        // The byte that ends the word.
        next += word.len() + 1;
        (at, word)
    });
    words.filter(|(_, word)| word.first().is_some_and(|byte| !byte.is_ascii_digit()))
}

/// Whether the name of `len` bytes at `at` looks like one that a line of code declares: it is after a keyword that
/// defines names, or the first name after a type.
fn is_defined(code: &[u8], at: usize, len: usize) -> bool {
    let before = code.get(..at).unwrap_or_default().trim_ascii_end();
    let after = code.get(at + len..).unwrap_or_default().trim_ascii_start();
    if is_one_of(DEFINING, last_word(before)) {
        return true;
    }
    let before = without_scopes(before);
    let word = last_word(without_signs(before));
    let is_type = !word.is_empty() && !is_one_of(BEFORE_EXPRESSIONS, word);
    let is_first = !before.iter().any(|byte| b"(=\"'.?!|+/%".contains(byte));
    let declares = after.first().is_none_or(|byte| b"(;={[,".contains(byte)) && !after.starts_with(b"==");
    is_type && is_first && declares
}

/// Removes the scopes before a name: `void server::` is `void`.
fn without_scopes(before: &[u8]) -> &[u8] {
    let mut before = before;
    while let Some(scope) = before.strip_suffix(b"::") {
        before = scope.strip_suffix(last_word(scope)).unwrap_or(scope).trim_ascii_end();
    }
    before
}

/// Removes the signs that a type ends with before a name, such as `*` and `>`.
fn without_signs(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !b"*&> ".contains(byte)).map_or(0, |last| last + 1);
    text.get(..end).unwrap_or_default()
}

/// Returns the word that `text` ends with; it may be empty.
pub(crate) fn last_word(text: &[u8]) -> &[u8] {
    let start = text.iter().rposition(|byte| !is_part_of_name(*byte)).map_or(0, |last| last + 1);
    text.get(start..).unwrap_or_default()
}

/// Whether a byte can be in an identifier.
fn is_part_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether a word names nothing.
pub(crate) fn is_keyword(word: &[u8]) -> bool {
    is_one_of(KEYWORDS, word)
}

fn is_one_of(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{hunks_with_identifiers, is_defined};

    #[test]
    fn a_declaration_is_told_apart_from_a_use() {
        let defines =
            |code: &str| is_defined(code.as_bytes(), code.find("name_it").unwrap(), "name_it".len());
        for code in [
            "#define name_it(x) (x)",
            "struct name_it {",
            "def name_it(self):",
            "static bool name_it(int n) {",
            "std::vector<int> name_it;",
            "const char * name_it = nullptr;",
            "void server::name_it(int n) {",
            "uint32_t name_it",
        ] {
            assert!(defines(code), "{code}");
        }
        for code in [
            "name_it(model);",
            "return name_it(model);",
            "int x = name_it(model);",
            "server::name_it(model);",
            "if (name_it == 1) {",
            "params.name_it = 1;",
            "params->name_it = 1;",
            "name_it slot;",
            "else name_it();",
        ] {
            assert!(!defines(code), "{code}");
        }
    }

    #[test]
    fn only_changed_lines_of_code_count() {
        let wanted: HashSet<&[u8]> = HashSet::from([b"make_ctx".as_slice()]);
        let found = |path: &str, old: &str, new: &str| {
            hunks_with_identifiers(path.as_bytes(), old.as_bytes(), new.as_bytes(), &wanted).len()
        };
        assert_eq!(found("a.c", "make_ctx(1);\n", "make_ctx(2);\n"), 1);
        assert_eq!(found("a.c", "make_ctx(1);\nint a;\n", "make_ctx(1);\nint b;\n"), 0);
        assert_eq!(found("a.c", "int a; // make_ctx\n", "int b; // make_ctx\n"), 0);
        assert_eq!(found("a.md", "make_ctx(1);\n", "make_ctx(2);\n"), 0);
        let apart = |first: &str, last: &str| format!("{first}\n{}{last}\n", "int x;\n".repeat(20));
        assert_eq!(found("a.c", &apart("make_ctx(1);", "f(1);"), &apart("make_ctx(2);", "f(2);")), 1);
    }
}
