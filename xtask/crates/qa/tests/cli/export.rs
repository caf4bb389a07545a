//! `export`: byte-stable, numbered by order, and an error that names a commit that cannot become a patch.

use super::support::editing::{
    FailingEdit, Series, assert_settled, edit, names, rebase, series, take_rich_series,
};
use super::support::git::{self, commit};
use super::support::{Project, files};

/// Returns the texts alone, which an untouched patch must keep under any number.
fn texts(series: &Series) -> Vec<&[u8]> {
    let mut texts: Vec<&[u8]> = series.values().map(Vec::as_slice).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn without_a_change_there_is_no_difference() {
    for rich in [false, true] {
        let project = Project::new();
        if rich {
            take_rich_series(&project);
        }
        let before = files::times(&project.path("patches"));
        let texts = series(&project);
        edit(&project);
        let output = project.run(&["export"]).success();
        assert!(output.stdout.contains("nothing changed"), "{output}");
        assert_eq!(files::times(&project.path("patches")), before);
        assert_eq!(series(&project), texts);
        assert_settled(&project);
    }
}

/// An overlay file is in no commit: the export names it, and the lock follows it.
#[test]
fn a_changed_overlay_file_is_named() {
    const NOTE: &str = "overlay/extra/espalier/note.txt";
    let project = Project::new();
    project.run(&["lock"]).success();
    edit(&project);
    project.write(NOTE, "changed\n");
    let lock = project.read("espalier.lock");
    insta::assert_snapshot!(project.run(&["export", "--dry-run"]), @"
    exit: 0
    -- stdout --
    patches/paged: 3 patches, nothing changed
      overlay  overlay/extra/espalier/note.txt: in no patch; espalier.lock would follow
    -- stderr --
    ");
    assert_eq!(project.read("espalier.lock"), lock);
    let report = project.run(&["--json", "export"]).success().json();
    assert_eq!(report["overlays"], serde_json::json!([NOTE]));
    assert_settled(&project);
    assert!(!project.run(&["export"]).success().stdout.contains("overlay"));
}

#[test]
fn an_amended_commit_changes_its_patch_alone() {
    let project = Project::new();
    let before = series(&project);
    let folder = edit(&project);
    rebase(&folder, "2s/^pick/edit/");
    files::edit(&folder.join("src/count.c"), "words, not letters", "words");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    git::git(&folder, &["rebase", "--continue"]);
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 3 patches; changed:
      changed  0002-say-what-is-counted.patch
    -- stderr --
         Locking paged in espalier.lock: tree db1ed6e846c3bb578b045f6e7d1ea4cd987a8986
    ");
    let after = series(&project);
    assert_eq!(files::differences(&before, &after), ["0002-say-what-is-counted.patch"]);
    assert_settled(&project);
}

#[test]
fn patches_after_an_amended_commit_change_only_their_ids() {
    let project = Project::new();
    let folder = edit(&project);
    rebase(&folder, "1s/^pick/edit/");
    files::edit(&folder.join("src/greet.c"), "// What is said first.", "// What is said first, and kindly.");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    git::git(&folder, &["rebase", "--continue"]);
    let json = project.run(&["--json", "export"]).success().json();
    let kept: Vec<bool> =
        json["patches"].as_array().unwrap().iter().map(|patch| patch["kept"].as_bool().unwrap()).collect();
    assert_eq!(kept, [false, true, false]);
    assert_settled(&project);
}

#[test]
fn reordered_commits_only_change_their_numbers() {
    let project = Project::new();
    let before = series(&project);
    rebase(&edit(&project), "1h;1d;2G");
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 3 patches; changed:
      moved    0002-say-what-is-counted.patch -> 0001-say-what-is-counted.patch
      moved    0001-greet-more-warmly.patch -> 0002-greet-more-warmly.patch
    -- stderr --
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    ");
    assert_eq!(texts(&series(&project)), texts(&before));
    assert_settled(&project);
}

#[test]
fn a_dropped_commit_closes_the_gap() {
    let project = Project::new();
    let before = series(&project);
    rebase(&edit(&project), "2d");
    insta::assert_snapshot!(project.run(&["export", "--dry-run"]), @"
    exit: 0
    -- stdout --
    patches/paged: 2 patches; this would change:
      moved    0003-greet-dearly.patch -> 0002-greet-dearly.patch
      gone     0002-say-what-is-counted.patch
    -- stderr --
    ");
    assert_eq!(series(&project), before);
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 2 patches; changed:
      moved    0003-greet-dearly.patch -> 0002-greet-dearly.patch
      gone     0002-say-what-is-counted.patch
    -- stderr --
         Locking paged in espalier.lock: tree 9c80fe3f5e24dc9c980b2f6ff7e95937710114b0
    ");
    assert_eq!(names(&project), ["0001-greet-more-warmly.patch", "0002-greet-dearly.patch"]);
    assert_eq!(series(&project)["0002-greet-dearly.patch"], before["0003-greet-dearly.patch"]);
    assert_settled(&project);
}

#[test]
fn all_commits_dropped_leave_an_empty_series() {
    let project = Project::new();
    let folder = edit(&project);
    git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/base"]);
    project.run(&["export"]).success();
    assert_eq!(names(&project), [""; 0]);
    assert_settled(&project);
}

#[test]
fn an_inserted_commit_moves_the_rest() {
    let project = Project::new();
    let before = series(&project);
    let folder = edit(&project);
    rebase(&folder, "1s/^pick/edit/");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "add: Turn it around (v2)");
    git::git(&folder, &["rebase", "--continue"]);
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 4 patches; changed:
      new      0002-add-turn-it-around-v2.patch
      moved    0002-say-what-is-counted.patch -> 0003-say-what-is-counted.patch
      moved    0003-greet-dearly.patch -> 0004-greet-dearly.patch
    -- stderr --
         Locking paged in espalier.lock: tree d4bb56fcf79187f525c4b0cca4a979c7088bff82
    ");
    assert_eq!(series(&project)["0004-greet-dearly.patch"], before["0003-greet-dearly.patch"]);
    insta::assert_snapshot!(project.read("patches/paged/0002-add-turn-it-around-v2.patch"), @r#"
    From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
    From: Test Person <test@espalier.invalid>
    Date: Thu, 2 Jan 2020 03:04:05 +0000
    Subject: [PATCH] add: Turn it around (v2)

    ---
     src/add.c | 2 +-
     1 file changed, 1 insertion(+), 1 deletion(-)

    diff --git a/src/add.c b/src/add.c
    index e34a49e7abbc68ec69fb15e06ec17f9089958df8..f726606faf6310ac9ade27abfff0e699b8c29878 100644
    --- a/src/add.c
    +++ b/src/add.c
    @@ -1,5 +1,5 @@
     #include "words.h"
     
     int words_add(int left, int right) {
    -    return left + right;
    +    return right + left;
     }
    "#);
    assert_settled(&project);
}

#[test]
fn a_split_commit_becomes_two_patches() {
    let project = Project::new();
    project.take_patch(|fork| {
        files::edit(&fork.join("src/add.c"), "left + right", "right + left");
        files::edit(&fork.join("src/ring.c"), "at % size", "size % at");
    });
    let folder = edit(&project);
    git::git(&folder, &["reset", "--quiet", "HEAD~1"]);
    git::git(&folder, &["commit", "--quiet", "--message", "Change something", "src/add.c"]);
    commit(&folder, "Ring otherwise");
    project.run(&["export"]).success();
    assert_eq!(names(&project), ["0001-change-something.patch", "0002-ring-otherwise.patch"]);
    assert_settled(&project);
}

#[test]
fn reworded_with_another_subject_it_gets_another_name() {
    let project = Project::new();
    let folder = edit(&project);
    git::git(&folder, &["commit", "--quiet", "--amend", "--message", "Greet very dearly"]);
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 3 patches; changed:
      changed  0003-greet-dearly.patch -> 0003-greet-very-dearly.patch
    -- stderr --
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    ");
    assert_settled(&project);
}

/// Every refusal because of the repository's state: nothing is written.
#[test]
fn an_unfinished_edit_is_refused() {
    let cases: [FailingEdit; 7] = [
        ("has changes that are in no commit", |folder| files::edit(&folder.join("src/add.c"), "left + ", "")),
        ("src/new.c", |folder| files::write(&folder.join("src/new.c"), "int new;\n")),
        ("a rebase is in progress", |folder| rebase(folder, "1s/^pick/edit/")),
        ("has no branch checked out", |folder| drop(git::git(folder, &["checkout", "--quiet", "--detach"]))),
        ("has mine checked out", |folder| drop(git::git(folder, &["checkout", "--quiet", "-b", "mine"]))),
        ("has lost the refs", |folder| {
            git::git(folder, &["update-ref", "-d", "refs/espalier/edit/base"]);
        }),
        ("is no longer below", |folder| {
            git::git(folder, &["checkout", "--quiet", "--orphan", "new"]);
            commit(folder, "Everything at once");
            git::git(folder, &["branch", "--force", "edit/paged"]);
            git::git(folder, &["checkout", "--quiet", "edit/paged"]);
        }),
    ];
    for (says, work) in cases {
        let project = Project::new();
        let folder = edit(&project);
        work(&folder);
        let before = files::times(&project.path("patches"));
        project.run(&["export"]).code(4).says(&[says, "next: "]);
        assert_eq!(files::times(&project.path("patches")), before, "{says}");
    }
}

#[test]
fn uncommitted_work_is_named() {
    let project = Project::new();
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/paged` has changes that are in no commit
      src/add.c
      next: commit them: git -C target/espalier/edit/paged add --all && git -C target/espalier/edit/paged commit
      next: or put them aside: git -C target/espalier/edit/paged stash --include-untracked
    ");
}

/// Every refusal because of one commit, which the error names.
#[test]
fn commits_that_no_patch_can_say_are_refused() {
    let cases: [FailingEdit; 6] = [
        ("is a merge", |folder| {
            git::git(folder, &["checkout", "--quiet", "-b", "side", "HEAD~1"]);
            files::write(&folder.join("src/side.c"), "int side;\n");
            commit(folder, "Go aside");
            git::git(folder, &["checkout", "--quiet", "edit/paged"]);
            git::git(folder, &["merge", "--quiet", "--no-ff", "--message", "Bad one", "side"]);
        }),
        ("is empty", |folder| drop(git::git(folder, &["commit", "--allow-empty", "--message", "Bad one"]))),
        ("cannot be a patch", |folder| {
            std::os::unix::fs::symlink("add.c", folder.join("src/link.c")).unwrap();
            commit(folder, "Bad one");
        }),
        ("touches `espalier/note.txt`", |folder| {
            // The overlay's own link is there, and git ignores it: only `--force` adds the path to a commit.
            std::fs::remove_file(folder.join("espalier/note.txt")).unwrap();
            files::write(&folder.join("espalier/note.txt"), "mine\n");
            git::git(folder, &["add", "--force", "espalier/note.txt"]);
            commit(folder, "Bad one");
        }),
        ("does not survive in a patch", |folder| {
            files::write(&folder.join("src/x.c"), "int x;\n");
            commit(folder, "Bad one\n\nbefore\n---\nafter");
        }),
        ("cannot be a patch", |folder| {
            files::write(&folder.join("src/x.c"), "int x;\n");
            commit(folder, "Bad one\n\n@@ -1 +1 @@");
        }),
    ];
    for (says, work) in cases {
        let project = Project::new();
        let folder = edit(&project);
        work(&folder);
        let before = files::times(&project.path("patches"));
        project.run(&["export"]).code(4).says(&[says, "(Bad one)", "next: "]);
        assert_eq!(files::times(&project.path("patches")), before, "{says}");
    }
}

#[test]
fn without_an_edit_repository() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no `target/espalier/edit/paged` to export from
      next: cargo xtask edit paged    # makes it
    ");
}

#[test]
fn a_lock_that_may_not_change_stops_it_before_anything_is_written() {
    let project = Project::new();
    project.run(&["lock"]).success();
    rebase(&edit(&project), "2d");
    let before = series(&project);
    project.run(&["--locked", "export"]).code(1).says(&["`espalier.lock` is stale"]);
    assert_eq!(series(&project), before);
}

const HOSTILE: &str = "[diff]\n\tnoprefix = true\n\talgorithm = patience\n\tcontext = 9\n\texternal = false\n\
    \tinterHunkContext = 9\n\trenames = false\n\tmnemonicPrefix = true\n\tsuppressBlankEmpty = true\n\
    [diff \"x\"]\n\txfuncname = \"^.*$\"\n\
    [format]\n\tsignature = me\n\tattach = true\n\tnumbered = true\n\tcoverLetter = true\n\tsignOff = true\n\
    \tsubjectPrefix = X\n\theaders = \"X-A: b\\n\"\n\tfrom = Other <o@x>\n\tnotes = true\n\tthread = true\n\
    \tuseAutoBase = true\n\tsuffix = .txt\n\toutputDirectory = /nowhere\n\tencodeEmailHeaders = false\n\
    [core]\n\tautocrlf = true\n\teol = crlf\n\tquotePath = false\n\thooksPath = /nowhere\n\tsafecrlf = true\n\
    [commit]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n[i18n]\n\tlogOutputEncoding = latin1\n\
    [status]\n\tshowUntrackedFiles = no\n[user]\n\tname = Other\n\temail = other@example.invalid\n";

/// The user's configuration, the repository's own, attributes and the environment: none of them may change a byte of
/// the written patches.
#[test]
fn no_configuration_changes_the_text() {
    let exported = |hostile: bool| {
        let project = Project::new();
        take_rich_series(&project);
        if hostile {
            files::write(&project.beside("home/.gitconfig"), HOSTILE);
            files::write(&project.beside("home/.config/git/attributes"), "* diff=x\n*.c binary\n");
        }
        let folder = edit(&project);
        rebase(&folder, "1s/^pick/edit/");
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // ö\n\n");
        git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--no-edit", "--author=Jörg <j@x>"]);
        git::git(&folder, &["rebase", "--continue"]);
        if hostile {
            let config = std::fs::read_to_string(folder.join(".git/config")).unwrap();
            files::write(&folder.join(".git/config"), format!("{config}{HOSTILE}"));
            files::write(&folder.join(".git/info/attributes"), "* -text diff=x\n");
            git::git(&folder, &["-c", "diff.external=", "notes", "add", "--message", "a note", "HEAD"]);
        }
        let mut command = project.command(&["export"]);
        if hostile {
            command.env("GIT_EXTERNAL_DIFF", "false").env("GIT_DIFF_OPTS", "--unified=0");
            command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "diff.noprefix");
            command.env("GIT_CONFIG_VALUE_0", "true").env("GIT_DIR", "/nowhere").env("LANG", "de_DE.UTF-8");
        }
        project.finish(command).success();
        series(&project)
    };
    let (plain, hostile) = (exported(false), exported(true));
    assert_eq!(files::differences(&plain, &hostile), [""; 0]);
    let first = String::from_utf8(plain["0001-treble.patch"].clone()).unwrap();
    assert!(first.contains("src/count.c") && first.contains("From: =?UTF-8?q?J=C3=B6rg?= <j@x>"), "{first}");
}

/// Stages a decided change: the third patch is removed.
fn decide(project: &Project) {
    let lock = project.run(&["--json", "lock"]).success().json();
    let patches = lock["lock"]["variants"]["paged"]["patches"].as_array().unwrap().clone();
    let file = |(at, patch): (usize, &serde_json::Value)| {
        let new = if at < 2 { patch["sha256"].clone() } else { serde_json::Value::Null };
        serde_json::json!({ "path": patch["file"], "old": patch["sha256"], "new": new })
    };
    let pending = serde_json::json!({
        "what": "the export of paged",
        "files": patches.iter().enumerate().map(file).collect::<Vec<_>>(),
        "refs": [],
        "remove_folders": [],
        "exact_folders": ["patches/paged"],
    });
    project.write("target/espalier/pending/pending.json", pending.to_string());
}

#[test]
fn the_next_command_completes_a_killed_export() {
    let next = [
        &["apply", "--check"][..],
        &["edit", "--dry-run"],
        &["lock"],
        &["lint", "--fix"],
        &["lint"],
        &["apply", "--dry-run"],
        &["test", "--list"],
    ];
    for next in next {
        let project = Project::new();
        decide(&project);
        project.run(next).says(&["Finishing the export of paged, which was interrupted"]);
        assert_eq!(names(&project), ["0001-greet-more-warmly.patch", "0002-say-what-is-counted.patch"]);
        assert!(!project.path("target/espalier/pending").exists(), "{next:?}");
    }
}

#[test]
fn unless_a_person_changed_a_patch_since() {
    let project = Project::new();
    decide(&project);
    project.edit("patches/paged/0001-greet-more-warmly.patch", "Greet more", "Greet much more");
    let before = series(&project);
    insta::assert_snapshot!(project.run(&["apply"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the export of paged was interrupted, and files of it were changed since
      patches/paged/0001-greet-more-warmly.patch
      it has to be finished first, and would overwrite them
      next: keep yours: mv patches/paged/0001-greet-more-warmly.patch patches/paged/0001-greet-more-warmly.patch.mine && git checkout patches/paged/0001-greet-more-warmly.patch    # then run any command
      next: or forget the unfinished change: rm -rf target/espalier/pending    # then look at `git status`
    ");
    assert_eq!(series(&project), before);
}
