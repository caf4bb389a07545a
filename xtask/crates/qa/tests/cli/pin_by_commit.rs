//! A pin on a commit that has no tag: every machine must be able to fetch it.

use std::path::{Path, PathBuf};

use super::support::{
    Output, Project, Source, files, git,
    upstream::{TAG, Upstream},
};

/// A project whose pin comes from a repository beside it with newer commits: `main` is two commits ahead.
struct PinFixture {
    project: Project,
    upstream: PathBuf,
    /// The first of the two: no ref points to it directly.
    middle: String,
    tip: String,
}

impl PinFixture {
    fn new() -> PinFixture {
        let project = Project::with_sources(&[Source::Path("../newer".into())]);
        let upstream = project.beside("newer");
        std::fs::rename(project.fork(), &upstream).unwrap();
        git::git(&upstream, &["checkout", "--quiet", "--force", "-B", "main", TAG]);
        let change = |text: &str| {
            files::edit(&upstream.join("src/add.c"), "left + right", text);
            git::commit(&upstream, "Change upstream");
            git::git(&upstream, &["rev-parse", "HEAD"])
        };
        let middle = change("(left + right)");
        files::edit(&upstream.join("src/add.c"), "(left + right)", "left + right");
        let tip = change("right + left");
        // A repository at rest, like a server's: its HEAD must not matter.
        git::git(&upstream, &["checkout", "--quiet", "--detach", TAG]);
        PinFixture { project, upstream, middle, tip }
    }

    /// Serves the repository by git protocol version 0, which does not serve commits by id.
    fn over_git() -> PinFixture {
        let fixture = PinFixture::new();
        let url = format!("file://{}", fixture.upstream.display());
        fixture.project.edit("pins.toml", "path = \"../newer\"", &format!("git = \"{url}\""));
        files::write(&fixture.project.beside("home/.gitconfig"), "[protocol]\n\tversion = 0\n");
        fixture
    }

    fn tree(&self, revision: &str) -> String {
        git::tree_of(&self.upstream, revision)
    }

    /// Asserts that the pin names `commit`, and that a fresh clone of the project builds the same from it.
    fn assert_pinned(&self, commit: &str) -> Output {
        let pins = self.project.read("pins.toml");
        let lines = format!("commit = \"{commit}\"\ntree = \"{}\"\n", self.tree(commit));
        assert!(pins.contains(&lines) && !pins.contains("tag ="), "{pins}");
        let clone = self.project.fresh_clone(&format!("clone-{}", &commit[..6]));
        let applied = clone.run(&["--locked", "apply"]).success();
        clone.run(&["--locked", "--offline", "status"]).success();
        clone.run(&["--locked", "lock", "--check"]).success();
        assert_eq!(clone.scratch(), [""; 0]);
        applied
    }
}

#[test]
fn a_commit_without_a_tag_is_fetched_by_its_id() {
    let fixture = PinFixture::new();
    fixture.project.run(&["rebase", "--to", &fixture.middle]).success();
    fixture.assert_pinned(&fixture.middle);
    fixture.project.run(&["rebase", "--to", &fixture.tip]).success();
    fixture.assert_pinned(&fixture.tip);
    // Then back to a tag.
    fixture.project.run(&["rebase", "--to", TAG]).success();
    assert!(fixture.project.read("pins.toml").contains(&format!("tag = \"{TAG}\"\n")));
    fixture.project.fresh_clone("clone-tag").run(&["--locked", "apply"]).success();
}

#[test]
fn a_branch_is_written_as_its_commit() {
    for reference in ["main", "refs/heads/main"] {
        let fixture = PinFixture::new();
        fixture.project.run(&["rebase", "--to", reference]).success();
        fixture.assert_pinned(&fixture.tip);
    }
    let fixture = PinFixture::over_git();
    fixture.project.run(&["rebase", "--to", "main"]).success();
    fixture.assert_pinned(&fixture.tip);
}

#[test]
fn a_remote_that_gives_no_commit_by_its_id_is_asked_for_what_contains_it() {
    let fixture = PinFixture::over_git();
    let refused = ["fetch", "--quiet", &format!("file://{}", fixture.upstream.display()), &fixture.middle];
    let version_0 = [&["-c", "protocol.version=0"][..], &refused].concat();
    assert!(
        !git::try_git(fixture.project.root().parent().unwrap(), &version_0),
        "it must refuse, or nothing is tested"
    );
    fixture.project.run(&["rebase", "--to", &fixture.middle]).success();
    fixture.assert_pinned(&fixture.middle);
}

#[test]
fn a_tag_stays_a_tag_however_it_was_found() {
    for more in [&[][..], &["--from", "newer"]] {
        let fixture = PinFixture::over_git();
        git::git(&fixture.upstream, &["tag", "--annotate", "--message", "A release", "v2.0", "main"]);
        let mut command = fixture.project.command(&[&["rebase", "--to", "v2.0"], more].concat());
        fixture
            .project
            .finish({
                command.current_dir(fixture.upstream.parent().unwrap());
                command
            })
            .success();
        let pins = fixture.project.read("pins.toml");
        assert!(pins.contains("tag = \"v2.0\"\n") && pins.contains(&fixture.tree("main")), "{pins}");
        fixture.project.fresh_clone("clone").run(&["--locked", "apply"]).success();
    }
}

fn bundle(fixture: &PinFixture, path: &Path, what: &[&str]) {
    git::git(&fixture.upstream, &[&["bundle", "create", "--quiet", path.to_str().unwrap()], what].concat());
}

#[test]
fn a_bundle_has_the_commit_behind_its_tips() {
    let fixture = PinFixture::new();
    fixture.project.run(&["rebase", "--to", &fixture.middle]).success();
    bundle(&fixture, &fixture.project.beside("whole.bundle"), &["--all"]);
    fixture.project.edit("pins.toml", "../newer", "../whole.bundle");
    fixture.assert_pinned(&fixture.middle);
}

/// A mirror squashes: its commit differs, its tree is the pinned one.
#[test]
fn a_copy_of_the_tree_under_another_commit_will_do() {
    let fixture = PinFixture::new();
    fixture.project.run(&["rebase", "--to", &fixture.tip]).success();
    let squashed = fixture.project.beside("squashed");
    git::init(&squashed);
    git::git(&squashed, &["fetch", "--quiet", fixture.upstream.to_str().unwrap(), "main"]);
    let commit = git::git(&squashed, &["commit-tree", "-m", "All of it", "FETCH_HEAD^{tree}"]);
    git::git(&squashed, &["update-ref", "refs/heads/main", &commit]);
    bundle(
        &PinFixture { upstream: squashed, ..PinFixture::new() },
        &fixture.project.beside("one.bundle"),
        &["HEAD"],
    );
    fixture.project.edit("pins.toml", "../newer", "../one.bundle");
    fixture.assert_pinned(&fixture.tip);
}

/// The HEAD of a source is not the requested commit, and no hint suggests using it instead.
#[test]
fn a_source_without_the_commit_does_not_pin_another_tree() {
    let fixture = PinFixture::new();
    fixture.project.run(&["rebase", "--to", &fixture.tip]).success();
    let old = fixture.project.beside("old");
    git::git(
        fixture.project.root().parent().unwrap(),
        &["clone", "--quiet", "--branch", TAG, "newer", "old"],
    );
    git::git(&old, &["checkout", "--quiet", "-B", "main", TAG]);
    git::git(&old, &["remote", "remove", "origin"]);
    git::git(&old, &["reflog", "expire", "--expire=now", "--all"]);
    git::git(&old, &["gc", "--quiet", "--prune=now"]);
    fixture.project.edit("pins.toml", "../newer", "../old");
    let clone = fixture.project.fresh_clone("clone");
    insta::assert_snapshot!(clone.run(&["apply"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello beaf4aaee71a9ae2ed896d0829b3e29e4aab0fe2 from path ../old
    error: no source served the pin `hello` (hello beaf4aaee71a9ae2ed896d0829b3e29e4aab0fe2)
      expected tree 5841ecddc2bc6da1ade4888cdd8076c8d97ef04f
      path ../old: it has no such commit: no branch or tag there leads to it
        its HEAD is something else: tree f11e88fc55186cde99addc9e847a0385c4f7f056
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
}

/// Edited by hand, or merged from two branches that both moved the pin.
#[test]
fn a_commit_and_a_tree_that_do_not_belong_together() {
    let fixture = PinFixture::new();
    fixture.project.run(&["rebase", "--to", &fixture.tip]).success();
    fixture.project.edit("pins.toml", &fixture.tree(&fixture.tip), &fixture.tree(&fixture.middle));
    let clone = fixture.project.fresh_clone("clone");
    insta::assert_snapshot!(clone.run(&["apply"]), @"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello beaf4aaee71a9ae2ed896d0829b3e29e4aab0fe2 from path ../newer
    error: no source served the pin `hello` (hello beaf4aaee71a9ae2ed896d0829b3e29e4aab0fe2)
      expected tree 885d62441c5f61b7edb1b06359f935b4fc0a66d4
      path ../newer: served tree 5841ecddc2bc6da1ade4888cdd8076c8d97ef04f, the pin says 885d62441c5f61b7edb1b06359f935b4fc0a66d4
        `commit` and `tree` of `[pins.hello]` do not belong together
      next: git rev-parse beaf4aaee71a9ae2ed896d0829b3e29e4aab0fe2^{tree}    # in a clone that you trust: which of the two is right?
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
}

/// An earlier version of this tool wrote `tag = "main"`, which no fetch of tags can find.
#[test]
fn a_branch_given_as_a_tag_is_refused_with_the_right_key() {
    let fixture = PinFixture::over_git();
    fixture.project.edit("pins.toml", &format!("tag = \"{TAG}\""), "tag = \"main\"");
    fixture.project.edit("pins.toml", &Upstream::shared().tree(), &fixture.tree("main"));
    let hints = fixture.project.run(&["fetch"]).code(3);
    insta::assert_snapshot!(hints, @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello main from git file://[BESIDE]/newer
    error: no source served the pin `hello` (hello main)
      expected tree 5841ecddc2bc6da1ade4888cdd8076c8d97ef04f
      git file://[BESIDE]/newer: git failed: couldn't find remote ref refs/tags/main
      next: if `main` is a branch, pin its commit: `commit = ID` in place of `tag`; in a clone, `git log --all --format='%H %T' | grep 5841ecddc2bc6da1ade4888cdd8076c8d97ef04f` names it
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
    let named = "git log --all --format='%H %T' | grep ";
    let search = format!("{named}{}", fixture.tree("main"));
    assert!(hints.stderr.contains(&search), "{hints}");
    let found = std::process::Command::new("sh")
        .args(["-c", &search])
        .current_dir(&fixture.upstream)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&found.stdout).starts_with(&fixture.tip));
}
