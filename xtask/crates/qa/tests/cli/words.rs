//! No new line uses words that the glossary replaces: `ci/words.tsv` counts what is left of each, and it may only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::support::files;

const TABLE: &str = "ci/words.tsv";

/// The folders and files at the root that people write.
const ROOTS: [&str; 14] = [
    "docs",
    "xtask",
    "series",
    "kernels",
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
];

const ENDINGS: [&str; 9] = ["rs", "md", "toml", "h", "c", "cpp", "py", "patch", "mjs"];

/// Files that have to name the words.
const EXEMPT: [&str; 3] =
    ["docs/design/glossary.md", "docs/measurements/house.md", "xtask/crates/qa/tests/cli/words.rs"];

/// One line of the table: how often `phrase` is left, and what to write instead.
struct Entry<'a> {
    left: usize,
    phrase: &'a str,
    instead: &'a str,
}

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

fn read_table(table: &str) -> Vec<Entry<'_>> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [left, phrase, instead] = fields[..] else { panic!("{TABLE}: three fields, not `{line}`") };
            Entry { left: left.parse().unwrap(), phrase, instead }
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
            (file, text)
        })
        .collect()
}

/// What differs from the table, with every line of a word that is used more often.
fn changed(entries: &[Entry<'_>], texts: &BTreeMap<String, String>) -> String {
    let mut report = String::new();
    for entry in entries {
        let uses: Vec<String> =
            texts.iter().flat_map(|(file, text)| uses_in(file, text, entry.phrase)).collect();
        if uses.len() > entry.left {
            let Entry { left, phrase, instead } = entry;
            writeln!(
                report,
                "`{phrase}` occurs {} times, and {left} was left; write \"{instead}\"",
                uses.len()
            )
            .unwrap();
            uses.iter().for_each(|line| writeln!(report, "  {line}").unwrap());
        } else if uses.len() < entry.left {
            let (phrase, left) = (entry.phrase, entry.left);
            writeln!(report, "`{phrase}` is left {} times: change its {left} in {TABLE}", uses.len())
                .unwrap();
        }
    }
    report
}

/// One entry for each use, so that a line with two counts twice.
fn uses_in(file: &str, text: &str, phrase: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(number, line)| {
            let shown = format!("{file}:{}: {}", number + 1, line.trim());
            vec![shown; uses(&line.to_lowercase(), phrase)]
        })
        .collect()
}

/// The number of times that `phrase` stands in `line` as words of their own; `_` belongs to a word.
fn uses(line: &str, phrase: &str) -> usize {
    let is_word = |one: Option<char>| one.is_some_and(|one| one.is_alphanumeric() || one == '_');
    let (starts, ends) = (is_word(phrase.chars().next()), is_word(phrase.chars().next_back()));
    let stands_alone = |&(at, _): &(usize, &str)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + phrase.len()..].chars().next());
        !(starts && is_word(before) || ends && is_word(after))
    };
    line.match_indices(phrase).filter(stands_alone).count()
}
