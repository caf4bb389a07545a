//! The content of a folder: names, contents, times.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Returns every file and link below `folder`, relative to it, sorted; an empty list if the folder does not exist.
pub fn list(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    collect(folder, Path::new(""), &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, below: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder.join(below)) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(folder, &path, found);
        } else {
            found.push(path.to_string_lossy().into_owned());
        }
    }
}

/// Returns the modification time of every file below `folder`.
pub fn times(folder: &Path) -> BTreeMap<String, SystemTime> {
    let time = |path: &String| std::fs::symlink_metadata(folder.join(path)).unwrap().modified().unwrap();
    // Every command writes its name into the lock that it holds.
    let is_lock =
        |path: &String| path.ends_with("espalier/run.lock") || path.ends_with("espalier/project.lock");
    list(folder).into_iter().filter(|path| !is_lock(path)).map(|path| (path.clone(), time(&path))).collect()
}

/// Returns the keys that are in only one of the two maps, or whose values differ.
pub fn differences<T: PartialEq>(before: &BTreeMap<String, T>, after: &BTreeMap<String, T>) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<String> =
        names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
    changed.sort();
    changed.dedup();
    changed
}

/// Writes `text`, creating the parent folders.
pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Replaces `from`, which must occur, in the file at `path`.
#[track_caller]
pub fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{} has no {from:?}:\n{text}", path.display());
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Writes an executable shell script. A child writes it: a program that another test starts at that moment would
/// inherit this process's descriptor, and a script that is open for writing cannot be executed ("Text file busy"). It is
/// one process, because some projects consist of ten scripts.
pub fn write_script(path: &Path, commands: &str) {
    const WRITE: &str = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && exec chmod 755 "$0""#;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let status = Command::new("/bin/sh").args(["-c", WRITE]).arg(path).arg(commands).status().unwrap();
    assert!(status.success(), "{} was not written", path.display());
}

/// Copies a folder, preserving modes and links.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy_folder(&entry.path(), &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns the git tree id of the files in `folder`, from their contents, modes and links.
pub fn tree_id(folder: &Path) -> String {
    let scratch = tempfile::tempdir().unwrap();
    super::git::init(scratch.path());
    let work_tree = format!("--work-tree={}", folder.display());
    super::git::git(scratch.path(), &["--git-dir=.git", &work_tree, "add", "--all", "--force"]);
    super::git::git(scratch.path(), &["write-tree"])
}

/// Returns the path of a file of the repository that these tests belong to.
pub fn of_this_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(path)
}

/// Returns the `src` folders of the tool's crates, `xtask`'s own first.
pub fn sources_of_the_tool() -> Vec<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(xtask.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    crates.sort();
    [xtask.to_path_buf()].into_iter().chain(crates).map(|folder| folder.join("src")).collect()
}
