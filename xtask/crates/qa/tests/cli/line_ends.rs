//! A checkout in which git converted line endings, as Git for Windows does by default.

use super::support::importing::empty_project;
use super::support::upstream::{TAG, Upstream};
use super::support::{Project, files, git};

/// Clones the project with the settings of Git for Windows.
fn converted_clone(project: &Project) -> Project {
    let clone = project.fresh_clone("windows");
    std::fs::remove_dir_all(clone.root()).unwrap();
    let (from, to) = (project.root().to_str().unwrap(), clone.root().to_str().unwrap());
    git::git(&project.beside(""), &["clone", "--quiet", "-c", "core.autocrlf=true", from, to]);
    clone
}

fn rules(project: &Project) -> Vec<String> {
    let lint = project.run(&["--json", "lint"]).json();
    let findings = lint["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["rule"].as_str().unwrap().to_string()).collect()
}

#[test]
fn init_and_import_write_what_keeps_git_from_it() {
    let project = empty_project();
    let upstream = Upstream::shared().repository();
    let from = upstream.to_str().unwrap();
    project.run(&["init", "--from", from, "--at", TAG, "--variant", "my"]).success();
    assert!(project.read(".gitattributes").contains("\n/patches/** -text\n"));
    // The user's own rules are kept, and ours are restored if they were lost.
    project.write(".gitattributes", "* text=auto\n");
    let fork = Upstream::shared().fork();
    let folder = project.beside("formatted");
    git::git(&fork, &["format-patch", "--quiet", "--output-directory", folder.to_str().unwrap(), TAG]);
    project.run(&["import", folder.to_str().unwrap()]).success();
    let attributes = project.read(".gitattributes");
    assert!(
        attributes.starts_with("* text=auto\n") && attributes.contains("\n/patches/** -text\n"),
        "{attributes}"
    );
    let clone = converted_clone(&project);
    for name in files::list(&clone.path("patches/my")) {
        let path = format!("patches/my/{name}");
        assert_eq!(clone.read(&path), project.read(&path), "{path}");
    }
    assert!(!rules(&clone).contains(&"line-ends".to_string()));
    for command in [&["lock", "--check"][..], &["apply"]] {
        clone.run(command).success();
    }
}

#[test]
fn a_converted_checkout_is_one_finding_with_a_way_back() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let before = rules(&project);
    let clone = converted_clone(&project);
    assert!(clone.read("patches/paged/0001-greet-more-warmly.patch").contains("\r\n"));
    let lint = clone.run(&["--json", "lint"]).code(1).json();
    let finding = &lint["findings"][0];
    assert_eq!((lint["findings"].as_array().unwrap().len(), &finding["rule"]), (1, &"line-ends".into()));
    clone.run(&["apply"]).code(2).says(&["`.gitattributes`", "next: cargo xtask lint"]);
    let (_, commands) = finding["hint"].as_str().unwrap().split_once(": ").unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-euc", commands]).current_dir(clone.root()).env("HOME", clone.beside("home"));
    clone.finish(shell).success();
    assert_eq!(rules(&clone), before);
    for command in [&["lock", "--check"][..], &["apply"]] {
        clone.run(command).success();
    }
}

/// The files of this repository that are compared byte by byte, according to git's own reading of the attributes.
#[test]
fn nothing_of_this_repository_is_converted() {
    let root = files::of_this_repository("");
    let folder = tempfile::tempdir().unwrap();
    git::init(folder.path());
    std::fs::copy(root.join(".gitattributes"), folder.path().join(".gitattributes")).unwrap();
    let asked = |path: &str| git::git(folder.path(), &["check-attr", "text", "eol", "--", path]);
    for path in ["patches/paged/0001-x.patch", "overlay/shim/x.cpp", "espalier.lock", "pins.toml"] {
        assert!(asked(path).contains("text: unset"), "{path}: {}", asked(path));
    }
    for path in
        ["docs/reference/commands.md", "kernels/src/lib.rs", "ci/x.json", "xtask/x/install.sh", "Cargo.lock"]
    {
        assert!(asked(path).contains("eol: lf"), "{path}: {}", asked(path));
    }
}
