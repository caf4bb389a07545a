//! PURE: what a command found, as data, and as text, Markdown, one HTML page or a plot made from that data.

pub mod bars;
pub mod bisect;
pub mod canary;
mod cut;
mod day;
pub mod newest;
mod range_diff;
pub mod rebase;
mod rebase_text;
pub mod replay;
mod silent_revert;
pub mod status;
mod status_html;
mod status_html_body;
mod status_text;
pub mod sync;
pub mod taken;
