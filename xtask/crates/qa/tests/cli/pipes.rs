//! `cargo xtask X | head -1`, for every command: a closed pipe causes no message, and has no other effect.

use std::ffi::{OsStr, OsString};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use clap::CommandFactory;

use super::support::{Output, Project, files, program_path, upstream::moved};

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

/// Returns an output without a reader. The reader of a pipe could live on in a process that another thread has just
/// forked; a socket that is shut down has none in any process.
fn closed() -> Stdio {
    let (reader, writer) = UnixStream::pair().unwrap();
    reader.shutdown(Shutdown::Both).unwrap();
    OwnedFd::from(writer).into()
}

/// Returns the PATH of this machine, preceded by a `python3` that has pip and answers at once: on a machine without CMake
/// and Ninja, each of the eight runs of `doctor` asks it twice.
fn path_with_quick_python(project: &Project) -> OsString {
    files::write_script(&project.beside("quick/python3"), "echo pip 24.0");
    let machine = program_path::of_this_machine();
    let folders = std::iter::once(project.beside("quick")).chain(std::env::split_paths(&machine));
    std::env::join_paths(folders).unwrap()
}

/// Runs a call of the project, with the PATH before it.
fn run(
    project: &Project,
    (path, call): (&OsStr, &[&str]),
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
) -> Output {
    let mut command = project.command_with_path(call, path);
    command.stdout(stdout.unwrap_or_else(Stdio::piped)).stderr(stderr.unwrap_or_else(Stdio::piped));
    project.output(&command.spawn().unwrap().wait_with_output().unwrap())
}

/// Asserts the exit code, and the same text on the other stream, with standard output, standard error or both closed.
fn assert_ends_quietly(project: &Project, path: &OsStr, call: &[&str]) {
    let run = |stdout, stderr| run(project, (path, call), stdout, stderr);
    let whole = run(None, None);
    let code = if whole.stdout.is_empty() { whole.code } else { Some(141) };
    let no_answer = run(Some(closed()), None);
    assert_eq!((no_answer.code, &no_answer.stderr), (code, &whole.stderr), "{call:?} | head: {whole}");
    let no_talk = run(None, Some(closed()));
    assert_eq!((no_talk.code, &no_talk.stdout), (whole.code, &whole.stdout), "{call:?} 2>&-: {whole}");
    let nothing = run(Some(closed()), Some(closed()));
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
    let (upstream, path) = (upstream.to_str().unwrap(), path_with_quick_python(&project));
    for prepared in ["fetch", "apply", "lock", "edit"] {
        project.run(&[prepared]).success();
    }
    for call in CALLS.lines() {
        let words: Vec<&str> =
            call.split(' ').map(|word| if word == "UPSTREAM" { upstream } else { word }).collect();
        assert_ends_quietly(&project, &path, &words);
        assert_ends_quietly(&project, &path, &[&["--json"], &words[..]].concat());
    }
}

#[test]
fn help_ends_quietly_too() {
    let (project, path) = (Project::new(), program_path::of_this_machine());
    for call in [&["--help"][..], &["rebase", "--help"], &["no-such-command"]] {
        let whole = run(&project, (&path, call), None, None);
        let no_answer = run(&project, (&path, call), Some(closed()), None);
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
