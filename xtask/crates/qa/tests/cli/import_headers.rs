//! `import` of headers, subjects and notes above a diff, and of patch queues.

use super::support::importing::{change, first, import, imported_patch, second, started};
use super::support::{Project, files};

#[test]
fn a_merge_is_only_called_one_where_git_merged() {
    let index = "diff --git a/src/name.c b/src/name.c\nindex 1234567..2345678 100644\n--- a/";
    let (_, output) = imported_patch(&first().replace("--- a/", index), "x.diff");
    let note = "src/name.c: made from different content than is here; its hunks were placed by their context";
    assert!(output.stdout.contains(note), "{output}");
}

#[test]
fn text_that_begins_like_a_diff_a_mail_or_a_comment_is_kept() {
    let cases: [(&str, &[&str]); 2] = [
        (
            "#123: fix a crash\n\nindex of the first name was wrong,\ndiff of both shows it.\n\
             Author: Jane Doe <jane@example.org>\n\n",
            &[
                "From: Jane Doe <jane@example.org>",
                "Subject: [PATCH] #123: fix a crash",
                "index of the first name was wrong,",
                "diff of both shows it.",
            ],
        ),
        (
            "From https://example.org/commit/1\nName people.\n\nThey are more.\n\n",
            &["Subject: [PATCH] Name people.", "From https://example.org/commit/1", "They are more."],
        ),
    ];
    for (text, wanted) in cases {
        let (patch, _) = imported_patch(&format!("{text}{}", first()), "x.diff");
        for line in wanted {
            assert!(patch.lines().any(|found| found == *line), "{line}\n{patch}");
        }
    }
}

#[test]
fn the_header_of_mercurial() {
    let header = "# HG changeset patch\n# User Jane Doe <jane@example.org>\n# Date 1136214245 -3600\n#      Mon Jan 02 \
                  16:04:05 2006 +0100\n# Node ID 0123456789abcdef\nCore: name people.\n\nThey are more.\n\n\
                  diff -r 0123 -r 4567 src/name.c\n";
    let (patch, output) = imported_patch(&format!("{header}{}", first()), "nginx.diff");
    for line in [
        "From: Jane Doe <jane@example.org>",
        "Date: Mon, 2 Jan 2006 16:04:05 +0100",
        "Subject: [PATCH] Core: name people.",
        "They are more.",
    ] {
        assert!(patch.lines().any(|found| found == line), "{line}\n{patch}");
    }
    assert!(output.stdout.contains("  new      nginx.diff -> 0001-core-name-people.patch\n"), "{output}");
}

/// git and patch(1) make two files of these; a file system that ignores case cannot hold both.
#[test]
fn a_path_that_differs_in_case_only_can_be_left_out() {
    let project = started();
    let folder = project.beside("queue");
    files::write(&folder.join("1.diff"), "--- /dev/null\n+++ b/src/Name.c\n@@ -0,0 +1 @@\n+x\n");
    files::write(&folder.join("2.diff"), first());
    let output = import(&project, &folder, &[]).code(1);
    output
        .says(&["the path differs from `src/name.c` in case only", "the same command with --leave-out PATH"]);
    import(&project, &folder, &["--leave-out", "src/Name.c"]).success();
    assert_eq!(files::list(&project.path("patches/my")), ["0001-2.patch"]);
}

/// Mercurial and git write several patches into one file. Only the first message would be left of them.
#[test]
fn changesets_below_a_diff_are_refused() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let changeset =
        |user: &str| format!("# HG changeset patch\n# User {user} <x@example.org>\nName people.\n\n");
    let commit = |user: &str| format!("commit {id}\nAuthor: {user} <x@example.org>\n\n    Name people.\n\n");
    let cases = [[changeset("A"), changeset("B")], [commit("A"), commit("B")]];
    for ([one, two], kind) in cases.into_iter().zip(["changeset", "commit"]) {
        let project = started();
        let path = project.beside("both.patch");
        files::write(&path, format!("{one}{}\n{two}{}", first(), second()));
        let begins = format!("src/name.c: a {kind} begins below it");
        import(&project, &path, &[]).code(2).says(&["1 change would be lost", &begins, "a file of its own"]);
        files::write(&path, format!("{one}{}", first()));
        import(&project, &path, &[]).success();
        let patch = project.read("patches/my/0001-name-people.patch");
        assert!(patch.contains("\nFrom: A <x@example.org>\n"), "{patch}");
    }
}

#[test]
fn conditions_of_an_order_file_are_reported() {
    let project = started();
    let folder = project.beside("queue");
    files::write(&folder.join("series"), "a.patch\nb.patch #+stable\n");
    files::write(&folder.join("a.patch"), first());
    files::write(&folder.join("b.patch"), second());
    let output = import(&project, &folder, &[]).success();
    let note = "conditions in `series` were not evaluated: `b.patch #+stable`";
    assert!(output.stdout.contains(note), "{output}");
}

#[test]
fn fields_are_never_the_subject() {
    let header = "Origin: vendor, in a sentence\nForwarded: https://example.org/pull/7\nName people.\n";
    let (patch, _) = imported_patch(&format!("{header}{}", first()), "x.diff");
    assert!(patch.contains("\nSubject: [PATCH] Name people.\n"), "{patch}");
    assert!(patch.contains("\nUpstream-Status: Submitted https://example.org/pull/7\n"), "{patch}");
    let (patch, _) = imported_patch(&format!("Origin: vendor\n\n{}", first()), "02-name-people.diff");
    assert!(patch.contains("\nSubject: [PATCH] name people\n"), "{patch}");
    let mail = format!(
        "From: Jane <jane@example.org>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: Name people\nOrigin: vendor\n\
         Forwarded: not-needed\n\nWhy.\n---\n{}",
        first()
    );
    let (patch, _) = imported_patch(&mail, "x.patch");
    assert!(
        patch.contains("\nOrigin: vendor\n") && patch.contains("\nUpstream-Status: Inappropriate "),
        "{patch}"
    );
}

/// The official patches of bash.
#[test]
fn a_subject_that_all_have_is_replaced_by_the_file_s_name() {
    let project = started();
    let folder = project.beside("bash");
    let header = "\t\t\t     BASH PATCH REPORT\n\t\t\t     =================\n\nBash-Release:\t5.2\n\n";
    files::write(&folder.join("bash52-001.patch"), format!("{header}{}", first()));
    files::write(&folder.join("bash52-002.patch"), format!("{header}{}", second()));
    import(&project, &folder, &[]).success();
    let names = files::list(&project.path("patches/my"));
    assert_eq!(names, ["0001-bash52-001.patch", "0002-bash52-002.patch"]);
    let patch = project.read("patches/my/0001-bash52-001.patch");
    assert!(patch.contains("\nSubject: [PATCH] bash52 001\n\nBASH PATCH REPORT\n"), "{patch}");
}

#[test]
fn a_context_diff_is_named_as_one() {
    let project = started();
    let path = project.beside("old.patch");
    let text = "*** a/src/name.c\n--- b/src/name.c\n***************\n*** 4,4 ****\n!     return \"world\";\n--- 4,4 ----\n\
                !     return \"people\";\n";
    files::write(&path, text);
    import(&project, &path, &[]).code(4).says(&["it is a context diff", "filterdiff --format=unified"]);
}

/// The status values that Yocto defines are always valid.
#[test]
fn the_status_of_a_yocto_patch_passes_lint() {
    for status in
        ["Submitted [https://example.org/1]", "Backport [https://example.org/2]", "Inactive-Upstream [2015]"]
    {
        let project = started();
        let path = project.beside("x.patch");
        let text =
            format!("name: people\n\nUpstream-Status: {status}\n\nSigned-off-by: A <a@b>\n{}", first());
        files::write(&path, text);
        import(&project, &path, &[]).success();
        let lint = project.run(&["--json", "lint"]).code(1).json();
        let findings = lint["findings"].as_array().unwrap();
        assert!(
            findings.iter().all(|finding| !finding.to_string().contains("Upstream-Status")),
            "{findings:#?}"
        );
        assert!(findings.iter().all(|finding| finding["rule"] == "trailer-placeholder"), "{findings:#?}");
    }
}

/// Imports the files of a patch queue from `patches` beside the project; returns the report and the names of the
/// patches.
fn imported(queue: &[(&str, &str)]) -> (serde_json::Value, Vec<String>, Project) {
    let project = started();
    for (name, text) in queue {
        files::write(&project.beside("queue").join(name), text);
    }
    let json = import(&project, &project.beside("queue"), &["--json"]).success().json();
    let names = files::list(&project.path("patches/my"));
    (json, names, project)
}

#[test]
fn numbers_in_names_are_the_order() {
    let third = change(["a/", "b/"], "folk", "crowd");
    let queue = [("1.patch", first()), ("2.patch", second()), ("10.patch", third)];
    let queue = queue.each_ref().map(|(name, text)| (*name, text.as_str()));
    let (json, names, _) = imported(&queue);
    assert_eq!(names.len(), 3, "{json}");
    assert!(json.to_string().contains("so that 2 comes before 10"), "{json}");
}

#[test]
fn a_diff_without_its_final_line_feed_is_read() {
    let text = first();
    let (json, names, _) = imported(&[("fix.diff", text.trim_end_matches('\n'))]);
    assert_eq!(names, ["0001-fix.patch"], "{json}");
    assert!(json.to_string().contains("fix.diff: its last line had no line feed, which was added"), "{json}");
}

#[test]
fn an_order_file_may_begin_with_a_byte_order_mark() {
    let (first, second) = (first(), second());
    let (json, names, _) =
        imported(&[("series", "\u{feff}z.diff\na.diff\n"), ("z.diff", &first), ("a.diff", &second)]);
    assert_eq!(names, ["0001-z.patch", "0002-a.patch"], "{json}");
}

/// Mercurial can be configured to write a plain header above the patches of a queue.
#[test]
fn the_plain_header_of_mercurial_has_a_date() {
    let text = format!("From: Joe <j@example.org>\nDate: 1700000000 -7200\n\nFix the name\n\n{}", first());
    let (_, names, project) = imported(&[("fix.patch", &text)]);
    assert_eq!(names, ["0001-fix-the-name.patch"]);
    let patch = project.read("patches/my/0001-fix-the-name.patch");
    assert!(patch.contains("Date: Wed, 15 Nov 2023 00:13:20 +0200"), "{patch}");
}

/// A duplicate is skipped, so it does not make the subject of the other patch ambiguous.
#[test]
fn a_copy_of_a_patch_does_not_change_its_subject() {
    let text = format!("Say people\n\n{}", first());
    let (json, names, _) = imported(&[("one-thing.patch", &text), ("other-thing.patch", &text)]);
    assert_eq!(names, ["0001-say-people.patch"], "{json}");
    assert_eq!(json["dropped"][0]["why"], "the pin, or a patch before it, has it already", "{json}");
}
