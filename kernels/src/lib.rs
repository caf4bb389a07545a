//! Espalier's kernels: Rust behind a C ABI, linked into the patched llama.cpp.
//!
//! The C++ side sees only the headers in `include/`, which [`ffi`] implements. Everything below it is ordinary Rust with
//! ordinary tests:
//!
//! * [`features`]: the switches. Every feature is off until `ESPALIER_ENABLE` names it.
//! * [`variables`]: misspelt environment variables.
//! * [`container`]: memory that the limits of control groups leave.
//! * [`fit`]: the size of a KV cache that fits into free memory.
//! * [`gdn`]: the recurrence of gated delta nets on the CPU, and the convolution before it.
//! * [`gdn_output`]: conditions under which the output projection of a gated delta net layer may be flattened.
//! * [`scheduler`]: admission, queueing and preemption of requests.
//! * [`pool`]: the KV block pool: cells of each sequence's tokens, and prefix caching.
//! * [`kv_quant`]: KV cache types below 4.5 bits.
//! * [`kv_gather`]: the hint for sparse attention over a paged cache on accelerators.
//! * [`attention`]: flash attention on the CPU.
//! * [`mul_mat`]: matrix multiplication (GEMM) with q8_0 weights on the CPU.
//! * [`share`]: division of a computation among threads.
//! * [`simd`]: instruction sets, and operations on their vectors.
//!
//! No panic crosses the C ABI: each export catches it and returns a neutral value.

pub mod attention;
pub mod container;
pub mod features;
pub mod ffi;
pub mod fit;
pub mod gdn;
pub mod gdn_output;
pub mod kv_gather;
pub mod kv_quant;
pub mod mul_mat;
pub mod pool;
mod report;
pub mod scheduler;
pub mod share;
pub mod simd;
pub mod variables;
