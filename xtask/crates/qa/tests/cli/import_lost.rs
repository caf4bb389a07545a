//! Patches that git and patch(1) take without a word about a part that they skip: none of it is lost.

use super::support::importing::{applied_by_git, started};
use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, files};

fn import(project: &Project, name: &str, text: &str, more: &[&str]) -> Output {
    let path = project.beside(name);
    files::write(&path, text);
    project.run(&[&["import", path.to_str().unwrap(), "--author", "Me <me@example.org>"], more].concat())
}

/// A change of `src/name.c` with a hunk of five lines.
const CHANGE: &str = "--- a/src/name.c\n+++ b/src/name.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n \
                      const char * words_name(void) {\n-    return \"world\";\n+    return \"people\";\n }\n";

/// The same, with the counts of its first three lines.
fn short() -> String {
    CHANGE.replace("-1,5 +1,5", "-1,3 +1,3")
}

const FROM: &str = "From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\n";

fn mail(body: &str, diff: &str) -> String {
    format!(
        "{FROM}From: Jane Doe <jane@example.org>\nDate: Thu, 2 Jan 2020 00:00:00 +0000\nSubject: [PATCH] Name \
         people\n\n{body}\n---\n src/name.c | 2 +-\n\n{diff}-- \n2.47.3\n\n"
    )
}

#[test]
fn lines_that_a_hunk_does_not_count_are_refused() {
    let project = started();
    let lines = "`-    return \"world\";`, `+    return \"people\";`";
    import(&project, "fix.diff", &short(), &[]).code(2).says(&[
        "1 change would be lost: git and patch(1) skip it; nothing was written",
        &format!(
            "fix.diff: b/src/name.c: 2 changed lines are outside of a hunk, below all lines that `@@ -1,3 +1,3 @@` \
             counts: {lines}"
        ),
        "next: correct the header of the hunk, or count its lines again: recountdiff [BESIDE]/fix.diff >counted.patch",
    ]);
    let damaged = CHANGE.to_owned() + "@ -15,2 +15,2 @@\n-16\n+x\n 17\n";
    import(&project, "fix.diff", &damaged, &[])
        .code(2)
        .says(&["below `@ -15,2 +15,2 @@`, which is not the header of a hunk: `-16`, `+x`"]);
    import(&project, "fix.patch", &mail("Why.", &short()), &[]).code(2).says(&["fix.patch: b/src/name.c: 2"]);
    assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    import(&project, "fix.diff", CHANGE, &[]).success();
}

/// Distributions note there where the mails come from.
#[test]
fn mails_below_notes_are_all_imported() {
    let project = started();
    let back = "--- a/src/name.c\n+++ b/src/name.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n \
                const char * words_name(void) {\n-    return \"people\";\n+    return \"all\";\n }\n";
    let second = mail("Why not.", back).replace("Name people", "Name all");
    let text = format!("https://example.org/pull/1\n{}{second}", mail("Why.", CHANGE));
    import(&project, "fix.patch", &text, &[]).success();
    let patches = files::list(&project.path("patches/my"));
    assert_eq!(patches, ["0001-name-people.patch", "0002-name-all.patch"]);
}

#[test]
fn a_file_without_its_content_is_refused_unless_it_is_left_out() {
    for (text, line) in [
        (format!("{CHANGE}Only in b/src: new.c\n"), "Only in b/src: new.c"),
        (
            format!("Only in b/src: new.c\ndiff -ru a/src/name.c b/src/name.c\n{CHANGE}"),
            "Only in b/src: new.c",
        ),
        (
            format!("diff -ru a b\nBinary files a/src/new.c and b/src/new.c differ\n{CHANGE}"),
            "Binary files a/src/new.c and b/src/new.c differ",
        ),
    ] {
        let project = started();
        import(&project, "fix.diff", &text, &[]).code(2).says(&[
            &format!("fix.diff: b/src/new.c: its content is not in the diff: `{line}`"),
            "or import the rest: the same command with --leave-out src/new.c",
        ]);
        import(&project, "fix.diff", &text, &["--leave-out", "src/new.c"]).success();
        assert_eq!(files::list(&project.path("patches/my")), ["0001-fix.patch"], "{text}");
    }
}

#[test]
fn a_binary_file_that_git_names_only_is_refused_by_git() {
    let project = started();
    let binary = "diff --git a/data/logo.bin b/data/logo.bin\nindex 1111111..2222222 100644\n\
                  Binary files a/data/logo.bin and b/data/logo.bin differ\n";
    let git = "diff --git a/src/name.c b/src/name.c\n".to_owned() + CHANGE;
    import(&project, "fix.diff", &(binary.to_owned() + &git), &[])
        .code(4)
        .says(&["cannot apply binary patch to 'data/logo.bin' without full index line"]);
}

#[test]
fn a_line_like_the_first_one_of_a_mail_stays_in_the_message() {
    let project = started();
    let body = "Before.\n\nFrom 0123 Mon Sep 17 00:00:00 2001\n\nAfter.";
    let output = import(&project, "0001-x.patch", &mail(body, CHANGE), &["--json"]).success();
    let json = output.json();
    assert_eq!(json["dropped"], serde_json::json!([]), "{output}");
    assert_eq!(json["patches"][0]["from"], "0001-x.patch", "{output}");
    let patch = project.read("patches/my/0001-name-people.patch");
    for line in [
        "From: Jane Doe <jane@example.org>",
        "Date: Thu, 2 Jan 2020 00:00:00 +0000",
        "Before.",
        // `git am` would split the patch there.
        " From 0123 Mon Sep 17 00:00:00 2001",
        "After.",
    ] {
        assert!(patch.lines().any(|found| found == line), "{line}\n{patch}");
    }
    assert!(json["patches"][0]["notes"].to_string().contains("were indented"), "{output}");
    project.run(&["lock", "--check"]).success();
    let tree = applied_by_git(&project, &Upstream::shared().repository(), TAG, "my");
    assert_eq!(json["tree"], tree.as_str(), "{output}");
}

#[test]
fn a_mail_below_the_diff_of_another_patch_is_refused() {
    let second = CHANGE.replace("people", "folk").replace("world", "people");
    let below = format!("fix.patch: b/src/name.c: a mail begins below it: `{}`", FROM.trim_end());
    // The first one is not a mail, or the second one has no header.
    for text in [
        format!("Name people.\n\n{CHANGE}{}", mail("Why.", &second)),
        format!("{}{FROM}\nWhy.\n---\n{second}", mail("Why.", CHANGE)),
    ] {
        let project = started();
        import(&project, "fix.patch", &text, &[]).code(2).says(&[&below]);
        assert_eq!(files::list(&project.path("patches/my")), [""; 0]);
    }
}
