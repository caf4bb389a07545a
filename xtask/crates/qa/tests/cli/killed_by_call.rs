//! SIGKILL and faults at chosen system calls, which random moments rarely hit. Run manually, with `strace`:
//! `ESPALIER_KILL_CALLS=1 cargo test --package espalier-qa --test cli killed_by_call -- --nocapture`.

use super::support::by_call::{again, try_all, unless_done, wanted};
use super::support::editing::{self, edit_folder, rebase};
use super::support::moving::{Move, TIP, above_everything, greet, upstream_greets_otherwise};
use super::support::upstream::Upstream;
use super::support::{Project, files, git, importing};

#[test]
fn a_rebase_that_goes_through() {
    if !wanted() {
        return;
    }
    let moving = Move::new(above_everything("src/greet.c"));
    moving.project.run(&["lock"]).success();
    let from = moving.upstream.to_str().unwrap().to_string();
    let arguments = ["rebase", "--to", TIP, "--from", &from];
    try_all("rebase", &moving.project, &arguments, &unless_done(&moving.project, &arguments));
}

#[test]
fn the_end_of_a_rebase_with_conflicts() {
    if !wanted() {
        return;
    }
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    moving.rebase(&[]).code(4);
    for words in ["hi there", "hi there, dear"] {
        moving.solve(greet(words));
        if words == "hi there" {
            moving.run(&["--continue"]).code(4);
        }
    }
    let arguments = ["rebase", "--continue"];
    try_all("rebase --continue", &moving.project, &arguments, &unless_done(&moving.project, &arguments));
}

/// The repository is recreated the first time, and exists already the second time.
#[test]
fn an_edit() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    project.run(&["lock"]).success();
    try_all("edit", &project, &["edit"], &again(&project, &["edit"]));
    project.run(&["edit"]).success();
    project.write("overlay/extra/espalier/note.txt", "another one\n");
    project.write("overlay/extra/espalier/second.txt", "a new one\n");
    project.run(&["lock"]).success();
    try_all("edit again", &project, &["edit"], &again(&project, &["edit"]));
}

#[test]
fn an_export() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    editing::take_rich_series(&project);
    let folder = editing::edit(&project);
    rebase(&folder, "1h;1d;2G");
    assert_eq!(folder, edit_folder(&project, "paged"));
    try_all("export", &project, &["export"], &again(&project, &["export"]));
}

#[test]
fn an_undo() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    editing::take_rich_series(&project);
    rebase(&editing::edit(&project), "1h;1d;2G");
    project.run(&["export"]).success();
    try_all("undo", &project, &["undo"], &unless_done(&project, &["undo"]));
}

#[test]
fn an_import() {
    if !wanted() {
        return;
    }
    let project = importing::empty_project();
    let upstream = Upstream::shared();
    let (base, patches) = (upstream.repository(), upstream.series());
    let init = ["init", "--from", base.to_str().unwrap(), "--at", "v1.0", "--variant", "my"];
    project.run(&init).success();
    let arguments = ["import", patches.to_str().unwrap()];
    try_all("import", &project, &arguments, &unless_done(&project, &arguments));
}

#[test]
fn a_fetch_and_an_apply() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    project.run(&["lock"]).success();
    std::fs::remove_dir_all(project.path("target")).unwrap();
    let is_whole = |_: bool| {
        let json = project.run(&["--json", "apply"]).success().json();
        assert_eq!(files::tree_id(&project.tree("paged")), json["tree"].as_str().unwrap());
        assert_eq!(git::git(&project.store(), &["fsck", "--full", "--no-dangling"]), "");
    };
    try_all("fetch", &project, &["fetch"], &is_whole);
    project.run(&["fetch"]).success();
    project.write("overlay/extra/espalier/note.txt", "another one\n");
    try_all("apply", &project, &["apply"], &is_whole);
}

#[test]
fn a_lock_and_a_new_patch() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    project.run(&["fetch"]).success();
    try_all("lock", &project, &["lock"], &again(&project, &["lock"]));
    project.run(&["lock"]).success();
    let new = ["new", "words: greet otherwise"];
    try_all("new, the first", &project, &new, &again(&project, &new));
    project.run(&["edit"]).success();
    try_all("new", &project, &new, &again(&project, &new));
}

#[test]
fn the_end_of_a_new_patch() {
    if !wanted() {
        return;
    }
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&["new", "words: greet otherwise"]).success();
    let folder = edit_folder(&project, "paged");
    files::edit(&folder.join("src/add.c"), "left + right", "right + left");
    git::git(&folder, &["commit", "--quiet", "--all", "--message", "Add otherwise"]);
    try_all("export of a new patch", &project, &["export"], &again(&project, &["export"]));
}

#[test]
fn an_init() {
    if !wanted() {
        return;
    }
    let project = importing::empty_project();
    let base = Upstream::shared().repository();
    let init = ["init", "--from", base.to_str().unwrap(), "--at", "v1.0", "--variant", "my"];
    try_all("init", &project, &init, &unless_done(&project, &init));
}
