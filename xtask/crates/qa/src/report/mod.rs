//! PURE: results of `sync` and of `canary` as text and Markdown; statistics, tables and plots of the benchmarks.

pub mod bars;
pub mod canary;
pub mod curves;
pub mod samples;
pub mod sync;
pub mod table;
