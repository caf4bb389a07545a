//! The issues of `canary` are about every series on the pin, because it moves only with all of them. Which variant the
//! run names makes no difference.

use super::support::editing::extend;
use super::support::watched::{Watched, watched};
use super::support::{files, git};

const COUNT: &str = "0002-say-what-is-counted.patch";
const DEARLY: &str = "0003-greet-dearly.patch";

/// As [`watched`], with a patch of `paged` in a series of its own: in that of `variant`, which extends `parent`.
fn watched_with(variant: &str, parent: &str, patch: &str) -> Watched {
    let watched = watched();
    extend(&watched.project, variant, parent);
    let moved = patch.replacen(&patch[..4], "0001", 1);
    let (from, to) = (format!("patches/paged/{patch}"), format!("patches/{variant}/{moved}"));
    std::fs::rename(watched.project.path(&from), watched.project.path(&to)).unwrap();
    if patch == COUNT {
        let renumbered = watched.project.path("patches/paged/0002-greet-dearly.patch");
        std::fs::rename(watched.project.path("patches/paged").join(DEARLY), renumbered).unwrap();
    }
    watched
}

/// Runs the canary for each variant; none of the runs may change an issue.
fn assert_same_for(watched: &Watched, variants: &[&str]) {
    watched.server.take_changes();
    for variant in variants {
        watched.run(&["--quiet", "--until", "status", "--github", "--variant", variant]);
        assert_eq!(watched.server.take_changes(), [""; 0], "{variant}");
    }
    assert_eq!(watched.server.comments(), []);
}

#[test]
fn a_break_of_a_series_that_is_not_named_has_an_issue() {
    let watched = watched_with("other", "stock", COUNT);
    watched.upstream_does("Count otherwise", "src/count.c", "int count = 0;", "int count = 1;");
    // The named series applies.
    watched.keep_issues().success();
    let title = format!("0001-say-what-is-counted.patch: conflict since upstream {}", &watched.tip()[..12]);
    assert_eq!(watched.titles("open"), [title]);
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    for words in [
        "patch=patches/other/0001-say-what-is-counted.patch",
        "`cargo xtask status --variant other --tip HEAD",
        "`cargo xtask rebase --to HEAD --variant other",
        "The conflict as data",
    ] {
        assert!(body.contains(words), "{words}\n{body}");
    }
    assert_same_for(&watched, &["paged", "other"]);
    watched.upstream_does("Count as before", "src/count.c", "int count = 1;", "int count = 0;");
    watched.keep_issues().success();
    assert_eq!((watched.titles("open").len(), watched.titles("closed").len()), (0, 1));
}

#[test]
fn a_patch_of_several_series_has_one_issue() {
    let watched = watched_with("child", "paged", DEARLY);
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let since = &watched.tip()[..12];
    assert_eq!(
        watched.titles("open"),
        [format!("0001-greet-more-warmly.patch: conflict since upstream {since}")]
    );
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    let waiting = "\nWaiting for it: `patches/child/0001-greet-dearly.patch`.\n";
    assert!(body.contains(waiting) && body.contains("status --variant paged "), "{body}");
    assert_same_for(&watched, &["paged", "child"]);
}

#[test]
fn an_overlay_of_another_variant_in_the_way_has_an_issue() {
    let watched = watched();
    let more = "[variants.more]\nextends = \"stock\"\noverlays = [\"overlay/more\"]\n\n[variants.paged]";
    watched.project.edit("pins.toml", "[variants.paged]", more);
    watched.project.write("overlay/more/docs/more.txt", "ours\n");
    files::write(&watched.upstream.join("docs/more.txt"), "upstream's\n");
    git::commit(&watched.upstream, "Tell more");
    watched.keep_issues().success();
    assert_eq!(watched.titles("open"), ["more: status fails on hello's tip"]);
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    assert!(body.contains("`overlay/more/docs/more.txt` would replace `docs/more.txt`"), "{body}");
    assert_same_for(&watched, &["paged", "more"]);
    git::git(&watched.upstream, &["rm", "--quiet", "docs/more.txt"]);
    git::commit(&watched.upstream, "Tell less");
    watched.keep_issues().success();
    assert_eq!((watched.titles("open").len(), watched.titles("closed").len()), (0, 1));
}
