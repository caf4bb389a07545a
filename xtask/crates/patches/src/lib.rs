//! The patch series: applied, locked, compared with other upstream trees, rebased, imported, exported, linted.
//!
//! ARCHITECTURE.md describes the crates and their modules, and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod apply;
pub mod bisect;
pub mod commit_property;
pub mod commits;
pub mod edit;
pub mod export;
pub mod generation;
pub mod import;
pub mod lint;
pub mod lock;
pub mod lock_file;
pub mod new;
pub mod newest;
pub mod overlays;
pub mod pinned_series;
pub mod proof;
pub mod prove;
pub mod range;
pub mod ready;
pub mod rebase;
pub mod report;
pub mod stack;
pub mod status;
pub mod trailers;
pub mod upstreamed;
