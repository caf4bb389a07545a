//! One patch applied to a tree: exactly, or not at all.

use super::classify::describe_drift;
use super::verdict::Verdict;
use crate::apply::patch::apply_files;
use crate::model::patch::Patch;
use crate::model::tree::{Tree, TreeChange, TreeError};

/// Applies `patch` to `tree`, which is not changed.
///
/// # Errors
///
/// Only when the tree cannot be read. A patch that does not fit is [`Verdict::Drifted`].
///
/// # Examples
///
/// ```
/// use espalier_series::{MemoryTree, Mode, PatchClass, Verdict, apply_patch, parse};
///
/// let text = "\
/// From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
/// From: A U Thor <author@example.com>
/// Date: Thu, 1 Jan 2026 00:00:00 +0000
/// Subject: [PATCH] add a notice
///
/// diff --git a/NOTICE b/NOTICE
/// new file mode 100644
/// index 0000000000000000000000000000000000000000..614044a256fad925550ab6cbc3565a0c8fb685a9
/// --- /dev/null
/// +++ b/NOTICE
/// @@ -0,0 +1 @@
/// +Modified.
/// ";
/// let patch = parse("0001-add-a-notice.patch", text.as_bytes()).unwrap();
/// let mut tree = MemoryTree::new();
/// let Verdict::Exact(changes) = apply_patch(&patch, &tree).unwrap() else { panic!("not exact") };
/// assert_eq!(changes[0].path.as_bytes(), b"NOTICE");
///
/// tree.put("NOTICE", Mode::File, b"Another notice.\n");
/// let Verdict::Drifted(drift) = apply_patch(&patch, &tree).unwrap() else { panic!("exact") };
/// assert_eq!(drift.class, PatchClass::Conflict);
/// ```
pub fn apply_patch(patch: &Patch, tree: &dyn Tree) -> Result<Verdict, TreeError> {
    let results = apply_files(patch, tree)?;
    if results.iter().any(Result::is_err) {
        return Ok(Verdict::Drifted(describe_drift(patch, &results, tree)?));
    }
    let mut changes: Vec<TreeChange> = results.into_iter().flatten().flatten().collect();
    changes.sort_by_key(|change| change.new.is_some());
    Ok(Verdict::Exact(changes))
}
