//! Hand-written patch texts, with the blob ids filled in.

use espalier_series::{
    FileDriftKind, HunkClass, HunkDrift, MemoryTree, Mode, ObjectId, Patch, PatchDrift, Refusal, Tree,
    TreeChange, Verdict, apply_patch, parse,
};
use git2::{ObjectType, Oid};

pub const NULL_ID: &str = "0000000000000000000000000000000000000000";

const MAIL: &str = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
    From: A U Thor <author@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
    Subject: [PATCH] a change\n\n---\n\n";

/// Returns the id of a blob.
pub fn id(content: &str) -> ObjectId {
    let by_git = Oid::hash_object(ObjectType::Blob, content.as_bytes()).unwrap();
    by_git.to_string().parse().unwrap()
}

/// Returns `diff` as a whole patch file.
pub fn mail(diff: &str) -> String {
    format!("{MAIL}{diff}")
}

/// Returns a patch of one text file that stays at `path`.
pub fn modify(path: &str, old: &str, new: &str, hunks: &str) -> String {
    let (old, new) = (id(old), id(new));
    format!("diff --git a/{path} b/{path}\nindex {old}..{new} 100644\n--- a/{path}\n+++ b/{path}\n{hunks}")
}

/// Returns a patch that creates a file of one line.
pub fn create(path: &str) -> String {
    create_with_mode(path, "100644")
}

/// The same with any mode.
pub fn create_with_mode(path: &str, mode: &str) -> String {
    let new = id("new\n");
    format!(
        "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex {NULL_ID}..{new}\n\
         --- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+new\n"
    )
}

/// Returns a patch that deletes a file of one line.
pub fn delete(path: &str, line: &str) -> String {
    let old = id(&format!("{line}\n"));
    format!(
        "diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex {old}..{NULL_ID}\n\
         --- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{line}\n"
    )
}

/// Returns a pure rename.
pub fn rename(from: &str, to: &str) -> String {
    format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
}

/// Parses a diff that must be well formed.
pub fn read(diff: &str) -> Patch {
    read_named("0001-a-change.patch", diff)
}

/// The same with a file name.
pub fn read_named(name: &str, diff: &str) -> Patch {
    parse(name, mail(diff).as_bytes()).unwrap_or_else(|error| panic!("{error}\n{diff}"))
}

/// Returns the refusal of a diff.
pub fn refusal(diff: &str) -> Refusal {
    match parse("0001-a-change.patch", mail(diff).as_bytes()) {
        Ok(_) => panic!("not refused:\n{diff}"),
        Err(error) => error.refusal,
    }
}

/// Returns a tree of plain files.
pub fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let mut tree = MemoryTree::new();
    for (path, content) in files {
        tree.put(path, Mode::File, content.as_bytes());
    }
    tree
}

/// Applies a patch that must be exact.
pub fn changes(patch: &Patch, tree: &dyn Tree) -> Vec<TreeChange> {
    match apply_patch(patch, tree).unwrap() {
        Verdict::Exact(changes) => changes,
        other => panic!("not exact:\n{other:?}"),
    }
}

/// Applies a patch that must not be exact.
pub fn drift(patch: &Patch, tree: &dyn Tree) -> PatchDrift {
    match apply_patch(patch, tree).unwrap() {
        Verdict::Drifted(drift) => drift,
        other => panic!("exact: {other:?}"),
    }
}

/// Returns the hunks of the only file of a drift.
pub fn hunks(drift: &PatchDrift) -> &[HunkDrift] {
    match &drift.files[0].kind {
        FileDriftKind::Hunks { hunks, .. } => hunks,
        other => panic!("no hunks: {other:?}"),
    }
}

/// Returns their classes.
pub fn classes(drift: &PatchDrift) -> Vec<HunkClass> {
    hunks(drift).iter().map(|hunk| hunk.class).collect()
}
