//! Words of a recipe that name patches. Variables are not evaluated: in a name each matches anything.

/// A word that names a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchWord<'w> {
    /// The path as written, with `*` for each variable.
    pub pattern: String,
    /// Whether it names a file to download.
    pub is_remote: bool,
    /// Whether every file that fits is meant, as with `*.patch`.
    pub is_glob: bool,
    /// Parameters after the path: `;striplevel=2`.
    pub parameters: Vec<(&'w str, &'w str)>,
}

const ENDINGS: [&str; 3] = [".patch", ".diff", ".patchset"];

/// Reads a word as a patch: `file://0001-a.patch;striplevel=2`, `./a.patch`, `${P}-fix.diff`, or
/// `NAME.patch::https://HOST/NAME` of makepkg and abuild.
pub(super) fn patch_in(word: &str) -> Option<PatchWord<'_>> {
    let mut parts = word.split(';');
    let (path, is_remote) = path_in(parts.next()?);
    let path = path.trim_start_matches("./");
    if !ENDINGS.iter().any(|ending| path.ends_with(ending)) {
        return None;
    }
    let pattern = if is_remote { path.to_owned() } else { without_variables(path) };
    let is_glob = !is_remote && has_glob(path);
    Some(PatchWord {
        pattern: if is_glob { with_stars(&pattern) } else { pattern },
        is_remote,
        is_glob,
        parameters: parts.filter_map(|part| part.split_once('=')).collect(),
    })
}

/// Returns the path in a word such as `--input=a.patch` or `file://a.patch`, and whether it is downloaded.
fn path_in(word: &str) -> (&str, bool) {
    let scheme = word.find("://");
    let before = word.get(..scheme.unwrap_or(word.len())).unwrap_or(word);
    let path = before.rfind('=').and_then(|at| word.get(at + 1..)).unwrap_or(word);
    match (path.split_once("://"), path.split_once("::")) {
        (Some(("file", path)), _) => (path, false),
        (Some((before, _)), Some((name, _))) if before.contains("::") => (name, true),
        (Some(_), _) => (path, true),
        (None, _) => (path, false),
    }
}

/// Replaces `${NAME}`, `%{name}`, `$NAME`, `%name`, `$(command)` and `$1` by `*`.
pub(super) fn without_variables(path: &str) -> String {
    let mut plain = String::new();
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        match variable_at(rest) {
            Some(length) => {
                plain.push('*');
                rest = rest.get(length..).unwrap_or_default();
            }
            None => {
                plain.push(letter);
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            }
        }
    }
    plain
}

/// Returns the length of the variable that `text` begins with.
fn variable_at(text: &str) -> Option<usize> {
    let name = text.strip_prefix('$').or_else(|| text.strip_prefix('%'))?;
    let length = match name.chars().next() {
        Some('{') => balanced(name, '{', '}'),
        Some('(') if text.starts_with('$') => balanced(name, '(', ')'),
        Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => identifier(name).len(),
        Some(letter) if text.starts_with('$') && (letter.is_ascii_digit() || "@*".contains(letter)) => 1,
        _ if text.starts_with('$') => 0,
        _ => return None,
    };
    Some(1 + length)
}

/// Returns the length of the text up to the bracket that closes the first one; all of it if none does.
fn balanced(text: &str, open: char, close: char) -> usize {
    let mut depth = 0usize;
    for (at, letter) in text.char_indices() {
        if letter == open {
            depth += 1;
        } else if letter == close {
            depth -= 1;
            if depth == 0 {
                return at + close.len_utf8();
            }
        }
    }
    text.len()
}

/// Returns the name that `text` begins with.
pub(super) fn identifier(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Splits `NAME=value` and `NAME+=value`; the second part is whether the value is added.
pub(super) fn assignment_in(word: &str) -> Option<(&str, bool, &str)> {
    let (name, value) = word.split_once('=')?;
    let (name, is_added) = match name.strip_suffix('+') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let plain = identifier(name);
    let index = name.get(plain.len()..)?;
    let is_element = index.starts_with('[') && index.ends_with(']');
    let is_name = !plain.is_empty() && !plain.starts_with(|letter: char| letter.is_ascii_digit());
    (is_name && (index.is_empty() || is_element)).then_some((plain, is_added || is_element, value))
}

/// Returns the name of the variable that the last component of `word` consists of: `x` for `$srcdir/${x##*/}`,
/// `patches` for `%{patches}`, `@` for `$@`.
pub(super) fn variable_in(word: &str) -> Option<&str> {
    let mut begin = 0;
    let mut at = 0;
    while let Some(letter) = word.get(at..)?.chars().next() {
        if letter == '/' {
            begin = at + 1;
        }
        at += word.get(at..).and_then(variable_at).unwrap_or(letter.len_utf8());
    }
    let last = word.get(begin..)?;
    if last.is_empty() || variable_at(last) != Some(last.len()) {
        return None;
    }
    let name = last.get(1..)?;
    let Some(inner) = name.strip_prefix('{') else {
        return Some(name).filter(|name| !name.is_empty() && !name.starts_with('('));
    };
    let inner = inner.trim_end_matches('}').trim_start_matches(['#', '!', '?']);
    let name = if inner.starts_with(['@', '*']) { inner.get(..1)? } else { identifier(inner) };
    let operator = inner.get(name.len()..)?;
    let is_plain = operator.is_empty() || operator.starts_with(['[', '#', '%', '/', ':', '^', ',', '@']);
    Some(name).filter(|name| !name.is_empty() && is_plain)
}

/// Returns the index in a word that ends with one element of an array: 1 for `${source[1]}`.
pub(super) fn element_in(word: &str) -> Option<usize> {
    let (_, index) = word.strip_suffix("]}")?.rsplit_once('[')?;
    index.parse().ok()
}

/// Returns whether a shell replaces `path` by names of files.
fn has_glob(path: &str) -> bool {
    let mut rest = path;
    while let Some(letter) = rest.chars().next() {
        if "*?".contains(letter) {
            return true;
        }
        let length = variable_at(rest).unwrap_or(letter.len_utf8());
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Replaces `?` and `[a-z]` in a pattern of the shell by `*`.
fn with_stars(pattern: &str) -> String {
    let mut plain = String::new();
    let mut is_class = false;
    for letter in pattern.chars() {
        match letter {
            '[' => is_class = true,
            ']' if is_class => {
                is_class = false;
                plain.push('*');
            }
            _ if is_class => {}
            '?' => plain.push('*'),
            letter => plain.push(letter),
        }
    }
    plain
}

/// Maximum number of words that one word with braces stands for.
const ALTERNATIVES: usize = 64;

/// Maximum length in bytes of a word whose braces are expanded.
const BRACES_LIMIT: usize = 512;

/// Returns the words that a shell makes of a word with braces: `a-{x,y}.patch` stands for two.
pub(super) fn alternatives(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![word.to_owned()];
    while let Some(word) = open.pop() {
        let count = open.len() + done.len();
        let has_room = |inner: &str| count + inner.split(',').count() <= ALTERNATIVES;
        match braces_in(&word).filter(|(_, inner, _)| has_room(inner)) {
            // The stack is taken from its end.
            Some((before, inner, after)) => {
                open.extend(inner.split(',').rev().map(|part| format!("{before}{part}{after}")));
            }
            None => done.push(word),
        }
    }
    done
}

/// Splits a word at its first braces with a comma that contain no other ones and are not those of a variable.
fn braces_in(word: &str) -> Option<(&str, &str, &str)> {
    if word.len() > BRACES_LIMIT {
        return None;
    }
    let mut at = 0;
    while let Some(letter) = word.get(at..)?.chars().next() {
        let rest = word.get(at..)?;
        if let Some(length) = variable_at(rest) {
            at += length;
            continue;
        }
        at += letter.len_utf8();
        if letter != '{' {
            continue;
        }
        let inner = rest.get(1..rest.find('}')?)?;
        if inner.contains(',') && !inner.contains('{') {
            return Some((word.get(..at - 1)?, inner, word.get(at + inner.len() + 1..)?));
        }
    }
    None
}

/// Returns whether `name` matches `pattern`, in which each `*` matches any characters.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut is_literal = true;
    for part in parts {
        is_literal = false;
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    // The last part has to match at the end.
    let last = pattern.rsplit('*').next().unwrap_or_default();
    if is_literal { rest.is_empty() } else { name.ends_with(last) }
}

/// Returns the last component of a path.
pub(super) fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{alternatives, fits, patch_in, variable_in, without_variables};

    #[test]
    fn a_word_names_a_patch() {
        for (word, wanted) in [
            ("a.patch", Some(("a.patch", false, false))),
            ("./sub/a.diff", Some(("sub/a.diff", false, false))),
            ("--input=../a.patch", Some(("../a.patch", false, false))),
            ("file://0001-a.patch;striplevel=2", Some(("0001-a.patch", false, false))),
            ("https://x.org/c.patch;name=c", Some(("https://x.org/c.patch", true, false))),
            ("SRC_URI=https://x.org/c.patch", Some(("https://x.org/c.patch", true, false))),
            ("c.patch::https://x.org/raw/c", Some(("c.patch", true, false))),
            ("${srcdir}/$pkgname-fix.patch", Some(("*/*-fix.patch", false, false))),
            ("../0*-[ab]?.patch", Some(("../0*-**.patch", false, true))),
            ("${x##*/}.patch", Some(("*.patch", false, false))),
            ("a.patch.in", None),
            ("${source[@]}", None),
        ] {
            let found = patch_in(word);
            let found = found.as_ref().map(|patch| (patch.pattern.as_str(), patch.is_remote, patch.is_glob));
            assert_eq!(found, wanted, "{word}");
        }
        let parameters = patch_in("file://a.patch;striplevel=2;apply=no").unwrap().parameters;
        assert_eq!(parameters, [("striplevel", "2"), ("apply", "no")]);
    }

    #[test]
    fn the_last_component_may_be_a_variable() {
        for (word, wanted) in [
            ("$x", Some("x")),
            ("../$x", Some("x")),
            ("$srcdir/${x##*/}", Some("x")),
            ("${source[@]}", Some("source")),
            ("$@", Some("@")),
            ("${@}", Some("@")),
            ("$1", Some("1")),
            ("%{PATCH1}", Some("PATCH1")),
            ("%PATCH1", Some("PATCH1")),
            ("${x}/y", None),
            ("${x}.patch", None),
            ("$(ls x)", None),
            ("${fetchpatch { url = 1; }}", None),
            ("plain", None),
            ("$", None),
            ("a/", None),
        ] {
            assert_eq!(variable_in(word), wanted, "{word}");
        }
        assert_eq!(without_variables("a-${x%{y}}-$(b c)/%{n}%v-$1$"), "a-*-*/**-**");
    }

    #[test]
    fn braces_stand_for_several_words() {
        assert_eq!(alternatives("${P}-{a,b}.patch"), ["${P}-a.patch", "${P}-b.patch"]);
        assert_eq!(alternatives("{a,b}{1,2}"), ["a1", "a2", "b1", "b2"]);
        assert_eq!(alternatives("a{b}c"), ["a{b}c"]);
        assert_eq!(alternatives("${x,,}"), ["${x,,}"]);
        assert_eq!(alternatives(&"{a,b}".repeat(60)).len(), 64);
    }

    #[test]
    fn a_variable_stands_for_anything() {
        for (pattern, name, wanted) in [
            ("a.patch", "a.patch", true),
            ("a.patch", "ba.patch", false),
            ("*-x.patch", "p-1.2-x.patch", true),
            ("a-*.patch", "a-1.patch", true),
            ("a-*.patch", "b-1.patch", false),
            ("*-x.patch", "x.patch", false),
            ("*.patch", "a.patch.diff", false),
        ] {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
