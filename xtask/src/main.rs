//! `cargo xtask`, in a clone of Espalier.

fn main() -> std::process::ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
    unsafe { xtask::main_of(xtask::Program::CargoXtask) }
}
