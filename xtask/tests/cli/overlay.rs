//! Overlays add only paths that neither upstream nor a patch has.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::support::{Output, Project};

fn refused(project: &Project) -> Output {
    let output = project.run(&["apply"]);
    assert!(!project.tree("paged").exists(), "{output}");
    assert!(!project.path("espalier.lock").exists(), "{output}");
    output
}

#[test]
fn a_path_that_upstream_has() {
    let project = Project::new();
    project.write("overlay/extra/src/add.c", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/extra/src/add.c` would replace `src/add.c`
      upstream v1.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/src/add.c`, or make the change in a patch
    ");
}

#[test]
fn a_path_that_upstream_has_in_other_letters() {
    let project = Project::new();
    project.write("overlay/extra/SRC/Add.c", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/extra/SRC/Add.c` would replace `SRC/Add.c`
      upstream v1.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/SRC/Add.c`, or make the change in a patch
    ");
}

#[test]
fn a_path_that_a_patch_touches() {
    let project = Project::new();
    project.write("overlay/extra/src/count.c", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/extra/src/count.c` would replace `src/count.c`
      patches/paged/0002-say-what-is-counted.patch touches it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/src/count.c`, or make the change in a patch
    ");
}

#[test]
fn a_path_that_two_overlays_bring() {
    let project = Project::new();
    project.edit("pins.toml", "[\"overlay/extra\"]", "[\"overlay/extra\", \"overlay/more\"]");
    project.write("overlay/more/espalier/note.txt", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/more/espalier/note.txt` would replace `espalier/note.txt`
      overlay/extra/espalier/note.txt brings it too; an overlay may only add paths that nothing else provides
      next: rename `overlay/more/espalier/note.txt`, or make the change in a patch
    ");
}

#[test]
fn a_path_below_a_file_of_upstream() {
    let project = Project::new();
    project.write("overlay/extra/src/add.c/deep.txt", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/extra/src/add.c/deep.txt` would replace `src/add.c/deep.txt`
      upstream v1.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/src/add.c/deep.txt`, or make the change in a patch
    ");
}

#[test]
fn a_file_where_upstream_has_a_folder() {
    let project = Project::new();
    project.write("overlay/extra/src", "mine\n");
    insta::assert_snapshot!(refused(&project), @r"
    exit: 1
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
    error: the overlay file `overlay/extra/src` would replace `src`
      upstream v1.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/src`, or make the change in a patch
    ");
}

#[test]
fn two_overlays_of_which_one_has_a_file_where_the_other_has_a_folder() {
    let project = Project::new();
    project.edit("pins.toml", "[\"overlay/extra\"]", "[\"overlay/extra\", \"overlay/more\"]");
    project.write("overlay/more/espalier", "mine\n");
    let output = refused(&project);
    assert_ne!(output.code, Some(0), "{output}");
}

#[test]
fn a_folder_that_is_not_there() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("overlay")).unwrap();
    insta::assert_snapshot!(refused(&project), @r"
    exit: 2
    -- stdout --

    -- stderr --
    error: `pins.toml` names the folder `overlay/extra`, which is not there
      next: mkdir -p overlay/extra
    ");
}

/// Runs with a time limit, since the run might otherwise block forever.
fn run_for_a_while(project: &Project, arguments: &[&str]) -> Output {
    let tool = project.command(arguments);
    let mut command = Command::new("timeout");
    command.arg("20").arg(tool.get_program()).args(tool.get_args()).current_dir(project.root());
    project.finish(command)
}

#[test]
fn a_link_that_leads_out_of_the_project() {
    for target in ["/etc/hostname", "/dev/zero", "../../../../nowhere"] {
        let project = Project::new();
        symlink(target, project.path("overlay/extra/leak")).unwrap();
        let output = run_for_a_while(&project, &["apply"]).code(2);
        output
            .says(&["`overlay/extra/leak` is, or is reached through, a link that leads out of the project"]);
        assert!(!project.tree("paged").exists());
    }
}

#[test]
fn a_link_to_a_file_of_the_project() {
    let project = Project::new();
    project.write("shared/note.txt", "shared\n");
    symlink("../../shared/note.txt", project.path("overlay/extra/note.txt")).unwrap();
    project.run(&["apply"]).success();
    assert_eq!(std::fs::read(project.tree("paged").join("note.txt")).unwrap(), b"shared\n");
}

#[test]
fn a_patch_that_is_a_link_out_of_the_project() {
    let project = Project::new();
    symlink("/etc/hostname", project.path("patches/paged/0004-x.patch")).unwrap();
    project.run(&["lint"]).code(2).says(&["`patches/paged/0004-x.patch` is, or is reached through, a link"]);
}

#[test]
fn a_pipe_in_place_of_a_file() {
    let places = ["overlay/extra/pipe", "patches/paged/0004-x.patch", "espalier.lock", "pins.toml"];
    for place in places {
        let project = Project::new();
        let path = project.path(place);
        let _ = std::fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        let output = run_for_a_while(&project, &["apply"]).code(2);
        output.says(&[place, "is a pipe, device or socket, not a file"]);
    }
}
