//! PURE: everything about builds and packages as data: CMake's arguments, Ninja's output, the manifest and the other
//! documents of a package. `build` and `sys` carry it out.

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
pub mod rust_library;
pub mod shipped;
pub mod web_page;
