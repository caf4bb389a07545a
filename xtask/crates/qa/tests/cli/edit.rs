//! The edit repository: its content, and the guarantee that work in it is never lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use super::support::editing::{FailingEdit, edit, edit_folder, rebase, series, take_rich_series};
use super::support::{Project, files, git};

#[test]
fn made_with_one_commit_a_patch() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 0
    -- stdout --
    target/espalier/edit/paged: made, 3 commits of paged
      overlay files are links, in no commit: a build uses a change of one without an export
      next: git -C target/espalier/edit/paged rebase -i    # or commit, amend: any git tool
      next: cargo xtask export paged    # writes the patches
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Creating target/espalier/edit/paged
    ");
    let folder = edit_folder(&project, "paged");
    let log = git::git(&folder, &["log", "--format=%s|%an <%ae>|%ai|%D", "edit/paged"]);
    insta::assert_snapshot!(log, @"
    Greet dearly|Test Person <test@espalier.invalid>|2020-01-02 03:04:05 +0000|HEAD -> edit/paged
    Say what is counted|Test Person <test@espalier.invalid>|2020-01-02 03:04:05 +0000|
    Greet more warmly|Test Person <test@espalier.invalid>|2020-01-02 03:04:05 +0000|
    The pinned tree|Espalier <espalier@espalier.invalid>|2000-01-01 00:00:00 +0000|
    ");
    // The overlay's files are linked and ignored.
    assert_eq!(git::git(&folder, &["status", "--porcelain", "--ignored"]), "!! espalier/");
    assert_eq!(git::git(&folder, &["fsck", "--full", "--no-dangling"]), "");
    let lock = project.run(&["--json", "lock"]).success().json();
    let locked = lock["lock"]["variants"]["paged"]["patches"].as_array().unwrap();
    for (back, patch) in locked.iter().rev().enumerate() {
        let tree = git::tree_of(&folder, &format!("edit/paged~{back}"));
        assert_eq!(Some(tree.as_str()), patch["tree"].as_str());
    }
}

#[test]
fn the_ids_repeat_on_every_machine() {
    let (one, two) = (Project::new(), Project::new());
    take_rich_series(&one);
    take_rich_series(&two);
    let ids = |project: &Project| git::git(&edit(project), &["log", "--format=%H %T"]);
    assert_eq!(ids(&one), ids(&two));
}

#[test]
fn again_it_is_there_already() {
    let project = Project::new();
    let folder = edit(&project);
    let before = files::times(&folder);
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 0
    -- stdout --
    target/espalier/edit/paged: there already, 3 commits of paged
      overlay files are links, in no commit: a build uses a change of one without an export
      next: git -C target/espalier/edit/paged rebase -i    # or commit, amend: any git tool
      next: cargo xtask export paged    # writes the patches
    -- stderr --
    ");
    assert_eq!(files::times(&folder), before);
    assert_eq!(project.run(&["--json", "edit"]).success().json()["made"], false);
}

#[test]
fn a_dry_run_makes_nothing() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["edit", "--dry-run"]), @"
    exit: 0
    -- stdout --
    fetch        hello v1.0, first of: path [UPSTREAM]
    apply        3 patches, 1 overlay files
                 patches/paged/0001-greet-more-warmly.patch
                 patches/paged/0002-say-what-is-counted.patch
                 patches/paged/0003-greet-dearly.patch
    edit         target/espalier/edit/paged
    -- stderr --
    ");
    assert!(!project.path("target").exists());
}

#[test]
fn a_changed_series_is_recreated_when_nothing_is_lost() {
    let project = Project::new();
    let folder = edit(&project);
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    assert_eq!(project.run(&["--json", "edit"]).success().json()["commits"], 2);
    assert_eq!(git::git(&folder, &["log", "-1", "--format=%s"]), "Say what is counted");
    assert_eq!(git::git(&folder, &["status", "--porcelain"]), "");
    assert_eq!(project.scratch(), [""; 0]);
}

/// Returns the files that differ, without the series that a refused `edit` offers to rebase commits onto.
fn differences(before: &BTreeMap<String, SystemTime>, after: &BTreeMap<String, SystemTime>) -> Vec<String> {
    let is_new_object = |path: &String| path.starts_with(".git/objects/") && !before.contains_key(path);
    let mut found = files::differences(before, after);
    found.retain(|path| path != ".git/refs/espalier/edit/next" && !is_new_object(path));
    found
}

/// Every kind of work in the repository: each makes `edit` fail, whether or not the series changed too.
#[test]
fn work_is_never_overwritten() {
    let cases: [FailingEdit; 8] = [
        ("changed: src/add.c", |folder| {
            files::edit(&folder.join("src/add.c"), "left + right", "right + left")
        }),
        ("changed: src/add.c", |folder| {
            files::edit(&folder.join("src/add.c"), "left + right", "right + left");
            git::git(folder, &["add", "--all"]);
        }),
        ("changed: src/new.c", |folder| files::write(&folder.join("src/new.c"), "int new;\n")),
        ("has commits that are in no patch", |folder| {
            git::git(folder, &["commit", "--quiet", "--amend", "--message", "Greet most dearly"]);
        }),
        ("has commits that are in no patch", |folder| {
            drop(git::git(folder, &["reset", "--quiet", "--hard", "HEAD~1"]))
        }),
        ("a rebase is in progress", |folder| rebase(folder, "1s/^pick/edit/")),
        ("kept: heads/mine", |folder| drop(git::git(folder, &["branch", "mine"]))),
        ("kept: stash", |folder| {
            files::edit(&folder.join("src/add.c"), "left + right", "right + left");
            git::git(folder, &["stash"]);
        }),
    ];
    for (says, work) in cases {
        let project = Project::new();
        let folder = edit(&project);
        work(&folder);
        let before = files::times(&folder);
        project.run(&["edit"]).code(4).says(&[says, "cargo xtask edit paged --discard"]);
        std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
        project.run(&["edit"]).code(4).says(&[says]);
        let after = files::times(&folder);
        let changed = |now: &_| {
            let mut changed = differences(&before, now);
            // The series as it is on disk may be there now, as commits to rebase onto.
            changed.retain(|file| !file.starts_with(".git/objects/"));
            changed
        };
        assert_eq!(changed(&after), [""; 0], "{says}");
        project.run(&["edit", "--discard"]).success();
        assert_eq!(git::git(&folder, &["log", "-1", "--format=%s"]), "Say what is counted");
        // Discarded work is moved to `edit-before`, where it stays until `gc` removes it.
        let kept = files::times(&project.path("target/espalier/edit-before/paged.1"));
        assert_eq!(changed(&kept), [""; 0], "{says}");
    }
}

/// Files that a `.gitignore` of the series names belong to the user too: a build folder, a model. So does a commit that
/// only the reflog has.
#[test]
fn every_repository_before_is_kept_whole() {
    let project = Project::new();
    let folder = edit(&project);
    files::write(&folder.join(".gitignore"), "build/\n");
    git::commit(&folder, "Ignore what is built");
    files::write(&folder.join("src/draft.c"), "int draft;\n");
    git::commit(&folder, "Draft");
    git::git(&folder, &["reset", "--quiet", "--hard", "HEAD~1"]);
    project.run(&["export"]).success();
    files::write(&folder.join("build/hello"), "built\n");
    for round in ["1", "2"] {
        project.run(&["trailers", "--overwrite", "--set", &format!("Drop-when: {round}")]).success();
        let kept = format!("Keeping the previous repository as target/espalier/edit-before/paged.{round} ");
        project.run(&["edit"]).success().says(&[&kept]);
    }
    let before = project.path("target/espalier/edit-before/paged.1");
    assert!(before.join("build/hello").exists() && !folder.join("build").exists());
    assert_eq!(git::git(&before, &["log", "-1", "--format=%s"]), "Ignore what is built");
    assert_eq!(git::git(&before, &["log", "-1", "--format=%s", "HEAD@{1}"]), "Draft");
    let stdout = project.run(&["gc"]).success().stdout;
    assert!(stdout.contains("edit-before/paged.1: an edit repository that was replaced"), "{stdout}");
    assert!(!before.exists() && folder.exists());
}

/// Every kind of work that `git status` does not report: the repository is replaced only on request, and what is there
/// is kept.
#[test]
fn work_that_the_user_has_hidden_from_git_is_not_replaced() {
    let flagged = |folder: &Path, flag: &str| {
        files::edit(&folder.join("src/add.c"), "left + right", "right + left");
        git::git(folder, &["update-index", flag, "src/add.c"]);
    };
    type Hides<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, &str, Hides<'_>); 5] = [
        ("hidden from git: src/add.c", "src/add.c", &|folder| flagged(folder, "--skip-worktree")),
        ("hidden from git: src/add.c", "src/add.c", &|folder| flagged(folder, "--assume-unchanged")),
        ("ignored: src/new.c", "src/new.c", &|folder| {
            files::write(&folder.join(".git/info/exclude"), "new.c\n");
            files::write(&folder.join("src/new.c"), "right + left\n");
        }),
        ("ignored: notes.log", "notes.log", &|folder| {
            files::write(&folder.join(".git/mine"), "*.log\n");
            git::git(folder, &["config", "core.excludesFile", ".git/mine"]);
            files::write(&folder.join("notes.log"), "right + left\n");
        }),
        ("changed: src/add.c", "src/add.c", &|folder| {
            let path = folder.join("src/add.c");
            git::git(folder, &["config", "core.trustctime", "false"]);
            git::git(folder, &["config", "core.checkStat", "minimal"]);
            let time = std::fs::metadata(&path).unwrap().modified().unwrap();
            files::edit(&path, "left + right", "right + left");
            std::fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }),
    ];
    for (says, path, work) in cases {
        let project = Project::new();
        let folder = edit(&project);
        work(&folder);
        std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
        project.run(&["edit"]).code(4).says(&[says, "cargo xtask edit paged --discard"]);
        // `new` uses the repository as it is.
        project.run(&["new", "Say more"]).success();
        assert!(std::fs::read_to_string(folder.join(path)).unwrap().contains("right + left"), "{says}");
        project.run(&["edit", "--discard"]).success();
        let kept = project.read(&format!("target/espalier/edit-before/paged.1/{path}"));
        assert!(kept.contains("right + left"), "{says}: {kept}");
    }
}

/// A flag alone, and files that the series itself ignores, do not count as work.
#[test]
fn a_repository_without_changes_is_replaced() {
    let project = Project::new();
    let folder = edit(&project);
    files::write(&folder.join(".gitignore"), "build/\n");
    git::commit(&folder, "Ignore what is built");
    project.run(&["export"]).success();
    files::write(&folder.join("build/hello"), "built\n");
    git::git(&folder, &["update-index", "--skip-worktree", "src/add.c"]);
    git::git(&folder, &["update-index", "--assume-unchanged", "src/count.c"]);
    project.run(&["trailers", "--overwrite", "--set", "Drop-when: 1"]).success();
    assert_eq!(project.run(&["--json", "edit"]).success().json()["made"], true);
}

/// Its metadata names the repository by its path, so that it cannot even be moved away.
#[test]
fn the_repository_of_another_work_tree_stays() {
    let project = Project::new();
    let folder = edit(&project);
    let linked = project.beside("linked");
    git::git(&folder, &["worktree", "add", "--quiet", "--detach", linked.to_str().unwrap()]);
    files::edit(&linked.join("src/add.c"), "left + right", "right + left");
    git::commit(&linked, "Add backwards");
    // As long as the series is the same, nothing is replaced.
    project.run(&["edit"]).success();
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/paged` is the repository of other work trees too; nothing was changed
      [BESIDE]/linked
      next: once its commits are on edit/paged: git -C target/espalier/edit/paged worktree remove [BESIDE]/linked
    ");
    project.run(&["edit", "--discard"]).code(4);
    assert_eq!(git::git(&linked, &["log", "-1", "--format=%s"]), "Add backwards");
    git::git(&folder, &["worktree", "remove", linked.to_str().unwrap()]);
    project.run(&["edit"]).success();
}

#[test]
fn the_refusal_says_how_to_go_on() {
    let project = Project::new();
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/paged` has work that is in no patch; nothing was changed
      changed: src/add.c
      next: look at it: git -C target/espalier/edit/paged status
      next: commit them: git -C target/espalier/edit/paged add --all && git -C target/espalier/edit/paged commit
      next: discard it: cargo xtask edit paged --discard    # it moves to target/espalier/edit-before/, until `gc` removes it
    ");
    git::git(&folder, &["checkout", "--quiet", "--detach"]);
    project.run(&["edit"]).code(4).says(&["no branch is checked out, not edit/paged"]);
    git::git(&folder, &["checkout", "--quiet", "edit/paged"]);
    git::git(&folder, &["stash"]);
    git::git(&folder, &["branch", "mine"]);
    // `export` keeps neither.
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/paged` has work that is in no patch; nothing was changed
      kept: stash
      kept: heads/mine
      next: look at it: git -C target/espalier/edit/paged status
      next: apply it: git -C target/espalier/edit/paged stash pop    # then commit it
      next: save its commits: git -C target/espalier/edit/paged bundle create SOMEWHERE HEAD --all    # SOMEWHERE: an absolute path
      next: discard it: cargo xtask edit paged --discard    # it moves to target/espalier/edit-before/, until `gc` removes it
    ");
    git::git(&folder, &["stash", "drop"]);
    git::git(&folder, &["branch", "-D", "mine"]);
    git::git(&folder, &["bisect", "start", "HEAD", "HEAD~1"]);
    let ends = "next: end it: git -C target/espalier/edit/paged bisect reset\n";
    project.run(&["edit"]).code(4).says(&["a bisect is in progress", ends]);
    project.run(&["export"]).code(4).says(&["a bisect is in progress", ends]);
    git::git(&folder, &["bisect", "reset"]);
    git::git(&folder, &["update-ref", "-d", "refs/espalier/edit/made"]);
    project.run(&["edit"]).code(4);
    project.run(&["new", "Say more"]).code(4);
}

#[test]
fn a_folder_that_is_not_an_edit_repository() {
    let project = Project::new();
    project.write("target/espalier/edit/paged/mine.txt", "mine\n");
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/paged` is not a git repository that can be read
      could not find repository at 'target/espalier/edit/paged'
      next: move it elsewhere, if anything in it is needed
      next: discard it: cargo xtask edit paged --discard
    ");
    assert_eq!(project.read("target/espalier/edit/paged/mine.txt"), "mine\n");
    project.run(&["edit", "--discard"]).success();
    assert!(!project.path("target/espalier/edit/paged/mine.txt").exists());
}

#[test]
fn a_variant_without_a_series() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["edit", "stock"]), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: the variant `stock` has no series of its own to edit
      next: give it one in `pins.toml`: patches = "patches/stock"
      next: or name a variant that has one: cargo xtask edit VARIANT
    "#);
    project.run(&["export", "stock"]).code(2);
    project.run(&["edit", "unknown"]).code(2);
}

#[test]
fn a_series_that_is_not_exact_is_refused_first() {
    let project = Project::new();
    project.edit(
        "patches/paged/0001-greet-more-warmly.patch",
        "+        return \"hello there\"",
        "+        return \"hi there\"",
    );
    project.run(&["edit"]).code(1).says(&["0001-greet-more-warmly.patch"]);
    assert!(!edit_folder(&project, "paged").exists());
}

#[test]
fn a_date_that_no_commit_can_have() {
    let project = Project::new();
    project.edit(
        "patches/paged/0001-greet-more-warmly.patch",
        "Date: Thu, 2 Jan 2020",
        "Date: Thu, 2 Jab 2020",
    );
    insta::assert_snapshot!(project.run(&["edit"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0001-greet-more-warmly.patch`
      0001-greet-more-warmly.patch:3: no commit can have this date: expected a date since 1970, such as `Thu, 1 Jan 2026 00:00:00 +0000`, found `Thu, 2 Jab 2020 03:04:05 +0000`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn the_work_tree_is_the_last_commit() {
    let project = Project::new();
    take_rich_series(&project);
    std::fs::write(project.beside("home/.gitconfig"), "[core]\n\tautocrlf = true\n\teol = crlf\n").unwrap();
    let folder = edit(&project);
    assert_eq!(std::fs::read(folder.join("docs/windows.txt")).unwrap(), b"one\r\n2\r\nthree\r\nfour");
    let applied = project.run(&["--json", "apply"]).success().json();
    assert!(applied["tree"].is_string());
    assert_eq!(git::git(&folder, &["status", "--porcelain"]), "");
    assert_eq!(series(&project).len(), 4);
}

#[test]
fn new_offers_a_message() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["new", "Say how many"]), @"
    exit: 0
    -- stdout --
    target/espalier/edit/paged: `git commit` offers the message
      next: change files there, then: git -C target/espalier/edit/paged add --all && git -C target/espalier/edit/paged commit    # fill the trailers in
      next: cargo xtask export paged    # writes the patch
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Creating target/espalier/edit/paged
    ");
    let folder = edit_folder(&project, "paged");
    insta::assert_snapshot!(git::git(&folder, &["config", "commit.template"]), @".git/espalier-commit-template");
    insta::assert_snapshot!(project.read("target/espalier/edit/paged/.git/espalier-commit-template"), @"
    Say how many

    # Why, in a few paragraphs.

    Upstream-Status: 
    Drop-when: 
    Verified-by: 
    Numerics: 

    # Every patch has these trailers (docs/reference/patches.md):
    #
    # Upstream-Status: `Pending`, `Submitted <URL>`, `Inappropriate <why>` or `Backport <commit>`, or as Yocto does, with `[details]`
    # Drop-when: what must be true upstream for this patch to go
    # Verified-by: the test or the gate that proves this patch
    # Numerics: `identical`, `bounded N` or `bounded N with FEATURE`, where N is the most that a logit moves, such as 1e-5
    ");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    // Work in progress is kept.
    project.run(&["new", "Say how much"]).success();
    let fill = "core.editor=sed -i -e 's/: $/: identical/' -e 's/Status: identical/Status: Pending/'";
    git::git(&folder, &["-c", fill, "commit", "--quiet", "--all"]);
    project.run(&["export"]).success();
    let name = "patches/paged/0004-say-how-much.patch";
    let patch = project.read(name);
    assert!(patch.contains("Upstream-Status: Pending\nDrop-when: identical\n"), "{patch}");
    assert!(!project.run(&["lint"]).stdout.contains(name));
    // The offered message was for this patch only.
    let offer = folder.join(".git/espalier-commit-template");
    assert!(!offer.exists() && !git::try_git(&folder, &["config", "commit.template"]));
    project.run(&["new", "Say more"]).success();
    git::git(&folder, &["config", "--unset", "commit.template"]);
    project.run(&["export"]).success();
    assert!(!offer.exists());
}

#[test]
fn new_refuses_a_subject() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["new", &"x".repeat(73)]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: the subject has 73 characters
      next: say what the patch does in 1 to 72 characters: `models: flatten the input`
    ");
    project.run(&["new", " "]).code(2).says(&["the subject is empty"]);
    project.run(&["new", "a\nb"]).code(2);
    project.run(&["new", "#a"]).code(2);
    assert!(!project.path("target").exists());
    project.run(&["new", &"x".repeat(72), "--dry-run"]).success();
    assert!(!project.path("target").exists());
}

/// The printed commands work from the current directory, one after the other.
#[test]
fn the_way_to_the_repository_from_elsewhere() {
    let project = Project::new();
    let edit_in = |folder: &Path| {
        let mut command = project.command(&["edit"]);
        command.current_dir(folder);
        project.finish(command).success().stdout
    };
    project.run(&["edit"]).success();
    let git = |folder: &str| format!("next: git -C {folder}target/espalier/edit/paged rebase -i ");
    assert!(edit_in(&project.path("patches/paged")).contains(&git("../../")));
    assert!(edit_in(project.root().parent().unwrap()).contains(&git("project/")));
    assert!(edit_in(&project.beside("home")).contains(&git("[ROOT]/")));
    let build_in_ci = || {
        let mut command = project.command(&["build"]);
        command.current_dir(project.path("ci"));
        project.finish(command).code(2)
    };
    std::fs::remove_file(project.path("ci/flavors.toml")).unwrap();
    // No commit has the file: there is nothing to check out.
    build_in_ci()
        .says(&[
            "next: copy the one of a clone of Espalier: mkdir -p ../ci && cp ESPALIER/ci/flavors.toml ../ci/",
        ])
        .says_nothing_of("git checkout");
    project.write("ci/flavors.toml", "programs = []\ncmake = {}\n[flavors]\n");
    project.fresh_clone("colleague");
    std::fs::remove_file(project.path("ci/flavors.toml")).unwrap();
    build_in_ci().says(&["next: git checkout ../ci/flavors.toml"]);
}

/// A build with kernels in the edit repository needs the overlay; no patch may contain it.
#[test]
fn the_overlay_is_in_the_work_tree_and_in_no_patch() {
    let project = Project::new();
    project.run(&["edit"]).success();
    let folder = project.path("target/espalier/edit/paged");
    let note = folder.join("espalier/note.txt");
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "from the overlay\n");
    assert_eq!(git::git(&folder, &["status", "--porcelain"]), "");
    // It is the same file: an edit there is an edit of the overlay.
    project.write("overlay/extra/espalier/note.txt", "changed\n");
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "changed\n");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    git::git(&folder, &["add", "--all"]);
    git::git(&folder, &["commit", "--quiet", "--message", "add: the other way round"]);
    project.run(&["export"]).success();
    for name in files::list(&project.path("patches/paged")) {
        let patch = project.read(&format!("patches/paged/{name}"));
        assert!(!patch.contains("note.txt"), "{patch}");
    }
    // A file that the user put there is kept, and reported.
    std::fs::remove_file(&note).unwrap();
    files::write(&note, "mine\n");
    let output = project.run(&["edit"]).success();
    output.says(&["`espalier/note.txt` in the edit repository is not `overlay/extra/espalier/note.txt`"]);
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "mine\n");
    std::fs::remove_file(&note).unwrap();
    project.run(&["edit"]).success();
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "changed\n");
    // Files that no overlay has any more are removed, and new ones are linked.
    std::fs::remove_file(project.path("overlay/extra/espalier/note.txt")).unwrap();
    project.write("overlay/extra/espalier/b c.txt", "b\n");
    project.run(&["edit"]).success();
    assert!(!note.is_symlink() && !note.exists());
    assert_eq!(std::fs::read_to_string(folder.join("espalier/b c.txt")).unwrap(), "b\n");
    assert_eq!(git::git(&folder, &["status", "--porcelain"]), "");
}
