//! Espalier's kernels: Rust behind a C ABI, linked into the patched llama.cpp.
//!
//! The C++ side sees only `include/espalier_kernels.h`; [`exports`], [`attention_exports`], [`kv_type_exports`],
//! [`pool_exports`] and [`scheduler_exports`] are the modules that implement it. Everything below them is ordinary Rust with ordinary tests:
//!
//! * [`features`]: the switches. Every feature is off until `ESPALIER_ENABLE` names it.
//! * [`gdn_output`]: where the output projection of a gated delta net layer may be flattened.
//! * [`attention`]: flash attention on the CPU. [`attention_exports`] is its border.
//! * [`kv_types`]: types of a KV cache below four bits and a half. [`kv_type_exports`] is its border.
//! * [`pool`]: the KV block pool: which tokens lie in which cells, and who may share them.
//! * [`scheduler`]: which request goes on, waits or gives way. [`scheduler_exports`] is its border.
//!
//! No panic crosses the border: each export catches it and returns a neutral value.

pub mod attention;
pub mod attention_exports;
mod border;
pub mod exports;
pub mod features;
pub mod gdn_output;
pub mod kv_type_exports;
pub mod kv_types;
pub mod pool;
pub mod pool_exports;
mod report;
pub mod scheduler;
pub mod scheduler_exports;
