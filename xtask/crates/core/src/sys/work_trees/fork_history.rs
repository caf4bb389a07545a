//! The commits of a fork in the order in which they become patches, and replaying one of them on another tree with
//! git.

use std::collections::HashSet;

use espalier_series::{ObjectId, ObjectKind};
use git2::{Repository, Sort};

use super::edit_repo::short;
use super::import_repo::ImportRepo;
use crate::error::{Error, Result};
use crate::sys::git::commit_text::{self, CommitText};
use crate::sys::git::ids::{object_id, oid};
use crate::sys::machine::process::Finished;

/// One commit of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkCommit {
    /// Its id.
    pub id: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents.
    pub parents: Vec<ObjectId>,
    /// Tree of its first parent; `None` for a root commit.
    pub parent_tree: Option<ObjectId>,
    /// Author as a commit stores it: `Name <address> seconds zone`.
    pub author: String,
    /// Its message.
    pub message: String,
    /// Fields of author and message that are neither UTF-8 nor in a charset that the commit names.
    pub not_utf8: Vec<String>,
    /// Whether everything earlier in the order, and the pin's commit, are ancestors: then the replayed tree must
    /// equal the commit's own.
    pub is_whole: bool,
}

impl ForkCommit {
    /// Describes the commit for messages.
    pub fn describe(&self) -> String {
        let subject = self.message.trim_start().lines().next().unwrap_or_default().trim();
        format!("{} ({})", short(self.id), espalier_series::printable(subject.as_bytes()))
    }

    /// Whether it is a merge.
    pub fn is_merge(&self) -> bool {
        self.parents.len() > 1
    }
}

/// Result of replaying a change on another tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// Applied without conflicts.
    Clean(ObjectId),
    /// Applied with the change's own lines wherever both sides changed the same ones.
    Forced(ObjectId),
    /// Conflicts remain even then.
    Conflict,
}

/// Author of temporary commits that only a merge reads.
const PLACEHOLDER_AUTHOR: &str = "Espalier <espalier@espalier.invalid> 946684800 +0000";

/// A range of a fork's commits, in a repository that has all of them.
pub struct Fork<'a> {
    repo: &'a ImportRepo,
    /// The last upstream commit that the fork contains: the pin.
    pub merge_base: ObjectId,
    /// Start of the range, exclusive: upstream, as the fork has it.
    pub base: ObjectId,
    /// The last commit.
    pub tip: ObjectId,
}

impl<'a> Fork<'a> {
    /// Returns the range of the commits of `tip` that are not in `base`.
    pub fn between(repo: &'a ImportRepo, base: ObjectId, tip: ObjectId) -> Result<Fork<'a>> {
        let merge_base = repo.repository().merge_base(oid(base), oid(tip)).map_err(|_| {
            Error::usage("the two ends of the range have no commit in common")
                .detail(format!("{base}\n{tip}"))
                .hint("name upstream's branch or tag that the fork began from: BASE..TIP")
        })?;
        Ok(Fork { repo, merge_base: object_id(merge_base), base, tip })
    }

    pub(super) fn git(&self) -> &Repository {
        self.repo.repository()
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId> {
        self.repo.store.tree_of(commit)
    }

    /// Returns the commits, every parent before its children; commits of a merged branch directly precede the merge.
    pub fn commits(&self) -> Result<Vec<ForkCommit>> {
        let within = self.within()?;
        let trunk = self.trunk(&within)?;
        let mut order = Vec::with_capacity(within.len());
        let mut seen = HashSet::new();
        let mut stack = vec![(self.tip, 0)];
        while let Some((id, next)) = stack.pop() {
            if !within.contains(&id) || (next == 0 && !seen.insert(id)) {
                continue;
            }
            let commit = self.git().find_commit(oid(id)).map_err(|error| unreadable(id, &error))?;
            match commit.parent_id(next) {
                Ok(parent) => stack.extend([(id, next + 1), (object_id(parent), 0)]),
                Err(_) => order.push(self.read(&commit, &trunk)?),
            }
        }
        Ok(order)
    }

    fn within(&self) -> Result<HashSet<ObjectId>> {
        let fail = |error: git2::Error| unreadable(self.tip, &error);
        let mut walk = self.git().revwalk().map_err(fail)?;
        walk.set_sorting(Sort::NONE).map_err(fail)?;
        walk.push(oid(self.tip)).map_err(fail)?;
        walk.hide(oid(self.base)).map_err(fail)?;
        walk.map(|id| id.map(object_id)).collect::<std::result::Result<_, _>>().map_err(fail)
    }

    /// Returns the chain of first parents from the tip, as long as the pin's commit is an ancestor. Every commit that
    /// precedes one of these in the order is its ancestor.
    fn trunk(&self, within: &HashSet<ObjectId>) -> Result<HashSet<ObjectId>> {
        let mut trunk = HashSet::new();
        let mut at = self.tip;
        while within.contains(&at) {
            let has_merge_base = self.git().graph_descendant_of(oid(at), oid(self.merge_base));
            if !has_merge_base.map_err(|error| unreadable(at, &error))? {
                break;
            }
            trunk.insert(at);
            let commit = self.git().find_commit(oid(at)).map_err(|error| unreadable(at, &error))?;
            let Ok(parent) = commit.parent_id(0) else { break };
            at = object_id(parent);
        }
        Ok(trunk)
    }

    fn read(&self, commit: &git2::Commit<'_>, trunk: &HashSet<ObjectId>) -> Result<ForkCommit> {
        let text = commit_text::read(|| self.repo.git(), commit)?;
        let parent = commit.parent(0).ok();
        Ok(ForkCommit {
            id: object_id(commit.id()),
            tree: object_id(commit.tree_id()),
            parents: commit.parent_ids().map(object_id).collect(),
            parent_tree: parent.map(|parent| object_id(parent.tree_id())),
            author: author_line(&text, commit.author().when()),
            message: text.message,
            not_utf8: text.not_utf8,
            is_whole: trunk.contains(&object_id(commit.id())),
        })
    }

    /// Replays the change from `old` to `new` on the tree `onto` with git's merge.
    pub fn replay(&self, old: ObjectId, new: ObjectId, onto: ObjectId) -> Result<Replayed> {
        let commit =
            |tree: ObjectId, parent: ObjectId| self.repo.commit(PLACEHOLDER_AUTHOR, tree, parent, "Import\n");
        let base = commit(old, self.merge_base)?;
        let sides = [commit(onto, base)?, commit(new, base)?];
        let clean = self.merge(base, sides, &[])?;
        match (clean.status.code(), read_id(&clean.stdout)) {
            (Some(0), Some(tree)) => Ok(Replayed::Clean(tree)),
            (Some(1), _) => {
                let forced = self.merge(base, sides, &["-X", "theirs"])?;
                let tree = read_id(&forced.stdout).filter(|_| forced.status.success());
                Ok(tree.map_or(Replayed::Conflict, Replayed::Forced))
            }
            _ => Err(Error::environment("git cannot merge without a work tree")
                .detail(clean.stderr)
                .hint("a fork with merges needs git 2.40 or later: git --version")),
        }
    }

    fn merge(&self, base: ObjectId, [ours, theirs]: [ObjectId; 2], more: &[&str]) -> Result<Finished> {
        let run = self.repo.git().args(["merge-tree", "--write-tree", "--no-messages"]).args(more);
        run.arg(format!("--merge-base={base}")).args([ours.to_string(), theirs.to_string()]).finish()
    }

    /// Returns the empty tree, from which a commit without parents starts.
    pub fn empty_tree(&self) -> Result<ObjectId> {
        self.repo.store.write(ObjectKind::Tree, b"")
    }
}

fn read_id(stdout: &[u8]) -> Option<ObjectId> {
    espalier_series::lossy(stdout).lines().next()?.trim().parse().ok()
}

/// Returns the author line of a commit. Characters that would end a field are dropped; an empty name is replaced by
/// the address.
fn author_line(author: &CommitText, when: git2::Time) -> String {
    let plain = |text: &str| {
        let text = text.chars().filter(|letter| !letter.is_control() && !"<>".contains(*letter));
        text.collect::<String>().trim().to_string()
    };
    let (name, address) = (plain(&author.name), plain(&author.address));
    let name = if name.is_empty() { address.clone() } else { name };
    let name = if name.is_empty() { "nobody".to_string() } else { name };
    let minutes = when.offset_minutes().clamp(-1439, 1439);
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    format!("{name} <{address}> {} {sign}{hours:02}{minutes:02}", when.seconds().max(0))
}

pub(super) fn unreadable(id: ObjectId, error: &git2::Error) -> Error {
    Error::environment(format!("the history of {id} cannot be read")).detail(error.message().to_string())
}
