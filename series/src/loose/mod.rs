//! Diffs as other tools write them: rewritten so that git can read them, and their hunks placed where they belong.

pub(crate) mod changed_files;
mod diff_parts;
mod hunk_lines;
pub(crate) mod hunk_places;
pub(crate) mod line_ends;
mod look_alikes;
mod loose_hunk;
pub(crate) mod loose_reading;
pub(crate) mod lost_changes;
pub(crate) mod placed_hunks;
mod placed_part;
pub(crate) mod strip_count;
pub(crate) mod tolerated;
