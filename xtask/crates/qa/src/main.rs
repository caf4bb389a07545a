//! The program with all commands: `cargo xtask` and `espalier` start it for those that check and measure.

fn main() -> std::process::ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
    unsafe { xtask::cli::main_of::<espalier_qa::cli::All>(xtask::cli::checks::called_as()) }
}
