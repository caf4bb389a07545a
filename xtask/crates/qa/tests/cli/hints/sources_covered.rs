//! Every command in the sources' hints is printed by some scenario: the source texts are searched in the scenarios'
//! output.

use std::path::{Path, PathBuf};

use super::{cases, output_of, played};
use crate::cli::support::files;

/// Prefix of a command in a source text.
const COMMAND: &str = "cargo xtask ";

/// Files whose hints no scenario prints, with the reason.
const NOT_IN_A_CASE: &[(&str, &str)] = &[
    ("cli/reference.rs", "functions for shells, and no hints"),
    ("bench/", "a bench takes minutes, and servers that are built"),
    ("fuzz/", "the same"),
    ("gate/", "the same"),
    ("serving/", "the same"),
    (
        "sys/project/pinned_models.rs",
        "weights of a registry, which no case reaches; model.rs here types them",
    ),
    ("equipment.rs", "a toolchain of registries, which no test reaches"),
    ("release.rs", "it needs packages that are built; release.rs here reads it"),
    ("smoke_operations.rs", "a build and an accelerator; smoke_operations.rs here types it"),
    ("build/prove.rs", "what a proof says was typed, and no hint"),
    ("long.rs", "the commands that it carries out itself"),
    ("cmd/run.rs: use another one", "it needs a port that is in use"),
    ("sys/compilers.rs", "a machine without a compiler"),
    ("config/toolchains/", "it downloads: doctor.rs here types it where the registries are made up"),
    ("report/status_html_body.rs", "a page, which prints what `status` prints"),
];

/// One text with a command, as written in the sources.
struct Site {
    file: String,
    line: String,
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the lines with commands in the strings of `source`, without comments and tests; strings that form one text
/// are joined.
fn lines_with_commands(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).fold(String::new(), |text, line| {
            match text.strip_suffix("\\\n") {
                Some(before) => format!("{before}{}\n", line.trim_start()),
                None => text + line + "\n",
            }
        });
    let made = code.split("next_command(\"").skip(1).map(|rest| format!("{COMMAND}{}", until_quote(rest)));
    let written = code.split(COMMAND).scan(0, |at, part| {
        let begin = *at;
        *at += part.len() + COMMAND.len();
        Some(begin)
    });
    let written = written.skip(1).map(|end| whole_text(&code, end - COMMAND.len()));
    made.chain(written).flat_map(|text| with_command(&text)).collect()
}

fn with_command(text: &str) -> Vec<String> {
    // A command between backticks is mentioned, not suggested.
    let is_suggested = |line: &&str| line.replace(&format!("`{COMMAND}"), "").contains(COMMAND);
    text.split("\\n").filter(is_suggested).map(str::to_string).collect()
}

fn until_quote(text: &str) -> &str {
    let is_end = |at: &usize| text.as_bytes()[*at] == b'"' && !text[..*at].ends_with('\\');
    &text[..(0..text.len()).find(|at| text.is_char_boundary(*at) && is_end(at)).unwrap_or(text.len())]
}

/// Returns the string literal that contains the position `at`.
fn whole_text(code: &str, at: usize) -> String {
    let is_begin = |begin: &usize| code.as_bytes()[*begin - 1] == b'"' && !code[..*begin - 1].ends_with('\\');
    let begin = (1..=at).rev().filter(|begin| code.is_char_boundary(*begin)).find(is_begin).unwrap_or(at);
    until_quote(&code[begin..]).replace("\\\"", "\"")
}

/// Whether the literal parts of `pattern` occur in `line` in order; a part between `{` and `}` matches anything.
fn is_printed(pattern: &str, line: &str) -> bool {
    let fixed = pattern.split('{').enumerate().map(|(at, part)| match at {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, rest)| rest),
    });
    let mut rest = Some(line);
    for part in fixed {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

fn sites() -> Vec<Site> {
    let in_folder = |root: &PathBuf| -> Vec<Site> {
        let of_file = |path: PathBuf| {
            let file = path.strip_prefix(root).unwrap().display().to_string();
            let lines = lines_with_commands(&std::fs::read_to_string(&path).unwrap());
            lines.into_iter().map(move |line| Site { file: file.clone(), line })
        };
        sources(root).into_iter().flat_map(of_file).collect()
    };
    files::sources_of_the_tool().iter().flat_map(in_folder).collect()
}

#[test]
fn the_command_that_builds_a_package_is_written_once() {
    let sites = sites();
    let is_build = |site: &&Site| site.line.contains("cargo xtask build --variant {");
    let files: Vec<&String> = sites.iter().filter(is_build).map(|site| &site.file).collect();
    assert_eq!(files, ["plan/manifest.rs"], "call `plan::manifest::build_command`");
}

#[test]
fn every_command_of_the_sources_is_in_a_case() {
    let outputs: Vec<String> = cases().map(|case| output_of(case, || played(case).1).to_string()).collect();
    let is_in_a_case = |site: &Site| {
        outputs.iter().flat_map(|output| output.lines()).any(|line| is_printed(&site.line, line))
    };
    let is_listed = |site: &Site| {
        NOT_IN_A_CASE.iter().any(|(place, _)| format!("{}: {}", site.file, site.line).starts_with(place))
    };
    let sites = sites();
    assert!(sites.len() > 50, "the sources are not read as they are written: {} commands", sites.len());
    let missing = sites.iter().filter(|site| !is_in_a_case(site) && !is_listed(site));
    let missing: Vec<String> = missing.map(|site| format!("{}: {}", site.file, site.line)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
