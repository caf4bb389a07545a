//! Documents generated from clap's definitions: the reference of commands, manual pages, completions.

use super::support::{Project, files};

const FILES: [&str; 5] = [
    "docs/reference/commands.md",
    "docs/reference/commands-series.md",
    "docs/reference/commands-builds.md",
    "docs/reference/commands-checks.md",
    "docs/reference/commands-bench.md",
];

/// The one with the options of `fetch`.
const FILE: &str = FILES[1];

#[test]
fn the_committed_files_are_those_of_the_command_line() {
    let report = Project::new().run(&["--json", "docs", "--dry-run"]).success().json();
    let files: Vec<(&str, &str)> = report["files"].as_array().unwrap().iter().map(file_and_text).collect();
    assert_eq!(Vec::from_iter(files.iter().map(|(file, _)| *file)), FILES);
    for (file, text) in files {
        let committed = std::fs::read_to_string(files::of_this_repository(file)).unwrap();
        assert!(committed == text, "{file} is stale: cargo xtask docs");
    }
}

fn file_and_text(document: &serde_json::Value) -> (&str, &str) {
    (document["file"].as_str().unwrap(), document["text"].as_str().unwrap())
}

#[test]
fn they_are_written_and_then_up_to_date() {
    let project = Project::new();
    let lines = |line: fn(&str) -> String| FILES.map(line).join("\n");
    assert_eq!(project.run(&["docs"]).success().stdout.trim_end(), lines(|file| format!("wrote {file}")));
    for again in [&["docs"][..], &["docs", "--check"]] {
        let output = project.run(again).success();
        assert_eq!(output.stdout.trim_end(), lines(|file| format!("{file} is up to date")));
    }
    project.run(&["test", "--only", "docs"]).success();
}

#[test]
fn a_stale_file_fails_and_names_the_command_that_fixes_it() {
    let project = Project::new();
    project.run(&["docs"]).success();
    project.edit(FILE, "| `--dry-run` |", "| `--dryrun` |");
    project.run(&["docs", "--check"]).code(1).says(&[
        "error: `docs/reference/commands-series.md` is stale: the command line has changed",
        "first difference: line ",
        ", expected: | `--dry-run` | Print what would be done. |",
        "next: cargo xtask docs    # and commit the file",
    ]);
    project.run(&["test", "--only", "docs"]).code(1).says(&["is stale", "next: cargo xtask docs"]);
    std::fs::remove_file(project.path(FILE)).unwrap();
    project.run(&["docs", "--check"]).code(1).says(&["`docs/reference/commands-series.md` is stale"]);
}

/// A pin moves without README: its line is generated, so that a stale one fails.
#[test]
fn the_readme_names_the_pin() {
    let line = |pin: &str| format!("* **Upstream**: <!-- pin -->hello {pin}<!-- end of pin -->.\n");
    let project = Project::new();
    project.write("README.md", line("v0.9"));
    project.run(&["docs"]).success();
    assert_eq!(project.read("README.md"), line("v1.0"));
    project.run(&["docs", "--check"]).success();
    project.edit("pins.toml", "tag = \"v1.0\"", "tag = \"v1.1\"");
    project.run(&["docs", "--check"]).code(1).says(&[
        "`README.md` is stale: pins.toml, flavors.toml or a proof has changed",
        "first difference: line 1, expected: * **Upstream**: <!-- pin -->hello v1.1<!-- end of pin -->.",
    ]);
    project.edit("pins.toml", "tag = \"v1.1\"", &format!("commit = \"{}\"", "0aceb8d1".repeat(5)));
    project.run(&["docs"]).success();
    assert_eq!(project.read("README.md"), line("0aceb8d10ace"));
}

/// `cargo xtask docs --check` compares the line of a README that has one.
#[test]
fn the_readme_of_this_repository_has_the_line() {
    let readme = std::fs::read_to_string(files::of_this_repository("README.md")).unwrap();
    let pins = std::fs::read_to_string(files::of_this_repository("pins.toml")).unwrap();
    let (_, rest) = readme.split_once("* **Upstream**: <!-- pin -->llama.cpp ").unwrap();
    let (pin, _) = rest.split_once("<!-- end of pin -->").unwrap();
    assert!(pins.contains(&format!("= \"{pin}")), "README.md names {pin}, and pins.toml another pin");
}

#[test]
fn every_command_has_a_manual_page() {
    let project = Project::new();
    project.run(&["man", "man/man1"]).success();
    let pages = files::list(&project.path("man/man1"));
    for name in ["cargo-xtask.1", "cargo-xtask-fetch.1", "cargo-xtask-bench-apply.1"] {
        assert!(pages.contains(&name.to_string()), "{name} of {pages:?}");
    }
    let page = std::fs::read_to_string(project.path("man/man1/cargo-xtask-rebase.1")).unwrap();
    assert!(page.starts_with(".ie") && page.contains("\\-\\-drop\\-upstreamed"), "{page}");
}

/// Returns bash's completions of the last word, which is incomplete.
fn offered(script: &std::path::Path, words: &[&str]) -> String {
    let source = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={}; _xtask xtask {} {}; echo \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = std::process::Command::new("bash").args(["--norc", "-c", &source]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let project = Project::new();
    let script = project.beside("xtask.bash");
    files::write(&script, &project.run(&["completions", "bash"]).success().stdout);
    assert_eq!(offered(&script, &["xtask", "reb"]), "rebase");
    assert_eq!(offered(&script, &["xtask", "rebase", "--drop"]), "--drop-upstreamed");
    assert_eq!(offered(&script, &["xtask", "bench", "paged"]), "paged-decode");
    assert_eq!(offered(&script, &["xtask", "canary", "--until", "con"]), "contract");
}

#[test]
fn each_shell_gets_the_function_that_its_completions_are_for() {
    let project = Project::new();
    for (shell, function) in [
        ("bash", "xtask() { cargo xtask \"$@\"; }"),
        ("elvish", "fn xtask {|@a| e:cargo xtask $@a }"),
        ("fish", "function xtask; cargo xtask $argv; end"),
        ("powershell", "function xtask { cargo xtask @args }"),
        ("zsh", "xtask() { cargo xtask \"$@\"; }"),
    ] {
        let script = project.run(&["completions", shell]).success().stdout;
        assert!(script.trim_end().ends_with(function), "{shell}: {script}");
    }
    project.run(&["completions", "tcsh"]).code(2);
}
