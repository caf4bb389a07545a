//! A small client for GitHub: issues and pull requests of one repository.
//!
//! What to do with which issue is decided in `plan/issues.rs`, what a reply means in `plan/github_reply.rs`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::curl::{self, Answer, Request, Timeouts};
use super::process::TOKENS;
use super::secret::Secret;
use crate::error::{Error, Result};
use crate::plan::github_reply::Meaning;
use crate::plan::issues::Listed;

/// How patient the client is.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one request.
    pub timeouts: Timeouts,
    /// How often a request is made at most.
    pub tries: u32,
    /// Before the second try; each later one waits twice as long.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let timeouts = Timeouts { connect: Duration::from_secs(20), total: Duration::from_secs(60) };
        Patience { timeouts, tries: 4, pause: Duration::from_secs(1) }
    }
}

/// One repository on GitHub, and the right to speak to it.
#[derive(Debug)]
pub struct Client {
    api: String,
    server: String,
    repository: String,
    token: Secret,
    patience: Patience,
    scratch: PathBuf,
}

/// A pull request as it should be.
#[derive(Clone, Debug)]
pub struct WantedPullRequest<'a> {
    /// The branch that has the change, in the same repository.
    pub head: &'a str,
    /// The branch that it is for.
    pub base: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its text.
    pub body: &'a str,
}

/// A pull request as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
}

/// Issues of a page, and pages of issues.
const PER_PAGE: usize = 100;
const PAGES: u32 = 10;

/// Why a request came to nothing.
struct Failed {
    error: Error,
    /// Whether GitHub may have done it all the same.
    maybe_done: bool,
}

impl Client {
    /// From the variables that GitHub's runners set: `GITHUB_REPOSITORY`, `GITHUB_TOKEN` (or `GH_TOKEN`), and
    /// `GITHUB_API_URL` and `GITHUB_SERVER_URL` where it is not github.com.
    pub fn from_environment(scratch: &Path) -> Result<Client> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let repository = set("GITHUB_REPOSITORY").ok_or_else(|| {
            Error::usage("GITHUB_REPOSITORY is not set, so there is no repository whose issues to keep")
                .hint("export GITHUB_REPOSITORY=OWNER/NAME")
        })?;
        let token = TOKENS.iter().find_map(|name| set(name)).ok_or_else(|| {
            Error::usage("there is no token for GitHub")
                .hint("set GITHUB_TOKEN; in a workflow: `env: GITHUB_TOKEN: ${{ github.token }}`")
        })?;
        let api = set("GITHUB_API_URL").unwrap_or_else(|| "https://api.github.com".to_string());
        let client = Client::new(&api, &repository, Secret::new(&token)?, scratch)?;
        Ok(Client { server: set("GITHUB_SERVER_URL").unwrap_or(client.server), ..client })
    }

    /// `api` is the address of the API, `repository` is `OWNER/NAME`.
    pub fn new(api: &str, repository: &str, token: Secret, scratch: &Path) -> Result<Client> {
        let api = api.trim_end_matches('/').to_string();
        if !is_safe_address(&api) {
            return Err(Error::usage(format!(
                "GITHUB_API_URL is `{api}`: the token is sent over https only"
            )));
        }
        if !is_repository(repository) {
            return Err(Error::usage(format!(
                "GITHUB_REPOSITORY is `{repository}`, which is not OWNER/NAME"
            )));
        }
        let server = "https://github.com".to_string();
        let (repository, scratch) = (repository.to_string(), scratch.to_path_buf());
        Ok(Client { api, server, repository, token, patience: Patience::default(), scratch })
    }

    /// The same with another patience.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Client {
        Client { patience, ..self }
    }

    /// Where people start the workflow in `file`.
    pub fn workflow(&self, file: &str) -> String {
        format!("{}/{}/actions/workflows/{file}", self.server, self.repository)
    }

    /// All issues with `label` that are `open`, or the newest of the `closed` ones.
    pub fn issues(&self, label: &str, state: &str) -> Result<Vec<Listed>> {
        let mut issues = Vec::new();
        for page in 1..=PAGES {
            let path = format!("issues?labels={label}&state={state}&per_page={PER_PAGE}&page={page}");
            let value = self.get(&path, "list the issues")?;
            let found: Vec<Listed> = read(value, "list the issues")?;
            let is_last = found.len() < PER_PAGE;
            issues.extend(found);
            if is_last || state == "closed" {
                return Ok(issues);
            }
        }
        let most = PER_PAGE * PAGES as usize;
        Err(Error::surroundings(format!("there are more than {most} open issues labelled `{label}`"))
            .hint("close those that nobody needs"))
    }

    /// Makes an issue, exactly one: when GitHub may have made it without saying so, it is looked for by the
    /// first line of `body` before it is asked for again. Gives its number.
    pub fn create_issue(&self, title: &str, body: &str, label: &str) -> Result<u64> {
        let what = "create an issue";
        let wanted = json!({ "title": title, "body": body, "labels": [label] });
        let mut failed = None;
        for attempt in 0..self.patience.tries {
            self.wait_before(attempt);
            if failed.is_some()
                && let Some(number) = self.find_issue(label, body)?
            {
                return Ok(number);
            }
            match self.send("POST", "issues", Some(&wanted), what) {
                Ok(value) => return self.check_label(read(value, what)?, label),
                Err(Failed { error, maybe_done: true }) => failed = Some(error),
                Err(Failed { error, .. }) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::surroundings(format!("could not {what}"))))
    }

    fn find_issue(&self, label: &str, body: &str) -> Result<Option<u64>> {
        let first = body.lines().next();
        let open = self.issues(label, "open")?;
        Ok(open.into_iter().find(|issue| issue.text().lines().next() == first).map(|issue| issue.number))
    }

    /// Without its label no later run would find the issue, and each would make another one.
    fn check_label(&self, made: Listed, label: &str) -> Result<u64> {
        if made.has_label(label) {
            return Ok(made.number);
        }
        Err(Error::surroundings(format!("GitHub made issue #{} without the label `{label}`", made.number))
            .hint(format!(
                "give the issue the label `{label}` by hand, and the token the right to set labels"
            )))
    }

    /// Changes fields of an issue: `title`, `body`, `state`, `state_reason`.
    pub fn edit_issue(&self, number: u64, fields: &Value) -> Result<()> {
        let what = format!("change issue #{number}");
        self.send("PATCH", &format!("issues/{number}"), Some(fields), &what).map(drop).map_err(|f| f.error)
    }

    /// Adds a comment to an issue.
    pub fn comment(&self, number: u64, text: &str) -> Result<()> {
        let what = format!("comment on issue #{number}");
        let body = json!({ "body": text });
        let path = format!("issues/{number}/comments");
        self.send("POST", &path, Some(&body), &what).map(drop).map_err(|failed| failed.error)
    }

    /// The open pull request from `head` to `base`, both branches of this repository.
    pub fn find_pull_request(&self, head: &str, base: &str) -> Result<Option<PullRequest>> {
        let what = "list the pull requests";
        let owner = self.repository.split('/').next().unwrap_or_default();
        let (head_name, base_name) = (encode(&format!("{owner}:{head}")), encode(base));
        let value = self.get(&format!("pulls?state=open&head={head_name}&base={base_name}"), what)?;
        let found: Vec<RawPullRequest> = read(value, what)?;
        let is_it = |raw: &RawPullRequest| {
            let from = raw.head.repo.as_ref().map(|repository| repository.full_name.as_str());
            // A fork may have a branch of the same name.
            raw.head.name == head && raw.base.name == base && from == Some(self.repository.as_str())
        };
        Ok(found.into_iter().find(is_it).map(RawPullRequest::into_pull_request))
    }

    /// Makes the pull request, or changes the one that is there when its title or text differs. Gives its
    /// number.
    pub fn keep_pull_request(&self, wanted: &WantedPullRequest<'_>) -> Result<u64> {
        let WantedPullRequest { head, base, title, body } = wanted;
        let Some(found) = self.find_pull_request(head, base)? else {
            return self.create_pull_request(wanted);
        };
        if found.title != *title || crate::plan::issues::differ(&found.body, body) {
            let what = format!("change pull request #{}", found.number);
            let fields = json!({ "title": title, "body": body });
            let path = format!("pulls/{}", found.number);
            self.send("PATCH", &path, Some(&fields), &what).map_err(|failed| failed.error)?;
        }
        Ok(found.number)
    }

    /// GitHub refuses a second pull request between the same branches, so asking twice makes one.
    fn create_pull_request(&self, wanted: &WantedPullRequest<'_>) -> Result<u64> {
        let WantedPullRequest { head, base, title, body } = wanted;
        let what = "create a pull request";
        let fields = json!({ "head": head, "base": base, "title": title, "body": body });
        match self.send("POST", "pulls", Some(&fields), what) {
            Ok(value) => Ok(read::<RawPullRequest>(value, what)?.number),
            Err(Failed { error, maybe_done: true }) => {
                self.find_pull_request(head, base)?.map(|found| found.number).ok_or(error)
            }
            Err(Failed { error, .. }) => Err(error),
        }
    }

    fn get(&self, path: &str, what: &str) -> Result<Value> {
        self.send("GET", path, None, what).map_err(|failed| failed.error)
    }

    /// Asks again when nothing was done; a `POST` that may have been done is left to the caller.
    fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> std::result::Result<Value, Failed> {
        let mut why = String::new();
        for attempt in 0..self.patience.tries {
            self.wait_before(attempt);
            let (reason, maybe_done) = match self.send_once(method, path, body, what) {
                Ok(Meaning::Good(value)) => return Ok(value),
                Ok(Meaning::Refused(error)) | Err(error) => {
                    return Err(Failed { error: self.hide(error), maybe_done: false });
                }
                Ok(Meaning::Trouble(reason)) => (reason, true),
                Ok(Meaning::Silence { why, maybe_arrived }) => (why, maybe_arrived),
            };
            why = reason;
            if method == "POST" && maybe_done {
                return Err(Failed { error: self.out_of_reach(what, &why), maybe_done });
            }
        }
        Err(Failed { error: self.out_of_reach(what, &why), maybe_done: false })
    }

    fn send_once(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Meaning> {
        let url = format!("{}/repos/{}/{path}", self.api, self.repository);
        let text = body.map(Value::to_string);
        let request = Request { method, url: &url, body: text.as_deref() };
        match curl::send(&request, &self.token, self.patience.timeouts, &self.scratch)? {
            Answer::Reply(reply) => Ok(reply.meaning(what, now())),
            Answer::Nothing { why, maybe_arrived } => Ok(Meaning::Silence { why, maybe_arrived }),
        }
    }

    fn wait_before(&self, attempt: u32) {
        if let Some(doublings) = attempt.checked_sub(1) {
            std::thread::sleep(self.patience.pause * 2u32.saturating_pow(doublings));
        }
    }

    fn out_of_reach(&self, what: &str, why: &str) -> Error {
        self.hide(
            Error::surroundings(format!("could not {what}: GitHub cannot be reached"))
                .detail(why)
                .hint("run the same command again later"),
        )
    }

    /// A server may repeat what it was sent.
    fn hide(&self, error: Error) -> Error {
        let hide = |texts: Vec<String>| texts.iter().map(|text| self.token.hide_in(text)).collect();
        Error {
            kind: error.kind,
            what: self.token.hide_in(&error.what),
            details: hide(error.details),
            hints: hide(error.hints),
        }
    }
}

#[derive(Deserialize)]
struct RawPullRequest {
    number: u64,
    title: String,
    body: Option<String>,
    head: RawBranch,
    base: RawBranch,
}

#[derive(Deserialize)]
struct RawBranch {
    #[serde(rename = "ref")]
    name: String,
    repo: Option<RawRepository>,
}

#[derive(Deserialize)]
struct RawRepository {
    full_name: String,
}

impl RawPullRequest {
    fn into_pull_request(self) -> PullRequest {
        PullRequest { number: self.number, title: self.title, body: self.body.unwrap_or_default() }
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value, what: &str) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        Error::surroundings(format!("could not {what}: GitHub's reply has another form than it should"))
            .detail(error.to_string().chars().take(300).collect::<String>())
    })
}

/// https, or a server on this machine.
fn is_safe_address(api: &str) -> bool {
    let plain = api.bytes().all(|byte| byte.is_ascii_graphic()) && !api.contains(['?', '#', '@']);
    let here = api.strip_prefix("http://").is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        host.split(':').next().is_some_and(|host| host == "127.0.0.1" || host == "localhost")
    });
    plain && (api.starts_with("https://") || here)
}

fn is_repository(name: &str) -> bool {
    let is_name = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain)
    };
    name.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

/// For a part of a query.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_https_or_stays_here() {
        for good in ["https://api.github.com", "https://ghe.example/api/v3", "http://127.0.0.1:8080"] {
            assert!(is_safe_address(good), "{good}");
        }
        for bad in [
            "http://api.github.com",
            "http://127.0.0.1.example",
            "http://localhost@example",
            "file:///etc/passwd",
            "https://a b",
        ] {
            assert!(!is_safe_address(bad), "{bad}");
        }
    }

    #[test]
    fn a_repository_is_an_owner_and_a_name() {
        assert!(is_repository("a-b/c.d_e"));
        for bad in ["a", "a/b/c", "../x", "a/..", "a/b?c", "/b", "a/"] {
            assert!(!is_repository(bad), "{bad}");
        }
        assert_eq!(encode("o:sync/v1"), "o%3Async%2Fv1");
    }
}
