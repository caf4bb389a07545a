//! The proof of a patch in a function that upstream moved: within its file, to another one, or under another head.

use espalier_series::{FileVersion, FindingClass, LinePlace, Mode, ProofFinding, SeriesProof};

use crate::proof_support::{Files, SeriesStates, edit, function, open, prove, twin};

const OLD_FILE: &str = "src/a.c";
const OTHER_FILE: &str = "src/b.c";

/// A move: the files of upstream at both pins, and either with the patch.
#[derive(Clone)]
struct Case {
    name: &'static str,
    base: Files,
    ours: Files,
    upstream: Files,
    result: Files,
    /// The file that has the function on the new base.
    file: &'static str,
}

impl Case {
    /// Creates a move of a patch that changes `beta` wherever it is.
    fn new(name: &'static str, file: &'static str, upstream: &[(&str, String)]) -> Case {
        let base = files(&[
            (OLD_FILE, joined(&["alpha", "beta", "gamma", "delta"])),
            (OTHER_FILE, function("other")),
        ]);
        let upstream = files(upstream);
        let (mut ours, mut result) = (base.clone(), upstream.clone());
        change_beta(&mut ours, OLD_FILE);
        change_beta(&mut result, file);
        Case { name, base, ours, upstream, result, file }
    }

    fn proof(&self) -> SeriesProof {
        let Case { base, ours, upstream, result, .. } = self.clone();
        prove(&SeriesStates { states: vec![base, ours] }, &SeriesStates { states: vec![upstream, result] })
    }

    /// Returns the move with another result.
    fn with(&self, change: impl Fn(&mut Files)) -> Case {
        let mut case = self.clone();
        change(&mut case.result);
        case
    }
}

fn files(texts: &[(&str, String)]) -> Files {
    let file = |(path, text): &(&str, String)| ((*path).to_owned(), (Mode::File, text.clone().into_bytes()));
    texts.iter().map(file).collect()
}

fn joined(names: &[&str]) -> String {
    names.iter().map(|name| function(name)).collect()
}

/// The patch: two lines more, and one less.
fn change_beta(files: &mut Files, path: &str) {
    edit(files, path, "    beta_3();\n", "    beta_3();\n    own_one();\n    own_two();\n");
    edit(files, path, "    beta_8();\n", "");
}

/// Returns the function as upstream edited it.
fn edited_beta() -> String {
    function("beta")
        .replace("    beta_1();\n", "    beta_one();\n")
        .replace("    beta_5();\n", "")
        .replace("    beta_6();\n", "    beta_6();\n    upstreams();\n")
}

/// Returns a function with the body of `beta` and another head.
fn with_head(beta: &str, head: &str) -> String {
    beta.replace("int beta(void) {", head)
}

/// Returns moves of the function, as it was and edited.
fn cases() -> Vec<Case> {
    let (plain, edited) = (function("beta"), edited_beta());
    let within = |beta: &str| {
        let text = joined(&["alpha", "gamma", "delta"]) + beta;
        [(OLD_FILE, text), (OTHER_FILE, function("other"))]
    };
    let elsewhere = |beta: &str| {
        [(OLD_FILE, joined(&["alpha", "gamma", "delta"])), (OTHER_FILE, function("other") + beta)]
    };
    // The old head is there, with another body.
    let under_another_head = |beta: &str| {
        let forwards = "int beta(void) {\n    return beta_by(1);\n}\n\n";
        let text = function("alpha") + forwards + &with_head(beta, "int beta_by(int by) {");
        [(OLD_FILE, text + &joined(&["gamma", "delta"])), (OTHER_FILE, function("other"))]
    };
    vec![
        Case::new("within the file", OLD_FILE, &within(&plain)),
        Case::new("within the file, edited", OLD_FILE, &within(&edited)),
        Case::new("to another file", OTHER_FILE, &elsewhere(&plain)),
        Case::new("to another file, edited", OTHER_FILE, &elsewhere(&edited)),
        Case::new("under another head", OLD_FILE, &under_another_head(&plain)),
        Case::new("under another head, edited", OLD_FILE, &under_another_head(&edited)),
    ]
}

#[test]
fn a_change_that_went_along_with_its_function_is_proved() {
    for case in cases() {
        let proof = case.proof();
        assert!(proof.is_proved(), "{}: {:#?}", case.name, open(&proof));
        let found: Vec<&ProofFinding> = proof.findings().collect();
        let [moved] = &found[..] else { panic!("{}: {found:#?}", case.name) };
        assert_eq!(moved.class, FindingClass::ContextOnly, "{}", case.name);
        assert_eq!(moved.text, "upstream has moved the function", "{}", case.name);
        assert_eq!(moved.path, case.file, "{}", case.name);
        assert_eq!(moved.evidence.as_deref(), Some("on the old base it is in src/a.c:14"), "{}", case.name);
    }
}

/// Whatever line is lost, doubled or changed in the result, in the function or around it, the move is not proved.
#[test]
fn no_fault_in_a_line_is_hidden_by_a_moved_function() {
    for case in cases() {
        for path in [OLD_FILE, OTHER_FILE] {
            let text = String::from_utf8(case.result[path].1.clone()).unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for (at, line) in lines.iter().enumerate() {
                for fault in [String::new(), line.repeat(2), line.replace('\n', " \n")] {
                    let changed = lines[..at].concat() + &fault + &lines[at + 1..].concat();
                    let put =
                        |files: &mut Files| files.get_mut(path).unwrap().1 = changed.clone().into_bytes();
                    assert!(
                        !case.with(put).proof().is_proved(),
                        "{}: {path}:{}: {fault:?}",
                        case.name,
                        at + 1
                    );
                }
            }
        }
    }
}

/// A fault in the result, given the file that has the function.
type Fault = (&'static str, fn(&mut Files, &str), FindingClass);

const FAULTS: [Fault; 8] = [
    (
        "the lines of the patch are lost",
        |files, path| edit(files, path, "    own_one();\n    own_two();\n", ""),
        FindingClass::LostOwnLine,
    ),
    (
        "a line that the patch deletes is there",
        |files, path| edit(files, path, "    beta_9();\n", "    beta_8();\n    beta_9();\n"),
        FindingClass::LostDeletion,
    ),
    (
        "a hunk of the patch is there twice",
        |files, path| {
            let hunk = "    own_one();\n    own_two();\n";
            edit(files, path, hunk, &hunk.repeat(2));
        },
        FindingClass::Doubled,
    ),
    (
        "a hunk is at another line of the function",
        |files, path| {
            let hunk = "    own_one();\n    own_two();\n";
            edit(files, path, hunk, "");
            edit(files, path, "    beta_7();\n", &format!("    beta_7();\n{hunk}"));
        },
        FindingClass::Misplaced,
    ),
    (
        "two lines of the function are swapped",
        |files, path| {
            edit(files, path, "    beta_6();\n", "");
            edit(files, path, "    beta_4();\n", "    beta_6();\n    beta_4();\n");
        },
        FindingClass::Misplaced,
    ),
    (
        "a line of the patch is in another function",
        |files, path| {
            edit(files, path, "    own_two();\n", "");
            edit(files, OLD_FILE, "    gamma_2();\n", "    gamma_2();\n    own_two();\n");
        },
        FindingClass::LostOwnLine,
    ),
    (
        "a line of upstream is in another function",
        |files, path| {
            edit(files, path, "    beta_7();\n", "");
            edit(files, OLD_FILE, "    gamma_2();\n", "    gamma_2();\n    beta_7();\n");
        },
        FindingClass::LostUpstreamLine,
    ),
    (
        "the function is still at its old place",
        |files, _| edit(files, OLD_FILE, "int gamma(void) {\n", &(function("beta") + "int gamma(void) {\n")),
        FindingClass::Doubled,
    ),
];

#[test]
fn every_fault_in_a_moved_function_is_found_with_its_class() {
    for case in cases() {
        for (name, fault, class) in FAULTS {
            let proof = case.with(|files| fault(files, case.file)).proof();
            let is_found = open(&proof).iter().any(|finding| finding.class == class);
            assert!(is_found, "{}: {name}: {:#?}", case.name, proof.findings().collect::<Vec<_>>());
        }
    }
}

/// Upstream added a line to the function, which the result has not.
#[test]
fn a_deletion_of_what_upstream_added_to_a_moved_function_is_found() {
    for case in cases().into_iter().filter(|case| case.name.ends_with("edited")) {
        let without = case.with(|files| edit(files, case.file, "    upstreams();\n", "")).proof();
        let found = open(&without);
        let [lost] = &found[..] else { panic!("{}: {found:#?}", case.name) };
        assert_eq!((lost.class, lost.text.as_str()), (FindingClass::NewDeletion, "    upstreams();"));
        let again = "    beta_4();\n    beta_5();\n";
        let restored = case.with(|files| edit(files, case.file, "    beta_4();\n", again)).proof();
        let found = open(&restored);
        let [restored] = &found[..] else { panic!("{}: {found:#?}", case.name) };
        assert_eq!((restored.class, restored.text.as_str()), (FindingClass::Restored, "    beta_5();"));
    }
}

/// A line number counts in its file, not in the function.
#[test]
fn a_difference_in_a_moved_function_has_its_place_in_the_file() {
    let case = cases().into_iter().find(|case| case.name == "to another file").unwrap();
    let only = |change: fn(&mut Files)| {
        let proof = case.with(change).proof();
        let open = open(&proof);
        let [finding] = &open[..] else { panic!("{open:#?}") };
        assert_eq!(finding.function.as_deref(), Some("int beta(void) {"));
        (finding.class, finding.path.clone(), finding.place.unwrap())
    };
    let place = |version, line| LinePlace { version, line };
    let own = only(|files| edit(files, OTHER_FILE, "    own_two();\n", ""));
    let expected = (FindingClass::LostOwnLine, OLD_FILE.to_owned(), place(FileVersion::OldAfter, 20));
    assert_eq!(own, expected);
    let upstreams = only(|files| edit(files, OTHER_FILE, "    beta_6();\n", ""));
    let expected = (FindingClass::LostUpstreamLine, OTHER_FILE.to_owned(), place(FileVersion::NewBefore, 21));
    assert_eq!(upstreams, expected);
    let doubled =
        only(|files| edit(files, OTHER_FILE, "    own_two();\n", "    own_two();\n    own_two();\n"));
    let expected = (FindingClass::Doubled, OTHER_FILE.to_owned(), place(FileVersion::NewAfter, 21));
    assert_eq!(doubled, expected);
}

/// A line that the patch adds above the head is in no function: it may go along, or stay.
#[test]
fn lines_between_functions_are_as_free_as_before() {
    let case = cases().into_iter().find(|case| case.name == "within the file").unwrap();
    let comment = |files: &mut Files, head: &str| edit(files, OLD_FILE, head, &format!("// Own.\n{head}"));
    let mut with_comment = case.with(|files| comment(files, "int beta(void) {\n"));
    comment(&mut with_comment.ours, "int beta(void) {\n");
    let proof = with_comment.proof();
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    // The differences in the function are found all the same.
    let again = "    beta_8();\n    beta_9();\n";
    let proof = with_comment.with(|files| edit(files, OLD_FILE, "    beta_9();\n", again)).proof();
    assert_eq!(open(&proof)[0].class, FindingClass::LostDeletion);
}

fn is_misplaced(proof: &SeriesProof) -> bool {
    open(proof).iter().any(|finding| finding.class == FindingClass::Misplaced)
}

/// Upstream edits the function, and has a copy of it under another head: the patch is not for the copy, above or below
/// the function.
#[test]
fn a_look_alike_that_stays_is_the_function() {
    let stays = function("beta").replace("    beta_3();\n", "    beta_three();\n");
    let copy = with_head(&function("beta"), "int beta_by(int by) {");
    let changed = {
        let mut one = files(&[(OLD_FILE, copy.clone())]);
        change_beta(&mut one, OLD_FILE);
        String::from_utf8(one[OLD_FILE].1.clone()).unwrap()
    };
    let rest = joined(&["gamma", "delta"]);
    let above = |copy: &str| function("alpha") + copy + &rest + &stays;
    let below = |copy: &str| function("alpha") + &stays + &rest + copy;
    for (upstream, result) in [(above(&copy), above(&changed)), (below(&copy), below(&changed))] {
        let texts = [(OLD_FILE, upstream), (OTHER_FILE, function("other"))];
        let mut case = Case::new("a copy", OLD_FILE, &texts);
        case.result.get_mut(OLD_FILE).unwrap().1 = result.into_bytes();
        let proof = case.proof();
        assert!(is_misplaced(&proof), "{:#?}", proof.findings().collect::<Vec<_>>());
    }
}

/// Upstream moves one of two functions with the same lines, and edits the head of neither.
#[test]
fn a_twin_that_stays_keeps_the_move_unproved() {
    let change = |text: &str| text.replacen("twin * 2", "twin * 3", 1);
    let states =
        |left_in: [&str; 2]| files(&[(OLD_FILE, left_in[0].to_owned()), (OTHER_FILE, left_in[1].to_owned())]);
    let (left, right, other) = (twin("left"), twin("right"), function("other"));
    let (base, moved) = (left.clone() + &right, other.clone() + &left);
    let old = SeriesStates { states: vec![states([&base, &other]), states([&change(&base), &other])] };
    let went_along =
        SeriesStates { states: vec![states([&right, &moved]), states([&right, &change(&moved)])] };
    let in_the_twin =
        SeriesStates { states: vec![states([&right, &moved]), states([&change(&right), &moved])] };
    assert!(!prove(&old, &went_along).is_proved());
    assert!(is_misplaced(&prove(&old, &in_the_twin)));
}

/// Upstream makes two functions of one, so it is not known which of them the patch is for.
#[test]
fn two_copies_keep_the_move_unproved() {
    let copy = |name: &str| with_head(&function("beta"), &format!("int beta_{name}(int x) {{"));
    let rest = joined(&["alpha", "gamma", "delta"]);
    let here = [(OLD_FILE, rest.clone() + &copy("a") + &copy("b")), (OTHER_FILE, function("other"))];
    let proof = Case::new("two in the file", OLD_FILE, &here).proof();
    let found = open(&proof);
    let [finding] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((finding.class, finding.text.as_str()), (FindingClass::Misplaced, "    own_one();"));
    assert_eq!(finding.function.as_deref(), Some("int beta_a(int x) {"));
    let evidence = finding.evidence.as_deref().unwrap();
    assert!(evidence.ends_with("on the new base in src/a.c:40, src/a.c:53"), "{evidence}");
    // The patch does not touch the file with the second one.
    for more in ["src/c.c", "lib/c.c"] {
        let apart = [
            (OLD_FILE, rest.clone() + &copy("a")),
            (OTHER_FILE, function("other")),
            (more, function("more") + &copy("b")),
        ];
        let proof = Case::new("one in another file", OLD_FILE, &apart).proof();
        assert!(is_misplaced(&proof), "{:#?}", proof.findings().collect::<Vec<_>>());
        let elsewhere = [
            (OLD_FILE, rest.clone()),
            (OTHER_FILE, function("other") + &function("beta")),
            (more, function("more") + &function("beta")),
        ];
        assert!(!Case::new("both in other files", OTHER_FILE, &elsewhere).proof().is_proved());
    }
}
