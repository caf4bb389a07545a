//! `gc` removes unneeded generated files and nothing else: neither the user's files nor those of a running command.

use std::time::Duration;

use espalier_dist::plan::rust_library::RustLibrary;

use super::support::held_lock::HeldLock;
use super::support::kill::{self, Kills};
use super::support::{Project, files, git};

const MARK: &str =
    "# Made by cargo xtask: all in here is generated, and is taken away without a question.\n*\n";

/// Paths below `target/` that the test creates and `gc` removes.
const GOES: [&str; 15] = [
    "espalier/applied/old.lock",
    "espalier/bench/result.json",
    "espalier/build/old-cpu-native/build.ninja",
    "espalier/cargo/old/file",
    "espalier/dist/paged-old/bin/llama-server",
    "espalier/edit-before/paged.2/file",
    "espalier/gate/model.gguf",
    "espalier/images/paged-old/index.json",
    "espalier/logs/build-old.log",
    "espalier/models/old-0123456789abcdef/old.gguf",
    "espalier/tools/cmake-0.1/bin/cmake",
    "espalier/ui/0000000000000000000000000000000000000000/index.html",
    "espalier/suites/report.json",
    "toolchains/card-0123456789abcdef/bin/cardcc",
    "toolchains/tmp/toolchain-x/file",
];

/// Paths that the test creates and `gc` keeps.
const STAYS: [&str; 10] = [
    "debug/xtask",
    "espalier/build/paged-cpu-native/build.ninja",
    "espalier/dist/paged-cpu-native/manifest.json",
    "espalier/edit-before/paged/file",
    "espalier/images/stock-cpu-native/index.json",
    "espalier/notes/of-mine.txt",
    "espalier/resolutions/a",
    "espalier/tools/python-0123456789abcdef/file",
    "espalier/trees/old/of-a-person.txt",
    "toolchains/my-own/bin/cc",
];

/// Creates a project in which both variants are applied, with all paths of the lists.
fn project() -> Project {
    let project = Project::new();
    project.run(&["apply"]).success();
    project.run(&["apply", "--variant", "stock"]).success();
    project.write("target/toolchains/.gitignore", MARK);
    for path in GOES.iter().chain(&STAYS) {
        project.write(&format!("target/{path}"), "x");
    }
    project
}

fn there(project: &Project, paths: &[&str]) -> Vec<String> {
    let is_there = |path: &&&str| project.path(&format!("target/{path}")).exists();
    paths.iter().filter(is_there).map(ToString::to_string).collect()
}

#[test]
fn each_kind_goes_or_stays() {
    let project = project();
    let before = files::list(&project.path("target"));
    let stdout = project.run(&["gc", "--dry-run"]).success().stdout;
    for what in [
        "target/espalier/build/old-cpu-native: no such variant and flavor\n",
        "target/espalier/applied/old.lock: no such variant\n",
        "target/espalier/edit-before/paged.2: an edit repository that was replaced\n",
        "target/espalier/ui/0000000000000000000000000000000000000000: the page of no pinned tree\n",
        "target/espalier/tools/cmake-0.1: another version is pinned\n",
        "target/toolchains/card-0123456789abcdef: `ci/toolchains.toml` defines another version\n",
        "target/espalier/logs: left by checks and long steps\n",
        "kept: target/espalier/trees/old, which has edits\n",
        "kept: target/espalier/store.git as it is, whose objects target/espalier/edit-before/paged borrows\n",
        "would free 0.0 MB of ",
    ] {
        assert!(stdout.contains(what), "no {what:?} in\n{stdout}");
    }
    assert_eq!(files::list(&project.path("target")), before);
    let stdout = project.run(&["gc"]).success().stdout;
    assert!(stdout.contains("\nfreed 0.0 MB of "), "{stdout}");
    assert_eq!(there(&project, &GOES), [""; 0]);
    assert_eq!(there(&project, &STAYS), STAYS);
    assert_eq!(project.scratch(), [""; 0]);
    // The remaining files are sufficient.
    project.run(&["--offline", "--locked", "apply"]).success();
    let stdout = project.run(&["gc"]).success().stdout;
    assert!(stdout.starts_with("kept:") && stdout.contains("\nfreed 0.0 MB"), "{stdout}");
}

#[test]
fn caches_go_when_they_are_asked_for() {
    let project = project();
    let build = "espalier/build/paged-cpu-native/build.ninja";
    let set = |days: u64| {
        let time = std::time::SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        for path in
            [project.path(&format!("target/{build}")), project.path("target/espalier/build/paged-cpu-native")]
        {
            std::fs::File::open(path).unwrap().set_modified(time).unwrap();
        }
    };
    set(8);
    project.run(&["gc", "--keep-days", "8"]).success();
    assert_eq!(there(&project, &[build]), [build]);
    let stdout = project.run(&["gc", "--keep-days", "7"]).success().stdout;
    assert!(stdout.contains("build/paged-cpu-native: not written to for 8 days"), "{stdout}");
    assert_eq!(there(&project, &[build]), [""; 0]);
    let stdout = project.run(&["gc", "--max-size", "0"]).success().stdout;
    assert!(stdout.contains("tools/python-0123456789abcdef: more than the largest size"), "{stdout}");
    assert_eq!(there(&project, &STAYS).len(), STAYS.len() - 2);
    project.run(&["gc", "--max-size", "much"]).code(2).says(&["expected a size such as 20G or 500M"]);
    project.run(&["--offline", "--locked", "apply"]).success();
}

/// Creates a ref of a pin that no `pins.toml` names, with an object that only this ref reaches.
fn forgotten_pin(project: &Project) -> String {
    let blob = project.beside("blob");
    files::write(&blob, "of an old pin\n");
    let store = project.store();
    let id =
        git::git(&store, &["hash-object", "-w", "--no-filters", blob.to_str().unwrap()]).trim().to_string();
    git::git(&store, &["update-ref", &format!("refs/espalier/pins/{id}"), &id]);
    id
}

fn is_in_store(project: &Project, id: &str) -> bool {
    let mut asked = std::process::Command::new("git");
    asked.arg("--git-dir").arg(project.store()).args(["cat-file", "-e", id]);
    asked.output().unwrap().status.success()
}

/// Locks the file that marks a stage as that of a running command.
fn held_by_this_process(project: &Project, stage: &str) -> HeldLock {
    let path = project.path(&format!("target/espalier/{stage}.lock"));
    files::write(&path, "");
    HeldLock::exclusive(std::fs::File::open(path).unwrap())
}

#[test]
fn unreachable_objects_are_removed_unless_another_repository_borrows_them() {
    let project = Project::new();
    project.run(&["apply"]).success();
    project.run(&["edit"]).success();
    let id = forgotten_pin(&project);
    for busy in ["edit/paged", "rebase/paged", "stage/stage-abc"] {
        if busy != "edit/paged" {
            files::write(&project.path(&format!("target/espalier/{busy}/file")), "");
        }
        let held = busy.starts_with("stage/").then(|| held_by_this_process(&project, busy));
        let stdout = project.run(&["gc"]).success().stdout;
        let says =
            format!("kept: target/espalier/store.git as it is, whose objects target/espalier/{busy} borrows");
        assert!(stdout.contains(&says), "{stdout}");
        assert!(is_in_store(&project, &id), "{busy}");
        drop(held);
        std::fs::remove_dir_all(project.path(&format!("target/espalier/{busy}"))).unwrap();
    }
    // The stage of a killed run keeps nothing.
    project.write("target/espalier/stage/stage-abc/file", "");
    let stdout = project.run(&["gc"]).success().stdout;
    assert!(stdout.contains("target/espalier/store.git: objects that no pin leads to"), "{stdout}");
    assert!(!is_in_store(&project, &id));
    assert!(!project.run(&["gc"]).success().stdout.contains("store.git"));
    std::fs::remove_dir_all(project.tree("paged")).unwrap();
    project.run(&["--offline", "--locked", "apply"]).success();
    project.run(&["--offline", "apply", "--variant", "stock"]).success();
    project.run(&["--offline", "edit"]).success();
}

#[test]
fn the_tree_of_a_deleted_variant() {
    let project = Project::new();
    project.run(&["apply", "--variant", "stock"]).success();
    files::copy_folder(&project.tree("stock"), &project.tree("old"));
    let file = |name: &str| project.path("target/espalier/trees").join(name);
    std::fs::copy(file("stock.index"), file("old.index")).unwrap();
    files::edit(&project.tree("old").join("src/add.c"), "left + right", "right + left");
    assert!(
        project.run(&["gc"]).success().stdout.contains("kept: target/espalier/trees/old, which has edits")
    );
    files::edit(&project.tree("old").join("src/add.c"), "right + left", "left + right");
    assert!(project.run(&["gc"]).success().stdout.contains("target/espalier/trees/old: no such variant"));
    assert!(!project.tree("old").exists() && !file("old.index").exists());
    assert!(project.tree("stock").exists() && file("stock.index").exists());
}

#[test]
fn a_link_is_left_alone() {
    let project = project();
    let precious = project.beside("precious");
    files::write(&precious.join("file"), "mine");
    std::os::unix::fs::symlink(&precious, project.path("target/espalier/build/other")).unwrap();
    project.run(&["gc", "--max-size", "0"]).success();
    assert!(precious.join("file").exists() && project.path("target/espalier/build/other").exists());
}

#[test]
fn a_kill_leaves_what_is_needed() {
    let mut kills = Kills::of("gc");
    let whole = kill::run_and_kill(project().command(&["gc"]), Duration::from_secs(60));
    let points = u32::try_from(kill::points(4)).unwrap();
    for point in 0..points {
        let project = project();
        std::fs::remove_dir_all(project.path("target/espalier/edit-before")).unwrap();
        let id = forgotten_pin(&project);
        kills.run(project.command(&["gc"]), whole.mul_f64((f64::from(point) + 0.5) / f64::from(points)));
        kills.left(if is_in_store(&project, &id) { "the object" } else { "no object" });
        project.run(&["--offline", "--locked", "apply"]).success();
        project.run(&["gc"]).success();
        assert_eq!(there(&project, &GOES), [""; 0]);
        assert_eq!(there(&project, &STAYS).len(), STAYS.len() - 1);
        assert_eq!(project.scratch(), [""; 0]);
    }
}

/// `gc` would remove a target directory that it does not know, and everything in it would be recompiled.
#[test]
fn every_target_directory_of_this_repository_is_known() {
    let sources = files::of_this_repository("xtask");
    let mut found = std::collections::BTreeSet::new();
    for file in files::list(&sources).iter().filter(|file| file.ends_with(".rs") && !file.contains("tests/"))
    {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        let names = text.split("cargo_target(\"").skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(names.map(str::to_string));
    }
    found.extend([RustLibrary::Kernels, RustLibrary::Front].map(|library| library.folder().to_string()));
    assert_eq!(Vec::from_iter(found), espalier_core::plan::gc::CARGO);
}
