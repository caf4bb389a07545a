//! Espalier's kernels: Rust behind a C ABI, linked into the patched llama.cpp.
//!
//! The C++ side sees only `include/espalier_kernels.h`; [`exports`] is the one module that
//! implements it. Everything below it is ordinary Rust with ordinary tests:
//!
//! * [`features`]: the switches. Every feature is off until `ESPALIER_ENABLE` names it.
//! * [`gdn_output`]: where the output projection of a gated delta net layer may be flattened.
//!
//! No panic crosses the border: each export catches it and returns a neutral value.

mod border;
pub mod exports;
pub mod features;
pub mod gdn_output;
mod report;
