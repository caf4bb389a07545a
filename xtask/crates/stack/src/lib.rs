//! A variant with all that it is made of, and the servers that come out of it.
//!
//! The rooms, and what a room must not do, are in ARCHITECTURE.md.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod serving;
pub mod stack;

pub use espalier_pure::{build, error, modelgen, plan, report};
pub use espalier_series as series;
pub use espalier_sys::{context, sys, ui};
