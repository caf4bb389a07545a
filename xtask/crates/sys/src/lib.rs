//! Effects, what a command gets of its surroundings, and what it says on the way.
//!
//! The rooms, and what a room must not do, are in ARCHITECTURE.md.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod context;
pub mod sys;
pub mod ui;

pub use espalier_pure::{build, error, modelgen, plan};
pub use espalier_series as series;
