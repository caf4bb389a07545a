//! One pull request for a branch.

use serde::Deserialize;
use serde_json::json;

use super::Client;
use super::send::{Failed, read};
use crate::error::Result;
use crate::http::percent_encoded;
use crate::plan::issues;

/// A pull request to be created.
#[derive(Clone, Debug)]
pub struct WantedPullRequest<'a> {
    /// Branch with the change, in the same repository.
    pub head: &'a str,
    /// Target branch.
    pub base: &'a str,
    /// Title.
    pub title: &'a str,
    /// Description.
    pub body: &'a str,
}

/// An existing pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Number.
    pub number: u64,
    /// Title.
    pub title: String,
    /// Description.
    pub body: String,
}

impl Client {
    /// Returns the open pull request from `head` to `base`, both branches of this repository.
    pub fn find_pull_request(&self, head: &str, base: &str) -> Result<Option<PullRequest>> {
        let what = "list the pull requests";
        let owner = self.repository.split('/').next().unwrap_or_default();
        let encoded = |branch: &str| percent_encoded(branch, b"-._~");
        let (head_name, base_name) = (encoded(&format!("{owner}:{head}")), encoded(base));
        let value = self.get(&format!("pulls?state=open&head={head_name}&base={base_name}"), what)?;
        let found: Vec<RawPullRequest> = read(value, what)?;
        let is_it = |raw: &RawPullRequest| {
            let from = raw.head.repo.as_ref().map(|repository| repository.full_name.as_str());
            // A fork may have a branch of the same name.
            raw.head.name == head && raw.base.name == base && from == Some(self.repository.as_str())
        };
        Ok(found.into_iter().find(is_it).map(RawPullRequest::into_pull_request))
    }

    /// Creates the pull request, or updates the existing one if its title or text differs. A text that is longer than
    /// GitHub accepts is cut. Returns its number.
    pub fn keep_pull_request(&self, wanted: &WantedPullRequest<'_>) -> Result<u64> {
        let body = issues::cut(wanted.body);
        let wanted = &WantedPullRequest { body: &body, ..wanted.clone() };
        let WantedPullRequest { head, base, title, body } = wanted;
        let Some(found) = self.find_pull_request(head, base)? else {
            return self.create_pull_request(wanted);
        };
        if found.title != *title || issues::differ(&found.body, body) {
            let what = format!("change pull request #{}", found.number);
            let fields = json!({ "title": title, "body": body });
            let path = format!("pulls/{}", found.number);
            self.send("PATCH", &path, Some(&fields), &what).map_err(|failed| failed.error)?;
        }
        Ok(found.number)
    }

    /// GitHub refuses a second pull request between the same branches, so a retry cannot create two.
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
