//! Whole commits, replayed on other commits of their history, held against `git merge-tree`.
//!
//! Where git is content, we have its tree, or stop because nobody can be sure of the place. Where git stops, we stop.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use xtask::plan::random::Random;
use xtask::series::{ObjectId, Origin, Patch, PatchClass, Replay, ReplayError, Step, TreeNames, parse};
use xtask::sys::git_tree::{Entry, GitTree};
use xtask::sys::store::Store;
use xtask::sys::store_tree::StoreTree;

use super::support::git::command;

/// How many pairs of a commit and a place for it are tried.
const PAIRS: usize = 1_000;
/// How many commits a made-up history has.
const COMMITS: usize = 60;
const SEED: u64 = 20_261_123;

/// A repository with a real history, to be tried by hand: the first parents of its HEAD.
const REAL: &str = "ESPALIER_MERGE_HISTORY";
/// How many pairs of it.
const REAL_PAIRS: &str = "ESPALIER_MERGE_PAIRS";

#[derive(Debug, Default)]
struct Tally {
    same: usize,
    upstreamed: usize,
    both_stop: usize,
    only_we_stop: usize,
    /// Changes that no patch can say, such as that of a submodule.
    refused: usize,
}

#[test]
fn a_commit_goes_where_git_puts_it_or_stops() {
    let made = tempfile::tempdir().unwrap();
    let (repo, pairs) = match std::env::var_os(REAL) {
        Some(repo) => (PathBuf::from(repo), std::env::var(REAL_PAIRS).unwrap().parse().unwrap()),
        None => (make_up(made.path()), PAIRS),
    };
    let history = History::read(&repo);
    let mut random = Random(SEED);
    let mut tally = Tally::default();
    for _ in 0..pairs {
        let at = 1 + random.below(history.commits.len() - 1);
        let place = random.below(history.commits.len());
        if place + 1 != at {
            history.compare(at, place, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.same > 0 && tally.upstreamed > 0 && tally.both_stop > 0, "it tests nothing: {tally:?}");
    let needless = tally.only_we_stop * 1000 / (tally.same + tally.upstreamed);
    assert!(needless <= 50, "we stop where git goes on: {tally:?}");
}

/// Commits in a line, oldest first, with their trees.
struct History {
    repo: PathBuf,
    store: Store,
    commits: Vec<(String, ObjectId)>,
}

impl History {
    fn read(repo: &Path) -> History {
        let list = git(repo, &["log", "--first-parent", "--reverse", "--format=%H %T"]).1;
        let line = |line: &str| {
            let (commit, tree) = line.split_once(' ').unwrap();
            (commit.to_string(), tree.parse::<ObjectId>().unwrap())
        };
        let commits = list.lines().map(line).collect();
        History { repo: repo.to_path_buf(), store: Store::open(repo).unwrap(), commits }
    }

    /// The change of the commit `at`, made on the commit `place`.
    fn compare(&self, at: usize, place: usize, tally: &mut Tally) {
        let names = format!("the change of {} on {}", self.commits[at].0, self.commits[place].0);
        let Some(patch) = self.patch(at) else {
            tally.refused += 1;
            return;
        };
        let (pin, tip) = (self.commits[at - 1].1, self.commits[place].1);
        let Some(step) = self.replay(&patch, pin, tip) else {
            tally.refused += 1;
            return;
        };
        match (self.by_git(at, place), step.replayed.has_conflict()) {
            (None, true) => tally.both_stop += 1,
            (Some(_), true) => {
                println!("needless: {names}: {:?}", step.replayed.class());
                tally.only_we_stop += 1;
            }
            (None, false) => panic!("{names}: git stops, we do not: {:?}", step.replayed),
            (Some(tree), false) if tree == tip => {
                assert_eq!(step.replayed.class(), PatchClass::Upstreamed, "{names}");
                tally.upstreamed += 1;
            }
            (Some(tree), false) => {
                assert_eq!(self.tree_after(tip, &step), tree, "{names}: {:?}", step.replayed);
                tally.same += 1;
            }
        }
    }

    fn patch(&self, at: usize) -> Option<Patch> {
        let form =
            ["--stdout", "--full-index", "--zero-commit", "--no-signature", "--binary", "--find-renames"];
        let text = git(&self.repo, &[&["format-patch", "-1"], &form[..], &[&self.commits[at].0]].concat()).1;
        parse("0001-a-change.patch", text.as_bytes()).ok()
    }

    /// Nothing when the patch does not say all of the change.
    fn replay(&self, patch: &Patch, pin: ObjectId, tip: ObjectId) -> Option<Step> {
        let pin_tree = StoreTree::new(&self.store, pin).unwrap();
        let tip_tree = StoreTree::on_way(&self.store, tip, pin, tip).unwrap();
        let origin = Origin::new(std::slice::from_ref(patch), &pin_tree).unwrap();
        let nothing = BTreeSet::new();
        let names = TreeNames { pin: "v1", tip: "v2" };
        match Replay::new(&origin, &tip_tree, names, &nothing).step(0) {
            Ok(step) => Some(step),
            Err(ReplayError::NotExact(_)) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    fn tree_after(&self, tip: ObjectId, step: &Step) -> ObjectId {
        let mut tree = GitTree::new(&self.store, tip).unwrap();
        for change in &step.changes {
            let entry = change.new.as_ref().map(|file| {
                if let Some(content) = &file.content {
                    self.store.keep(file.id, std::sync::Arc::clone(content));
                }
                Entry { mode: file.mode.as_git_mode(), id: file.id }
            });
            tree.set(change.path.as_bytes(), entry).unwrap();
        }
        tree.write().unwrap()
    }

    fn by_git(&self, at: usize, place: usize) -> Option<ObjectId> {
        let base = format!("--merge-base={}", self.commits[at - 1].0);
        let sides = [self.commits[place].0.as_str(), self.commits[at].0.as_str()];
        let (clean, said) = git(&self.repo, &[&["merge-tree", "--write-tree", &base], &sides[..]].concat());
        clean.then(|| (said.lines().next().unwrap()).parse::<ObjectId>().unwrap())
    }
}

fn run_git(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(folder)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn git(repo: &Path, arguments: &[&str]) -> (bool, String) {
    let output = run_git(repo, arguments, b"");
    assert!(matches!(output.status.code(), Some(0 | 1)), "git {arguments:?}: {output:?}");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A made-up history in which files are changed, made, deleted and moved, alone and by the folder.
fn make_up(folder: &Path) -> PathBuf {
    let repo = folder.join("made.git");
    let path = repo.to_str().unwrap();
    run_git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", path], b"");
    let mut random = Random(SEED);
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for number in 0..12 {
        files.insert(format!("folder{}/file{number}.c", number % 3), text(&mut random).into_bytes());
    }
    let mut stream = Vec::new();
    for number in 0..COMMITS {
        for _ in 0..1 + random.below(3) {
            change(&mut files, &mut random, number);
        }
        add_commit(&mut stream, number, &files);
    }
    let output = run_git(&repo, &["fast-import", "--quiet"], &stream);
    assert!(output.status.success(), "{output:?}");
    repo
}

fn add_commit(stream: &mut Vec<u8>, number: usize, files: &BTreeMap<String, Vec<u8>>) {
    let who = format!("Test Person <test@espalier.invalid> {} +0000", 1_600_000_000 + number);
    stream.extend(format!("commit refs/heads/main\ncommitter {who}\ndata 6\nChange\ndeleteall\n").bytes());
    for (path, content) in files {
        stream.extend(format!("M 100644 inline {path}\ndata {}\n", content.len()).bytes());
        stream.extend(content);
        stream.push(b'\n');
    }
}

fn text(random: &mut Random) -> String {
    let function = |random: &mut Random| {
        let lines: String = (0..5 + random.below(8)).map(|_| line(random)).collect();
        format!("int function{}(void) {{\n{lines}}}\n\n", random.below(1000))
    };
    (0..3 + random.below(4)).map(|_| function(random)).collect()
}

/// A line of a function; few different ones, so that much can be read in more than one way.
fn line(random: &mut Random) -> String {
    format!("{}word{}();\n", " ".repeat(4 * (1 + random.below(2))), random.below(60))
}

fn change(files: &mut BTreeMap<String, Vec<u8>>, random: &mut Random, number: usize) {
    let paths: Vec<String> = files.keys().cloned().collect();
    let path = paths[random.below(paths.len())].clone();
    let folder = path.split('/').next().unwrap_or_default().to_string();
    match random.below(12) {
        0 => drop(files.insert(format!("{folder}/new{number}.c"), text(random).into_bytes())),
        1 if files.len() > 6 => drop(files.remove(&path)),
        2 => {
            let content = files.remove(&path).unwrap_or_default();
            files.insert(format!("{folder}/moved{number}.c"), content);
        }
        3 if random.below(3) == 0 => {
            let inside: Vec<String> = paths.iter().filter(|p| p.starts_with(&folder)).cloned().collect();
            for old in inside {
                let content = files.remove(&old).unwrap_or_default();
                files.insert(old.replacen(&folder, &format!("folder{number}"), 1), content);
            }
        }
        _ => {
            let old = String::from_utf8_lossy(&files[&path]).into_owned();
            let mut lines: Vec<String> = old.split_inclusive('\n').map(str::to_string).collect();
            let at = random.below(lines.len() + 1);
            let is_inside = |line: &&String| line.starts_with(' ');
            let end = at + lines.iter().skip(at).take(random.below(4)).take_while(is_inside).count();
            let new: Vec<String> = (0..random.below(4)).map(|_| line(random)).collect();
            lines.splice(at..end, new);
            files.insert(path, lines.concat().into_bytes());
        }
    }
}
