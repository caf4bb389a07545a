//! `espalier`, the installed program: the commands of `cargo xtask` for projects outside of a clone of Espalier.

use espalier_core::invocation::Program;

fn main() -> std::process::ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
    unsafe { xtask::cli::main_of::<xtask::cli::Everyday>(Program::Espalier) }
}
