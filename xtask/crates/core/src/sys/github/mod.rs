//! A small client for GitHub: issues and pull requests of one repository.
//!
//! `plan/issues` decides what to do with which issue, `plan/github_reply.rs` what a reply means.

mod commit;
mod pull_request;
mod send;
pub mod step_summary;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use commit::WantedCommit;
pub use pull_request::{PullRequest, WantedPullRequest};
use send::{Failed, read};
use serde_json::{Value, json};

use super::machine::process::TOKENS;
use super::machine::secret::Secret;
use super::net::curl::Timeouts;
use crate::error::{Error, Result};
use crate::plan::issues::Listed;

/// Timeouts and retries of the client.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Timeouts of one request.
    pub timeouts: Timeouts,
    /// Maximum number of attempts for a request.
    pub tries: u32,
    /// Delay before the second attempt; it doubles for each further one.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let timeouts = Timeouts { connect: Duration::from_secs(20), total: Duration::from_secs(60) };
        Patience { timeouts, tries: 4, pause: Duration::from_secs(1) }
    }
}

/// One repository on GitHub, with the credentials for it.
#[derive(Debug)]
pub struct Client {
    api: String,
    server: String,
    repository: String,
    token: Secret,
    patience: Patience,
    scratch: PathBuf,
}

/// Issues per page, and maximum number of pages.
const PER_PAGE: usize = 100;
const PAGES: u32 = 10;

impl Client {
    /// Creates a client from the variables that GitHub's runners set: `GITHUB_REPOSITORY`, `GITHUB_TOKEN` (or
    /// `GH_TOKEN`), and `GITHUB_API_URL` and `GITHUB_SERVER_URL` where it is not github.com.
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

    /// Creates a client; `api` is the address of the API, `repository` is `OWNER/NAME`.
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

    /// Returns the client with other timeouts and retries.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Client {
        Client { patience, ..self }
    }

    /// Returns the page on which people start the workflow in `file`.
    pub fn workflow(&self, file: &str) -> String {
        format!("{}/{}/actions/workflows/{file}", self.server, self.repository)
    }

    /// Returns all `open` issues with `label`, or the newest of the `closed` ones.
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
        Err(Error::environment(format!("there are more than {most} open issues labelled `{label}`"))
            .hint("close some of them"))
    }

    /// Creates exactly one issue and returns its number: if GitHub may have created it without confirming, an issue
    /// with the first line of `body` is searched for before the request is repeated.
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
        Err(failed.unwrap_or_else(|| Error::environment(format!("could not {what}"))))
    }

    fn find_issue(&self, label: &str, body: &str) -> Result<Option<u64>> {
        let first = body.lines().next();
        let open = self.issues(label, "open")?;
        Ok(open.into_iter().find(|issue| issue.text().lines().next() == first).map(|issue| issue.number))
    }

    /// Without its label no later run would find the issue, and each would create another one.
    fn check_label(&self, made: Listed, label: &str) -> Result<u64> {
        if made.has_label(label) {
            return Ok(made.number);
        }
        Err(Error::environment(format!("GitHub made issue #{} without the label `{label}`", made.number))
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
}

/// Whether `api` uses https, or is a server on this machine.
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
    }
}
