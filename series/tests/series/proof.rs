//! The proof of a move: clean moves pass, and whatever is wrong with the result of a move is found, with its class.

use std::collections::BTreeMap;
use std::process::Command;

use espalier_series::{
    BinaryHalf, BinaryPatch, Change, ChangedBaseFile, Content, FileMode, FilePatch, FileSide, FindingClass,
    LostCalls, MemoryTree, Mode, ObjectId, Patch, PlacedPatch, PlacedSeries, ProofFinding, RepoPath,
    SeriesProof, Undone, hunks_between, lost_calls, prove_series,
};

use crate::random::Random;

/// The files of a tree.
type Files = BTreeMap<String, (Mode, Vec<u8>)>;

const CODE: &str = "src/a.c";

/// The states of a series: its base, and after each patch.
#[derive(Clone)]
struct Made {
    states: Vec<Files>,
}

fn function(name: &str) -> String {
    let lines: String = (0..10).map(|line| format!("    {name}_{line}();\n")).collect();
    format!("int {name}(void) {{\n{lines}}}\n\n")
}

fn twin(name: &str) -> String {
    format!(
        "int {name}(int twin) {{\n    int more = twin + 1;\n    twin = twin * 2;\n    more = more + twin;\n    \
         return more;\n}}\n\n"
    )
}

fn pinned() -> Files {
    let code = ["alpha", "beta", "gamma"].map(function).concat()
        + &twin("left")
        + &twin("right")
        + function("last").trim_end()
        + "\n";
    let story: String = (0..30).map(|line| format!("line {line} of the story\n")).collect();
    Files::from([
        (CODE.to_owned(), (Mode::File, code.into_bytes())),
        ("src/untouched.c".to_owned(), (Mode::File, function("untouched").into_bytes())),
        ("src/old.c".to_owned(), (Mode::File, story.into_bytes())),
        ("run.sh".to_owned(), (Mode::File, b"echo run\n".to_vec())),
        ("data/logo.bin".to_owned(), (Mode::File, [&[0, 1, 2][..], &[7; 300]].concat())),
        ("docs/link".to_owned(), (Mode::Symlink, b"../README.md".to_vec())),
    ])
}

/// Returns the files as upstream has them after the move.
fn moved(pinned: &Files) -> Files {
    let mut files = pinned.clone();
    edit(&mut files, CODE, "int alpha(void) {\n", "// The first.\n// More of it.\nint alpha(void) {\n");
    edit(&mut files, CODE, "    alpha_1();\n", "    alpha_one();\n");
    edit(&mut files, CODE, "    gamma_2();\n", "");
    edit(&mut files, CODE, "int gamma(void) {\n", &(function("delta") + "int gamma(void) {\n"));
    files.insert("src/new.c".to_owned(), (Mode::File, function("new").into_bytes()));
    files
}

/// A change of files.
type Edit = fn(&mut Files);

/// The patches, as changes to whatever tree they are applied to.
const PATCHES: [(&str, Edit); 3] = [
    ("0001-change-functions.patch", |files| {
        edit(files, CODE, "    alpha_3();\n", "    alpha_3();\n    own_one();\n    own_two();\n");
        edit(files, CODE, "    alpha_8();\n", "");
        edit(files, CODE, "    twin = twin * 2;\n", "    twin = twin * 3;\n");
    }),
    ("0002-rename-a-file.patch", |files| {
        files.insert("src/own.c".to_owned(), (Mode::File, b"int own_a;\nint own_b;\n".to_vec()));
        let old = files.remove("src/old.c").unwrap();
        files.insert("src/renamed.c".to_owned(), old);
        edit(files, "src/renamed.c", "line 9 ", "row 9 ");
        files.get_mut("run.sh").unwrap().0 = Mode::Executable;
    }),
    ("0003-change-the-logo.patch", |files| {
        files.get_mut("data/logo.bin").unwrap().1[5] = 9;
        edit(files, CODE, "    beta_3();\n", "    beta_3();\n    own_three();\n");
    }),
];

fn edit(files: &mut Files, path: &str, from: &str, to: &str) {
    let content = &mut files.get_mut(path).unwrap_or_else(|| panic!("no {path}")).1;
    let text = String::from_utf8(std::mem::take(content)).unwrap();
    assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
    *content = text.replacen(from, to, 1).into_bytes();
}

impl Made {
    fn on(base: Files) -> Made {
        let mut states = vec![base];
        for (_, change) in PATCHES {
            let mut files = states.last().unwrap().clone();
            change(&mut files);
            states.push(files);
        }
        Made { states }
    }

    /// Changes every state from `from` to before `to`, counted in patches.
    fn with(mut self, from: usize, to: usize, change: fn(&mut Files)) -> Made {
        self.states[from..to].iter_mut().for_each(change);
        self
    }

    fn trees(&self) -> Vec<MemoryTree> {
        let tree = |files: &Files| {
            let mut tree = MemoryTree::new();
            files.iter().for_each(|(path, (mode, content))| tree.put(path, *mode, content));
            tree
        };
        self.states.iter().map(tree).collect()
    }

    /// Returns the patches; one that changes nothing cannot be written, and is dropped.
    fn patches(&self) -> Vec<Option<Patch>> {
        let pairs = self.states.iter().zip(&self.states[1..]);
        pairs.zip(PATCHES).map(|((before, after), (name, _))| patch(name, before, after)).collect()
    }
}

/// Returns the patch between two trees, with the one rename that there is.
fn patch(name: &str, before: &Files, after: &Files) -> Option<Patch> {
    let (from, to) = ("src/old.c", "src/renamed.c");
    let is_renamed = !after.contains_key(from) && before.contains_key(from) && after.contains_key(to);
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths.into_iter().filter(|path| !(is_renamed && *path == from)) {
        let old = if is_renamed && path == to { from } else { path.as_str() };
        let sides = (before.get(old), after.get(path));
        if sides.0 != sides.1 || old != path {
            files.push(file_patch((old, path), sides.0, sides.1));
        }
    }
    (!files.is_empty()).then(|| Patch {
        name: name.to_owned(),
        author: "A U Thor <author@example.com>".to_owned(),
        date: String::new(),
        subject: name.to_owned(),
        subject_line: 1,
        body: String::new(),
        trailers: Vec::new(),
        files,
    })
}

fn file_patch(
    (old, new): (&str, &str),
    before: Option<&(Mode, Vec<u8>)>,
    after: Option<&(Mode, Vec<u8>)>,
) -> FilePatch {
    let side = |path: &str, file: &(Mode, Vec<u8>)| FileSide {
        path: RepoPath::new(path.as_bytes()).unwrap(),
        mode: FileMode::of_entry(file.0),
        id: Some(ObjectId::of_blob(&file.1)),
    };
    let content = |file: Option<&(Mode, Vec<u8>)>| file.map(|file| file.1.clone()).unwrap_or_default();
    let (left, right) = (content(before), content(after));
    let is_binary = left.contains(&0) || right.contains(&0);
    FilePatch {
        change: match (before, after) {
            (None, _) => Change::Create,
            (_, None) => Change::Delete,
            _ if old != new => Change::Rename,
            _ => Change::Modify,
        },
        old: before.map(|file| side(old, file)),
        new: after.map(|file| side(new, file)),
        content: match left == right {
            true => Content::Unchanged,
            false if is_binary => {
                Content::Binary(BinaryPatch { forward: BinaryHalf::Literal(right), reverse: None })
            }
            false => Content::Text(hunks_between(&left, &right)),
        },
        line: 1,
    }
}

fn placed(made: &Made) -> PlacedSeries<'static> {
    let trees: &'static [MemoryTree] = made.trees().leak();
    let patches: &'static [Option<Patch>] = made.patches().leak();
    let pairs = trees.iter().zip(&trees[1..]).zip(patches);
    PlacedSeries {
        base: &trees[0],
        patches: pairs
            .filter_map(|((before, after), patch)| {
                Some(PlacedPatch { patch: patch.as_ref()?, before, after })
            })
            .collect(),
    }
}

fn prove(old: &Made, new: &Made) -> SeriesProof {
    prove_series(&placed(old), &placed(new), true).unwrap()
}

fn clean() -> (Made, Made) {
    let pinned = pinned();
    let new = moved(&pinned);
    (Made::on(pinned), Made::on(new))
}

fn open(proof: &SeriesProof) -> Vec<&ProofFinding> {
    proof.findings().filter(|finding| finding.is_open()).collect()
}

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

/// A fault in the result of a move: the states that have it, the change, and the class and the file of the finding.
struct Mutation {
    name: &'static str,
    states: (usize, usize),
    change: fn(&mut Files),
    class: FindingClass,
    path: &'static str,
}

const ALL: (usize, usize) = (1, 4);

const fn mutation(
    name: &'static str,
    change: fn(&mut Files),
    class: FindingClass,
    path: &'static str,
) -> Mutation {
    Mutation { name, states: ALL, change, class, path }
}

const MUTATIONS: [Mutation; 20] = [
    mutation(
        "an upstream line in a patched file is lost",
        |files| edit(files, CODE, "    gamma_5();\n", ""),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    mutation(
        "an upstream line in the context of a hunk is lost",
        |files| edit(files, CODE, "    alpha_4();\n", ""),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    mutation(
        "a hunk of the patch is there twice",
        |files| {
            let hunk = "    own_one();\n    own_two();\n";
            edit(files, CODE, hunk, &hunk.repeat(2));
        },
        FindingClass::Doubled,
        CODE,
    ),
    mutation(
        "a line of the patch is lost",
        |files| edit(files, CODE, "    own_two();\n", ""),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "a mode is changed",
        |files| files.get_mut(CODE).unwrap().0 = Mode::Executable,
        FindingClass::ModeOrName,
        CODE,
    ),
    Mutation {
        name: "a whole upstream file is lost",
        states: (2, 4),
        change: |files| drop(files.remove("src/untouched.c")),
        class: FindingClass::NewDeletion,
        path: "src/untouched.c",
    },
    mutation(
        "a deletion by upstream is undone",
        |files| edit(files, CODE, "    gamma_1();\n", "    gamma_1();\n    gamma_2();\n"),
        FindingClass::Restored,
        CODE,
    ),
    mutation(
        "a line is moved to another function",
        |files| {
            edit(files, CODE, "    own_one();\n", "");
            edit(files, CODE, "    gamma_6();\n", "    gamma_6();\n    own_one();\n");
        },
        FindingClass::Misplaced,
        CODE,
    ),
    mutation(
        "white space is changed",
        |files| edit(files, CODE, "    own_one();\n", "  own_one();\n"),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "a line end is changed",
        |files| edit(files, CODE, "    own_two();\n", "    own_two();\r\n"),
        FindingClass::LostOwnLine,
        CODE,
    ),
    mutation(
        "the last line feed is lost",
        |files| assert_eq!(files.get_mut(CODE).unwrap().1.pop(), Some(b'\n')),
        FindingClass::LostUpstreamLine,
        CODE,
    ),
    Mutation {
        name: "a rename is lost",
        states: (2, 4),
        change: |files| {
            let file = files.remove("src/renamed.c").unwrap();
            files.insert("src/old.c".to_owned(), file);
        },
        class: FindingClass::ModeOrName,
        path: "src/old.c",
    },
    Mutation {
        name: "a symbolic link is changed",
        states: (2, 4),
        change: |files| files.get_mut("docs/link").unwrap().1 = b"elsewhere".to_vec(),
        class: FindingClass::Binary,
        path: "docs/link",
    },
    mutation(
        "an upstream line is there twice",
        |files| edit(files, CODE, "    beta_6();\n", "    beta_6();\n    beta_6();\n"),
        FindingClass::Doubled,
        CODE,
    ),
    mutation(
        "a hunk is in a function that looks alike",
        |files| {
            edit(files, CODE, "    twin = twin * 2;\n", "    TWIN\n");
            edit(files, CODE, "    twin = twin * 3;\n", "    twin = twin * 2;\n");
            edit(files, CODE, "    TWIN\n", "    twin = twin * 3;\n");
        },
        FindingClass::Misplaced,
        CODE,
    ),
    Mutation {
        name: "a new file of the patch is changed",
        states: (2, 4),
        change: |files| edit(files, "src/own.c", "int own_b;", "int own_c;"),
        class: FindingClass::LostOwnLine,
        path: "src/own.c",
    },
    mutation(
        "a new function of upstream is deleted",
        |files| edit(files, CODE, &function("delta"), ""),
        FindingClass::NewDeletion,
        CODE,
    ),
    Mutation {
        name: "a binary file is changed",
        states: (3, 4),
        change: |files| files.get_mut("data/logo.bin").unwrap().1[7] = 1,
        class: FindingClass::Binary,
        path: "data/logo.bin",
    },
    Mutation {
        name: "a patch is emptied",
        states: (3, 4),
        change: |files| {
            files.get_mut("data/logo.bin").unwrap().1[5] = 7;
            edit(files, CODE, "    own_three();\n", "");
        },
        class: FindingClass::LostPatch,
        path: "0003-change-the-logo.patch",
    },
    Mutation {
        name: "a patch is changed, and a later one makes up for it",
        states: (1, 2),
        change: |files| edit(files, CODE, "    own_two();\n", ""),
        class: FindingClass::LostOwnLine,
        path: CODE,
    },
];

#[test]
fn every_fault_is_found_with_its_class() {
    let (old, new) = clean();
    let mut missed = Vec::new();
    for Mutation { name, states, change, class, path } in MUTATIONS {
        let proof = prove(&old, &new.clone().with(states.0, states.1, change));
        let is_it = |finding: &&ProofFinding| finding.class == class && finding.path == path;
        if !open(&proof).iter().any(is_it) {
            missed.push(format!("{name}: not {class:?} of {path}: {:#?}", open(&proof)));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
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
    let new = Made::on(base.clone()).with(3, 4, |files| edit(files, CODE, "    own_three();\n", ""));
    let proof = prove(&old, &new);
    assert!(proof.is_proved(), "{:#?}", open(&proof));
    let dropped = &proof.patches[2];
    assert!(dropped.new.is_empty());
    let classes: Vec<FindingClass> = dropped.findings.iter().map(|finding| finding.class).collect();
    assert_eq!(classes, [FindingClass::Upstreamed, FindingClass::Upstreamed]);
}

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
        Made { states: vec![files(base), files(ours)] },
        Made { states: vec![files(upstream), files(result)] },
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
