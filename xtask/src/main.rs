//! The thin end of the tool: arguments in, exit code out.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use xtask::cli::Cli;
use xtask::sys::git::memory;
use xtask::sys::machine::disk;
use xtask::ui::{self, Answer};

/// The reader of a pipe that had enough: what a shell shows of a program that `SIGPIPE` ended.
const PIPE_CLOSED: u8 = 141;

fn main() -> ExitCode {
    // SAFETY: it is the first thing that runs, and no thread has been spawned.
    unsafe { memory::limit() };
    let cli = Cli::from_command_line();
    let json = cli.wants_json();
    let code = match cli.run() {
        Ok(outcome) => {
            let answer = if json { Answer::Json(outcome.json) } else { Answer::Text(outcome.text) };
            write(&answer, outcome.code)
        }
        Err(error) => {
            ui::say(&error.to_string());
            let answer = if json { Answer::Json(error.to_json()) } else { Answer::Text(String::new()) };
            write(&answer, error.kind.exit_code())
        }
    };
    ExitCode::from(code)
}

/// Gives `code`, or the exit code for what went wrong with writing.
fn write(answer: &Answer, code: u8) -> u8 {
    match ui::answer(answer) {
        Ok(()) => code,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => PIPE_CLOSED,
        Err(error) => {
            let error = disk::explain("write to", Path::new("standard output"), &error);
            ui::say(&error.to_string());
            error.kind.exit_code()
        }
    }
}
