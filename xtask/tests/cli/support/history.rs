//! Made-up upstream histories with merges, renames, reverts and re-applies, and a series for their pin.
//!
//! One file, `src/victim.c`, is touched by planted commits only, so the culprit of its patches is known.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::random::XorShift;
use super::upstream::TAG;
use super::{Project, Source, files, git};

/// Contents by path.
pub type Files = BTreeMap<String, String>;

const VICTIM: &str = "src/victim.c";

/// One commit of the model. Its subject names no other.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Places of its parents.
    pub parents: Vec<usize>,
    /// The whole tree.
    pub files: Files,
    /// Its message.
    pub subject: String,
}

/// A history and what is known of it by construction.
pub struct History {
    /// Every commit, parents first. The pin is `PIN`.
    pub commits: Vec<Commit>,
    /// The tip.
    pub tip: usize,
    /// The commit that breaks the victim's patches.
    pub planted: usize,
    /// The one that takes that back.
    pub reverted: Option<usize>,
    /// The one that does it again.
    pub applied_again: Option<usize>,
    random: XorShift,
    /// The branch that is open beside the main line.
    branch: Option<Branch>,
}

#[derive(Clone, Copy)]
struct Branch {
    from: usize,
    head: usize,
}

/// The place of the pinned commit; before it comes an older one.
pub const PIN: usize = 1;

impl History {
    /// The history number `seed`, with about `steps` commits after the pin.
    pub fn new(seed: u64, steps: usize) -> History {
        let mut random = XorShift::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            let _ = random.fraction();
        }
        let commits = Vec::new();
        let mut history = History {
            commits,
            tip: PIN,
            planted: 0,
            reverted: None,
            applied_again: None,
            random,
            branch: None,
        };
        history.begin();
        history.go_on(steps);
        history
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random.fraction() * limit as f64) as usize
    }

    fn commit(&mut self, parents: Vec<usize>, files: Files, what: &str) -> usize {
        let subject = format!("{:03} {what}", self.commits.len());
        self.commits.push(Commit { parents, files, subject });
        self.commits.len() - 1
    }

    /// A commit from before the pin in which all looks different, the pin, and a branch that left before it.
    fn begin(&mut self) {
        let old: Files =
            base().into_iter().map(|(path, text)| (path, text.replace("value", "number"))).collect();
        self.commit(vec![], old, "old");
        self.commit(vec![0], base(), "pin");
    }

    fn go_on(&mut self, steps: usize) {
        let plant_at = 2 + self.below(steps / 2);
        for step in 0..steps {
            if step == plant_at {
                self.plant();
            } else {
                self.step();
            }
        }
        self.merge();
    }

    /// In every second history it is taken back, in every second of those done again.
    fn plant(&mut self) {
        let head = self.pick_line();
        let mut files = self.commits[head].files.clone();
        files.insert(VICTIM.to_string(), victim("value * 77"));
        self.planted = self.advance(head, files, "PLANTED");
    }

    fn step(&mut self) {
        match self.below(12) {
            0 if self.branch.is_none() => self.open_branch(),
            1 | 2 => self.merge(),
            3 if self.branch.is_none() && self.planted > 0 => self.turn_victim(),
            4 if self.commits.len() % 3 == 0 => self.take_old_branch(),
            _ => self.change(),
        }
    }

    /// Reverts what was planted, or does it again: only when the main line has it all.
    fn turn_victim(&mut self) {
        let mut files = self.commits[self.tip].files.clone();
        if self.reverted.is_none() {
            files.insert(VICTIM.to_string(), victim("value + 1"));
            self.reverted = Some(self.advance(self.tip, files, "revert"));
        } else if self.applied_again.is_none() {
            files.insert(VICTIM.to_string(), victim("value * 77"));
            self.applied_again = Some(self.advance(self.tip, files, "apply again"));
        }
    }

    fn open_branch(&mut self) {
        self.branch = Some(Branch { from: self.tip, head: self.tip });
    }

    fn merge(&mut self) {
        let Some(Branch { from, head }) = self.branch.take() else { return };
        if head == from {
            return;
        }
        let files =
            merged(&self.commits[from].files, &self.commits[self.tip].files, &self.commits[head].files);
        let parents = if self.below(4) == 0 { vec![head, self.tip] } else { vec![self.tip, head] };
        self.tip = self.commit(parents, files, "merge");
    }

    /// A branch that left before the pin: seen alone, every patch looks broken on it.
    fn take_old_branch(&mut self) {
        let mut files = self.commits[0].files.clone();
        let name = format!("docs/side{}.txt", self.commits.len());
        files.insert(name.clone(), "side\n".to_string());
        let side = self.commit(vec![0], files, "old branch");
        let mut files = self.commits[self.tip].files.clone();
        files.insert(name, "side\n".to_string());
        self.tip = self.commit(vec![self.tip, side], files, "merge an old branch");
    }

    fn pick_line(&mut self) -> usize {
        let takes_branch = self.below(2) == 0;
        self.branch.filter(|_| takes_branch).map_or(self.tip, |branch| branch.head)
    }

    fn advance(&mut self, head: usize, files: Files, what: &str) -> usize {
        let made = self.commit(vec![head], files, what);
        match &mut self.branch {
            Some(branch) if branch.head == head && (head != self.tip || made % 2 == 0) => branch.head = made,
            _ => self.tip = made,
        }
        made
    }

    /// Anything but the victim changes.
    fn change(&mut self) {
        let head = self.pick_line();
        let mut files = self.commits[head].files.clone();
        let paths: Vec<String> = files.keys().filter(|path| *path != VICTIM).cloned().collect();
        let path = paths[self.below(paths.len())].clone();
        let what = self.below(11);
        let line = self.below(files[&path].lines().count().max(1));
        let old = base().get(&path).cloned();
        let text = files.get_mut(&path).unwrap();
        let what = match what {
            0 => {
                *text = format!("// first\n{text}");
                "shift"
            }
            1 | 2 => {
                let changed = |(at, text): (usize, &str)| {
                    if at == line { "    changed();\n".to_string() } else { format!("{text}\n") }
                };
                *text = text.lines().enumerate().map(changed).collect();
                "change a line"
            }
            3 if line % 2 == 0 => {
                // The same name elsewhere, and not quite the same text.
                let name = path.replace("src/", "lib/").replace("renamed_", "");
                let alike =
                    base().get(&name.replace("lib/", "src/")).unwrap_or(text).replacen("value", "v", 1);
                files.insert(name, alike);
                "put one of the same name elsewhere"
            }
            3 => {
                let moved = files.remove(&path).unwrap();
                files.insert(path.replace("src/", "src/renamed_"), moved);
                "rename"
            }
            4 => {
                files.remove(&path);
                "delete"
            }
            5 | 6 => {
                let Some(old) = old else { return };
                *text = old;
                "restore"
            }
            7 => {
                let ours = series();
                let take = self.below(ours.len());
                match ours[take].get(&path) {
                    Some(taken) => drop(files.insert(path, taken.clone())),
                    None => drop(files.insert("src/new.c".to_string(), functions(7, 3))),
                }
                "take ours"
            }
            8 => {
                files
                    .insert(if line % 2 == 0 { "src/NEW.c" } else { "SRC/x" }.to_string(), "x\n".to_string());
                "collide"
            }
            9 => {
                for (path, text) in base() {
                    if path != VICTIM {
                        files.insert(path, text);
                    }
                }
                files.retain(|path, _| base().contains_key(path));
                "restore all"
            }
            _ => {
                *text = text.replacen("static int", "static long", 1);
                "change a head"
            }
        };
        if files != self.commits[head].files {
            self.advance(head, files, what);
        }
    }

    /// Whether the pin is behind `at`.
    pub fn has_pin(&self, at: usize) -> bool {
        at == PIN || self.commits[at].parents.iter().any(|parent| self.has_pin(*parent))
    }

    /// A project whose series was made for the pin of this history.
    pub fn project(&self) -> Project {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("upstream");
        git::init(&scratch);
        fast_import(&scratch, &self.stream());
        let project = Project::pinned(&git::tree_of(&scratch, TAG), &[Source::Path("../upstream".into())]);
        git::git(&scratch, &["symbolic-ref", "HEAD", "refs/heads/ours"]);
        git::export_series(&scratch, TAG, &project.path("patches/paged"));
        git::git(&scratch, &["symbolic-ref", "HEAD", "refs/heads/main"]);
        files::copy_folder(&scratch, &project.beside("upstream"));
        project
    }

    fn stream(&self) -> String {
        let mut stream = String::new();
        for (at, commit) in self.commits.iter().enumerate() {
            let branch = if at == self.tip { "main".to_string() } else { format!("b{at}") };
            write_commit(&mut stream, &branch, at, commit);
        }
        let mut parent = PIN;
        for (number, files) in series().into_iter().enumerate() {
            let at = self.commits.len() + number;
            let commit = Commit { parents: vec![parent], files, subject: format!("Patch number {number}") };
            write_commit(&mut stream, "ours", at, &commit);
            parent = at;
        }
        stream + &format!("reset refs/tags/{TAG}\nfrom :{}\n\n", PIN + 1)
    }
}

fn write_commit(stream: &mut String, branch: &str, at: usize, commit: &Commit) {
    let who = format!("Test Person <test@espalier.invalid> {} +0000", 1_577_934_245 + at * 60);
    let subject = &commit.subject;
    write!(
        stream,
        "commit refs/heads/{branch}\nmark :{}\nauthor {who}\ncommitter {who}\ndata {}\n{subject}\n",
        at + 1,
        subject.len()
    )
    .unwrap();
    for (number, parent) in commit.parents.iter().enumerate() {
        writeln!(stream, "{} :{}", if number == 0 { "from" } else { "merge" }, parent + 1).unwrap();
    }
    stream.push_str("deleteall\n");
    for (path, text) in &commit.files {
        write!(stream, "M 644 inline {path}\ndata {}\n{text}\n", text.len()).unwrap();
    }
    stream.push('\n');
}

/// Feeds `stream` to git.
pub fn fast_import(repository: &Path, stream: &str) {
    let mut command = Command::new("git");
    command.args(["fast-import", "--quiet", "--force"]).current_dir(repository).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// What a three-way merge by whole files gives; ours wins a conflict.
fn merged(base: &Files, ours: &Files, theirs: &Files) -> Files {
    let mut files = ours.clone();
    for path in base.keys().chain(theirs.keys()) {
        let is_ours = ours.get(path) != base.get(path);
        match theirs.get(path) {
            _ if is_ours || theirs.get(path) == base.get(path) => {}
            Some(text) => drop(files.insert(path.clone(), text.clone())),
            None => drop(files.remove(path)),
        }
    }
    files
}

fn functions(number: usize, count: usize) -> String {
    let function = |at: usize| {
        let body: String =
            (0..7).map(|line| format!("    value = value * {} + {line};\n", at * 10 + number)).collect();
        format!("static int function_{number}_{at}(int value) {{\n{body}    return value;\n}}\n\n")
    };
    (0..count).map(function).collect()
}

/// Two functions with the same body.
fn twins() -> String {
    let body: String = (0..9).map(|line| format!("    value = value + {line};\n")).collect();
    ["left", "right"]
        .map(|name| format!("static int {name}(int value) {{\n{body}    return value;\n}}\n\n"))
        .concat()
}

fn victim(result: &str) -> String {
    format!(
        "{}static int victim(int value) {{\n    return {result};\n}}\n\n{}",
        functions(8, 2),
        functions(9, 2)
    )
}

fn base() -> Files {
    let mut files: Files = (0..6).map(|at| (format!("src/part{at}.c"), functions(at, 4))).collect();
    files.insert("src/twins.c".to_string(), twins());
    files.insert("README".to_string(), "about\n".to_string());
    files.insert(VICTIM.to_string(), victim("value + 1"));
    files
}

/// The tree after each patch: edits, two of them on top of earlier ones, a new file, a rename with an
/// edit, a file that goes, and a change in one of two twins.
fn series() -> Vec<Files> {
    type Step = fn(&mut Files);
    let steps: [Step; 10] = [
        |files| replace(files, "src/part0.c", "value * 10 + 3", "value / 3"),
        |files| {
            replace(files, "src/part1.c", "value * 1 + 2", "value / 2");
            replace(files, "src/part2.c", "value * 32 + 2", "value / 2");
        },
        |files| replace(files, "src/part0.c", "value / 3", "value / 4"),
        |files| drop(files.insert("src/new.c".to_string(), functions(7, 3))),
        |files| {
            let text = files.remove("src/part3.c").unwrap();
            files.insert("src/moved.c".to_string(), text.replacen("value * 3 + 4", "value", 1));
        },
        |files| {
            replace(files, "src/new.c", "value * 7 + 2", "value / 2");
            replace(files, "src/part4.c", "value * 24 + 2", "value / 2");
        },
        |files| {
            let text = files.get_mut("src/twins.c").unwrap();
            let right = text.find("right").unwrap();
            text.replace_range(right.., &text[right..].replace("value + 4", "value - 4"));
        },
        |files| drop(files.remove("src/part5.c")),
        |files| replace(files, VICTIM, "return value + 1", "return value + 2"),
        |files| replace(files, VICTIM, "return value + 2", "return value + 3"),
    ];
    let mut files = base();
    let after = steps.iter().map(|step| {
        step(&mut files);
        files.clone()
    });
    after.collect()
}

fn replace(files: &mut Files, path: &str, from: &str, to: &str) {
    let text = files.get_mut(path).unwrap();
    assert!(text.contains(from), "{path} has no {from}");
    *text = text.replacen(from, to, 1);
}
