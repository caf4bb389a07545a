//! One file per command: options in, outcome out. Processes and files are accessed through `sys/` only.

pub mod fetch;
pub mod gc;
pub mod init;
pub mod model;
pub mod run;
pub mod smoke;
pub mod undo;
pub mod workflows;
