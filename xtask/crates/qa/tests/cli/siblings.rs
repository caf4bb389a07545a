//! A patch that has a sibling on a generation, changed at its pin: the generation is stale until a person has looked at
//! both, and the work starts from the sibling.

use super::support::editing::commit_project;
use super::support::generations::{Generations, PATCHES, name, ring_in_another_way, ring_otherwise};
use super::support::moving::{greet, without_conflicts};
use super::support::{files, git};

const PATCH: &str = "patches/paged/0001-greet-more-warmly.patch";
const SIBLING: &str = "patches/paged/0001-greet-more-warmly@v2.patch";
const REBASE: &str = "cargo xtask rebase --variant paged-v2    # it stops at each of these patches";

/// Returns the entry of `paged-v2` in the lock.
fn locked(generations: &Generations) -> String {
    let lock = generations.project.read("espalier.lock");
    let entry = lock.split("[variants.paged-v2]").nth(1).unwrap();
    entry.split("\n[variants.").next().unwrap().to_string()
}

fn work_file(generations: &Generations, path: &str) -> String {
    std::fs::read_to_string(generations.work("v2").join(path)).unwrap()
}

fn readme(generations: &Generations) -> String {
    generations.project.read("target/espalier/rebase/v2/conflict/README.md")
}

#[test]
fn a_change_at_the_pin_is_not_locked_with_the_old_sibling() {
    let generations = Generations::with_siblings();
    commit_project(&generations.project);
    let before = locked(&generations);
    generations.change_patch(1, name("everyone")).says(&[
        "paged-v2 stays as it was locked: the generation v2 is stale: 1 of 3 patches have changed since their siblings \
         were made: 0001-greet-more-warmly.patch",
        &format!("{SIBLING}: it was made for another version of {PATCH}"),
        &format!("next: bring the changes to the siblings: {REBASE}"),
    ]);
    assert_eq!(locked(&generations), before);
    // The generation without siblings has followed.
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v1-1"]).success();
    assert!(generations.file("v1-1", "src/name.c").contains("everyone"));
    for command in [
        &["lock", "--check"][..],
        &["apply", "--variant", "paged-v2"],
        &["status", "--variant", "paged-v2"],
        &["prove", "--generation", "v2"],
    ] {
        generations.project.run(command).code(1).says(&["the generation v2 is stale", REBASE]);
    }
    generations.project.run_build(&["build", "--variant", "paged-v2"]).code(1).says(&[REBASE]);
    let output = generations.project.run(&["lint"]).code(1);
    let finding = format!(
        "{SIBLING}:1: 0001-greet-more-warmly.patch has changed since the sibling was made for it [sibling-behind-patch]"
    );
    assert!(
        output.stdout.contains(&finding)
            && output.stdout.contains("as it is: cargo xtask rebase --variant paged-v2"),
        "{output}"
    );
    let output = generations.rebase("v2", &["--dry-run"]).code(4);
    assert!(
        output.stdout.contains("1 wait") && output.stdout.contains("made for another version"),
        "{output}"
    );
    // Writing the lock on request does not lose the record either.
    generations.project.run(&["lock"]).code(1).says(&["paged-v2 stays as it was locked", REBASE]);
    assert_eq!(locked(&generations), before);
    generations.project.run(&["lock", "--check"]).code(1);
}

/// Every other writer of the lock goes through the same check.
#[test]
fn a_move_of_the_pin_does_not_lock_the_old_sibling_either() {
    let generations = Generations::with_siblings();
    commit_project(&generations.project);
    generations.change_patch(1, name("everyone"));
    let before = locked(&generations);
    let from = generations.upstream.to_str().unwrap();
    let output = generations.project.run(&["rebase", "--to", "v1.1", "--from", from]).success();
    assert!(
        output.stderr.contains("paged-v2 stays as it was locked") && output.stderr.contains(REBASE),
        "{output}"
    );
    assert_eq!(locked(&generations), before);
}

/// Only another change of the patch counts: not its message, and not the lines at which it is.
#[test]
fn a_reworded_patch_leaves_its_sibling_alone() {
    let generations = Generations::with_siblings();
    generations.project.run(&["lock"]).success();
    generations.project.edit(PATCH, "more warmly\n\n---", "more warmly\n\nAs people do.\n---");
    generations.project.run(&["lock", "--check"]).code(1).says(&[&format!("replaced by {SIBLING}")]);
    generations.project.run(&["lock"]).success();
    generations.project.run(&["lock", "--check"]).success();
    generations.project.run(&["lint"]).success();
}

#[test]
fn a_sibling_that_was_changed_with_its_patch_is_locked() {
    let generations = Generations::with_stale_sibling(name("everyone"));
    generations.project.edit(SIBLING, "more warmly\n\n---", "more warmly\n\nWith its own ring.\n---");
    generations.project.run(&["lock"]).success();
    generations.project.run(&["lock", "--check"]).success();
    generations.project.run(&["lint"]).success();
}

#[test]
fn the_work_starts_from_the_sibling_and_has_the_change_of_the_patch() {
    let generations = Generations::with_stale_sibling(name("everyone"));
    generations.rebase("v2", &["--edit", "1"]).code(4).says(&[
        &format!("{SIBLING} waits to be edited (0 of 3 patches done)"),
        &format!("{PATCH} has changed since the sibling was made for it"),
        "the work tree has the sibling, and the change is merged into it",
        "next: see the change that was merged into the sibling: git -C target/espalier/rebase/v2/work diff sibling",
    ]);
    assert_eq!(work_file(&generations, "src/greet.c"), greet("hi there"));
    assert!(work_file(&generations, "src/ring.c").contains("size % at"), "the sibling's own edit");
    assert!(work_file(&generations, "src/name.c").contains("everyone"), "the change of the patch");
    let work = generations.work("v2");
    let merged = git::git(&work, &["diff", "--stat", "sibling"]);
    assert!(merged.contains("src/name.c") && !merged.contains("src/ring.c"), "{merged}");
    let text = readme(&generations);
    assert!(text.contains("everyone") && text.contains("two versions of the patch"), "{text}");
    generations.rebase("v2", &["--continue"]).success();
    let sibling = generations.project.read(SIBLING);
    assert!(sibling.contains("everyone") && sibling.contains("size % at"), "{sibling}");
    generations.project.run(&["--locked", "lock", "--check"]).success();
    generations.project.run(&["lint"]).success();
    assert!(generations.file("v2", "src/name.c").contains("everyone"));
}

/// A rebase on the generation stops there without being asked.
#[test]
fn a_sibling_can_stay_as_it_is() {
    let generations = Generations::with_stale_sibling(name("everyone"));
    let before = generations.project.read(SIBLING);
    generations.rebase("v2", &[]).code(4).says(&[&format!("{SIBLING} waits to be edited")]);
    git::git(&generations.work("v2"), &["checkout", "sibling", "--", "."]);
    generations.rebase("v2", &["--continue"]).success();
    assert_eq!(generations.project.read(SIBLING), before);
    generations.project.run(&["--locked", "lock", "--check"]).success();
    let output = generations.rebase("v2", &[]).success();
    assert!(output.stdout.contains("there is nothing to rebase"), "{output}");
}

#[test]
fn a_sibling_and_a_change_of_the_same_lines_are_a_conflict() {
    let generations = Generations::with_stale_sibling(ring_in_another_way);
    generations.rebase("v2", &["--edit", "1"]).code(4).says(&[
        &format!("the change of {PATCH} does not merge with {SIBLING} automatically"),
        "src/ring.c: the sibling has other lines where the patch has changed",
    ]);
    assert_eq!(work_file(&generations, "src/greet.c"), greet("hi there"));
    let ring = work_file(&generations, "src/ring.c");
    for line in [
        "<<<<<<< 0001-greet-more-warmly@v2.patch\n    return size % at;\n",
        "||||||| the patch as locked, before the change of 0001-greet-more-warmly.patch\n    return at % size;\n",
        "    return at % (size + 1);\n>>>>>>> the change of 0001-greet-more-warmly.patch\n",
    ] {
        assert!(ring.contains(line), "{ring}");
    }
    let text = readme(&generations);
    assert!(
        text.contains("both change the same 1 line: the sibling to 1 line, the patch to 1 line"),
        "{text}"
    );
    assert!(text.contains("base: the patch as it was when the sibling was made for it"), "{text}");
    let work = generations.work("v2");
    files::write(&work.join("src/ring.c"), without_conflicts(&ring, "    return (size + 1) % at;\n"));
    git::git(&work, &["add", "src/ring.c"]);
    generations.rebase("v2", &["--continue"]).success();
    assert!(generations.file("v2", "src/ring.c").contains("(size + 1) % at"));
    // The other generation needs a sibling of its own now.
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v2"]).success();
}

/// Without the history of the project nothing can be merged: the sibling is there all the same.
#[test]
fn a_change_that_cannot_be_merged_is_carried_over_by_hand() {
    let generations = Generations::with_siblings_and(ring_otherwise);
    generations.project.run(&["lock"]).success();
    generations.change_patch(1, name("everyone"));
    generations
        .rebase("v2", &["--edit", "1"])
        .code(4)
        .says(&["the work tree has the sibling alone, carry the change over by hand"]);
    assert!(work_file(&generations, "src/ring.c").contains("size % at"));
    assert!(work_file(&generations, "src/name.c").contains("world"));
    let text = readme(&generations);
    assert!(text.contains("the two versions is not known: compare the patch with the sibling"), "{text}");
    name("everyone")(&generations.work("v2"));
    git::git(&generations.work("v2"), &["add", "src/name.c"]);
    // It is a file of the patch, though not of the sibling.
    generations.rebase("v2", &["--continue"]).success();
    assert!(generations.file("v2", "src/name.c").contains("everyone"));
    generations.project.run(&["--locked", "lock", "--check"]).success();
}

#[test]
fn a_patch_that_did_not_change_is_edited_in_its_sibling() {
    let generations = Generations::with_siblings_and(ring_otherwise);
    generations.project.edit(SIBLING, "more warmly\n\n---", "more warmly\n\nOn v2.\n---");
    generations.project.run(&["lock"]).success();
    let before = generations.project.read(SIBLING);
    let output = generations.rebase("v2", &["--edit", "1"]).code(4);
    let output = output.says(&["the work tree has the sibling; its patch has not changed since"]);
    assert!(!output.stderr.contains("diff sibling"), "{output}");
    generations.rebase("v2", &["--continue"]).success();
    assert_eq!(generations.project.read(SIBLING), before);
    generations.rebase("v2", &["--edit", "1"]).code(4);
    files::edit(&generations.work("v2").join("src/ring.c"), "size % at", "size % (at)");
    git::git(&generations.work("v2"), &["add", "src/ring.c"]);
    generations.rebase("v2", &["--continue"]).success();
    let sibling = generations.project.read(SIBLING);
    assert!(sibling.contains("size % (at)") && sibling.contains("On v2."), "{sibling}");
}

#[test]
fn a_dropped_patch_that_changed_stays_dropped_on_request() {
    let generations = Generations::with_siblings();
    commit_project(&generations.project);
    let path = format!("patches/paged/{}@v2.patch", PATCHES[1]);
    let before = generations.project.read(&path);
    let change =
        |folder: &std::path::Path| files::edit(&folder.join("src/count.c"), "not letters", "nor letters");
    generations.change_patch(2, change).says(&["the generation v2 is stale", REBASE]);
    generations.rebase("v2", &["--edit", "2"]).code(4).says(&[&format!("{path} drops it here: ")]);
    generations.rebase("v2", &["--skip"]).success();
    assert_eq!(generations.project.read(&path), before);
    generations.project.run(&["--locked", "lock", "--check"]).success();
}

/// The record is in the lock: without it, the siblings are taken as they are, with a warning.
#[test]
fn a_lock_that_is_lost_has_no_record() {
    let generations = Generations::with_stale_sibling(name("everyone"));
    generations.project.edit("espalier.lock", "format = 1", "<<<<<<< HEAD\nformat = 1");
    generations
        .project
        .run(&["lock"])
        .success()
        .says(&["siblings are locked as they are, without a comparison with the patches"]);
    generations.project.run(&["lock", "--check"]).success();
}
