//! PURE: results of benchmarks, of `sync` and of `canary`, as text, Markdown and plots.

pub mod bars;
pub mod canary;
pub mod curves;
pub mod results;
pub mod samples;
pub mod sync;
pub mod table;
