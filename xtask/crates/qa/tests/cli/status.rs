//! `status`: the series compared with the pin and with other upstream commits.

use std::path::Path;

use super::support::moving::{Move, TIP};
use super::support::upstream::{Upstream, moved as moved_upstream};
use super::support::{Output, Project, Source, files, git};

const COUNT_MOVES: (&str, &str, &str, &str) =
    ("Include more", "src/count.c", "#include \"words.h\"", "#include <stddef.h>\n#include \"words.h\"");
const GREETING_GOES: (&str, &str, &str, &str) =
    ("Say <b>hi</b>", "src/greet.c", "return \"hello\";", "return \"hi\";");
const GREETING_COMES: (&str, &str, &str, &str) =
    ("Be warm", "src/greet.c", "return \"hello\";", "return \"hello there\";");

fn status(project: &Project, upstream: &Path, more: &[&str]) -> Output {
    let from = upstream.display().to_string();
    let arguments = ["status", "--tip", "main", "--from", &from];
    project.run(&[&arguments, more].concat())
}

#[test]
fn at_the_pin_all_is_exact() {
    let project = Project::new();
    insta::assert_snapshot!(project.run(&["--quiet", "status"]), @"
    exit: 0
    -- stdout --
    paged: 3 of 3 patches are exact at hello v1.0, the pin

      exact  patches/paged/0001-greet-more-warmly.patch
      exact  patches/paged/0002-say-what-is-counted.patch
      exact  patches/paged/0003-greet-dearly.patch
    -- stderr --
    ");
    let json = project.run(&["--json", "status"]).success().json();
    assert_eq!(json["patches"][0]["class"], "exact");
    assert_eq!(json["tip"]["tree"], Upstream::shared().tree());
}

#[test]
fn a_line_a_patch_and_what_to_do_about_each_class() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    insta::assert_snapshot!(status(&project, &upstream, &["--quiet"]), @"
    exit: 1
    -- stdout --
    paged: 0 of 3 patches are exact at hello main, 2 commits after v1.0

      conflict  patches/paged/0001-greet-more-warmly.patch, since 8b48e55d93dd
      shifted   patches/paged/0002-say-what-is-counted.patch, since 818a281851dd
      blocked   patches/paged/0003-greet-dearly.patch (by 0001-greet-more-warmly.patch), since 8b48e55d93dd

      shifted: nothing to decide: `cargo xtask rebase --to main --from [BESIDE]/moved` moves it there
      conflict: `cargo xtask rebase --to main --from [BESIDE]/moved` stops there for you to resolve it
      blocked: resolve the patches that block it first; it can still conflict itself then

    next: cargo xtask status --long --tip main --from [BESIDE]/moved
    next: cargo xtask rebase --dry-run --to main --from [BESIDE]/moved
    -- stderr --
    ");
}

#[test]
fn each_patch_has_its_class_and_the_commits_that_touched_it() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES, GREETING_GOES]);
    insta::assert_snapshot!(status(&project, &upstream, &["--quiet", "--long"]), @r#"
    exit: 1
    -- stdout --
    paged: 0 of 3 patches are exact at hello main, 2 commits after v1.0

    patches/paged/0001-greet-more-warmly.patch: conflict
      src/greet.c: upstream changed the same lines
      src/greet.c (0001:10): 0 of 1 hunks exact
        made from blob 5018084159e5151b39daf4723cd41c7d033aa88c
        found blob     b04e97ea75f5cac95b0d4754dcaf5e4988febd17
        hunk 1 @@ -3,7 +3,7 @@ (0001:14): conflict
          made for: const char * words_greeting(int kind) {
          nearest: line 3, 6 of 7 lines agree, in function: const char * words_greeting(int kind) {
            expected (patch line 18):         return "hello";
            found    (file line 6):         return "hi";
      conflict since 8b48e55d93dd Say <b>hi</b> (Test Person)
      next: `cargo xtask rebase --to main --from [BESIDE]/moved` stops there for you to resolve it

    patches/paged/0002-say-what-is-counted.patch: shifted
      src/count.c (0002:10): 0 of 1 hunks exact
        made from blob f3961f699da50495cdc3319a552d8c20daa764cc
        found blob     7dd1594e43bd2184242853a5ddfef22d7b203053
        hunk 1 @@ -1,7 +1,7 @@ (0002:14): shifted by +1 lines
          made for: int words_count(const char * text) {
          fits at line 2, in function: int words_count(const char * text) {
      shifted since 818a281851dd Include more (Test Person)
      next: nothing to decide: `cargo xtask rebase --to main --from [BESIDE]/moved` moves it there

    patches/paged/0003-greet-dearly.patch: blocked (by 0001-greet-more-warmly.patch)
      blocked since 8b48e55d93dd Say <b>hi</b> (Test Person)
      next: resolve the patches that block it first; it can still conflict itself then
    -- stderr --
    "#);
}

/// The command beside a class does what the line says, and the mark is explained once, however many lines have it.
#[test]
fn the_command_of_a_class_moves_the_series_there() {
    let project = Project::new();
    let include = "#include <stddef.h>\n#include \"words.h\"";
    let upstream = moved_upstream(&project, &[("Include", "src/greet.c", "#include \"words.h\"", include)]);
    let stdout = status(&project, &upstream, &["--quiet"]).code(1).stdout;
    let marked = "  shifted  patches/paged/0003-greet-dearly.patch (provisional), since ";
    assert!(stdout.contains(marked), "{stdout}");
    assert_eq!(
        (stdout.matches("(provisional)").count(), stdout.matches("\n  provisional: ").count()),
        (1, 1)
    );
    let from = upstream.display().to_string();
    let step =
        "\n  shifted: nothing to decide: `cargo xtask rebase --to main --from [BESIDE]/moved` moves it there";
    assert!(stdout.contains(step), "{stdout}");
    project.run(&["rebase", "--to", "main", "--from", &from]).success();
    let tip = git::git(&upstream, &["rev-parse", "main"]);
    assert!(project.read("pins.toml").contains(&tip), "{tip}");
}

#[test]
fn a_commit_id_is_abbreviated_in_the_headline() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES]);
    let (from, tip) = (upstream.display().to_string(), git::git(&upstream, &["rev-parse", "main"]));
    let stdout = project.run(&["status", "--tip", &tip, "--from", &from]).code(1).stdout;
    let headline = format!("paged: 2 of 3 patches are exact at hello {}, 1 commit after v1.0\n", &tip[..12]);
    assert!(stdout.starts_with(&headline), "{stdout}");
}

/// The hunk for one twin fits the other one too. The replay knows which one it was made for.
#[test]
fn the_drift_of_a_patch_has_the_class_of_its_replay() {
    let project = Project::new();
    project.take_patch(|fork| files::edit(&fork.join("src/twins.c"), "result * 2", "result * 3"));
    let (line, more) = ("#include \"words.h\"", "#include <stddef.h>\n#include \"words.h\"");
    let upstream = moved_upstream(&project, &[("Include more", "src/twins.c", line, more)]);
    let stdout = status(&project, &upstream, &["--quiet", "--long"]).code(1).stdout;
    let hunk = [
        "    hunk 1 @@ -5,7 +5,7 @@ (0001:14): shifted by +1 lines\n",
        "      made for: int words_twin_left(int value) {\n",
        "      fits at line 6, in function: int words_twin_left(int value) {\n",
        "  shifted since ",
    ];
    assert!(stdout.contains(&hunk.concat()), "{stdout}");
    let json = status(&project, &upstream, &["--json"]).code(1).json();
    assert_eq!(json["patches"][0]["class"], "shifted");
    assert_eq!(json["patches"][0]["files"][0]["hunks"][0]["class"], "shifted");
}

/// `apply` refuses such a file, so it is not exact; a rebase takes the patch along.
#[test]
fn a_file_whose_mode_changed_is_not_exact() {
    let moving = Move::new(|upstream| {
        use std::os::unix::fs::PermissionsExt;
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(upstream.join("src/count.c"), executable).unwrap();
    });
    let from = moving.upstream.to_str().unwrap();
    let status = ["--quiet", "status", "--long", "--tip", TIP, "--from", from];
    let stdout = moving.project.run(&status).code(1).stdout;
    for line in [
        "paged: 2 of 3 patches are exact at hello v2.0",
        "patches/paged/0002-say-what-is-counted.patch: shifted\n",
        "  src/count.c (0002:10): expected a file (100644), found an executable file (100755)\n",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    moving.rebase(&[]).success();
    moving.assert_moved();
}

#[test]
fn upstreamed_patches_are_named() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_COMES]);
    let json = status(&project, &upstream, &["--json"]).code(1).json();
    let classes: Vec<&str> = (0..3).filter_map(|at| json["patches"][at]["class"].as_str()).collect();
    assert_eq!(classes[0], "upstreamed", "{json:#}");
    assert_eq!(classes[1], "exact", "{json:#}");
    assert_eq!(json["history"][0]["subject"], "Be warm");
    assert_eq!(json["patches"][0]["touched_by"][0], 0);
}

#[test]
fn the_page_stands_alone_and_shows_text_as_text() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    let page = project.beside("page.html");
    status(&project, &upstream, &["--html", page.to_str().unwrap()]).code(1);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("Say &lt;b&gt;hi&lt;/b&gt;"), "{html}");
    for forbidden in ["<b>hi", "<script", "http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(forbidden), "the page has {forbidden}");
    }
    // The page explains the words and dots that it uses, and no others.
    for explained in ["conflict</dt><dd>upstream changed the same lines", "blocked</dt>", "\u{25cf}</dt>"] {
        assert!(html.contains(explained), "{explained}: {html}");
    }
    assert!(!html.contains("ambiguous</dt>") && !html.contains("provisional"), "{html}");
    assert!(html.contains("<h3>Why it does not apply</h3>"), "{html}");
    assert_eq!(html.matches("<details class=\"patch").count(), 3);
    assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
}

#[test]
fn the_picture_stands_alone_and_shows_every_patch() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    project.edit("patches/paged/0001-greet-more-warmly.patch", "Greet more warmly", "Greet <b>all</b>");
    let picture = project.beside("picture.svg");
    status(&project, &upstream, &["--svg", picture.to_str().unwrap()]).code(1);
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg xmlns") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert!(svg.contains("Greet &lt;b&gt;all"), "{svg}");
    for forbidden in ["<b>", "<script", "https://", "href=", "src=", "@import", "url("] {
        assert!(!svg.contains(forbidden), "the picture has {forbidden}");
    }
    assert_eq!(svg.matches("class=\"card\"").count(), 3);
    assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
}

#[test]
fn the_page_links_commits_when_their_host_is_known() {
    let there = Source::Path(Upstream::shared().repository());
    let project = Project::with_sources(&[there, Source::Git("https://github.com/owner/name.git".into())]);
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    let page = project.beside("page.html");
    status(&project, &upstream, &["--html", page.to_str().unwrap()]).code(1);
    let html = std::fs::read_to_string(page).unwrap();
    let commit = git::git(&upstream, &["rev-parse", "main"]);
    assert!(html.contains(&format!("<a href=\"https://github.com/owner/name/commit/{commit}\">")), "{html}");
    assert!(html.contains(&format!("/commit/{commit}\"><circle")), "a dot leads to its commit: {html}");
}

#[test]
fn markdown_for_an_issue() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[GREETING_GOES]);
    insta::assert_snapshot!(status(&project, &upstream, &["--quiet", "--markdown"]).stdout, @r#"
    paged: 1 of 3 patches are exact at hello main, 1 commit after v1.0

    | patch | class | since | changed upstream by |
    |---|---|---|---|
    | `patches/paged/0001-greet-more-warmly.patch` | conflict | `ede8cd87835d` | `ede8cd87835d` |
    | `patches/paged/0002-say-what-is-counted.patch` | exact |  |  |
    | `patches/paged/0003-greet-dearly.patch` | blocked (by 0001-greet-more-warmly.patch) | `ede8cd87835d` | `ede8cd87835d` |

    <details><summary>patches/paged/0001-greet-more-warmly.patch: conflict</summary>

        patches/paged/0001-greet-more-warmly.patch: conflict
          src/greet.c: upstream changed the same lines
          src/greet.c (0001:10): 0 of 1 hunks exact
            made from blob 5018084159e5151b39daf4723cd41c7d033aa88c
            found blob     b04e97ea75f5cac95b0d4754dcaf5e4988febd17
            hunk 1 @@ -3,7 +3,7 @@ (0001:14): conflict
              made for: const char * words_greeting(int kind) {
              nearest: line 3, 6 of 7 lines agree, in function: const char * words_greeting(int kind) {
                expected (patch line 18):         return "hello";
                found    (file line 6):         return "hi";
          conflict since ede8cd87835d Say <b>hi</b> (Test Person)
          next: `cargo xtask rebase --to main --from [BESIDE]/moved` stops there for you to resolve it

    </details>

    <details><summary>patches/paged/0003-greet-dearly.patch: blocked</summary>

        patches/paged/0003-greet-dearly.patch: blocked (by 0001-greet-more-warmly.patch)
          blocked since ede8cd87835d Say <b>hi</b> (Test Person)
          next: resolve the patches that block it first; it can still conflict itself then

    </details>
    "#);
}

#[test]
fn a_branch_moves_and_a_commit_stays_what_it_is() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES]);
    let first = git::git(&upstream, &["rev-parse", "main"]);
    status(&project, &upstream, &[]).code(1);
    files::edit(&upstream.join("src/greet.c"), "\"hello\"", "\"hi\"");
    git::commit(&upstream, "Say hi");
    let json = status(&project, &upstream, &["--json"]).code(1).json();
    assert_eq!(json["tip"]["tree"], git::tree_of(&upstream, "main"));
    assert_eq!(json["history"].as_array().unwrap().len(), 2);
    let from = upstream.display().to_string();
    let json = project.run(&["--json", "status", "--tip", &first, "--from", &from]).code(1).json();
    assert_eq!(json["history"].as_array().unwrap().len(), 1);
}

#[test]
fn a_tip_that_no_source_has() {
    let project = Project::new();
    let upstream = Upstream::shared().repository().display().to_string();
    insta::assert_snapshot!(project.run(&["status", "--tip", "v9", "--from", &upstream]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v1.0 from path [UPSTREAM]
        Fetching hello v9 from path [UPSTREAM]
    error: no source has `v9` of hello
      path [UPSTREAM]: it has no tag, branch or commit `v9`
      next: git -C [UPSTREAM] log --oneline --all
      next: name a repository or a bundle that has it: --from PATH
    ");
    insta::assert_snapshot!(project.run(&["status", "--tip", "v9"]), @"
    exit: 3
    -- stdout --

    -- stderr --
        Fetching hello v9 from path [UPSTREAM]
    error: no source has `v9` of hello
      path [UPSTREAM]: it has no tag, branch or commit `v9`
      next: git -C [UPSTREAM] log --oneline --all
      next: name a repository or a bundle that has it: --from PATH
    ");
    let hostile = "--tip=--upload-pack=touch x";
    insta::assert_snapshot!(project.run(&["status", hostile, "--from", &upstream]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `--upload-pack=touch x` is not a tag, a branch or a commit id
      next: name one, perhaps with steps back: v1.0, main~3, 0aceb8d1f2a3, main^2
    ");
    insta::assert_snapshot!(project.run(&["status", hostile]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `--upload-pack=touch x` is not a tag, a branch or a commit id
      next: name one, perhaps with steps back: v1.0, main~3, 0aceb8d1f2a3, main^2
    ");
    assert!(!project.path("x").exists());
}

#[test]
fn a_tip_without_its_history() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES]);
    let bundle = project.beside("tip.bundle");
    let squashed = git::git(&upstream, &["commit-tree", "-m", "squashed", "main^{tree}"]);
    git::git(&upstream, &["branch", "squashed", &squashed]);
    git::git(&upstream, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "squashed"]);
    let from = bundle.display().to_string();
    let output = project.run(&["--quiet", "status", "--tip", "squashed", "--from", &from]).code(1);
    assert!(output.stdout.contains("no history available"), "{output}");
    let next =
        "next: cargo xtask status --tip squashed --from PATH    # PATH: a clone with the commits since v1.0";
    assert!(output.stdout.contains(next), "{output}");
    let json = project.run(&["--json", "status", "--tip", "squashed", "--from", &from]).code(1).json();
    assert!(json["history"].is_null());
}

#[test]
fn a_killed_fetch_of_a_tip_leaves_nothing_incomplete() {
    let project = Project::new();
    let upstream = moved_upstream(&project, &[COUNT_MOVES]);
    let bundle = project.beside("broken.bundle");
    git::git(&upstream, &["bundle", "create", "--quiet", bundle.to_str().unwrap(), "main"]);
    let bytes = std::fs::read(&bundle).unwrap();
    std::fs::write(&bundle, &bytes[..bytes.len() / 2]).unwrap();
    let from = bundle.display().to_string();
    project.run(&["status", "--tip", "main", "--from", &from]).code(3).says(&["next:"]);
    assert_eq!(project.scratch(), Vec::<String>::new());
    status(&project, &upstream, &[]).code(1);
}

#[test]
fn a_page_goes_where_a_file_can_be() {
    let project = Project::new();
    let missing = project.beside("not/there/x.html").display().to_string();
    project.run(&["status", "--html", &missing]).code(2).says(&["there is no folder", "  next: mkdir -p"]);
    project.run(&["status", "--svg", &missing]).code(2).says(&["there is no folder", "  next: mkdir -p"]);
    project.run(&["status", "--html", "."]).code(2).says(&["`.` is a folder, expected a file"]);
    project.run(&["canary", "--report", &missing]).code(2).says(&["there is no folder"]);
    assert!(!project.beside("not").exists() && !project.path("target").exists());
    project.run(&["status", "--html", "x.html"]).success();
    assert!(project.path("x.html").exists());
}
