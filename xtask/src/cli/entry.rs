//! The entry point of both programs: parses the arguments and sets the exit code.

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use espalier_core::invocation::Program;
use espalier_core::sys::git::memory;
use espalier_core::sys::machine::disk;
use espalier_core::ui::{self, Answer};

use super::{Cli, Commands};

/// Exit code when the reader of a pipe has closed it: the one that a shell reports for a program ended by `SIGPIPE`.
const PIPE_CLOSED: u8 = 141;

/// Runs the command line of this process, which started as `program`; returns its exit code.
///
/// # Safety
///
/// Writes globals of libgit2 without synchronization: no other thread may run yet.
pub unsafe fn main_of<C: Commands>(program: Program) -> ExitCode {
    // SAFETY: per this function's contract no other thread runs.
    unsafe { memory::limit() };
    let cli = Cli::<C>::from_command_line(program);
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
