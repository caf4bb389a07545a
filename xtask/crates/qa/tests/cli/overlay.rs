//! Overlays add only paths that neither upstream nor a patch has.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::support::editing::{edit, with_child};
use super::support::moving::{Move, TIP};
use super::support::{Output, Project, files, git};

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
      overlay/extra/espalier/note.txt also provides it; an overlay may only add paths that nothing else provides
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

/// Adds the path of the overlay of `paged` to upstream.
fn upstream_adds_the_note(upstream: &Path) {
    files::write(&upstream.join("espalier/note.txt"), "upstream's\n");
}

/// The error of `rebase --to`, and the same in reports.
const NOTE_CLASHES: &str = "the overlay file `overlay/extra/espalier/note.txt` would replace `espalier/note.txt`\n  \
                            upstream v2.0 has it; an overlay may only add paths that nothing else provides\n  \
                            next: rename `overlay/extra/espalier/note.txt`, or make the change in a patch";

#[test]
fn a_path_that_upstream_has_at_the_new_pin() {
    let moving = Move::new(upstream_adds_the_note);
    let before = moving.committed();
    let output = moving.rebase(&["--dry-run"]).code(1);
    insta::assert_snapshot!(output.stdout, @"
    paged: 3 of 3 patches, from hello v1.0, cannot move to v2.0: 1 overlay file is in the way

      unchanged  patches/paged/0001-greet-more-warmly.patch
      unchanged  patches/paged/0002-say-what-is-counted.patch
      unchanged  patches/paged/0003-greet-dearly.patch

    the overlay file `overlay/extra/espalier/note.txt` would replace `espalier/note.txt`
      upstream v2.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/espalier/note.txt`, or make the change in a patch
    ");
    let from = moving.upstream.to_str().unwrap();
    let json = ["--json", "rebase", "--dry-run", "--to", TIP, "--from", from];
    let json = moving.project.run(&json).code(1).json();
    assert_eq!(json["overlays"][0]["file"], "overlay/extra/espalier/note.txt", "{json:#}");
    moving.rebase(&[]).code(1).says(&[&format!("error: {NOTE_CLASHES}")]);
    assert_eq!(moving.committed(), before);
    std::fs::rename(moving.project.path("overlay/extra/espalier"), moving.project.path("overlay/extra/ours"))
        .unwrap();
    moving.rebase(&["--dry-run"]).success();
    moving.rebase(&[]).success();
    moving.assert_moved();
}

/// A pin moves with all variants on it, also with those that have no patches.
#[test]
fn a_path_that_upstream_has_and_another_variant_brings() {
    let moving =
        Move::new(|upstream| files::write(&upstream.join("docs/more.txt"), "upstream's documentation\n"));
    moving.project.edit(
        "pins.toml",
        "[variants.paged]",
        "[variants.more]\nextends = \"stock\"\noverlays = [\"overlay/more\"]\n\n[variants.paged]",
    );
    moving.project.write("overlay/more/docs/More.txt", "mine\n");
    let clash = "the overlay file `overlay/more/docs/More.txt` would replace `docs/More.txt`";
    let output = moving.rebase(&["--dry-run"]).code(1);
    assert!(output.stdout.contains(clash), "{output}");
    moving.rebase(&[]).code(1).says(&[clash]);
    let from = moving.upstream.to_str().unwrap();
    let output = moving.project.run(&["newest", "--tip", TIP, "--from", from]).code(1);
    assert!(output.stdout.contains(clash), "{output}");
    let canary = ["canary", "--until", "status", "--tip", TIP, "--from", from];
    let output = moving.project.run(&canary).success();
    assert!(output.stdout.contains("the pin cannot move there yet because of more"), "{output}");
    assert!(output.stdout.contains(clash) && !output.stdout.contains("the pin can move"), "{output}");
}

#[test]
fn reports_on_a_tip_with_the_path_of_an_overlay() {
    let moving = Move::new(upstream_adds_the_note);
    let from = moving.upstream.to_str().unwrap();
    let at_tip = ["--tip", TIP, "--from", from];
    let headline =
        "paged: 3 of 3 patches are exact at hello v2.0, 1 commit after v1.0; 1 overlay file is in the way";
    for command in [&["status"][..], &["status", "--long"]] {
        let output = moving.project.run(&[command, &at_tip].concat()).code(1);
        assert!(output.stdout.contains(headline) && output.stdout.contains(NOTE_CLASHES), "{output}");
    }
    let page = moving.project.beside("page.html");
    let written = ["status", "--markdown", "--html", page.to_str().unwrap()];
    let output = moving.project.run(&[&written[..], &at_tip].concat()).code(1);
    assert!(output.stdout.contains("\n\n    the overlay file `overlay/extra/"), "{output}");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<pre>the overlay file `overlay/extra/espalier/note.txt` would replace"), "{html}");
    let output = moving.project.run(&[&["newest"], &at_tip[..]].concat()).code(1);
    insta::assert_snapshot!(output.stdout, @"
    paged on hello's main line (first parents) from v1.0 to v2.0:

      all of it applies up to the pin, v1.0
        0 commits after the pin, 1 commit before the tip
      all of it is exact up to the pin, v1.0
        0 commits after the pin, 1 commit before the tip

    the overlay file `overlay/extra/espalier/note.txt` would replace `espalier/note.txt`
      upstream v2.0 has it; an overlay may only add paths that nothing else provides
      next: rename `overlay/extra/espalier/note.txt`, or make the change in a patch

    next: cargo xtask rebase --dry-run --to v2.0 --from [BESIDE]/newer
    ");
}

#[test]
fn newest_offers_the_commit_before_the_path_of_an_overlay() {
    let moving = Move::new(|upstream| {
        files::edit(&upstream.join("README.md"), "Hello", "Hello!");
        git::commit(upstream, "About");
        upstream_adds_the_note(upstream);
    });
    let from = moving.upstream.to_str().unwrap();
    let report = moving.project.run(&["--json", "newest", "--tip", TIP, "--from", from]).code(1).json();
    assert_eq!(report["applies"]["before_tip"], 1, "{report:#}");
    let commit = report["applies"]["commit"]["id"].as_str().unwrap();
    moving.project.run(&["rebase", "--to", commit, "--from", from]).success();
}

/// A patch may take a path away, or add one; the paths of the patched tree count.
#[test]
fn a_path_that_a_patch_frees_and_upstream_still_has_in_other_letters() {
    let remove = |fork: &Path| std::fs::remove_dir_all(fork.join("docs/old")).unwrap();
    let moving = Move::with_patch(remove, |upstream| {
        files::edit(&upstream.join("README.md"), "Hello", "Hello!");
    });
    moving.project.write("overlay/extra/docs/OLD/story.txt", "mine\n");
    moving.project.run(&["apply", "--check"]).success();
    let from = moving.upstream.to_str().unwrap();
    moving.project.run(&["status", "--tip", TIP, "--from", from]).success();
    moving.project.run(&["newest", "--tip", TIP, "--from", from]).success();
    moving.rebase(&["--dry-run"]).success();
    moving.rebase(&[]).success();
}

/// Without `--to` the patched tree is that of the series below.
#[test]
fn a_path_that_a_new_patch_of_the_parent_adds() {
    let project = with_child();
    project.edit(
        "pins.toml",
        "patches = \"patches/child\"",
        "patches = \"patches/child\"\noverlays = [\"overlay/more\"]",
    );
    project.write("overlay/more/src/new.c", "int of_the_overlay;\n");
    let folder = edit(&project);
    files::write(&folder.join("src/new.c"), "int of_the_patch;\n");
    git::commit(&folder, "Add a file");
    project.run(&["export"]).success();
    let owner = "patches/paged/0004-add-a-file.patch touches it";
    let output = project.run(&["rebase", "--variant", "child", "--dry-run"]).code(1);
    assert!(output.stdout.contains("cannot move to paged: 1 overlay file is in the way"), "{output}");
    assert!(output.stdout.contains(owner), "{output}");
    project.run(&["rebase", "--variant", "child"]).code(1).says(&[owner]);
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
