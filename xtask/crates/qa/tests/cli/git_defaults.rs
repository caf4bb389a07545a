//! Defaults for new repositories, set by the user or by a newer git, do not apply to ours: upstream's ids are SHA-1,
//! and libgit2 reads refs stored as files.

use super::support::importing::empty_project;
use super::support::moving::{Move, TIP, greet, upstream_greets_otherwise};
use super::support::{Project, files, git};

#[test]
fn new_repositories_with_another_default_format() {
    for defaults in ["defaultObjectFormat = sha256", "defaultRefFormat = reftable"] {
        let project = Project::new();
        files::write(&project.beside("home/.gitconfig"), format!("[init]\n\t{defaults}\n"));
        project.run(&["apply"]).success();
        project.run(&["edit"]).success();
    }
}

#[test]
fn an_environment_in_which_they_are() {
    for (name, value) in [("GIT_DEFAULT_HASH", "sha256"), ("GIT_DEFAULT_REF_FORMAT", "reftable")] {
        let project = Project::new();
        let mut command = project.command(&["apply"]);
        command.env(name, value);
        project.finish(command).success();
    }
}

/// Variables that would change what `git` itself reads or writes.
const HOSTILE: [(&str, &str); 9] = [
    ("GIT_ATTR_SOURCE", "no-such-tree"),
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "core.abbrev"),
    ("GIT_CONFIG_VALUE_0", "no number"),
    ("GIT_DIR", "/nowhere"),
    ("GIT_EXTERNAL_DIFF", "false"),
    ("GIT_INDEX_FILE", "/nowhere/index"),
    ("GIT_OBJECT_DIRECTORY", "/nowhere"),
    ("GIT_WORK_TREE", "/nowhere"),
];

/// A pin's life cycle with and without these variables in the environment: the written files are the same.
#[test]
fn nothing_in_the_environment_changes_what_is_written() {
    let walk = |environment: &[(&str, &str)]| {
        let moving = Move::new(upstream_greets_otherwise);
        let run = |arguments: &[&str]| {
            let mut command = moving.project.command(arguments);
            command.envs(environment.iter().copied());
            moving.project.finish(command)
        };
        run(&["apply"]).success();
        run(&["edit"]).success();
        let folder = moving.project.path("target/espalier/edit/paged");
        files::edit(&folder.join("src/ring.c"), "at % size", "(at) % size");
        git::commit(&folder, "Change a ring");
        run(&["export"]).success();
        run(&["rebase", "--to", TIP, "--from", moving.upstream.to_str().unwrap()]).code(4);
        moving.solve(greet("hi there"));
        run(&["rebase", "--continue"]).code(4);
        moving.solve(greet("hi there, dear"));
        run(&["rebase", "--continue"]).success();
        let patches = moving.project.path("patches/paged");
        let loose = moving.project.beside("loose.patch");
        files::write(
            &loose,
            "--- a/src/upper.c\n+++ b/src/upper.c\n@@ -1 +1 @@\n-#include \"words.h\"\n+#include <words.h>\n",
        );
        run(&["import", loose.to_str().unwrap(), "--append", "--author", "A <a@b>"]);
        let read = |name: String| (name.clone(), std::fs::read(patches.join(name)).unwrap());
        files::list(&patches).into_iter().map(read).collect::<Vec<_>>()
    };
    let plain = walk(&[]);
    assert_eq!(plain.len(), 4, "{plain:?}");
    assert!(walk(&HOSTILE) == plain);
}

/// Every call of git is made by one function, which passes on only known variables.
#[test]
fn git_is_called_in_one_place() {
    let calls = |folder: &std::path::PathBuf| {
        let mut files = files::list(folder);
        files
            .retain(|file| std::fs::read_to_string(folder.join(file)).unwrap().contains("Run::new(\"git\")"));
        files
    };
    let calling: Vec<String> = files::sources_of_the_tool().iter().flat_map(calls).collect();
    assert_eq!(calling, ["sys/git/command.rs"]);
}

/// Upstreams with SHA-256 ids are detected for every kind of source, and the printed command creates a SHA-1 copy.
#[test]
fn an_upstream_with_sha256_ids_is_named() {
    let project = empty_project();
    let upstream = project.beside("sha256");
    std::fs::create_dir_all(&upstream).unwrap();
    git::git(&upstream, &["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
    files::write(&upstream.join("a.c"), "int a;\n");
    git::commit(&upstream, "Begin");
    git::git(&upstream, &["tag", "v1"]);
    let from = upstream.to_str().unwrap();
    let url = format!("file://{from}");
    git::git(&upstream, &["bundle", "create", "--quiet", "../sha256.bundle", "--all"]);
    let bundle = format!("{from}.bundle");
    for from in [from, &url, &bundle] {
        let refused = project.run(&["init", "--from", from, "--at", "v1", "--variant", "my"]).code(2);
        refused.says(&["has SHA-256 object ids (extensions.objectFormat = sha256)", "fast-export --all"]);
    }
    let other = Project::new();
    for from in [from, &url, &bundle] {
        other
            .run(&["rebase", "--to", "v1", "--from", from])
            .code(2)
            .says(&["has SHA-256 object ids", "fast-export --all"]);
    }
    let copy = "git init --quiet --bare --object-format=sha1 upstream-sha1.git && git -C sha256 fast-export --all \
                --signed-tags=strip | git --git-dir=upstream-sha1.git fast-import --quiet";
    let made = std::process::Command::new("sh").args(["-c", copy]).current_dir(project.beside("")).status();
    assert!(made.unwrap().success());
    let copied = project.beside("upstream-sha1.git");
    project.run(&["init", "--from", copied.to_str().unwrap(), "--at", "v1", "--variant", "my"]).success();
}
