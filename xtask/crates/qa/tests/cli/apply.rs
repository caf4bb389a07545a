//! Successful `apply`: the trees that git would produce, and only the changed files rewritten on disk.

use std::path::Path;

use super::support::{
    Project, files, git,
    upstream::{TAG, Upstream},
};

/// Asserts that the tree on disk has the expected id, and that no scratch file is left.
fn assert_on_disk(project: &Project, variant: &str, tree: &str) {
    assert_eq!(files::tree_id(&project.tree(variant)), tree);
    assert_eq!(project.scratch(), [""; 0]);
}

/// Returns the tree after every patch as the tool reports it, oldest first.
fn trees_after_patches(project: &Project) -> Vec<String> {
    let json = project.run(&["--json", "apply"]).success().json();
    let patches = json["patches"].as_array().unwrap();
    patches.iter().map(|patch| patch["tree"].as_str().unwrap().to_string()).collect()
}

/// Returns the tree after every commit on top of the tag, oldest first.
fn trees_of_commits(fork: &Path) -> Vec<String> {
    let commits = git::git(fork, &["rev-list", "--reverse", &format!("{TAG}..HEAD")]);
    commits.lines().map(|commit| git::tree_of(fork, commit)).collect()
}

/// Returns the tree of the fork's files with the overlay copied over them.
fn tree_with_overlay(project: &Project, fork: &Path) -> String {
    files::copy_folder(&project.path("overlay/extra"), fork);
    git::commit(fork, "Copy the overlay");
    git::tree_of(fork, "HEAD")
}

/// Rewrites the middle commit of the fork, which changes `src/count.c` only.
fn edit_the_middle_patch(project: &Project, fork: &Path) {
    let last = git::git(fork, &["rev-parse", "HEAD"]);
    git::git(fork, &["reset", "--quiet", "--hard", "HEAD~1"]);
    files::edit(&fork.join("src/count.c"), "words, not letters", "words, never letters");
    git::git(fork, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    git::git(fork, &["cherry-pick", &last]);
    project.take_series(fork);
}

#[test]
fn the_first_time_and_the_second_time() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["apply"]), @"
    exit: 0
    -- stdout --
    paged tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    target/espalier/trees/paged: 22 written, 0 removed, 0 kept
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
         Locking paged in espalier.lock: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    ");
    let before = files::times(&project.path("target"));
    let lock = project.read("espalier.lock");
    insta::assert_snapshot!(project.run_with_path(&["--offline", "--locked", "apply"], ""), @r"
    exit: 0
    -- stdout --
    paged tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    target/espalier/trees/paged: 0 written, 0 removed, 22 kept
    -- stderr --
    ");
    let after = files::times(&project.path("target"));
    assert_eq!(files::differences(&before, &after), [""; 0]);
    assert_eq!(project.read("espalier.lock"), lock);
}

#[test]
fn the_trees_are_those_of_the_commits() {
    let project = Project::new();
    let fork = project.fork();
    assert_eq!(trees_after_patches(&project), trees_of_commits(&fork));
    assert_on_disk(&project, "paged", &tree_with_overlay(&project, &fork));
    project.run(&["apply", "--variant", "stock"]).success();
    assert_on_disk(&project, "stock", &Upstream::shared().tree());
}

/// Commits every kind of change that a patch can make.
fn commit_every_kind(fork: &Path) {
    let change = |message: &str| git::commit(fork, message);
    std::fs::remove_file(fork.join("src/ring.c")).unwrap();
    change("Delete a file");
    std::fs::remove_dir_all(fork.join("programs")).unwrap();
    change("Delete the last files of a folder");
    git::git(fork, &["mv", "docs/old/story.txt", "docs/tale.txt"]);
    files::edit(&fork.join("docs/tale.txt"), "line 7", "line seven");
    change("Rename and edit");
    files::write(&fork.join("a/new/folder/file.c"), "int x;\n");
    files::write(&fork.join("a/new/empty"), "");
    change("Create files in new folders");
    git::git(fork, &["update-index", "--chmod=+x", "README.md"]);
    git::git(fork, &["commit", "--quiet", "--message", "Make it executable"]);
    git::git(fork, &["checkout", "--quiet", "--", "README.md"]);
    files::edit(&fork.join("docs/windows.txt"), "two\r\n", "2\r\nand a half\r\n");
    change("Edit a file with CRLF");
    files::edit(&fork.join("docs/no-final-newline.txt"), "three", "3");
    change("Edit a line without newline");
    files::edit(&fork.join("docs/no-final-newline.txt"), "3", "3\n");
    change("Add the final newline");
    files::edit(
        &fork.join("include/words.h"),
        "char words_upper(char letter);\n",
        "char words_upper(char letter);",
    );
    change("Take a final newline away");
    files::write(&fork.join("data/logo.bin"), [&[0u8, 9, 8, 0][..], &[7; 300]].concat());
    files::write(&fork.join("data/more.bin"), [0u8, 1, 0, 255].repeat(500));
    change("Change and add binary files");
    files::write(&fork.join("docs/\u{fc}ml\u{e4}ut name.txt"), "x\n");
    change("Create a file whose name git quotes");
}

#[test]
fn every_kind_of_patch_gives_the_tree_that_git_gives() {
    let project = Project::new();
    let fork = project.fork();
    commit_every_kind(&fork);
    project.take_series(&fork);
    let trees = trees_after_patches(&project);
    assert_eq!(trees.len(), 14);
    assert_eq!(trees, trees_of_commits(&fork));
    assert_on_disk(&project, "paged", &tree_with_overlay(&project, &fork));
    assert!(!project.tree("paged").join("programs").exists());
}

#[test]
fn an_edited_patch_touches_its_file_and_no_other() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let before = files::times(&project.tree("paged"));
    edit_the_middle_patch(&project, &project.fork());
    insta::assert_snapshot!(project.run(&["apply"]), @"
    exit: 0
    -- stdout --
    paged tree 0af30025dd420386c98eafb8394184d92ed007ca
    target/espalier/trees/paged: 1 written, 0 removed, 21 kept
    -- stderr --
         Locking paged in espalier.lock: tree 0af30025dd420386c98eafb8394184d92ed007ca
    ");
    let after = files::times(&project.tree("paged"));
    assert_eq!(files::differences(&before, &after), ["src/count.c"]);
}

#[test]
fn a_patch_that_is_removed_takes_its_changes_with_it() {
    let project = Project::new();
    let fork = project.fork();
    let two_patches = trees_of_commits(&fork).remove(1);
    commit_every_kind(&fork);
    project.take_series(&fork);
    project.run(&["apply"]).success();
    git::git(&fork, &["reset", "--quiet", "--hard", &format!("{TAG}~0")]);
    let series = project.path("patches/paged");
    for name in files::list(&series).iter().skip(2) {
        std::fs::remove_file(series.join(name)).unwrap();
    }
    std::fs::remove_dir_all(project.path("overlay/extra/espalier")).unwrap();
    let output = project.run(&["apply"]).success();
    assert!(output.stdout.contains(&two_patches), "{output}");
    assert_on_disk(&project, "paged", &two_patches);
    assert!(!project.tree("paged").join("a").exists(), "an empty folder was left");
}

#[test]
fn a_changed_overlay_file_is_written_and_no_other() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let before = files::times(&project.tree("paged"));
    project.write("overlay/extra/espalier/note.txt", "another text\n");
    files::write_script(&project.path("overlay/extra/espalier/tool.sh"), "exit 0");
    project.run(&["apply"]).success();
    let after = files::times(&project.tree("paged"));
    assert_eq!(files::differences(&before, &after), ["espalier/note.txt", "espalier/tool.sh"]);
    let fork = project.fork();
    assert_on_disk(&project, "paged", &tree_with_overlay(&project, &fork));
}

#[test]
fn a_file_that_was_deleted_by_hand_comes_back() {
    let project = Project::new();
    project.run(&["apply"]).success();
    let tree = files::tree_id(&project.tree("paged"));
    std::fs::remove_file(project.tree("paged").join("src/add.c")).unwrap();
    std::fs::remove_file(project.tree("paged").join("docs/link")).unwrap();
    project.run(&["apply"]).success();
    assert_on_disk(&project, "paged", &tree);
}

#[test]
fn check_writes_no_tree() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["apply", "--check"]), @"
    exit: 0
    -- stdout --
    paged tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    ");
    assert!(!project.path("target/espalier/trees").exists());
}

#[test]
fn dry_run_names_the_steps_and_writes_nothing() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["apply", "--dry-run"]), @r"
    exit: 0
    -- stdout --
    fetch        hello v1.0, first of: path [UPSTREAM]
    apply        3 patches, 1 overlay files
                 patches/paged/0001-greet-more-warmly.patch
                 patches/paged/0002-say-what-is-counted.patch
                 patches/paged/0003-greet-dearly.patch
    materialise  target/espalier/trees/paged
    -- stderr --
    ");
    assert!(!project.path("target").exists());
    assert!(!project.path("espalier.lock").exists());
    project.run(&["apply"]).success();
    let before = files::times(project.root());
    insta::assert_snapshot!(project.run(&["apply", "--dry-run"]), @r"
    exit: 0
    -- stdout --
    fetch        hello v1.0: there
    apply        unchanged: tree de46f1d3b83f10c314ca9b80b13525f58bab212d
    materialise  target/espalier/trees/paged
    -- stderr --
    ");
    assert_eq!(files::differences(&before, &files::times(project.root())), [""; 0]);
}

#[test]
fn another_project_with_the_same_input_gives_the_same_ids() {
    let ids = |project: &Project| project.run(&["--json", "apply"]).success().json();
    let (first, second) = (Project::new(), Project::new());
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(first.read("espalier.lock"), second.read("espalier.lock"));
}

/// The user who reads the committed file or builds the tree may not be the one who wrote them.
#[test]
fn files_are_readable_by_other_users() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.run(&["apply"]).success();
    for path in [project.path("espalier.lock"), project.tree("paged").join("README.md")] {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o444, 0o444, "{} has mode {mode:o}", path.display());
    }
}
