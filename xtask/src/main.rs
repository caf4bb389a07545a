//! The thin end of the tool: arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;
use xtask::cli::Cli;
use xtask::ui::{self, Answer};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.wants_json();
    let code = match cli.run() {
        Ok(outcome) => {
            let answer = if json { Answer::Json(outcome.json) } else { Answer::Text(outcome.text) };
            ui::answer(&answer, outcome.code)
        }
        Err(error) => {
            ui::say(&error.to_string());
            let answer = if json { Answer::Json(error.to_json()) } else { Answer::Text(String::new()) };
            ui::answer(&answer, error.kind.exit_code())
        }
    };
    ExitCode::from(code)
}
