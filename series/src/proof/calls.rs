//! Calls of the functions that a patch changes which upstream has removed.
//!
//! A patch that changes a function acts where the function is called. If upstream no longer calls it there, the patch
//! moves without any difference of lines, and what it did there is gone. Names are counted, so this is a hint and no
//! proof.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::placed::{PlacedPatch, PlacedSeries};
use crate::model::entry::TreeEntry;
use crate::model::hunk_lines::LineKind;
use crate::model::mode::Mode;
use crate::model::patch::{Content, Hunk};
use crate::model::printable::printable;
use crate::model::tree::TreeError;
use crate::text::enclosing::EnclosingFunctions;
use crate::text::identifiers::{is_keyword, last_word, names_in, without_comment};
use crate::text::language::Language;
use crate::text::line_diff::lines_of;

/// Number of calls above which a name is left out: it is that of several functions, such as `size`.
const COMMON: usize = 50;
/// Names that many classes and libraries have: that one of them is called less often says nothing of the others.
const COMMON_NAMES: [&str; 44] = [
    "add", "all", "any", "append", "at", "back", "begin", "clear", "close", "copy", "count", "data", "empty",
    "end", "erase", "find", "first", "free", "front", "get", "init", "insert", "len", "main", "max", "min",
    "name", "next", "open", "pop", "print", "push", "put", "read", "reset", "set", "size", "start", "stop",
    "str", "swap", "type", "value", "write",
];
/// Beginnings of lines that define something, or are in a comment.
const WITHOUT_CALLS: [&[u8]; 3] = [b"def ", b"/*", b"* "];

/// A file that differs between the old base and the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBaseFile {
    /// Its path.
    pub path: Vec<u8>,
    /// Its content on the old base; empty if it is not there.
    pub old: Vec<u8>,
    /// Its content on the new base; empty if it is not there.
    pub new: Vec<u8>,
}

/// A function that patches change, and that upstream calls less often on the new base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostCalls {
    /// Its name, safe to print.
    pub function: String,
    /// File names of the patches that change it.
    pub patches: Vec<String>,
    /// Number of calls on either base, in the files that differ between them.
    #[serde(flatten)]
    pub calls: Calls,
    /// The files with fewer calls.
    pub files: Vec<CallsInFile>,
}

/// Number of calls on either base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// On the old base.
    pub before: usize,
    /// On the new base.
    pub after: usize,
}

/// Number of calls in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallsInFile {
    /// The file, safe to print.
    pub path: String,
    /// Their number.
    #[serde(flatten)]
    pub calls: Calls,
}

/// Returns the functions that the patches of `series` change, and that upstream calls less often in `files`, which are
/// those that differ between the bases.
///
/// # Errors
///
/// When a tree cannot be read.
pub fn lost_calls(series: &PlacedSeries<'_>, files: &[ChangedBaseFile]) -> Result<Vec<LostCalls>, TreeError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let mut patches: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
    for placed in &series.patches {
        for function in changed_functions(placed)? {
            patches.entry(function).or_default().push(placed.patch.name.clone());
        }
    }
    let names: HashSet<&[u8]> = patches.keys().map(Vec::as_slice).collect();
    let counts: Vec<HashMap<&[u8], Uses>> = files.iter().map(|file| uses_in(file, &names)).collect();
    let lost = patches.iter().filter_map(|(function, patches)| {
        let mut lost = LostCalls {
            function: printable(function),
            patches: patches.clone(),
            calls: Calls::default(),
            files: Vec::new(),
        };
        let mut mentions = Calls::default();
        for (file, counts) in files.iter().zip(&counts) {
            let uses = counts.get(function.as_slice()).copied().unwrap_or_default();
            lost.add(file, uses.calls);
            mentions.before += uses.mentions.before;
            mentions.after += uses.mentions.after;
        }
        let Calls { before, after } = lost.calls;
        // As often as before, but not called by name: through a pointer.
        let is_mentioned_less = mentions.after < mentions.before;
        (after < before && before <= COMMON && is_mentioned_less).then_some(lost)
    });
    Ok(lost.collect())
}

impl LostCalls {
    fn add(&mut self, file: &ChangedBaseFile, calls: Calls) {
        self.calls.before += calls.before;
        self.calls.after += calls.after;
        if calls.after < calls.before {
            self.files.push(CallsInFile { path: printable(&file.path), calls });
        }
    }
}

/// Returns the names of the functions that a patch changes.
fn changed_functions(placed: &PlacedPatch<'_>) -> Result<BTreeSet<Vec<u8>>, TreeError> {
    let mut names = BTreeSet::new();
    for file in &placed.patch.files {
        let (Some(side), Content::Text(hunks)) = (&file.new, &file.content) else { continue };
        let entry = placed.after.entry(side.path.as_bytes())?;
        let is_file = |entry: &TreeEntry| matches!(entry.mode, Mode::File | Mode::Executable);
        let Some(entry) = entry.filter(is_file) else { continue };
        let text = placed.after.blob(entry.id)?;
        let lines = lines_of(&text);
        let functions = EnclosingFunctions::new(&lines, Language::of(side.path.as_bytes(), &text));
        let mut known = 0..0;
        for at in hunks.iter().flat_map(changed_places).filter(|at| *at < lines.len()) {
            if known.contains(&at) {
                continue;
            }
            let Some(function) = functions.around(at) else { continue };
            names.extend(function_name(functions.text(function.start)).map(<[u8]>::to_vec));
            known = function;
        }
    }
    Ok(names)
}

/// Returns the lines of the new file, from 0, that a hunk adds, or that are below those it deletes.
fn changed_places(hunk: &Hunk) -> Vec<usize> {
    let mut at = hunk.new_lines_before();
    let mut places = Vec::new();
    for line in hunk.lines.iter() {
        if line.kind != LineKind::Context {
            places.push(at);
        }
        at += usize::from(line.kind != LineKind::Delete);
    }
    places
}

/// Number of uses of a name in one file.
#[derive(Clone, Copy, Default)]
struct Uses {
    calls: Calls,
    /// All uses, calls included.
    mentions: Calls,
}

/// Returns the number of uses of each of `names` in a file, on either base.
fn uses_in<'n>(file: &ChangedBaseFile, names: &HashSet<&'n [u8]>) -> HashMap<&'n [u8], Uses> {
    let mut uses: HashMap<&'n [u8], Uses> = HashMap::new();
    let mut count = |text: &[u8], side: fn(&mut Calls) -> &mut usize| {
        for_each_use(file, text, names, |name, is_call| {
            let Uses { calls, mentions } = uses.entry(name).or_default();
            *side(mentions) += 1;
            *side(calls) += usize::from(is_call);
        });
    };
    count(&file.old, |calls| &mut calls.before);
    count(&file.new, |calls| &mut calls.after);
    uses
}

/// Calls `found` with each of `names` in the code of `text`, and whether it is called there.
fn for_each_use<'n>(
    file: &ChangedBaseFile,
    text: &[u8],
    names: &HashSet<&'n [u8]>,
    mut found: impl FnMut(&'n [u8], bool),
) {
    let language = Language::of(&file.path, text);
    if language == Language::NotCode {
        return;
    }
    for line in lines_of(text) {
        let code = code_of(line, language);
        for (at, word) in names_in(code) {
            if let Some(name) = names.get(word).copied() {
                let rest = code.get(at + word.len()..).unwrap_or_default();
                found(name, rest.trim_ascii_start().starts_with(b"("));
            }
        }
    }
}

/// Returns whether many classes and libraries have a function or a member of this name.
pub(super) fn is_common(name: &[u8]) -> bool {
    COMMON_NAMES.iter().any(|common| common.as_bytes() == name)
}

/// Returns the part of a line that can have calls: nothing of one that is not indented, which declares or defines, and no
/// comment.
fn code_of(line: &[u8], language: Language) -> &[u8] {
    let text = line.trim_ascii();
    let is_indented = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    if !is_indented || WITHOUT_CALLS.iter().any(|start| text.starts_with(start)) {
        return b"";
    }
    without_comment(text, language)
}

/// Returns the name of the function with this head, unless calls of it cannot be told from those of others.
fn function_name(head: &[u8]) -> Option<&[u8]> {
    let open = head.iter().position(|byte| *byte == b'(')?;
    // A keyword, as in `typedef void (callback)(int);`, is not a name.
    name_before(head, open).filter(|name| !is_keyword(name) && !is_common(name))
}

/// Returns the name that ends before the bracket at `open`.
fn name_before(code: &[u8], open: usize) -> Option<&[u8]> {
    let name = last_word(code.get(..open)?.trim_ascii_end());
    name.first().is_some_and(|byte| !byte.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{Language, code_of, function_name, name_before};

    #[test]
    fn a_call_is_a_name_before_a_bracket() {
        let name = |code: &'static str| {
            let open = code.rfind('(').unwrap();
            name_before(code.as_bytes(), open).map(|name| std::str::from_utf8(name).unwrap())
        };
        assert_eq!(name("x = check_limit(a"), Some("check_limit"));
        assert_eq!(name("std::vector<int> server::tokenize ("), Some("tokenize"));
        assert_eq!(name("1("), None);
        assert_eq!(name("(("), None);
    }

    #[test]
    fn keywords_and_common_names_are_no_changed_functions() {
        assert_eq!(function_name(b"int check_limit(int limit) {"), Some(&b"check_limit"[..]));
        for head in ["typedef void (i32_argsort_t)(int);", "void init(int limit) {", "struct a {"] {
            assert_eq!(function_name(head.as_bytes()), None, "{head}");
        }
    }

    #[test]
    fn definitions_and_comments_have_no_calls() {
        let code =
            |line: &'static str, language| std::str::from_utf8(code_of(line.as_bytes(), language)).unwrap();
        assert_eq!(code("    a(); // see b()\n", Language::Braces), "a(); ");
        assert_eq!(code("    a()  # see b()\n", Language::Indentation), "a()  ");
        for line in ["int a(int b);\n", "     * see a()\n", "    // see a()\n", "    def a(self):\n"] {
            assert_eq!(code(line, Language::Braces), "", "{line}");
        }
    }
}
