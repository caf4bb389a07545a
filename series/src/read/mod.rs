//! Parsers of patches, mails and other series.

pub(crate) mod apply_options;
pub(crate) mod authorship;
mod binary;
mod checks;
pub(crate) mod cursor;
pub(crate) mod dep3;
mod diff_header;
pub(crate) mod dropped;
mod encoded_word;
mod file_patch;
pub(crate) mod hg_header;
pub(crate) mod hunk;
pub(crate) mod hunk_header;
pub(crate) mod log_header;
pub(crate) mod loose_diff;
pub(crate) mod mail;
pub(crate) mod mbox;
pub(crate) mod missing_file;
pub(crate) mod parse;
pub(crate) mod parse_error;
pub(crate) mod patch_message;
pub(crate) mod quilt;
pub(crate) mod quoted_path;
pub(crate) mod recipe;
pub(crate) mod refusals;
pub(crate) mod subject;
