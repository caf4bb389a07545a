//! The other classes, and the report.

use espalier_series::{FileDriftKind, HunkClass, MemoryTree, Patch, PatchClass};

use crate::support::{classes, create, drift, modify, read, tree};

const BASE: &str = "int one(void) {\n    a();\n    b();\n    c();\n    d();\n    e();\n}\n\n\
                    int two(void) {\n    f();\n    g();\n    h();\n    i();\n    j();\n}\n";
const FIRST: &str = "@@ -2,5 +2,6 @@ int one(void) {\n     a();\n     b();\n     c();\n+    new_one();\n     d();\n     e();\n";
const SECOND: &str = "@@ -11,3 +12,3 @@ int two(void) {\n     g();\n-    h();\n+    new_two();\n     i();\n";

fn first_done(text: &str) -> String {
    text.replace("    c();\n", "    c();\n    new_one();\n")
}

fn second_done(text: &str) -> String {
    text.replace("    h();\n", "    new_two();\n")
}

fn patch() -> Patch {
    let new = second_done(&first_done(BASE));
    read(&modify("src/a.c", BASE, &new, &format!("{FIRST}{SECOND}")))
}

fn upstream(text: &str) -> MemoryTree {
    tree(&[("src/a.c", text)])
}

#[test]
fn shifted() {
    let drift = drift(&patch(), &upstream(&format!("#include <x>\n{BASE}")));
    assert_eq!(classes(&drift), [HunkClass::Shifted { offset: 1 }; 2]);
    assert_eq!(drift.class, PatchClass::Shifted);
}

#[test]
fn exact_hunks_in_another_blob_are_not_an_exact_patch() {
    let drift = drift(&patch(), &upstream(&format!("{BASE}int tail;\n")));
    assert_eq!(classes(&drift), [HunkClass::Exact; 2]);
    assert_eq!(drift.class, PatchClass::Shifted);
}

#[test]
fn upstreamed_whole() {
    let same = drift(&patch(), &upstream(&second_done(&first_done(BASE))));
    assert_eq!(same.files[0].kind, FileDriftKind::Upstreamed);
    assert_eq!(same.class, PatchClass::Upstreamed);
    let more = format!("int head;\n{}", second_done(&first_done(BASE)));
    let drift = drift(&patch(), &upstream(&more));
    assert_eq!(classes(&drift), [HunkClass::Upstreamed; 2]);
    assert_eq!(drift.class, PatchClass::Upstreamed);
}

#[test]
fn partly_upstreamed() {
    let drift = drift(&patch(), &upstream(&first_done(BASE)));
    assert_eq!(classes(&drift), [HunkClass::Upstreamed, HunkClass::Shifted { offset: 1 }]);
    assert_eq!(drift.class, PatchClass::PartlyUpstreamed);
}

/// After upstream duplicated a line, the hunk that duplicates it still fits next to the copy.
#[test]
fn a_doubled_line_is_upstreamed_not_shifted() {
    let base = "int one(void) {\n    a();\n    b();\n}\n";
    let doubled = "int one(void) {\n    a();\n    a();\n    b();\n}\n";
    let hunk = "@@ -2,2 +2,3 @@ int one(void) {\n+    a();\n     a();\n     b();\n";
    let patch = read(&modify("src/a.c", base, doubled, hunk));
    let drift = drift(&patch, &upstream(&format!("int head;\n{doubled}")));
    assert_eq!(classes(&drift), [HunkClass::Upstreamed], "{drift}");
}

#[test]
fn deleting_at_the_end_of_a_file_is_not_upstreamed_before_it_is_done() {
    let base = "int one(void) {\n    a();\n    b();\n    b();\n";
    let new = "int one(void) {\n    a();\n    b();\n";
    let hunk = "@@ -2,3 +2,2 @@ int one(void) {\n     a();\n     b();\n-    b();\n";
    let patch = read(&modify("src/a.c", base, new, hunk));
    let drift = drift(&patch, &upstream(&format!("int head;\n{base}")));
    assert_eq!(classes(&drift), [HunkClass::Shifted { offset: 1 }], "{drift}");
}

#[test]
fn target_renamed_for_certain() {
    let drift = drift(&patch(), &tree(&[("lib/b.c", BASE)]));
    assert_eq!(drift.class, PatchClass::TargetRenamed);
    assert!(drift.to_string().contains("renamed to lib/b.c (the same content)"), "{drift}");
}

#[test]
fn target_perhaps_renamed() {
    let drift = drift(&patch(), &tree(&[("lib/a.c", &BASE.replace("g();", "G();")), ("x/a.c", "x\n")]));
    assert_eq!(drift.class, PatchClass::TargetRenamed);
    assert!(drift.to_string().contains("maybe renamed to lib/a.c (it has 87 %"), "{drift}");
    assert!(!drift.to_string().contains("x/a.c"), "{drift}");
}

#[test]
fn target_deleted() {
    let drift = drift(&patch(), &tree(&[("other", "x\n")]));
    assert_eq!(drift.class, PatchClass::TargetDeleted);
}

#[test]
fn a_rename_that_is_done_upstream() {
    let rename = "diff --git a/a b/b\nsimilarity index 50%\nrename from a\nrename to b\n\
        index 78981922613b2afb6025042ff6bd878ac1994e85..3e757656cf36eca53338e520d134963a44f793f8 100644\n\
        --- a/a\n+++ b/b\n@@ -1 +1 @@\n-a\n+new\n";
    let drift = drift(&read(rename), &tree(&[("b", "new\n")]));
    assert_eq!(drift.class, PatchClass::Upstreamed, "{drift}");
}

#[test]
fn nothing_of_a_patch_applies_when_one_file_fails() {
    let text = format!("{}{}", create("ok"), modify("gone", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n"));
    let drift = drift(&read(&text), &MemoryTree::new());
    assert_eq!(drift.files[0].kind, FileDriftKind::Exact);
    assert_eq!(drift.class, PatchClass::TargetDeleted);
}

#[test]
fn a_report_shows_what_was_expected_and_what_is_there() {
    let text = format!("int head;\n{}", BASE.replace("    i();\n", "    i(1);\x1b[2J\n"));
    insta::assert_snapshot!(drift(&patch(), &upstream(&text)), @r"
    0001-a-change.patch: conflict
      src/a.c (0001-a-change.patch:8): 0 of 2 hunks exact
        made from blob 4485f6e0988a526c80789bff2838db4328876a6a
        found blob     080a181d6d6e600d6616728f633e2e15d10f931e
        hunk 1 @@ -2,5 +2,6 @@ (0001-a-change.patch:12): shifted by +1 lines
          made for: int one(void) {
          fits at line 3, in function: int one(void) {
        hunk 2 @@ -11,3 +12,3 @@ (0001-a-change.patch:19): conflict
          made for: int two(void) {
          nearest: line 12, 2 of 3 lines agree, in function: int two(void) {
            expected (patch line 23):     i();
            found    (file line 14):     i(1);\u{1b}[2J
    ");
}

/// In a file without function heads, a place is only a line.
#[test]
fn a_place_outside_of_functions_is_only_a_line() {
    let notes =
        modify("notes.txt", "    a\n    b\n", "    a\n    c\n", "@@ -1,2 +1,2 @@\n     a\n-    b\n+    c\n");
    let report = |text: &str| drift(&read(&notes), &tree(&[("notes.txt", text)])).to_string();
    let shifted = report("    x\n    a\n    b\n");
    assert!(shifted.ends_with("      fits at line 2\n"), "{shifted}");
    let conflict = report("    x\n    a\n    d\n");
    assert!(conflict.contains("      nearest: line 2, 1 of 2 lines agree\n"), "{conflict}");
}

#[test]
fn a_report_as_json() {
    let drift = drift(&patch(), &upstream(&first_done(BASE)));
    let json = serde_json::to_value(&drift).unwrap();
    assert_eq!(json["class"], "partly-upstreamed");
    assert_eq!(json["files"][0]["hunks"][1]["class"], "shifted");
    assert_eq!(json["files"][0]["hunks"][1]["offset"], 1);
}
