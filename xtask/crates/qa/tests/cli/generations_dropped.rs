//! A patch that a move drops at the pin is dropped on the generations too, and the report says where it is still
//! needed.

use super::support::generations::Generations;
use super::support::upstream::TAG;
use super::support::{files, git};

/// Adds the release `v1.2`, which has the change of the second patch. Of the generations, `v2` has it too.
fn upstream_takes_the_second_patch(generations: &Generations) {
    let upstream = &generations.upstream;
    git::git(upstream, &["checkout", "--quiet", "--force", "--detach", TAG]);
    files::edit(&upstream.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    git::commit(upstream, "Release v1.2");
    git::git(upstream, &["tag", "v1.2"]);
}

#[test]
fn a_drop_at_the_pin_names_the_generations_that_lose_the_patch() {
    let generations = Generations::with_siblings();
    upstream_takes_the_second_patch(&generations);
    let from = generations.upstream.to_str().unwrap();
    let rebase = ["--json", "rebase", "--to", "v1.2", "--from", from, "--drop-upstreamed"];
    let notes_on = |json: &serde_json::Value| -> Vec<String> {
        let patches = json["patches"].as_array().unwrap();
        let dropped = patches.iter().find(|patch| patch["fate"] == "dropped").unwrap();
        assert_eq!(dropped["file"], "patches/paged/0002-say-what-is-counted.patch");
        assert!(patches.iter().filter(|patch| **patch != *dropped).all(|patch| patch["fate"] != "dropped"));
        dropped["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_string()).collect()
    };
    let note = "the generation v1-1 loses it too, and no sibling says that its tree has the change";
    for more in [&["--dry-run"][..], &[]] {
        let json = generations.project.run(&[&rebase[..], more].concat()).success().json();
        let notes = notes_on(&json);
        assert!(notes.iter().any(|found| found == note), "{notes:?}");
        assert!(!notes.concat().contains("v2"), "{notes:?}");
    }
    assert!(!generations.siblings().iter().any(|name| name.contains("say-what-is-counted")));
    // `undo` brings the patch back, with its sibling.
    generations.project.run(&["undo"]).success();
    assert!(generations.siblings().contains(&"0002-say-what-is-counted@v2.patch".to_string()));
}
