//! Espalier's kernels: Rust behind a C ABI, linked into the patched llama.cpp.
//!
//! The C++ side sees only `include/espalier_kernels.h`; [`exports`], [`attention_exports`], [`kv_type_exports`],
//! [`pool_exports`] and [`scheduler_exports`] are the modules that implement it. Everything below them is ordinary Rust
//! with ordinary tests:
//!
//! * [`features`]: the switches. Every feature is off until `ESPALIER_ENABLE` names it.
//! * [`gdn_output`]: conditions under which the output projection of a gated delta net layer may be flattened.
//! * [`attention`]: flash attention on the CPU. [`attention_exports`] is its C ABI.
//! * [`kv_types`]: KV cache types below 4.5 bits. [`kv_type_exports`] is their C ABI.
//! * [`pool`]: the KV block pool: cells of each sequence's tokens, and prefix caching.
//! * [`scheduler`]: admission, queueing and preemption of requests. [`scheduler_exports`] is its C ABI.
//!
//! No panic crosses the C ABI: each export catches it and returns a neutral value.

pub mod attention;
pub mod attention_exports;
pub mod exports;
pub mod features;
mod ffi;
pub mod gdn_output;
pub mod kv_type_exports;
pub mod kv_types;
pub mod pool;
pub mod pool_exports;
mod report;
pub mod scheduler;
pub mod scheduler_exports;
