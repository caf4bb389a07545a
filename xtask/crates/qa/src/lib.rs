//! Checks and measurements of what was built: servers under test, the gate, the fuzzers, the benchmarks; and the
//! commands that run them.
//!
//! ARCHITECTURE.md describes the crates and their modules, and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod bench;
pub mod canary;
pub mod cli;
pub mod completions;
pub mod docs;
pub mod fuzz;
pub mod gate;
pub mod long;
pub mod man;
pub mod page;
pub mod report;
pub mod serving;
pub mod sync;
pub mod sys;
pub mod test;
