//! Commits replayed onto other commits of their history, compared with `git merge-tree`.
//!
//! Where git succeeds, we produce the same tree or stop because the position is ambiguous. Where git stops, we stop.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use espalier_core::random::Random;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_series::{AppliedSeries, ObjectId, Patch, PatchClass, Replay, ReplayError, Step, TreeNames};

use super::support::{self, made_up};

/// Number of pairs (a commit, and a place to replay it) to try, and the environment variable that sets another one.
const PAIRS: usize = 500;
const MORE: &str = "ESPALIER_MERGE_PAIRS";
/// Number of commits in a synthetic history.
const COMMITS: usize = 60;
const SEED: u64 = 20_261_123;

/// Environment variable with a repository to test manually: the first parents of its HEAD.
const REAL: &str = "ESPALIER_MERGE_HISTORY";

#[derive(Debug, Default)]
struct Tally {
    same: usize,
    upstreamed: usize,
    both_stop: usize,
    only_we_stop: usize,
    /// Changes that a patch cannot represent, such as that of a submodule.
    refused: usize,
    /// Violations, each as a sentence.
    wrong: Vec<String>,
}

#[test]
fn a_commit_goes_where_git_puts_it_or_stops() {
    let made = tempfile::tempdir().unwrap();
    let repo = std::env::var_os(REAL).map_or_else(|| make_up(made.path()), PathBuf::from);
    let history = History::read(&repo);
    let mut random = Random(SEED);
    let mut tally = Tally::default();
    for _ in 0..support::count(MORE, PAIRS) {
        let at = 1 + random.below(history.commits.len() - 1);
        let place = random.below(history.commits.len());
        if place + 1 != at {
            history.compare(at, place, &mut tally);
        }
    }
    println!("{tally:#?}");
    assert!(tally.wrong.is_empty(), "git stops or has another tree: {:#?}", tally.wrong);
    assert!(tally.same > 0 && tally.upstreamed > 0 && tally.both_stop > 0, "it tests nothing: {tally:?}");
    let needless = tally.only_we_stop * 1000 / (tally.same + tally.upstreamed);
    assert!(needless <= 50, "we stop where git goes on: {tally:?}");
}

/// A linear history, oldest commit first, with trees.
struct History {
    repo: PathBuf,
    store: Store,
    commits: Vec<(String, ObjectId)>,
    /// The change of each commit once it was needed, because git creates each of them in a process; `None` if a patch
    /// cannot represent it.
    patches: Vec<OnceCell<Option<Patch>>>,
}

impl History {
    fn read(repo: &Path) -> History {
        let list = made_up::git(repo, &["log", "--first-parent", "--reverse", "--format=%H %T"]).1;
        let line = |line: &str| {
            let (commit, tree) = line.split_once(' ').unwrap();
            (commit.to_string(), tree.parse::<ObjectId>().unwrap())
        };
        let commits: Vec<_> = list.lines().map(line).collect();
        let patches = vec![OnceCell::new(); commits.len()];
        History { repo: repo.to_path_buf(), store: Store::open(repo).unwrap(), commits, patches }
    }

    /// Replays the change of the commit `at` on the commit `place`.
    fn compare(&self, at: usize, place: usize, tally: &mut Tally) {
        let names = format!("the change of {} on {}", self.commits[at].0, self.commits[place].0);
        let change = || made_up::patch_of(&self.repo, &self.commits[at].0);
        let Some(patch) = self.patches[at].get_or_init(change) else {
            tally.refused += 1;
            return;
        };
        let (pin, tip) = (self.commits[at - 1].1, self.commits[place].1);
        let Some(step) = self.replay(patch, pin, tip) else {
            tally.refused += 1;
            return;
        };
        let by_git = made_up::merged_by_git(&self.repo, &self.commits[at].0, &self.commits[place].0);
        match (by_git, step.replayed.has_conflict()) {
            (None, true) => tally.both_stop += 1,
            (Some(_), true) => {
                let conflicts = step.replayed.conflicts().map(|conflict| (&conflict.path, &conflict.reason));
                let why: Vec<_> = conflicts.collect();
                println!("needless: {names}: {:?}: {why:?}", step.replayed.class());
                tally.only_we_stop += 1;
            }
            (None, false) => tally.wrong.push(format!("{names}: git stops, we do not: {:?}", step.replayed)),
            (Some(tree), false) if tree == tip && step.replayed.class() == PatchClass::Upstreamed => {
                tally.upstreamed += 1
            }
            (Some(tree), false) if tree != tip && made_up::tree_after(&self.store, tip, &step) == tree => {
                tally.same += 1
            }
            (Some(tree), false) => {
                tally.wrong.push(format!("{names}: git has {tree}, not {:?}", step.replayed))
            }
        }
    }

    /// Returns `None` when the patch does not represent the whole change.
    fn replay(&self, patch: &Patch, pin: ObjectId, tip: ObjectId) -> Option<Step> {
        let pin_tree = StoreTree::new(&self.store, pin).unwrap();
        let tip_tree = StoreTree::in_range(&self.store, tip, pin, tip).unwrap();
        let applied = AppliedSeries::new(std::slice::from_ref(patch), &pin_tree).unwrap();
        let nothing = BTreeSet::new();
        let names = TreeNames { pin: "v1", tip: "v2" };
        match Replay::new(&applied, &tip_tree, names, &nothing).step(0) {
            Ok(step) => Some(step),
            Err(ReplayError::NotExact) => None,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Creates a synthetic history in which files and folders are changed, created, deleted and moved.
fn make_up(folder: &Path) -> PathBuf {
    let repo = made_up::repository(folder);
    let mut random = Random(SEED);
    let mut files = made_up::files(&mut random);
    let mut stream = Vec::new();
    for number in 0..COMMITS {
        for _ in 0..1 + random.below(3) {
            made_up::change(&mut files, &mut random, number);
        }
        made_up::add_commit(&mut stream, "main", None, "Change", &files);
    }
    made_up::import(&repo, &stream);
    repo
}
