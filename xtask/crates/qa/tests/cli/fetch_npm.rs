//! The npm mirror, with a fake `npm` on PATH that serves a package made here.

use std::path::{Path, PathBuf};

use super::support::{Output, Project, Source, files, git, program_path, upstream::Upstream};

const MEMBER: &str = "package/llama/gitRelease.bundle";

fn project() -> Project {
    Project::with_sources(&[Source::Npm])
}

/// Creates a bundle of one squashed commit, as in the real package.
fn bundle(project: &Project, tree: &str) -> PathBuf {
    let repository = project.beside("squashed");
    files::copy_folder(&Upstream::shared().repository(), &repository);
    let commit = git::git(&repository, &["commit-tree", "-m", "One release", tree]);
    git::git(&repository, &["checkout", "--quiet", "--detach", &commit]);
    let bundle = project.beside("release.bundle");
    git::git(&repository, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "HEAD"]);
    bundle
}

/// Creates a package with `content` as its bundle.
fn package(project: &Project, member: &str, content: &Path) -> PathBuf {
    let folder = project.beside("package-content");
    files::write(&folder.join(member), std::fs::read(content).unwrap());
    let package = project.beside("package.tgz");
    let status = std::process::Command::new("tar")
        .arg("-czf")
        .arg(&package)
        .arg("-C")
        .arg(&folder)
        .arg("package")
        .status()
        .unwrap();
    assert!(status.success());
    package
}

/// Runs `fetch` with an `npm` that copies `package` to the requested path and logs its arguments.
fn fetch(project: &Project, package: &Path) -> Output {
    let programs = project.beside("programs");
    if !programs.exists() {
        program_path::only(&programs, &["git", "cp", "sh"]);
    }
    let arguments = project.beside("arguments");
    files::write_script(
        &programs.join("npm"),
        &format!(
            "echo \"$@\" > {}\nwhile [ $# -gt 0 ]; do\n  [ \"$1\" = --pack-destination ] && to=$2\n  shift\ndone\n\
             cp {} \"$to/made.tgz\"",
            arguments.display(),
            package.display()
        ),
    );
    project.run_with_path(&["fetch"], programs)
}

#[test]
fn the_release_of_the_pinned_tag_is_asked_for() {
    let project = project();
    let package = package(&project, MEMBER, &bundle(&project, &Upstream::shared().tree()));
    fetch(&project, &package).success().says(&["npm node-llama-cpp@3.21.1"]);
    let arguments = std::fs::read_to_string(project.beside("arguments")).unwrap();
    assert!(
        arguments.contains("--ignore-scripts") && arguments.ends_with("-- node-llama-cpp@3.21.1\n"),
        "{arguments}"
    );
    project.run(&["--offline", "apply", "--check"]).success();
}

#[test]
fn a_mirror_that_serves_another_tree() {
    let project = project();
    let fork = project.fork();
    let other = git::tree_of(&fork, "HEAD");
    let repository = project.beside("squashed");
    files::copy_folder(&fork, &repository);
    let commit = git::git(&repository, &["commit-tree", "-m", "Another", &other]);
    git::git(&repository, &["checkout", "--quiet", "--detach", &commit]);
    let bundle = project.beside("release.bundle");
    git::git(&repository, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "HEAD"]);
    let package = package(&project, MEMBER, &bundle);
    let output = fetch(&project, &package).code(1);
    assert!(output.stderr.contains(&format!("served tree {other}")), "{output}");
    assert_nothing_left(&project);
}

#[test]
fn packages_that_are_none() {
    let project = project();
    let good = package(&project, "package/other", &bundle(&project, &Upstream::shared().tree()));
    fetch(&project, &good).code(3).says(&["the package has no `package/llama/gitRelease.bundle`"]);
    let bytes = std::fs::read(&good).unwrap();
    let half = project.beside("half.tgz");
    files::write(&half, &bytes[..bytes.len() / 2]);
    fetch(&project, &half).code(3).says(&["the package is damaged"]);
    let empty = project.beside("empty.tgz");
    files::write(&empty, "");
    fetch(&project, &empty).code(3);
    assert_nothing_left(&project);
}

#[test]
fn a_bundle_that_is_cut_short() {
    let project = project();
    let bundle = bundle(&project, &Upstream::shared().tree());
    let bytes = std::fs::read(&bundle).unwrap();
    files::write(&bundle, &bytes[..bytes.len() - 40]);
    let package = package(&project, MEMBER, &bundle);
    fetch(&project, &package).code(3).says(&["git failed:", "next:"]);
    assert_nothing_left(&project);
}

#[test]
fn a_release_that_the_mirror_does_not_have() {
    let project = project();
    project.edit("pins.toml", "versions = { \"v1.0\"", "versions = { \"v0.9\"");
    let output = project.run(&["fetch"]).code(3);
    insta::assert_snapshot!(output.stderr, @"
    error: no source served the pin `hello` (hello v1.0)
      expected tree f11e88fc55186cde99addc9e847a0385c4f7f056
      npm node-llama-cpp: this mirror has no `v1.0`
      next: or use a local repository or bundle: cargo xtask fetch --from PATH
    ");
}

fn assert_nothing_left(project: &Project) {
    assert_eq!(project.scratch(), Vec::<String>::new());
    let refs = git::git(&project.store(), &["for-each-ref"]);
    assert_eq!(refs, "");
}
