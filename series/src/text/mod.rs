//! Lines, functions and diffs of texts.

pub(crate) mod added_lines;
pub(crate) mod brackets;
pub(crate) mod common_words;
pub(crate) mod earlier_lines;
pub(crate) mod enclosing;
pub(crate) mod enclosing_lines;
pub(crate) mod function;
pub(crate) mod identifiers;
pub(crate) mod language;
pub(crate) mod likeness;
pub(crate) mod line_diff;
pub(crate) mod line_index;
pub(crate) mod line_shape;
pub(crate) mod markers;
pub(crate) mod outside_edit;
pub(crate) mod same_function;
pub(crate) mod search;
pub(crate) mod three_way;
