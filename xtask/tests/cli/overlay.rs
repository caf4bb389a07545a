//! Overlays bring only paths that nobody else has.

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
      upstream v1.0 has it; an overlay brings only paths that nobody else has
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
      upstream v1.0 has it; an overlay brings only paths that nobody else has
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
      patches/paged/0002-say-what-is-counted.patch touches it; an overlay brings only paths that nobody else has
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
      overlay/extra/espalier/note.txt brings it too; an overlay brings only paths that nobody else has
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
      upstream v1.0 has it; an overlay brings only paths that nobody else has
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
      upstream v1.0 has it; an overlay brings only paths that nobody else has
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
