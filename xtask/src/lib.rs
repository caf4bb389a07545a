//! `cargo xtask` and `espalier`: fetch the pinned upstream, apply the patch series strictly, build, prove.
//!
//! The modules, and what each must not do, are described in ARCHITECTURE.md.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod cli;
pub mod cmd;

pub use cli::main_of;
pub use espalier_bench::bench;
pub use espalier_gate::{fuzz, gate};
pub use espalier_pure::plan::called::Program;
pub use espalier_pure::{build, error, modelgen, plan, report};
pub use espalier_series as series;
pub use espalier_stack::{serving, stack};
pub use espalier_sys::{context, sys, ui};
