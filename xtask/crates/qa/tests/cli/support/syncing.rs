//! A project that can move its pin with all checks: to a `v2.0` in the pin's own source.

use std::collections::BTreeMap;
use std::path::Path;

use super::github::{FakeGitHub, REPOSITORY};
use super::{Output, Project, files, git, program_path, upstream::Upstream};

/// Creates a project whose upstream has a `v2.0` after the pin, with `change` in it.
pub fn project(change: impl Fn(&Path)) -> Project {
    let project = Project::new();
    let moved = project.beside("moved");
    let shared = Upstream::shared().repository();
    files::copy_folder(&shared, &moved);
    change(&moved);
    git::commit(&moved, "Move on");
    git::git(&moved, &["tag", "v2.0"]);
    let path = |path: &Path| format!("{:?}", path.display().to_string());
    project.edit("pins.toml", &path(&shared), &path(&moved));
    finish_series(&project);
    project
}

/// Adds the trailers that `lint` requires to every patch, and updates the lock.
pub fn finish_series(project: &Project) {
    let trailers =
        b"Upstream-Status: Pending\nDrop-when: never\nVerified-by: this test\nNumerics: identical\n";
    let folder = project.path("patches/paged");
    for file in files::list(&folder) {
        // A patch may have lines that are not UTF-8.
        let patch = std::fs::read(folder.join(&file)).unwrap();
        let end = patch.windows(6).position(|lines| lines == b"\n\n---\n").expect("the end of the message");
        let (message, rest) = patch.split_at(end + 2);
        files::write(&folder.join(&file), [message, trailers, rest].concat());
    }
    project.run(&["lock"]).success();
}

/// Returns everything that a user keeps in the repository.
pub fn user_files(project: &Project) -> BTreeMap<String, Vec<u8>> {
    let paths = files::list(project.root()).into_iter().filter(|path| !path.starts_with("target/"));
    paths.map(|path| (path.clone(), std::fs::read(project.path(&path)).unwrap())).collect()
}

/// Makes the project a repository with one commit.
pub fn commit_all(project: &Project) {
    git::init(project.root());
    files::write(&project.path(".gitignore"), "target/\n");
    git::commit(project.root(), "Start");
}

/// Runs the tool with `--github` on a fake GitHub server.
pub fn to_github(project: &Project, server: &FakeGitHub, arguments: &[&str]) -> Output {
    let arguments = [arguments, &["--github"]].concat();
    let mut command = project.command_with_path(&arguments, &program_path::with_build_tools());
    command.env("GITHUB_TOKEN", "ghs_secret0123456789").env("GITHUB_REPOSITORY", REPOSITORY);
    command.env("GITHUB_API_URL", server.api()).env("GITHUB_REF_NAME", "main");
    project.finish(command)
}

pub fn more_lines(upstream: &Path) {
    files::edit(
        &upstream.join("src/count.c"),
        "#include \"words.h\"",
        "#include <stddef.h>\n#include \"words.h\"",
    );
}
