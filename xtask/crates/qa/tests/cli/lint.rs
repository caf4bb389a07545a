//! `lint`: every finding with its place and its hint, and the automatic fixes.

use super::support::editing::{names, series};
use super::support::{Project, files, git};

const TRAILERS: &str = "\n\nUpstream-Status: Pending\nDrop-when: upstream has it\nVerified-by: cargo test\n\
                        Numerics: identical";

/// Creates a project whose series follows every rule.
fn clean() -> Project {
    let project = Project::new();
    let fork = project.fork();
    git::git(&fork, &["reset", "--quiet", "--hard", "v1.0"]);
    for (name, subject) in [("add", "Add a note"), ("ring", "Ring a note"), ("name", "Name a note")] {
        files::edit(&fork.join(format!("src/{name}.c")), "words.h\"\n", "words.h\"\n// note\n");
        git::commit(&fork, &format!("{subject}{TRAILERS}"));
    }
    project.take_series(&fork);
    std::fs::remove_dir_all(fork).unwrap();
    project
}

fn rename(project: &Project, from: &str, to: &str) {
    let path = |name: &str| project.path("patches/paged").join(name);
    std::fs::rename(path(from), path(to)).unwrap();
}

/// Creates a series that breaks many rules at once.
fn broken() -> Project {
    let project = clean();
    rename(&project, "0002-ring-a-note.patch", "0004-sing-a-note.patch");
    project.edit("patches/paged/0001-add-a-note.patch", "Drop-when: upstream has it\n", "");
    project.edit("patches/paged/0003-name-a-note.patch", "Name a note", "Add a note");
    let text = project.read("patches/paged/0001-add-a-note.patch");
    let other = text.replace("src/add.c", "docs/add.md").replace("Pending", "Soon");
    project.write("patches/paged/0005-add-a-note.patch", other);
    let other = text.replace("src/add.c", "espalier/note.txt").replace("Add a note", &"x".repeat(80));
    project.write("patches/paged/0005-xxx.patch", other);
    project.write("patches/paged/0006-what.patch", "no patch\n");
    project
}

#[test]
fn a_clean_series() {
    insta::assert_snapshot!(clean().run(&["lint"]), @"
    exit: 0
    -- stdout --
    3 patches, no findings
    -- stderr --
    ");
}

#[test]
fn every_finding_has_a_place_and_a_hint() {
    insta::assert_snapshot!(broken().run(&["lint"]), @"
    exit: 1
    -- stdout --
    patches/paged/0001-add-a-note.patch:1: the trailer `Drop-when:` is missing [trailer-missing]
      next: add `Drop-when: ...` to the trailers at the end of the message: what must be true upstream for this patch to go
    patches/paged/0003-name-a-note.patch:1: number 0003 comes after 0001 [number-gap]
      next: number the series from 0001 without gaps: cargo xtask lint --fix
    patches/paged/0003-name-a-note.patch:1: the name does not go with the subject `Add a note` [slug-unlike-subject]
      next: name it `0003-add-a-note.patch`: cargo xtask lint --fix
    patches/paged/0003-name-a-note.patch:4: patches/paged/0001-add-a-note.patch has the same subject `Add a note` [subject-twice]
      next: give each its own subject, or combine them with `cargo xtask edit` and `export`
    patches/paged/0004-sing-a-note.patch:1: the name does not go with the subject `Ring a note` [slug-unlike-subject]
      next: name it `0004-ring-a-note.patch`: cargo xtask lint --fix
    patches/paged/0005-add-a-note.patch:1: the trailer `Drop-when:` is missing [trailer-missing]
      next: add `Drop-when: ...` to the trailers at the end of the message: what must be true upstream for this patch to go
    patches/paged/0005-add-a-note.patch:4: patches/paged/0003-name-a-note.patch has the same subject `Add a note` [subject-twice]
      next: give each its own subject, or combine them with `cargo xtask edit` and `export`
    patches/paged/0005-add-a-note.patch:6: `Upstream-Status: Soon` is not allowed [trailer-value]
      next: write `Pending`, `Submitted <URL>`, `Inappropriate <why>` or `Backport <commit>`, or as Yocto does, with `[details]`
    patches/paged/0005-add-a-note.patch:13: `docs/add.md` is not a source file [not-source]
      next: take the file out of the patch with `cargo xtask edit` and `export`, or allow it in `ci/lint.toml`
    patches/paged/0005-xxx.patch:1: number 0005 is taken by 0005-add-a-note.patch [number-twice]
      next: number the series from 0001 without gaps: cargo xtask lint --fix
    patches/paged/0005-xxx.patch:1: the trailer `Drop-when:` is missing [trailer-missing]
      next: add `Drop-when: ...` to the trailers at the end of the message: what must be true upstream for this patch to go
    patches/paged/0005-xxx.patch:4: the subject has 80 characters [subject-too-long]
      next: shorten the subject to 72 characters; details go in the body
    patches/paged/0005-xxx.patch:13: `espalier/note.txt` is brought by the overlay file overlay/extra/espalier/note.txt [overlay-path]
      next: make the change in the overlay, and take the file out of the patch
    patches/paged/0006-what.patch:1: this is not the output of `git format-patch`: found no patch, expected `From <commit> Mon Sep 17 00:00:00 2001` [not-a-patch]
      next: re-import the folder: mv patches/paged patches/paged.before && mkdir patches/paged && cargo xtask import patches/paged.before --variant paged
    14 findings in 6 patches
    -- stderr --
    ");
}

#[test]
fn findings_are_data() {
    let project = broken();
    let output = project.run(&["--json", "lint"]).code(1);
    let findings = output.json()["findings"].as_array().unwrap().clone();
    assert!(findings.len() > 8);
    let of = |rule: &str| findings.iter().find(|finding| finding["rule"] == rule).unwrap().clone();
    insta::assert_snapshot!(serde_json::to_string_pretty(&of("not-source")).unwrap(), @r#"
    {
      "file": "patches/paged/0005-add-a-note.patch",
      "hint": "take the file out of the patch with `cargo xtask edit` and `export`, or allow it in `ci/lint.toml`",
      "line": 13,
      "message": "`docs/add.md` is not a source file",
      "rule": "not-source"
    }
    "#);
    let keys = ["file", "line", "rule", "message", "hint"];
    assert!(findings.iter().all(|finding| keys.iter().all(|key| !finding[key].is_null())));
    assert!(project.run(&["lint"]).code == Some(1));
}

#[test]
fn fixable_findings_are_fixed() {
    let project = clean();
    let before = series(&project);
    rename(&project, "0003-name-a-note.patch", "0007-what-a-note.patch");
    rename(&project, "0002-ring-a-note.patch", "0001-ring-a-note.patch");
    let path = project.path("patches/paged/0007-what-a-note.patch");
    let mut text = std::fs::read(&path).unwrap();
    text.extend(b"-- \n2.47");
    std::fs::write(&path, text).unwrap();
    insta::assert_snapshot!(project.run(&["lint", "--fix", "--dry-run"]), @"
    exit: 1
    -- stdout --
    would fix: patches/paged/0001-ring-a-note.patch -> 0002-ring-a-note.patch
    would fix: patches/paged/0007-what-a-note.patch -> 0003-name-a-note.patch, final newline added
    patches/paged/0001-ring-a-note.patch:1: number 0001 is taken by 0001-add-a-note.patch [number-twice]
      next: number the series from 0001 without gaps: cargo xtask lint --fix
    patches/paged/0007-what-a-note.patch:1: number 0007 comes after 0001 [number-gap]
      next: number the series from 0001 without gaps: cargo xtask lint --fix
    patches/paged/0007-what-a-note.patch:1: the name does not go with the subject `Name a note` [slug-unlike-subject]
      next: name it `0007-name-a-note.patch`: cargo xtask lint --fix
    patches/paged/0007-what-a-note.patch:25: the patch file does not end with a line feed [no-final-newline]
      next: end it: cargo xtask lint --fix
    4 findings in 3 patches
    -- stderr --
    ");
    assert_eq!(names(&project)[2], "0007-what-a-note.patch");
    insta::assert_snapshot!(project.run(&["lint", "--fix"]), @"
    exit: 0
    -- stdout --
    fixed: patches/paged/0001-ring-a-note.patch -> 0002-ring-a-note.patch
    fixed: patches/paged/0007-what-a-note.patch -> 0003-name-a-note.patch, final newline added
      next: cargo xtask lock    # records the new names
    3 patches, no findings
    -- stderr --
    ");
    assert_eq!(names(&project), before.keys().cloned().collect::<Vec<_>>());
    project.run(&["lint", "--fix"]).success();
    project.run(&["apply", "--check"]).success();
}

/// Subjects without any word that is allowed in a file name get the fallback name, and that name passes.
#[test]
fn subjects_without_ascii_words_pass() {
    for subject in ["修正する", "...", &"x".repeat(60)] {
        let project = clean();
        project.edit("patches/paged/0002-ring-a-note.patch", "Ring a note", subject);
        let fixed = project.run(&["lint", "--fix"]).success();
        assert!(fixed.stdout.contains("0002-ring-a-note.patch -> 0002-patch.patch"), "{fixed}");
        project.run(&["lint"]).success();
    }
}

#[test]
fn findings_that_need_a_person_stay() {
    let project = broken();
    project.write("patches/paged/notes.diff", "mine\n");
    let before = series(&project);
    assert!(project.run(&["lint", "--fix"]).code(1).stdout.contains("notes.diff:1: the file name"));
    assert_eq!(series(&project), before);
}

/// A file name must not become a command to the CI system that reads the log.
#[test]
fn a_name_cannot_make_a_line_of_its_own() {
    let project = clean();
    project.write("patches/paged/0004-a\n::error::b.patch", "x\n");
    let output = project.run(&["lint"]).code(1);
    assert!(!output.stdout.lines().any(|line| line.starts_with("::")), "{output}");
}

/// GitHub matches the lines with this expression; `sed` supports the same syntax.
#[test]
fn the_problem_matcher_fits_the_output() {
    let text = std::fs::read_to_string(files::of_this_repository("ci/lint-problem-matcher.json")).unwrap();
    let matcher: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pattern = &matcher["problemMatcher"][0]["pattern"][0];
    assert_eq!([&pattern["file"], &pattern["line"], &pattern["message"], &pattern["code"]], [1, 2, 3, 4]);
    let project = broken();
    let findings = project.run(&["--json", "lint"]).json()["findings"].as_array().unwrap().clone();
    let field = |finding: &serde_json::Value, key: &str| match &finding[key] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let wanted: Vec<String> = findings
        .iter()
        .map(|finding| ["file", "line", "message", "rule"].map(|key| field(finding, key)).join("|"))
        .collect();
    let output = project.beside("output.txt");
    files::write(&output, project.run(&["lint"]).stdout);
    let script = format!("s~{}~\\1|\\2|\\3|\\4~p", pattern["regexp"].as_str().unwrap());
    let seen = std::process::Command::new("sed").args(["-nE", &script]).arg(&output).output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert_eq!(seen.lines().collect::<Vec<_>>(), wanted);
}

/// Files that editors, systems and git leave beside patches are not errors; `lint` reports them.
#[test]
fn files_that_are_no_patches() {
    let project = clean();
    let strays = [
        ".0001-x.patch.swp",
        "0001-x.patch~",
        "0001-x.patch.orig",
        "x.rej",
        ".DS_Store",
        ".gitkeep",
        "series",
    ];
    for name in strays.iter().chain(&["README.md", "0002-x.patch.mine", "._0001-x.patch"]) {
        project.write(&format!("patches/paged/{name}"), "no patch\n");
    }
    for command in ["apply", "lock", "status", "edit", "export"] {
        project.run(&[command]).success();
    }
    insta::assert_snapshot!(project.run(&["lint"]), @"
    exit: 0
    -- stdout --
    3 patches, no findings
    -- stderr --
        Ignoring patches/paged/.0001-x.patch.swp, patches/paged/.DS_Store, patches/paged/._0001-x.patch, patches/paged/.gitkeep, patches/paged/0001-x.patch.orig, patches/paged/0001-x.patch~, patches/paged/0002-x.patch.mine, patches/paged/README.md, patches/paged/series, patches/paged/x.rej: not named as a patch
    ");
    assert_eq!(
        project.run(&["--json", "lint"]).json()["ignored"].as_array().unwrap().len(),
        strays.len() + 3
    );
    assert!(project.path("patches/paged/0002-x.patch.mine").exists());
}

#[test]
fn a_file_that_wants_to_be_a_patch_has_to_be_named_as_one() {
    for name in ["fix.patch", "1-fix.patch", "0004-Fix.Patch", "0004-fix.diff", "old/0001-fix.patch"] {
        let project = clean();
        project.write(&format!("patches/paged/{name}"), "no patch\n");
        project.run(&["apply"]).code(2).says(&["`patches/paged` is not a series", name]);
    }
}

/// Every command refuses patches from which `edit` and a rebase cannot make a commit.
#[test]
fn authors_and_dates_that_no_commit_can_have() {
    let cases = [
        ("Date: Thu, 2 Jan 2020 03:04:05 +0000", "Date: yesterday", "no commit can have this date"),
        ("Date: Thu, 2 Jan 2020", "Date: Thu, 2 Jan 1902", "no commit can have this date"),
        ("From: Test Person <test@espalier.invalid>", "From: nobody", "the author is not one"),
        ("Subject: [PATCH 1/3] Add a note", "Subject: [PATCH 1/3] Add\ta note", "has a tab"),
    ];
    for (from, to, why) in cases {
        let project = clean();
        let patch = "patches/paged/0001-add-a-note.patch";
        let text = project.read(patch).replace("[PATCH] ", "[PATCH 1/3] ");
        project.write(patch, text);
        project.edit(patch, from, to);
        assert!(project.run(&["lint"]).code(1).stdout.contains(why), "{to}");
        for command in ["apply", "edit", "status"] {
            project.run(&[command]).code(2).says(&[why, "0001-add-a-note.patch:"]);
        }
    }
}

#[test]
fn unreadable_files_and_files_for_git_are_not_sources() {
    let project = Project::new();
    project.take_patch(|fork| {
        std::fs::write(fork.join("data/logo.bin"), [0u8, 1, 2]).unwrap();
        files::write(&fork.join(".gitattributes"), "* text\n");
        files::write(&fork.join("sub/.gitmodules"), "\n");
    });
    let stdout = project.run(&["lint"]).code(1).stdout;
    for path in [
        "`.gitattributes` is not a source file",
        "`sub/.gitmodules` is not a source file",
        "`data/logo.bin` is changed as a binary",
    ] {
        assert!(stdout.contains(path), "{stdout}");
    }
}
