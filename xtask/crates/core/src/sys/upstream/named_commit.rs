//! Names resolved by a repository on this machine itself.

use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, lossy};
use git2::Repository;

use super::short_id::{self, Ambiguous};
use crate::config::reference::Reference;
use crate::error::{Error, Result};
use crate::next_command::quoted;
use crate::sys::git::command::git;
use crate::sys::machine::disk;
use crate::sys::machine::watched::way_to_trust;

/// The target of a name in a repository.
pub(in crate::sys) enum NamedTarget {
    /// A tag, with its ref.
    Tag(String),
    /// Anything else, with the commit's id.
    Commit(ObjectId),
}

/// Resolves `reference` in the repository in `folder`.
pub(in crate::sys) fn find_in_folder(folder: &Path, reference: &Reference) -> Result<NamedTarget> {
    let git_dir = git_dir_of(folder);
    let text = reference.to_string();
    let tag = format!("refs/tags/{}", text.strip_prefix("refs/tags/").unwrap_or(&text));
    if reference.as_tag(&tag).is_some() && commit_in(&git_dir, &tag)?.is_some() {
        return Ok(NamedTarget::Tag(tag));
    }
    if let Some(commit) = commit_in(&git_dir, &text)? {
        return Ok(NamedTarget::Commit(commit));
    }
    if let (Some(short), Ok(repo)) = (reference.short_id(), Repository::open(&git_dir))
        && let Err(ambiguous) = short_id::find(&repo, "refs/*", short).map_err(unreadable)?
    {
        return Err(is_ambiguous(&ambiguous));
    }
    Err(Error::environment(format!("it has no tag, branch or commit `{reference}`"))
        .hint(format!("git -C {} log --oneline --all", quoted(&folder.display().to_string()))))
}

/// Returns the git folder of a repository with or without a work tree.
pub(in crate::sys) fn git_dir_of(folder: &Path) -> PathBuf {
    let inside = folder.join(".git");
    if disk::exists(&inside) { inside } else { folder.to_path_buf() }
}

/// Returns an error if `folder` is not a repository: an empty folder, or a part of a clone. Otherwise git would
/// search it for the commit and report that as missing.
pub(in crate::sys) fn refuse_no_repository(folder: &Path) -> Result<()> {
    if is_repository(folder) {
        return Ok(());
    }
    let error = Error::environment(format!("`{}` is not a git repository", folder.display()));
    let around = folder.ancestors().skip(1).find(|around| disk::exists(&around.join(".git")));
    Err(match around {
        Some(around) => error.detail(format!("it is a folder in the repository `{}`", around.display())),
        None => error,
    })
}

/// Judges by its files: whether git accepts to read it is checked separately, with its own error.
fn is_repository(folder: &Path) -> bool {
    let git_dir = git_dir_of(folder);
    // In a linked work tree, `.git` is a file.
    git_dir.is_file() || disk::exists(&git_dir.join("HEAD")) && git_dir.join("objects").is_dir()
}

/// Returns the commit that git resolves `name` to there.
pub(in crate::sys) fn commit_in(git_dir: &Path, name: &str) -> Result<Option<ObjectId>> {
    let run = git(git_dir).args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let found = run.arg(format!("{name}^{{commit}}")).finish()?;
    if let Some(way_out) = way_to_trust(found.stderr.lines()) {
        let what = format!("`{}` belongs to another user, and git refuses to read it", git_dir.display());
        return Err(Error::environment(what).hint(way_out));
    }
    let stdout = lossy(&found.stdout);
    if is_sha256(stdout.trim()) {
        return Err(has_sha256_ids(&git_dir.display().to_string()));
    }
    Ok(stdout.trim().parse().ok().filter(|_| found.status.success()))
}

/// Whether `id` is one of a repository with `extensions.objectFormat = sha256`.
pub(in crate::sys) fn is_sha256(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the error for the repository `from`, whose ids do not fit into a pin, a patch or a store of a project.
pub(in crate::sys) fn has_sha256_ids(from: &str) -> Error {
    let copy = "upstream-sha1.git";
    let (clone, source) = match Path::new(from).is_dir() {
        true => (String::new(), quoted(from)),
        false => {
            (format!("git clone --quiet --bare {} sha256.git && ", quoted(from)), "sha256.git".to_string())
        }
    };
    Error::usage(format!("`{from}` has SHA-256 object ids (extensions.objectFormat = sha256)"))
        .detail("pins, patches and the store have SHA-1 ids")
        .hint(format!(
            "make a SHA-1 copy, and name that: {clone}git init --quiet --bare --object-format=sha1 {copy} && git -C \
             {source} fast-export --all --signed-tags=strip | git --git-dir={copy} fast-import --quiet"
        ))
}

/// Returns the error for an ambiguous abbreviated id.
pub(super) fn is_ambiguous(ambiguous: &Ambiguous) -> Error {
    let what =
        format!("`{}` is ambiguous: {} commits start with it", ambiguous.short, ambiguous.candidates.len());
    Error::usage(what).detail(ambiguous.candidates.join("\n")).hint("write more digits")
}

pub(in crate::sys) fn unreadable(error: git2::Error) -> Error {
    Error::environment("the fetched objects cannot be read").detail(error.message().to_string())
}
