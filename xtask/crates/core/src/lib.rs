//! The base of every part of the tool: errors, output, the project's configuration, and all effects on git, processes,
//! the network and the disk.
//!
//! ARCHITECTURE.md describes the crates and their modules, and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod config;
pub mod context;
pub mod day;
pub mod error;
pub mod http;
pub mod invocation;
pub mod next_command;
pub mod plan;
pub mod random;
pub mod sys;
pub mod ui;
