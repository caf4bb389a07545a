//! `trailers`, and the rules of lint that a project relaxes in `ci/lint.toml`.

use super::support::Project;
use super::support::editing::series;

/// The shared series has no trailers at all.
fn locked() -> Project {
    let project = Project::new();
    project.run(&["lock"]).success();
    project
}

fn rules(project: &Project) -> Vec<String> {
    let json = project.run(&["--json", "lint"]).json();
    let rule = |finding: &serde_json::Value| finding["rule"].as_str().unwrap().to_string();
    json["findings"].as_array().unwrap().iter().map(rule).collect()
}

const ALL: [&str; 8] = [
    "--set",
    "Upstream-Status: Pending",
    "--set",
    "drop-when: upstream has it",
    "--set",
    "Verified-by: cargo test",
    "--set",
    "Numerics: identical",
];

#[test]
fn all_patches_are_filled_in_at_once() {
    let project = locked();
    assert_eq!(rules(&project), ["trailer-missing"; 12]);
    let before = series(&project);
    let dry = project.run(&[&["trailers", "--dry-run"], &ALL[..]].concat()).success();
    assert!(dry.stdout.ends_with("3 of 3 patches would change\n"), "{dry}");
    assert_eq!(series(&project), before);
    insta::assert_snapshot!(project.run(&[&["--quiet", "trailers"], &ALL[..]].concat()), @"
    exit: 0
    -- stdout --
    changed: patches/paged/0001-greet-more-warmly.patch
    changed: patches/paged/0002-say-what-is-counted.patch
    changed: patches/paged/0003-greet-dearly.patch
    3 of 3 patches changed
    -- stderr --
    ");
    project.run(&["lint"]).success();
    project.run(&["lock", "--check"]).success();
    let again = project.run(&[&["trailers"], &ALL[..]].concat()).success();
    assert!(again.stdout.ends_with("0 of 3 patches changed\n"), "{again}");
}

#[test]
fn the_lock_follows_where_the_pin_is_not_at_hand() {
    let clone = locked().fresh_clone("other");
    clone.run(&[&["--offline", "trailers"], &ALL[..]].concat()).success();
    clone.run(&["lock", "--check"]).success();
}

/// A lock that is stale already stays stale, because the patches' trees were not verified.
#[test]
fn a_stale_lock_is_not_made_current() {
    let project = locked();
    project.edit("patches/paged/0002-say-what-is-counted.patch", "\n\n---\n", "\n\nMore.\n---\n");
    project.run(&[&["trailers"], &ALL[..]].concat()).success();
    project.run(&["lock", "--check"]).code(1).says(&["0002-say-what-is-counted.patch"]);
}

#[test]
fn with_locked_nothing_is_written() {
    let project = locked();
    let before = series(&project);
    let refused = project.run(&[&["--locked", "trailers"], &ALL[..]].concat()).code(1);
    refused.says(&["`espalier.lock` is stale"]);
    assert_eq!(series(&project), before);
}

#[test]
fn existing_values_stay_unless_overwriting_is_requested() {
    let project = locked();
    project.run(&["trailers", "--set", "Numerics: bounded 1e-5", "--patch", "2"]).success();
    project.run(&["trailers", "--set", "Numerics: identical"]).success();
    let second = || project.read("patches/paged/0002-say-what-is-counted.patch");
    assert!(second().contains("\nNumerics: bounded 1e-5\n"), "{}", second());
    project.run(&["trailers", "--set", "Numerics: identical", "--overwrite"]).success();
    assert!(second().contains("\nNumerics: identical\n") && !second().contains("bounded"), "{}", second());
    project.run(&["lock", "--check"]).success();
}

#[test]
fn a_placeholder_is_found_and_filled_in() {
    let project = locked();
    project.run(&[&["trailers"], &ALL[..]].concat()).success();
    project.edit("patches/paged/0001-greet-more-warmly.patch", "Numerics: identical", "Numerics: TODO");
    let lint = project.run(&["lint"]).code(1);
    assert!(lint.stdout.contains("`Numerics:` still says `TODO` [trailer-placeholder]"), "{lint}");
    project.run(&["trailers", "--set", "Numerics: bounded 1e-5"]).success();
    project.run(&["lint"]).success();
}

#[test]
fn mistakes_are_reported_and_nothing_is_written() {
    let project = locked();
    let before = series(&project);
    let set = |text: &str| project.run(&["trailers", "--set", text]).code(2);
    set("Numerics: maybe").says(&["`Numerics: maybe` is not allowed", "write `identical`, `bounded N` or"]);
    set("Numerics: TODO").says(&["is not allowed"]);
    set("Drop-when: a\nNumerics: b").says(&["is not allowed"]);
    set("Signed-off-by: me").says(&["is not a trailer that lint knows", "use one of: Upstream-Status"]);
    project
        .run(&["trailers", "--set", "Numerics: bounded 1e-5", "--patch", "9"])
        .code(2)
        .says(&["has no patch `9`"]);
    project
        .run(&["trailers", "stock", "--set", "Numerics: bounded 1e-5"])
        .code(2)
        .says(&["no series of its own"]);
    assert_eq!(series(&project), before);
}

#[test]
fn a_project_says_which_rules_it_relaxes() {
    let project = locked();
    project.take_patch(|fork| std::fs::write(fork.join("README.md"), "mine\n").unwrap());
    let strict = ["not-source", "trailer-missing", "trailer-missing", "trailer-missing", "trailer-missing"];
    let mut found = rules(&project);
    found.sort();
    assert_eq!(found, strict);
    project.write("ci/lint.toml", "allow-paths = [\"*.md\"]\nrequire-trailers = [\"Upstream-Status\"]\n");
    assert_eq!(rules(&project), ["trailer-missing"]);
    let offered = project.run(&["new", "x: do it", "--dry-run"]).success().stdout;
    assert!(offered.contains("\nUpstream-Status: \n") && !offered.contains("Numerics"), "{offered}");
    project.write("ci/lint.toml", "allow-paths = [\"docs/\"]\nrequire-trailers = []\n");
    assert_eq!(rules(&project), ["not-source"]);
    project.write("ci/lint.toml", "allow-paths = [\"README.md\"]\nrequire-trailers = []\n");
    project.run(&["lint"]).success();
    // Optional trailers are still checked.
    project.edit("patches/paged/0001-change-something.patch", "\n---\n", "\n\nNumerics: maybe\n---\n");
    assert_eq!(rules(&project), ["trailer-value"]);
    project.write("ci/lint.toml", "allow-everything = true\n");
    project.run(&["lint"]).code(2).says(&["ci/lint.toml:1:1", "unknown field `allow-everything`"]);
}

/// The value would look complete, and lint would still refuse the series.
#[test]
fn a_value_that_lint_refuses_is_replaced_on_request() {
    let project = locked();
    let wrong = "\n\nNumerics: rather good\n---\n";
    project.edit("patches/paged/0002-say-what-is-counted.patch", "\n\n---\n", wrong);
    let before = series(&project);
    project.run(&["trailers", "--set", "Numerics: identical"]).code(1).says(&[
        "some patches have a value already that lint does not allow; nothing was written",
        "patches/paged/0002-say-what-is-counted.patch: `Numerics: rather good`",
        "next: replace them too: run the same command with --overwrite",
    ]);
    assert_eq!(series(&project), before);
    project.run(&["trailers", "--set", "Numerics: identical", "--overwrite"]).success();
    assert!(project.read("patches/paged/0002-say-what-is-counted.patch").contains("Numerics: identical"));
}
