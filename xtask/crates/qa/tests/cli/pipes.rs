//! `cargo xtask X | head -1`, for every command: a closed pipe causes no message, and has no other effect.

use std::process::Stdio;

use clap::CommandFactory;

use super::support::{Output, Project, files, upstream::moved};

/// A call of every command in a small project that can be repeated with the same outcome.
const CALLS: &str = "\
apply
bench capacity
bisect --tip main --from UPSTREAM
build --dry-run
canary --dry-run
completions bash
docs --check
doctor
edit
export
fetch
fuzz servers
gate
gc --dry-run
image --dry-run
import no-such-patches
init --from UPSTREAM --at v1.0 --variant another --dry-run
lint
lock
man target/man
matrix
model
new Greet --dry-run
newest --tip main --from UPSTREAM
page
prove HEAD
rebase --to main --from UPSTREAM --dry-run
release --dry-run
run
smoke
status
sync --to main --from UPSTREAM --dry-run
test --list
toolchain cpu-native --dry-run
trailers --set Status:x --dry-run
undo --dry-run
verify no-such-package
";

/// Returns a pipe without a reader.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

fn run(project: &Project, call: &[&str], stdout: Option<Stdio>, stderr: Option<Stdio>) -> Output {
    let mut command = project.command(call);
    command.stdout(stdout.unwrap_or_else(Stdio::piped)).stderr(stderr.unwrap_or_else(Stdio::piped));
    project.output(&command.spawn().unwrap().wait_with_output().unwrap())
}

/// Asserts the exit code, and the same text on the other stream, with standard output, standard error or both closed.
fn assert_ends_quietly(project: &Project, call: &[&str]) {
    let whole = run(project, call, None, None);
    let code = if whole.stdout.is_empty() { whole.code } else { Some(141) };
    let no_answer = run(project, call, Some(closed()), None);
    assert_eq!((no_answer.code, &no_answer.stderr), (code, &whole.stderr), "{call:?} | head: {whole}");
    let no_talk = run(project, call, None, Some(closed()));
    assert_eq!((no_talk.code, &no_talk.stdout), (whole.code, &whole.stdout), "{call:?} 2>&-: {whole}");
    let nothing = run(project, call, Some(closed()), Some(closed()));
    assert_eq!(nothing.code, code, "{call:?}: {whole}");
}

#[test]
fn every_command_is_called_here() {
    let called: Vec<&str> = CALLS.lines().filter_map(|call| call.split(' ').next()).collect();
    let mut known: Vec<String> = xtask::cli::Cli::<espalier_qa::cli::All>::command()
        .get_subcommands()
        .map(|one| one.get_name().to_string())
        .collect();
    known.sort();
    assert_eq!(called, known);
}

#[test]
fn every_command_ends_quietly_in_front_of_head() {
    let project = Project::new();
    let upstream = moved(&project, &[("Say hi", "src/greet.c", "return \"hello\";", "return \"hi\";")]);
    let upstream = upstream.to_str().unwrap();
    for prepared in ["fetch", "apply", "lock", "edit"] {
        project.run(&[prepared]).success();
    }
    for call in CALLS.lines() {
        let words: Vec<&str> =
            call.split(' ').map(|word| if word == "UPSTREAM" { upstream } else { word }).collect();
        assert_ends_quietly(&project, &words);
        assert_ends_quietly(&project, &[&["--json"], &words[..]].concat());
    }
}

#[test]
fn help_ends_quietly_too() {
    let project = Project::new();
    for call in [&["--help"][..], &["rebase", "--help"], &["no-such-command"]] {
        let whole = run(&project, call, None, None);
        let no_answer = run(&project, call, Some(closed()), None);
        assert_eq!((no_answer.code, &no_answer.stderr), (whole.code, &whole.stderr), "{call:?}");
    }
}

/// The output of programs that a command runs goes to standard error: with `--json` the only text on standard output is
/// the JSON value.
#[test]
fn the_output_of_other_programs_goes_to_stderr() {
    let project = Project::new();
    let cargo = project.beside("cargo");
    files::write_script(&cargo, "echo Diff in some file; exit 1");
    project.write("xtask/Cargo.toml", "");
    let mut command = project.command(&["--json", "test", "--only", "fmt"]);
    command.env("CARGO", &cargo);
    let output = project.finish(command).code(1).says(&["Diff in some file"]);
    assert_eq!(output.json()["failed"], 1);
}
