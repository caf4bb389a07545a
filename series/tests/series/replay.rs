//! A patch made for one tree, replayed on another: correct merges, and no silent misplacement.

use std::collections::BTreeSet;

use espalier_series::{
    AppliedSeries, ConflictReason, MemoryTree, MergeKind, Patch, PatchClass, Replay, Replayed, SameFunction,
    Step, TreeNames, outside_edits,
};

use crate::support::{modify, read, tree};

pub(super) static NOTHING_UPSTREAMED: BTreeSet<usize> = BTreeSet::new();
pub(super) const NAMES: TreeNames<'_> = TreeNames { pin: "v1", tip: "v2" };

pub(super) fn step(pin: &MemoryTree, tip: &MemoryTree, patch: &Patch) -> Step {
    let mut tip = tip.clone();
    tip.came_after(pin);
    let applied = AppliedSeries::new(std::slice::from_ref(patch), pin).unwrap();
    Replay::new(&applied, &tip, NAMES, &NOTHING_UPSTREAMED).step(0).unwrap()
}

pub(super) fn replayed(pin: &MemoryTree, tip: &MemoryTree, patch: &Patch) -> Replayed {
    step(pin, tip, patch).replayed
}

pub(super) fn reason(replayed: &Replayed) -> &ConflictReason {
    &replayed.conflicts().next().expect("there must be a conflict").reason
}

pub(super) fn marked(replayed: &Replayed) -> String {
    let conflict = replayed.conflicts().next().unwrap();
    String::from_utf8(conflict.marked.clone().unwrap()).unwrap()
}

/// Returns the content of the only file afterwards.
pub(super) fn result(step: &Step) -> String {
    let file = step.changes.iter().find_map(|change| change.new.as_ref()).expect("a file");
    String::from_utf8(file.content.as_ref().unwrap().to_vec()).unwrap()
}

pub(super) fn function(name: &str, factor: usize) -> String {
    format!(
        "static int {name}(int x) {{\n    int y = x;\n    y += 1;\n    y += 2;\n    y *= {factor};\n    \
         y -= 4;\n    y -= 5;\n    return y;\n}}\n\n"
    )
}

/// Returns a patch that changes the factor of the function `name` in `base` from 3 to 4.
pub(super) fn change_factor(base: &str, name: &str) -> Patch {
    let at = base.find(&format!("static int {name}(")).unwrap();
    let line = base[..at].lines().count() + 3;
    let (before, after) = base.split_at(at);
    let new = format!("{before}{}", after.replacen("*= 3", "*= 4", 1));
    let hunk = format!(
        "@@ -{line},6 +{line},6 @@ static int {name}(int x) {{\n     y += 1;\n     y += 2;\n-    y *= 3;\n\
         +    y *= 4;\n     y -= 4;\n     y -= 5;\n     return y;\n"
    );
    read(&modify("a.c", base, &new, &hunk))
}

pub(super) fn on(base: &str, upstream: &str, patch: &Patch) -> Replayed {
    replayed(&tree(&[("a.c", base)]), &tree(&[("a.c", upstream)]), patch)
}

#[test]
fn unchanged_files_are_reused_by_id() {
    let base = function("one", 3);
    let patch = change_factor(&base, "one");
    assert_eq!(on(&base, &base, &patch).files[0].merge_kind, MergeKind::Unchanged);
}

#[test]
fn changes_elsewhere_are_merged() {
    let base = format!("{}{}", function("one", 3), function("two", 5));
    let upstream = format!("int more;\n{}", base.replace("*= 5", "*= 7"));
    let patch = change_factor(&base, "one");
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
    assert_eq!(step.replayed.files[0].merge_kind, MergeKind::Placed);
    assert_eq!(result(&step), upstream.replace("*= 3", "*= 4"));
}

#[test]
fn changes_inside_the_context_are_merged() {
    let base = function("one", 3);
    let upstream = base.replace("y += 1", "y += 11");
    let patch = change_factor(&base, "one");
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
    assert_eq!(step.replayed.files[0].merge_kind, MergeKind::Merged);
    assert_eq!(result(&step), upstream.replace("*= 3", "*= 4"));
}

#[test]
fn the_same_lines_are_a_conflict() {
    let base = function("one", 3);
    let replayed = on(&base, &base.replace("*= 3", "*= 9"), &change_factor(&base, "one"));
    assert_eq!(*reason(&replayed), ConflictReason::SameLines);
    assert!(marked(&replayed).contains("<<<<<<< v2\n"), "{}", marked(&replayed));
}

/// Text outside of the markers is the automatic result, and each conflict has its place in all three versions.
#[test]
fn the_place_of_each_conflict_is_known() {
    let base = format!("{}int a;\n{}", function("one", 3), function("two", 3));
    let new = base.replace("*= 3", "*= 4");
    let hunk = |line: usize, name: &str| {
        format!(
            "@@ -{line},3 +{line},3 @@ static int {name}(int x) {{\n     y += 2;\n-    y *= 3;\n+    y *= 4;\n     y -= 4;\n"
        )
    };
    let patch = read(&modify("a.c", &base, &new, &(hunk(4, "one") + &hunk(15, "two"))));
    let upstream = format!("int more;\n{}", base.replace("*= 3", "*= 9"));
    let replayed = on(&base, &upstream, &patch);
    let conflict = replayed.conflicts().next().unwrap();
    let places: Vec<_> = conflict
        .hunks
        .iter()
        .map(|hunk| [&hunk.base, &hunk.ours, &hunk.theirs].map(|lines| lines.start))
        .collect();
    assert_eq!(places, [[4, 5, 4], [15, 16, 15]]);
    let marked = marked(&replayed);
    let lines: Vec<&str> = marked.lines().collect();
    for hunk in &conflict.hunks {
        assert!(
            lines[hunk.marked.start].starts_with("<<<<<<< ")
                && lines[hunk.marked.end - 1].starts_with(">>>>>>> ")
        );
    }
    let resolved = upstream.replace("*= 9", "*= 10");
    assert!(outside_edits(marked.as_bytes(), &conflict.hunks, resolved.as_bytes()).is_empty());
    let edited = resolved.replace("int a;", "int b;");
    let edits = outside_edits(marked.as_bytes(), &conflict.hunks, edited.as_bytes());
    let places: Vec<_> = edits
        .iter()
        .map(|edit| (edit.line, edit.expected.first.as_deref(), edit.found.first.as_deref()))
        .collect();
    assert_eq!(places, [(12, Some("int a;"), Some("int b;"))]);
}

/// Upstream moves the body of a function into another one. A person has put the change of the first patch there, and
/// the second patch changes the line of the first.
#[test]
fn a_place_that_was_decided_for_an_earlier_patch_is_not_in_doubt() {
    let body: String = (1..12).map(|step| format!("    step_{step}(at);\n")).collect();
    let base = format!("int walk(int at) {{\n{body}    return at;\n}}\n");
    let moved = base.replace("walk(int at)", "walk_by(int at, int by)")
        + "\nint walk(int at) {\n    return walk_by(at, 1);\n}\n";
    let first = |text: &str| text.replace("step_3(at)", "step_3(at, 3)");
    let second = |text: &str| first(text).replace("(at, 3)", "(at, 33)");
    let hunk = |old: &str, new: &str| {
        format!(
            "@@ -3,3 +3,3 @@ int walk(int at) {{\n     step_2(at);\n-    {old};\n+    {new};\n     step_4(at);\n"
        )
    };
    let hunks = [hunk("step_3(at)", "step_3(at, 3)"), hunk("step_3(at, 3)", "step_3(at, 33)")];
    let patches = [
        read(&modify("a.c", &base, &first(&base), &hunks[0])),
        read(&modify("a.c", &first(&base), &second(&base), &hunks[1])),
    ];
    let pin = tree(&[("a.c", &base)]);
    let (tip, resolved) = (tree(&[("a.c", &moved)]), tree(&[("a.c", &first(&moved))]));
    let applied = AppliedSeries::new(&patches, &pin).unwrap();
    let replay = || Replay::new(&applied, &resolved, NAMES, &NOTHING_UPSTREAMED);
    let doubted = replay().step(1).unwrap().replayed;
    assert!(matches!(reason(&doubted), ConflictReason::LookAlike { .. }), "{doubted:?}");
    let same = [SameFunction {
        path: "a.c".to_owned(),
        made_for: "int walk(int at) {".to_owned(),
        lands_in: "int walk_by(int at, int by) {".to_owned(),
    }];
    for settled in [replay().with_upstream(&tip), replay().with_same_functions(&same)] {
        let mut settled = settled;
        assert_eq!(result(&settled.step(1).unwrap()), second(&moved));
    }
    // A line that upstream has is still in doubt.
    let upstreams = replay().with_upstream(&resolved).step(1).unwrap().replayed;
    assert!(matches!(reason(&upstreams), ConflictReason::LookAlike { .. }), "{upstreams:?}");
}

#[test]
fn upstreamed_hunks_are_named_all_or_some() {
    let base = format!("{}{}", function("one", 3), function("two", 3));
    let patch = change_factor(&base, "one");
    let there = base.replacen("*= 3", "*= 4", 1);
    assert_eq!(on(&base, &there, &patch).class(), PatchClass::Upstreamed);
    let and_more = format!("int more;\n{there}");
    assert_eq!(on(&base, &and_more, &patch).class(), PatchClass::Upstreamed);

    let far = format!("{}{}", function("one", 3), "int filler;\n".repeat(20));
    let old = format!("{far}int last = 1;\n");
    let new = old.replace("*= 3", "*= 4").replace("last = 1", "last = 2");
    let hunks = "@@ -3,5 +3,5 @@ static int one(int x) {\n     y += 1;\n     y += 2;\n-    y *= 3;\n+    y *= 4;\n     y -= 4;\n     y -= 5;\n\
                 @@ -28,4 +28,4 @@ static int one(int x) {\n int filler;\n int filler;\n int filler;\n-int last = 1;\n+int last = 2;\n";
    let patch = read(&modify("a.c", &old, &new, hunks));
    let replayed = on(&old, &old.replace("last = 1", "last = 2"), &patch);
    assert_eq!(replayed.class(), PatchClass::PartlyUpstreamed, "{replayed:?}");
    assert_eq!(replayed.files[0].merge_kind, MergeKind::PartlyThere { lines: 2, of: 4 });
}

/// A line that both sides deleted leaves nothing to decide. One of two equal lines does: each side may mean another one.
#[test]
fn a_deletion_that_both_sides_made_is_not_asked_about() {
    let tail = function("one", 3);
    let patch = |old: &str, new: &str, deleted: &str| {
        let hunks = format!(
            "@@ -1,4 +1,3 @@\n int a;\n-set();\n {deleted}\n int b;\n@@ -8,3 +7,3 @@ static int one(int x) {{\n     y += 2;\n\
             -    y *= 3;\n+    y *= 4;\n     y -= 4;\n"
        );
        read(&modify("a.c", old, new, &hunks))
    };
    for (below, kind) in [
        ("get();", MergeKind::DeletedByBoth { lines: 1 }),
        ("set();", MergeKind::PartlyThere { lines: 1, of: 3 }),
    ] {
        let old = format!("int a;\nset();\n{below}\nint b;\n{tail}");
        let upstream = old.replacen("set();\n", "", 1);
        let new = upstream.replace("*= 3", "*= 4");
        let replayed = on(&old, &upstream, &patch(&old, &new, below));
        assert_eq!(replayed.files[0].merge_kind, kind, "{replayed:?}");
    }
    // Upstream has moved it: the patch may be meant for the new place too.
    let old = format!("int a;\nset();\nget();\nint b;\n{tail}");
    let moved = format!("{}set();\n", old.replacen("set();\n", "", 1));
    let new = old.replacen("set();\n", "", 1).replace("*= 3", "*= 4");
    let replayed = on(&old, &moved, &patch(&old, &new, "get();"));
    assert_eq!(replayed.files[0].merge_kind, MergeKind::PartlyThere { lines: 1, of: 3 }, "{replayed:?}");
}

#[test]
fn a_patch_that_is_not_exact_on_its_own_tree_is_refused() {
    let base = function("one", 3);
    let patch = change_factor(&base, "one");
    let pin = tree(&[("a.c", "other\n")]);
    let applied = AppliedSeries::new(std::slice::from_ref(&patch), &pin).unwrap();
    assert!(Replay::new(&applied, &pin, NAMES, &NOTHING_UPSTREAMED).step(0).is_err());
}
