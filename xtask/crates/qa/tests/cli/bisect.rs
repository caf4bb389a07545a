//! `bisect`: the upstream commits at which patches stop being exact, or stop applying.

use std::path::Path;

use super::support::upstream::{Upstream, moved as moved_upstream};
use super::support::{Output, Project, Source, files, git};

const COUNT_MOVES: (&str, &str, &str, &str) =
    ("Include more", "src/count.c", "#include \"words.h\"", "#include <stddef.h>\n#include \"words.h\"");
const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say <b>hi</b> | bye", "src/greet.c", "return \"hello\";", "return \"hi\";");
const GREETING_IS_BACK: (&str, &str, &str, &str) =
    ("Revert \"Say hi\"", "src/greet.c", "return \"hi\";", "return \"hello\";");
const GREETING_GOES_AGAIN: (&str, &str, &str, &str) =
    ("Say hi after all", "src/greet.c", "return \"hello\";", "return \"hi\";");

fn bisect(project: &Project, upstream: &Path, more: &[&str]) -> Output {
    let upstream = upstream.to_str().unwrap();
    project.run(&[&["--quiet", "bisect", "--tip", "main", "--from", upstream], more].concat())
}

#[test]
fn each_patch_has_the_commits_that_broke_it() {
    let project = Project::new();
    let moves = [COUNT_MOVES, GREETING_GOES, GREETING_IS_BACK, GREETING_GOES_AGAIN];
    let upstream = moved_upstream(&project, &moves);
    insta::assert_snapshot!(bisect(&project, &upstream, &[]), @r#"
    exit: 1
    -- stdout --
    paged: 3 of 3 patches do not stay exact over the 4 commits of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact at the pin, conflict at the tip
        stops being exact and applying at be98e0842f86 2020-01-02 Say <b>hi</b> | bye (Test Person)
          2 times; the one that holds at main: af5c4a0b5ae0 2020-01-02 Say hi after all (Test Person)
        exact -> conflict: be98e0842f86 Say <b>hi</b> | bye
        conflict -> exact: be3cc4196ddf Revert "Say hi"
        exact -> conflict: af5c4a0b5ae0 Say hi after all
      patches/paged/0002-say-what-is-counted.patch: exact at the pin, shifted at the tip
        stops being exact at 818a281851dd 2020-01-02 Include more (Test Person)
      patches/paged/0003-greet-dearly.patch: exact at the pin, blocked at the tip
        stops being exact and applying at be98e0842f86 2020-01-02 Say <b>hi</b> | bye (Test Person)
          2 times; the one that holds at main: af5c4a0b5ae0 2020-01-02 Say hi after all (Test Person)
        exact -> blocked: be98e0842f86 Say <b>hi</b> | bye
        blocked -> exact: be3cc4196ddf Revert "Say hi"
        exact -> blocked: af5c4a0b5ae0 Say hi after all
    -- stderr --
    "#);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "2"]), @"
    exit: 1
    -- stdout --
    paged: 1 of 1 patches do not stay exact over the 4 commits of hello from v1.0 to main

      patches/paged/0002-say-what-is-counted.patch: exact at the pin, shifted at the tip
        stops being exact at 818a281851dd 2020-01-02 Include more (Test Person)
    -- stderr --
    ");
    insta::assert_snapshot!(bisect(&project, &upstream, &["--markdown"]).stdout, @r"
    paged: 3 of 3 patches do not stay exact over the 4 commits of hello from v1.0 to main

    | patch | at the pin | at the tip | stops being exact | stops applying | upstreamed |
    |---|---|---|---|---|---|
    | `patches/paged/0001-greet-more-warmly.patch` | exact | conflict | `be98e0842f86` `Say <b>hi</b> \| bye`, now `af5c4a0b5ae0` `Say hi after all` | `be98e0842f86` `Say <b>hi</b> \| bye`, now `af5c4a0b5ae0` `Say hi after all` |  |
    | `patches/paged/0002-say-what-is-counted.patch` | exact | shifted | `818a281851dd` `Include more` |  |  |
    | `patches/paged/0003-greet-dearly.patch` | exact | blocked | `be98e0842f86` `Say <b>hi</b> \| bye`, now `af5c4a0b5ae0` `Say hi after all` | `be98e0842f86` `Say <b>hi</b> \| bye`, now `af5c4a0b5ae0` `Say hi after all` |  |
    ");
}

#[test]
fn a_fixed_patch_is_reported_as_fixed() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES, GREETING_IS_BACK, COUNT_MOVES]);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "0001", "--every-commit"]), @r#"
    exit: 1
    -- stdout --
    paged: 1 of 1 patches do not stay exact over the 3 commits of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact at the pin, exact at the tip
        stops being exact and applying at 1d8ceea13ce4 2020-01-02 Say <b>hi</b> | bye (Test Person)
          fixed since
        exact -> conflict: 1d8ceea13ce4 Say <b>hi</b> | bye
        conflict -> exact: 4af6877cb635 Revert "Say hi"
    -- stderr --
    "#);
}

#[test]
fn nothing_breaks() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[("About", "README.md", "Hello", "Hello!")]);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--every-commit"]), @"
    exit: 0
    -- stdout --
    paged: 0 of 3 patches do not stay exact over the 1 commit of hello from v1.0 to main

      patches/paged/0001-greet-more-warmly.patch: exact all the way
      patches/paged/0002-say-what-is-counted.patch: exact all the way
      patches/paged/0003-greet-dearly.patch: exact all the way
    -- stderr --
    ");
    // The tip is the pin itself, found in the project's own source, whose HEAD it is.
    project.run(&["bisect", "--every-commit"]).success();
}

/// The bad end has to be bad.
#[test]
fn a_series_that_is_exact_at_the_tip_is_not_bisected() {
    let project = Project::new();
    let about = ("About", "README.md", "Hello", "Hello!");
    let upstream = moved_upstream(&project, &[GREETING_GOES, GREETING_IS_BACK, about]);
    insta::assert_snapshot!(bisect(&project, &upstream, &[]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: all 3 patches are exact at the bad end, main; there is nothing to bisect
      next: cargo xtask newest --tip main --from [BESIDE]/moved    # how far the pin can move
      next: or judge every commit all the same: cargo xtask bisect --every-commit --tip main --from [BESIDE]/moved
    ");
    // Only the selected patch counts.
    files::edit(&upstream.join("src/count.c"), COUNT_MOVES.2, COUNT_MOVES.3);
    git::commit(&upstream, COUNT_MOVES.0);
    bisect(&project, &upstream, &[]).code(1);
    bisect(&project, &upstream, &["--patch", "2"]).code(1);
    bisect(&project, &upstream, &["--patch", "1"]).code(2).says(&[
        "the patch is exact at the bad end, main",
        "cargo xtask bisect --every-commit --tip main --from [BESIDE]/moved --patch 1\n",
    ]);
    insta::assert_snapshot!(project.run(&["--quiet", "bisect"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: the bad end, HEAD, has the tree of the pin, v1.0; there is nothing to bisect
      next: cargo xtask bisect --tip REF    # REF: a commit after the pin
      next: or judge every commit all the same: cargo xtask bisect --every-commit
    ");
}

/// The good end has to be good: whatever made the patch inexact is not among the commits.
#[test]
fn a_series_that_is_not_exact_at_the_pin_is_not_bisected() {
    let project = Project::new();
    project.edit("patches/paged/0002-say-what-is-counted.patch", "// words", "// WORDS");
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    let output = bisect(&project, &upstream, &[]).code(1);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(
        lines[0],
        "error: the series is not exact at the good end, the pin v1.0; nothing was bisected"
    );
    assert!(lines[1].starts_with("  patches/paged/0002-say-what-is-counted.patch: "), "{output}");
    assert_eq!(
        lines[2..],
        [
            "  next: cargo xtask apply --check    # what is wrong there",
            "  next: or judge every commit all the same: cargo xtask bisect --every-commit --tip main --from \
             [BESIDE]/moved",
        ]
    );
    // Only the selected patch counts.
    bisect(&project, &upstream, &["--patch", "1"]).code(1).says_nothing_of("error");
    let json = bisect(&project, &upstream, &["--json", "--every-commit"]).code(1).json();
    assert_ne!(json["patches"][1]["at_pin"], "exact");
}

/// Every series counts from 0001: a bare number selects one of the variant's own patches, and a parent's only if the
/// variant has no such number.
#[test]
fn a_number_names_the_own_patch_before_a_parents() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[]);
    files::edit(
        &project.path("pins.toml"),
        "[variants.paged]",
        "[variants.child]\nextends = \"paged\"\npatches = \"patches/child\"\n\n[variants.paged]",
    );
    project.run(&["edit", "child"]).success();
    let edited = project.path("target/espalier/edit/child");
    files::write(&edited.join("src/child.c"), "int child;\n");
    git::commit(&edited, "Add a child");
    project.run(&["export", "child"]).success();
    let judged = |name: &str| {
        let more = ["--variant", "child", "--patch", name, "--every-commit"];
        let stdout = bisect(&project, &upstream, &more).success().stdout;
        let found = stdout.lines().filter_map(|line| line.trim().strip_prefix("patches/")?.split_once(": "));
        found.map(|(file, _)| file.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(judged("0001"), ["child/0001-add-a-child.patch"]);
    assert_eq!(judged("1"), ["child/0001-add-a-child.patch"]);
    assert_eq!(judged("2"), ["paged/0002-say-what-is-counted.patch"]);
    assert_eq!(judged("patches/paged/0001-greet-more-warmly.patch"), ["paged/0001-greet-more-warmly.patch"]);
}

#[test]
fn a_patch_that_is_not_there() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[]);
    insta::assert_snapshot!(bisect(&project, &upstream, &["--patch", "7"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `paged` has no patch `7`
      patches/paged/0001-greet-more-warmly.patch
      patches/paged/0002-say-what-is-counted.patch
      patches/paged/0003-greet-dearly.patch
      next: name one by its number: --patch 0001
    ");
}

#[test]
fn a_tip_without_its_history() {
    let project = Project::new();
    moved_upstream(&project, &[GREETING_GOES]);
    let folder = project.beside("moved");
    git::git(&folder, &["checkout", "--quiet", "--orphan", "squashed"]);
    git::commit(&folder, "All at once");
    git::git(&folder, &["branch", "--quiet", "--force", "main", "squashed"]);
    git::git(&folder, &["bundle", "create", "--quiet", "release.bundle", "main"]);
    let bundle = folder.join("release.bundle");
    insta::assert_snapshot!(bisect(&project, &bundle, &[]), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: the commits of hello between v1.0 and main are not available
      path [UPSTREAM]: has them only if it is a clone of both
      next: name a clone in which main comes after v1.0: --from PATH
    ");
    // The same from a repository that does not contain the pin's history.
    let other = project.beside("other");
    git::init(&other);
    for text in ["1", "2"] {
        files::write(&other.join("file"), text);
        git::commit(&other, "Something else");
    }
    bisect(&project, &other, &[]).code(3);
}

/// A shallow clone of `upstream` with this many commits.
fn shallow_clone(project: &Project, upstream: &Path, depth: &str) -> std::path::PathBuf {
    let clone = project.beside(&format!("shallow-{depth}"));
    let from = format!("file://{}", upstream.display());
    git::git(project.root(), &["clone", "--quiet", "--depth", depth, &from, clone.to_str().unwrap()]);
    clone
}

/// It is as good as a complete one if it has the pin.
#[test]
fn a_shallow_clone_that_has_the_pin() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    let stdout = bisect(&project, &shallow_clone(&project, &upstream, "3"), &[]).code(1).stdout;
    let whole = Project::new();
    let whole = bisect(&whole, &moved_upstream(&whole, &[COUNT_MOVES, GREETING_GOES]), &[]).code(1).stdout;
    assert_eq!(stdout, whole);
    assert!(stdout.contains("2 commits of hello from v1.0 to main"), "{stdout}");
}

#[test]
fn a_shallow_clone_that_does_not_have_the_pin() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    let alone = shallow_clone(&project, &upstream, "1");
    bisect(&project, &alone, &[])
        .code(3)
        .says(&["the commits of hello between v1.0 and main are not available"]);
    project.run(&["rebase", "--dry-run", "--to", "main", "--from", alone.to_str().unwrap()]).code(4);
    // Its two commits would be taken for all that were made since the pin.
    let parts = Project::new();
    let upstream = moved_upstream(&parts, &[COUNT_MOVES, GREETING_GOES, GREETING_IS_BACK]);
    let two = shallow_clone(&parts, &upstream, "2");
    bisect(&parts, &two, &[]).code(3).says(&[
        "it is a shallow clone whose history does not reach back to v1.0",
        "next: complete it: git -C ",
        "next: or use its newest commit alone: git clone --bare --depth 1 --branch main ",
    ]);
    // The commands work.
    git::git(&two, &["fetch", "--quiet", "--unshallow"]);
    bisect(&parts, &two, &[]).code(1);
}

#[test]
fn a_project_with_nothing_but_pins_and_patches() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    let root = project.beside("small");
    files::copy_folder(&project.path("patches/paged"), &root.join("series"));
    let tree = Upstream::shared().tree();
    files::write(
        &root.join("pins.toml"),
        format!(
            "default-variant = \"ours\"\n\n[pins.hello]\nupstream = \"hello\"\ntag = \"v1.0\"\ntree = \"{tree}\"\n\
             sources = [{{ path = {upstream:?} }}]\n\n[variants.ours]\npin = \"hello\"\npatches = \"series\"\n"
        ),
    );
    let run = |command: &str, code: i32| {
        let mut run = std::process::Command::new(project.command(&[]).get_program());
        run.arg("--root").arg(&root).args(["--json", command, "--tip", "main"]);
        project.finish(run).code(code).json()
    };
    assert_eq!(run("bisect", 1)["patches"][0]["stops_applying"]["first"]["subject"], GREETING_GOES.0);
    assert_eq!(run("newest", 1)["applies"]["commit"]["subject"], COUNT_MOVES.0);
    let status = run("status", 1);
    assert_eq!(
        status["history"][status["patches"][2]["caused_by"].as_u64().unwrap() as usize]["subject"],
        GREETING_GOES.0
    );
    assert!(!root.join("ci").exists() && !root.join("espalier.lock").exists());
}

/// Upstream reverted something right before the pin: two commits have the pinned tree, and only one is the pin.
#[test]
fn commits_before_the_pin_are_not_judged() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES, GREETING_IS_BACK]);
    git::git(&upstream, &["tag", "--force", "v1.0"]);
    files::edit(&upstream.join("src/count.c"), COUNT_MOVES.2, COUNT_MOVES.3);
    git::commit(&upstream, COUNT_MOVES.0);
    let url = format!("file://{}", upstream.display());
    for source in [Source::Path(upstream.clone()), Source::Git(url)] {
        let project = Project::with_sources(&[source]);
        let report = project.run(&["--json", "bisect", "--tip", "main"]).code(1).json();
        assert_eq!(report["commits"], 1, "{report:#}");
        assert_eq!(report["patches"][0]["at_tip"], "exact");
        assert_eq!(report["patches"][0]["turns"].as_array().unwrap().len(), 0);
    }
}
