//! Random models for the gate, the smoke test and the benchmarks.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod modelgen;
