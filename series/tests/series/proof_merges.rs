//! The proof of a move of one file: merges by git, conflicts resolved by hand, and random changes of both sides.

use std::collections::BTreeMap;
use std::process::Command;

use espalier_series::{FileVersion, FindingClass, LinePlace, Mode, SeriesProof, Undone};

use crate::proof_support::{CODE, Files, SeriesStates, function, open, prove, twin};
use crate::random::Random;

/// Returns the text that `git merge-file` gives; it must be clean.
fn merged_by_git(base: &str, ours: &str, theirs: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let texts = [("ours", ours), ("base", base), ("theirs", theirs)];
    for (name, text) in texts {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut git = Command::new("git");
    git.current_dir(folder.path()).args(["merge-file", "-p", "ours", "base", "theirs"]);
    let output = git.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "git has a conflict: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the proof of a patch of one file, from `base` to `ours`, that became `result` on `upstream`.
fn of_one_file(base: &str, ours: &str, upstream: &str, result: &str) -> SeriesProof {
    of_file(CODE, [base, ours, upstream, result])
}

fn of_file(path: &str, [base, ours, upstream, result]: [&str; 4]) -> SeriesProof {
    let files = |text: &str| Files::from([(path.to_owned(), (Mode::File, text.as_bytes().to_vec()))]);
    let (old, new) = (
        SeriesStates { states: vec![files(base), files(ours)] },
        SeriesStates { states: vec![files(upstream), files(result)] },
    );
    prove(&old, &new)
}

fn classes(proof: &SeriesProof) -> Vec<FindingClass> {
    open(proof).iter().map(|finding| finding.class).collect()
}

/// Both sides moved a line, to different places: the merge deletes it once, and adds it twice.
#[test]
fn a_clean_merge_that_doubles_a_line_is_found() {
    let base = function("alpha") + &function("beta");
    let without = base.replace("    alpha_2();\n", "");
    let ours = without.replace("    alpha_8();\n", "    alpha_8();\n    alpha_2();\n");
    let upstream = without.replace("    beta_7();\n", "    beta_7();\n    alpha_2();\n");
    let result = merged_by_git(&base, &upstream, &ours);
    assert_eq!(result.matches("alpha_2").count(), 2, "{result}");
    let proof = of_one_file(&base, &ours, &upstream, &result);
    assert_eq!(classes(&proof), [FindingClass::Doubled]);
    let finding = open(&proof)[0];
    assert_eq!(finding.text, "    alpha_2();");
    // A person who removes either of the two is right.
    assert!(of_one_file(&base, &ours, &upstream, &upstream).is_proved());
}

/// Both sides moved one of two equal lines to the same place: the merge adds one, and deletes both.
#[test]
fn a_clean_merge_that_loses_a_line_is_found() {
    let twice = |text: String| {
        text.replace("    alpha_8();\n", "    alpha_8();\n    check();\n")
            .replace("    beta_8();\n", "    beta_8();\n    check();\n")
    };
    let base = twice(function("alpha") + &function("beta"));
    let first = base.replace("    alpha_1();\n", "    alpha_1();\n    check();\n");
    let upstream = first.replace("    beta_8();\n    check();\n", "    beta_8();\n");
    let ours = first.replace("    alpha_8();\n    check();\n", "    alpha_8();\n");
    let result = merged_by_git(&base, &upstream, &ours);
    assert_eq!(result.matches("check").count(), 1, "{result}");
    let proof = of_one_file(&base, &ours, &upstream, &result);
    assert_eq!(classes(&proof).len(), 1, "{:#?}", open(&proof));
    assert_eq!(open(&proof)[0].text, "    check();");
}

/// A conflict whose resolution has both changes is proved by its words; one that takes a side is not.
#[test]
fn a_resolved_conflict_has_the_words_of_both() {
    let base = function("alpha").replace("alpha_4()", "alpha_4(a)");
    let (upstream, ours) = (base.replace("(a)", "(a, b)"), base.replace("(a)", "(a, x)"));
    let proof = of_one_file(&base, &ours, &upstream, &base.replace("(a)", "(a, b, x)"));
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    let found: Vec<_> = proof.findings().map(|finding| (finding.class, finding.undone)).collect();
    assert_eq!(found, [(FindingClass::ResolvedByHand, Some(Undone::Added))]);
    let proof = of_one_file(&base, &ours, &upstream, &ours);
    assert_eq!(classes(&proof), [FindingClass::NewDeletion]);
    let proof = of_one_file(&base, &ours, &upstream, &base.replace("(a)", "(c)"));
    let mut found = classes(&proof);
    found.sort();
    assert_eq!(found, [FindingClass::LostOwnLine, FindingClass::NewDeletion]);
}

/// Upstream's lines in a conflict, some of which the patch adds too, in another function.
#[test]
fn lines_of_upstream_in_a_conflict_are_in_their_place() {
    let block = |name: &str| format!("    if ({name}) {{\n        {name}();\n    }}\n\n");
    let base = function("alpha") + &function("beta");
    let after = |text: &str, line: &str, more: &str| text.replace(line, &format!("{line}{more}"));
    let (in_alpha, in_beta) = ("    alpha_4();\n", "    beta_4();\n");
    let upstream = after(&base, in_alpha, &block("upstream"));
    let ours = after(&after(&base, in_alpha, "    own();\n"), in_beta, &block("own"));
    let conflict = block("upstream") + "    own();\n";
    let result = after(&after(&base, in_alpha, &conflict), in_beta, &block("own"));
    let proof = of_one_file(&base, &ours, &upstream, &result);
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    // A line that the patch adds is in the function that it was made for.
    let elsewhere = after(&after(&base, in_alpha, &block("upstream")), "    beta_8();\n", "    own();\n");
    let elsewhere = after(&elsewhere, in_beta, &block("own"));
    let proof = of_one_file(&base, &ours, &upstream, &elsewhere);
    assert_eq!(classes(&proof), [FindingClass::Misplaced], "{:#?}", proof.findings().collect::<Vec<_>>());
}

/// Both sides append a function: the head, the decorator and the blank lines above it are not in the function before.
#[test]
fn functions_that_both_sides_append_are_in_their_place() {
    let test = |name: &str| format!("@case(\"{name}\")\ndef test_{name}():\n    check(\"{name}\")\n");
    let (base, upstream, own) = (test("base"), test("upstream"), test("own"));
    let joined = |tests: &[&String]| tests.iter().map(|test| test.as_str()).collect::<Vec<_>>().join("\n\n");
    let texts = [
        joined(&[&base]),
        joined(&[&base, &own]),
        joined(&[&base, &upstream]),
        joined(&[&base, &upstream, &own]),
    ];
    let proof = of_file("tests/test_a.py", texts.each_ref().map(String::as_str));
    assert!(proof.is_proved(), "{:#?}", open(&proof));
}

/// Both sides add lines, some of them the same, where a merge gives no result, and the patch is dropped: the tree is
/// upstream's, so no line of upstream is lost.
#[test]
fn a_dropped_patch_deletes_nothing_of_upstreams() {
    let text = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let (ifdef, types) = ("#ifdef MUL_MAT_ID", "#include \"mul_mmq_shmem_types.glsl\"");
    let (load_a, load_b) = ("#define LOAD_VEC_A (4 * QUANT_R_MMQ)", "#define LOAD_VEC_B 16");
    let base = text(&[
        "", "", "", ifdef, "", "", "", ifdef, "", "", "", "", "", "", "", load_b, "", ifdef, "", "", "", "",
    ]);
    let upstream = text(&[
        "", "", "", ifdef, "", "", "", ifdef, "", "", "", types, "", ifdef, "", "", load_a, load_b, "", "",
        "",
    ]);
    let ours = text(&[
        "", "", "", ifdef, "", "", "", ifdef, "", "", "", "", types, "", "", "", load_a, load_b, "", "", "",
    ]);
    let proof = of_one_file(&base, &ours, &upstream, &upstream);
    assert!(classes(&proof).iter().all(|class| *class == FindingClass::LostPatch), "{:#?}", open(&proof));
    assert!(proof.findings().all(|finding| finding.undone.is_none()), "{:#?}", open(&proof));
}

/// Upstream moved all of the file away, and a person kept one line of the patch. The lost one has the text of a line that
/// was upstream's, further up.
#[test]
fn a_lost_line_is_where_the_patch_adds_it() {
    let common = |name: &str| function(name).replace("_3();\n", "_3();\n    common();\n");
    let base = common("alpha") + &function("beta");
    let ours = base.clone() + &common("own");
    let proof = of_one_file(&base, &ours, "// Moved.\n", "// Moved.\n    own_0();\n");
    let open = open(&proof);
    let lost = open.iter().find(|finding| finding.text.trim() == "common();").unwrap();
    assert_eq!(lost.class, FindingClass::LostOwnLine);
    assert_eq!(lost.function.as_deref(), Some("int own(void) {"));
    assert_eq!(lost.place, Some(LinePlace { version: FileVersion::OldAfter, line: 33 }));
}

/// Lines of new code that a person writes into a conflict are not those of another function. A block of that is.
#[test]
fn a_line_of_new_code_in_a_conflict_is_not_doubled() {
    let check = "    if (beta) {\n        return;\n    }\n";
    let base =
        function("alpha") + &function("beta").replace("    beta_7();\n", &format!("{check}    beta_7();\n"));
    let line = "    alpha_4();\n";
    let put = |text: &str| base.replace(line, text);
    let (upstream, ours) = (put("    alpha_4(b);\n"), put("    alpha_4(x);\n"));
    let retyped = put("    if (x && b) {\n        return;\n    }\n    alpha_4(b, x);\n");
    let proof = of_one_file(&base, &ours, &upstream, &retyped);
    assert!(!classes(&proof).contains(&FindingClass::Doubled), "{:#?}", open(&proof));
    let block = put(&format!("{check}    alpha_4(b);\n    alpha_4(x);\n"));
    let proof = of_one_file(&base, &ours, &upstream, &block);
    let doubled: Vec<&str> = open(&proof)
        .into_iter()
        .filter(|finding| finding.class == FindingClass::Doubled)
        .map(|finding| finding.text.trim())
        .collect();
    assert_eq!(doubled, ["if (beta) {", "return;", "}"]);
    // A line that both sides have, twice, is too many whatever is written beside it.
    let twice = put("    if (x && b) {\n    alpha_4(b);\n    alpha_4(b);\n    alpha_4(x);\n");
    assert!(classes(&of_one_file(&base, &ours, &upstream, &twice)).contains(&FindingClass::Doubled));
}

/// Upstream deletes the patched twin, and a person changes the one that is left.
#[test]
fn a_resolution_in_another_function_is_found() {
    let base = twin("left") + &twin("right");
    let change = |text: &str| text.replacen("twin * 2", "twin * 3", 1);
    let upstream = twin("right");
    let proof = of_one_file(&base, &change(&base), &upstream, &change(&upstream));
    assert!(
        classes(&proof).contains(&FindingClass::Misplaced),
        "{:#?}",
        proof.findings().collect::<Vec<_>>()
    );
}

/// Functions with lines that occur once, of which upstream changes some and a patch others.
struct ManyFunctions {
    lines: Vec<String>,
}

impl ManyFunctions {
    fn new() -> ManyFunctions {
        let text: String = (0..20).map(|number| function(&format!("f{number}"))).collect();
        ManyFunctions { lines: text.split_inclusive('\n').map(str::to_owned).collect() }
    }

    /// Returns the text with changes at the given lines.
    fn text(&self, changes: &BTreeMap<usize, String>) -> String {
        let line = |(at, line): (usize, &String)| changes.get(&at).cloned().unwrap_or_else(|| line.clone());
        self.lines.iter().enumerate().map(line).collect()
    }

    /// Returns changes at every third line or so, those of the two sides apart.
    fn changes(&self, random: &mut Random) -> [BTreeMap<usize, String>; 2] {
        let mut changes = [BTreeMap::new(), BTreeMap::new()];
        let mut at = 2;
        while at < self.lines.len() {
            let old = &self.lines[at];
            let new = match random.below(3) {
                0 => String::new(),
                1 => format!("    new_{at}();\n"),
                _ => format!("{old}    more_{at}();\n"),
            };
            if old.starts_with(' ') {
                changes[random.below(2)].insert(at, new);
            }
            at += 3 + random.below(4);
        }
        changes
    }
}

#[test]
fn random_moves_are_proved_and_random_faults_in_them_are_found() {
    let mut random = Random::new(20_270_301);
    let made = ManyFunctions::new();
    for round in 0..60 {
        let [by_upstream, by_patch] = made.changes(&mut random);
        let both: BTreeMap<usize, String> =
            by_upstream.iter().chain(&by_patch).map(|(at, line)| (*at, line.clone())).collect();
        let (base, ours) = (made.lines.concat(), made.text(&by_patch));
        let (upstream, result) = (made.text(&by_upstream), made.text(&both));
        let proof = of_one_file(&base, &ours, &upstream, &result);
        assert!(proof.is_proved(), "round {round}: {:#?}", open(&proof));
        let mut lines: Vec<String> = result.split_inclusive('\n').map(str::to_owned).collect();
        let at = random.below(lines.len());
        let fault = random.below(3);
        match fault {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            _ => lines[at] = lines[at].replace('\n', " \n"),
        }
        let proof = of_one_file(&base, &ours, &upstream, &lines.concat());
        assert!(!proof.is_proved(), "round {round}: fault {fault} in line {at}");
    }
}
