//! One file a command: options in, outcome out. No process or file call of its own: `sys/` has those.

pub mod bisect;
pub mod canary;
pub mod completions;
pub mod docs;
pub mod doctor;
pub mod edit;
pub mod export;
pub mod fetch;
pub mod gc;
pub mod import;
pub mod init;
pub mod lint;
pub mod long;
pub mod man;
pub mod matrix;
pub mod new;
pub mod newest;
pub mod page;
pub mod run;
pub mod status;
pub mod sync;
pub mod test;
pub mod toolchain;
pub mod trailers;
pub mod verify;
pub mod workflows;
