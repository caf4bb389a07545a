//! `import PATCHES`: a folder, an mbox, a quilt series or a diff, as other tools write them.

use std::path::{Path, PathBuf};

use super::support::importing::{applied_by_git, empty_project, started};
use super::support::upstream::{TAG, Upstream};
use super::support::{Output, Project, files, git};

fn import(project: &Project, path: &Path, more: &[&str]) -> Output {
    project.run(&[&["import", path.to_str().unwrap()], more].concat())
}

fn fork_tree() -> String {
    git::tree_of(&Upstream::shared().fork(), "HEAD")
}

/// Writes the fork's commits with `git format-patch` and its default options.
fn formatted(project: &Project, more: &[&str]) -> PathBuf {
    let folder = project.beside("formatted");
    let target = folder.to_str().unwrap().to_string();
    let arguments = [&["format-patch", "--quiet", "--output-directory", &target], more, &[TAG]].concat();
    git::git(&Upstream::shared().fork(), &arguments);
    folder
}

#[track_caller]
fn assert_is_the_fork(project: &Project, output: &Output) {
    assert_eq!(output.json()["tree"], fork_tree().as_str(), "{output}");
    assert_eq!(applied_by_git(project, &Upstream::shared().repository(), TAG, "my"), fork_tree());
    for command in [&["lock", "--check"][..], &["apply", "--check"], &["edit"], &["export"]] {
        project.run(command).success();
    }
}

#[test]
fn a_folder_as_git_writes_it_by_default() {
    let project = started();
    let folder = formatted(&project, &["--cover-letter"]);
    files::write(&folder.join("notes.txt"), "mine\n");
    let output = import(&project, &folder, &["--json"]).success();
    assert_is_the_fork(&project, &output);
    let names = files::list(&project.path("patches/my"));
    assert_eq!(
        names,
        ["0001-greet-more-warmly.patch", "0002-say-what-is-counted.patch", "0003-greet-dearly.patch"]
    );
    let dropped = output.json()["dropped"].to_string();
    assert!(dropped.contains("0000-cover-letter.patch") && dropped.contains("it has no diff"), "{dropped}");
    assert!(dropped.contains("notes.txt"), "{dropped}");
    let notes = output.json()["patches"]
        .as_array()
        .unwrap()
        .iter()
        .all(|patch| patch["notes"] == serde_json::json!([]));
    assert!(notes, "{output}");
}

#[test]
fn an_mbox() {
    let project = started();
    let folder = formatted(&project, &[]);
    let texts: Vec<Vec<u8>> =
        files::list(&folder).iter().map(|name| std::fs::read(folder.join(name)).unwrap()).collect();
    let mbox = project.beside("series.mbox");
    files::write(&mbox, texts.concat());
    let output = import(&project, &mbox, &["--json"]).success();
    assert_is_the_fork(&project, &output);
    assert_eq!(output.json()["patches"][1]["from"], "series.mbox #2");
}

/// `git diff` of the whole fork, and the same as `diff -u` would write it: no ids, no author, no date.
#[test]
fn one_diff_with_and_without_ids() {
    let with_ids = git::git(&Upstream::shared().fork(), &["diff", TAG]);
    let without: String = with_ids
        .lines()
        .filter(|line| !line.starts_with("diff --git ") && !line.starts_with("index "))
        .map(|line| format!("{line}\n"))
        .collect();
    for text in [with_ids + "\n", without] {
        let project = started();
        let path = project.beside("01-greet-all.diff");
        files::write(&path, &text);
        import(&project, &path, &[]).code(2).says(&["name no author", "--author 'Name <you@example.org>'"]);
        let author = ["--author", "Jane Doe <jane@example.org>", "--json"];
        let output = import(&project, &path, &author).success();
        assert_is_the_fork(&project, &output);
        let patch = project.read("patches/my/0001-greet-all.patch");
        assert!(patch.contains("\nFrom: Jane Doe <jane@example.org>\n"), "{patch}");
        assert!(patch.contains("\nSubject: [PATCH] greet all\n"), "{patch}");
    }
}

/// A series with DEP-3 fields, other strip levels, a reversed patch, a comment, and one hunk that applies only with
/// less context.
fn quilt(project: &Project) -> PathBuf {
    let folder = project.beside("patches of quilt");
    let write = |name: &str, text: &str| files::write(&folder.join(name), text);
    write(
        "series",
        "# ours\n01-greet.diff\n02-count.diff -p0   # another level\nback.diff -R\n04-name.diff\n",
    );
    write(
        "01-greet.diff",
        "Description: greet: more warmly\n It is cold.\n .\n Very.\nAuthor: Jane Doe <jane@example.org>\n\
         Forwarded: https://example.org/pull/7\nBug-Debian: https://bugs.example.org/1\nLast-Update: 2024-05-01\n\n\
         --- a/src/greet.c\n+++ b/src/greet.c\n@@ -3,5 +3,5 @@\n // What is said first, with other words.\n \
         const char * words_greeting(int kind) {\n     if (kind == 0) {\n-        return \"hello\";\n\
         +        return \"hello there\";\n     }\n",
    );
    write(
        "02-count.diff",
        "Say what is counted\n\nIndex: src/count.c\n===================================================================\n\
         --- src/count.c.orig\n+++ src/count.c\n@@ -1,5 +1,5 @@\n #include \"words.h\"\n \n int words_count(const char \
         * text) {\n-    int count = 0;\n+    int count = 0; // words\n     int inside = 0;\n",
    );
    write(
        "back.diff",
        "From: John Doe <john@example.org>\nSubject: [PATCH] upper: keep the letter\nDate: Thu, 1 Jan 2026 00:00:00 \
         +0100\n\nAs it was.\n\nApplied-Upstream: 2.0, commit:0123456789abcdef\n---\n--- a/src/add.c\n+++ b/src/add.c\n\
         @@ -1,5 +1,5 @@\n #include \"words.h\"\n \n int words_add(int left, int right) {\n-    return right + left;\n\
         +    return left + right;\n }\n",
    );
    write(
        "04-name.diff",
        "--- a/src/name.c\n+++ b/src/name.c\n@@ -13,5 +13,5 @@\n #include \"words.h\"\n \n const char * \
         words_name(void) {\n-    return \"world\";\n+    return \"people\";\n }\n",
    );
    folder
}

#[test]
fn a_quilt_series() {
    let project = started();
    let folder = quilt(&project);
    let output = import(&project, &folder, &["--json", "--author", "Me <me@example.org>"]).success();
    let json = output.json();
    let patches = json["patches"].as_array().unwrap();
    assert_eq!(patches.len(), 4, "{output}");

    let greet = project.read("patches/my/0001-greet-more-warmly.patch");
    for line in [
        "From: Jane Doe <jane@example.org>",
        "Date: Wed, 1 May 2024 00:00:00 +0000",
        "Subject: [PATCH] greet: more warmly",
        "It is cold.",
        "Bug-Debian: https://bugs.example.org/1",
        "Upstream-Status: Submitted https://example.org/pull/7",
        "Drop-when: TODO",
    ] {
        assert!(greet.lines().any(|found| found == line), "{line}\n{greet}");
    }
    let fuzz = patches[0]["notes"].to_string();
    assert!(fuzz.contains("src/greet.c: Context reduced to"), "{fuzz}");

    let back = project.read("patches/my/0003-upper-keep-the-letter.patch");
    assert!(back.contains("\n+    return right + left;\n"), "{back}");
    assert!(back.contains("\nUpstream-Status: Backport 0123456789abcdef\n"), "{back}");

    let moved = patches[3]["notes"].to_string();
    assert!(moved.contains("src/name.c: Hunk #1 succeeded at 1 (offset -12 lines)"), "{moved}");
    assert!(moved.contains("using Me <me@example.org>"), "{moved}");
    assert!(project.path("patches/my/0004-name.patch").exists());

    for command in [&["lock", "--check"][..], &["apply"], &["edit"], &["export"]] {
        project.run(command).success();
    }
    assert!(project.read("target/espalier/trees/my/src/count.c").contains("int count = 0; // words"));
}

#[test]
fn a_quilt_series_that_forbids_fuzz() {
    let project = started();
    let folder = quilt(&project);
    files::write(&folder.join("series"), "01-greet.diff -F0\n");
    import(&project, &folder, &[])
        .code(4)
        .says(&["1 of 1 patches do not apply", "01-greet.diff: patch failed: src/greet.c:3"]);
    assert!(files::list(&project.path("patches")).is_empty());
    files::write(&folder.join("hello.spec"), "Patch1: 01-greet.diff\n%patch -P 1 -p1 -F0\n");
    import(&project, &folder.join("hello.spec"), &[]).code(4).says(&["01-greet.diff: patch failed: "]);
    files::write(&folder.join("series"), "01-greet.diff\n");
    import(&project, &folder, &[]).success();
}

#[test]
fn a_quilt_series_that_leaves_its_folder() {
    let project = started();
    let folder = quilt(&project);
    files::write(&folder.join("series"), "../secret\n/etc/passwd\nx -q\n");
    import(&project, &folder, &[]).code(2).says(&[
        "series:1: `../secret`",
        "series:2: `/etc/passwd`",
        "series:3: `-q`",
    ]);
    files::write(&folder.join("series"), "link.diff\n");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("link.diff")).unwrap();
    import(&project, &folder, &[]).code(2).says(&["is not a plain file"]);
}

/// All patches are tried, and nothing is written.
#[test]
fn diffs_that_do_not_apply_are_reported_together() {
    let project = started();
    let folder = formatted(&project, &[]);
    files::edit(
        &folder.join("0001-Greet-more-warmly.patch"),
        "-        return \"hello\";",
        "-        return \"bye\";",
    );
    files::write(&folder.join("0004-more.patch"), "--- a/none.c\n+++ b/none.c\n@@ -1 +1 @@\n-a\n+b\n");
    let output = import(&project, &folder, &["--author", "A <a@b>"]).code(4);
    output.says(&[
        "3 of 4 patches do not apply; nothing was written",
        "0001-Greet-more-warmly.patch: ",
        "0003-Greet-dearly.patch: ",
        "0004-more.patch: none.c: ",
        "the later ones may only need 0001-Greet-more-warmly.patch",
    ]);
    assert!(files::list(&project.path("patches")).is_empty());
}

#[test]
fn changes_that_upstream_has_are_dropped_by_name() {
    let project = started();
    let folder = formatted(&project, &[]);
    let second = std::fs::read(folder.join("0002-Say-what-is-counted.patch")).unwrap();
    files::write(&folder.join("0004-again.patch"), second);
    let json = import(&project, &folder, &["--json"]).success().json();
    assert_eq!(json["dropped"][0]["what"], "0004-again.patch");
    assert_eq!(json["dropped"][0]["why"], "the pin, or a patch before it, has it already");
}

#[test]
fn a_variant_with_patches_is_added_to_only_when_asked() {
    let project = started();
    let folder = formatted(&project, &[]);
    import(&project, &folder, &[]).success();
    let more = project.beside("more.diff");
    files::write(
        &more,
        "Name people\n--- a/src/name.c\n+++ b/src/name.c\n@@ -3,3 +3,3 @@\n const char * words_name(void) {\n-    \
         return \"world\";\n+    return \"people\";\n }\n",
    );
    let author = ["--author", "A <a@example.org>"];
    import(&project, &more, &author)
        .code(2)
        .says(&["my has 3 patches already; nothing was written", "--append"]);
    import(&project, &more, &[&author[..], &["--append"]].concat()).success();
    assert_eq!(files::list(&project.path("patches/my"))[3], "0004-name-people.patch");
    for command in [&["lock", "--check"][..], &["apply", "--check"]] {
        project.run(command).success();
    }
}

#[test]
fn patches_without_a_pin_are_refused() {
    let project = empty_project();
    let folder = formatted(&project, &[]);
    import(&project, &folder, &[]).code(2).says(&["there is no `pins.toml`", "cargo xtask init"]);
    let project = started();
    import(&project, &project.beside("nowhere"), &[]).code(2).says(&["there is no `[BESIDE]/nowhere`"]);
}

/// A common first attempt: files copied into the patch folder. The hint, followed literally, imports them.
#[test]
fn patches_dropped_into_the_folder_have_a_way_in() {
    let project = started();
    let folder = formatted(&project, &[]);
    for name in files::list(&folder) {
        std::fs::copy(folder.join(&name), project.path("patches/my").join(&name)).unwrap();
    }
    project.run(&["edit"]).code(2).says(&["next: cargo xtask lint"]);
    let lint = project.run(&["--json", "lint"]).code(1).json();
    let hint = lint["findings"][0]["hint"].as_str().unwrap().to_string();
    let (_, commands) = hint.split_once(": ").unwrap();
    let xtask = format!("{} --root {}", env!("CARGO_BIN_EXE_espalier-qa"), project.root().display());
    let script = commands.replace("cargo xtask", &xtask);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-euc", &script]).current_dir(project.root()).env("HOME", project.beside("home"));
    project.finish(shell).success();
    assert_eq!(applied_by_git(&project, &Upstream::shared().repository(), TAG, "my"), fork_tree());
    let lint = project.run(&["--json", "lint"]).code(1).json();
    let findings = lint["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["rule"] == "trailer-placeholder"), "{findings:#?}");
}

/// A fork with line endings, a binary file, a rename, a mode, a deletion, a missing final newline, and non-ASCII names
/// and author.
fn odd_fork(project: &Project) -> PathBuf {
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    files::edit(&fork.join("docs/windows.txt"), "two", "TWO");
    git::commit(&fork, "Edit line ends of Windows");
    files::write(&fork.join("data/logo.bin"), [0u8, 1, 255, 254, 10, 13]);
    git::commit(&fork, "Draw another logo");
    git::git(&fork, &["mv", "docs/old/story.txt", "docs/story.txt"]);
    files::edit(&fork.join("docs/story.txt"), "line 7 ", "the seventh line ");
    git::git(&fork, &["mv", "src/add.c", "src/sum.c"]);
    git::commit(&fork, "Move a story and a sum");
    git::git(&fork, &["update-index", "--chmod=+x", "src/ring.c"]);
    git::git(&fork, &["commit", "--quiet", "--message", "Make a program of it"]);
    git::git(&fork, &["rm", "--quiet", "src/upper.c"]);
    git::commit(&fork, "Take a file away");
    files::write(&fork.join("docs/no-final-newline.txt"), "one\ntwo\nthree and four");
    files::write(&fork.join("a folder/ü.txt"), "ü\n");
    files::write(&fork.join("empty.c"), "");
    git::git(&fork, &["add", "--all"]);
    git::git(
        &fork,
        &["commit", "--quiet", "--author=Jörg Ö. <j@example.org>", "--message", "Sag ü, und nichts"],
    );
    fork
}

#[test]
fn odd_content_comes_the_same_way_from_a_fork_and_from_patches() {
    let (project, other) = (started(), started());
    let fork = odd_fork(&project);
    let from = fork.to_str().unwrap();
    let forked = project.run(&["import", "--from", from, "v1.0..HEAD", "--json"]).success().json();
    assert_eq!(forked["tree"], git::tree_of(&fork, "HEAD").as_str());
    let folder = project.beside("odd patches");
    git::git(&fork, &["format-patch", "--quiet", "--output-directory", folder.to_str().unwrap(), TAG]);
    let imported = import(&other, &folder, &["--json"]).success().json();
    assert_eq!(imported["tree"], forked["tree"]);
    let without_note = |patch: &serde_json::Value| patch["notes"] == serde_json::json!([]);
    assert!(imported["patches"].as_array().unwrap().iter().all(without_note), "{imported}");
    let texts = |project: &Project| {
        let folder = project.path("patches/my");
        let text = |name: String| (name.clone(), std::fs::read(folder.join(name)).unwrap());
        files::list(&folder).into_iter().map(text).collect::<Vec<_>>()
    };
    assert!(texts(&project) == texts(&other));
}
