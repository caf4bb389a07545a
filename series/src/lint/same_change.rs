//! Whether two patches make the same commit, however their text came to differ.

use crate::model::patch::Patch;

/// Whether author, date, message, and every path, mode and blob on both sides are the same. Hunks, context
/// and diffstat follow from those; they may be cut differently by another version of git.
pub fn is_same_change(left: &Patch, right: &Patch) -> bool {
    let words = |patch: &Patch| (patch.author.clone(), patch.date.clone(), patch.message());
    let sides = |patch: &Patch| {
        let files = patch.files.iter();
        files.map(|file| (file.change, file.old.clone(), file.new.clone())).collect::<Vec<_>>()
    };
    words(left) == words(right) && sides(left) == sides(right)
}
