//! Patch texts that must be refused before any tree is read, each by its own name.

use espalier_series::{PATCH_SIZE_LIMIT, PathRefusal, Refusal, parse};

use crate::support::{NULL_ID, create, create_with_mode, id, mail, modify, refusal};

#[test]
fn paths_out_of_the_tree() {
    let cases = [
        ("/etc/passwd", PathRefusal::Absolute),
        ("../x", PathRefusal::DotComponent),
        ("a/../../x", PathRefusal::DotComponent),
        (".git/config", PathRefusal::GitFolder),
        (".GIT/hooks/post-checkout", PathRefusal::GitFolder),
        ("sub/.git/config", PathRefusal::GitFolder),
        ("git~1/config", PathRefusal::GitFolder),
        (".git /config", PathRefusal::GitFolder),
        ("c:/x", PathRefusal::Colon),
        ("a\\b", PathRefusal::Backslash),
        ("a//b", PathRefusal::EmptyComponent),
        ("", PathRefusal::Empty),
    ];
    for (path, expected) in cases {
        assert_eq!(refusal(&create(path)), Refusal::BadPath(expected), "{path}");
    }
}

#[test]
fn quoted_paths_hide_nothing() {
    let hidden = r#""a/\056git/config""#;
    let new = id("new\n");
    let diff = format!(
        "diff --git {hidden} \"b/\\056git/config\"\nnew file mode 100644\nindex {NULL_ID}..{new}\n\
         --- /dev/null\n+++ \"b/\\056git/config\"\n@@ -0,0 +1 @@\n+new\n"
    );
    assert_eq!(refusal(&diff), Refusal::BadPath(PathRefusal::GitFolder));
    assert_eq!(refusal(&diff.replace("056git", "000git")), Refusal::BadPath(PathRefusal::ControlCharacter));
    assert_eq!(refusal(&diff.replace("056git", "012git")), Refusal::BadPath(PathRefusal::ControlCharacter));
    assert_eq!(refusal(&diff.replace("056git", "456git")), Refusal::BadQuotedPath);
}

#[test]
fn modes_other_than_files() {
    let cases = [
        ("120000", Refusal::SymlinkMode),
        ("160000", Refusal::SubmoduleMode),
        ("020666", Refusal::UnsupportedMode),
        ("060644", Refusal::UnsupportedMode),
        ("010644", Refusal::UnsupportedMode),
        ("040000", Refusal::UnsupportedMode),
        ("104755", Refusal::UnsupportedMode),
        ("100777", Refusal::UnsupportedMode),
        ("100664", Refusal::UnsupportedMode),
    ];
    for (mode, expected) in cases {
        assert_eq!(refusal(&create_with_mode("x", mode)), expected, "{mode}");
        let on_index = modify("x", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n").replace("100644", mode);
        assert_eq!(refusal(&on_index), expected, "{mode}");
        let change = format!("diff --git a/x b/x\nold mode 100644\nnew mode {mode}\n");
        assert_eq!(refusal(&change), expected, "{mode}");
    }
}

#[test]
fn headers_that_disagree() {
    let good = modify("x", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
    let index_line = good.lines().nth(1).unwrap();
    let cases = [
        (good.replace("--- a/x", "--- a/y"), Refusal::PathsDisagree),
        (good.replace("+++ b/x", "+++ b/y"), Refusal::PathsDisagree),
        (good.replace("+++ b/x", "+++ /dev/null"), Refusal::PathsDisagree),
        (good.replace("a/x b/x", "a/x b/y"), Refusal::PathsDisagree),
        (good.replace("a/x b/x", "x x"), Refusal::BadDiffHeader),
        (good.replace("+++ b/x\n", ""), Refusal::ContradictoryDiffHeaders),
        (good.replace("--- a/x\n", ""), Refusal::ContradictoryDiffHeaders),
        (good.replace("--- a/x\n", "--- a/x\n--- a/x\n"), Refusal::DuplicateDiffHeader),
        (good.replace(&format!("{index_line}\n"), ""), Refusal::MissingIndexLine),
        (good.replace(" 100644", ""), Refusal::ContradictoryDiffHeaders),
        (good.replace(&id("a\n").to_string(), "7898192"), Refusal::AbbreviatedId),
        (good.replace(&id("a\n").to_string(), "xyz"), Refusal::BadIndexLine),
        (good.replace("..", "-"), Refusal::BadIndexLine),
        (good.replace(&id("a\n").to_string(), NULL_ID), Refusal::NullIdWhereFileExists),
        (good.replace(&id("b\n").to_string(), &id("a\n").to_string()), Refusal::ContradictoryDiffHeaders),
        (good.replace("@@ -1 +1 @@\n-a\n+b\n", ""), Refusal::TruncatedPatch),
        (good.replace("index ", "old mode 100755\nindex "), Refusal::ContradictoryDiffHeaders),
        (good.replace("index ", "new file mode 100644\nindex "), Refusal::PathsDisagree),
        (good.replace("index ", "rename from x\nindex "), Refusal::ContradictoryDiffHeaders),
        (good.replace("index ", "rename from x\nrename to x\nindex "), Refusal::PathsDisagree),
        (good.replace("index ", "similarity index 900%\nindex "), Refusal::BadDiffHeader),
        (format!("{good}{good}"), Refusal::DuplicatePath),
        (format!("{good}stray\n"), Refusal::TrailingText),
        (format!("{good}-- \n2.47.3\n--- a/y\n+++ b/y\n"), Refusal::TrailingText),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n".to_owned(), Refusal::DiffOutsideOfGitDiff),
        (String::new(), Refusal::NoDiff),
        ("diff --git a/x b/x\n".to_owned(), Refusal::MissingIndexLine),
        (
            "diff --git a/x b/x\nold mode 100644\nnew mode 100644\n".to_owned(),
            Refusal::ContradictoryDiffHeaders,
        ),
    ];
    for (diff, expected) in cases {
        assert_eq!(refusal(&diff), expected, "{diff}");
    }
}

#[test]
fn lines_of_git_around_a_diff_are_tolerated() {
    let good = modify("x", "a\n", "b\n", "@@ -1 +1 @@\n-a\n+b\n");
    for end in ["", "-- \n2.47.3\n\n", "\n", "-- \n"] {
        let text = mail(&format!("{good}{end}"));
        assert!(parse("0001-x.patch", text.as_bytes()).is_ok(), "{end:?}");
    }
}

#[test]
fn counts_and_sizes_that_are_absurd() {
    let with_header = |header: &str| modify("x", "a\n", "b\n", &format!("{header}\n-a\n+b\n"));
    let cases = [
        ("@@ -1,4294967296 +1 @@", Refusal::NumberTooLarge),
        ("@@ -18446744073709551615 +1 @@", Refusal::NumberTooLarge),
        ("@@ -1,10000001 +1 @@", Refusal::NumberTooLarge),
        ("@@ -1,9999999 +1,9999999 @@", Refusal::TruncatedPatch),
        ("@@ -1,2 +1 @@", Refusal::TruncatedPatch),
        ("@@ -1,0 +1 @@", Refusal::WrongHunkCount),
        ("@@ -0,0 +0,0 @@", Refusal::WrongHunkCount),
        ("@@ --1 +1 @@", Refusal::BadHunkHeader),
        ("@@ -1 +1", Refusal::BadHunkHeader),
    ];
    for (header, expected) in cases {
        assert_eq!(refusal(&with_header(header)), expected, "{header}");
    }
}

#[test]
fn a_patch_of_more_than_64_mib() {
    let error = parse("0001-x.patch", &vec![b'x'; PATCH_SIZE_LIMIT + 1]).unwrap_err();
    assert_eq!(error.refusal, Refusal::PatchTooLarge);
}

#[test]
fn a_binary_file_without_its_data() {
    let (old, new) = (id("a\n"), id("b\n"));
    let head = format!("diff --git a/x b/x\nindex {old}..{new} 100644\n");
    let differ = format!("{head}Binary files a/x and b/x differ\n");
    assert_eq!(refusal(&differ), Refusal::BinaryDataMissing);
    let truncated = format!("{head}GIT binary patch\nliteral 0\nHcmV?d00001\n");
    assert_eq!(refusal(&truncated), Refusal::TruncatedPatch);
    let bomb = format!("{head}GIT binary patch\nliteral 999999999999\nHcmV?d00001\n\n");
    assert_eq!(refusal(&bomb), Refusal::BinaryTooLarge);
    let junk = format!("{head}GIT binary patch\nliteral 5\nHcmV?d00001\n\n");
    assert_eq!(refusal(&junk), Refusal::BadBinaryPatch);
}

#[test]
fn an_error_says_where_what_and_what_was_expected() {
    let error = parse("0007-x.patch", mail(&create_with_mode("x", "120000")).as_bytes()).unwrap_err();
    insta::assert_snapshot!(error, @"0007-x.patch:9: the patch writes a symlink (mode 120000): expected mode 100644 or 100755, found `new file mode 120000`");
}
