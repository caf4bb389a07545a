//! PURE: the reports of commands, as data, and rendered from that data as text, Markdown, one HTML page, a picture or a
//! plot.

pub mod bisect;
pub mod conflict;
pub mod conflict_readme;
pub mod content;
mod cut;
pub mod generation;
pub mod newest;
pub mod number_references;
pub mod proof;
mod proof_entries;
pub mod proof_intended;
pub mod proof_text;
pub mod range_diff;
pub mod rebase;
pub mod rebase_text;
pub mod replay;
pub mod status;
pub mod status_html;
mod status_html_body;
pub mod status_svg;
pub mod status_text;
pub mod svg;
pub mod upstreamed;
