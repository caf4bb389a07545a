//! The block pool, driven through its Rust API.
//!
//! `parity_*` contain tests with the names of vLLM's own, and check the same behaviour; `docs/design/kv-parity.md`
//! lists those that exist and those that are missing.

mod boundaries;
mod collisions;
mod contents;
mod copies;
mod distrust;
mod distrust_properties;
mod layouts;
mod parity_events;
mod parity_groups;
mod parity_hashes;
mod parity_lookup;
mod parity_prefix_caching;
mod parity_queue;
mod parity_snapshots;
mod parity_table;
mod parity_windows;
mod properties;
mod property_steps;
mod removing;
mod reserving;
mod sharing;
mod snapshots;
mod support;
mod waiting;
mod window_properties;
mod windows;
