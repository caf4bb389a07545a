//! Replayed patches of whole files: created, deleted, renamed, split, links and binary files.

use espalier_series::{
    AppliedSeries, ConflictReason, MemoryTree, MergeKind, Mode, PatchClass, Replay, RepoPath,
};

use crate::replay::{
    NAMES, NOTHING_UPSTREAMED, change_factor, function, marked, on, reason, replayed, result, step,
};
use crate::support::{create, delete, id, modify, read, rename, tree};
/// The file is at its new path then; git, too, leaves none at the old one.
#[test]
fn a_renamed_file_in_conflict_leaves_its_old_path() {
    let base = function("one", 3);
    let new = base.replace("*= 3", "*= 4");
    let diff = format!(
        "diff --git a/a.c b/b.c\nsimilarity index 90%\nrename from a.c\nrename to b.c\nindex {}..{} 100644\n--- a/a.c\n\
         +++ b/b.c\n@@ -4,3 +4,3 @@ static int one(int x) {{\n     y += 2;\n-    y *= 3;\n+    y *= 4;\n     y -= 4;\n",
        id(&base),
        id(&new)
    );
    let upstream = base.replace("*= 3", "*= 9");
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &read(&diff));
    assert_eq!(step.replayed.conflicts().next().unwrap().path.to_string(), "b.c");
    let changes: Vec<_> =
        step.changes.iter().map(|change| (change.path.to_string(), change.new.is_some())).collect();
    assert_eq!(changes, [("a.c".to_owned(), false)]);
}

#[test]
fn a_renamed_file_is_followed_when_it_is_clear_where_to() {
    let base = function("one", 3);
    let pin = tree(&[("a.c", &base), ("z.c", "int z;\n")]);
    let patch = change_factor(&base, "one");
    let same = step(&pin, &tree(&[("b.c", &base), ("z.c", "int z;\n")]), &patch);
    let followed = same.replayed.files[0].followed.as_ref().unwrap();
    assert_eq!((followed.to.to_string().as_str(), followed.percent), ("b.c", 100));
    let changed = base.replace("y += 1", "y += 11");
    let similar = step(&pin, &tree(&[("b.c", &changed)]), &patch);
    assert_eq!(similar.replayed.files[0].followed.as_ref().unwrap().percent, 88);
    assert_eq!(result(&similar), changed.replace("*= 3", "*= 4"));

    let two = replayed(&pin, &tree(&[("b.c", &base), ("c.c", &base)]), &patch);
    let ConflictReason::FileGone { candidates } = reason(&two) else { panic!("{two:?}") };
    assert_eq!(candidates.len(), 2);
    let gone = replayed(&pin, &tree(&[("y.c", "int other;\n")]), &patch);
    assert_eq!(*reason(&gone), ConflictReason::FileGone { candidates: Vec::new() });
    // A copy that existed all along is not its new path.
    let copied = replayed(&tree(&[("a.c", &base), ("b.c", &base)]), &tree(&[("b.c", &base)]), &patch);
    assert_eq!(*reason(&copied), ConflictReason::FileGone { candidates: Vec::new() });
}

#[test]
fn the_parts_of_a_file_that_was_split_are_named() {
    let base = format!("{}{}", function("one", 3), function("two", 5).replace("y -=", "z -="));
    let patch = change_factor(&base, "one");
    let (one, two) = base.split_at(function("one", 3).len());
    let more = |text: &str| format!("{text}{}", "int more;\nint even_more;\n".repeat(6));
    let (one, two) = (more(one), more(two));
    let split = replayed(&tree(&[("a.c", &base)]), &tree(&[("x.c", &one), ("y.c", &two)]), &patch);
    let ConflictReason::FileGone { candidates } = reason(&split) else { panic!("{split:?}") };
    assert_eq!(candidates.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["x.c", "y.c"]);
    assert_eq!(split.class(), PatchClass::TargetRenamed);
}

#[test]
fn later_patches_follow_the_file_too() {
    let base = function("one", 3);
    let after = base.replace("*= 3", "*= 4");
    let hunk = "@@ -5,4 +5,4 @@ static int one(int x) {\n     y *= 4;\n     y -= 4;\n     y -= 5;\n-    return y;\n+    return -y;\n";
    let second = read(&modify("a.c", &after, &after.replace("return y", "return -y"), hunk));
    let (pin, mut tip) = (tree(&[("a.c", &base)]), tree(&[("b.c", &base)]));
    tip.came_after(&pin);
    let patches = [change_factor(&base, "one"), second];
    let applied = AppliedSeries::new(&patches, &pin).unwrap();
    let mut replay = Replay::new(&applied, &tip, NAMES, &NOTHING_UPSTREAMED);
    replay.step(0).unwrap();
    let step = replay.step(1).unwrap();
    assert_eq!(step.replayed.files[0].merge_kind, MergeKind::Placed);
    assert_eq!(step.changes[0].path.to_string(), "b.c");
}

#[test]
fn files_that_come_go_and_move_name_their_conflicts() {
    let pin = tree(&[("old.c", "old\n")]);
    let with = |content: &str| tree(&[("old.c", "old\n"), ("new.c", content)]);
    let new = read(&create("new.c"));
    assert_eq!(replayed(&pin, &pin, &new).files[0].merge_kind, MergeKind::Unchanged);
    assert_eq!(replayed(&pin, &with("new\n"), &new).class(), PatchClass::Upstreamed);
    let exists = replayed(&pin, &with("other\n"), &new);
    assert_eq!(*reason(&exists), ConflictReason::FileExists);
    assert_eq!(marked(&exists), "<<<<<<< v2\nother\n=======\nnew\n>>>>>>> 0001-a-change.patch\n");

    let gone = read(&delete("old.c", "old"));
    assert_eq!(replayed(&pin, &pin, &gone).files[0].merge_kind, MergeKind::Unchanged);
    assert_eq!(replayed(&pin, &tree(&[]), &gone).class(), PatchClass::Upstreamed);
    let changed = replayed(&pin, &tree(&[("old.c", "changed\n")]), &gone);
    assert_eq!(*reason(&changed), ConflictReason::DeletedButChanged);

    let moved = read(&rename("old.c", "new.c"));
    let step = step(&pin, &tree(&[("old.c", "changed\n")]), &moved);
    assert_eq!(step.changes.len(), 2);
    assert_eq!(step.changes[1].new.as_ref().unwrap().id, id("changed\n"));
    assert_eq!(*reason(&replayed(&pin, &with("other\n"), &moved)), ConflictReason::FileExists);
    assert_eq!(replayed(&pin, &tree(&[("new.c", "old\n")]), &moved).class(), PatchClass::Upstreamed);
}

#[test]
fn links_and_binary_files_are_left_to_a_person() {
    let base = function("one", 3);
    let patch = change_factor(&base, "one");
    let mut link = MemoryTree::new();
    link.put("a.c", Mode::Symlink, b"elsewhere");
    assert!(matches!(
        reason(&replayed(&tree(&[("a.c", &base)]), &link, &patch)),
        ConflictReason::Refused { .. }
    ));
    let binary = on(&base, "\0binary\n", &patch);
    assert_eq!(*reason(&binary), ConflictReason::Binary);
    let other_case = replayed(&tree(&[]), &tree(&[("NEW.c", "x\n")]), &read(&create("new.c")));
    assert!(matches!(reason(&other_case), ConflictReason::Refused { .. }));
}

#[test]
fn an_executable_stays_executable() {
    let base = function("one", 3);
    let mut tip = MemoryTree::new();
    tip.put("a.c", Mode::Executable, format!("int a;\n{base}").as_bytes());
    let step = step(&tree(&[("a.c", &base)]), &tip, &change_factor(&base, "one"));
    assert_eq!(step.changes[0].new.as_ref().unwrap().mode.as_git_mode(), 0o100_755);
}

#[test]
fn a_new_file_in_a_folder_that_moved_is_left_to_the_user() {
    let patch = read(&create("src/new.c"));
    let pin = tree(&[("src/a.c", "a\n"), ("src/b.c", "b\n")]);
    let path = |path: &str| RepoPath::new(path.as_bytes()).unwrap();
    let moved = replayed(&pin, &tree(&[("core/a.c", "a\n"), ("core/b.c", "b\n")]), &patch);
    let expected = ConflictReason::FolderMoved { from: path("src/new.c"), to: path("core/new.c") };
    assert_eq!(*reason(&moved), expected);
    assert_eq!(moved.conflicts().next().unwrap().path, path("core/new.c"));
    // A folder with a remaining file was not moved, nor was one that is gone with all its contents.
    for there in [&[("core/a.c", "a\n"), ("src/b.c", "b\n")][..], &[("other.c", "other\n")]] {
        assert_eq!(replayed(&pin, &tree(there), &patch).class(), PatchClass::Exact);
    }
}

#[test]
fn a_file_that_both_renamed_has_no_name() {
    let patch = read(&rename("old.c", "mine.c"));
    let both = replayed(&tree(&[("old.c", "text\n")]), &tree(&[("theirs.c", "text\n")]), &patch);
    let path = |path: &str| RepoPath::new(path.as_bytes()).unwrap();
    let expected = ConflictReason::RenamedTwice {
        from: path("old.c"),
        by_patch: path("mine.c"),
        by_upstream: path("theirs.c"),
    };
    assert_eq!(*reason(&both), expected);
}
