//! Whole series on trees that they were not made for.

use std::collections::BTreeSet;
use std::rc::Rc;

use espalier_series::{
    Difference, Known, MemoryTree, Mode, Origin, Outcome, Patch, PatchClass, run_series, survey_series,
};

use crate::support::{create, modify, read_named, rename, tree};

const HEAD: &str = "int one(int value) {\n    a();\n    b();\n    c();\n    d();\n    return 1;\n}\n\n";
const TAIL: &str = "int two(int value) {\n    e();\n    f();\n    g();\n    h();\n    return 2;\n}\n";

fn file() -> String {
    format!("{HEAD}{TAIL}")
}

/// Returns a patch of `one` and `two` at once, and one of `one` that was made on top of it.
fn series() -> Vec<Patch> {
    let first = file().replace("b();", "B();").replace("f();", "F();");
    let both = "@@ -1,5 +1,5 @@\n int one(int value) {\n     a();\n-    b();\n+    B();\n     c();\n     d();\n\
                @@ -9,5 +9,5 @@\n int two(int value) {\n     e();\n-    f();\n+    F();\n     g();\n     h();\n";
    let second = first.replace("c();", "C();");
    let on_top = "@@ -2,5 +2,5 @@ int one(int value) {\n     a();\n     B();\n-    c();\n+    C();\n     d();\n     return 1;\n";
    vec![
        read_named("0001-both.patch", &modify("a.c", &file(), &first, both)),
        read_named("0002-on-top.patch", &modify("a.c", &first, &second, on_top)),
        read_named("0003-new.patch", &create("new.c")),
    ]
}

/// Returns the outcomes of the series on a tree of these files.
fn survey(files: &[(&str, &str)]) -> Vec<Outcome> {
    let (patches, pin, tip) = (series(), tree(&[("a.c", &file())]), tree(files));
    let origin = Origin::new(&patches, &pin).unwrap();
    survey_series(&origin, &tip, &Rc::default(), Vec::new()).unwrap().outcomes(&origin, &tip).unwrap()
}

/// Returns class and provisional flag of each outcome.
fn seen(outcomes: &[Outcome]) -> Vec<(PatchClass, bool)> {
    outcomes.iter().map(|outcome| (outcome.class, outcome.provisional)).collect()
}

#[test]
fn what_is_exact_is_judged_as_for_a_build() {
    let built = run_series(&series(), &tree(&[("a.c", &file())])).unwrap();
    let survey = survey(&[("a.c", &file())]);
    assert!(built.iter().all(|outcome| outcome.class == PatchClass::Exact));
    assert!(survey.iter().all(|outcome| outcome.class == PatchClass::Exact && outcome.drift.is_none()));
}

#[test]
fn a_dependant_of_a_shifted_patch_is_provisional_and_not_blocked() {
    let moved = format!("// one more line\n{HEAD}// and one more\n{TAIL}");
    let files = [("a.c", moved.as_str())];
    let on_top_of_it = survey(&files);
    use PatchClass::{Blocked, Exact, Shifted};
    assert_eq!(seen(&on_top_of_it), [(Shifted, false), (Shifted, true), (Exact, false)]);
    assert!(on_top_of_it.iter().all(|outcome| outcome.blocked_by.is_empty()));
    // A build places nothing.
    let classes: Vec<_> = run_series(&series(), &tree(&files)).unwrap().iter().map(|o| o.class).collect();
    assert_eq!(classes, [Shifted, Blocked, Exact]);
}

#[test]
fn where_a_rebase_would_stop_a_report_says_so() {
    // Each hunk has one place in its own function, but a line merge cannot follow functions that swapped places.
    let swapped = format!("{TAIL}\n{HEAD}");
    let found = survey(&[("a.c", &swapped)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::Conflict, false), (PatchClass::Blocked, true)]);
}

#[test]
fn what_a_rebase_merges_is_no_conflict() {
    // Upstream changed a line of the hunk's context: by itself the hunk would fit nowhere.
    let nearby = file().replace("    d();", "    d(0);");
    let found = survey(&[("a.c", &nearby)]);
    use PatchClass::{Conflict, Merged};
    assert_eq!(seen(&found)[..2], [(Merged, false), (Conflict, true)]);
    assert_eq!(found[0].drift.as_ref().unwrap().class, Conflict);
}

#[test]
fn what_upstream_has_of_a_patch_is_left_out() {
    let taken = file().replace("f();", "F();");
    let found = survey(&[("a.c", &taken)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::PartlyUpstreamed, false), (PatchClass::Exact, true)]);
    let all_taken = format!("// moved\n{}", taken.replace("b();", "B();"));
    let found = survey(&[("a.c", &all_taken)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::Upstreamed, false), (PatchClass::Shifted, false)]);
}

#[test]
fn nothing_is_placed_if_one_hunk_is_ambiguous() {
    let broken = file().replace("f();", "x();");
    let found = survey(&[("a.c", &broken)]);
    use PatchClass::{Blocked, Conflict, Exact};
    assert_eq!(seen(&found), [(Conflict, false), (Blocked, true), (Exact, false)]);
    assert_eq!(found[1].blocked_by, ["0001-both.patch"]);
}

#[test]
fn a_renamed_file_goes_only_to_a_free_path() {
    let old = file();
    let header = rename("a.c", "b.c").replace("similarity index 100%", "similarity index 90%");
    let hunk =
        "@@ -1,5 +1,5 @@\n int one(int value) {\n     a();\n-    b();\n+    B();\n     c();\n     d();\n";
    let new = old.replace("b();", "B();");
    let id = crate::support::id;
    let diff = format!("{header}index {}..{} 100644\n--- a/a.c\n+++ b/b.c\n{hunk}", id(&old), id(&new));
    let after = new.replace("a();", "A();");
    let on_top = "@@ -1,4 +1,4 @@\n int one(int value) {\n-    a();\n+    A();\n     B();\n     c();\n";
    let patches = [
        read_named("0001-rename.patch", &diff),
        read_named("0002-on-top.patch", &modify("b.c", &new, &after, on_top)),
    ];
    let moved = format!("// moved\n{old}");
    let pin = tree(&[("a.c", &old)]);
    let origin = Origin::new(&patches, &pin).unwrap();
    let classes = |files: &[(&str, &str)]| -> Vec<PatchClass> {
        survey_series(&origin, &tree(files), &Rc::default(), Vec::new()).unwrap().classes().collect()
    };
    assert_eq!(classes(&[("a.c", &moved)]), [PatchClass::Shifted, PatchClass::Shifted]);
    assert_eq!(classes(&[("a.c", &moved), ("b.c", "taken\n")])[1], PatchClass::Blocked);
}

#[test]
fn what_is_known_of_another_tree_is_taken_over() {
    let old = tree(&[("a.c", &file()), ("other", "1\n")]);
    let patches = series();
    let origin = Origin::new(&patches, &old).unwrap();
    let before = survey_series(&origin, &old, &Rc::default(), Vec::new()).unwrap();
    let difference = |path: &str, comes_or_goes: bool| Difference {
        path: path.as_bytes().to_vec(),
        comes_or_goes,
        blobs: [crate::support::id("1\n"), crate::support::id("2\n")],
    };
    let known = |differences: Vec<Difference>| Known::new(&before, differences.into());
    assert!(known(vec![difference("other", false)]).still_holds(&BTreeSet::new()));
    assert!(!known(vec![difference("a.c", false)]).still_holds(&BTreeSet::new()));
    // A new path makes its folders and its case relevant.
    assert!(!known(vec![difference("NEW.c", true)]).still_holds(&BTreeSet::new()));

    let mut new = MemoryTree::new();
    new.put("a.c", Mode::File, format!("// moved\n{}", file()).as_bytes());
    new.put("NEW.c", Mode::File, b"1\n");
    let differences = vec![difference("a.c", false), difference("NEW.c", true)];
    let again = survey_series(&origin, &new, &Rc::default(), vec![known(differences)]).unwrap();
    let fresh = survey_series(&origin, &new, &Rc::default(), Vec::new()).unwrap();
    assert_eq!(again, fresh);
    let classes: Vec<PatchClass> = again.classes().collect();
    assert_eq!(classes, [PatchClass::Shifted, PatchClass::Shifted, PatchClass::Refused]);
    assert!(again.outcomes(&origin, &new).unwrap()[2].drift.is_some());
}
