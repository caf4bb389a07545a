//! `undo`: the project as it was before the last change, whatever command made it, and once more as it was after it.

use super::support::editing::{edit, edit_folder, rebase};
use super::support::importing::{empty_project, started};
use super::support::moving::{Move, TIP, above_everything, greet, upstream_greets_otherwise};
use super::support::syncing::{self, more_lines, user_files};
use super::support::upstream::{TAG, Upstream};
use super::support::{Project, files, git};

const SET: [&str; 3] = ["trailers", "--set", "Drop-when: upstream has it"];

/// Makes a change with `arguments`, undoes it, and makes it again by a second undo.
#[track_caller]
fn undone_and_made_again(project: &Project, arguments: &[&str], what: &str) {
    let before = user_files(project);
    // `lint --fix` also reports findings that it cannot fix.
    assert!(matches!(project.run_build(arguments).code, Some(0 | 1)), "{arguments:?}");
    let after = user_files(project);
    assert!(before != after, "{arguments:?} was to change something");
    let dry = project.run(&["undo", "--dry-run"]).success().stdout;
    assert!(dry.starts_with(&format!("would be undone: {what}\n")), "{dry}");
    assert!(user_files(project) == after, "{what}: a dry run changed something");
    let stdout = project.run(&["undo"]).success().stdout;
    assert!(stdout.starts_with(&format!("undone: {what}\n")), "{stdout}");
    assert_eq!(files::differences(&user_files(project), &before), [""; 0], "{what}");
    let json = project.run(&["--json", "undo"]).success().json();
    assert_eq!((&json["undone"], &json["change"]), (&false.into(), &what.into()), "{json:#}");
    assert_eq!(files::differences(&user_files(project), &after), [""; 0], "{what}");
    assert_eq!(project.scratch(), [""; 0], "{what}");
}

/// Creates an edit repository with another order of the patches, and a changed one.
fn with_edits() -> Project {
    let project = Project::new();
    let folder = edit(&project);
    rebase(&folder, "1h;1d;2G");
    files::edit(&folder.join("src/greet.c"), "dear\"", "friend\"");
    git::git(&folder, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    project
}

fn marks(project: &Project) -> String {
    git::git(&edit_folder(project, "paged"), &["for-each-ref", "refs/espalier"])
}

#[test]
fn every_kind_of_change_is_undone_and_made_again() {
    let project = Project::new();
    undone_and_made_again(&project, &["lock"], "the update of espalier.lock");
    undone_and_made_again(&project, &SET, "the new trailers of paged");
    let name = |name: &str| project.path("patches/paged").join(name);
    std::fs::rename(name("0003-greet-dearly.patch"), name("0007-odd.patch")).unwrap();
    undone_and_made_again(&project, &["lint", "--fix"], "the fixes of lint");
    undone_and_made_again(&with_edits(), &["export"], "the export of paged");
    let moving = Move::new(above_everything("src/greet.c"));
    moving.project.run(&["lock"]).success();
    let arguments = ["rebase", "--to", TIP, "--from", moving.upstream.to_str().unwrap()];
    undone_and_made_again(&moving.project, &arguments, "the move of the pin hello to v2.0");
    moving.assert_moved();
}

#[test]
fn the_start_of_a_project_and_an_import_are_undone() {
    let project = empty_project();
    let (base, patches) = (Upstream::shared().repository(), Upstream::shared().series());
    let init = ["init", "--from", base.to_str().unwrap(), "--at", TAG, "--variant", "my"];
    undone_and_made_again(&project, &init, "the new project");
    undone_and_made_again(&started(), &["import", patches.to_str().unwrap()], "the import into my");
}

#[test]
fn a_moved_pin_is_undone_with_its_report() {
    let project = syncing::project(more_lines);
    undone_and_made_again(&project, &["sync", "--to", "v2.0"], "the move of the pin hello to v2.0");
    project.run(&["undo"]).success();
    assert!(!project.path("docs/syncs/v1.0-to-v2.0.md").exists());
    project.run(&["lock", "--check"]).success();
}

/// The report says that the moved patches hold: it goes with them, and comes back with them.
#[test]
fn a_move_by_hand_is_undone_with_its_report() {
    let project = syncing::project(more_lines);
    syncing::commit_all(&project);
    let before = user_files(&project);
    project.run(&["rebase", "--to", "v2.0"]).success();
    project.run_build(&["sync", "--since", "HEAD"]).success();
    let after = user_files(&project);
    assert!(after.contains_key("docs/syncs/v1.0-to-v2.0.md"));
    for state in [&before, &after] {
        let stdout = project.run(&["undo"]).success().stdout;
        assert!(stdout.contains("the move of the pin hello to v2.0\n"), "{stdout}");
        assert_eq!(files::differences(&user_files(&project), state), [""; 0]);
    }
}

#[test]
fn the_files_are_named() {
    let project = with_edits();
    project.run(&["export"]).success();
    insta::assert_snapshot!(project.run(&["undo"]), @"
    exit: 0
    -- stdout --
    undone: the export of paged
      written  espalier.lock
      written  patches/paged/0001-greet-more-warmly.patch
      written  patches/paged/0002-say-what-is-counted.patch
      written  patches/paged/0003-greet-dearly.patch
      removed  patches/paged/0001-say-what-is-counted.patch
      removed  patches/paged/0002-greet-more-warmly.patch
      next: cargo xtask undo    # makes it again
    -- stderr --
    ");
}

/// A pin moves with dozens of patches: the output stays short, and JSON names each file.
#[test]
fn many_files_are_counted() {
    let project = Project::new();
    let text = project.read("patches/paged/0002-say-what-is-counted.patch");
    for number in 10..30 {
        project.write(&format!("patches/paged/{number:04}-more.patch"), &text);
    }
    project.run(&SET).success();
    let dry = project.run(&["undo", "--dry-run"]).success().stdout;
    assert!(dry.contains("\n  written  23 files in patches/paged\n"), "{dry}");
    let stdout = project.run(&["undo"]).success().stdout;
    assert!(
        stdout.contains("\n  written  23 files in patches/paged\n") && stdout.lines().count() < 6,
        "{stdout}"
    );
    let json = project.run(&["--json", "undo"]).success().json();
    assert!(json["written"].as_array().unwrap().len() >= 23, "{json:#}");
}

/// The commits of an undone export are again work that is in no patch.
#[test]
fn an_undone_export_can_be_exported_again() {
    let project = with_edits();
    let before = marks(&project);
    project.run(&["export"]).success();
    let (after, exported) = (marks(&project), user_files(&project));
    assert_ne!(before, after);
    project.run(&["undo"]).success();
    assert_eq!(marks(&project), before);
    project.run(&["edit"]).code(4).says(&["has work that is in no patch"]);
    project.run(&["export"]).success();
    assert_eq!(marks(&project), after);
    assert!(user_files(&project) == exported);
}

#[test]
fn an_edit_repository_that_was_replaced_since_is_left() {
    let project = with_edits();
    let before = user_files(&project);
    project.run(&["export"]).success();
    project.run(&["edit", "--discard"]).success();
    let marked = marks(&project);
    let stdout = project.run(&["undo"]).success().stdout;
    let left = "  left     target/espalier/edit/paged, which was changed since: `cargo xtask edit paged` updates it\n";
    assert!(stdout.contains(left), "{stdout}");
    assert!(user_files(&project) == before);
    assert_eq!(marks(&project), marked);
    assert_eq!(project.run(&["--json", "edit"]).success().json()["made"], true);
}

#[test]
fn later_edits_of_a_user_stop_undo_and_are_kept() {
    let project = Project::new();
    project.run(&["lock"]).success();
    project.run(&SET).success();
    project.edit("patches/paged/0001-greet-more-warmly.patch", "Greet more", "Greet much more");
    let before = user_files(&project);
    insta::assert_snapshot!(project.run(&["undo"]), @"
    exit: 4
    -- stdout --

    -- stderr --
    error: files of the new trailers of paged were changed since; nothing was undone
      patches/paged/0001-greet-more-warmly.patch
      next: put back what it wrote, and keep yours: mv patches/paged/0001-greet-more-warmly.patch patches/paged/0001-greet-more-warmly.patch.mine && cp target/espalier/undo/patches/paged/0001-greet-more-warmly.patch patches/paged/0001-greet-more-warmly.patch    # then: cargo xtask undo
    ");
    project.run(&["undo", "--dry-run"]).code(4);
    assert!(user_files(&project) == before);
    let added = project.path("patches/paged/0009-mine.patch");
    files::write(&added, "mine\n");
    project.run(&["undo"]).code(4).says(&["0001-greet-more-warmly.patch\n", "0009-mine.patch\n"]);
    assert_eq!(std::fs::read_to_string(added).unwrap(), "mine\n");
}

#[test]
fn without_a_change_there_is_nothing_to_undo() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["undo"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is nothing to undo
      no change is recorded in `target/espalier/undo`: the last one is, until `gc` removes a stale record
      next: revert what is committed with git: git log --oneline
    ");
    assert!(!project.path("target").exists());
    let text = project.read("patches/paged/0001-greet-more-warmly.patch");
    for number in 2..4 {
        let before = user_files(&project);
        project.run(&[SET[0], SET[1], &format!("Drop-when: version {number}"), "--overwrite"]).success();
        for (path, bytes) in before {
            project.write(&path, bytes);
        }
        project.run(&["undo"]).code(2).says(&["nothing to undo: the files are as they were before"]);
    }
    assert_eq!(project.read("patches/paged/0001-greet-more-warmly.patch"), text);
    let output = empty_project().run(&["undo"]).code(2);
    assert!(output.stderr.contains("there is no `pins.toml`"), "{output}");
}

/// A change without effect is not recorded: the one before it is still the last.
#[test]
fn an_export_without_a_change_is_none() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let before = user_files(&project);
    project.run(&SET).success();
    project.run(&["edit"]).success();
    assert!(project.run(&["export"]).success().stdout.contains("nothing changed"));
    project.run(&["lock"]).success();
    project.run(&["undo"]).success();
    assert!(user_files(&project) == before);
}

#[test]
fn a_rebase_with_conflicts_is_undone_at_once() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    let start = moving.committed();
    moving.rebase(&[]).code(4);
    // Nothing of it is a change yet: the last one is that of the lock.
    assert!(moving.project.run(&["undo", "--dry-run"]).success().stdout.contains("espalier.lock\n"));
    moving.solve(greet("hi there"));
    moving.run(&["--continue"]).code(4);
    moving.solve(greet("hi there, dear"));
    moving.run(&["--continue"]).success();
    assert_ne!(moving.committed(), start);
    moving.project.run(&["undo"]).success();
    assert_eq!(moving.committed(), start);
    moving.project.run(&["undo"]).success();
    moving.assert_moved();
}

#[test]
fn a_rebase_that_waits_notices_that_the_change_before_it_was_undone() {
    let moving = Move::new(upstream_greets_otherwise);
    moving.project.run(&["lock"]).success();
    moving.project.run(&SET).success();
    moving.rebase(&[]).code(4);
    moving.solve(greet("hi there"));
    moving.project.run(&["undo"]).success();
    moving.run(&["--continue"]).code(4).says(&["the series or its pin was changed since the rebase began"]);
    moving.project.run(&["undo"]).success();
    moving.run(&["--continue"]).code(4).says(&["0003-greet-dearly.patch"]);
}

#[test]
fn gc_keeps_the_record_while_it_is_needed() {
    let project = Project::new();
    project.run(&["lock"]).success();
    let record = project.path("target/espalier/undo/pending.json");
    project.run(&["gc"]).success();
    assert!(record.exists());
    // The command that the refusal prints copies from the record.
    project.write("espalier.lock", "format = 1\n");
    project.run(&["undo"]).code(4).says(&["cp target/espalier/undo/espalier.lock espalier.lock"]);
    project.run(&["gc"]).success();
    assert!(record.exists());
    std::fs::remove_file(project.path("espalier.lock")).unwrap();
    project.run(&["undo"]).code(2).says(&["the files are as they were before"]);
    let stdout = project.run(&["gc"]).success().stdout;
    let gone = "target/espalier/undo: the record of a change of which nothing is left to undo";
    assert!(stdout.contains(gone) && !record.exists(), "{stdout}");
}
