//! The proof of a move of a whole series: clean moves pass, and a finding says where it is.

use espalier_series::{ChangedBaseFile, FindingClass, LostCalls, Undone, gone_words, lost_calls};

use crate::proof_support::{CODE, PATCHES, SeriesStates, clean, edit, function, open, pinned, placed, prove};

#[test]
fn a_clean_move_is_proved() {
    let (old, new) = clean();
    let proof = prove(&old, &new);
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    let classes: Vec<Vec<FindingClass>> =
        proof.patches.iter().map(|patch| patch.findings.iter().map(|found| found.class).collect()).collect();
    assert_eq!(classes, [vec![FindingClass::ContextOnly], vec![], vec![]]);
    assert!(proof.whole.is_empty());
}

#[test]
fn a_move_to_the_same_base_and_back_is_proved() {
    let (old, new) = clean();
    assert!(prove(&old, &old).findings().next().is_none());
    let back = prove(&new, &old);
    assert!(back.is_proved(), "{:#?}", open(&back));
}

/// Only the tree between the two patches has the fault.
#[test]
fn a_fault_that_a_later_patch_makes_up_for_is_in_the_patches_alone() {
    let (old, new) = clean();
    let proof = prove(&old, &new.with(1, 2, |files| edit(files, CODE, "    own_two();\n", "")));
    assert!(proof.whole.is_empty(), "{:#?}", proof.whole);
    let open: Vec<FindingClass> = open(&proof).iter().map(|finding| finding.class).collect();
    assert_eq!(open, [FindingClass::LostOwnLine, FindingClass::Added]);
}

#[test]
fn a_finding_says_where_it_is() {
    let (old, new) = clean();
    let proof = prove(&old, &new.with(1, 4, |files| edit(files, CODE, &function("delta"), "")));
    let found = open(&proof).into_iter().find(|finding| finding.text.contains("delta_4")).unwrap();
    assert_eq!(found.class, FindingClass::NewDeletion);
    assert_eq!(found.function.as_deref(), Some("int delta(void) {"));
    assert_eq!(found.undone, Some(Undone::Added));
    assert!(found.hunks.new.as_ref().unwrap().contains("-    delta_4();"), "{found:#?}");
}

#[test]
fn white_space_is_pointed_out() {
    let (old, new) = clean();
    let proof = prove(&old, &new.with(1, 4, |files| edit(files, CODE, "own_two();\n", "own_two();\r\n")));
    let lost = open(&proof).into_iter().find(|finding| finding.class == FindingClass::LostOwnLine).unwrap();
    assert_eq!(lost.evidence.as_deref(), Some("a new line differs from it in white space alone"));
}

/// Upstream has the whole patch: it is dropped, and the proof says what upstream has.
#[test]
fn an_upstreamed_patch_may_be_dropped() {
    let (old, _) = clean();
    let mut base = pinned();
    edit(&mut base, CODE, "    beta_3();\n", "    beta_3();\n    own_three();\n");
    base.get_mut("data/logo.bin").unwrap().1[5] = 9;
    let new = SeriesStates::on(base.clone()).with(3, 4, |files| edit(files, CODE, "    own_three();\n", ""));
    let proof = prove(&old, &new);
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    let dropped = &proof.patches[2];
    assert!(dropped.new.is_empty());
    let classes: Vec<FindingClass> = dropped.findings.iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [FindingClass::Upstreamed, FindingClass::Upstreamed]);
}

/// The first patch changes `alpha` and `left`. Upstream calls `alpha` less often, and moves the call of `left`.
#[test]
fn lost_calls_of_a_changed_function_are_noted() {
    let (old, new) = clean();
    let file = |path: &str, old: &str, new: &str| ChangedBaseFile {
        path: path.as_bytes().to_vec(),
        old: old.as_bytes().to_vec(),
        new: new.as_bytes().to_vec(),
    };
    let files = [
        file("src/main.c", "int main(void) {\n    alpha();\n    left(1);\n    own(alpha ());\n}\n", ""),
        file("src/start.c", "", "int main(void) {\n    left(1);\n    alpha(); // or alpha()\n}\n"),
        file("docs/main.md", "    alpha();\n    alpha();\n", ""),
    ];
    let found: Vec<LostCalls> = lost_calls(&placed(&new), &files).unwrap();
    let [lost] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((lost.function.as_str(), &lost.patches[..]), ("alpha", &[PATCHES[0].0.to_owned()][..]));
    assert_eq!((lost.calls.before, lost.calls.after), (2, 1));
    assert_eq!(lost.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["src/main.c"]);
    assert!(lost_calls(&placed(&old), &[]).unwrap().is_empty());
    // Called through a pointer, so the number of calls is the same.
    let pointer =
        [file("src/main.c", "    alpha();\n    alpha ();\n", "    call(alpha);\n    run(&alpha, 1);\n")];
    assert!(lost_calls(&placed(&new), &pointer).unwrap().is_empty());
}

/// The first patch adds calls of `own_one` and `own_two`. Upstream has renamed the first, and moved the second.
#[test]
fn words_that_are_gone_from_upstream_are_found_in_added_lines() {
    let (_, new) = clean();
    let file = |path: &str, old: &str, new: &str| ChangedBaseFile {
        path: path.as_bytes().to_vec(),
        old: old.as_bytes().to_vec(),
        new: new.as_bytes().to_vec(),
    };
    let files = [
        file("src/own.h", "int own_one(void);\nint own_two(void);\nint alpha_3(void);\n", ""),
        file("src/more.h", "", "int own_first(void);\nint own_two(void);\n"),
    ];
    let found = gone_words(&placed(&new).all_patches(), &[], &files);
    let [gone] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((gone.word.as_str(), &gone.files[..]), ("own_one", &["src/own.h".to_owned()][..]));
    let [used] = &gone.uses[..] else { panic!("{gone:#?}") };
    assert_eq!((used.patch.as_deref(), used.path.as_str()), (Some(PATCHES[0].0), CODE));
    let text = String::from_utf8(new.states[1][CODE].1.clone()).unwrap();
    assert_eq!(text.lines().nth(used.line - 1), Some("    own_one();"));
}
