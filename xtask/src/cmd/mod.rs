//! One file a command: options in, outcome out. No process or file call of its own: `sys/` has those.

pub mod apply;
pub mod bisect;
pub mod build;
pub mod canary;
pub mod edit;
pub mod export;
pub mod fetch;
pub mod import;
pub mod init;
pub mod lint;
pub mod lock;
pub mod new;
pub mod newest;
pub mod pinned_series;
pub mod rebase;
pub mod run;
pub mod smoke;
pub mod status;
pub mod sync;
pub mod test;
pub mod trailers;
pub mod workflows;
