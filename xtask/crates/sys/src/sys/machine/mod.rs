//! The machine: programs, files, compilers, time and load.

pub mod clock;
pub mod compiler_cache;
pub mod compilers;
pub mod disk;
pub(in crate::sys) mod inherited_lock;
pub mod load;
pub mod memory;
pub mod models;
pub mod native_path;
pub mod node;
pub mod ours;
pub mod process;
pub mod processor_time;
pub mod rust_flags;
pub mod scratch;
pub mod secret;
pub mod threads;
pub mod toolchain;
pub mod tools;
pub(in crate::sys) mod watched;
