//! All series on a pin move with it, or none does.

use super::support::moving::{Move, TIP, above_everything, upstream_greets_otherwise};
use super::support::{Project, files, git};

const OTHER: &str = "patches/other/0001-say-what-is-counted.patch";
const CHILD: &str = "patches/child/0001-say-what-is-counted.patch";

/// Creates the usual project, with a second series beside the first, and a third one that extends the first. Both of
/// these make the change of the second patch of the usual series, which has only two patches now.
fn project() -> Project {
    let project = Project::new();
    let count = project.read("patches/paged/0002-say-what-is-counted.patch");
    let dearly = project.read("patches/paged/0003-greet-dearly.patch");
    for (old, new, text) in [
        ("patches/paged/0002-say-what-is-counted.patch", OTHER, &count),
        ("patches/paged/0003-greet-dearly.patch", CHILD, &count),
    ] {
        std::fs::remove_file(project.path(old)).unwrap();
        project.write(new, text);
    }
    project.write("patches/paged/0002-greet-dearly.patch", dearly);
    let more = "[variants.other]\nextends = \"stock\"\npatches = \"patches/other\"\n\n[variants.child]\nextends = \"paged\"\n\
                patches = \"patches/child\"\n\n[variants.paged]";
    project.edit("pins.toml", "[variants.paged]", more);
    project.run(&["lock"]).success();
    project
}

fn counts_otherwise(folder: &std::path::Path) {
    files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 1;");
}

#[test]
fn a_clean_move_takes_all_series_along() {
    let moving = Move::of(project(), above_everything("src/greet.c"));
    let output = moving.rebase(&[]).success();
    assert!(
        output.stdout.starts_with("paged, other, child: 4 of 4 patches, from hello v1.0, now on v2.0"),
        "{output}"
    );
    for file in [OTHER, CHILD, "patches/paged/0001-greet-more-warmly.patch"] {
        assert_eq!(output.stdout.matches(file).count(), 1, "{output}");
    }
    moving.assert_moved();
}

#[test]
fn the_present_pin_is_a_move_that_changes_nothing() {
    let project = project();
    let before = files::list(project.root());
    let pins = project.read("pins.toml");
    let output = project.run(&["rebase", "--to", "v1.0"]).success();
    assert!(output.stdout.contains("already on hello v1.0"), "{output}");
    assert_eq!(project.read("pins.toml"), pins);
    let after: Vec<String> = files::list(project.root());
    let kept =
        |list: Vec<String>| list.into_iter().filter(|path| !path.starts_with("target/")).collect::<Vec<_>>();
    assert_eq!(kept(after), kept(before));
}

/// The result does not depend on which variant is named, nor on a variant without patches.
#[test]
fn every_variant_on_the_pin_names_the_same_move() {
    let mut moved = Vec::new();
    for variant in ["stock", "paged", "other", "child"] {
        let moving = Move::of(project(), above_everything("src/count.c"));
        moving.rebase(&["--variant", variant]).success();
        moving.assert_moved();
        moved.push(moving.committed());
    }
    assert!(moved.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A conflict in a series that was not named stops all of them; after it is resolved all move, and the parents' patches
/// are rebased once.
#[test]
fn a_conflict_in_any_series_holds_all_of_them() {
    let moving = Move::of(project(), counts_otherwise);
    let before = moving.committed();
    let output = moving.rebase(&[]).code(4);
    assert!(
        output.stderr.contains(&format!("{OTHER} does not apply to hello v2.0 automatically (0 of 4")),
        "{output}"
    );
    assert!(output.stderr.contains("child: 1 of 1 patches will stop too"), "{output}");
    assert_eq!(moving.committed(), before);
    // The second time the first resolution is offered again.
    let solve = || moving.solve_in("src/count.c", "    int count = 1; // words, not letters\n");
    solve();
    let output = moving.run(&["--continue"]).code(4);
    assert!(
        output.stderr.contains(&format!("{CHILD} does not apply to hello v2.0 automatically (3 of 4")),
        "{output}"
    );
    assert_eq!(moving.committed(), before);
    solve();
    // Any variant can be named: there is one rebase for the pin.
    moving.run(&["--continue", "--variant", "other"]).success();
    moving.assert_moved();
    for file in [OTHER, CHILD] {
        assert!(moving.project.read(file).contains("+    int count = 1; // words, not letters"));
    }
}

#[test]
fn abort_and_skip_are_for_all_series() {
    let moving = Move::of(project(), upstream_greets_otherwise);
    let before = moving.committed();
    moving.rebase(&["--variant", "other"]).code(4);
    let output = moving.rebase(&["--variant", "child"]).code(4);
    assert!(output.stderr.contains("a rebase of other to v2.0 is still in progress"), "{output}");
    moving.run(&["--abort"]).success();
    assert_eq!(moving.committed(), before);
    moving.rebase(&[]).code(4);
    moving.run(&["--skip"]).code(4);
    let output = moving.run(&["--skip"]).success();
    assert!(output.stdout.contains("2 of 4 patches"), "{output}");
    moving.assert_moved();
    assert!(files::list(&moving.project.path("patches/paged")).is_empty());
}

/// An upstreamed change is reported for all series at once, and dropped in all.
#[test]
fn upstreamed_patches_of_all_series_are_reported() {
    let takes = |folder: &std::path::Path| {
        files::edit(&folder.join("src/count.c"), "int count = 0;", "int count = 0; // words, not letters");
    };
    let moving = Move::of(project(), takes);
    let output = moving.rebase(&[]).code(4);
    assert!(output.stderr.contains("v2.0 has what 2 of 4 patches do"), "{output}");
    let output = moving.rebase(&["--drop-upstreamed"]).success();
    assert!(output.stdout.contains("2 of 4 patches"), "{output}");
    moving.assert_moved();
}

/// A dry run of a rebase gives a patch the same verdict as `status`.
#[test]
fn a_dry_run_has_the_verdicts_of_status() {
    let moving = Move::of(project(), upstream_greets_otherwise);
    let output = moving.rebase(&["--dry-run"]).code(4);
    let headline = "paged, other, child: 2 of 4 patches, from hello v1.0, can move without a decision to v2.0: 1 in \
                    conflict, 1 blocked\n";
    assert!(output.stdout.starts_with(headline), "{output}");
    let next = "next: it stops at each patch in conflict: cargo xtask rebase --to v2.0 --from ";
    assert!(output.stdout.contains(next), "{output}");
    let blocked = "blocked    patches/paged/0002-greet-dearly.patch (by 0001-greet-more-warmly.patch)";
    assert!(output.stdout.contains(blocked), "{output}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    let at = lines.iter().position(|line| line.contains(blocked)).unwrap();
    assert!(!lines[at + 1].contains("upstream changed the same lines"), "{output}");
    let from = moving.upstream.to_str().unwrap();
    let status = moving.project.run(&["status", "--tip", TIP, "--from", from]).code(1);
    assert!(status.stdout.contains("(by 0001-greet-more-warmly.patch)"), "{status}");
}

/// A series that `--variant` does not name can stop the move as well, so `status` judges it too.
#[test]
fn status_judges_every_series_on_the_pin() {
    let moving = Move::of(project(), counts_otherwise);
    let from = moving.upstream.to_str().unwrap();
    let status = ["status", "--tip", TIP, "--from", from];
    let stdout = moving.project.run(&status).code(1).stdout;
    assert!(stdout.starts_with("paged: 2 of 2 patches are exact at hello v2.0"), "{stdout}");
    for (variant, file) in [("other", OTHER), ("child", CHILD)] {
        let heading = format!("\n{variant}, which moves with the pin: 0 of 1 patches are exact\n");
        assert!(stdout.contains(&format!("{heading}\n  conflict  {file}, since ")), "{stdout}");
    }
    // A patch that several series have is judged once.
    assert_eq!(stdout.matches("0001-greet-more-warmly.patch").count(), 1, "{stdout}");
    let markdown = moving.project.run(&[&status[..], &["--markdown"]].concat()).code(1).stdout;
    let page = moving.project.beside("page.html");
    moving.project.run(&[&status[..], &["--html", page.to_str().unwrap()]].concat()).code(1);
    for text in [markdown, std::fs::read_to_string(page).unwrap()] {
        assert!(text.contains("other, which moves with the pin: 0 of 1 patches are exact"), "{text}");
    }
    moving.rebase(&["--dry-run"]).code(4);
    // At the pin, where nothing moves, only the named series is judged.
    assert!(!moving.project.run(&["status"]).success().stdout.contains("moves with the pin"));
}

/// `newest` suggests a commit to which the pin can move with all series on it.
#[test]
fn newest_looks_at_every_series_on_the_pin() {
    let moving = Move::of(project(), |folder| {
        files::edit(&folder.join("README.md"), "Hello", "Hello!");
        git::commit(folder, "About");
        counts_otherwise(folder);
    });
    let from = moving.upstream.to_str().unwrap();
    let report = moving.project.run(&["--json", "newest", "--tip", TIP, "--from", from]).code(1).json();
    assert_eq!(report["series"], serde_json::json!(["paged", "other", "child"]));
    assert_eq!(report["applies"]["before_tip"], 1, "{report}");
    let commit = report["applies"]["commit"]["id"].as_str().unwrap();
    assert!(
        report["next"].as_str().unwrap().starts_with(&format!("cargo xtask rebase --to {commit}")),
        "{report}"
    );
    moving.project.run(&["rebase", "--to", commit, "--from", from]).success();
}

/// The command that `newest` prints is about a series that stops the move.
#[test]
fn newest_offers_a_bisect_of_the_series_that_breaks() {
    let moving = Move::of(project(), counts_otherwise);
    let from = moving.upstream.to_str().unwrap();
    let output = moving.project.run(&["newest", "--tip", TIP, "--from", from]).code(1);
    let next = format!("next: cargo xtask bisect --tip {TIP} --variant other --from [BESIDE]/newer");
    assert!(output.stdout.contains(&next), "{output}");
    let bisect = ["bisect", "--tip", TIP, "--from", from, "--variant"];
    moving.project.run(&[&bisect[..], &["other"]].concat()).code(1).says_nothing_of("error");
    moving.project.run(&[&bisect[..], &["paged"]].concat()).code(2);
}
