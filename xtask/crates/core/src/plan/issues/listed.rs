//! An issue as GitHub lists it; only the fields that are used here.

use serde::Deserialize;

use super::{LABEL, Subject};

/// An issue as GitHub lists it.
#[derive(Clone, Debug, Deserialize)]
pub struct Listed {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    body: Option<String>,
    state: String,
    state_reason: Option<String>,
    #[serde(default)]
    labels: Vec<Label>,
    pull_request: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Label {
    name: String,
}

impl Listed {
    /// Its text.
    pub fn text(&self) -> &str {
        self.body.as_deref().unwrap_or_default()
    }

    /// Whether it has the label.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|found| found.name.eq_ignore_ascii_case(label))
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == "open"
    }

    /// Whether a person closed it as not planned: that is a decision, and it stays closed.
    pub(super) fn is_declined(&self) -> bool {
        self.state_reason.as_deref() == Some("not_planned")
    }

    /// Its subject, when it is one of our issues.
    pub fn subject(&self) -> Option<Subject> {
        if !self.has_label(LABEL) || self.pull_request.is_some() {
            return None;
        }
        Subject::read(self.text().lines().next()?)
    }
}

#[cfg(test)]
impl Listed {
    pub(super) fn forget_labels(&mut self) {
        self.labels.clear();
    }

    pub(super) fn become_pull_request(&mut self) {
        self.pull_request = Some(serde_json::json!({}));
    }

    pub(super) fn decline(&mut self) {
        self.state_reason = Some("not_planned".into());
    }
}
