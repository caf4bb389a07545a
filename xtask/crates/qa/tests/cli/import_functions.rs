//! A diff whose context fits at more than one place: its hunks go to the functions that they name.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::support::importing::started;
use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, files, git};

const TWINS: &str =
    "int one() {\n    a();\n    b();\n    c();\n}\n\n\n\n\n\nint two() {\n    a();\n    b();\n    c();\n}\n";
const CHANGE: &str = "     a();\n-    b();\n+    d();\n     c();\n";

/// The project with `src/pair.c`, and a change of it that fits in both functions.
fn import_into(twins: &str, hunks: &str) -> (Project, Output) {
    import_two(&new_file(twins), &format!("--- a/src/pair.c\n+++ b/src/pair.c\n{hunks}"))
}

/// The project with two patches: `new`, and one with the diff `change`.
fn import_two(new: &str, change: &str) -> (Project, Output) {
    let project = started();
    let folder = project.beside("series");
    files::write(&folder.join("0001-new.diff"), new);
    files::write(&folder.join("0002-change.diff"), format!("Change it.\n\n{change}"));
    let arguments = ["import", folder.to_str().unwrap(), "--json", "--author", "A <a@b>"];
    let output = project.run(&arguments).success();
    project.run(&["apply"]).success();
    (project, output)
}

/// A diff that adds `src/pair.c`.
fn new_file(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let count = text.lines().count();
    format!("New file.\n\n--- /dev/null\n+++ b/src/pair.c\n@@ -0,0 +1,{count} @@\n{lines}")
}

fn imported(project: &Project) -> String {
    std::fs::read_to_string(project.tree("my").join("src/pair.c")).unwrap()
}

fn notes(output: &Output) -> Vec<String> {
    serde_json::from_value(output.json()["patches"][1]["notes"].clone()).unwrap()
}

/// `TWINS` with the change in its first or in its second function.
fn changed(in_second: bool) -> String {
    let (first, second) = TWINS.split_at(TWINS.find("int two").unwrap());
    match in_second {
        true => first.to_string() + &second.replace("b();", "d();"),
        false => first.replace("b();", "d();") + second,
    }
}

#[test]
fn the_function_of_the_header_decides_and_not_the_nearest_line() {
    for line in [2, 4, 6, 11, 12, 40] {
        let (project, output) =
            import_into(TWINS, &format!("@@ -{line},3 +{line},3 @@ int two() {{\n{CHANGE}"));
        assert_eq!(imported(&project), changed(true), "{line}");
        let note = "src/pair.c: hunk #1 fits at lines 2 and 12; it was put at line 12, in `int two() {`, which it names";
        assert_eq!(notes(&output).contains(&note.to_string()), line != 12, "{line}: {output}");
    }
    let (project, output) = import_into(TWINS, &format!("@@ -12,3 +12,3 @@ int one() {{\n{CHANGE}"));
    assert_eq!(imported(&project), changed(false), "{output}");
}

#[test]
fn with_less_context_too() {
    // The first lines are those of a third function, which is not here.
    let hunk = format!("@@ -3,5 +3,5 @@ int two() {{\n     x();\n     y();\n{CHANGE}");
    let (project, output) = import_into(TWINS, &hunk);
    assert_eq!(imported(&project), changed(true), "{output}");
}

#[test]
fn a_hunk_above_that_adds_lines_moves_those_below() {
    let above = "@@ -6,3 +6,5 @@\n \n+int x;\n+int y;\n \n \n";
    let (project, output) = import_into(TWINS, &format!("{above}@@ -4,3 +6,3 @@ int two() {{\n{CHANGE}"));
    let wanted = changed(true).replacen("}\n\n", "}\n\nint x;\nint y;\n", 1);
    assert_eq!(imported(&project), wanted, "{output}");
}

#[test]
fn a_function_that_is_not_here_any_more_is_named() {
    let (_, output) = import_into(TWINS, &format!("@@ -2,3 +2,3 @@ int six() {{\n{CHANGE}"));
    let note = "src/pair.c: hunk #1 was made for `int six() {`, and fits elsewhere only, at lines 2 and 12; it was put at line 2, as its header says";
    assert_eq!(notes(&output)[0], note);
    let one = &TWINS[..TWINS.find("int two").unwrap()];
    let (_, output) = import_into(one, &format!("@@ -9,3 +9,3 @@ int six() {{\n{CHANGE}"));
    let note = "src/pair.c: hunk #1 was made for `int six() {`, and is in `int one() {` at line 2";
    assert_eq!(notes(&output)[0], note);
}

#[test]
fn a_reversed_diff_is_placed_the_same_way() {
    let project = started();
    let folder = project.beside("series");
    let both = TWINS.replace("b();", "d();");
    files::write(&folder.join("new.diff"), new_file(&both));
    let change =
        format!("Undo.\n\n--- a/src/pair.c\n+++ b/src/pair.c\n@@ -2,3 +2,3 @@ int two() {{\n{CHANGE}");
    files::write(&folder.join("undo.diff"), change);
    files::write(&folder.join("series"), "new.diff\nundo.diff -R\n");
    project.run(&["import", folder.to_str().unwrap(), "--author", "A <a@b>"]).success();
    project.run(&["apply"]).success();
    let (first, second) = both.split_at(both.find("int two").unwrap());
    assert_eq!(imported(&project), first.to_string() + &second.replace("d();", "b();"));
}

/// Returns the output of `import` for a change of `src/pair.c` that it refuses.
fn not_imported(twins: &str, hunks: &str) -> String {
    let project = started();
    let folder = project.beside("series");
    files::write(&folder.join("0001-new.diff"), new_file(twins));
    let change = format!("Change it.\n\n--- a/src/pair.c\n+++ b/src/pair.c\n{hunks}");
    files::write(&folder.join("0002-change.diff"), change);
    let output = project.run(&["import", folder.to_str().unwrap(), "--author", "A <a@b>"]);
    output.stdout + &output.stderr
}

#[test]
fn a_change_that_only_a_look_alike_has_is_not_left_out() {
    let file = changed(false).replace("    b();", "    e();");
    let message = not_imported(&file, &format!("@@ -12,3 +12,3 @@ int two() {{\n{CHANGE}"));
    assert!(message.contains("0002-change.diff: patch failed: src/pair.c:12"), "{message}");
}

#[test]
fn a_change_that_is_there_does_not_go_to_a_look_alike() {
    let message = not_imported(&changed(true), &format!("@@ -12,3 +12,3 @@ int two() {{\n{CHANGE}"));
    assert!(message.contains("0002-change.diff: the pin, or a patch before it, has it already"), "{message}");
}

#[test]
fn a_hunk_without_context_is_refused() {
    // git puts the first one at the end of the file, and the second one into the last function.
    for hunk in ["@@ -2,0 +3 @@ int one() {\n+    n();\n", "@@ -5 +5 @@ int one() {\n-}\n+} // one\n"] {
        let message = not_imported(TWINS, hunk);
        assert!(message.contains("src/pair.c: hunk #1 has no lines of context"), "{message}");
    }
}

#[test]
fn a_file_that_is_changed_twice_is_placed_both_times() {
    let above = "@@ -6,3 +6,8 @@\n \n+int six() {\n+    a();\n+    b();\n+    c();\n+}\n \n \n";
    let below = format!("--- a/src/pair.c\n+++ b/src/pair.c\n@@ -7,3 +7,3 @@ int two() {{\n{CHANGE}");
    let (project, output) = import_into(TWINS, &(above.to_string() + &below));
    let six = "}\n\nint six() {\n    a();\n    b();\n    c();\n}\n";
    assert_eq!(imported(&project), changed(true).replacen("}\n\n", six, 1), "{output}");
    let note = "hunk #1 fits at lines 2, 8 and 17; it was put at line 17, in `int two() {`, which it names";
    assert!(notes(&output).iter().any(|line| line.ends_with(note)), "{output}");
}

/// Returns a diff of `file` that claims to be made from upstream's file `of`.
fn made_from(of: &str, file: &str, hunks: &str) -> String {
    let revision = format!("{TAG}:{of}");
    let blob = git::git(&Upstream::shared().repository(), &["rev-parse", "--short=12", &revision]);
    format!(
        "diff --git a/{file} b/{file}\nindex {blob}..123456789abc 100644\n--- a/{file}\n+++ b/{file}\n{hunks}"
    )
}

/// git has the blob, but cannot merge from it.
#[test]
fn a_stale_index_line_does_not_send_a_hunk_to_a_look_alike() {
    let hunk = format!("@@ -2,3 +2,3 @@ int two() {{\n{CHANGE}");
    let (project, output) = import_two(&new_file(TWINS), &made_from("README.md", "src/pair.c", &hunk));
    assert_eq!(imported(&project), changed(true), "{output}");
    let note =
        "src/pair.c: hunk #1 fits at lines 2 and 12; it was put at line 12, in `int two() {`, which it names";
    assert!(notes(&output).contains(&note.to_string()), "{output}");
}

#[test]
fn a_stale_index_line_of_one_file_leaves_the_merge_of_another_alone() {
    let file = "src/length.c";
    let above =
        "-int words_length(const char * text) {\n+int words_length(const char * text) { // in bytes\n";
    let new = new_file(TWINS)
        + &format!("--- a/{file}\n+++ b/{file}\n@@ -3,3 +3,3 @@\n{above}     int length = 0;\n")
        + "     while (text[length]) length++;\n";
    // Its first line is another one by now.
    let merged = "@@ -3,5 +3,5 @@\n int words_length(const char * text) {\n     int length = 0;\n     while (text[length]) \
                  length++;\n-    return length;\n+    return length + 0;\n }\n";
    let placed = format!("@@ -2,3 +2,3 @@ int two() {{\n{CHANGE}");
    let change = made_from(file, file, merged) + &made_from("README.md", "src/pair.c", &placed);
    let (project, output) = import_two(&new, &change);
    assert_eq!(imported(&project), changed(true), "{output}");
    let note = format!("{file}: made from different content than is here; git merged it");
    assert!(notes(&output).contains(&note), "{output}");
    let text = std::fs::read_to_string(project.tree("my").join(file)).unwrap();
    assert!(text.contains("{ // in bytes\n") && text.contains("return length + 0;"), "{text}");
}

/// Parts of a diff by git for files without hunks: empty ones, a mode, and binary ones.
fn without_hunks(project: &Project) -> Vec<(&'static str, String)> {
    let fork = project.fork();
    let made = |change: &dyn Fn()| {
        git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
        change();
        git::git(&fork, &["add", "--all"]);
        // A binary patch ends with a blank line.
        git::git(&fork, &["diff", "--cached", "--binary"]) + "\n\n"
    };
    let logo = fork.join("data/logo.bin");
    vec![
        ("a new empty file", made(&|| files::write(&fork.join("empty.c"), ""))),
        (
            "a mode",
            made(&|| {
                std::fs::set_permissions(fork.join("src/ring.c"), Permissions::from_mode(0o755)).unwrap()
            }),
        ),
        ("a changed binary file", made(&|| files::write(&logo, [0u8, 1, 255, 254, 10, 13]))),
        ("a deleted binary file", made(&|| std::fs::remove_file(&logo).unwrap())),
    ]
}

/// The second patch adds as many lines at the top as one function has to the next, and the third one was made before
/// it, so git merges: the line of its hunk in the file is that of the other function in the blob.
#[test]
fn a_file_without_hunks_does_not_move_the_hunks_of_the_next_one() {
    for (name, part) in without_hunks(&started()) {
        let project = started();
        let folder = project.beside("series");
        files::write(&folder.join("0001-new.diff"), new_file(TWINS));
        let (count, top) = (10, "+// top\n".repeat(10));
        let top = format!(
            "--- a/src/pair.c\n+++ b/src/pair.c\n@@ -1,2 +1,{} @@\n{top} int one() {{\n     a();\n",
            count + 2
        );
        files::write(&folder.join("0002-top.diff"), format!("Top.\n\n{top}"));
        files::write(&project.beside("pair.c"), TWINS);
        let blob = git::git(&project.beside(""), &["hash-object", "--no-filters", "pair.c"]);
        let change = format!(
            "diff --git a/src/pair.c b/src/pair.c\nindex {blob}..123456789abc 100644\n--- a/src/pair.c\n+++ b/src/pair.c\n\
             @@ -2,3 +2,3 @@ int one() {{\n{CHANGE}"
        );
        files::write(&folder.join("0003-change.diff"), format!("Change it.\n\n{part}{change}"));
        let arguments = ["import", folder.to_str().unwrap(), "--json", "--author", "A <a@b>"];
        let output = project.run(&arguments).success();
        project.run(&["apply"]).success();
        assert_eq!(imported(&project), "// top\n".repeat(count) + &changed(false), "{name}: {output}");
        let notes = output.json()["patches"][2]["notes"].to_string();
        assert!(notes.contains("git merged it") && !notes.contains("hunk #1"), "{name}: {notes}");
    }
}

/// Imports a change of `file` beside another patch; the change is in a similar section only.
#[track_caller]
fn assert_not_taken_for_there(file: &str, text: &str, hunk: &str, places: &str) {
    let project = started();
    let folder = project.beside("series");
    files::write(&folder.join("0001-new.diff"), new_file(text).replace("src/pair.c", file));
    let change = format!("Change it.\n\n--- a/{file}\n+++ b/{file}\n{hunk}");
    files::write(&folder.join("0002-change.diff"), change);
    let output = project.run(&["import", folder.to_str().unwrap(), "--author", "A <a@b>"]).code(4);
    output.says(&[&format!("{file}: hunk #1 {places}"), "1 of 2 patches do not apply; nothing was written"]);
}

#[test]
fn a_change_that_only_a_similar_section_has_is_reported_with_both_places() {
    let sections = "[a]\nhost=x\nport=2\nuser=u\n\n[b]\nhost=x\nport=5\nuser=u\n\n";
    let note = "is for line 7, and its result is at line 2, which may be a look-alike: its context is at lines 2 and 7";
    let hunk = "@@ -7,3 +7,3 @@\n host=x\n-port=1\n+port=2\n user=u\n";
    assert_not_taken_for_there("c.conf", sections, hunk, note);

    // `diff -u` names no function.
    let function = |name: &str, call: &str| {
        format!("int {name}()\n{{\n    a();\n    b();\n    {call}();\n    d();\n    e();\n}}\n\n")
    };
    let functions = function("one", "n2") + &function("two", "n5");
    let note = "is for line 12, and its result is at line 3, ";
    let hunk = "@@ -12,5 +12,5 @@\n     a();\n     b();\n-    n1();\n+    n2();\n     d();\n     e();\n";
    assert_not_taken_for_there("src/two.c", &functions, hunk, note);

    let case = |value: u32, call: u32| {
        format!("  case {value}:\n    a();\n    b();\n    x({call});\n    c();\n    d();\n    break;\n")
    };
    let cases = format!("int f(int k)\n{{\n  switch (k) {{\n{}{}  }}\n}}\n", case(1, 2), case(2, 5));
    let note = "is for line 12, and its result is at line 5, ";
    let hunk = "@@ -12,5 +12,5 @@ int f(int k)\n     a();\n     b();\n-    x(1);\n+    x(2);\n     c();\n     d();\n";
    assert_not_taken_for_there("src/f.c", &cases, hunk, note);
}

#[test]
fn a_change_that_is_there_at_another_line_is_left_out() {
    let text = format!("int x;\nint y;\n{}", changed(true));
    let message = not_imported(&text, &format!("@@ -12,3 +12,3 @@ int two() {{\n{CHANGE}"));
    assert!(message.contains("0002-change.diff: the pin, or a patch before it, has it already"), "{message}");
}
