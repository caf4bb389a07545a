//! No new line uses words that the glossary replaces: `ci/words.tsv` counts what is left of each, and it may only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::support::files;

const TABLE: &str = "ci/words.tsv";

/// The folders and files at the root that people write.
const ROOTS: [&str; 17] = [
    "docs",
    "xtask",
    "series",
    "kernels",
    "front",
    "overlay",
    "health",
    "patches",
    "ci",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "pins.toml",
    "deny.toml",
    CHANGELOG,
    ".github",
];

const ENDINGS: [&str; 11] = ["rs", "md", "toml", "h", "c", "cpp", "py", "patch", "mjs", "sh", "yml"];

/// It quotes the names that users had, as code.
const CHANGELOG: &str = "CHANGELOG.md";

/// Files that have to name the words.
const EXEMPT: [&str; 3] =
    ["docs/design/glossary.md", "docs/measurements/house.md", "xtask/crates/qa/tests/cli/words.rs"];

/// One line of the table: how often `phrase` is left, and what to write instead.
struct Entry<'a> {
    left: usize,
    /// Whether parts of identifiers count too: `_` separates words. Then fewer uses than `left` are no failure, because
    /// identifiers are renamed many at a time.
    in_identifiers: bool,
    phrase: &'a str,
    instead: &'a str,
}

/// Marks the count of an entry for parts of identifiers.
const AT_MOST: &str = "<=";

#[test]
fn no_new_line_has_a_word_of_the_old_dialect() {
    let root = files::of_this_repository("");
    let table = std::fs::read_to_string(root.join(TABLE)).unwrap();
    let entries = read_table(&table);
    assert!(entries.len() > 20);
    let found = changed(&entries, &texts(&root));
    assert!(found.is_empty(), "{found}");
}

#[test]
fn a_new_use_is_named_with_its_line_and_a_removed_one_lowers_the_count() {
    let entries = read_table("1\tnobody\tno caller\n1\tanew\tagain\n");
    let text = "/// Nobody waits.\n/// It is begun.\nlet nobody_else = 1; // nobody.\n".to_string();
    let found = changed(&entries, &BTreeMap::from([("a.rs".to_string(), text)]));
    assert!(found.contains("`nobody` occurs 2 times, and 1 was left; write \"no caller\""), "{found}");
    assert!(found.contains("  a.rs:3: let nobody_else = 1; // nobody."), "{found}");
    assert!(found.contains("`anew` is left 0 times: change its 1 in ci/words.tsv"), "{found}");
}

#[test]
fn parts_of_identifiers_are_counted_up_to_a_maximum() {
    let entries = read_table("<=1\tgive_way\tpreempt\n");
    let found = |text: &str| changed(&entries, &BTreeMap::from([("a.rs".to_string(), text.to_string())]));
    assert_eq!((found("may_give_way();"), found("may_preempt();")), (String::new(), String::new()));
    let found = found("may_give_way();\nFOR_GIVE_WAY\n");
    assert!(found.contains("`give_way` occurs 2 times, and 1 was left; write \"preempt\""), "{found}");
    assert!(found.contains("  a.rs:2: FOR_GIVE_WAY"), "{found}");
}

#[test]
fn names_that_the_changelog_quotes_are_no_uses() {
    assert_eq!(without_code("* `mend` is `fix`\n  now, `a\nb`.\n"), "*  is \n  now, \n.\n");
}

fn read_table(table: &str) -> Vec<Entry<'_>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [count, phrase, instead] = fields[..] else { panic!("{TABLE}: three fields, not `{line}`") };
            let (in_identifiers, left) = (count.starts_with(AT_MOST), count.trim_start_matches(AT_MOST));
            Entry { left: left.parse().unwrap(), in_identifiers, phrase, instead }
        })
        .collect()
}

fn texts(root: &Path) -> BTreeMap<String, String> {
    let below = |name: &&str| {
        let path = root.join(name);
        if path.is_file() {
            vec![name.to_string()]
        } else {
            files::list(&path).iter().map(|file| format!("{name}/{file}")).collect()
        }
    };
    let is_written = |file: &String| {
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or("");
        ENDINGS.contains(&ending) && !EXEMPT.contains(&file.as_str()) && !file.contains("__pycache__")
    };
    let names = ROOTS.iter().flat_map(below).filter(is_written);
    names
        .map(|file| {
            let text = std::fs::read_to_string(root.join(&file)).unwrap();
            let text = if file == CHANGELOG { without_code(&text) } else { text };
            (file, text)
        })
        .collect()
}

/// Removes what is between backticks, except for line ends.
fn without_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let is_kept = |number: usize, letter: &char| number.is_multiple_of(2) || *letter == '\n';
    parts.flat_map(|(number, part)| part.chars().filter(move |letter| is_kept(number, letter))).collect()
}

/// What differs from the table, with every line of a word that is used more often.
fn changed(entries: &[Entry<'_>], texts: &BTreeMap<String, String>) -> String {
    let phrases = Phrases::new(entries);
    let mut uses: Vec<Vec<String>> = vec![Vec::new(); entries.len()];
    for (file, text) in texts {
        // Only ASCII, so that a use is at the same place in both texts.
        for (number, at) in phrases.uses(&text.to_ascii_lowercase()) {
            uses[number].push(shown(file, text, at));
        }
    }
    let mut report = String::new();
    for (entry, uses) in entries.iter().zip(&uses) {
        if uses.len() > entry.left {
            let Entry { left, phrase, instead, .. } = entry;
            writeln!(
                report,
                "`{phrase}` occurs {} times, and {left} was left; write \"{instead}\"",
                uses.len()
            )
            .unwrap();
            uses.iter().for_each(|line| writeln!(report, "  {line}").unwrap());
        } else if uses.len() < entry.left && !entry.in_identifiers {
            let (phrase, left) = (entry.phrase, entry.left);
            writeln!(report, "`{phrase}` is left {} times: change its {left} in {TABLE}", uses.len())
                .unwrap();
        }
    }
    report
}

/// The line with the place `at`.
fn shown(file: &str, text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    format!("{file}:{}: {}", 1 + text[..at].matches('\n').count(), line.trim())
}

/// The phrases of all entries, to find them in one pass over a text: this test reads all texts of the repository, and is
/// compiled without optimization.
struct Phrases<'a> {
    entries: &'a [Entry<'a>],
    /// The numbers of the entries whose phrases begin with these two bytes.
    by_start: Vec<Vec<usize>>,
}

impl<'a> Phrases<'a> {
    fn new(entries: &'a [Entry<'a>]) -> Phrases<'a> {
        let mut by_start = vec![Vec::new(); 1 << 16];
        for (number, entry) in entries.iter().enumerate() {
            by_start[start_of(entry.phrase.as_bytes())].push(number);
        }
        Phrases { entries, by_start }
    }

    /// Returns the uses of each phrase in `text`: the number of the entry, and the place.
    fn uses(&self, text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (at, start) in text.as_bytes().windows(2).enumerate() {
            for number in &self.by_start[start_of(start)] {
                if is_use(text, at, &self.entries[*number]) {
                    found.push((*number, at));
                }
            }
        }
        found
    }
}

fn start_of(bytes: &[u8]) -> usize {
    (usize::from(bytes[0]) << 8) | usize::from(bytes[1])
}

/// Whether the phrase stands at this place of `text` as words of their own; `_` belongs to a word, except in entries for
/// identifiers.
fn is_use(text: &str, at: usize, entry: &Entry<'_>) -> bool {
    let Entry { phrase, in_identifiers, .. } = *entry;
    let is_word =
        |one: Option<char>| one.is_some_and(|one| one.is_alphanumeric() || one == '_' && !in_identifiers);
    let Some(rest) = text[at..].strip_prefix(phrase) else { return false };
    let (starts, ends) = (is_word(phrase.chars().next()), is_word(phrase.chars().next_back()));
    let (before, after) = (text[..at].chars().next_back(), rest.chars().next());
    !(starts && is_word(before) || ends && is_word(after))
}
