//! Patches with paths outside the tree: an error names them, and nothing is written.

use std::path::Path;

use super::support::{Output, Project, Source, files, git, upstream::Upstream};

const PATCH: &str = "patches/paged/0001-x.patch";

fn new_file_patch(path: &str, mode: &str) -> String {
    // The id of the blob "x\n".
    let id = "587be6b4c3f93f93c489c0111bba5596147a26cb";
    format!(
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n\
         From: Test Person <test@espalier.invalid>\nDate: Thu, 2 Jan 2020 03:04:05 +0000\n\
         Subject: [PATCH] Add a file\n\n---\n \"x\" | 1 +\n 1 file changed, 1 insertion(+)\n\n\
         diff --git a/{path} b/{path}\nnew file mode {mode}\n\
         index 0000000000000000000000000000000000000000..{id}\n\
         --- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    )
}

/// Runs `apply` with this patch as the whole series; nothing except the store may be written.
fn refused(path: &str, mode: &str) -> Output {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("patches/paged")).unwrap();
    project.write(PATCH, new_file_patch(path, mode));
    let before = files_outside_of_target(&project);
    let output = project.run(&["apply"]);
    assert_eq!(files_outside_of_target(&project), before);
    assert!(!project.path("target/espalier/trees").exists());
    assert_eq!(git::git(&project.store(), &["for-each-ref", "refs/espalier/variants"]), "");
    output
}

fn files_outside_of_target(project: &Project) -> Vec<String> {
    let beside = project.root().parent().unwrap();
    let all = files::list(beside);
    all.into_iter().filter(|path| !path.starts_with("project/target/")).collect()
}

#[test]
fn the_patch_of_these_tests_is_good_when_its_path_is() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("patches/paged")).unwrap();
    project.write(PATCH, new_file_patch("src/x", "100644"));
    project.run(&["apply"]).success();
    assert_eq!(std::fs::read(project.tree("paged").join("src/x")).unwrap(), b"x\n");
}

#[test]
fn a_path_that_climbs_out() {
    insta::assert_snapshot!(refused("../../x", "100644"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0001-x.patch`
      0001-x.patch:10: the patch names a path with a `.` or `..` component: expected a relative path inside the tree, found `diff --git a/../../x b/../../x`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn a_path_into_the_git_folder() {
    insta::assert_snapshot!(refused(".git/hooks/x", "100755"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0001-x.patch`
      0001-x.patch:10: the patch names a path into `.git`, or into what some systems take for it: expected a relative path inside the tree, found `diff --git a/.git/hooks/x b/.git/hooks/x`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn paths_that_are_outside_on_some_system() {
    for path in ["/etc/x", "src/../../x", ".GIT/config", "a\\..\\..\\x", "C:/x", ".git./x", "git~1/x"]
        .iter()
        .chain(&["src/CON", "aux.txt", "foo.", "foo /x", "cafe\u{301}.c", "a\u{202e}b", "a\u{206f}b"])
    {
        let output = refused(path, "100644").code(2).says(&["0001-x.patch", "  next: "]);
        assert!(!output.stderr.contains("panicked"), "{output}");
    }
}

#[test]
fn a_link() {
    insta::assert_snapshot!(refused("src/x", "120000"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: cannot parse `patches/paged/0001-x.patch`
      0001-x.patch:11: the patch writes a symlink (mode 120000): expected mode 100644 or 100755, found `new file mode 120000`
      next: cargo xtask lint    # names all such patches, and the way to bring them in
    ");
}

#[test]
fn a_submodule() {
    refused("src/x", "160000").code(2).says(&["submodule"]);
}

#[test]
fn a_path_through_a_link_of_upstream() {
    insta::assert_snapshot!(refused("docs/link/x", "100644"), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: 1 of 1 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0001-x.patch: refused
        docs/link/x (0001-x.patch:10): refused: the path goes through `docs/link`, which is a symlink (120000)
      next: if it was edited by hand, give its `index` line the blob id of the result; if not, do not trust it
    ");
}

#[test]
fn a_path_that_is_another_one_on_macos_and_windows() {
    insta::assert_snapshot!(refused("readme.md", "100644"), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: 1 of 1 patches do not apply exactly to hello v1.0; nothing was written
      patches/paged/0001-x.patch: refused
        readme.md (0001-x.patch:10): refused: the path differs from `README.md` in case only
      next: if it was edited by hand, give its `index` line the blob id of the result; if not, do not trust it
    ");
}

/// Upstream itself may contain a symbolic link; on disk it is a link, and no file of the tree is written through it.
#[test]
fn a_link_of_upstream_that_points_outside_is_only_a_link() {
    let helper = Project::new();
    let upstream = helper.fork();
    std::os::unix::fs::symlink("/etc/hostname", upstream.join("docs/outside")).unwrap();
    git::commit(&upstream, "Link outside");
    git::git(&upstream, &["tag", "--force", "v1.0"]);
    let project = Project::pinned(&git::tree_of(&upstream, "v1.0"), &[Source::Path(upstream)]);
    project.run(&["apply", "--variant", "stock"]).success();
    let link = std::fs::read_link(project.tree("stock").join("docs/outside")).unwrap();
    assert_eq!(link, Path::new("/etc/hostname"));
}

#[test]
fn a_tag_that_looks_like_an_option() {
    let project = Project::with_sources(&[Source::Path(Upstream::shared().repository())]);
    project.edit("pins.toml", "tag = \"v1.0\"", "tag = \"--upload-pack=touch x\"");
    insta::assert_snapshot!(project.run(&["fetch"]), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:5:7
        |
      5 | tag = "--upload-pack=touch x"
        |       ^^^^^^^^^^^^^^^^^^^^^^^ a tag has ASCII letters, digits and `. _ - / + @ # =` only
    "#);
}

#[test]
fn a_source_that_would_run_a_command() {
    let project = Project::with_sources(&[Source::Git("ext::sh -c touch% ran".into())]);
    insta::assert_snapshot!(project.run(&["fetch"]), @r#"
    exit: 2
    -- stdout --

    -- stderr --
    error: invalid `pins.toml`
       --> pins.toml:8:5
        |
      8 |     { git = "ext::sh -c touch% ran" },
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ a URL, and no `NAME::` of a program that git would run
    "#);
    assert!(!project.path("ran").exists());
    for url in ["fd::17", "hg::https://example.invalid/x", "--upload-pack=touch ran"] {
        Project::with_sources(&[Source::Git(url.into())])
            .run(&["fetch"])
            .code(2)
            .says(&["invalid `pins.toml`", "a URL"]);
        let named = format!("{url}://");
        Project::new().run(&["status", "--tip", "main", &format!("--from={named}")]).code(2).says(&["a URL"]);
    }
}

#[test]
fn a_submodule_of_upstream_is_an_empty_folder() {
    let helper = Project::new();
    let upstream = helper.fork();
    git::git(&upstream, &["reset", "--quiet", "--hard", "v1.0"]);
    let commit = git::git(&upstream, &["rev-parse", "HEAD"]);
    git::git(&upstream, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},extern/sub")]);
    git::git(&upstream, &["commit", "--quiet", "--message", "Use another repository"]);
    git::git(&upstream, &["tag", "--force", "v1.0"]);
    let project = Project::pinned(&git::tree_of(&upstream, "v1.0"), &[Source::Path(upstream)]);
    let message = "Skipping submodules: extern/sub (left empty)";
    project.run(&["apply"]).success().says(&[message]);
    assert_eq!(std::fs::read_dir(project.tree("paged").join("extern/sub")).unwrap().count(), 0);
    assert_eq!(project.run(&["apply"]).success().stderr, "");
}

#[test]
fn a_patch_may_take_a_link_away_and_nothing_else() {
    let project = Project::new();
    project.take_patch(|fork| std::fs::remove_file(fork.join("docs/link")).unwrap());
    project.run(&["apply"]).success();
    assert!(!project.tree("paged").join("docs/link").is_symlink());
    assert!(project.tree("paged").join("README.md").exists());
    project.run(&["edit"]).success();
    project.run(&["export"]).success();
    project.take_patch(|fork| {
        std::fs::remove_file(fork.join("docs/link")).unwrap();
        std::os::unix::fs::symlink("elsewhere", fork.join("docs/link")).unwrap();
    });
    project.run(&["apply"]).code(2).says(&["the patch writes a symlink (mode 120000)"]);
}

#[test]
fn a_link_that_is_a_file_now_is_not_taken_away() {
    let project = Project::new();
    project.take_patch(|fork| std::fs::remove_file(fork.join("docs/link")).unwrap());
    let patch = "patches/paged/0001-change-something.patch";
    let id = git::git(&Upstream::shared().repository(), &["rev-parse", "v1.0:src/add.c"]);
    let old = git::git(&Upstream::shared().repository(), &["rev-parse", "v1.0:docs/link"]);
    let text = project.read(patch).replace("docs/link", "src/add.c").replace(&old, &id);
    project.write(patch, text);
    project.run(&["apply"]).code(1).says(&["src/add.c", "nothing was written"]);
}
