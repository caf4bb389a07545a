//! Words that upstream's code no longer has, and that patches or overlay files still use.
//!
//! Upstream renames or removes a function, a field or an option, and a patch that uses it merges without a conflict,
//! because its lines are elsewhere. It does not compile then, or names an option that nothing reads any more. Words are
//! compared, in the files that upstream changed, so this is a hint and no proof.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::calls::{ChangedBaseFile, is_common};
use crate::model::hunk_lines::LineKind;
use crate::model::patch::{Content, Hunk, Patch};
use crate::model::printable::printable;
use crate::text::identifiers::{code_of, is_keyword, names_in};
use crate::text::language::Language;
use crate::text::line_diff::lines_of;

/// Minimum length of a word, in bytes: shorter ones are local variables, or parts of texts.
const SHORTEST: usize = 6;
/// Minimum length of a member or of a function that is called, in bytes: the code shows that they are names.
const SHORTEST_MEMBER: usize = 3;
/// Words by which code asks the compiler whether a name exists, so as to compile with and without it.
const ASKING: [&[u8]; 3] = [b"void_t", b"requires", b"__has_include"];

/// A file that is only ours, such as one of an overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnFile<'a> {
    /// Its name for people: the path in the project.
    pub name: &'a str,
    /// Its path in the tree, which decides the language.
    pub path: &'a [u8],
    /// Its content.
    pub text: &'a [u8],
}

/// A word that is gone from the files that upstream changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoneWord {
    /// The word.
    pub word: String,
    /// Upstream's files that had it on the old base, safe to print.
    pub files: Vec<String>,
    /// The lines that use it.
    pub uses: Vec<WordUse>,
}

/// A line of a patch or of an overlay file that uses a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WordUse {
    /// File name of the patch; `None` for an overlay file.
    pub patch: Option<String>,
    /// The file after the patch, or the overlay file in the project; safe to print.
    pub path: String,
    /// Line number in that file, from 1.
    pub line: usize,
}

/// The place of a word, before it is known whether it is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
struct WordLocation<'a> {
    patch: Option<&'a str>,
    path: &'a [u8],
    line: usize,
}

/// The places of each word that our lines use.
type Uses<'a> = BTreeMap<&'a [u8], Vec<WordLocation<'a>>>;

/// Returns the words in lines that `patches` add, or in `own`, that upstream's code had before the move and no longer
/// has; `files` are those that differ between the bases. A word that is still in a comment counts as there. A word that
/// `own` asks the compiler for is not reported there: those files are written for both.
pub fn gone_words(patches: &[&Patch], own: &[OwnFile<'_>], files: &[ChangedBaseFile]) -> Vec<GoneWord> {
    if files.is_empty() {
        return Vec::new();
    }
    let mut uses = Uses::new();
    // First: most of them have to compile on either base.
    own.iter().for_each(|file| add_own(&mut uses, file));
    let asked = own.iter().flat_map(asked_for).collect::<HashSet<_>>();
    uses.retain(|word, _| !asked.contains(word));
    patches.iter().for_each(|patch| add_patch(&mut uses, patch));
    let had = files_with(&uses, files);
    let gone = uses.iter().filter_map(|(word, places)| {
        let files = had.get(word)?.iter().map(|path| printable(path)).collect();
        Some(GoneWord {
            word: printable(word),
            files,
            uses: places.iter().map(WordLocation::shown).collect(),
        })
    });
    gone.collect()
}

impl WordLocation<'_> {
    fn shown(&self) -> WordUse {
        let WordLocation { patch, path, line } = *self;
        WordUse { patch: patch.map(str::to_owned), path: printable(path), line }
    }
}

fn add_patch<'a>(uses: &mut Uses<'a>, patch: &'a Patch) {
    for file in &patch.files {
        let (Some(side), Content::Text(hunks)) = (&file.new, &file.content) else { continue };
        let path = side.path.as_bytes();
        let language = Language::of(path, b"");
        for (line, text) in hunks.iter().flat_map(added_lines) {
            add_line(uses, WordLocation { patch: Some(&patch.name), path, line }, text, language);
        }
    }
}

fn add_own<'a>(uses: &mut Uses<'a>, file: &OwnFile<'a>) {
    let language = Language::of(file.path, file.text);
    for (at, text) in lines_of(file.text).into_iter().enumerate() {
        let place = WordLocation { patch: None, path: file.name.as_bytes(), line: at + 1 };
        add_line(uses, place, text, language);
    }
}

/// Returns the words in lines that ask the compiler for a name.
fn asked_for<'a>(file: &OwnFile<'a>) -> Vec<&'a [u8]> {
    let language = Language::of(file.path, file.text);
    let mut asked = Vec::new();
    for line in lines_of(file.text) {
        let words: Vec<&[u8]> = words_in(code_of(line, language)).collect();
        if words.iter().any(|word| ASKING.iter().any(|asking| asking == word)) {
            asked.extend(words);
        }
    }
    asked
}

fn add_line<'a>(uses: &mut Uses<'a>, place: WordLocation<'a>, text: &'a [u8], language: Language) {
    for word in words_in(code_of(text, language)) {
        let places = uses.entry(word).or_default();
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
}

/// Returns the lines that a hunk adds, each with its number in the new file, from 1.
fn added_lines(hunk: &Hunk) -> impl Iterator<Item = (usize, &[u8])> {
    let new = hunk.lines.iter().filter(|line| line.kind != LineKind::Delete);
    let first = hunk.new_lines_before() + 1;
    let numbered = new.enumerate().map(move |(at, line)| (first + at, line));
    numbered.filter(|(_, line)| line.kind == LineKind::Add).map(|(at, line)| (at, line.bytes))
}

/// Returns the files that had each word of `uses` on the old base, without the words that are still there.
fn files_with<'f>(uses: &Uses<'_>, files: &'f [ChangedBaseFile]) -> HashMap<&'f [u8], Vec<&'f [u8]>> {
    let mut there: HashSet<&[u8]> = HashSet::new();
    for file in files.iter().filter(|file| Language::of(&file.path, &file.new) != Language::NotCode) {
        // Wherever it stands, also in a comment.
        let words = names_in(&file.new).map(|(_, word)| word);
        there.extend(words.filter(|word| word.len() >= SHORTEST_MEMBER));
    }
    let mut had: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for file in files {
        let language = Language::of(&file.path, &file.old);
        for line in lines_of(&file.old) {
            let is_gone = |word: &&[u8]| uses.contains_key(*word) && !there.contains(*word);
            for word in words_in(code_of(line, language)).filter(is_gone) {
                let files = had.entry(word).or_default();
                if files.last() != Some(&file.path.as_slice()) {
                    files.push(&file.path);
                }
            }
        }
    }
    had
}

/// Iterates over the words of `code` that are long enough, or that are a member or a call, without keywords.
fn words_in(code: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = names_in(code).filter(move |(at, word)| {
        let is_member = || {
            let (before, rest) = code.split_at_checked(*at).unwrap_or_default();
            word.len() >= SHORTEST_MEMBER && !is_common(word) && is_member_or_call(before, rest, word.len())
        };
        !is_keyword(word) && (word.len() >= SHORTEST || is_member())
    });
    words.map(|(_, word)| word)
}

/// Returns whether the name of `len` bytes at the beginning of `rest` is that of a member (`.x`, `->x`) or of a function
/// that is called (`x(`). A text or the path of an include has neither.
fn is_member_or_call(before: &[u8], rest: &[u8], len: usize) -> bool {
    let is_in_text = before.iter().filter(|byte| **byte == b'"').count() % 2 == 1;
    let access = before.trim_ascii_end();
    let is_member = access.ends_with(b".") || access.ends_with(b"->");
    let is_call = rest.get(len..).is_some_and(|after| after.trim_ascii_start().starts_with(b"("));
    !is_in_text && !before.starts_with(b"#include") && (is_member || is_call)
}

#[cfg(test)]
mod tests {
    use super::{ChangedBaseFile, Language, OwnFile, code_of, gone_words};

    fn changed(path: &str, old: &str, new: &str) -> ChangedBaseFile {
        ChangedBaseFile { path: path.into(), old: old.into(), new: new.into() }
    }

    fn words(text: &str, files: &[ChangedBaseFile]) -> Vec<(String, Vec<usize>)> {
        let own = OwnFile { name: "overlay/shim/own.cpp", path: b"espalier/own.cpp", text: text.as_bytes() };
        let gone = gone_words(&[], &[own], files).into_iter();
        gone.map(|gone| (gone.word, gone.uses.iter().map(|used| used.line).collect())).collect()
    }

    #[test]
    fn a_word_is_gone_if_no_changed_file_has_it() {
        let files = [
            changed("a.h", "int parser_params;\nint moved_field;\nint in_comment;\n", "// in_comment\n"),
            changed("b.h", "", "int moved_field;\n"),
            changed("docs/a.md", "only_in_docs\n", "parser_params\n"),
        ];
        let text = "int x = 1; // parser_params\nuse(parser_params, moved_field, in_comment);\nonly_in_docs();\n\
                    parser_params = parser_params;\n";
        assert_eq!(words(text, &files), [("parser_params".to_owned(), vec![2, 4])]);
        assert!(words(text, &[]).is_empty());
        assert!(words("int new_word; int x1;\n", &files).is_empty());
    }

    #[test]
    fn a_word_that_an_overlay_detects_is_not_reported_there() {
        let files = [changed("a.h", "int parser_params;\nint moved_field;\n", "")];
        let text = "struct has_it<T, std::void_t<decltype(T::parser_params)>> : std::true_type {};\n\
                    use(parser_params);\nuse(moved_field);\n";
        assert_eq!(words(text, &files), [("moved_field".to_owned(), vec![3])]);
        let required =
            "concept has_it = requires(T params) { params.parser_params; };\nuse(parser_params);\n";
        assert!(words(required, &files).is_empty());
    }

    #[test]
    fn members_and_calls_are_found_from_three_letters_on() {
        let old = "x = m->cbs;\ny = s . abc;\nrun2(1);\nab = m.ab;\nint tmp;\n";
        let files = [changed("a.cpp", old, "")];
        let text = "use(m->cbs.rope());\nx.abc = run2(2);\ncbs = 1; ab.ab();\ntmp = x.tmp;\n";
        let expected = [("abc", vec![2]), ("cbs", vec![1]), ("run2", vec![2])];
        assert_eq!(words(text, &files), expected.map(|(word, lines)| (word.to_owned(), lines)));
        // A word that is left anywhere is not gone.
        let files = [changed("a.cpp", old, "int cbs, abc; // run2\n")];
        assert!(words(text, &files).is_empty());
    }

    #[test]
    fn keywords_common_names_and_texts_are_no_names() {
        let old = "typedef void (own_t)(int);\nfor (;;) return (1);\nm->init(); s.size();\n\
                   #include \"a.hpp\"\nopen(\"a.txt\");\n";
        assert!(words(old, &[changed("a.cpp", old, "own_t a\n")]).is_empty());
    }

    #[test]
    fn comments_and_short_words_do_not_count() {
        let files = [changed("a.h", "short 12345678 abcde /* x */\n// long_comment\n", "")];
        assert!(words("abcde(); 12345678; long_comment();\n", &files).is_empty());
        assert_eq!(code_of(b"    call(); // see other()\n", Language::Braces), b"call(); ");
        assert_eq!(code_of(b"     * see other()\n", Language::Braces), b"");
        assert_eq!(code_of(b"#include \"peg-parser.h\"\n", Language::Braces), b"#include \"peg-parser.h\"");
        assert_eq!(code_of(b"text\n", Language::NotCode), b"");
    }
}
