//! Entry point: parses the arguments and sets the exit code.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use xtask::cli::Cli;
use xtask::sys::git::memory;
use xtask::sys::machine::disk;
use xtask::ui::{self, Answer};

/// Exit code when the reader of a pipe has closed it: the one that a shell reports for a program ended by `SIGPIPE`.
const PIPE_CLOSED: u8 = 141;

fn main() -> ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
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

/// Writes the answer; returns `code`, or the exit code of a failed write.
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
