//! A variant with all of its inputs, and the servers that are built from it.
//!
//! ARCHITECTURE.md lists the modules and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod serving;
pub mod stack;

pub use espalier_pure::{build, error, modelgen, plan, report};
pub use espalier_series as series;
pub use espalier_sys::{context, sys, ui};
