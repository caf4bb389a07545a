//! The program `espalier`: the commands of `cargo xtask`, for projects outside of a clone of Espalier.

use std::path::Path;
use std::process::Command;

use super::support::importing::started;
use super::support::upstream::moved;
use super::support::{Output, Project, files, program_path};

/// Runs the installed program in `folder`, without cargo's variables.
fn espalier(project: &Project, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_espalier-qa"));
    command
        .env_clear()
        .env("ESPALIER_CALLED_AS", "espalier")
        .env("PATH", program_path::of_this_machine())
        .env("HOME", project.beside("home"));
    command.current_dir(folder).args(arguments);
    project.finish(command)
}

#[track_caller]
fn assert_names_espalier(text: &str, expected: &str) {
    assert!(text.contains(expected) && !text.contains("xtask"), "{expected}: {text}");
}

#[test]
fn help_and_usage_errors_name_it() {
    let project = Project::new();
    for (arguments, code, expected) in [
        (&["--help"][..], 0, "Usage: espalier [OPTIONS] <COMMAND>"),
        (&["--version"], 0, concat!("espalier ", env!("CARGO_PKG_VERSION"))),
        (&["run", "--help"], 0, "`espalier run -- -m model.gguf --port 8080`"),
        (&["rebase", "--no-such-option"], 2, "Usage: espalier rebase"),
    ] {
        let output = espalier(&project, project.root(), arguments).code(code);
        assert_names_espalier(&output.to_string(), expected);
    }
}

#[test]
fn printed_commands_name_it_in_text_and_in_json() {
    let project = started();
    let again = ["init", "--from", "../upstream", "--at", "v1.0", "--variant", "other"];
    let output = espalier(&project, project.root(), &again).code(2);
    assert_names_espalier(&output.stderr, "next: bring patches into it: espalier import --help");
    assert_names_espalier(&output.stderr, "mkdir -p DIR && espalier init --root DIR");
    let json = espalier(&project, project.root(), &[&["--json"], &again[..]].concat()).code(2);
    assert_names_espalier(&json.stdout, "espalier import --help");
    let rooted = [&["--root", "project"], &again[..]].concat();
    let output = espalier(&project, &project.beside(""), &rooted).code(2);
    assert_names_espalier(&output.stderr, "espalier import --root project --help");
}

#[test]
fn the_project_is_the_nearest_folder_with_pins_upwards() {
    let project = Project::new();
    let below = project.path("patches/paged");
    let output = espalier(&project, &below, &["fetch", "--dry-run"]).success();
    assert!(output.stdout.starts_with("hello v1.0 tree"), "{output}");
    let elsewhere = project.beside("home");
    let output = espalier(&project, &elsewhere, &["fetch"]).code(2);
    output.says(&["there is no `pins.toml`", "next: run this inside"]);
}

#[test]
fn the_page_of_status_names_it() {
    let project = Project::new();
    let upstream = moved(&project, &[("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";")]);
    let from = upstream.display().to_string();
    let arguments = ["status", "--tip", "main", "--from", &from, "--html", "page.html"];
    let output = espalier(&project, project.root(), &arguments).code(1);
    assert_names_espalier(&output.stdout, "next: espalier rebase --dry-run --to main");
    assert_names_espalier(&project.read("page.html"), "`espalier rebase --to main --from ");
}

#[test]
fn manual_pages_and_completions_name_it() {
    let project = Project::new();
    espalier(&project, project.root(), &["man", "man1"]).success();
    let pages = files::list(&project.path("man1"));
    for name in ["espalier.1", "espalier-fetch.1", "espalier-bench-apply.1"] {
        assert!(pages.contains(&name.to_string()), "{name} of {pages:?}");
    }
    for page in pages {
        assert_names_espalier(&project.read(&format!("man1/{page}")), "espalier");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = espalier(&project, project.root(), &["completions", shell]).success().stdout;
        assert_names_espalier(&script, "espalier");
    }
}

/// The page belongs to a clone, in which `cargo xtask` works.
#[test]
fn the_reference_of_commands_is_the_same_from_both_programs() {
    let project = Project::new();
    espalier(&project, project.root(), &["docs"]).success();
    project.run(&["docs", "--check"]).success();
}

#[test]
fn a_command_that_reads_files_of_espalier_names_the_one_that_is_missing() {
    let project = started();
    for (bench, missing, next) in [
        ("kernels", "kernels/Cargo.toml", "run this in a clone of Espalier that has your variant"),
        ("decode", "ci/probe/probe.cpp", "mkdir -p ci && cp -R ESPALIER/ci/probe ci/"),
        ("kv-quality", "ci/probe/quality.cpp", "mkdir -p ci && cp -R ESPALIER/ci/probe ci/"),
    ] {
        let output = espalier(&project, project.root(), &["bench", bench]).code(2);
        let output =
            output.says(&[&format!("there is no `{missing}`, a file of Espalier's repository"), next]);
        // A bench needs the file: removing `gate =` would not help.
        output.says_nothing_of("gate =");
    }
    let output = espalier(&project, project.root(), &["test", "--only", "fmt"]).code(1);
    output.says(&["there is no `xtask/Cargo.toml`, a file of Espalier's repository"]);
}

#[test]
fn a_build_that_cannot_be_smoked_compiles_nothing() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("ci/models")).unwrap();
    let copy = "mkdir -p ci/models && cp -R ESPALIER/ci/models/espalier-draft.gguf ci/models/";
    espalier(&project, project.root(), &["build"]).code(2).says(&["ci/models/espalier-draft.gguf", copy]);
    assert!(!project.path("target/espalier/build").exists());
}
