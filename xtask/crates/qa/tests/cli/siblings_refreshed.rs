//! A sibling that is not exact any more because an earlier patch has changed the same file: it is merged with that
//! change, and a person is asked only where the two conflict.

use std::path::Path;

use super::support::editing::{commit_project, edit_folder};
use super::support::generations::{Generations, name, ring_otherwise};
use super::support::moving::greet;
use super::support::{files, git};

const FIRST: &str = "patches/paged/0001-greet-more-warmly@v2.patch";
const LAST: &str = "patches/paged/0003-greet-dearly@v2.patch";

/// Includes another header in `src/greet.c`, outside of the context of the last patch.
fn include(folder: &Path) {
    let (old, new) = ("#include \"words.h\"\n", "#include \"words.h\"\n#include <stddef.h>\n");
    files::edit(&folder.join("src/greet.c"), old, new);
}

/// Returns `src/greet.c` with the other header.
fn greet_with_include(words: &str) -> String {
    greet(words).replacen("#include \"words.h\"\n", "#include \"words.h\"\n#include <stddef.h>\n", 1)
}

/// Returns every patch, every sibling and the lock, with their contents.
fn everything(generations: &Generations) -> Vec<(String, String)> {
    let project = &generations.project;
    let patches = files::list(&project.path("patches/paged"));
    let names = patches.into_iter().map(|name| format!("patches/paged/{name}"));
    names.chain(["espalier.lock".to_string()]).map(|name| (name.clone(), project.read(&name))).collect()
}

/// Stops at the last sibling: that of the first patch got another greeting, which the last one changes.
fn at_conflict() -> Generations {
    let generations = Generations::with_siblings();
    generations.project.edit(LAST, "Greet dearly\n\n---", "Greet dearly\n\nOn v2.\n---");
    generations.project.run(&["lock"]).success();
    generations.rebase("v2", &["--edit", "1"]).code(4);
    let work = generations.work("v2");
    files::edit(&work.join("src/greet.c"), "hi there", "hi there, all");
    git::git(&work, &["add", "src/greet.c"]);
    generations
}

#[test]
fn a_sibling_after_a_changed_one_is_refreshed() {
    let generations = Generations::with_siblings();
    generations.project.edit(LAST, "Greet dearly\n\n---", "Greet dearly\n\nOn v2.\n---");
    commit_project(&generations.project);
    let before = generations.project.read(LAST);
    generations.change_patch(1, include).says(&["the generation v2 is stale: 1 of 3 patches have changed"]);
    generations.rebase("v2", &[]).code(4).says(&[&format!("{FIRST} waits to be edited")]);
    generations
        .rebase("v2", &["--continue"])
        .success()
        .says(&[&format!("Refreshing {LAST}")])
        .says_nothing_of("its patch is replayed instead");
    let sibling = generations.project.read(LAST);
    assert_ne!(sibling, before);
    for line in ["\nOn v2.\n", "\n-        return \"hi there\";\n", "\n+        return \"hi there, dear\";\n"]
    {
        assert!(sibling.contains(line), "{sibling}");
    }
    assert_eq!(generations.file("v2", "src/greet.c"), greet_with_include("hi there, dear"));
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v2"]).success();
    generations.project.run(&["lint"]).success();
    let output = generations.rebase("v2", &[]).success();
    assert!(output.stdout.contains("there is nothing to rebase"), "{output}");
}

/// The patch that changed has no sibling: its earlier version is in the history of the project.
#[test]
fn a_sibling_after_a_changed_patch_is_refreshed_without_a_stop() {
    let generations = Generations::with_siblings();
    generations.rebase("v1-1", &["--edit", "3"]).code(4);
    let work = generations.work("v1-1");
    files::edit(&work.join("src/greet.c"), "hello there, dear", "hello there, dears");
    git::git(&work, &["add", "src/greet.c"]);
    generations.rebase("v1-1", &["--continue"]).success();
    commit_project(&generations.project);
    generations.change_patch(1, include).says(&[
        "paged-v1-1 stays as it was locked: the generation v1-1 needs siblings: 1 of 3 patches do not apply",
        "next: refresh or make them: cargo xtask rebase --variant paged-v1-1    # it refreshes the siblings that merge",
    ]);
    let output = generations.rebase("v1-1", &["--dry-run"]).success();
    for text in [
        "paged-v1-1: 2 of 3 patches apply to hello v1.1 by themselves, 0 are replaced by siblings, 1 by siblings that \
         are refreshed, 0 wait\n",
        "next: cargo xtask rebase --variant paged-v1-1    # it refreshes siblings",
    ] {
        assert!(output.stdout.contains(text), "{output}");
    }
    let json = generations.rebase("v1-1", &["--dry-run", "--json"]).success().json();
    let results = json["patches"].as_array().unwrap().iter().map(|patch| patch["result"].as_str().unwrap());
    assert_eq!(results.collect::<Vec<_>>(), ["replayed", "replayed", "refreshed"]);
    let refreshed = "Refreshing patches/paged/0003-greet-dearly@v1-1.patch";
    generations.rebase("v1-1", &[]).success().says(&[refreshed]);
    let text = generations.file("v1-1", "src/greet.c");
    assert!(text.contains("hello there, dears") && text.contains("#include <stddef.h>\n"), "{text}");
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v1-1"]).success();
}

#[test]
fn a_sibling_that_does_not_merge_is_itself_in_the_work_tree() {
    let generations = at_conflict();
    let before = generations.project.read(LAST);
    generations.rebase("v2", &["--continue"]).code(4).says(&[
        &format!("{LAST} does not merge with the earlier patches as they are now (2 of 3 patches done)"),
        "src/greet.c: earlier patches have changed the same lines as the sibling",
        "earlier patches have changed: the work tree has the sibling, merged with what they are now",
    ]);
    let text = std::fs::read_to_string(generations.work("v2").join("src/greet.c")).unwrap();
    for lines in [
        "<<<<<<< the earlier patches as they are now\n        return \"hi there, all\";\n",
        "||||||| the generation as locked, before 0003-greet-dearly@v2.patch\n        return \"hi there\";\n",
        "        return \"hi there, dear\";\n>>>>>>> 0003-greet-dearly@v2.patch\n",
    ] {
        assert!(text.contains(lines), "{text}");
    }
    let readme = generations.project.read("target/espalier/rebase/v2/conflict/README.md");
    assert!(readme.contains("base: the tree that the sibling was made for"), "{readme}");
    let json = generations.project.read("target/espalier/rebase/v2/conflict/conflict.json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["sibling"]["outdated"], &json["sibling"]["change"]), (&true.into(), &"none".into()));
    assert_eq!(generations.project.read(LAST), before, "nothing is written before the end");
    // Lines beside the conflict are checked as at any other stop.
    generations.solve("v2", &greet("hi there, all dear").replace("good day", "good night"));
    generations.rebase("v2", &["--continue"]).code(4).says(&["src/greet.c:"]);
    generations.solve("v2", &greet("hi there, all dear"));
    generations.rebase("v2", &["--continue"]).success();
    let sibling = generations.project.read(LAST);
    assert!(sibling.contains("hi there, all dear") && sibling.contains("\nOn v2.\n"), "{sibling}");
    assert_eq!(generations.file("v2", "src/greet.c"), greet("hi there, all dear"));
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v2"]).success();
}

#[test]
fn an_aborted_merge_of_a_sibling_changes_nothing() {
    let generations = at_conflict();
    let before = everything(&generations);
    generations.rebase("v2", &["--continue"]).code(4).says(&["does not merge with the earlier patches"]);
    generations.rebase("v2", &["--abort"]).success();
    assert_eq!(everything(&generations), before);
    assert!(!generations.work("v2").exists());
    generations.project.run(&["--locked", "apply", "--check", "--variant", "paged-v2"]).success();
}

/// The third patch names everyone, and the fourth the world again: without the third, upstream would seem to have the
/// fourth.
#[test]
fn patches_after_a_sibling_that_merges_in_part_are_judged_with_it() {
    let generations = Generations::with_siblings();
    let project = &generations.project;
    commit_project(project);
    generations.change_patch(3, name("everyone"));
    project.run(&["edit", "paged"]).success();
    let folder = edit_folder(project, "paged");
    files::edit(&folder.join("src/name.c"), "\"everyone\"", "\"world\"");
    git::commit(&folder, "Greet the world");
    project.run(&["export", "paged"]).success();
    let continue_with_another_ring = || {
        let work = generations.work("v2");
        ring_otherwise(&work);
        git::git(&work, &["add", "src/ring.c"]);
        generations.rebase("v2", &["--continue", "--allow-edits"])
    };
    // The third sibling gets another ring, and then the first one gets it too, so that the third has it in part.
    generations.rebase("v2", &[]).code(4).says(&[&format!("{LAST} waits to be edited")]);
    continue_with_another_ring().success();
    std::fs::remove_file(project.path("patches/paged/0002-say-what-is-counted@v2.patch")).unwrap();
    generations.rebase("v2", &["--edit", "1"]).code(4).says(&[&format!("{FIRST} waits to be edited")]);
    continue_with_another_ring()
        .code(4)
        .says(&["hello v2.0 has what 1 of ", "0002-say-what-is-counted.patch: upstreamed"])
        .says_nothing_of("0004-greet-the-world");
}
