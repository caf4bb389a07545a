//! Builds and what is shipped of them: toolchains, CMake and Ninja, packages, releases, images, and their verification.
//!
//! ARCHITECTURE.md describes the crates and their modules, and what each must not do.

#![deny(clippy::print_stdout, clippy::print_stderr, reason = "a closed pipe makes them panic: use ui")]

pub mod build;
pub mod build_args;
pub mod checked_packages;
pub mod doctor;
pub mod equipment;
pub mod flavors;
pub mod health;
pub mod image;
pub mod matrix;
pub mod packaged;
pub mod plan;
pub mod release;
pub mod shipped;
pub mod smoke;
pub mod smoke_operations;
pub mod smoke_rpc;
pub mod sys;
pub mod toolchain;
pub mod verify;
pub mod watched;
pub mod web_page;
