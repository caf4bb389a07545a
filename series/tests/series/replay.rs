//! A patch made for one tree, replayed on another: correct merges, and no silent misplacement.

use std::collections::BTreeSet;

use espalier_series::{
    ConflictReason, MemoryTree, MergeKind, Mode, Origin, Patch, PatchClass, Replay, Replayed, RepoPath,
    SameFunction, Step, TreeNames, outside_edits,
};

use crate::support::{create, delete, id, modify, read, rename, tree};

pub(super) static NOTHING_TAKEN: BTreeSet<usize> = BTreeSet::new();
pub(super) const NAMES: TreeNames<'_> = TreeNames { pin: "v1", tip: "v2" };

fn step(pin: &MemoryTree, tip: &MemoryTree, patch: &Patch) -> Step {
    let mut tip = tip.clone();
    tip.came_after(pin);
    let origin = Origin::new(std::slice::from_ref(patch), pin).unwrap();
    Replay::new(&origin, &tip, NAMES, &NOTHING_TAKEN).step(0).unwrap()
}

fn replayed(pin: &MemoryTree, tip: &MemoryTree, patch: &Patch) -> Replayed {
    step(pin, tip, patch).replayed
}

fn reason(replayed: &Replayed) -> &ConflictReason {
    &replayed.conflicts().next().expect("there must be a conflict").reason
}

fn marked(replayed: &Replayed) -> String {
    let conflict = replayed.conflicts().next().unwrap();
    String::from_utf8(conflict.marked.clone().unwrap()).unwrap()
}

/// Returns the content of the only file afterwards.
fn result(step: &Step) -> String {
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

fn on(base: &str, upstream: &str, patch: &Patch) -> Replayed {
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

/// Returns a function that calls `call` in one case, as llama.cpp's operations do.
fn operation(name: &str, call: &str) -> String {
    format!("void {name}(int * p) {{\n{}}}\n\n", switch(call))
}

fn switch(call: &str) -> String {
    format!(
        "    switch (p[0]) {{\n        case F32:\n            {{\n                {call}(p);\n            }} break;\n        \
         default:\n            {{\n                ABORT();\n            }}\n    }}\n"
    )
}

const OTHER_CASE: &str =
    "        case I32:\n            {\n                sort_i32(p);\n            } break;\n";

/// Returns `text` with another case after the first one.
fn with_other_case(text: &str) -> String {
    text.replacen("        default:\n", &format!("{OTHER_CASE}        default:\n"), 1)
}

/// Returns a patch that adds a case to the operation that `base` begins with.
fn add_case(base: &str) -> Patch {
    let added: String = OTHER_CASE.lines().map(|line| format!("+{line}\n")).collect();
    let hunk = format!(
        "@@ -4,6 +4,10 @@ void sort(int * p) {{\n             {{\n                 sort_f32(p);\n             \
         }} break;\n{added}         default:\n             {{\n                 ABORT();\n"
    );
    read(&modify("a.c", base, &with_other_case(base), &hunk))
}

/// A function of the same form below fits as well from the bottom up, but the context is in one of the two only.
#[test]
fn a_new_function_of_the_same_form_is_not_in_the_way() {
    let base = format!("{}int end;\n", operation("sort", "sort_f32"));
    let upstream = base.replace("int end;", &format!("{}int end;", operation("topk", "topk_f32")));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &add_case(&base));
    assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
    assert_eq!(result(&step), with_other_case(&upstream));
}

/// Neither of two places in one function is certain, nor one of two that have the whole context.
#[test]
fn a_look_alike_that_the_context_does_not_tell_apart_is_left_to_a_person() {
    let base = format!("{}int end;\n", operation("sort", "sort_f32"));
    let twice = base.replace("    }\n}\n", &format!("    }}\n{}}}\n", switch("topk_f32")));
    let copied = base.replace("int end;", &format!("{}int end;", operation("topk", "sort_f32")));
    for upstream in [twice, copied] {
        let replayed = on(&base, &upstream, &add_case(&base));
        assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
    }
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
    let origin = Origin::new(&patches, &pin).unwrap();
    let replay = || Replay::new(&origin, &resolved, NAMES, &NOTHING_TAKEN);
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

/// Upstream deletes a function; one with the same body stays, exactly or nearly. No kind of merge may put the change
/// into the one that stays.
#[test]
fn a_deleted_function_never_hands_its_change_to_its_twin() {
    let (one, two) = (function("one", 3), function("two", 3));
    let base = format!("{one}{two}");
    let nearly = two.replace("y += 1;", "y += 1; // first");
    let renamed = function("three", 3);
    for stays in
        [two.clone(), nearly, renamed, format!("int filler;\n\n{two}"), two.replace("return y", "return -y")]
    {
        for (order, upstream) in [("first", stays.clone()), ("last", format!("int a;\n{stays}int b;\n"))] {
            let replayed = on(&base, &upstream, &change_factor(&base, "one"));
            assert!(replayed.has_conflict(), "{order}:\n{upstream}");
        }
    }
}

/// The line merge is clean here: only the function tells that the place is wrong.
#[test]
fn a_merge_that_lands_in_a_lookalike_is_looked_at() {
    // Upstream deletes `one`; `two` stays, moved and with nearly the text of `one`.
    let two = format!("static int two(int x) {{\n{}}}\n\n", "    int z = 0;\n".repeat(9));
    let base = format!("{two}int a;\n{}int b;\n", function("one", 3));
    let upstream = format!("int a;\n{}int b;\n", function("two", 3).replace("y += 1", "y += 11"));
    let replayed = on(&base, &upstream, &change_factor(&base, "one"));
    let ConflictReason::LookAlike { ambiguities } = reason(&replayed) else { panic!("{replayed:?}") };
    assert_eq!(ambiguities[0].made_for.as_deref(), Some("static int one(int x) {"));
    assert_eq!(ambiguities[0].made_for_line, Some(14));
    assert_eq!(ambiguities[0].lands_in.as_deref(), Some("static int two(int x) {"));
    assert_eq!(ambiguities[0].lands_in_line, Some(2));
    let expected = "<<<<<<< v2\n    y *= 3;\n=======\n    y *= 4;\n>>>>>>> 0001-a-change.patch\n";
    assert!(marked(&replayed).contains(expected), "{}", marked(&replayed));
}

/// Upstream gives the function another name, other parameters, another type, or another first line of its body.
#[test]
fn a_function_that_upstream_renamed_is_still_the_one() {
    let base = format!("{}{}", function("one", 3), function("two", 5));
    let head = "static int one(int x) {\n";
    let heads = [
        "static int one_impl(int x) {\n",
        "int one(int x, int more) {\n",
        "GGML_API size_t other(\n        int x,\n        int more) {\n",
        "template <typename T>\nstatic T one(T x)\n{\n",
        "static int helper(int x) {\n    return x;\n}\n\nstatic int one_impl(int x) {\n    x = helper(x);\n",
    ];
    for other in heads {
        let upstream = base.replace(head, other);
        let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &change_factor(&base, "one"));
        assert!(!step.replayed.has_conflict(), "{other}{:?}", step.replayed);
        assert_eq!(result(&step), upstream.replace("*= 3", "*= 4"));
    }
}

/// A head counts as renamed only if the old name is gone and the new one was not there before.
#[test]
fn the_head_of_another_function_is_not_a_new_name() {
    let other = |name: &str| format!("static int {name}(int x) {{\n{}}}\n\n", "    int z = 0;\n".repeat(9));
    let base = format!("{}{}", function("one", 3), other("two"));
    // `one` is now another function, below.
    let replaced = format!("{}{}", function("three", 3), other("one"));
    // `two` moved to the place of `one`.
    let moved = function("two", 3);
    for upstream in [replaced, moved] {
        let upstream = upstream.replace("y += 1;", "y += 11;");
        assert_eq!(
            on(&base, &upstream, &change_factor(&base, "one")).class(),
            PatchClass::MovedFunction,
            "{upstream}"
        );
    }
}

/// Of functions with equal heads, as on both sides of an `#else`, the line tells which one is meant.
#[test]
fn a_repeated_head_is_distinguished_by_its_line() {
    let with = |call: &str| {
        format!("static int one(int x) {{\n    {call}a(x);\n    {call}b(x);\n    return x;\n}}\n")
    };
    let text = |first: &str, second: &str| format!("#if A\n{first}#else\n{second}#endif\n");
    let base = text(&with("first_"), &with("second_"));
    let new = base.replace("second_b", "ours");
    let hunk = "@@ -8,5 +8,5 @@ static int one(int x) {\n static int one(int x) {\n     second_a(x);\n-    \
                second_b(x);\n+    ours(x);\n     return x;\n }\n";
    let patch = read(&modify("a.c", &base, &new, hunk));
    for first in ["", "#include <x>\n", &with("other_")] {
        let upstream = text(first, &with("second_"));
        let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &patch);
        assert!(!step.replayed.has_conflict(), "{:?}", step.replayed);
        assert_eq!(result(&step), upstream.replace("second_b", "ours"));
    }
}

/// Not every line without indentation is the head of a function.
#[test]
fn declarations_and_imports_are_in_no_function() {
    let replayed_as = |path: &str, base: &str, upstream: &str| {
        let new = base.replace("LAST = 1", "LAST = 2");
        let lines: Vec<&str> = base.lines().collect();
        let context: String = lines[..lines.len() - 1].iter().map(|line| format!(" {line}\n")).collect();
        let count = lines.len();
        let hunk = format!("@@ -1,{count} +1,{count} @@\n{context}-LAST = 1\n+LAST = 2\n");
        let patch = read(&modify(path, base, &new, &hunk));
        replayed(&tree(&[(path, base)]), &tree(&[(path, upstream)]), &patch).class()
    };
    let python = "import one\nimport two\n\nLAST = 1\n";
    let more = "import one\nimport two\nimport three\n\nLAST = 1\n";
    assert_eq!(replayed_as("a.py", python, more), PatchClass::Merged);
    assert_eq!(
        replayed_as("a.py", python, "import one\nfrom two import x\n\nLAST = 1\n"),
        PatchClass::Merged
    );
    let inside = "import one\nimport two\ndef f():\n    pass\n\nLAST = 1\n";
    assert_eq!(replayed_as("a.py", python, inside), PatchClass::Merged);
    for path in ["redis.conf", "LICENSE", "debian/rules", "ggml.pc.in", "a.service"] {
        let conf = "pidfile one\n  more\n\nLAST = 1\n";
        assert_eq!(
            replayed_as(path, conf, "loglevel two\n  more\n\nLAST = 1\n"),
            PatchClass::Merged,
            "{path}"
        );
    }
}

/// The base tells which of the two is meant.
#[test]
fn a_lookalike_elsewhere_does_not_stop_a_rebase() {
    let base = format!("{}int a;\n", function("one", 3));
    let upstream = format!("{}{base}", function("zero", 3));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &upstream)]), &change_factor(&base, "one"));
    let expected = format!("{}{}", function("zero", 3), base.replace("*= 3", "*= 4"));
    assert_eq!(result(&step), expected);
}

/// One function with a block twice, and a patch of the first. Upstream changes the first too, so that only the second
/// still has the text that the patch expects.
#[test]
fn a_change_never_goes_into_the_twin_block_of_its_function() {
    let block = "    a();\n    b();\n    c();\n    d();\n    e();\n    f();\n    g();\n";
    let text =
        |first: &str, second: &str| format!("static int one(void) {{\n{first}    middle();\n{second}}}\n");
    let base = text(block, block);
    let theirs = text(&block.replace("d()", "ours()"), block);
    let hunk = "@@ -2,7 +2,7 @@ static int one(void) {\n     a();\n     b();\n     c();\n-    d();\n+    ours();\n     e();\n     f();\n     g();\n";
    let patch = read(&modify("a.c", &base, &theirs, hunk));
    for first in [block.replace("d()", "theirs()"), block.replace("    d();\n", ""), String::new()] {
        let replayed = on(&base, &text(&first, block), &patch);
        assert!(replayed.has_conflict(), "{replayed:?}");
    }
    let elsewhere = text(block, &block.replace("d()", "theirs()"));
    let step = step(&tree(&[("a.c", &base)]), &tree(&[("a.c", &elsewhere)]), &patch);
    assert_eq!(result(&step), text(&block.replace("d()", "ours()"), &block.replace("d()", "theirs()")));
}

/// Two equal adjacent blocks, of which upstream deletes one: it is undecidable which.
#[test]
fn a_change_of_one_of_two_identical_places_needs_review() {
    let block = "    a();\n    b();\n    c();\n    d();\n";
    let base = format!("static int one(void) {{\n{block}{block}}}\n");
    let theirs = base.replacen("b()", "ours()", 1);
    let hunk = "@@ -1,6 +1,6 @@\n static int one(void) {\n     a();\n-    b();\n+    ours();\n     c();\n     d();\n     a();\n";
    let patch = read(&modify("a.c", &base, &theirs, hunk));
    let replayed = on(&base, &base.replacen(block, "", 1), &patch);
    assert!(matches!(reason(&replayed), ConflictReason::LookAlike { .. }), "{replayed:?}");
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
    let origin = Origin::new(&patches, &pin).unwrap();
    let mut replay = Replay::new(&origin, &tip, NAMES, &NOTHING_TAKEN);
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
fn a_patch_that_is_not_exact_on_its_own_tree_is_refused() {
    let base = function("one", 3);
    let patch = change_factor(&base, "one");
    let pin = tree(&[("a.c", "other\n")]);
    let origin = Origin::new(std::slice::from_ref(&patch), &pin).unwrap();
    assert!(Replay::new(&origin, &pin, NAMES, &NOTHING_TAKEN).step(0).is_err());
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

#[test]
fn a_text_without_functions_has_no_wrong_one() {
    let base = "option(A)\noption(B)\n\n# build\nadd_library(x)\n";
    let new = base.replace("# build", "if(X)\nendif()\n# build");
    let hunk = "@@ -1,5 +1,7 @@\n option(A)\n option(B)\n \n+if(X)\n+endif()\n # build\n add_library(x)\n";
    let there = base.replace("option(B)", "feature(C)");
    let class = |path: &str| {
        let patch = read(&modify(path, base, &new, hunk));
        replayed(&tree(&[(path, base)]), &tree(&[(path, &there)]), &patch).class()
    };
    assert_eq!(class("CMakeLists.txt"), PatchClass::Merged);
    assert_eq!(class("build.script"), PatchClass::Merged);
}

/// A place outside of all functions cannot be in a wrong one, whatever is above.
#[test]
fn between_functions_is_between_functions() {
    let function = "int first(void) {\n    return 1;\n}\n\n";
    let base = format!("{function}int most = 8;\n\n#include <x>\n#include <y>\n");
    let new = format!("{base}#include <z>\n");
    let patch =
        read(&modify("a.c", &base, &new, "@@ -7,2 +7,3 @@\n #include <x>\n #include <y>\n+#include <z>\n"));
    let without_declaration = base.replace("int most = 8;\n\n", "");
    for there in [&without_declaration, &without_declaration.replace(function, "// nothing\n")] {
        assert_eq!(on(&base, there, &patch).class(), PatchClass::Shifted, "{there}");
    }
    // The second one declares its parameters on lines of their own.
    for head in ["int open(void) {\n", "int open(a)\nint a;\n{\n"] {
        let inside = base.replace("int most = 8;\n", head);
        assert_eq!(on(&base, &inside, &patch).class(), PatchClass::MovedFunction, "{head}");
    }
}

/// A line that ends with a semicolon is not a scope.
#[test]
fn a_statement_is_not_a_scope() {
    let base = "int f(int x) {\n    switch (x) {\n        case 0:\n            break;\n        case 1:\n            \
                return 1;\n        case 2:\n            {\n                int a = x;\n                a += 1;\n\
                \x20               a += 2;\n                return a;\n            }\n    }\n    return 0;\n}\n";
    let hunk = "@@ -8,5 +8,6 @@ int f(int x) {\n             {\n                 int a = x;\n                 a += 1;\n\
                +                a += 3;\n                 a += 2;\n                 return a;\n";
    let new = base.replace("a += 2", "a += 3;\n                a += 2");
    let patch = read(&modify("a.c", base, &new, hunk));
    let there = base.replace("return 1;", "x += 1;\n            break;");
    assert_eq!(on(base, &there, &patch).class(), PatchClass::Shifted);
}

/// A head without parentheses can be renamed too.
#[test]
fn a_struct_that_upstream_renamed_is_still_the_one() {
    let fields = "    int one;\n    int two;\n    int three;\n    int four;\n};\n";
    let base = format!("struct box {{\n{fields}");
    let new = base.replace("    int three", "    int more;\n    int three");
    let hunk = "@@ -1,6 +1,7 @@\n struct box {\n     int one;\n     int two;\n+    int more;\n     int three;\n     int \
                four;\n };\n";
    let patch = read(&modify("a.c", &base, &new, hunk));
    let with_head = |head: &str| on(&base, &format!("{head} {{\n{fields}"), &patch).class();
    assert_eq!(with_head("struct crate"), PatchClass::Merged);
    assert_eq!(with_head("struct box : other"), PatchClass::Merged);
}
