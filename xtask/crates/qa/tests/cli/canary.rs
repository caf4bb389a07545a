//! `canary`: the levels on upstream's tip, and their report.

use super::support::upstream::Upstream;
use super::support::watched::watched;
use super::support::{files, git};

#[test]
fn a_good_tip_passes_every_level_and_the_pin_can_move() {
    let watched = watched();
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hello, always.");
    insta::assert_snapshot!(watched.run(&["--until", "build"]), @r#"
    exit: 0
    -- stdout --
    paged on hello HEAD (6b4da519dcf1), pin v1.0: is good

      fetch     passed       commit 6b4da519dcf1ec4c5ccb1d34b6288ea5bd66f223
      status    passed       3 of 3 patches are exact
      contract  passed       2 files compile, syntax only
      build     passed       canary.paged-cpu-native is built and answers

    next: the pin can move: cargo xtask sync --to 6b4da519dcf1ec4c5ccb1d34b6288ea5bd66f223 --from [BESIDE]/moved
    -- stderr --
          Trying fetch
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello HEAD from path [BESIDE]/moved
          Trying status
          Trying contract
         Reading 1 commit of hello since v1.0
     Configuring canary.paged-cpu-native
          Trying build
       Compiling canary.paged-cpu-native
          Tested canary.paged-cpu-native: completion "grows", chat "green" in [TIME]
        Finished canary.paged-cpu-native in target/espalier/dist/canary.paged-cpu-native
    "#);
    let project = &watched.project;
    assert!(!project.path("espalier.lock").exists());
    assert!(!project.tree("paged").exists());
    assert!(project.path("target/espalier/dist/canary.paged-cpu-native/bin/hello").exists());
    assert_eq!(project.scratch(), [""; 0]);
}

#[test]
fn at_the_pin_there_is_nothing_to_offer() {
    let json = watched().run(&["--json", "--until", "status"]).success().json();
    assert_eq!(json["report"]["newest"], serde_json::Value::Null);
    assert_eq!(json["report"]["levels"][1]["verdict"], "passed");
}

#[test]
fn drift_ends_it_at_status() {
    let watched = watched();
    watched.greeting_goes();
    insta::assert_snapshot!(watched.run(&["--quiet"]), @"
    exit: 1
    -- stdout --
    paged on hello HEAD (b2f33ff0ec38), pin v1.0: is not good

      fetch     passed       commit b2f33ff0ec38adefab398555a49dff54606ae3ff
      status    FAILED       1 of 3 patches are exact
      contract  not reached  status did not pass
      build     not reached  status did not pass
      gate      not reached  status did not pass

    status:
      patches/paged/0001-greet-more-warmly.patch: conflict
      patches/paged/0003-greet-dearly.patch: blocked
    -- stderr --
    ");
}

#[test]
fn an_overlay_file_in_the_way_is_drift_with_one_issue() {
    let watched = watched();
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hello, always.");
    let good = watched.tip();
    files::write(&watched.upstream.join("espalier/note.txt"), "upstream's\n");
    git::commit(&watched.upstream, "Note");
    let output = watched.keep_issues().code(1);
    let status = "  status    FAILED       3 of 3 patches are exact; 1 overlay file is in the way";
    let next = format!("next: the pin can move: cargo xtask sync --to {good}");
    for words in [status, "`overlay/extra/espalier/note.txt` would replace", next.as_str()] {
        assert!(output.stdout.contains(words), "{words}\n{output}");
    }
    watched.keep_issues().code(1);
    assert_eq!(watched.titles("open"), ["paged: status fails on hello's tip"]);
    git::git(&watched.upstream, &["rm", "--quiet", "espalier/note.txt"]);
    git::commit(&watched.upstream, "Note no more");
    watched.keep_issues().success();
    assert_eq!((watched.titles("open").len(), watched.titles("closed").len()), (0, 1));
}

#[test]
fn a_moved_interface_is_found_without_a_build() {
    let watched = watched();
    watched.upstream_does(
        "Count letters",
        "include/words.h",
        "words_count(const char * text)",
        "words_count(char letter)",
    );
    let output = watched.run(&["--quiet"]).code(1);
    for words in [
        "status    passed       3 of 3 patches are exact",
        "contract  FAILED       1 of 2 files do not compile, syntax only",
        "build     not reached  contract did not pass",
        "\n  src/count.c\n  src/count.c:3:",
    ] {
        assert!(output.stdout.contains(words), "{words}\n{output}");
    }
    assert!(!watched.project.path("target/espalier/dist").exists());
}

#[test]
fn a_build_that_fails_is_drift_too() {
    let watched = watched();
    watched.upstream_does("Forget a word", "src/upper.c", "words_upper", "words_uper");
    watched.upstream_does(
        "Use it",
        "programs/hello.c",
        "words_name());",
        "words_name()); return words_upper(65);",
    );
    let output = watched.run(&["--quiet", "--until", "build"]).code(1);
    for words in [
        "contract  passed       2 files compile, syntax only",
        "build     FAILED       build-canary.paged-cpu-native: `bin/hello` could not be built",
        "words_upper",
    ] {
        assert!(output.stdout.contains(words), "{words}\n{output}");
    }
}

#[test]
fn an_unreachable_upstream_is_not_drift_and_no_request_is_made() {
    let watched = watched();
    watched.project.run(&["fetch"]).success();
    std::fs::remove_dir_all(&watched.upstream).unwrap();
    insta::assert_snapshot!(watched.keep_issues(), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: no source has `HEAD` of hello
      path [BESIDE]/moved: `[BESIDE]/moved` is not there
      next: name a repository or a bundle that has it: --from PATH
    ");
    assert_eq!(watched.server.seen().len(), 0);
}

#[test]
fn a_pin_that_no_source_has_is_not_drift_and_no_request_is_made() {
    let watched = watched();
    let gone = watched.project.beside("gone").display().to_string();
    let here = Upstream::shared().repository().display().to_string();
    watched.project.edit("pins.toml", &here, &gone);
    watched.keep_issues().code(3);
    assert_eq!(watched.server.seen().len(), 0);
}

#[test]
fn after_drift_the_pin_can_still_move_as_far_as_all_applies() {
    let watched = watched();
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hi.");
    let good = watched.tip();
    watched.greeting_goes();
    let json = watched.run(&["--json", "--until", "status"]).code(1).json();
    assert_eq!(json["report"]["newest"], good);
}

#[test]
fn the_report_the_page_and_the_summary_are_written() {
    let watched = watched();
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hi.");
    let (report, page, summary) =
        (watched.project.beside("r.md"), watched.project.beside("p.html"), watched.project.beside("s.md"));
    files::write(&summary, "earlier\n");
    let files = [report.to_str().unwrap(), page.to_str().unwrap()];
    let mut command =
        watched.command(&["--until", "status", "--github", "--report", files[0], "--html", files[1]]);
    command.env("GITHUB_STEP_SUMMARY", &summary);
    watched.project.finish(command).success();
    let text = std::fs::read_to_string(&report).unwrap();
    let shown = text.replace(watched.upstream.to_str().unwrap(), "[MOVED]");
    insta::assert_snapshot!(shown.replace(&watched.tip(), "[TIP]").replace(&watched.tip()[..12], "[SHORT]"), @"
    ## paged on hello HEAD ([SHORT]), pin v1.0: is good

    | level | verdict | |
    |---|---|---|
    | fetch | passed | commit [TIP] |
    | status | passed | 3 of 3 patches are exact |

    **The pin can move:** `cargo xtask sync --to [TIP] --from [MOVED]`, or start [pin-sync](https://github.com/espalier/espalier/actions/workflows/pin-sync.yml) with `to` = `[TIP]`

    ### series

    paged: 3 of 3 patches are exact at hello HEAD, 1 commit after v1.0

    | patch | class | since | changed upstream by |
    |---|---|---|---|
    | `patches/paged/0001-greet-more-warmly.patch` | exact |  |  |
    | `patches/paged/0002-say-what-is-counted.patch` | exact |  |  |
    | `patches/paged/0003-greet-dearly.patch` | exact |  |  |
    ");
    assert_eq!(std::fs::read_to_string(&summary).unwrap(), format!("earlier\n{text}"));
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn dry_run_does_nothing() {
    let watched = watched();
    insta::assert_snapshot!(watched.run(&["--dry-run", "--github", "--until", "contract", "--report", "r.md"]), @"
    exit: 0
    -- stdout --
    fetch     fetch the tip into the store
    status    compare every patch with it
    contract  compile each file that the series touches, syntax only
    write     r.md
    issues    one a patch and culprit, one a level: made, updated, closed
    -- stderr --
    ");
    assert!(!watched.project.path("target").exists());
    assert_eq!(watched.server.seen().len(), 0);
}

#[test]
fn a_persons_build_is_left_alone() {
    let watched = watched();
    watched.project.run_build(&["build"]).success();
    let before = files::times(&watched.project.path("target/espalier/build/paged-cpu-native"));
    let lock = watched.project.read("espalier.lock");
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hi.");
    watched.run(&["--until", "build"]).success();
    let after = files::times(&watched.project.path("target/espalier/build/paged-cpu-native"));
    assert_eq!(files::differences(&before, &after), [""; 0]);
    assert_eq!(watched.project.read("espalier.lock"), lock);
    assert_eq!(watched.project.run_build(&["--json", "build"]).success().json()["current"], true);
}
