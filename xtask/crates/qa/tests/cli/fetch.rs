//! Successful `fetch`: every kind of source, a second run, the second source.

use super::support::{
    Project, Source, files, git, program_path,
    upstream::{TAG, Upstream},
};

fn bundle(project: &Project) -> std::path::PathBuf {
    let path = project.beside("upstream.bundle");
    let upstream = Upstream::shared().repository();
    git::git(&upstream, &["bundle", "create", "--quiet", path.to_str().unwrap(), TAG, "HEAD"]);
    path
}

fn file_url() -> String {
    format!("file://{}", Upstream::shared().repository().display())
}

/// Asserts that the store has the complete pin, and that no scratch file is left.
fn assert_fetched(project: &Project) {
    let tree = Upstream::shared().tree();
    assert_eq!(git::tree_of(&project.store(), &format!("refs/espalier/pins/{tree}")), tree);
    git::git(&project.store(), &["fsck", "--full", "--strict"]);
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn from_a_repository_on_this_machine() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["fetch"]), @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056 from path [UPSTREAM]
    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    ");
    assert_fetched(&project);
}

#[test]
fn from_a_git_remote_one_commit_deep() {
    let project = Project::with_sources(&[Source::Git(file_url())]);
    let fork = project.fork();
    git::git(&fork, &["tag", "--force", TAG]);
    let tree = git::tree_of(&fork, TAG);
    let deep = Project::pinned(&tree, &[Source::Git(format!("file://{}", fork.display()))]);
    deep.run(&["fetch"]).success();
    let shallow = deep.read("target/espalier/store.git/shallow");
    assert_eq!(shallow.trim(), git::git(&fork, &["rev-parse", TAG]), "only the tagged commit comes");
    git::git(&deep.store(), &["fsck", "--full", "--strict"]);
    insta::assert_snapshot!(project.run(&["fetch"]), @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056 from git file://[UPSTREAM]
    -- stderr --
        Fetching hello v1.0 from git file://[UPSTREAM]
    ");
    assert_fetched(&project);
}

#[test]
fn from_a_bundle() {
    let project = Project::with_sources(&[]);
    let path = bundle(&project);
    let with_bundle = Project::with_sources(&[Source::Path(path.clone())]);
    with_bundle.run(&["fetch"]).success();
    assert_fetched(&with_bundle);
    let named = project.run(&["fetch", "--from", path.to_str().unwrap()]);
    insta::assert_snapshot!(named, @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056 from path [BESIDE]/upstream.bundle
    -- stderr --
        Fetching hello v1.0 from path [BESIDE]/upstream.bundle
    ");
    assert_fetched(&project);
}

#[test]
fn a_relative_path_is_relative_to_where_the_person_is() {
    let project = Project::with_sources(&[]);
    bundle(&project);
    let mut command = project.command(&["fetch", "--from", "../../upstream.bundle"]);
    command.current_dir(project.path("patches"));
    project.finish(command).success();
    assert_fetched(&project);
}

#[test]
fn the_second_time_starts_no_process_and_needs_no_source() {
    let project = Project::new();
    project.run(&["fetch"]).success();
    let before = files::times(&project.store());
    project.edit("pins.toml", &Upstream::shared().repository().display().to_string(), "/not/there");
    insta::assert_snapshot!(project.run_with_path(&["--offline", "fetch"], ""), @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056 already there
    -- stderr --
    ");
    assert_eq!(files::differences(&before, &files::times(&project.store())), [""; 0]);
}

#[test]
fn the_second_source_helps_when_the_first_is_not_there() {
    let there = Source::Path(Upstream::shared().repository());
    let project = Project::with_sources(&[Source::Path("not-there".into()), there]);
    insta::assert_snapshot!(project.run(&["fetch"]), @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056 from path [UPSTREAM]
    -- stderr --
        Fetching hello v1.0 from path not-there
        Fetching hello v1.0 from path [UPSTREAM]
    warning: path not-there: `not-there` is not there
    ");
    assert_fetched(&project);
}

#[test]
fn the_second_source_helps_when_the_first_serves_another_tree() {
    let liar = Project::new();
    let fork = liar.fork();
    git::git(&fork, &["tag", "--force", TAG]);
    let sources = [Source::Path(fork), Source::Path(Upstream::shared().repository())];
    let project = Project::with_sources(&sources);
    let output = project.run(&["fetch"]).success().says(&["warning: path", "served tree", "the pin says"]);
    assert!(output.stdout.contains("from path [UPSTREAM]"), "{output}");
    assert_fetched(&project);
    let objects = git::git(&project.store(), &["cat-file", "--batch-all-objects", "--batch-check"]);
    let lie = git::tree_of(&liar.beside("fork"), TAG);
    assert!(!objects.contains(&lie), "the other tree was kept:\n{objects}");
}

#[test]
fn dry_run_names_the_sources_and_writes_nothing() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["fetch", "--dry-run"]), @r"
    exit: 0
    -- stdout --
    hello v1.0 tree f11e88fc55186cde99addc9e847a0385c4f7f056, first of: path [UPSTREAM]
    -- stderr --
    ");
    assert!(!project.path("target").exists());
}

#[test]
fn json_says_the_same_to_machines() {
    let project = Project::new();
    let json = project.run(&["--json", "fetch"]).success().json();
    assert_eq!(json["pins"][0]["tree"], Upstream::shared().tree());
    assert_eq!(json["pins"][0]["tag"], TAG);
}

#[test]
fn git_variables_of_the_caller_are_ignored() {
    let project = Project::new();
    let mut command = project.command(&["fetch"]);
    let hostile = project.beside("another-repository");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"] {
        command.env(name, &hostile);
    }
    command.env("GIT_CONFIG_PARAMETERS", "'fetch.fsckObjects=perhaps'").env("GIT_NO_REPLACE_OBJECTS", "1");
    command.env("GIT_CONFIG_COUNT", "many");
    project.finish(command).success();
    assert_fetched(&project);
    assert!(!hostile.exists());
    let path = program_path::only(&project.beside("bin"), &["git"]);
    project.run_with_path(&["fetch"], path).success();
}
