//! The result of an import from any source: a sequence of commits, and notes on how it was derived.

use espalier_series::ObjectId;

/// One commit that becomes a patch.
#[derive(Clone, Debug)]
pub struct SequenceCommit {
    /// Origin for messages: a commit of the fork, or a file.
    pub origin: String,
    /// Author as a commit stores it: `Name <address> seconds zone`.
    pub author: String,
    /// Its message.
    pub message: String,
    /// The tree after it.
    pub tree: ObjectId,
    /// `Upstream-Status:`, when it is known.
    pub status: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A commit or a file that does not become a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Origin for messages.
    pub origin: String,
    /// Reason.
    pub why: String,
}

/// The sequence of an import.
#[derive(Clone, Debug, Default)]
pub struct PatchSequence {
    /// The commits.
    pub commits: Vec<SequenceCommit>,
    /// Commits and files that do not become patches.
    pub dropped: Vec<Dropped>,
    /// Merges, whose commits are part of the sequence.
    pub merges: Vec<String>,
}

impl PatchSequence {
    /// Records something that is left out.
    pub fn drop(&mut self, origin: String, why: impl Into<String>) {
        self.dropped.push(Dropped { origin, why: why.into() });
    }
}
