//! `cargo xtask` and `espalier`: fetch the pinned upstream, apply the patch series strictly, build, ship.
//!
//! The commands that check and measure are in the crate `espalier-qa`, whose program has all commands; see [`cli`].
//! ARCHITECTURE.md describes the crates and their modules, and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod cli;
pub mod cmd;
