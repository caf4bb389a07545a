//! Series on a newer upstream that applied some of their patches, compared with git's result.
//!
//! Where git succeeds, we produce the same tree or stop because the position is ambiguous. Where git stops, we stop, or
//! upstream applied the patch: the test knows which patches it applied.

use std::collections::BTreeSet;
use std::path::PathBuf;

use espalier_core::random::Random;
use espalier_core::sys::git::history::{self, Comparisons};
use espalier_core::sys::git::store::{Store, commit_text};
use espalier_core::sys::git::store_tree::StoreTree;
use espalier_patches::upstreamed;
use espalier_series::{AppliedSeries, ObjectId, ObjectKind, Patch, PatchClass, Replay, Step, TreeNames};
use tempfile::TempDir;

use super::support;
use super::support::made_up::{self, Files};

/// Number of synthetic series, and the environment variable that sets another one.
const SERIES: usize = 40;
const MORE: &str = "ESPALIER_SERIES";
const PATCHES: usize = 5;
const UPSTREAM_COMMITS: usize = 6;

/// Number of patches by result.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    upstreamed: usize,
    /// Upstream applied it and changed it: git stops, or applies it a second time.
    taken: usize,
    both_stop: usize,
    only_we_stop: usize,
}

#[test]
fn a_series_goes_where_git_puts_it_or_stops() {
    let series = support::count(MORE, SERIES);
    let mut tally = Tally::default();
    for seed in 1..=series as u64 {
        if let Some(fork) = ForkHistory::new(seed) {
            fork.compare(&mut tally);
        }
    }
    println!("{tally:?}");
    let all = [tally.same, tally.upstreamed, tally.taken, tally.both_stop];
    assert!(all.iter().all(|count| *count > 0), "it tests nothing: {tally:?}");
    let needless = tally.only_we_stop * 1000 / (tally.same + tally.upstreamed);
    assert!(needless <= 50, "we stop where git goes on: {tally:?}");
}

/// A fork and its upstream.
struct ForkHistory {
    seed: u64,
    _folder: TempDir,
    repo: PathBuf,
    store: Store,
    base: String,
    ours: Vec<String>,
    /// The changes of `ours`.
    patches: Vec<Patch>,
    tip: String,
    /// Indices of the fork's commits that upstream applied.
    taken: BTreeSet<usize>,
}

impl ForkHistory {
    /// Returns `None` when one side made no commit.
    fn new(seed: u64) -> Option<ForkHistory> {
        let folder = tempfile::tempdir().unwrap();
        let repo = made_up::repository(folder.path());
        let mut random = Random(seed << 20 | 1);
        let mut files = made_up::files(&mut random);
        let mut stream = Vec::new();
        made_up::add_commit(&mut stream, "main", None, "Begin", &files);
        for number in 0..1 + random.below(PATCHES) {
            made_up::change(&mut files, &mut random, number);
            let from = (number == 0).then_some("refs/heads/main");
            made_up::add_commit(&mut stream, "ours", from, &format!("Change {number}"), &files);
        }
        made_up::import(&repo, &stream);
        let list = made_up::git(&repo, &["rev-list", "--reverse", "ours"]).1;
        let mut commits = list.lines().map(str::to_string);
        let base = commits.next()?;
        let with_patch = |commit: String| made_up::patch_of(&repo, &commit).map(|patch| (commit, patch));
        let (ours, patches) = commits.filter_map(with_patch).unzip();
        let (store, tip, taken) = (Store::open(&repo).unwrap(), base.clone(), BTreeSet::new());
        let mut fork = ForkHistory { seed, _folder: folder, repo, store, base, ours, patches, tip, taken };
        for number in 0..1 + random.below(UPSTREAM_COMMITS) {
            fork.upstream_goes_on(&mut random, 100 + number);
        }
        (fork.tip != fork.base && !fork.ours.is_empty()).then_some(fork)
    }

    /// Adds an upstream commit: a change, an applied patch, or both at once.
    fn upstream_goes_on(&mut self, random: &mut Random, number: usize) {
        let takes = random.below(3) == 0 && !self.ours.is_empty();
        let at = random.below(self.ours.len());
        let merged = if takes { made_up::merged_by_git(&self.repo, &self.ours[at], &self.tip) } else { None };
        let before = self.tree_of(&self.tip);
        let merged = merged.filter(|tree| *tree != before);
        let mut files = self.files(merged.unwrap_or(before));
        let mut subject = format!("Upstream {number}");
        if merged.is_some() {
            self.taken.insert(at);
            subject = made_up::git(&self.repo, &["log", "-1", "--format=%s", &self.ours[at]]).1;
        }
        if merged.is_none() || random.below(3) == 0 {
            made_up::change(&mut files, random, number);
        }
        let mut stream = Vec::new();
        made_up::add_commit(&mut stream, "upstream", Some(&self.tip), subject.trim_end(), &files);
        made_up::import(&self.repo, &stream);
        // As git would read it, without another process.
        let tip = std::fs::read_to_string(self.repo.join("refs/heads/upstream")).unwrap();
        self.tip = tip.trim_end().to_string();
    }

    fn files(&self, tree: ObjectId) -> Files {
        let path = |path: Vec<u8>| String::from_utf8(path).unwrap();
        let files = self.store.files(tree).unwrap().into_iter();
        files.map(|(name, _, id)| (path(name), self.store.read(id).unwrap().to_vec())).collect()
    }

    fn tree_of(&self, commit: &str) -> ObjectId {
        self.store.tree_of(commit.parse().unwrap()).unwrap()
    }

    /// Compares every patch, until one stops.
    fn compare(&self, tally: &mut Tally) {
        let (pin, tip) = (self.tree_of(&self.base), self.tree_of(&self.tip));
        let pin_tree = StoreTree::new(&self.store, pin).unwrap();
        let tip_tree = StoreTree::in_range(&self.store, tip, pin, tip).unwrap();
        let applied = AppliedSeries::new(&self.patches, &pin_tree).unwrap();
        let history = history::since(&self.store, self.tip.parse().unwrap(), pin).unwrap().unwrap();
        let compared = Comparisons::new(&self.store);
        let upstreamed = upstreamed::watch(&self.store, &applied, &history, &compared).unwrap().at_tip();
        let mut replay = Replay::new(&applied, &tip_tree, TreeNames::default(), &upstreamed);
        let mut head = self.tip.clone();
        for at in 0..self.patches.len() {
            let step = replay.step(at).unwrap();
            match self.hold(at, &step, &head, tally) {
                Some(next) => head = next,
                None => break,
            }
        }
    }

    /// Compares one patch with git's result on the commit `head`; returns the next head unless either stops.
    fn hold(&self, at: usize, step: &Step, head: &str, tally: &mut Tally) -> Option<String> {
        let name = format!("seed {}, patch {at}", self.seed);
        let before = self.tree_of(head);
        let is_upstreamed = step.replayed.class() == PatchClass::Upstreamed;
        match made_up::merged_by_git(&self.repo, &self.ours[at], head) {
            None if step.replayed.has_conflict() => tally.both_stop += 1,
            Some(_) if step.replayed.has_conflict() => {
                println!("needless: {name}: {:?}", step.replayed.class());
                tally.only_we_stop += 1;
            }
            Some(tree) if tree == before => {
                assert!(is_upstreamed, "{name}: {:?}", step.replayed);
                tally.upstreamed += 1;
                return Some(head.to_string());
            }
            _ if is_upstreamed => {
                assert!(self.taken.contains(&at), "{name}: upstream did not take it");
                tally.taken += 1;
                return Some(head.to_string());
            }
            None => panic!("{name}: git stops, we do not: {:?}", step.replayed),
            Some(tree) => {
                let ours = made_up::tree_after(&self.store, before, step);
                assert_eq!(ours, tree, "{name}: {:?}", step.replayed);
                tally.same += 1;
                let commit = commit_text(tree, Some(head.parse().unwrap()), "Next\n");
                let commit = self.store.write(ObjectKind::Commit, commit.as_bytes()).unwrap();
                return Some(commit.to_string());
            }
        }
        None
    }
}
