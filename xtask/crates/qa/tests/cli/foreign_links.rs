//! Symbolic links in generated folders: their targets do not belong to the tool, and are left alone.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::support::{Project, files, git};

/// Creates a foreign folder beside the project, with one file at `path`.
fn foreign_files(project: &Project, path: &str) -> (PathBuf, PathBuf) {
    let folder = project.beside("somebodys");
    files::write(&folder.join(path), "years of work\n");
    (folder.clone(), folder.join(path))
}

#[test]
fn a_tree_that_is_a_link() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let (folder, file) = foreign_files(&project, "chapter.txt");
    std::fs::remove_dir_all(project.tree("paged")).unwrap();
    symlink(&folder, project.tree("paged")).unwrap();
    project
        .run(&["apply", "--discard-edits"])
        .code(3)
        .says(&["was not created by this tool", "  next: remove the link"]);
    assert_eq!(files::list(&folder), ["chapter.txt"]);
    assert!(file.exists());
}

#[test]
fn a_rebase_that_is_a_link() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let (folder, file) = foreign_files(&project, "state.json");
    files::write(&project.path("target/espalier/rebase/keep"), "");
    symlink(&folder, project.path("target/espalier/rebase/hello")).unwrap();
    project.run(&["rebase", "--abort"]).code(3).says(&["was not created by this tool"]);
    assert!(file.exists());
}

#[test]
fn a_target_that_leads_to_a_folder_with_something_in_it() {
    let project = Project::new();
    let (folder, file) = foreign_files(&project, "espalier/tmp/notes.txt");
    symlink(&folder, project.path("target")).unwrap();
    insta::assert_snapshot!(project.run(&["apply"]), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: `target/espalier` was not created by this tool; left alone
      it resolves to `[BESIDE]/somebodys/espalier`, and neither it nor a parent folder has this tool's marker file `.gitignore`
      next: remove the link, or move the folder elsewhere, then run the same command again
    ");
    assert!(file.exists());
    std::fs::remove_dir_all(folder.join("espalier")).unwrap();
    project.run(&["apply"]).success();
    project.run(&["apply"]).success();
}

#[test]
fn git_takes_nothing_that_is_generated() {
    let project = Project::new();
    git::init(project.root());
    project.run(&["apply"]).success();
    git::git(project.root(), &["add", "--all"]);
    let added = git::git(project.root(), &["ls-files", "target"]);
    assert_eq!(added, "");
}
