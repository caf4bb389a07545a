//! `espalier`, the installed program: the commands of `cargo xtask` for projects outside of a clone of Espalier.

fn main() -> std::process::ExitCode {
    // SAFETY: this is the first statement of `main`, so no other thread exists.
    unsafe { xtask::main_of(xtask::Program::Espalier) }
}
