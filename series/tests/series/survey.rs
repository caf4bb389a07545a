//! Whole series on trees that they were not made for.

use std::collections::BTreeSet;
use std::rc::Rc;

use espalier_series::{
    AppliedSeries, Difference, FileDrift, FileDriftKind, HunkClass, HunkDrift, MemoryTree, Mode, Patch,
    PatchClass, PatchOutcome, ReusableSurvey, Verdict, apply_patch, run_series, survey_series,
};

use crate::support::{create, id, modify, read, read_named, rename, tree};

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

type Seen = (PatchOutcome, Vec<FileDrift>);

/// Returns the outcome of each of `patches`, made for `pin`, on `tip`, whose history contains those in `upstreamed`.
fn judged(patches: &[Patch], pin: &MemoryTree, tip: &MemoryTree, upstreamed: &[usize]) -> Vec<Seen> {
    let mut tip = tip.clone();
    tip.came_after(pin);
    let applied = AppliedSeries::new(patches, pin).unwrap();
    let upstreamed = Rc::new(upstreamed.iter().copied().collect());
    let survey = survey_series(&applied, &tip, &upstreamed, Vec::new()).unwrap();
    let drift = survey.drift(&applied, &tip).unwrap();
    survey.outcomes().iter().cloned().zip(drift).collect()
}

/// Returns the outcomes of the series on a tree of these files.
fn survey(files: &[(&str, &str)]) -> Vec<Seen> {
    judged(&series(), &tree(&[("a.c", &file())]), &tree(files), &[])
}

/// Returns class and provisional flag of each outcome.
fn seen(judged: &[Seen]) -> Vec<(PatchClass, bool)> {
    judged.iter().map(|(outcome, _)| (outcome.class, outcome.provisional)).collect()
}

fn hunks(file: &FileDrift) -> &[HunkDrift] {
    match &file.kind {
        FileDriftKind::Hunks { hunks, .. } => hunks,
        other => panic!("no hunks: {other:?}"),
    }
}

fn classes(file: &FileDrift) -> Vec<HunkClass> {
    hunks(file).iter().map(|hunk| hunk.class).collect()
}

#[test]
fn exact_patches_are_judged_as_for_a_build() {
    let built = run_series(&series(), &tree(&[("a.c", &file())])).unwrap();
    let survey = survey(&[("a.c", &file())]);
    assert!(built.iter().all(|outcome| outcome.class == PatchClass::Exact));
    assert!(survey.iter().all(|(outcome, drift)| outcome.class == PatchClass::Exact && drift.is_empty()));
}

#[test]
fn a_dependant_of_a_shifted_patch_is_provisional_and_not_blocked() {
    let moved = format!("// one more line\n{HEAD}// and one more\n{TAIL}");
    let files = [("a.c", moved.as_str())];
    let on_top_of_it = survey(&files);
    use PatchClass::{Blocked, Exact, Shifted};
    assert_eq!(seen(&on_top_of_it), [(Shifted, false), (Shifted, true), (Exact, false)]);
    assert!(on_top_of_it.iter().all(|(outcome, _)| outcome.blocked_by.is_empty()));
    // A build places nothing.
    let classes: Vec<_> = run_series(&series(), &tree(&files)).unwrap().iter().map(|o| o.class).collect();
    assert_eq!(classes, [Shifted, Blocked, Exact]);
}

#[test]
fn a_report_names_the_stops_of_a_rebase() {
    // Each hunk has one place in its own function, but a line merge cannot follow functions that swapped places.
    let swapped = format!("{TAIL}\n{HEAD}");
    let found = survey(&[("a.c", &swapped)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::Conflict, false), (PatchClass::Blocked, true)]);
    let drift = &found[0].1[0];
    assert!(classes(drift).contains(&HunkClass::Conflict), "{drift:?}");
}

#[test]
fn hunks_that_a_rebase_merges_are_not_conflicts() {
    // Upstream changed a line of the hunk's context: by itself the hunk would fit nowhere.
    let nearby = file().replace("    d();", "    d(0);");
    let found = survey(&[("a.c", &nearby)]);
    use PatchClass::{Conflict, Merged};
    assert_eq!(seen(&found)[..2], [(Merged, false), (Conflict, true)]);
    assert_eq!(classes(&found[0].1[0]), [HunkClass::Merged, HunkClass::Exact]);
}

#[test]
fn upstreamed_parts_of_a_patch_are_left_out() {
    let upstreamed = file().replace("f();", "F();");
    let found = survey(&[("a.c", &upstreamed)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::PartlyUpstreamed, false), (PatchClass::Exact, true)]);
    let all_upstreamed = format!("// moved\n{}", upstreamed.replace("b();", "B();"));
    let found = survey(&[("a.c", &all_upstreamed)]);
    assert_eq!(seen(&found)[..2], [(PatchClass::Upstreamed, false), (PatchClass::Shifted, false)]);
}

#[test]
fn nothing_is_placed_if_one_hunk_is_ambiguous() {
    let broken = file().replace("f();", "x();");
    let found = survey(&[("a.c", &broken)]);
    use PatchClass::{Blocked, Conflict, Exact};
    assert_eq!(seen(&found), [(Conflict, false), (Blocked, true), (Exact, false)]);
    assert_eq!(found[1].0.blocked_by, ["0001-both.patch"]);
}

#[test]
fn a_renamed_file_goes_only_to_a_free_path() {
    let old = file();
    let header = rename("a.c", "b.c").replace("similarity index 100%", "similarity index 90%");
    let hunk =
        "@@ -1,5 +1,5 @@\n int one(int value) {\n     a();\n-    b();\n+    B();\n     c();\n     d();\n";
    let new = old.replace("b();", "B();");
    let diff = format!("{header}index {}..{} 100644\n--- a/a.c\n+++ b/b.c\n{hunk}", id(&old), id(&new));
    let after = new.replace("a();", "A();");
    let on_top = "@@ -1,4 +1,4 @@\n int one(int value) {\n-    a();\n+    A();\n     B();\n     c();\n";
    let patches = [
        read_named("0001-rename.patch", &diff),
        read_named("0002-on-top.patch", &modify("b.c", &new, &after, on_top)),
    ];
    let moved = format!("// moved\n{old}");
    let pin = tree(&[("a.c", &old)]);
    let applied = AppliedSeries::new(&patches, &pin).unwrap();
    let classes = |files: &[(&str, &str)]| -> Vec<PatchClass> {
        survey_series(&applied, &tree(files), &Rc::default(), Vec::new()).unwrap().classes().collect()
    };
    assert_eq!(classes(&[("a.c", &moved)]), [PatchClass::Shifted, PatchClass::Shifted]);
    assert_eq!(classes(&[("a.c", &moved), ("b.c", "taken\n")])[1], PatchClass::Blocked);
}

#[test]
fn results_for_another_tree_are_reused() {
    let old = tree(&[("a.c", &file()), ("other", "1\n")]);
    let patches = series();
    let applied = AppliedSeries::new(&patches, &old).unwrap();
    let before = survey_series(&applied, &old, &Rc::default(), Vec::new()).unwrap();
    let difference = |path: &str, comes_or_goes: bool| Difference {
        path: path.as_bytes().to_vec(),
        comes_or_goes,
        blobs: [id("1\n"), id("2\n")],
    };
    let known = |differences: Vec<Difference>| ReusableSurvey::new(&before, differences.into());
    assert!(known(vec![difference("other", false)]).still_holds(&BTreeSet::new()));
    assert!(!known(vec![difference("a.c", false)]).still_holds(&BTreeSet::new()));
    // A new path makes its folders and its case relevant.
    assert!(!known(vec![difference("NEW.c", true)]).still_holds(&BTreeSet::new()));

    let mut new = MemoryTree::new();
    new.put("a.c", Mode::File, format!("// moved\n{}", file()).as_bytes());
    new.put("NEW.c", Mode::File, b"1\n");
    let differences = vec![difference("a.c", false), difference("NEW.c", true)];
    let again = survey_series(&applied, &new, &Rc::default(), vec![known(differences)]).unwrap();
    let fresh = survey_series(&applied, &new, &Rc::default(), Vec::new()).unwrap();
    assert_eq!(again, fresh);
    let classes: Vec<PatchClass> = again.classes().collect();
    assert_eq!(classes, [PatchClass::Shifted, PatchClass::Shifted, PatchClass::Refused]);
    assert!(matches!(again.drift(&applied, &new).unwrap()[2][0].kind, FileDriftKind::Refused { .. }));
}

fn twin(name: &str) -> String {
    format!("int {name}(int value) {{\n    a();\n    b();\n    c();\n    d();\n    return 1;\n}}\n\n")
}

const CALL: &str = "@@ -2,5 +2,5 @@ int one(int value) {\n     a();\n-    b();\n+    B();\n     c();\n     d();\n     return 1;\n";

/// Returns a patch of the first function of `base`, with the header lines `header` in place of the usual ones.
fn change_call(base: &str, header: Option<&str>) -> Patch {
    let new = base.replacen("b();", "B();", 1);
    match header {
        None => read(&modify("a.c", base, &new, CALL)),
        Some(header) => {
            let ids = format!("index {}..{} 100644", id(base), id(&new));
            read(&format!("{header}{ids}\n--- a/a.c\n+++ b/b.c\n{CALL}"))
        }
    }
}

/// The text of the hunk is there twice, but the replay knows its place.
#[test]
fn a_hunk_with_a_twin_is_shown_at_its_own_place() {
    let base = format!("{}{}", twin("one"), twin("two"));
    let tip = tree(&[("a.c", &format!("// first\n{base}"))]);
    let found = judged(&[change_call(&base, None)], &tree(&[("a.c", &base)]), &tip, &[]);
    let (outcome, drift) = &found[0];
    assert_eq!(outcome.class, PatchClass::Shifted);
    assert_eq!(classes(&drift[0]), [HunkClass::Shifted { offset: 1 }]);
    let places: Vec<_> = hunks(&drift[0])[0].fits_at.iter().map(|at| (at.line, at.same_function)).collect();
    assert_eq!(places, [(3, true)]);
}

/// The head of the function is outside of the hunk, and upstream changed it.
#[test]
fn a_hunk_in_a_renamed_function_has_not_moved() {
    let base = twin("one");
    let tip = tree(&[("a.c", &base.replace("one", "one_impl"))]);
    let found = judged(&[change_call(&base, None)], &tree(&[("a.c", &base)]), &tip, &[]);
    let (outcome, drift) = &found[0];
    assert_eq!((outcome.class, classes(&drift[0])), (PatchClass::Shifted, vec![HunkClass::Exact]));
}

/// One file stops the rebase. The other one is merged, although its hunk would fit nowhere.
#[test]
fn only_the_file_in_conflict_has_hunks_in_conflict() {
    let base = twin("one");
    let new = base.replace("b();", "B();");
    let patch = read(&["a.c", "b.c"].map(|path| modify(path, &base, &new, CALL)).concat());
    let pin = tree(&[("a.c", &base), ("b.c", &base)]);
    let tip = tree(&[("a.c", &base.replace("b();", "x();")), ("b.c", &base.replace("d();", "d(0);"))]);
    let found = judged(&[patch], &pin, &tip, &[]);
    let (outcome, drift) = &found[0];
    assert_eq!(outcome.class, PatchClass::Conflict);
    assert_eq!(classes(&drift[0]), [HunkClass::Conflict]);
    assert_eq!(classes(&drift[1]), [HunkClass::Merged]);
}

/// Upstream's history has the patch, and changed its lines in one file since.
#[test]
fn hunks_that_upstream_took_and_changed_are_not_conflicts() {
    let base = twin("one");
    let new = base.replace("b();", "B();");
    let patch = read(&["a.c", "b.c"].map(|path| modify(path, &base, &new, CALL)).concat());
    let pin = tree(&[("a.c", &base), ("b.c", &base)]);
    let tip = tree(&[("a.c", &base.replace("b();", "x();")), ("b.c", &format!("// first\n{new}"))]);
    let found = judged(&[patch], &pin, &tip, &[0]);
    let (outcome, drift) = &found[0];
    assert_eq!((outcome.class, drift.len()), (PatchClass::Upstreamed, 1), "{drift:?}");
    assert_eq!((drift[0].path.as_str(), classes(&drift[0])), ("b.c", vec![HunkClass::Upstreamed]));
}

/// A copy that existed all along is not the new path of the file.
#[test]
fn a_deleted_file_is_not_shown_as_renamed_to_an_old_copy() {
    let base = twin("one");
    let pin = tree(&[("a.c", &base), ("copy.c", &base)]);
    let found = judged(&[change_call(&base, None)], &pin, &tree(&[("copy.c", &base)]), &[]);
    let (outcome, drift) = &found[0];
    assert_eq!((outcome.class, &drift[0].kind), (PatchClass::TargetDeleted, &FileDriftKind::TargetDeleted));
}

/// A patch is exact in a survey if and only if `apply` accepts it.
#[test]
fn exact_is_what_can_be_applied() {
    let (base, other) = (twin("one"), twin("two"));
    let pin = tree(&[("a.c", &base)]);
    let mut executable = MemoryTree::new();
    executable.put("a.c", Mode::Executable, base.as_bytes());
    let renames = rename("a.c", "b.c").replace("similarity index 100%", "similarity index 90%");
    let copies = renames.replace("rename", "copy");
    let of_mode = read("diff --git a/a.c b/a.c\nold mode 100644\nnew mode 100755\n");
    let moved = |path: &str| FileDriftKind::Moved { to: path.to_owned() };
    let differs =
        FileDriftKind::ContentDiffers { expected: id(&base).to_string(), found: id(&other).to_string() };
    let of_executable = FileDriftKind::ModeDiffers { expected: Mode::File, found: Mode::Executable };
    let cases = [
        (change_call(&base, None), pin.clone(), None),
        (change_call(&base, None), executable, Some(of_executable)),
        (change_call(&base, Some(&renames)), tree(&[("b.c", &base)]), Some(moved("b.c"))),
        (change_call(&base, Some(&copies)), tree(&[("a.c", &other)]), Some(differs)),
        (read(&rename("a.c", "b.c")), tree(&[("a.c", &other)]), None),
        (of_mode, tree(&[("a.c", &other)]), None),
    ];
    for (patch, tip, reason) in cases {
        let found = judged(std::slice::from_ref(&patch), &pin, &tip, &[]);
        let (outcome, drift) = &found[0];
        let class = if reason.is_none() { PatchClass::Exact } else { PatchClass::Shifted };
        assert_eq!(outcome.class, class, "{patch:?}");
        assert_eq!(drift.first().map(|file| file.kind.clone()), reason);
        let applied = apply_patch(&patch, &tip).unwrap();
        assert_eq!(matches!(applied, Verdict::Exact(_)), reason.is_none(), "{applied:?}");
    }
}
