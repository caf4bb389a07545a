//! Comparison of two patches by the commit that they make, however their texts came to differ.

use crate::model::patch::Patch;

/// Returns whether author, date, message, and every path, mode and blob on both sides are the same. Hunks, context and
/// diffstat follow from those; other versions of git may cut them differently.
pub fn is_same_change(left: &Patch, right: &Patch) -> bool {
    let words = |patch: &Patch| (patch.author.clone(), patch.date.clone(), patch.message());
    let sides = |patch: &Patch| {
        let files = patch.files.iter();
        files.map(|file| (file.change, file.old.clone(), file.new.clone())).collect::<Vec<_>>()
    };
    words(left) == words(right) && sides(left) == sides(right)
}
