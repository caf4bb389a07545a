//! Pure data and functions: nothing here does I/O.
//!
//! ARCHITECTURE.md describes the modules, and what each of them must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod build;
pub mod error;
pub mod plan;
pub mod report;

pub use espalier_modelgen::modelgen;
pub use espalier_series as series;
