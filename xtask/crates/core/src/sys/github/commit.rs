//! A commit of some files on a branch of its own, created by GitHub: nothing is pushed, so no checkout needs
//! permission to push.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Client;
use super::send::{Failed, read};
use crate::error::{Error, Result};

/// A commit to be created.
#[derive(Clone, Debug)]
pub struct WantedCommit<'a> {
    /// Branch that points at the commit afterwards, whatever it pointed at before.
    pub branch: &'a str,
    /// Full id of the parent commit.
    pub parent: &'a str,
    /// Its message.
    pub message: &'a str,
    /// Every file that differs, by its path, with its bytes; `None` for one that is deleted.
    pub files: &'a [(String, Option<Vec<u8>>)],
}

#[derive(Deserialize)]
struct RawObject {
    sha: String,
}

#[derive(Deserialize)]
struct RawCommit {
    tree: RawObject,
}

#[derive(Deserialize)]
struct RawRef {
    #[serde(rename = "ref")]
    name: String,
}

impl Client {
    /// Creates the commit, moves the branch and returns the commit's id.
    pub fn keep_commit(&self, wanted: &WantedCommit<'_>) -> Result<String> {
        let what = "read the commit to start from";
        let parent: RawCommit = read(self.get(&format!("git/commits/{}", wanted.parent), what)?, what)?;
        let entries = wanted.files.iter().map(|(path, content)| self.entry(path, content.as_deref()));
        let entries: Vec<Value> = entries.collect::<Result<_>>()?;
        let tree = json!({ "base_tree": parent.tree.sha, "tree": entries });
        let tree = self.make_object("git/trees", &tree, "write the changed files")?;
        let commit = json!({ "message": wanted.message, "tree": tree, "parents": [wanted.parent] });
        let commit = self.make_object("git/commits", &commit, "make the commit")?;
        self.move_branch(wanted.branch, &commit)?;
        Ok(commit)
    }

    /// Returns the entry of a file in a tree. Only text can be in its JSON: other content is made a blob first.
    fn entry(&self, path: &str, content: Option<&[u8]>) -> Result<Value> {
        let (key, value) = match content.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            None => ("sha", Value::Null),
            Some((_, Ok(text))) => ("content", json!(text)),
            Some((bytes, Err(_))) => {
                let blob = json!({ "content": STANDARD.encode(bytes), "encoding": "base64" });
                ("sha", json!(self.make_object("git/blobs", &blob, &format!("write `{path}`"))?))
            }
        };
        Ok(json!({ "path": path, "mode": "100644", "type": "blob", key: value }))
    }

    /// Creating the same object twice yields one object: retrying is safe.
    fn make_object(&self, path: &str, body: &Value, what: &str) -> Result<String> {
        let mut failed = None;
        for attempt in 0..self.patience.tries {
            self.wait_before(attempt);
            match self.send("POST", path, Some(body), what) {
                Ok(value) => return Ok(read::<RawObject>(value, what)?.sha),
                Err(Failed { error, maybe_done: true }) => failed = Some(error),
                Err(Failed { error, .. }) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| Error::environment(format!("could not {what}"))))
    }

    fn move_branch(&self, branch: &str, commit: &str) -> Result<()> {
        let what = format!("move the branch `{branch}`");
        let full = format!("refs/heads/{branch}");
        let like_it: Vec<RawRef> =
            read(self.get(&format!("git/matching-refs/heads/{branch}"), &what)?, &what)?;
        let sent = if like_it.iter().any(|found| found.name == full) {
            let body = json!({ "sha": commit, "force": true });
            self.send("PATCH", &format!("git/refs/heads/{branch}"), Some(&body), &what)
        } else {
            self.send("POST", "git/refs", Some(&json!({ "ref": full, "sha": commit })), &what)
        };
        sent.map(drop).map_err(|failed| failed.error)
    }
}
