//! `cargo xtask`: fetches the pinned upstream, applies the patch series strictly, builds, proves.
//!
//! The rooms, and what a room must not do, are in ARCHITECTURE.md.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod bench;
pub mod build;
pub mod cli;
pub mod cmd;
pub mod context;
pub mod error;
pub mod fuzz;
pub mod gate;
pub mod modelgen;
pub mod plan;
pub mod report;
pub mod serving;
pub mod stack;
pub mod sys;
pub mod ui;
pub use espalier_series as series;
