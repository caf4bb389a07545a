//! The description of a conflict: `conflict.json` and its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::rebase_lookalikes::{change_the_left_twin, right_twin_first, without_the_left_twin};
use super::support::generations::{Generations, ring_in_another_way};
use super::support::moving::{Move, greet, upstream_greets_otherwise};
use super::support::upstream::TAG;
use super::support::{Project, files, git};

const FOLDER: &str = "target/espalier/rebase/hello/conflict";

/// Creates the rebase, which stops, and returns it with the description.
fn stopped(moving: Move) -> (Move, Value) {
    moving.rebase(&[]).code(4);
    let package = moving.package();
    (moving, package)
}

/// Returns the usual conflict; its patch names tests.
fn greeting() -> (Move, Value) {
    let moving = Move::new(upstream_greets_otherwise);
    let patch = "patches/paged/0001-greet-more-warmly.patch";
    let tests = "warmly\n\nVerified-by: the smoke test; cargo xtask gate\nDrop-when: upstream greets\n---\n";
    moving.project.edit(patch, "warmly\n\n---\n", tests);
    moving.project.write(
        "ci/suites/suites.toml",
        "# Greetings (patch 0001).\n[[programs]]\ntarget = \"test-greet\"\n\n# Counts (patch 0002).\n[[programs]]\n\
         target = \"test-count\"\n",
    );
    stopped(moving)
}

#[test]
fn a_conflict_is_described_in_full() {
    let (moving, package) = greeting();
    assert_eq!(package["schema"], 1);
    assert_eq!(package["kind"], "conflict");
    assert_eq!((&package["from"]["name"], &package["to"]["name"]), (&json!("v1.0"), &json!("v2.0")));
    assert_eq!(package["to"]["tree"], moving.tip_tree());
    assert_eq!(package["commit"], git::git(&moving.upstream, &["rev-parse", "HEAD"]));
    let patch = &package["patch"];
    assert_eq!(patch["file"], "patches/paged/0001-greet-more-warmly.patch");
    assert_eq!(patch["subject"], "Greet more warmly");
    assert!(patch["message"].as_str().unwrap().starts_with("Greet more warmly\n\nVerified-by: "), "{patch}");
    let verified = json!([
        { "source": "Verified-by", "text": "the smoke test" },
        { "source": "Verified-by", "text": "cargo xtask gate" },
        { "source": "ci/suites/suites.toml:1", "text": "test-greet" },
    ]);
    assert_eq!(patch["verified_by"], verified);
    assert_eq!(package["files"][0]["reason"], "same-lines");
    assert_eq!(package["files"][0]["hunks"], json!([1]));

    let hunk = &package["hunks"][0];
    let head = "const char * words_greeting(int kind) {";
    assert_eq!((&hunk["path"], &hunk["function"]), (&json!("src/greet.c"), &json!(head)));
    assert_eq!(hunk["marked"], json!({ "start": 6, "lines": 7 }));
    for (side, words) in [("base", "hello"), ("ours", "hi"), ("theirs", "hello there")] {
        let text = format!("        return \"{words}\";\n");
        let found = &hunk[side];
        assert_eq!((&found["start"], &found["lines"], &found["text"]), (&json!(6), &json!(1), &json!(text)));
        let function = &found["function"];
        assert_eq!((&function["name"], &function["is_whole"]), (&json!(head), &json!(true)));
        assert_eq!((&function["start"], &function["lines"]), (&json!(4), &json!(6)));
        assert_eq!(moving.project.read(&format!("{FOLDER}/hunk-01/{side}")), text);
        let whole = moving.project.read(&format!("{FOLDER}/hunk-01/function-{side}"));
        assert!(whole.starts_with(head) && whole.ends_with("}\n") && whole.contains(&text), "{whole}");
    }
    let commit = &hunk["commits"][0];
    assert_eq!((&commit["id"], &commit["date"]), (&package["commit"], &json!("2020-01-02")));
    assert_eq!(commit["message"]["text"], "Change upstream\n");
    let diff = commit["diff"]["text"].as_str().unwrap();
    assert!(diff.starts_with("--- a/src/greet.c\n+++ b/src/greet.c\n@@ -3,7 +3,7 @@"), "{diff}");
    assert!(diff.contains("\n-        return \"hello\";\n+        return \"hi\";\n"), "{diff}");
    let other = json!([
        { "file": "patches/paged/0003-greet-dearly.patch", "same_function": true, "same_lines": true }
    ]);
    assert_eq!(hunk["other_patches"], other);
    assert_eq!((&hunk["kind"], &package["files"][0]["recorded"]), (&json!("both-changed"), &Value::Null));
    assert_eq!(hunk["elsewhere"], json!([]));
    assert_eq!((&package["rebase"]["done"], &package["rebase"]["of"]), (&json!(0), &json!(3)));
    assert_eq!(package["rebase"]["folder"], FOLDER);
    let expected = [
        "README.md",
        "conflict.json",
        "hunk-01/base",
        "hunk-01/function-base",
        "hunk-01/function-ours",
        "hunk-01/function-theirs",
        "hunk-01/ours",
        "hunk-01/theirs",
        "hunk-01/upstream.diff",
    ];
    assert_eq!(files::list(&moving.project.path(FOLDER)), expected);
    let readme = moving.project.read(&format!("{FOLDER}/README.md"));
    for words in [
        "src/greet.c: upstream changed the same lines",
        "\n    Greet more warmly\n\n    Verified-by: the smoke test",
        "It can be dropped when: upstream greets\n",
        "Its test, from Verified-by: the smoke test\n",
        "Its test, from ci/suites/suites.toml:1: test-greet\n",
        "hunk-01/: src/greet.c:6-12, in `const char * words_greeting(int kind) {`\n",
        "both change the same 1 line: upstream to 1 line, the patch to 1 line\n",
        "  patches/paged/0003-greet-dearly.patch changes these lines too\n",
        "rebase --root",
        "--continue",
        "--skip",
        "--abort",
        "The rebase compiles and tests nothing. After its end: cargo xtask sync",
    ] {
        assert!(readme.contains(words), "{readme}");
    }
}

/// Upstream gives a helper another type, which it defines in another file. Its commits since the pin are gone.
fn without_history() -> Move {
    const USE: &str = "int words_used(int size) {\n    int state = make_state(size);\n    return state;\n}\n";
    let header = |folder: &Path, kind: &str, name: &str| {
        let text = format!("struct {name} {{\n    int count;\n}};\n\n{kind} make_state(int size);\n");
        files::write(&folder.join("src/state.h"), text);
    };
    Move::with_base(
        |folder| {
            header(folder, "int", "word_state");
            files::write(&folder.join("src/use.c"), USE);
        },
        |folder| files::edit(&folder.join("src/use.c"), "make_state(size)", "make_state(size + 1)"),
        |folder| {
            header(folder, "struct word_session", "word_session");
            files::edit(&folder.join("src/use.c"), "int state =", "struct word_session state =");
            git::git(folder, &["checkout", "--quiet", "--orphan", "alone"]);
        },
    )
}

#[test]
fn without_history_the_two_trees_show_what_upstream_changed() {
    let (moving, package) = stopped(without_history());
    let hunk = &package["hunks"][0];
    assert_eq!(hunk["commits"], Value::Null);
    let diff = hunk["upstream_diff"]["text"].as_str().unwrap();
    assert!(diff.starts_with("--- a/src/use.c\n+++ b/src/use.c\n@@ -1,4 +1,4 @@"), "{diff}");
    let change = "-    int state = make_state(size);\n+    struct word_session state = make_state(size);\n";
    assert!(diff.contains(change), "{diff}");
    assert_eq!(hunk["upstream_diff"]["hunks_left_out"], 0);
    let related = &package["related"][0];
    assert_eq!((&related["path"], &related["hunks"]), (&json!("src/state.h"), &json!([1])));
    assert_eq!(related["defines"], json!(["make_state", "word_session"]));
    assert_eq!(related["uses"], json!(["size"]));
    let definition = "-int make_state(int size);\n+struct word_session make_state(int size);\n";
    assert!(related["diff"]["text"].as_str().unwrap().contains(definition), "{related}");
    assert_eq!(package["related"].as_array().map(Vec::len), Some(1));
    for (file, text) in [("hunk-01/upstream.diff", change), ("related.diff", definition)] {
        let found = moving.project.read(&format!("{FOLDER}/{file}"));
        assert!(found.contains(text), "{found}");
    }
    let readme = moving.project.read(&format!("{FOLDER}/README.md"));
    for words in [
        "  upstream's change around it, as a diff of the two trees:\n      --- a/src/use.c\n",
        "      +    struct word_session state = make_state(size);\n",
        "* src/state.h: defines `make_state`, `word_session`; uses `size`\n",
        "      +struct word_session make_state(int size);\n",
    ] {
        assert!(readme.contains(words), "{readme}");
    }
}

/// A generation is replayed without upstream's history, whether it is there or not.
#[test]
fn a_conflict_on_a_generation_has_upstreams_change() {
    let generations = Generations::new();
    generations.rebase("v2", &["--drop-upstreamed"]).code(4);
    let text = generations.project.read("target/espalier/rebase/v2/conflict/conflict.json");
    let package: Value = serde_json::from_str(&text).unwrap();
    let hunk = &package["hunks"][0];
    assert_eq!(hunk["commits"], Value::Null);
    let diff = hunk["upstream_diff"]["text"].as_str().unwrap();
    assert!(diff.contains("-        return \"hello\";\n+        return \"hi\";\n"), "{diff}");
    let check = package["rebase"]["next"]["check"].as_str().unwrap();
    assert!(check.contains(" build ") && check.contains("paged-v2"), "{check}");
}

/// Creates a series of two patches. The first changes two files, one of which upstream changes too; the second changes
/// the other one again.
fn second_patch_on_the_first() -> Move {
    let project = Project::new();
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    files::edit(&fork.join("src/greet.c"), "return \"hello\";", "return \"hello there\";");
    files::edit(&fork.join("src/count.c"), "int count = 0;", "int count = 1;");
    git::commit(&fork, "Change both");
    files::edit(&fork.join("src/count.c"), "int count = 1;", "int count = 2;");
    git::commit(&fork, "Count on");
    project.take_series(&fork);
    std::fs::remove_dir_all(&fork).unwrap();
    Move::of(project, |upstream| {
        upstream_greets_otherwise(upstream);
        git::commit(upstream, "Greet otherwise");
        files::write(&upstream.join("docs/more.txt"), "more\n");
    })
}

/// Upstream has not changed the lines of the second conflict: they are as they are because the first patch was dropped.
#[test]
fn a_conflict_that_an_earlier_decision_caused_is_not_called_upstreams() {
    let (moving, package) = stopped(second_patch_on_the_first());
    assert_eq!(package["hunks"][0]["changed_by"], Value::Null);
    let output = moving.run(&["--skip"]).code(4);
    let words = "upstream did not change these lines: patches/paged/0001-change-both.patch did, as it was resolved or \
                 dropped\n";
    assert!(output.stderr.contains(&format!("  src/count.c: {words}")), "{output}");
    assert!(!output.stderr.contains("it stopped applying at"), "{output}");
    let changed_by = json!(["patches/paged/0001-change-both.patch"]);
    assert_eq!(moving.package()["hunks"][0]["changed_by"], changed_by);
    let readme = moving.project.read(&format!("{FOLDER}/README.md"));
    assert!(readme.contains(&format!("* src/count.c: {words}")), "{readme}");
    assert!(readme.contains(&format!("  {words}")), "{readme}");
}

#[test]
fn a_program_gets_it_on_standard_output_too() {
    let moving = Move::new(upstream_greets_otherwise);
    let from = moving.upstream.to_str().unwrap();
    let report = moving.project.run(&["--json", "rebase", "--to", "v2.0", "--from", from]).code(4).json();
    assert_eq!(report["error"]["kind"], "conflict");
    assert_eq!(report["conflict"]["hunks"], moving.package()["hunks"]);
    assert_eq!(report["conflict"]["rebase"]["next"]["continue"], "cargo xtask rebase --continue");
}

#[test]
fn it_is_there_as_long_as_the_patch_waits() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.rebase(&[]).code(4);
    let first = moving.package();
    // Killed while it was written.
    std::fs::remove_dir_all(moving.project.path(FOLDER)).unwrap();
    moving.project.edit("target/espalier/rebase/hello/state.json", "\"ready\": true", "\"ready\": false");
    moving.run(&["--continue"]).code(4);
    assert_eq!(moving.package(), first);
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    assert_eq!(moving.package()["patch"]["file"], "patches/paged/0003-greet-dearly.patch");
    moving.run(&["--abort"]).success();
    assert!(!moving.project.path(FOLDER).exists());
    moving.rebase(&[]).code(4);
    moving.run(&["--skip"]).code(4);
    moving.run(&["--skip"]).success();
    moving.assert_moved();
}

fn edits_the_ring(folder: &Path) {
    files::edit(&folder.join("src/ring.c"), "at % size", "(at + size) % size");
}

#[test]
fn a_file_that_is_gone_has_the_hunks_of_the_patch() {
    let gone = |folder: &Path| std::fs::remove_file(folder.join("src/ring.c")).unwrap();
    let (_moving, package) = stopped(Move::with_patch(edits_the_ring, gone));
    assert_eq!(package["files"][0]["reason"], "file-gone");
    let hunk = &package["hunks"][0];
    assert_eq!((&hunk["ours"], &hunk["marked"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&hunk["base"]["start"], &hunk["base"]["text"]),
        (&json!(4), &json!("    return at % size;\n"))
    );
    assert_eq!(hunk["theirs"]["text"], "    return (at + size) % size;\n");
    assert_eq!(hunk["function"], "int words_ring(int at, int size) {");
    assert_eq!(hunk["candidates"], json!([]));
    assert_eq!(hunk["commits"][0]["diff"]["text"], "deleted file src/ring.c\n");
}

fn tests(names: &[&str]) -> String {
    let test = |name: &&str| format!("def test_{name}():\n    check(\"{name}\")\n");
    names.iter().map(test).collect::<Vec<_>>().join("\n\n")
}

/// Both append a function: the place is behind the one before, not in it.
#[test]
fn a_place_between_functions_is_in_none() {
    let write = |names: &'static [&'static str]| {
        move |folder: &Path| files::write(&folder.join("tests/test_words.py"), tests(names))
    };
    let moving = Move::with_base(write(&["base"]), write(&["base", "own"]), write(&["base", "upstream"]));
    let (_moving, package) = stopped(moving);
    let hunk = &package["hunks"][0];
    assert_eq!((&hunk["base"]["lines"], &hunk["function"]), (&json!(0), &Value::Null));
    assert_eq!(hunk["base"]["function"]["name"], Value::Null);
}

/// Conflict markers have 12 digits of a commit id.
#[test]
fn markers_name_the_commit_by_its_first_digits() {
    let moving = Move::new(upstream_greets_otherwise);
    let commit = git::git(&moving.upstream, &["rev-parse", "HEAD"]);
    moving.run(&["--to", &commit, "--from", moving.upstream.to_str().unwrap()]).code(4);
    let marked = std::fs::read_to_string(moving.work().join("src/greet.c")).unwrap();
    assert!(marked.contains(&format!("<<<<<<< {}\n", &commit[..12])), "{marked}");
}

/// Upstream has the file at two other paths.
fn two_candidates() -> Move {
    Move::with_patch(edits_the_ring, |folder| {
        std::fs::copy(folder.join("src/ring.c"), folder.join("src/wheel.c")).unwrap();
        std::fs::rename(folder.join("src/ring.c"), folder.join("src/circle.c")).unwrap();
    })
}

#[test]
fn a_file_that_may_be_elsewhere_has_its_candidates() {
    let (_moving, package) = stopped(two_candidates());
    let hunk = &package["hunks"][0];
    let paths = |key: &str| -> Vec<&str> {
        hunk[key].as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap()).collect()
    };
    assert_eq!(paths("candidates"), ["src/circle.c", "src/wheel.c"]);
    assert_eq!(paths("elsewhere"), ["src/circle.c", "src/wheel.c"]);
    assert_eq!((&hunk["elsewhere"][0]["found"], &hunk["elsewhere"][0]["line"]), (&json!("hunk"), &json!(1)));
}

/// Upstream moves the function into a new file.
#[test]
fn a_function_that_was_moved_is_found() {
    let moving = Move::with_patch(change_the_left_twin, |folder| {
        let text = std::fs::read_to_string(folder.join("src/twins.c")).unwrap();
        let left = text.split("int words_twin_right").next().unwrap();
        files::write(&folder.join("src/left.c"), format!("{}\n", left.trim_end()));
        without_the_left_twin(folder);
    });
    let (_moving, package) = stopped(moving);
    let hunk = &package["hunks"][0];
    assert_eq!(hunk["function"], "int words_twin_left(int value) {");
    let found = hunk["elsewhere"].as_array().unwrap();
    let moved = found.iter().find(|place| place["path"] == "src/left.c").unwrap();
    assert_eq!((&moved["function"], &moved["found"]), (&hunk["function"], &json!("hunk")));
}

/// Upstream empties a long file. One line of the hunk is in a new file, among others.
#[test]
fn a_patch_of_an_emptied_file_is_described_by_its_change() {
    let path = |folder: &Path| folder.join("src/words.inc");
    let line = |number: usize| format!("int value_of_the_word_{number};\n");
    let moving = Move::with_base(
        |folder| files::write(&path(folder), (0..200).map(line).collect::<String>()),
        |folder| files::edit(&path(folder), &line(100), &format!("{}int value_of_the_patch;\n", line(100))),
        |folder| {
            files::write(&path(folder), "#include \"parts.inc\"\n");
            let part = format!("int first;\n{}int last;\n", line(100));
            files::write(&folder.join("src/parts.inc"), part);
        },
    );
    let (moving, package) = stopped(moving);
    let hunk = &package["hunks"][0];
    let patch = &hunk["patch_hunks"][0];
    assert_eq!((&patch["after"], &patch["added"], &patch["deleted"]), (&json!(101), &json!(1), &json!(0)));
    let text = patch["text"].as_str().unwrap();
    assert!(text.starts_with("@@ -99,6 +99,7 @@") && text.contains("\n+int value_of_the_patch;\n"), "{text}");
    let place = json!([{ "path": "src/parts.inc", "line": 2, "function": null, "found": "line" }]);
    assert_eq!(hunk["elsewhere"], place);
    let readme = moving.project.read(&format!("{FOLDER}/README.md"));
    for words in [
        "  upstream reduced these 200 lines to 1; the patch adds 1 line after line 101 of the base\n",
        "  a line that the patch expects is in src/parts.inc:2\n",
    ] {
        assert!(readme.contains(words), "{readme}");
    }
}

#[test]
fn each_place_has_a_folder_of_its_own() {
    let twice = |first: &'static str, last: &'static str| {
        move |folder: &Path| {
            files::edit(&folder.join("src/count.c"), "int count = 0;", first);
            files::edit(&folder.join("src/count.c"), "    return count;", last);
        }
    };
    let moving = Move::with_patch(
        twice("int count = 1;", "    return count - 1;"),
        twice("int count = 7;", "    return count - 7;"),
    );
    let (moving, package) = stopped(moving);
    assert_eq!(package["files"][0]["hunks"], json!([1, 2]));
    for (folder, text) in [("hunk-01", "    int count = 7;\n"), ("hunk-02", "    return count - 7;\n")] {
        assert_eq!(moving.project.read(&format!("{FOLDER}/{folder}/ours")), text);
    }
    let headers: Vec<&Value> =
        package["hunks"].as_array().unwrap().iter().map(|hunk| &hunk["patch_hunks"][0]["header"]).collect();
    assert_eq!(headers, ["@@ -1,7 +1,7 @@", "@@ -11,5 +11,5 @@"]);
}

/// The summary says where a side changed nothing that matters.
#[test]
fn white_space_and_comments_are_told_apart_from_code() {
    let count = |line: &'static str| {
        move |folder: &Path| files::edit(&folder.join("src/count.c"), "    int count = 0;", line)
    };
    for (own, upstreams, words) in [
        ("    int count = 1;", "        int  count = 0;", "upstream changed only white space in these lines"),
        ("    int count = 1;", "    int count = 0; // none", "upstream changed only comments in these lines"),
        ("    int count = 1; // one", "    int count = 1;", "both sides have the same code but for comments"),
    ] {
        let (moving, _) = stopped(Move::with_patch(count(own), count(upstreams)));
        let readme = moving.project.read(&format!("{FOLDER}/README.md"));
        assert!(readme.contains(&format!("\n  {words}\n")), "{readme}");
    }
}

fn odd_name(folder: &Path) -> PathBuf {
    folder.join(OsStr::from_bytes(b"src/na\xefve.c"))
}

fn odd_text(letter: u8) -> Vec<u8> {
    [b"// ".as_slice(), &[letter], b"\nint a;\n"].concat()
}

/// Neither the name of the file nor its text is UTF-8.
fn not_utf8() -> Move {
    let writes = |letter: u8| move |folder: &Path| files::write(&odd_name(folder), odd_text(letter));
    Move::with_base(writes(0xe8), writes(0xe9), writes(0xea))
}

#[test]
fn bytes_that_are_not_utf8_are_exact() {
    let (moving, package) = stopped(not_utf8());
    let hunk = &package["hunks"][0];
    assert_eq!(hunk["path"], "src/na\\xefve.c");
    assert_eq!(hunk["path_base64"], "c3JjL25h73ZlLmM=");
    assert_eq!((&hunk["ours"]["base64"], &hunk["ours"]["text"]), (&json!("Ly8g6go="), &Value::Null));
    let ours = std::fs::read(moving.project.path(FOLDER).join("hunk-01/ours")).unwrap();
    assert_eq!(ours, b"// \xea\n");
    let names = files::list(&moving.project.path(FOLDER));
    assert!(names.iter().all(|name| name.is_ascii()), "{names:?}");
}

/// The patch deletes a large file that upstream changed.
fn large() -> Move {
    let path = |folder: &Path| folder.join("src/large.inc");
    let text: String = (0..4_000).map(|line| format!("line {line}\n")).collect();
    Move::with_base(
        |folder| files::write(&path(folder), &text),
        |folder| std::fs::remove_file(path(folder)).unwrap(),
        |folder| files::edit(&path(folder), "line 7\n", "line seven\n"),
    )
}

/// Returns the description of a conflict of a sibling with the change of its patch.
fn in_a_sibling() -> Value {
    let generations = Generations::with_stale_sibling(ring_in_another_way);
    generations.rebase("v2", &["--edit", "1"]).code(4);
    let text = generations.project.read("target/espalier/rebase/v2/conflict/conflict.json");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_conflict_with_a_sibling_has_the_change_of_the_patch() {
    let package = in_a_sibling();
    let sibling = &package["sibling"];
    assert_eq!(sibling["file"], "patches/paged/0001-greet-more-warmly@v2.patch");
    assert_eq!(sibling["change"], "merged");
    let difference = sibling["difference"].as_str().unwrap();
    assert!(difference.contains("++    return at % (size + 1);"), "{difference}");
    let hunk = &package["hunks"][0];
    for (side, line) in [("base", "at % size"), ("ours", "size % at"), ("theirs", "at % (size + 1)")] {
        assert_eq!(hunk[side]["text"], format!("    return {line};\n"));
    }
    assert_eq!((&hunk["patch_hunks"], &hunk["changed_by"]), (&json!([]), &Value::Null));
}

const PAGE: &str = "docs/reference/conflict-json.md";

/// Returns the types of each key of the page.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(files::of_this_repository(PAGE)).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && !cells[2].is_empty(), "{line}");
        let types = cells[1].split(" or ").map(|name| name.split(' ').next().unwrap().to_string());
        (cells[0].trim_matches('`').to_string(), types.collect())
    };
    rows.map(row).collect()
}

/// Collects the types of all keys of a description. What several places have in common has one name.
fn collect(value: &Value, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        found.entry(path.to_string()).or_default().insert(kind.to_string());
    }
    match value {
        Value::Array(values) => values
            .iter()
            .filter(|value| value.is_object())
            .for_each(|value| collect_fields(value, &format!("{path}[]"), found)),
        Value::Object(_) => collect_fields(value, path, found),
        _ => {}
    }
}

fn collect_fields(value: &Value, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let path = match path {
        "hunks[].base" | "hunks[].ours" | "hunks[].theirs" => "SIDE",
        "files[].base" | "files[].ours" | "files[].theirs" => "VERSION",
        other => other,
    };
    for (key, value) in value.as_object().unwrap() {
        let is_common = ["text", "base64", "left_out", "path_base64"].contains(&key.as_str());
        let path = match path {
            _ if is_common => key.clone(),
            "" => key.clone(),
            _ => format!("{path}.{key}"),
        };
        collect(value, &path, found);
    }
}

/// Returns the data of a refused `--continue`.
fn refused_edits() -> Value {
    let (moving, _) = greeting();
    moving.solve(greet("hi there").replace("good day", "good night"));
    let report = moving.project.run(&["--json", "rebase", "--continue"]).code(4).json();
    json!({ "edits": report["edits"], "edits_left_out": report["edits_left_out"] })
}

/// Every key that the tool writes is on the page with its types, and every key of the page is written.
#[test]
fn the_reference_has_every_key() {
    let documented = documented();
    let look_alike = Move::with_patch(change_the_left_twin, right_twin_first);
    let packages = [
        refused_edits(),
        greeting().1,
        stopped(without_history()).1,
        stopped(look_alike).1,
        stopped(two_candidates()).1,
        stopped(not_utf8()).1,
        stopped(large()).1,
        in_a_sibling(),
    ];
    let mut found = BTreeMap::new();
    packages.iter().for_each(|package| collect(package, "", &mut found));
    let keys = |map: &BTreeMap<String, BTreeSet<String>>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(&documented), "{PAGE}");
    for (key, types) in &found {
        assert!(types.is_subset(&documented[key]), "{PAGE}: `{key}` is {types:?}, not {:?}", documented[key]);
    }
}
