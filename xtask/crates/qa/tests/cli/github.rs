//! The GitHub client, against a fake GitHub server.

use std::time::Duration;

use espalier_core::error::Error;
use espalier_core::sys::github::{Client, Patience, WantedCommit, WantedPullRequest};
use espalier_core::sys::machine::secret::Secret;
use espalier_core::sys::net::curl::Timeouts;

use super::support::github::{FakeGitHub, Incident, REPOSITORY};

const TOKEN: &str = "ghs_verySecretToken0123456789";
const LABEL: &str = "espalier-canary";

struct Talk {
    server: FakeGitHub,
    client: Client,
    _scratch: tempfile::TempDir,
}

fn talk() -> Talk {
    let server = FakeGitHub::start();
    let scratch = tempfile::tempdir().unwrap();
    let client = client(&server.api(), scratch.path());
    Talk { server, client, _scratch: scratch }
}

fn client(api: &str, scratch: &std::path::Path) -> Client {
    let timeouts = Timeouts { connect: Duration::from_secs(5), total: Duration::from_millis(700) };
    let patience = Patience { timeouts, tries: 3, pause: Duration::from_millis(1) };
    Client::new(api, REPOSITORY, Secret::new(TOKEN).unwrap(), scratch).unwrap().with_patience(patience)
}

impl Talk {
    fn refused(&self, incident: Incident) -> Error {
        self.server.next(&[incident]);
        self.client.issues(LABEL, "open").unwrap_err()
    }
}

fn body(first: &str) -> String {
    format!("<!-- espalier-canary {first} -->\n\nwhy")
}

#[test]
fn an_issue_is_made_changed_commented_and_closed() {
    let Talk { server, client, .. } = talk();
    let number = client.create_issue("a title", &body("a \"quoted\" \u{e9}"), LABEL).unwrap();
    client.edit_issue(number, &serde_json::json!({ "body": "new", "state": "closed" })).unwrap();
    client.comment(number, "done\nand \\ dusted").unwrap();
    let [issue] = &server.issues()[..] else { panic!() };
    assert_eq!(
        (&issue["title"], &issue["body"], &issue["state"]),
        (&"a title".into(), &"new".into(), &"closed".into())
    );
    assert_eq!(server.comments(), [(number, "done\nand \\ dusted".to_string())]);
    assert_eq!(client.issues(LABEL, "open").unwrap().len(), 0);
    assert_eq!(client.issues(LABEL, "closed").unwrap().len(), 1);
}

#[test]
fn all_pages_are_read() {
    let Talk { server, client, .. } = talk();
    for number in 0..250 {
        server.plant(&body(&number.to_string()), &[LABEL]);
        server.plant("a user's own", &["bug"]);
    }
    let issues = client.issues(LABEL, "open").unwrap();
    assert_eq!(issues.len(), 250);
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn the_token_is_in_one_header_and_nowhere_else() {
    let Talk { server, client, .. } = talk();
    client.create_issue("t", "b", LABEL).unwrap();
    let [seen] = &server.seen()[..] else { panic!() };
    let with_it: Vec<&str> = seen.whole.lines().filter(|line| line.contains(TOKEN)).collect();
    assert_eq!(with_it, [format!("Authorization: Bearer {TOKEN}")]);
    assert!(!format!("{client:?}").contains(TOKEN));
}

#[test]
fn refusals_say_what_to_do() {
    let talk = talk();
    let permissions = "X-Accepted-GitHub-Permissions: issues=write";
    let integration = r#"{"message": "Resource not accessible by integration"}"#;
    insta::assert_snapshot!(talk.refused(Incident::Answer(403, permissions, integration)), @"
    error: could not list the issues: GitHub answered 403
      Resource not accessible by integration
      next: give the token this permission: issues=write
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(401, "", r#"{"message": "Bad credentials"}"#)), @"
    error: could not list the issues: GitHub answered 401
      Bad credentials
      next: the token is invalid or has expired: set GITHUB_TOKEN to a valid one
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(404, "", r#"{"message": "Not Found"}"#)), @"
    error: could not list the issues: GitHub answered 404
      Not Found
      next: check GITHUB_REPOSITORY, and that the token can access that repository
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(429, "Retry-After: 90", "slow down")), @"
    error: could not list the issues: GitHub's rate limit is exhausted
      next: run the same command again after 90 seconds
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(403, "Retry-After: 600", "{}")), @"
    error: could not list the issues: GitHub's rate limit is exhausted
      next: run the same command again after 10 minutes
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(301, "Location: http://127.0.0.1:1/", "{}")), @"
    error: could not list the issues: GitHub answered 301
      next: the repository was renamed, or GITHUB_API_URL is not exactly the API's address
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(200, "", "<html>login</html>")), @"
    error: could not list the issues: GitHub's reply is not JSON
      next: is GITHUB_API_URL the address of GitHub's API?
    ");
    insta::assert_snapshot!(talk.refused(Incident::Answer(200, "", r#"[{"number": "7"}]"#)), @r#"
    error: could not list the issues: GitHub's reply has an unexpected format
      invalid type: string "7", expected u64
    "#);
    let invalid =
        r#"{"message": "Validation Failed", "errors": [{"field": "title", "code": "missing_field"}]}"#;
    insta::assert_snapshot!(talk.refused(Incident::Answer(422, "", invalid)), @"
    error: could not list the issues: GitHub answered 422
      Validation Failed
      title: missing_field
    ");
    assert_eq!(talk.server.seen().len(), 9, "none of these was asked again");
}

#[test]
fn a_redirect_is_not_followed() {
    let talk = talk();
    let other = FakeGitHub::start();
    let location: &'static str = format!("Location: {}/repos/x", other.api()).leak();
    let error = talk.refused(Incident::Answer(302, location, ""));
    assert_eq!(error.kind.exit_code(), 3);
    assert_eq!(other.seen().len(), 0);
}

#[test]
fn a_server_that_repeats_the_token_does_not_show_it() {
    let echo: &'static str = format!(r#"{{"message": "bad token {TOKEN}"}}"#).leak();
    let error = talk().refused(Incident::Answer(401, "", echo));
    assert!(!format!("{error} {error:?} {}", error.to_json()).contains(TOKEN));
    assert!(error.to_string().contains("bad token ***"), "{error}");
}

#[test]
fn a_failed_request_is_repeated() {
    let Talk { server, client, .. } = talk();
    server.next(&[Incident::Answer(502, "", "<html>"), Incident::Answer(503, "", "")]);
    assert_eq!(client.issues(LABEL, "open").unwrap().len(), 0);
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn persistent_server_errors_are_environment_errors() {
    let talk = talk();
    talk.server.next(&[Incident::Answer(500, "", ""), Incident::Answer(500, "", "")]);
    insta::assert_snapshot!(talk.refused(Incident::Answer(500, "", "")), @"
    error: could not list the issues: GitHub cannot be reached
      GitHub answered 500
      next: run the same command again later
    ");
}

#[test]
fn a_silent_server_is_an_environment_error() {
    let Talk { server, client, .. } = talk();
    let silence = Incident::Silence(Duration::from_secs(3));
    server.next(&[silence.clone(), silence.clone(), silence]);
    let error = client.issues(LABEL, "open").unwrap_err();
    assert_eq!(error.kind.exit_code(), 3);
    assert!(error.to_string().contains("GitHub cannot be reached"), "{error}");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn a_refused_connection_is_an_environment_error() {
    let scratch = tempfile::tempdir().unwrap();
    let error = client("http://127.0.0.1:1", scratch.path()).issues(LABEL, "open").unwrap_err();
    assert_eq!(error.kind.exit_code(), 3);
}

#[test]
fn an_issue_that_was_made_in_spite_of_a_bad_gateway_is_not_made_again() {
    let Talk { server, client, .. } = talk();
    server.next(&[Incident::DoneButBadGateway]);
    assert_eq!(client.create_issue("t", &body("x"), LABEL).unwrap(), 1);
    assert_eq!(server.issues().len(), 1);
}

#[test]
fn an_issue_that_was_not_made_is_asked_for_again() {
    let Talk { server, client, .. } = talk();
    server.next(&[Incident::Answer(502, "", "")]);
    assert_eq!(client.create_issue("t", &body("x"), LABEL).unwrap(), 1);
    assert_eq!(server.issues().len(), 1);
    server.next(&[Incident::Silence(Duration::from_secs(2))]);
    assert_eq!(client.create_issue("t", &body("y"), LABEL).unwrap(), 2);
    assert_eq!(server.issues().len(), 2);
}

#[test]
fn an_issue_without_its_label_is_reported() {
    let Talk { server, client, .. } = talk();
    server.next(&[Incident::Answer(
        201,
        "",
        r#"{"number": 4, "title": "t", "state": "open", "labels": []}"#,
    )]);
    insta::assert_snapshot!(client.create_issue("t", "b", LABEL).unwrap_err(), @"
    error: GitHub made issue #4 without the label `espalier-canary`
      next: give the issue the label `espalier-canary` by hand, and the token the right to set labels
    ");
}

#[test]
fn a_reply_without_end_is_cut() {
    let endless: &'static str = "x".repeat(20 << 20).leak();
    let error = talk().refused(Incident::Answer(200, "", endless));
    assert_eq!(error.kind.exit_code(), 3);
}

#[test]
fn one_pull_request_a_branch() {
    let Talk { server, client, .. } = talk();
    server.plant_pull("stranger/espalier", "sync/v0.5.0", "main");
    let mut wanted =
        WantedPullRequest { head: "sync/v0.5.0", base: "main", title: "Move the pin", body: "why" };
    let number = client.keep_pull_request(&wanted).unwrap();
    assert_eq!(number, 101);
    server.take_changes();
    assert_eq!(client.keep_pull_request(&wanted).unwrap(), number);
    assert_eq!(server.take_changes(), [""; 0]);
    wanted.body = "why, again";
    assert_eq!(client.keep_pull_request(&wanted).unwrap(), number);
    assert_eq!(server.take_changes(), ["PATCH /pulls/101"]);
    assert_eq!(server.pulls()[1]["body"], "why, again");
    assert_eq!(server.pulls()[0]["body"], "B", "a stranger's is left alone");
}

/// GitHub refuses a text of more than 65,536 characters, after the branch has moved.
#[test]
fn the_text_of_a_pull_request_is_cut_to_the_limit() {
    let Talk { server, client, .. } = talk();
    let body = "\u{e9}".repeat(70_000);
    let wanted = WantedPullRequest { head: "a", base: "main", title: "t", body: &body };
    client.keep_pull_request(&wanted).unwrap();
    let sent = server.pulls()[0]["body"].as_str().unwrap().to_string();
    assert!(sent.chars().count() < 65_536 && sent.ends_with("(cut: it is longer than GitHub allows)"));
    server.take_changes();
    client.keep_pull_request(&wanted).unwrap();
    assert_eq!(server.take_changes(), [""; 0]);
}

#[test]
fn a_pull_request_that_was_made_in_spite_of_a_bad_gateway_is_found() {
    let Talk { server, client, .. } = talk();
    server.next(&[Incident::None, Incident::DoneButBadGateway]);
    let wanted = WantedPullRequest { head: "a", base: "main", title: "t", body: "b" };
    assert_eq!(client.keep_pull_request(&wanted).unwrap(), 100);
    assert_eq!(server.pulls().len(), 1);
}

#[test]
fn a_commit_is_made_on_a_branch_and_the_branch_moved() {
    let Talk { server, client, .. } = talk();
    let files = [("pins.toml".to_string(), Some(b"new\n".to_vec())), ("patches/p/0002-b.patch".into(), None)];
    let wanted = |parent| WantedCommit { branch: "pin-sync/hello", parent, message: "Move", files: &files };
    client.keep_commit(&wanted("aa")).unwrap();
    let tree = server.last_tree();
    assert_eq!(tree["base_tree"], "tree of aa");
    assert_eq!(tree["tree"][0]["content"], "new\n");
    assert!(tree["tree"][1]["sha"].is_null() && tree["tree"][1].get("content").is_none(), "{tree}");
    // A branch that only shares the prefix is a different one.
    client.keep_commit(&WantedCommit { branch: "pin-sync/hel", ..wanted("bb") }).unwrap();
    server.next(&[Incident::None, Incident::DoneButBadGateway]);
    client.keep_commit(&wanted("cc")).unwrap();
    let branches = server.branches();
    assert_eq!(branches.len(), 2);
    assert!(branches["pin-sync/hello"].ends_with("on \"cc\""), "{branches:?}");
    assert!(branches["pin-sync/hel"].ends_with("on \"bb\""), "{branches:?}");
}

#[test]
fn a_file_that_is_not_utf8_is_a_blob_of_its_own() {
    let Talk { server, client, .. } = talk();
    let latin1 = b"+    return \"w\xfcrld\";\n".to_vec();
    let files = [("a.patch".to_string(), Some(b"text\n".to_vec())), ("b.patch".into(), Some(latin1.clone()))];
    let wanted = WantedCommit { branch: "pin-sync/hello", parent: "aa", message: "Move", files: &files };
    // A blob that was made twice is one blob.
    server.next(&[Incident::None, Incident::DoneButBadGateway]);
    client.keep_commit(&wanted).unwrap();
    let tree = server.last_tree();
    assert_eq!(tree["tree"][0]["content"], "text\n");
    assert_eq!(tree["tree"][1]["sha"], "blob 2");
    assert!(tree["tree"][1].get("content").is_none(), "{tree}");
    assert_eq!(server.blobs(), [latin1.clone(), latin1]);
}
