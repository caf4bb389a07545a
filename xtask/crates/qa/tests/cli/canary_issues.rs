//! The issues that `canary` maintains on GitHub: one for each break, closed when it is gone.

use super::support::github::Incident;
use super::support::watched::{Watched, watched};
use super::support::{files, git};

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
    let output = watched.project.fresh_clone("clone").run(&words).code(1);
    assert!(output.stdout.contains("conflict  patches/paged/0001-greet-more-warmly.patch"), "{output}");
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

/// It moves the lines of the break, and gives the file another blob.
#[test]
fn a_commit_to_the_same_file_changes_no_issue() {
    let watched = watched();
    watched.greeting_goes();
    watched.keep_issues().code(1);
    watched.server.take_changes();
    let include = "#include \"words.h\"\n";
    watched.upstream_does("Explain", "src/greet.c", include, &format!("// Greetings.\n\n{include}"));
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
    assert_eq!(watched.server.comments(), []);
}

/// Nothing says then since which commit the patch is broken, and the tip is another one in each run.
#[test]
fn without_upstreams_commits_a_break_keeps_its_issue() {
    let watched = watched();
    watched.greeting_goes();
    git::git(&watched.upstream, &["checkout", "--quiet", "--orphan", "squashed"]);
    git::commit(&watched.upstream, "Everything");
    watched.keep_issues().code(1);
    assert_eq!(watched.titles("open"), ["0001-greet-more-warmly.patch: conflict at upstream's tip"]);
    watched.server.take_changes();
    files::edit(&watched.upstream.join("README.md"), "It says hello.", "It says hi.");
    git::git(&watched.upstream, &["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    watched.keep_issues().code(1);
    assert_eq!(watched.server.take_changes(), [""; 0]);
}

#[test]
fn an_issue_says_why_it_has_no_description() {
    let watched = watched();
    let message = "It is warmer.\n".repeat(5_000);
    watched.project.edit(
        "patches/paged/0001-greet-more-warmly.patch",
        "\n---\n",
        &format!("\n{message}---\n"),
    );
    watched.greeting_goes();
    watched.keep_issues().code(1);
    let body = watched.server.issues()[0]["body"].as_str().unwrap().to_string();
    let upstream = watched.upstream.display();
    let instead = format!(
        "The description of the conflict does not fit into an issue. `cargo xtask rebase --variant paged --to HEAD \
         --from {upstream}` stops there and writes it; `cargo xtask rebase --abort --variant paged` ends that rebase."
    );
    assert!(body.contains(&instead) && !body.contains("The conflict as data"), "{body}");
    watched.server.take_changes();
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
fn an_issue_that_a_person_declined_stays_closed() {
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
fn an_unreachable_github_is_reported_after_the_report_is_written() {
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
