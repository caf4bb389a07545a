//! One request and its retries.

use serde_json::Value;

use super::Client;
use crate::error::{Error, Result};
use crate::plan::github_reply::Meaning;
use crate::sys::machine::clock;
use crate::sys::net::curl::{self, Answer, Request};

/// A failed request.
pub(super) struct Failed {
    /// The error to report.
    pub(super) error: Error,
    /// Whether GitHub may have performed the request all the same.
    pub(super) maybe_done: bool,
}

impl Client {
    pub(super) fn get(&self, path: &str, what: &str) -> Result<Value> {
        self.send("GET", path, None, what).map_err(|failed| failed.error)
    }

    /// Retries if the request was not performed; a `POST` that may have been performed is left to the caller.
    pub(super) fn send(
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
            Answer::Reply(reply) => Ok(reply.meaning(what, clock::now())),
            Answer::Nothing { why, maybe_arrived } => Ok(Meaning::Silence { why, maybe_arrived }),
        }
    }

    pub(super) fn wait_before(&self, attempt: u32) {
        if let Some(doublings) = attempt.checked_sub(1) {
            std::thread::sleep(self.patience.pause * 2u32.saturating_pow(doublings));
        }
    }

    fn out_of_reach(&self, what: &str, why: &str) -> Error {
        self.hide(
            Error::environment(format!("could not {what}: GitHub cannot be reached"))
                .detail(why)
                .hint("run the same command again later"),
        )
    }

    /// A server may echo the token that it was sent.
    fn hide(&self, error: Error) -> Error {
        let hide = |texts: Vec<String>| texts.iter().map(|text| self.token.hide_in(text)).collect();
        Error {
            kind: error.kind,
            what: self.token.hide_in(&error.what),
            details: hide(error.details),
            hints: hide(error.hints),
            data: error.data,
        }
    }
}

/// Parses a reply into the expected form.
pub(super) fn read<T: serde::de::DeserializeOwned>(value: Value, what: &str) -> Result<T> {
    serde_json::from_value(value).map_err(|error| {
        Error::environment(format!("could not {what}: GitHub's reply has an unexpected format"))
            .detail(error.to_string().chars().take(300).collect::<String>())
    })
}
