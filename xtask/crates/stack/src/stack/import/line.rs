//! What is imported, wherever it comes from: commits one after the other, and what was done to make them so.

use crate::series::ObjectId;

/// One commit that becomes a patch.
#[derive(Clone, Debug)]
pub struct LineCommit {
    /// What people know it by: a commit of the fork, a file.
    pub origin: String,
    /// As a commit says it: `Name <address> seconds zone`.
    pub author: String,
    /// Its message.
    pub message: String,
    /// The tree after it.
    pub tree: ObjectId,
    /// `Upstream-Status:`, when it is known.
    pub status: Option<String>,
    /// What a person should look at.
    pub notes: Vec<String>,
}

/// A commit or a file that becomes no patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// What people know it by.
    pub origin: String,
    /// Why.
    pub why: String,
}

/// All of it, in order.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The commits.
    pub commits: Vec<LineCommit>,
    /// What becomes no patch.
    pub dropped: Vec<Dropped>,
    /// Merges: what they brought stands in the line.
    pub merges: Vec<String>,
}

impl Line {
    /// Leaves something out.
    pub fn drop(&mut self, origin: String, why: impl Into<String>) {
        self.dropped.push(Dropped { origin, why: why.into() });
    }
}
