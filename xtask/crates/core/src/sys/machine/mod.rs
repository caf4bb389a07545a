//! The machine: programs, files, compilers, time and load.

pub mod clock;
pub mod context_switches;
pub mod disk;
pub(crate) mod inherited_lock;
pub mod load;
pub mod memory;
pub mod native_path;
pub mod owned;
pub mod process;
pub mod processor_time;
pub mod running;
pub mod scratch;
pub mod secret;
pub mod threads;
pub mod tools;
pub mod watched;
