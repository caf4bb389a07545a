//! Effects, the context of a command, and its output along the way.
//!
//! ARCHITECTURE.md lists the modules and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod context;
pub mod sys;
pub mod ui;

pub use espalier_pure::{build, error, modelgen, plan};
pub use espalier_series as series;
