//! `canary`: the levels on upstream's tip, and the issues that it maintains on GitHub.

use std::path::PathBuf;
use std::process::Command;

use super::support::github::{FakeGitHub, Incident, REPOSITORY};
use super::support::moving::greet;
use super::support::{Output, Project, files, git, program_path, upstream::Upstream};

const TOKEN: &str = "ghs_verySecretToken0123456789";

/// A project, and an upstream with newer commits.
struct Watched {
    project: Project,
    upstream: PathBuf,
    server: FakeGitHub,
}

fn watched() -> Watched {
    let project = Project::new();
    let upstream = project.beside("moved");
    files::copy_folder(&Upstream::shared().repository(), &upstream);
    Watched { project, upstream, server: FakeGitHub::start() }
}

impl Watched {
    fn upstream_does(&self, message: &str, file: &str, from: &str, to: &str) {
        files::edit(&self.upstream.join(file), from, to);
        git::commit(&self.upstream, message);
    }

    fn greeting_goes(&self) {
        self.upstream_does("Say hi, fixes #1 @octocat", "src/greet.c", "return \"hello\";", "return \"hi\";");
    }

    fn greeting_is_back(&self) {
        self.upstream_does("Say hello again", "src/greet.c", "return \"hi\";", "return \"hello\";");
    }

    fn command(&self, more: &[&str]) -> Command {
        let from = self.upstream.display().to_string();
        let arguments = ["canary", "--from", &from];
        let path = program_path::with_build_tools();
        let mut command = self.project.command_with_path(&[&arguments, more].concat(), &path);
        command.env("GITHUB_TOKEN", TOKEN).env("GITHUB_REPOSITORY", REPOSITORY);
        command.env("GITHUB_API_URL", self.server.api());
        command
    }

    fn run(&self, more: &[&str]) -> Output {
        self.project.finish(self.command(more))
    }

    /// Moves the project to upstream's tip, with the conflicts of the greeting resolved.
    fn fix_series(&self) {
        let from = self.upstream.display().to_string();
        self.project.run(&["rebase", "--to", "main", "--from", &from]).code(4);
        let work = self.project.path("target/espalier/rebase/hello/work");
        for (words, code) in [("hi there", 4), ("hi there, dear", 0)] {
            files::write(&work.join("src/greet.c"), greet(words));
            git::git(&work, &["add", "src/greet.c"]);
            self.project.run(&["rebase", "--continue"]).code(code);
        }
    }

    /// Runs up to the level `status` and updates the issues.
    fn keep_issues(&self) -> Output {
        self.run(&["--quiet", "--until", "status", "--github"])
    }

    fn titles(&self, state: &str) -> Vec<String> {
        let issues = self.server.issues();
        let wanted = issues.iter().filter(|issue| issue["state"] == state);
        wanted.map(|issue| issue["title"].as_str().unwrap().to_string()).collect()
    }

    fn tip(&self) -> String {
        git::git(&self.upstream, &["rev-parse", "HEAD"])
    }
}

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
          Smoked canary.paged-cpu-native: completion "grows", chat "green" in [TIME]
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
    let said = watched.keep_issues().code(1);
    let status = "  status    FAILED       3 of 3 patches are exact; 1 overlay file is in the way";
    let next = format!("next: the pin can move: cargo xtask sync --to {good}");
    for words in [status, "`overlay/extra/espalier/note.txt` would replace", next.as_str()] {
        assert!(said.stdout.contains(words), "{words}\n{said}");
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
fn an_upstream_that_is_not_there_is_no_drift_and_no_request_is_made() {
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
fn a_pin_that_no_source_has_is_no_drift_and_no_request_is_made() {
    let watched = watched();
    let gone = watched.project.beside("gone").display().to_string();
    let here = Upstream::shared().repository().display().to_string();
    watched.project.edit("pins.toml", &here, &gone);
    watched.keep_issues().code(3);
    assert_eq!(watched.server.seen().len(), 0);
}

#[test]
fn one_issue_a_break_and_no_other_after_ten_runs() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let [issue] = &watched.server.issues()[..] else { panic!() };
    let upstream = watched.upstream.display().to_string();
    let body = issue["body"].as_str().unwrap().replace(&watched.tip(), "[TIP]").replace(&upstream, "[MOVED]");
    let (body, conflict) =
        body.split_once("\nThe conflict as data, in the format of `conflict.json`:\n\n").unwrap();
    insta::assert_snapshot!(format!("{}\n\n{body}", issue["title"]), @r#"
    "0001-greet-more-warmly.patch: conflict since upstream b2f33ff0ec38"

    <!-- espalier-canary patch=patches/paged/0001-greet-more-warmly.patch culprit=[TIP] -->

    `patches/paged/0001-greet-more-warmly.patch` no longer applies to hello: **conflict**.

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
          conflict since b2f33ff0ec38 Say hi, fixes #1 @octocat (Test Person)
          next: `cargo xtask rebase --to HEAD --variant paged --from [MOVED]` stops there for you to resolve it

    Waiting for it: `patches/paged/0003-greet-dearly.patch`.

    See it here with `cargo xtask status --variant paged --tip HEAD --from [MOVED]`. This issue is closed when upstream's tip is good again.
    "#);
    // As a code block: nothing in it can mention a user or close an issue.
    assert!(conflict.lines().all(|line| line.starts_with("    ")), "{conflict}");
    let conflict: serde_json::Value = serde_json::from_str(conflict).unwrap();
    assert_eq!(conflict["hunks"][0]["ours"]["text"], "        return \"hi\";\n");
    assert_eq!(conflict["hunks"][0]["commits"][0]["subject"], "Say hi, fixes #1 @octocat");
    assert_eq!(conflict["to"], serde_json::Value::Null);
    watched.server.take_changes();
    for _ in 0..10 {
        watched.keep_issues().code(1);
    }
    assert_eq!(watched.server.issues().len(), 1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
    assert_eq!(watched.server.comments(), []);
}

/// The command in the issue reproduces the report on the same tip in a fresh clone.
#[test]
fn the_command_in_an_issue_shows_what_it_is_about() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    let (_, command) = body.split_once("See it here with `cargo xtask ").unwrap();
    let words: Vec<&str> = command.split('`').next().unwrap().split(' ').collect();
    let said = watched.project.fresh_clone("clone").run(&words).code(1);
    assert!(said.stdout.contains("conflict  patches/paged/0001-greet-more-warmly.patch"), "{said}");
}

#[test]
fn a_commit_elsewhere_changes_no_issue() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.server.take_changes();
    watched.upstream_does("Tell more", "README.md", "It says hello.", "It says hi.");
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
}

#[test]
fn it_is_closed_when_good_again_and_opens_when_it_is_back() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let broken = watched.tip();
    watched.greeting_is_back();
    watched.server.take_changes();
    watched.keep_issues().success();
    assert_eq!(watched.server.take_changes(), ["POST /issues/1/comments", "PATCH /issues/1"]);
    assert_eq!((watched.titles("open").len(), watched.titles("closed").len()), (0, 1));
    assert_eq!(watched.server.comments(), [(1, format!("Good again at hello `{}`.", watched.tip()))]);
    watched.keep_issues().success();
    assert_eq!(watched.server.take_changes(), [""; 0]);
    git::git(&watched.upstream, &["reset", "--quiet", "--hard", &broken]);
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), ["POST /issues/1/comments", "PATCH /issues/1"]);
    assert_eq!(watched.titles("open").len(), 1);
}

/// A break, a fix in the series, another break, a fix by upstream. Each run is repeated, and the second one changes
/// nothing.
#[test]
fn a_break_has_one_issue_until_it_is_gone() {
    let watched = watched();
    let twice = |code: i32| {
        watched.keep_issues().code(code);
        let changes = watched.server.take_changes();
        watched.keep_issues().code(code);
        assert_eq!(watched.server.take_changes(), [""; 0]);
        changes
    };
    let count = || (watched.titles("open").len(), watched.titles("closed").len());
    assert_eq!(twice(0), [""; 0]);
    watched.greeting_goes();
    assert_eq!(twice(1), ["POST /issues"]);
    watched.fix_series();
    assert_eq!(twice(0), ["POST /issues/1/comments", "PATCH /issues/1"]);
    let gone_at = |watched: &Watched| format!("Good again at hello `{}`.", watched.tip());
    let first = gone_at(&watched);
    assert_eq!((watched.server.comments(), count()), (vec![(1, first.clone())], (0, 1)));
    watched.upstream_does("Say hey", "src/greet.c", "return \"hi\";", "return \"hey\";");
    assert_eq!(twice(1), ["POST /issues"]);
    assert_eq!(count(), (1, 1));
    watched.upstream_does("Say hi again", "src/greet.c", "return \"hey\";", "return \"hi\";");
    assert_eq!(twice(0), ["POST /issues/2/comments", "PATCH /issues/2"]);
    assert_eq!((watched.server.comments(), count()), (vec![(1, first), (2, gone_at(&watched))], (0, 2)));
}

/// GitHub refuses the request that closes the issue, after it has taken the comment.
#[test]
fn no_issue_is_closed_without_its_comment() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.greeting_is_back();
    let refused = Incident::Answer(403, "Retry-After: 600", "{}");
    watched.server.next(&[Incident::None, Incident::None, Incident::None, refused]);
    watched.keep_issues().code(3);
    assert_eq!((watched.titles("open").len(), watched.server.comments().len()), (1, 1));
    watched.keep_issues().success();
    assert_eq!(watched.titles("closed").len(), 1);
    watched.server.take_changes();
    watched.keep_issues().success();
    assert_eq!(watched.server.take_changes(), [""; 0]);
}

#[test]
fn another_culprit_has_an_issue_of_its_own_and_the_old_one_is_closed() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.upstream_does("Be warm", "src/greet.c", "return \"hi\";", "return \"hello there\";");
    watched.keep_issues().code(1);
    assert_eq!(watched.titles("closed").len(), 1);
    let since = &watched.tip()[..12];
    assert_eq!(
        watched.titles("open"),
        [format!("0001-greet-more-warmly.patch: upstreamed since upstream {since}")]
    );
    assert_eq!(watched.server.comments().len(), 1);
}

#[test]
fn a_changed_issue_is_rewritten_with_one_comment() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.server.take_changes();
    watched.upstream_does("Say hey", "src/greet.c", "return \"hi\";", "return \"hey\";");
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), ["POST /issues/1/comments", "PATCH /issues/1"]);
    assert!(watched.server.issues()[0]["body"].as_str().unwrap().contains("return \"hey\";"));
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
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
fn an_edited_issue_body_is_restored() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let body = watched.server.issues()[0]["body"].clone();
    watched.server.edit(1, "body", format!("{}\n\nme too", body.as_str().unwrap()).into());
    watched.keep_issues().code(1);
    assert_eq!(watched.server.issues()[0]["body"], body);
    assert_eq!(watched.server.comments().len(), 1);
}

#[test]
fn what_a_person_declined_stays_closed() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.server.edit(1, "state", "closed".into());
    watched.server.edit(1, "state_reason", "not_planned".into());
    watched.server.take_changes();
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
}

#[test]
fn a_planted_issue_is_not_believed() {
    let watched = watched();
    watched.greeting_goes();
    let file = "patches/paged/0001-greet-more-warmly.patch";
    let marker = format!("<!-- espalier-canary patch={file} culprit={} -->", watched.tip());
    watched.server.plant(&marker, &[]);
    watched.server.plant(&format!("look:\n{marker}"), &["espalier-canary"]);
    watched.keep_issues().code(1);
    assert_eq!(
        watched.titles("open")[2],
        format!("0001-greet-more-warmly.patch: conflict since upstream {}", &watched.tip()[..12])
    );
    assert_eq!(watched.server.issues().len(), 3);
    assert_eq!(watched.server.issues()[0]["title"], "planted");
    assert_eq!(watched.server.issues()[1]["state"], "open");
}

#[test]
fn a_level_has_one_issue_and_is_closed_when_it_passes() {
    let watched = watched();
    watched.upstream_does(
        "Count letters",
        "include/words.h",
        "words_count(const char *",
        "words_count(int *",
    );
    let keep = || watched.run(&["--quiet", "--until", "contract", "--github"]);
    keep().code(1);
    keep().code(1);
    assert_eq!(watched.titles("open"), ["paged: contract fails on hello's tip"]);
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    assert!(body.starts_with("<!-- espalier-canary level=contract variant=paged -->\n"), "{body}");
    assert!(
        body.contains("    src/count.c:3:") && !body.contains(watched.project.root().to_str().unwrap()),
        "{body}"
    );
    // A level that was not reached is not known to be good.
    watched.keep_issues().success();
    assert_eq!(watched.titles("open").len(), 1);
    watched.upstream_does("Fix it", "include/words.h", "words_count(int *", "words_count(const char *");
    keep().success();
    assert_eq!(watched.titles("closed").len(), 1);
}

#[test]
fn github_out_of_reach_is_said_after_the_report_was_written() {
    let watched = watched();
    watched.greeting_goes();
    let report = watched.project.beside("report.md");
    watched.server.next(&[Incident::Answer(403, "Retry-After: 600", "{}")]);
    let arguments = ["--quiet", "--until", "status", "--github", "--report", report.to_str().unwrap()];
    insta::assert_snapshot!(watched.run(&arguments), @"
    exit: 3
    -- stdout --

    -- stderr --
    error: could not list the issues: GitHub's rate limit is exhausted
      next: run the same command again after 10 minutes
    ");
    assert!(std::fs::read_to_string(report).unwrap().contains("0001-greet-more-warmly.patch"));
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
fn the_token_is_shown_nowhere() {
    let watched = watched();
    watched.greeting_goes();
    let log = watched.project.beside("curl.log");
    let wrapper = watched.project.beside("wrapper/curl");
    let curl = program_path::find(&program_path::of_this_machine(), "curl").expect("curl is installed");
    let record = format!("{{ echo \"$@\"; env; cat /proc/$$/cmdline; }} >> {}", log.display());
    files::write_script(&wrapper, &format!("{record}\nexec {} \"$@\"", curl.display()));
    let mut path = wrapper.parent().unwrap().as_os_str().to_os_string();
    path.push(":");
    path.push(program_path::of_this_machine());
    let bad = Incident::Answer(401, "", "{\"message\": \"Bad credentials\"}");
    for incident in [Incident::None, bad] {
        watched.server.next(&[incident]);
        let report = watched.project.beside("report.md");
        let more = ["--json", "--until", "status", "--github", "--report", report.to_str().unwrap()];
        let mut command = watched.command(&more);
        command.env("PATH", &path).env("GH_TOKEN", TOKEN);
        let output = watched.project.finish(command);
        assert!(!output.to_string().contains(TOKEN), "{output}");
        assert!(!std::fs::read_to_string(report).unwrap().contains(TOKEN));
    }
    let recorded = std::fs::read_to_string(log).unwrap();
    assert!(recorded.contains("--config -"), "{recorded}");
    assert!(!recorded.contains(TOKEN), "{recorded}");
    let lines: Vec<String> = watched.server.seen().into_iter().map(|seen| seen.line).collect();
    assert!(!lines.is_empty() && !lines.concat().contains(TOKEN));
    for file in files::list(watched.project.root()) {
        let bytes = std::fs::read(watched.project.path(&file)).unwrap_or_default();
        assert!(!bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes()), "{file}");
    }
}

#[test]
fn what_upstream_builds_does_not_see_the_token() {
    let watched = watched();
    let spy = "project(hello C)\nexecute_process(COMMAND env OUTPUT_FILE ${CMAKE_BINARY_DIR}/environment)";
    watched.upstream_does("Look around", "CMakeLists.txt", "project(hello C)", spy);
    let mut command = watched.command(&["--until", "contract"]);
    command.env("GH_TOKEN", TOKEN);
    watched.project.finish(command).success();
    let seen = watched.project.read("target/espalier/build/canary.paged-cpu-native/environment");
    assert!(seen.contains("PATH=") && !seen.contains(TOKEN), "{seen}");
}

#[test]
fn what_github_needs_is_asked_for_first() {
    let watched = watched();
    let without = |name: &str| {
        let mut command = watched.command(&["--quiet", "--github"]);
        command.env_remove(name);
        watched.project.finish(command)
    };
    insta::assert_snapshot!(without("GITHUB_TOKEN"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: there is no token for GitHub
      next: set GITHUB_TOKEN; in a workflow: `env: GITHUB_TOKEN: ${{ github.token }}`
    ");
    insta::assert_snapshot!(without("GITHUB_REPOSITORY"), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: GITHUB_REPOSITORY is not set, so there is no repository whose issues to keep
      next: export GITHUB_REPOSITORY=OWNER/NAME
    ");
    let mut command = watched.command(&["--github"]);
    command.env("GITHUB_API_URL", "http://api.example");
    insta::assert_snapshot!(watched.project.finish(command), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: GITHUB_API_URL is `http://api.example`: the token is sent over https only
    ");
    insta::assert_snapshot!(watched.run(&["--offline", "--github"]), @"
    exit: 2
    -- stdout --

    -- stderr --
    error: `--github` cannot be used with `--offline`
      next: leave one of them out
    ");
    assert!(!watched.project.path("target").exists());
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
