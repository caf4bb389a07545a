//! A tree on disk with manual edits: never overwritten without an explicit flag.

use super::support::{Project, files};

fn applied() -> Project {
    let project = Project::new();
    project.run(&["apply"]).success();
    project
}

fn assert_refused_and_untouched(project: &Project, arguments: &[&str]) {
    let before = files::times(&project.tree("paged"));
    project.run_build(arguments).code(4);
    assert_eq!(files::times(&project.tree("paged")), before);
}

#[test]
fn an_edited_file() {
    let project = applied();
    let tree = files::tree_id(&project.tree("paged"));
    files::edit(&project.tree("paged").join("src/add.c"), "return", "return 1 +");
    insta::assert_snapshot!(project.run(&["apply"]), @r"
    exit: 4
    -- stdout --

    -- stderr --
    error: `target/espalier/trees/paged` has changes that are in no patch; nothing was changed
      src/add.c
      next: keep them: copy the files away, or turn them into a patch (docs/guides/change-a-patch.md)
      next: discard them: cargo xtask apply --variant paged --discard-edits
    ");
    assert_refused_and_untouched(&project, &["apply"]);
    assert_refused_and_untouched(&project, &["build"]);
    let edited = std::fs::read_to_string(project.tree("paged").join("src/add.c")).unwrap();
    assert!(edited.contains("return 1 +"));
    insta::assert_snapshot!(project.run(&["apply", "--discard-edits"]), @"
    exit: 0
    -- stdout --
    paged tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    target/espalier/trees/paged: 1 written, 0 removed, 21 kept
    -- stderr --
       Restoring src/add.c, removed by hand
    ");
    assert_eq!(files::tree_id(&project.tree("paged")), tree);
}

#[test]
fn a_file_that_is_not_ours() {
    let project = applied();
    files::write(&project.tree("paged").join("src/mine.c"), "int mine;\n");
    assert_refused_and_untouched(&project, &["apply"]);
    project.run(&["apply"]).code(4).says(&["src/mine.c"]);
}

#[test]
fn an_edit_where_a_patch_changes_too() {
    let project = applied();
    let edited = project.tree("paged").join("src/count.c");
    files::edit(&edited, "int inside = 0;", "int inside = 1;");
    std::fs::remove_file(project.path("patches/paged/0003-greet-dearly.patch")).unwrap();
    assert_refused_and_untouched(&project, &["apply"]);
    assert!(std::fs::read_to_string(edited).unwrap().contains("int inside = 1;"));
}

/// The hint, pasted unchanged, must not discard the edits of another variant.
#[test]
fn the_advice_names_the_variant() {
    let project = applied();
    project.run(&["apply", "--variant", "stock"]).success();
    files::edit(&project.tree("stock").join("src/add.c"), "return", "return 1 +");
    let output = project.run(&["apply", "--variant", "stock"]).code(4);
    output.says(&["next: discard them: cargo xtask apply --variant stock --discard-edits"]);
}

#[test]
fn a_link_in_place_of_a_file() {
    let project = applied();
    let path = project.tree("paged").join("src/add.c");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    assert_refused_and_untouched(&project, &["apply"]);
}

#[test]
fn a_mode_that_was_changed_is_put_back() {
    use std::os::unix::fs::PermissionsExt;
    let project = applied();
    let tree = files::tree_id(&project.tree("paged"));
    let script = project.tree("paged").join("scripts/greet.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o644)).unwrap();
    project.run(&["apply"]).success();
    assert_eq!(files::tree_id(&project.tree("paged")), tree);
}

#[test]
fn a_touched_file_is_not_an_edit() {
    let project = applied();
    let path = project.tree("paged").join("src/add.c");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, text).unwrap();
    assert_eq!(project.run(&["--json", "apply"]).success().json()["written"], 0);
}

#[test]
fn without_our_index_an_edit_is_found_by_content() {
    let project = applied();
    std::fs::remove_file(project.path("target/espalier/trees/paged.index")).unwrap();
    assert_eq!(project.run(&["--json", "apply"]).success().json()["written"], 0);
    std::fs::remove_file(project.path("target/espalier/trees/paged.index")).unwrap();
    files::edit(&project.tree("paged").join("src/add.c"), "return", "return 1 +");
    assert_refused_and_untouched(&project, &["apply"]);
}

/// `cp -p` and `touch -r` give a file the size and the time of another one.
#[test]
fn an_edit_that_is_as_large_and_as_old() {
    let project = applied();
    let path = project.tree("paged").join("src/add.c");
    let time = std::fs::metadata(&path).unwrap().modified().unwrap();
    files::edit(&path, "left + right", "left - right");
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    project.run(&["apply"]).code(4).says(&["src/add.c"]);
    project.run(&["apply", "--discard-edits"]).success();
    assert!(std::fs::read_to_string(&path).unwrap().contains("left + right"));
}

#[test]
fn restored_files_are_reported() {
    use std::os::unix::fs::PermissionsExt;
    let project = applied();
    let tree = project.tree("paged");
    std::fs::remove_file(tree.join("src/add.c")).unwrap();
    std::fs::set_permissions(tree.join("scripts/greet.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!(project.run(&["apply"]), @"
    exit: 0
    -- stdout --
    paged tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    target/espalier/trees/paged: 2 written, 0 removed, 20 kept
    -- stderr --
       Restoring src/add.c, removed by hand
       Restoring scripts/greet.sh, mode changed by hand
    ");
    assert_eq!(project.run(&["apply"]).success().stderr, "");
}

#[test]
fn a_folder_in_place_of_a_file() {
    let project = applied();
    let path = project.tree("paged").join("src/add.c");
    std::fs::remove_file(&path).unwrap();
    files::write(&path.join("deep/mine.txt"), "mine\n");
    assert_refused_and_untouched(&project, &["apply"]);
    std::fs::create_dir_all(path.join("empty/too")).unwrap();
    project.run(&["apply", "--discard-edits"]).success();
    assert!(path.is_file());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir_all(path.join("empty")).unwrap();
    project.run(&["apply"]).success();
    assert!(path.is_file());
}
