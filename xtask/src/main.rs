//! The thin end of the tool: arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;
use xtask::cli::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.wants_json();
    match cli.run() {
        Ok(outcome) => {
            if json {
                println!("{}", outcome.json);
            } else if !outcome.text.is_empty() {
                println!("{}", outcome.text);
            }
            ExitCode::from(outcome.code)
        }
        Err(error) => {
            if json {
                println!("{}", error.to_json());
            }
            eprintln!("{error}");
            ExitCode::from(error.kind.exit_code())
        }
    }
}
