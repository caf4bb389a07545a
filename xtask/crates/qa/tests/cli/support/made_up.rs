//! Synthetic repositories: files and folders that are changed, created, deleted and moved.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;

use espalier_core::random::Random;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::git::tree::{Entry, GitTree};
use espalier_series::{ObjectId, Patch, Step, parse};

use super::git::command;

/// The files of a tree, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Creates an empty bare repository.
pub fn repository(folder: &Path) -> PathBuf {
    let repo = folder.join("made.git");
    let path = repo.to_str().unwrap();
    run_git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", path], b"");
    repo
}

/// Returns the initial files.
pub fn files(random: &mut Random) -> Files {
    let path = |number: usize| format!("folder{}/file{number}.c", number % 3);
    (0..12).map(|number| (path(number), text(random).into_bytes())).collect()
}

/// Adds a commit to `branch`, whose tree has `files`; its parent is `from`, or the branch's last commit.
pub fn add_commit(stream: &mut Vec<u8>, branch: &str, from: Option<&str>, subject: &str, files: &Files) {
    let who = "Test Person <test@espalier.invalid> 1600000000 +0000";
    let from = from.map(|from| format!("from {from}\n")).unwrap_or_default();
    let size = subject.len();
    stream.extend(
        format!("commit refs/heads/{branch}\ncommitter {who}\ndata {size}\n{subject}\n{from}deleteall\n")
            .bytes(),
    );
    for (path, content) in files {
        stream.extend(format!("M 100644 inline {path}\ndata {}\n", content.len()).bytes());
        stream.extend(content);
        stream.push(b'\n');
    }
}

/// Imports the commits of `stream`.
pub fn import(repo: &Path, stream: &[u8]) {
    let output = run_git(repo, &["fast-import", "--quiet", "--force"], stream);
    assert!(output.status.success(), "{output:?}");
}

/// Runs git; returns true on success or false on a conflict (exit code 1), and its output.
pub fn git(repo: &Path, arguments: &[&str]) -> (bool, String) {
    let output = run_git(repo, arguments, b"");
    assert!(matches!(output.status.code(), Some(0 | 1)), "git {arguments:?}: {output:?}");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
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

/// Returns git's tree for the change of `commit` applied to `place`; `None` on a conflict.
pub fn merged_by_git(repo: &Path, commit: &str, place: &str) -> Option<ObjectId> {
    let base = format!("--merge-base={commit}^");
    let (clean, output) = git(repo, &["merge-tree", "--write-tree", &base, place, commit]);
    clean.then(|| (output.lines().next().unwrap()).parse::<ObjectId>().unwrap())
}

/// Returns the change of `commit`; `None` if a patch cannot represent it.
pub fn patch_of(repo: &Path, commit: &str) -> Option<Patch> {
    let form = ["--stdout", "--full-index", "--zero-commit", "--no-signature", "--binary", "--find-renames"];
    let text = git(repo, &[&["format-patch", "-1"], &form[..], &[commit]].concat()).1;
    parse("0001-a-change.patch", text.as_bytes()).ok()
}

/// Returns the tree `tip` with the changes of `step`.
pub fn tree_after(store: &Store, tip: ObjectId, step: &Step) -> ObjectId {
    let mut tree = GitTree::new(store, tip).unwrap();
    for change in &step.changes {
        let entry = change.new.as_ref().map(|file| {
            if let Some(content) = &file.content {
                store.keep(file.id, Arc::clone(content));
            }
            Entry { mode: file.mode.as_git_mode(), id: file.id }
        });
        tree.set(change.path.as_bytes(), entry).unwrap();
    }
    tree.write().unwrap()
}

fn text(random: &mut Random) -> String {
    let function = |random: &mut Random| {
        let lines: String = (0..5 + random.below(8)).map(|_| line(random)).collect();
        format!("int function{}(void) {{\n{lines}}}\n\n", random.below(1000))
    };
    (0..3 + random.below(4)).map(|_| function(random)).collect()
}

/// Returns a line of a function; there are few distinct ones, so that many hunks fit in more than one place.
fn line(random: &mut Random) -> String {
    format!("{}word{}();\n", " ".repeat(4 * (1 + random.below(2))), random.below(60))
}

/// Makes a change; `number` makes the names of new files unique.
pub fn change(files: &mut Files, random: &mut Random, number: usize) {
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
