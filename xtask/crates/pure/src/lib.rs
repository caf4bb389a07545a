//! Data and what follows from it: nothing here touches the machine.
//!
//! The rooms, and what a room must not do, are in ARCHITECTURE.md.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod build;
pub mod error;
pub mod plan;
pub mod report;

pub use espalier_modelgen::modelgen;
pub use espalier_series as series;
