//! The upstream commits between two trees that changed the lines of a conflict: its lines in the new tree, traced back
//! commit by commit along upstream's main line.

use std::ops::Range;

use espalier_core::day::day;
use espalier_core::error::Result;
use espalier_core::sys::git::history::{self, Commit};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_series::{Hunk, ObjectId, earlier_lines, hunks_between};

use super::diff_text::{diff_text, of_file};
use super::lines::{ConflictLines, ConflictedVersions};
use crate::rebase::target::SeriesMove;
use crate::report::conflict::UpstreamChange;
use crate::report::content::Content;

/// Maximum number of commits for one conflict: the newest.
const COMMITS_LIMIT: usize = 20;
/// Size limit of a message, in bytes.
const MESSAGE_LIMIT: usize = 4 << 10;
/// Size limit of a diff, in bytes.
const DIFF_LIMIT: usize = 8 << 10;

/// Upstream's commits between the two trees.
pub struct UpstreamLines<'a> {
    store: &'a Store,
    pin: ObjectId,
    tip: ObjectId,
    commits: Vec<Commit>,
}

impl<'a> UpstreamLines<'a> {
    /// Reads the commits; `None` if they are not available.
    pub fn load(series_move: &SeriesMove<'a>) -> Result<Option<UpstreamLines<'a>>> {
        let (store, pin, tip) = (series_move.store, series_move.stack.pin.tree, &series_move.tip);
        if tip.commit.is_zero() {
            return Ok(None);
        }
        let commits = history::since(store, tip.commit, pin)?;
        Ok(commits.map(|commits| UpstreamLines { store, pin, tip: tip.tree, commits }))
    }

    /// Returns the commits that changed the lines of one conflict, oldest first.
    pub fn changes(
        &self,
        versions: &ConflictedVersions<'_>,
        lines: &ConflictLines,
    ) -> Result<Vec<UpstreamChange>> {
        let Some(base) = &versions.base else { return Ok(Vec::new()) };
        let mut traced = match (&versions.ours, &lines.ours) {
            (Some(ours), Some(lines)) => {
                let path = ours.path.as_bytes();
                // Earlier patches of the series are in the file too, and not upstream's.
                let Some(tip) = self.entry(self.tip, path)? else { return Ok(Vec::new()) };
                let lines = earlier_lines(&self.store.read(tip.id)?, &ours.text, lines.clone()).lines;
                Traced { path: path.to_vec(), lines: Some(lines) }
            }
            _ => Traced { path: base.path.as_bytes().to_vec(), lines: None },
        };
        let mut changes = Vec::new();
        let mut next = self.commits.len().checked_sub(1);
        while let Some(commit) = next.and_then(|at| self.commits.get(at)) {
            next = commit.first_parent;
            match self.step_back(&mut traced, base.path.as_bytes(), commit)? {
                Step::Changed(diff) => changes.push(self.change(commit, &diff)?),
                Step::Began(diff) => {
                    changes.push(self.change(commit, &diff)?);
                    break;
                }
                Step::Nothing => {}
            }
            if changes.len() == COMMITS_LIMIT {
                break;
            }
        }
        changes.reverse();
        Ok(changes)
    }

    /// Traces the lines from `commit` to its first parent. `base` is the path at the pin.
    fn step_back(&self, traced: &mut Traced, base: &[u8], commit: &Commit) -> Result<Step> {
        let parent = match commit.first_parent.and_then(|at| self.commits.get(at)) {
            Some(parent) => parent.tree,
            None => commit.parent_trees.last().copied().unwrap_or(self.pin),
        };
        let now = self.entry(commit.tree, &traced.path)?;
        let mut before = self.entry(parent, &traced.path)?;
        if now == before {
            return Ok(Step::Nothing);
        }
        let path = traced.path.clone();
        if before.is_none() && traced.path != base {
            before = self.entry(parent, base)?;
            traced.path = base.to_vec();
        }
        match (before, now, &traced.lines) {
            (Some(before), Some(now), Some(lines)) => {
                let (old, new) = (self.store.read(before.id)?, self.store.read(now.id)?);
                let earlier = earlier_lines(&old, &new, lines.clone());
                let diff = diff_of(
                    (traced.path.as_slice(), old.as_slice()),
                    (path.as_slice(), new.as_slice()),
                    lines,
                );
                let is_new = earlier.lines.is_empty() && !lines.is_empty();
                traced.lines = Some(earlier.lines);
                Ok(match (earlier.is_changed, is_new) {
                    (false, _) => Step::Nothing,
                    (true, false) => Step::Changed(diff),
                    // The lines replace none.
                    (true, true) => Step::Began(diff),
                })
            }
            (None, Some(_), _) => Ok(Step::Began(of_file("new file", &path))),
            // The file that the patch changes went away here.
            (Some(_), None, None) => Ok(Step::Began(of_file("deleted file", &path))),
            _ => Ok(Step::Nothing),
        }
    }

    fn entry(&self, tree: ObjectId, path: &[u8]) -> Result<Option<Entry>> {
        GitTree::new(self.store, tree)?.entry(path)
    }

    fn change(&self, commit: &Commit, diff: &[u8]) -> Result<UpstreamChange> {
        let text = history::message_of(self.store, commit.id)?;
        Ok(UpstreamChange {
            id: commit.id.to_string(),
            author: text.author,
            date: day(text.seconds),
            subject: commit.subject.clone(),
            message: Content::of(&text.message, MESSAGE_LIMIT),
            diff: Content::of(diff, DIFF_LIMIT),
        })
    }
}

/// The lines while they are traced back.
struct Traced {
    path: Vec<u8>,
    /// The lines, from 0; `None` while the file is gone.
    lines: Option<Range<usize>>,
}

/// The change of the traced lines by one commit.
enum Step {
    Nothing,
    /// It changed them.
    Changed(Vec<u8>),
    /// They begin or end here: there is nothing to trace further back.
    Began(Vec<u8>),
}

/// Returns the hunks between two versions of a file that touch `lines` of the newer one, as a diff.
fn diff_of(
    (old_path, old): (&[u8], &[u8]),
    (new_path, new): (&[u8], &[u8]),
    lines: &Range<usize>,
) -> Vec<u8> {
    let touches = |hunk: &&Hunk| {
        let start = hunk.new_lines_before();
        start <= lines.end && start + hunk.new_count >= lines.start
    };
    diff_text([old_path, new_path], hunks_between(old, new).iter().filter(touches))
}
