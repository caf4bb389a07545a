//! A patch with conflicts as a work tree that every git tool can use, and reading the result back.

use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, ObjectKind};
use espalier_series::{RepoPath, new_marker, printable};
use git2::{Index, IndexEntry, IndexTime, Repository, Status, StatusOptions};

use super::rebase_repo::RebaseRepo;
use crate::error::{Error, Kind, Result};
use crate::next_command::{git_in, quoted, quoted_bytes};
use crate::sys::git::command::git;
use crate::sys::git::ids::{object_id, oid};
use crate::sys::machine::disk;
use crate::sys::machine::native_path::to_path;
use crate::sys::machine::owned;

/// One path with a conflict to resolve.
pub struct ConflictedFile {
    /// The path.
    pub path: RepoPath,
    /// Base, ours and theirs: mode, blob id and content.
    pub stages: [Option<(u32, ObjectId, Vec<u8>)>; 3],
    /// Content of the file in the work tree; `None` leaves the file as it is.
    pub text: Option<Vec<u8>>,
    /// Whether the file is executable there.
    pub is_executable: bool,
}

/// Checks out the commit `head`, stages `tree`, the cleanly replayed part of a patch, on top (it is on disk), and
/// puts `files` in conflict. The previous content of the work tree is overwritten.
pub fn prepare(repo: &RebaseRepo, head: ObjectId, tree: ObjectId, files: &[ConflictedFile]) -> Result<()> {
    // Left by a run that was killed in this function; we hold the run lock.
    owned::sweep(&repo.git_dir(), |name| name.ends_with(".lock"))?;
    in_work(repo, &["checkout", "--quiet", "--force", "--detach", &head.to_string()])?;
    in_work(repo, &["read-tree", "--reset", "-u", &tree.to_string()])?;
    for file in files {
        if let Some(text) = file.text.as_ref().filter(|_| stays_inside(repo.work(), &file.path)) {
            let path = repo.work().join(native(&file.path));
            path.parent().map_or(Ok(()), owned::sweep_temporary)?;
            disk::write_atomically(&path, text)?;
            if file.is_executable {
                disk::make_executable(&path)?;
            }
        }
    }
    let opened = Repository::open(repo.work()).map_err(broken)?;
    let mut index = opened.index().map_err(broken)?;
    for file in files {
        add_conflict(repo, &mut index, file)?;
    }
    // The last step, and atomic: an unmerged path is ready to be resolved.
    index.write().map_err(broken)
}

/// Whether no folder of `path` is a link: upstream's links may lead anywhere.
fn stays_inside(work: &Path, path: &RepoPath) -> bool {
    let mut folders = path.folders().map(|folder| work.join(to_path(folder)));
    folders.all(|folder| !folder.is_symlink())
}

/// Whether the work tree already shows `files` in conflict on top of `head`.
pub fn is_shown(repo: &RebaseRepo, head: ObjectId, files: &[ConflictedFile]) -> bool {
    let Ok(opened) = Repository::open(repo.work()) else { return false };
    let at_head = opened.head().is_ok_and(|found| found.target() == Some(oid(head)));
    let Ok(index) = opened.index() else { return false };
    let unmerged = unmerged_paths(&index).unwrap_or_default();
    at_head && files.iter().all(|file| unmerged.iter().any(|path| path == file.path.as_bytes()))
}

/// Whether the work tree already shows a patch to edit on top of `head`: something is staged there.
pub fn is_staged(repo: &RebaseRepo, head: ObjectId) -> bool {
    let Ok(opened) = Repository::open(repo.work()) else { return false };
    let at_head = opened.head().is_ok_and(|found| found.target() == Some(oid(head)));
    let staged = opened.index().and_then(|mut index| index.write_tree());
    let of_head = opened.find_commit(oid(head)).map(|commit| commit.tree_id());
    // Paths in conflict, which have no tree, are the user's work too.
    at_head && (staged.is_err() || staged.ok() != of_head.ok())
}

/// Copies the user's edits of `files` to the folder `to`; returns the paths of the copies.
pub fn keep_edits(repo: &RebaseRepo, files: &[ConflictedFile], to: &Path) -> Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    for file in files {
        let path = native(&file.path);
        let on_disk = repo.work().join(&path);
        if !on_disk.is_file() {
            continue;
        }
        let found = disk::read(&on_disk)?;
        let mut known = file.stages.iter().flatten().map(|(_, _, content)| content).chain(&file.text);
        if !known.any(|content| *content == found) {
            disk::write_atomically(&to.join(&path), &found)?;
            kept.push(to.join(&path));
        }
    }
    Ok(kept)
}

/// Runs git in the work tree.
pub(super) fn in_work(repo: &RebaseRepo, arguments: &[&str]) -> Result<()> {
    let run = git(&repo.git_dir()).arg(format!("--work-tree={}", repo.work().display()));
    run.args(arguments).current_folder(repo.work()).success().map(drop)
}

fn add_conflict(repo: &RebaseRepo, index: &mut Index, file: &ConflictedFile) -> Result<()> {
    if file.stages.iter().any(Option::is_some) {
        index.remove_path(&native(&file.path)).map_err(broken)?;
    }
    for (stage, side) in (1u16..).zip(&file.stages) {
        let Some((mode, id, content)) = side else { continue };
        if mode & 0o170_000 != SUBMODULE {
            repo.store.write(ObjectKind::Blob, content)?;
        }
        let zero = IndexTime::new(0, 0);
        let entry = IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode: *mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: oid(*id),
            flags: stage << 12,
            flags_extended: 0,
            path: file.path.as_bytes().to_vec(),
        };
        index.add(&entry).map_err(broken)?;
    }
    Ok(())
}

/// Mode of a submodule: a commit of another repository, without a blob here.
const SUBMODULE: u32 = 0o160_000;

/// The user's resolution of a conflict.
pub struct Resolved {
    /// The tree of the index.
    pub tree: ObjectId,
    /// Untracked files, which do not become part of the patch.
    pub untracked: Vec<String>,
}

/// Returns the tree that the user has staged. `conflicts` are the paths in conflict, and the texts that were merged,
/// which can have lines that look like conflict markers. `may_change` decides which files belong to the resolution.
///
/// # Errors
///
/// While one of `conflicts` has a conflict marker, a path is unmerged, or a change is not staged.
pub fn read_resolved(
    repo: &RebaseRepo,
    (conflicts, versions): (&[RepoPath], &[&[u8]]),
    may_change: impl Fn(&[u8]) -> bool,
    shown_as: &str,
) -> Result<Resolved> {
    for path in conflicts {
        refuse_markers(repo, (path, versions), shown_as)?;
    }
    let opened = Repository::open(repo.work()).map_err(broken)?;
    let mut index = opened.index().map_err(broken)?;
    index.read(true).map_err(broken)?;
    refuse_unmerged(&index, shown_as)?;
    let mut options = StatusOptions::new();
    options.include_untracked(true).include_ignored(false).recurse_untracked_dirs(false);
    let mut untracked = Vec::new();
    for entry in opened.statuses(Some(&mut options)).map_err(broken)?.iter() {
        let path = printable(entry.path_bytes());
        if entry.status().contains(Status::WT_NEW) {
            untracked.push(path);
        } else if entry.status().intersects(NOT_STAGED) {
            return Err(not_staged(shown_as, entry.path_bytes(), may_change(entry.path_bytes())));
        }
    }
    let tree = index.write_tree().map_err(broken)?;
    Ok(Resolved { tree: object_id(tree), untracked })
}

/// Returns the error for a change that is not staged. What may not change would be refused when it is staged.
fn not_staged(shown_as: &str, path: &[u8], may_change: bool) -> Error {
    let error = waits(format!("`{shown_as}/{}` is modified but not staged", printable(path)));
    let add = add_command(shown_as, path);
    if may_change {
        return error.hint(add).hint("cargo xtask rebase --continue");
    }
    let name = quoted_bytes(path);
    error
        .hint(format!("undo it: {} restore -- {name}", git_in(shown_as)))
        .hint("then: cargo xtask rebase --continue")
        .hint(format!(
            "or keep it in this patch: {add} && cargo xtask rebase --continue --allow-edits {name}"
        ))
}

const NOT_STAGED: Status = Status::WT_MODIFIED.union(Status::WT_DELETED).union(Status::WT_TYPECHANGE);

fn refuse_markers(repo: &RebaseRepo, (path, versions): (&RepoPath, &[&[u8]]), shown_as: &str) -> Result<()> {
    let on_disk = repo.work().join(native(path));
    if !on_disk.is_file() {
        return Ok(());
    }
    match new_marker(path.as_bytes(), &disk::read(&on_disk)?, versions) {
        None => Ok(()),
        Some(line) => Err(waits(format!("`{shown_as}/{path}` has a conflict marker in line {line}"))
            .hint(format!("edit it, then: {}", add_command(shown_as, path.as_bytes())))
            .hint("cargo xtask rebase --continue")),
    }
}

fn native(path: &RepoPath) -> PathBuf {
    to_path(path.as_bytes())
}

/// Returns the command that stages the file; if its name is not UTF-8 and cannot be typed, the command that stages all
/// tracked files.
fn add_command(shown_as: &str, path: &[u8]) -> String {
    let name = std::str::from_utf8(path).map_or_else(|_| "--update".to_string(), quoted);
    format!("git -C {} add {name}", quoted(shown_as))
}

fn unmerged_paths(index: &Index) -> Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for conflict in index.conflicts().map_err(broken)?.flatten() {
        let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
        paths.extend(entry.map(|entry| entry.path));
    }
    Ok(paths)
}

fn refuse_unmerged(index: &Index, shown_as: &str) -> Result<()> {
    let paths = unmerged_paths(index)?;
    let Some(first) = paths.first() else { return Ok(()) };
    let error = waits("these files have unresolved conflicts".to_string())
        .hint(format!("{}    # or `git rm`, to delete it", add_command(shown_as, first)))
        .hint("cargo xtask rebase --continue");
    Err(paths.iter().fold(error, |error, path| error.detail(format!("{shown_as}/{}", printable(path)))))
}

fn waits(what: String) -> Error {
    Error::new(Kind::Conflict, what)
}

fn broken(error: git2::Error) -> Error {
    Error::environment("the work tree of the rebase cannot be used")
        .detail(error.message().to_string())
        .hint("cargo xtask rebase --abort    # nothing in your project has changed")
}
