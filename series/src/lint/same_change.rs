//! Comparison of two patches by the commit that they make, however their texts came to differ.

use crate::model::patch::Patch;

/// Returns whether author, date, message, and every path, mode and blob on both sides are the same. Hunks, context and
/// diffstat follow from those; other versions of git may cut them differently.
///
/// # Examples
///
/// ```
/// use espalier_series::{is_same_change, parse};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] add an empty file
///
/// diff --git a/empty b/empty
/// new file mode 100644
/// index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391
/// ";
/// let patch = parse("0001-add-an-empty-file.patch", text.as_bytes()).unwrap();
///
/// let with_prose = text.replace("diff --git", "---\nNot a part of the commit.\n\ndiff --git");
/// let renumbered = parse("0002-add-an-empty-file.patch", with_prose.as_bytes()).unwrap();
/// assert!(is_same_change(&patch, &renumbered));
///
/// let executable = text.replace("100644", "100755");
/// let executable = parse("0001-add-an-empty-file.patch", executable.as_bytes()).unwrap();
/// assert!(!is_same_change(&patch, &executable));
/// ```
pub fn is_same_change(left: &Patch, right: &Patch) -> bool {
    let words = |patch: &Patch| (patch.author.clone(), patch.date.clone(), patch.message());
    let sides = |patch: &Patch| {
        let files = patch.files.iter();
        files.map(|file| (file.change, file.old.clone(), file.new.clone())).collect::<Vec<_>>()
    };
    words(left) == words(right) && sides(left) == sides(right)
}
