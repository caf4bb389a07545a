//! `edit` and `export` where the series on disk, or that of the parent, changed meanwhile.

use super::support::editing::{assert_settled, edit, edit_folder, names, parent_goes_on, series, with_child};
use super::support::git::{self, commit};
use super::support::{Project, files};

#[test]
fn a_variant_on_top_of_another_exports_its_own_commits() {
    let project = with_child();
    let child = files::list(&project.path("patches/child"));
    assert_eq!(child, ["0001-greet-my-dear.patch"]);
    insta::assert_snapshot!(project.run(&["edit", "child"]), @"
    exit: 0
    -- stdout --
    target/espalier/edit/child: there already, 1 commit of child, after 3 of the variants it extends
      overlay files are links, in no commit: a build uses a change of one without an export
      next: git -C target/espalier/edit/child rebase -i    # or commit, amend: any git tool
      next: cargo xtask export child    # writes the patches
    -- stderr --
    ");
    assert!(project.read("espalier.lock").contains("[variants.child]"));
}

#[test]
fn edits_below_the_variants_own_patches_are_refused() {
    let project = with_child();
    let folder = edit_folder(&project, "child");
    let before = files::times(&project.path("patches"));
    git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/base~1"]);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    insta::assert_snapshot!(project.run(&["export", "child"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the base of child, fedfd9881a49, is no longer below edit/child
      up to patches/paged/0003-greet-dearly.patch, the patches are those of variants below
      next: change a patch of paged where it is: cargo xtask edit paged
      next: move your commits back: git -C target/espalier/edit/child rebase --onto espalier/edit/base FIRST~1    # FIRST: your first commit
    ");
    assert_eq!(files::times(&project.path("patches")), before);
}

/// In repositories of earlier versions the ref for the base has another name, which the settings of the branch name
/// too.
#[test]
fn a_repository_that_names_its_base_as_before_is_used_as_it_is() {
    let project = with_child();
    let folder = edit_folder(&project, "child");
    git::git(&folder, &["update-ref", "refs/espalier/edit/border", "refs/espalier/edit/base"]);
    git::git(&folder, &["update-ref", "-d", "refs/espalier/edit/base"]);
    let refs = || git::git(&folder, &["for-each-ref", "--format=%(refname:lstrip=3)", "refs/espalier/edit"]);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    for _ in 0..2 {
        project.run(&["export", "child"]).success();
        let child = files::list(&project.path("patches/child"));
        assert_eq!(child, ["0001-greet-my-dear.patch", "0002-add-backwards.patch"]);
        let output = project.run(&["edit", "child"]).success();
        assert!(output.stdout.contains("there already, 2 commits of child"), "{output}");
        assert_eq!(refs(), "border\nmade\nnext\npin\nseries");
        project.run(&["undo"]).success();
    }
    // A printed command names the ref that is there.
    git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/border~1"]);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    let onto = "rebase --onto espalier/edit/border FIRST~1";
    project.run(&["export", "child"]).code(4).says(&["the base of child", onto]);
}

#[test]
fn a_changed_parent_changes_the_locks_of_its_children() {
    let project = with_child();
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    project.run(&["lock"]).success();
    project.run(&["export"]).success();
    project.run(&["lock", "--check"]).success();
    // The same when the child is based on the removed commit:
    git::git(&folder, &["reset", "--quiet", "--hard", "espalier/edit/base"]);
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 0
    -- stdout --
    patches/paged: 0 patches; changed:
      gone     0001-greet-more-warmly.patch
      gone     0002-say-what-is-counted.patch
      gone     0003-greet-dearly.patch
      gone     0004-add-backwards.patch
    -- stderr --
    warning: child extends paged and no longer applies
      next: cargo xtask rebase --variant child
         Locking paged in espalier.lock: tree db31403b715e785491082e397ee21c2d1d4b0251
    ");
    project.run(&["export", "child"]).code(1);
}

#[test]
fn a_parent_that_changed_since_is_reported() {
    let project = with_child();
    parent_goes_on(&project);
    insta::assert_snapshot!(project.run(&["export", "child"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the series of a parent changed since `target/espalier/edit/child` was made; nothing was written
      an export now would undo that change
      next: bring it up to date: cargo xtask edit child    # says how to keep commits
    ");
    insta::assert_snapshot!(project.run(&["edit", "child"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/edit/child` has work that is in no patch; nothing was changed
      edit/child has commits that are in no patch
      the patches on disk have changed since it was made
      next: look at it: git -C target/espalier/edit/child status
      next: rebase them onto these patches: git -C target/espalier/edit/child rebase --onto espalier/edit/next espalier/edit/made edit/child
      next: then: cargo xtask export child
      next: discard it: cargo xtask edit child --discard    # it moves to target/espalier/edit-before/, until `gc` removes it
    ");
}

/// Runs the `git rebase` that a refused `edit` prints.
fn rebase_as_printed(project: &Project, variant: &str) {
    let refused = project.run(&["edit", variant]).code(4);
    let hint = refused.stderr.lines().find(|line| line.contains(" --onto espalier/edit/next ")).unwrap();
    let (_, words) = hint.split_once(": git ").unwrap();
    git::git(project.root(), &words.split(' ').collect::<Vec<_>>());
}

/// The printed sequence keeps the commits of the child and the new patch of its parent, which git does not track yet.
#[test]
fn commits_are_kept_over_a_new_patch_of_the_parent() {
    let project = with_child();
    parent_goes_on(&project);
    rebase_as_printed(&project, "child");
    project.run(&["edit", "child"]).code(4).says(&["next: keep them: cargo xtask export child"]);
    project.run(&["export", "child"]).success();
    assert_eq!(
        files::list(&project.path("patches/child")),
        ["0001-greet-my-dear.patch", "0002-ring-otherwise.patch"]
    );
    assert!(project.path("patches/paged/0004-add-backwards.patch").exists());
    project.run(&["lock", "--check"]).success();
    project.run(&["apply", "--check", "--variant", "child"]).success();
}

/// The patches change twice: the second rebase begins where the first one ended.
#[test]
fn commits_are_kept_over_patches_that_changed_on_disk() {
    let project = Project::new();
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    for round in ["1", "2"] {
        project.run(&["trailers", "--overwrite", "--set", &format!("Drop-when: {round}")]).success();
        project.run(&["export"]).code(4).says(&["next: bring it up to date: cargo xtask edit paged"]);
        rebase_as_printed(&project, "paged");
    }
    insta::assert_snapshot!(project.run(&["export"]).success().stdout, @"
    patches/paged: 4 patches; changed:
      new      0004-add-backwards.patch
    ");
    assert!(project.read("patches/paged/0001-greet-more-warmly.patch").contains("\nDrop-when: 2\n"));
    assert_settled(&project);
}

/// The patch of the commit is on disk, with another message: the commit stays until the user decides.
#[test]
fn a_reworded_commit_does_not_vanish_in_the_rebase() {
    let project = Project::new();
    let folder = edit(&project);
    git::git(&folder, &["commit", "--quiet", "--amend", "--message", "Greet most dearly"]);
    project.run(&["trailers", "--overwrite", "--set", "Drop-when: 1"]).success();
    rebase_as_printed(&project, "paged");
    assert_eq!(git::git(&folder, &["log", "-1", "--format=%s"]), "Greet most dearly");
    project.run(&["export"]).code(4).says(&["(Greet most dearly) is empty", "rebase -i"]);
}

/// A rebase that was aborted has changed nothing: the series on disk must not be undone after it.
#[test]
fn an_aborted_rebase_leaves_the_refusal() {
    let project = Project::new();
    let folder = edit(&project);
    git::git(&folder, &["commit", "--quiet", "--amend", "--message", "Greet most dearly"]);
    project.run(&["trailers", "--overwrite", "--set", "Drop-when: 1"]).success();
    project.run(&["edit"]).code(4);
    let stop = ["-c", "sequence.editor=sed -i 1ibreak", "rebase", "--interactive", "--reapply-cherry-picks"];
    let onto = ["--onto", "espalier/edit/next", "espalier/edit/made", "edit/paged"];
    git::git(&folder, &[&stop[..], &onto].concat());
    project.run(&["export"]).code(4).says(&["a rebase is in progress"]);
    git::git(&folder, &["rebase", "--abort"]);
    let before = series(&project);
    project.run(&["export"]).code(4).says(&["the series on disk changed"]);
    assert_eq!(series(&project), before);
}

#[test]
fn a_series_that_changed_since_is_not_undone() {
    let project = Project::new();
    let folder = edit(&project);
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    commit(&folder, "Add backwards");
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    insta::assert_snapshot!(project.run(&["export"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: the series on disk changed since `target/espalier/edit/paged` was made; nothing was written
      an export now would undo that change
      next: bring it up to date: cargo xtask edit paged    # says how to keep commits
    ");
    assert_eq!(names(&project).len(), 2);
}
