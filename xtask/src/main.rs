//! `cargo xtask`, in a clone of Espalier.

use espalier_core::invocation::Program;

fn main() -> std::process::ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
    unsafe { xtask::cli::main_of::<xtask::cli::Everyday>(Program::CargoXtask) }
}
