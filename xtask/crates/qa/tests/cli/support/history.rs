//! Synthetic upstream histories with merges, renames, reverts and re-applies, and a series for their pin.
//!
//! One file, `src/victim.c`, is changed by planted commits only, so the culprit of its patches is known.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::history_files::{Files, VICTIM, base, functions, series, victim};
use super::random::XorShift;
use super::upstream::TAG;
use super::{Project, Source, files, git};

/// One commit of the model. Subjects do not mention other commits.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Indices of its parents.
    pub parents: Vec<usize>,
    /// The complete tree.
    pub files: Files,
    /// Its message.
    pub subject: String,
}

/// A history, with the facts that are known by construction.
pub struct History {
    /// Every commit, parents first. The pin is `PIN`.
    pub commits: Vec<Commit>,
    /// The tip.
    pub tip: usize,
    /// The commit that breaks the victim's patches.
    pub planted: usize,
    /// The commit that reverts it.
    pub reverted: Option<usize>,
    /// The commit that applies it again.
    pub applied_again: Option<usize>,
    random: XorShift,
    /// The open branch beside the main line.
    branch: Option<Branch>,
}

#[derive(Clone, Copy)]
struct Branch {
    from: usize,
    head: usize,
}

/// Index of the pinned commit; an older commit precedes it.
pub const PIN: usize = 1;

impl History {
    /// Creates history number `seed`, with about `steps` commits after the pin.
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

    /// Creates a commit before the pin with a different tree, the pin, and a branch that forks before the pin.
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

    /// Changes the victim; about half of the histories revert that, and about half of those apply it again.
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
            4 if self.commits.len().is_multiple_of(3) => self.take_old_branch(),
            _ => self.change(),
        }
    }

    /// Reverts the planted change, or applies it again; called only when no branch is open.
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

    /// Merges a branch that forked before the pin: on the branch alone, every patch looks broken.
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
            Some(branch) if branch.head == head && (head != self.tip || made.is_multiple_of(2)) => {
                branch.head = made
            }
            _ => self.tip = made,
        }
        made
    }

    /// Makes a commit that changes anything except the victim.
    fn change(&mut self) {
        let head = self.pick_line();
        let mut files = self.commits[head].files.clone();
        let paths: Vec<String> = files.keys().filter(|path| *path != VICTIM).cloned().collect();
        let path = paths[self.below(paths.len())].clone();
        let line = self.below(files[&path].lines().count().max(1));
        let what = match self.below(12) {
            kind @ 0..6 => change_text(kind, line, &path, files.get_mut(&path).unwrap()),
            kind => change_paths(kind, line, &path, &mut files),
        };
        if files != self.commits[head].files {
            self.advance(head, files, what);
        }
    }

    /// Whether the pin is `at` or an ancestor of it.
    pub fn has_pin(&self, at: usize) -> bool {
        at == PIN || self.commits[at].parents.iter().any(|parent| self.has_pin(*parent))
    }

    /// Creates a project whose series was made for the pin of this history.
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

/// Changes the text of one file; returns a description.
fn change_text(kind: usize, line: usize, path: &str, text: &mut String) -> &'static str {
    let changed = |(at, text): (usize, &str)| match at == line {
        true => "    changed();\n".to_string(),
        false => format!("{text}\n"),
    };
    let (what, new) = match kind {
        0 => ("shift", format!("// first\n{text}")),
        1 | 2 => ("change a line", text.lines().enumerate().map(changed).collect()),
        3 => ("change a head", text.replacen("static int", "static long", 1)),
        _ => ("restore", base().get(path).unwrap_or(text).clone()),
    };
    *text = new;
    what
}

/// Adds, deletes or moves files; returns a description.
fn change_paths(kind: usize, line: usize, path: &str, files: &mut Files) -> &'static str {
    match kind {
        6 => {
            let moved = files.remove(path).unwrap();
            files.insert(path.replace("src/", "src/renamed_"), moved);
            "rename"
        }
        7 => {
            // The same file name in another folder, with slightly different content.
            let name = path.replace("src/", "lib/").replace("renamed_", "");
            let alike =
                base().get(&name.replace("lib/", "src/")).unwrap_or(&files[path]).replacen("value", "v", 1);
            files.insert(name, alike);
            "put one of the same name elsewhere"
        }
        8 => {
            files.remove(path);
            "delete"
        }
        9 => {
            let ours = series();
            match ours[line % ours.len()].get(path) {
                Some(taken) => files.insert(path.to_string(), taken.clone()),
                None => files.insert("src/new.c".to_string(), functions(7, 3)),
            };
            "take ours"
        }
        10 => {
            files.insert(["src/NEW.c", "SRC/x"][line % 2].to_string(), "x\n".to_string());
            "collide"
        }
        _ => {
            let victim = files[VICTIM].clone();
            *files = base();
            files.insert(VICTIM.to_string(), victim);
            "restore all"
        }
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

/// Returns the three-way merge by whole files; ours wins a conflict.
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
