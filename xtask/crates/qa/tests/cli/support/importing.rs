//! An empty project, and a fork with a realistic history.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::upstream::{TAG, Upstream, made_once};
use super::{Output, Project, files, git};

/// Creates a folder that is not a project yet.
pub fn empty_project() -> Project {
    let project = Project::new();
    for name in ["pins.toml", "ci", "overlay", "patches"] {
        let path = project.path(name);
        let is_folder = path.is_dir();
        if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }
    project
}

/// Creates a project with one variant, `my`, that has no patches.
pub fn started() -> Project {
    let project = empty_project();
    let from = Upstream::shared().repository();
    project.run(&["init", "--from", from.to_str().unwrap(), "--at", TAG, "--variant", "my"]).success();
    project
}

/// Imports `path` as the work of one author.
pub fn import(project: &Project, path: &Path, more: &[&str]) -> Output {
    let author = ["--author", "A <a@example.org>"];
    project.run(&[&["import", path.to_str().unwrap()], &author[..], more].concat())
}

/// Imports `text` as the file of this name, and returns the patch that is written and the output.
pub fn imported_patch(text: &str, file: &str) -> (String, Output) {
    let project = started();
    let path = project.beside(file);
    files::write(&path, text);
    let output = import(&project, &path, &[]).success();
    let name = files::list(&project.path("patches/my")).remove(0);
    (project.read(&format!("patches/my/{name}")), output)
}

/// Returns a change of one line; a second one builds on the first.
pub fn change(prefixes: [&str; 2], from: &str, to: &str) -> String {
    let [old, new] = prefixes;
    format!(
        "--- {old}src/name.c\n+++ {new}src/name.c\n@@ -3,3 +3,3 @@\n const char * words_name(void) {{\n-    return \
         \"{from}\";\n+    return \"{to}\";\n }}\n"
    )
}

/// Returns the first change.
pub fn first() -> String {
    change(["a/", "b/"], "world", "people")
}

/// Returns a change that builds on the first one.
pub fn second() -> String {
    change(["a/", "b/"], "people", "folk")
}

/// Paths that `--leave-out` has to name for [`fork`].
pub const NOT_SAID: [&str; 2] = ["docs/shortcut", "a\tb.txt"];

/// Creates upstream, with two commits after its tag, and a fork of it beside `project`: 42 commits, among them a merge
/// with a conflict, a merge of upstream, an empty commit, a revert, a link, a tab in a name, a change that upstream
/// applied before the fork merged it, and one that upstream applied since. Returns the fork's folder; its
/// `upstream/main` is upstream's branch.
pub fn fork(project: &Project) -> PathBuf {
    static SHARED: OnceLock<PathBuf> = OnceLock::new();
    let sources = [include_str!("importing.rs"), include_str!("upstream.rs")];
    let shared = SHARED.get_or_init(|| made_once("fork", &sources, make_fork));
    let (upstream, fork) = (project.beside(UPSTREAM), project.beside(FORK));
    files::copy_folder(&shared.join(UPSTREAM), &upstream);
    files::copy_folder(&shared.join(FORK), &fork);
    git::git(&fork, &["remote", "set-url", "upstream", upstream.to_str().unwrap()]);
    fork
}

const UPSTREAM: &str = "upstream";
const FORK: &str = "the fork";

/// Creates the repositories that [`fork`] copies, with more than a hundred calls of git.
fn make_fork(folder: &Path) {
    let (upstream, fork) = (folder.join(UPSTREAM), folder.join(FORK));
    files::copy_folder(&Upstream::shared().repository(), &upstream);
    git::git(folder, &["clone", "--quiet", "--origin=upstream", UPSTREAM, FORK]);
    git::git(&fork, &["reset", "--quiet", "--hard", TAG]);
    for number in 1..=30 {
        files::write(&fork.join("src/fork.c"), counted(number));
        git::commit(&fork, &format!("Count to {number}"));
    }
    small_commits(&fork);
    merge_with_conflict(&fork);
    upstream_moves(&upstream);
    git::git(&fork, &["fetch", "--quiet", "upstream"]);
    git::git(&fork, &["merge", "--quiet", "-m", "Merge upstream", "upstream/main~1"]);
    files::edit(&fork.join("src/name.c"), "\"world\"", "\"people\"");
    git::commit(&fork, "Name people");
}

fn counted(number: usize) -> String {
    (1..=number).map(|line| format!("int count_{line};\n")).collect()
}

fn small_commits(fork: &Path) {
    git::git(fork, &["commit", "--quiet", "--allow-empty", "--message", "Change nothing"]);
    files::edit(&fork.join("src/add.c"), "left + right", "right + left");
    git::commit(fork, "Add the other way round\n\nWhy:\n\n---\nnot the end of it");
    git::git(fork, &["revert", "--no-edit", "HEAD"]);
    files::edit(&fork.join("src/length.c"), "int length = 0;", "int length = 0; // so far");
    git::commit(fork, "Say what the length is");
    files::edit(&fork.join("src/join.c"), "{}", "{ }");
    git::commit(fork, "Give the loop room");
    std::os::unix::fs::symlink("old/story.txt", fork.join("docs/shortcut")).unwrap();
    git::commit(fork, "Link to the story");
    files::write(&fork.join("a\tb.txt"), "tab\n");
    git::commit(fork, "Name a file oddly");
}

fn merge_with_conflict(fork: &Path) {
    git::git(fork, &["switch", "--quiet", "--create", "side"]);
    files::edit(&fork.join("src/greet.c"), "\"hello\"", "\"hello from the side\"");
    git::commit(fork, "Greet from the side");
    git::git(fork, &["switch", "--quiet", "main"]);
    files::edit(&fork.join("src/greet.c"), "\"hello\"", "\"hello from main\"");
    git::commit(fork, "Greet from main");
    assert!(!git::try_git(fork, &["merge", "--quiet", "side"]));
    git::git(fork, &["checkout", "--quiet", "--ours", "src/greet.c"]);
    files::edit(&fork.join("src/greet.c"), "hello from main", "hello from main and the side");
    git::commit(fork, "Merge the side");
}

/// The first of the three is in the fork before it merges upstream; the last one is not merged.
fn upstream_moves(upstream: &Path) {
    files::edit(&upstream.join("src/length.c"), "int length = 0;", "int length = 0; // so far");
    git::commit(upstream, "length: say what it is");
    files::edit(&upstream.join("src/ring.c"), "at % size", "(at + size) % size");
    git::commit(upstream, "ring: take negative places");
    files::edit(&upstream.join("src/join.c"), "{}", "{ }");
    git::commit(upstream, "join: give the loop room");
}

/// Applies `patches/VARIANT` with git to the variant's pin; returns the tree id.
pub fn applied_by_git(project: &Project, repository: &Path, base: &str, variant: &str) -> String {
    let work = project.beside("applied by git");
    let name = repository.to_str().unwrap();
    git::git(&project.beside(""), &["clone", "--quiet", name, "applied by git"]);
    git::git(&work, &["checkout", "--quiet", "--detach", base]);
    let folder = project.path("patches").join(variant);
    for patch in files::list(&folder) {
        let path = folder.join(patch);
        git::git(&work, &["am", "--quiet", "--keep-cr", path.to_str().unwrap()]);
    }
    let tree = git::tree_of(&work, "HEAD");
    std::fs::remove_dir_all(work).unwrap();
    tree
}
