//! PURE: everything about builds as data: CMake's arguments, Ninja's output, the package and its manifest.
//!
//! Nothing here runs a program: `cmd/build.rs` executes the steps and `sys/` has the effects.

pub mod cmake;
pub mod compile_commands;
pub mod compiler;
pub mod compiler_cache;
pub mod devices;
pub mod difference;
pub mod image;
pub mod linked;
pub mod manifest;
pub mod ninja;
pub mod node_range;
pub mod operations;
pub mod prefix_map;
pub mod reference;
pub mod shipped;
pub mod web_page;
