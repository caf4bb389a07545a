//! A fork's commits as a linear sequence on the pin, whose last tree is the fork's.

use std::collections::{HashMap, HashSet};

use espalier_core::error::{Error, Result};
use espalier_core::sys::work_trees::edit_repo::short;
use espalier_core::sys::work_trees::fork_history::{Fork, ForkCommit, Replayed};
use espalier_core::ui::{Ui, Unit};
use espalier_series::ObjectId;

use super::left_out::LeftOut;
use super::sequence::{PatchSequence, SequenceCommit};

/// Linearizes the fork. A commit keeps its own tree if its parent is the one it had; after a merge it is replayed
/// with git's merge, and changes made in the merge itself become a separate patch.
pub fn linearize(fork: &Fork<'_>, left_out: &mut LeftOut<'_>, ui: &Ui) -> Result<PatchSequence> {
    let commits = fork.commits()?;
    let mut linearizer = Linearizer {
        fork,
        left_out,
        tree: fork.tree_of(fork.merge_base)?,
        sequence: PatchSequence::default(),
        there_already: Vec::new(),
        unsettled: Vec::new(),
        not_utf8: Vec::new(),
    };
    let mut progress = ui.progress("commits of the fork", Some(commits.len() as u64), Unit::Steps);
    for (done, commit) in (1..).zip(&commits) {
        if commit.is_merge() {
            linearizer.merge(commit)?
        } else {
            linearizer.commit(commit)?
        }
        progress.set(done);
    }
    let Linearizer { mut sequence, there_already, not_utf8, .. } = linearizer;
    refuse_unknown_charsets(&not_utf8)?;
    name_those_upstream_has(fork, &there_already, &mut sequence)?;
    name_backports(fork, &commits, &mut sequence)?;
    Ok(sequence)
}

struct Linearizer<'a, 'b> {
    fork: &'a Fork<'a>,
    left_out: &'a mut LeftOut<'b>,
    /// The tree after the commits so far.
    tree: ObjectId,
    sequence: PatchSequence,
    /// Commits whose change is already in the tree.
    there_already: Vec<ForkCommit>,
    /// Commits since the last merge whose change was dropped or modified by the replay.
    unsettled: Vec<String>,
    /// Authors and messages that a patch cannot represent, each with its commit.
    not_utf8: Vec<String>,
}

fn refuse_unknown_charsets(places: &[String]) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    Err(Error::usage("the text of a commit is not UTF-8 and does not name its charset; nothing was written")
        .detail(places.join("\n"))
        .hint("reword these commits where they come from, and import again: git rebase -i"))
}

impl Linearizer<'_, '_> {
    fn commit(&mut self, commit: &ForkCommit) -> Result<()> {
        let parent = commit.parent_tree.map_or_else(|| self.fork.empty_tree(), Ok)?;
        let (old, new) = (self.left_out.without(parent)?, self.left_out.without(commit.tree)?);
        if old == new {
            let is_empty = commit.parent_tree == Some(commit.tree);
            let why = if is_empty { "it is empty" } else { "it changes only what is left out" };
            self.sequence.drop(commit.describe(), why);
            return Ok(());
        }
        let replayed =
            if old == self.tree { Replayed::Clean(new) } else { self.fork.replay(old, new, self.tree)? };
        match replayed {
            Replayed::Clean(tree) if tree == self.tree => self.there_already.push(commit.clone()),
            Replayed::Clean(tree) => self.push(commit, tree, Vec::new()),
            Replayed::Forced(tree) => {
                self.unsettled.push(commit.describe());
                let note = "it conflicts with what stands before it in the line; its own lines were taken, \
                            and the next merge settles the rest";
                self.push(commit, tree, vec![note.to_string()]);
            }
            Replayed::Conflict => {
                self.unsettled.push(commit.describe());
                let why = "it conflicts with what stands before it in the line; what the fork kept of it is in \
                           the patch of the next merge";
                self.sequence.drop(commit.describe(), why);
            }
        }
        Ok(())
    }

    fn push(&mut self, commit: &ForkCommit, tree: ObjectId, notes: Vec<String>) {
        self.tree = tree;
        self.not_utf8.extend(commit.not_utf8.iter().map(|place| format!("{}: {place}", short(commit.id))));
        self.sequence.commits.push(SequenceCommit {
            origin: commit.describe(),
            author: commit.author.clone(),
            message: commit.message.clone(),
            tree,
            status: None,
            notes,
        });
    }

    /// At a merge that has all of the sequence among its ancestors, the tree must equal the merge's. The difference
    /// is what a person decided in the merge.
    fn merge(&mut self, commit: &ForkCommit) -> Result<()> {
        let new = self.left_out.without(commit.tree)?;
        if !commit.is_whole || new == self.tree {
            self.sequence.merges.push(commit.describe());
            return Ok(());
        }
        let message = resolving(commit, &std::mem::take(&mut self.unsettled));
        let note = format!("it is what the merge {} changed beyond its two parents", commit.describe());
        let mut commit = ForkCommit { message, ..commit.clone() };
        // Only the merge's author is used, not its message.
        commit.not_utf8.retain(|place| place.starts_with("author"));
        self.push(&commit, new, vec![note]);
        Ok(())
    }
}

fn resolving(merge: &ForkCommit, unsettled: &[String]) -> String {
    let mut message = format!(
        "Resolve merge {} as the fork did\n\nThe fork's commits were put into one line. This is what is left then of \
         its merge\n\n    {}\n",
        short(merge.id),
        merge.describe()
    );
    if !unsettled.is_empty() {
        message += "\nwhich also settled conflicts with these commits:\n\n";
        message.extend(unsettled.iter().map(|commit| format!("    {commit}\n")));
    }
    message
}

/// Notes commits that change nothing on the pin: upstream has them, as the same commit or in others.
fn name_those_upstream_has(
    fork: &Fork<'_>,
    there: &[ForkCommit],
    sequence: &mut PatchSequence,
) -> Result<()> {
    if there.is_empty() {
        return Ok(());
    }
    let there: Vec<&ForkCommit> = there.iter().collect();
    let same = fork.same_changes(&there, fork.left_upstream(&there), fork.merge_base)?;
    for commit in there {
        let why = match same.get(&commit.id) {
            Some(upstream) => format!("upstream has it, as {}", short(*upstream)),
            None => "all its changes are there already".to_string(),
        };
        sequence.drop(commit.describe(), why);
    }
    Ok(())
}

/// Notes commits that upstream has after the pin; they are kept, because the pin does not have them.
fn name_backports(fork: &Fork<'_>, commits: &[ForkCommit], sequence: &mut PatchSequence) -> Result<()> {
    if fork.base == fork.merge_base {
        return Ok(());
    }
    let kept: HashSet<String> = sequence.commits.iter().map(|commit| commit.origin.clone()).collect();
    let kept: Vec<&ForkCommit> = commits.iter().filter(|commit| kept.contains(&commit.describe())).collect();
    let same = fork.same_changes(&kept, Some(fork.merge_base), fork.base)?;
    let by_name: HashMap<String, ObjectId> =
        kept.iter().filter_map(|commit| Some((commit.describe(), *same.get(&commit.id)?))).collect();
    for commit in &mut sequence.commits {
        if let Some(upstream) = by_name.get(&commit.origin) {
            commit.status = Some(format!("Backport {upstream}"));
            commit.notes.push(format!("upstream took it after the pin, as {}", short(*upstream)));
        }
    }
    Ok(())
}
