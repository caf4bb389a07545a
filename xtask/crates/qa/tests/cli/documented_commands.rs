//! Every command in a code block of README.md, CONTRIBUTING.md or a page below docs/guides, docs/reference or
//! docs/design: it parses, the table below says how it is checked, and those that can run here do so on this
//! repository's own pins and patches.

use std::path::PathBuf;

use clap::Parser;
use espalier_qa::cli::All;
use xtask::cli::Cli;

use super::support::own_copy::OwnCopy;
use super::support::{self, files};

/// The way in which the documented commands of one name are checked.
pub(super) enum How {
    /// Run on a copy of this repository, with these additional arguments; it has to succeed.
    Runs(&'static [&'static str]),
    /// Run with the commands before and after it, by `documented_sequences.rs`.
    InSequence,
    /// Only parsed, for this reason.
    Parsed(&'static str),
}

use How::{InSequence, Parsed, Runs};

const BUILT: &str = "needs a build";
const MINUTES: &str = "takes minutes to hours";

/// The check of each command, by name. A documented command that is missing here fails the test, and so does an entry
/// that is not documented.
pub(super) const HOW: &[(&str, How)] = &[
    ("apply", InSequence),
    ("bisect", Runs(&["--tip", "PIN", "--every-commit"])),
    ("build", Parsed(MINUTES)),
    ("canary", InSequence),
    ("edit", Runs(&["--dry-run"])),
    ("export", InSequence),
    ("fuzz", Parsed(BUILT)),
    ("gate", Parsed(BUILT)),
    ("image", Parsed(BUILT)),
    ("import", InSequence),
    ("init", InSequence),
    ("lint", Runs(&[])),
    ("lock", Parsed("needs a changed patch or overlay file")),
    ("model", Runs(&["--dry-run"])),
    ("new", Runs(&["--dry-run"])),
    ("newest", Runs(&["--tip", "PIN"])),
    ("page", Parsed(BUILT)),
    ("prove", Runs(&[])),
    ("rebase", Runs(&[])),
    ("release", Parsed(BUILT)),
    ("run", Parsed(BUILT)),
    ("status", Runs(&[])),
    ("sync", Runs(&["--dry-run"])),
    ("test", Runs(&["--list"])),
    ("trailers", Runs(&["--dry-run"])),
    ("undo", InSequence),
    ("verify", Parsed(BUILT)),
];

/// Placeholders for the reader's own names, and options that need a rebase to stop: a command with one of them is only
/// parsed, unless it is a part of a sequence.
const OF_THE_READER: [&str; 11] = [
    "my-fork",
    "--continue",
    "--edit",
    "main",
    "--root",
    "REF",
    "HEAD~1",
    "--rebase",
    "--since",
    "paged-b11549",
    "b11549",
];

/// Number of the variants of [`MOVED`] that are named in a move of the pin, and the environment variable that sets
/// another one. Each move takes all series on the pin with it, whichever variant is named.
const MOVES: usize = 1;
const MORE: &str = "ESPALIER_OWN_MOVES";

/// The default variant first, which a page moves; one beside it; and one without patches of its own.
const MOVED: [&str; 3] = ["paged", "upstream-fixes", "stock"];

/// Folders with pages for readers. Records under docs/measurements name commands too, which are not run here; reports
/// under docs/syncs have those of their day.
const FOLDERS: [&str; 3] = ["docs/guides", "docs/reference", "docs/design"];

/// The beginning of the pages that are generated from the command line itself; they have their own test.
const GENERATED: &str = "docs/reference/commands";

/// Returns the pages for readers.
fn pages() -> Vec<String> {
    let root = files::of_this_repository("");
    let mut pages = Vec::from(["README.md", "CONTRIBUTING.md", "docs/README.md"].map(String::from));
    for folder in FOLDERS {
        let names = files::list(&root.join(folder)).into_iter().map(|name| format!("{folder}/{name}"));
        pages.extend(names.filter(|name| name.ends_with(".md") && !name.starts_with(GENERATED)));
    }
    pages.sort();
    pages
}

/// Returns the pages that record what was measured.
fn records() -> Vec<String> {
    const FOLDER: &str = "docs/measurements";
    let names = files::list(&files::of_this_repository(FOLDER)).into_iter();
    names.filter(|name| name.ends_with(".md")).map(|name| format!("{FOLDER}/{name}")).collect()
}

/// Returns the words of every documented command after `cargo xtask`, with the file that contains it.
pub(super) fn documented() -> Vec<(String, Vec<String>)> {
    let root = files::of_this_repository("");
    let of_page = |page: &String| {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        commands(&text).into_iter().map(|words| (page.clone(), words)).collect::<Vec<_>>()
    };
    pages().iter().flat_map(of_page).collect()
}

/// A call of cargo in a page: the package, and the program that it tests or measures.
struct CargoCall<'a> {
    package: &'a str,
    program: Option<(&'a str, &'a str)>,
}

/// Returns the calls of cargo that name a package, in code blocks or within a line.
fn cargo_calls(text: &str) -> Vec<CargoCall<'_>> {
    let words: Vec<&str> =
        text.split_whitespace().map(|word| word.trim_matches(['`', '.', ',', ':', ';', '(', ')'])).collect();
    let calls = words.iter().enumerate().filter(|(_, word)| **word == "cargo");
    calls.filter_map(|(at, _)| CargoCall::read(&words[at + 1..])).collect()
}

impl<'a> CargoCall<'a> {
    fn read(words: &[&'a str]) -> Option<CargoCall<'a>> {
        const COMMANDS: [&str; 5] = ["test", "bench", "build", "doc", "tree"];
        // The rest of a sentence does not belong to the call.
        const LONGEST: usize = 10;
        let (command, rest) = words.split_first()?;
        let rest: Vec<&str> =
            rest.iter().take(LONGEST).take_while(|word| **word != "cargo").copied().collect();
        let value =
            |flags: &[&str]| rest.windows(2).find(|pair| flags.contains(&pair[0])).map(|pair| pair[1]);
        let package = value(&["-p", "--package"]).filter(|_| COMMANDS.contains(command))?;
        let test = value(&["--test"]).map(|name| ("tests", name));
        Some(CargoCall { package, program: test.or(value(&["--bench"]).map(|name| ("benches", name))) })
    }

    fn is_there(&self) -> bool {
        let root = files::of_this_repository("");
        let name = self.package.trim_start_matches("espalier-");
        let folders = [root.join(name), root.join("xtask/crates").join(name)];
        let has_program = |folder: &PathBuf| {
            let file = |(kind, program): (&str, &str)| folder.join(kind).join(program).with_extension("rs");
            self.program.is_none_or(|program| file(program).exists())
        };
        folders.iter().filter(|folder| is_package(folder, self.package)).any(has_program)
    }
}

fn is_package(folder: &std::path::Path, name: &str) -> bool {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    manifest.lines().any(|line| line == format!("name = \"{name}\""))
}

/// Each `-p NAME` is a package of this repository, and has the test or benchmark that is named beside it. The records
/// below docs/measurements are read too: their figures have to be reproducible.
#[test]
fn documented_test_programs_are_there() {
    let root = files::of_this_repository("");
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages().into_iter().chain(records()) {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        for call in cargo_calls(&text) {
            found += usize::from(call.program.is_some());
            if !call.is_there() {
                wrong.push(format!("{page}: -p {} {:?}", call.package, call.program));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found >= 9, "the pages are not read as they are written");
}

#[test]
fn calls_of_cargo_are_read_in_both_spellings() {
    let text = "Run `cargo test -p xtask --test cli NAME`, or\n    X=1 cargo bench --package espalier-kernels --features benches --bench pool\n\
                `cargo test --package espalier-qa` and `cargo xtask test -p no`.";
    let calls: Vec<_> = cargo_calls(text).iter().map(|call| (call.package, call.program)).collect();
    let (tests, bench) = (Some(("tests", "cli")), Some(("benches", "pool")));
    assert_eq!(calls, [("xtask", tests), ("espalier-kernels", bench), ("espalier-qa", None)]);
    let is_there: Vec<bool> = cargo_calls(text).iter().map(CargoCall::is_there).collect();
    assert_eq!(is_there, [false, true, true]);
}

/// Commands in code blocks of records are run by hand, on repositories of the reader, but they exist.
#[test]
fn commands_of_records_can_be_parsed() {
    let root = files::of_this_repository("");
    let (mut found, mut wrong) = (0, Vec::new());
    for page in records() {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        for words in commands(&text) {
            found += 1;
            if let Err(error) = parse(&words) {
                wrong.push(format!("{page}: cargo xtask {}\n{error}", words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found >= 5, "the records are not read as they are written");
}

fn parse(words: &[String]) -> Result<Cli<All>, clap::Error> {
    Cli::<All>::try_parse_from(std::iter::once("cargo xtask").chain(words.iter().map(String::as_str)))
}

/// Returns the commands in code blocks, indented or fenced.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            found.extend(line.split("&&").filter_map(command_in));
        }
    }
    found
}

fn command_in(part: &str) -> Option<Vec<String>> {
    let arguments = part.trim().strip_prefix("cargo xtask ")?;
    let arguments = arguments.split(['|', '>']).next()?;
    Some(words(arguments))
}

/// Splits a line as a shell would: quotes, and a comment at the end.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns the name of the command, after the global arguments.
pub(super) fn name(words: &[String]) -> &str {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--root" => drop(rest.next()),
            word if word.starts_with('-') => {}
            word => return word,
        }
    }
    ""
}

#[test]
fn every_documented_command_can_be_parsed_and_is_checked_in_a_known_way() {
    let documented = documented();
    assert!(documented.len() > 40, "only {} commands were found", documented.len());
    let mut wrong = Vec::new();
    for (page, words) in &documented {
        if let Err(error) = parse(words) {
            wrong.push(format!("{page}: cargo xtask {}\n{error}", words.join(" ")));
        }
        if !HOW.iter().any(|(known, _)| *known == name(words)) {
            wrong.push(format!("{page}: cargo xtask {}: add it to `HOW`", words.join(" ")));
        }
    }
    let is_documented = |known: &str| documented.iter().any(|(_, words)| name(words) == known);
    let gone = HOW.iter().filter(|(known, _)| !is_documented(known));
    wrong.extend(
        gone.map(|(known, _)| format!("no page shows `cargo xtask {known}` any more: take it out of `HOW`")),
    );
    for (known, how) in HOW {
        if let Parsed(why) = how {
            assert!(!why.is_empty(), "{known}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_read_as_a_shell_does() {
    assert_eq!(words("new \"a b\" --set 'x: y'   # why"), ["new", "a b", "--set", "x: y"]);
    let text = "text `cargo xtask a`\n\n    cargo xtask b && cargo xtask c | less\n```\ncargo xtask d\n```\ncargo xtask e\n";
    assert_eq!(commands(text), [["b"], ["c"], ["d"]]);
    assert_eq!(name(&words("--root .. --json import x")), "import");
}

fn is_for_anybody(words: &[String]) -> bool {
    !words.iter().any(|word| OF_THE_READER.contains(&word.as_str()))
}

/// Replaces the documented release by the present pin, whose objects are here, and appends `more`.
fn at_present_pin(words: Vec<String>, more: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = words.into_iter().chain(more.iter().map(ToString::to_string)).collect();
    for at in 1..words.len() {
        if ["--to", "--tip"].contains(&words[at - 1].as_str()) {
            words[at] = OwnCopy::pin();
        }
    }
    words
}

/// Whether it moves the pin of this repository: [`this_repository_can_move_its_own_pin`] runs it.
fn moves_the_pin(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|one| one == word);
    name(words) == "rebase" && has("--to") && !has("--dry-run") && is_for_anybody(words)
}

/// A reader who pastes a command of a page does not move the pin back: no page names a pin that was moved away from.
#[test]
fn documented_moves_do_not_lead_to_an_earlier_pin() {
    let reports = files::list(&files::of_this_repository("docs/syncs"));
    let is_of = |release: &str| reports.iter().any(|report| report.starts_with(&format!("{release}-to-")));
    assert!(is_of("v0.4.0"), "the reports are not named as this test reads them: {reports:?}");
    for (page, words) in documented() {
        for pair in words.windows(2).filter(|pair| ["--to", "--tip"].contains(&pair[0].as_str())) {
            let shown = words.join(" ");
            assert!(!is_of(&pair[1]), "{page}: cargo xtask {shown}: the pin was {} before", pair[1]);
        }
    }
}

/// Commands that several pages show are run once: they change nothing, which is checked after each.
#[test]
fn documented_commands_run_on_this_repository() {
    let copy = OwnCopy::new();
    let mut ran: Vec<Vec<String>> = Vec::new();
    for (page, words) in documented() {
        let Some((_, Runs(more))) = HOW.iter().find(|(known, _)| *known == name(&words)) else { continue };
        if !is_for_anybody(&words) || moves_the_pin(&words) {
            continue;
        }
        let words = at_present_pin(words, more);
        if ran.contains(&words) {
            continue;
        }
        let output = copy.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.code, Some(0), "{page}: cargo xtask {}\n{output}", words.join(" "));
        assert_eq!(copy.kept(), "", "{page}: cargo xtask {}\n{output}", words.join(" "));
        ran.push(words);
    }
    for command in ["bisect", "edit", "lint", "newest", "prove", "rebase", "status", "sync"] {
        assert!(ran.iter().any(|words| words[0] == command), "`{command}` was not run: {ran:?}");
    }
}

/// The documented move, to the present pin, which changes nothing in any series. Runs up to the first build, which is
/// not tried here: every series is staged on the pin, none is skipped.
#[test]
fn this_repository_can_move_its_own_pin() {
    let copy = OwnCopy::new();
    let shown = documented().into_iter().map(|(_, words)| words).find(|words| moves_the_pin(words));
    let shown = shown.expect("a page shows how to move the pin");
    for variant in MOVED.into_iter().take(support::count(MORE, MOVES)) {
        let words = at_present_pin(shown.clone(), &["--json", "--variant", variant]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let report = copy.run(&words).success().json();
        assert_eq!(report["written"], true, "{report}");
        let patches = report["patches"].as_array().unwrap();
        // The siblings of generations stay.
        let mut all = files::list(&copy.root().join("patches"));
        all.retain(|name| !name.contains('@'));
        assert_eq!(patches.len(), all.len(), "{report}");
        assert!(patches.iter().all(|patch| patch["fate"] == "unchanged"), "{report}");
    }
    assert_eq!(copy.kept(), "");
}
