//! The commits that are to become the series, and the checks that reject them before git is asked to write patches.

use espalier_core::config::pins::Variant;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::work_trees::edit_repo::{EditCommit, EditRepo, Marks, Unfinished, short};
use espalier_series::ObjectId;

use crate::commits::SeriesCommits;

/// The content of the edit repository.
pub struct Collected {
    /// The variant's own commits, oldest first.
    pub commits: Vec<EditCommit>,
    /// The last of these commits, or, if there are none, the commit that the variant's own patches start from.
    pub tip: ObjectId,
    /// The commits recorded in the repository's refs: the pin, the start of the variant's own patches, the series on
    /// disk.
    pub marks: Marks,
}

/// Reads the branch; `before` holds the commits that the patches on disk produce now.
pub fn collect(repo: &EditRepo, variant: &Variant, before: &SeriesCommits) -> Result<Collected> {
    refuse_unfinished(repo)?;
    let (Some(marks), Some(tip)) = (repo.marks(), repo.tip()) else { return Err(without_refs(repo)) };
    let marks = if repo.is_rebased_onto(before.tip) { before.marks() } else { marks };
    refuse_outdated(repo, &marks, before)?;
    refuse_uncommitted(repo)?;
    let commits = repo.commits_between(marks.base, tip)?;
    commits.iter().try_for_each(|commit| refuse_merge(repo, commit))?;
    let first = commits.first().map_or(Some(tip), |first| first.parents.first().copied());
    if first != Some(marks.base) {
        return Err(edits_below_own_patches(repo, variant, &marks, before));
    }
    commits.iter().try_for_each(|commit| refuse_empty(repo, commit))?;
    Ok(Collected { commits, tip, marks })
}

/// Returns the start of the command that edits one of the commits, from any working directory.
pub fn rebase_in(repo: &EditRepo) -> String {
    format!("{} rebase -i", repo.git_words())
}

fn conflict(what: String) -> Error {
    Error::new(Kind::Conflict, what)
}

fn variant_of(repo: &EditRepo) -> &str {
    repo.branch().strip_prefix("edit/").unwrap_or(repo.branch())
}

fn refuse_unfinished(repo: &EditRepo) -> Result<()> {
    let folder = repo.folder().display();
    if let Some(Unfinished { name, end }) = repo.unfinished() {
        return Err(conflict(format!("{name} is in progress in `{folder}`"))
            .hint(format!("end it: {} {end}", repo.git_words())));
    }
    match repo.elsewhere() {
        None => Ok(()),
        Some(name) => Err(conflict(format!("`{folder}` has {name} checked out, not {}", repo.branch()))
            .hint(format!("{} switch {}", repo.git_words(), repo.branch()))),
    }
}

fn without_refs(repo: &EditRepo) -> Error {
    let variant = variant_of(repo);
    conflict(format!("`{}` has lost the refs that an export needs", repo.folder().display()))
        .detail(format!(
            "it needs the branch {} and the refs pin, base, series and made below refs/espalier/edit/",
            repo.branch()
        ))
        .hint(format!("save your commits: {} bundle create SOMEWHERE --all", repo.git_words()))
        .hint(format!("recreate it: cargo xtask edit {variant} --discard"))
}

/// The patches on disk must be the ones that the repository was created from: otherwise an export would undo whatever
/// changed them since.
fn refuse_outdated(repo: &EditRepo, marks: &Marks, before: &SeriesCommits) -> Result<()> {
    let folder = repo.folder().display();
    let changed = if marks.pin != before.pin {
        "the pin"
    } else if marks.base != before.base {
        "the series of a parent"
    } else if marks.series != before.tip {
        "the series on disk"
    } else {
        return Ok(());
    };
    let variant = variant_of(repo);
    Err(conflict(format!("{changed} changed since `{folder}` was made; nothing was written"))
        .detail("an export now would undo that change")
        .hint(format!("bring it up to date: cargo xtask edit {variant}    # says how to keep commits")))
}

fn refuse_uncommitted(repo: &EditRepo) -> Result<()> {
    let changed = repo.changed_files()?;
    if changed.is_empty() {
        return Ok(());
    }
    let git = repo.git_words();
    let shown: Vec<&str> = changed.iter().take(10).map(String::as_str).collect();
    let more = changed.len() - shown.len();
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    Err(conflict(format!("`{}` has changes that are in no commit", repo.folder().display()))
        .detail(format!("{}{more}", shown.join("\n")))
        .hint(format!("commit them: {git} add --all && {git} commit"))
        .hint(format!("or put them aside: {git} stash --include-untracked")))
}

fn refuse_merge(repo: &EditRepo, commit: &EditCommit) -> Result<()> {
    if commit.parents.len() < 2 {
        return Ok(());
    }
    Err(conflict(format!("{} is a merge, which a patch cannot express", commit.describe()))
        .hint(format!("linearize the branch: {}    # drops merge commits", rebase_in(repo))))
}

fn refuse_empty(repo: &EditRepo, commit: &EditCommit) -> Result<()> {
    if commit.parent_tree != Some(commit.tree) {
        return Ok(());
    }
    Err(conflict(format!("{} is empty, which a patch cannot express", commit.describe()))
        .hint(format!("drop it: {}    # and take its line out", rebase_in(repo))))
}

/// Returns the error for commits that do not start at the commit before the variant's own patches.
fn edits_below_own_patches(
    repo: &EditRepo,
    variant: &Variant,
    marks: &Marks,
    before: &SeriesCommits,
) -> Error {
    let (git, base) = (repo.git_words(), short(marks.base));
    let below = before.stack.last_of_parents();
    let error = match (below, &variant.extends) {
        (Some(file), Some(parent)) => {
            conflict(format!("the base of {}, {base}, is no longer below {}", variant.name, repo.branch()))
                .detail(format!("up to {}, the patches are those of variants below", file.file))
                .hint(format!("change a patch of {parent} where it is: cargo xtask edit {parent}"))
        }
        _ => conflict(format!("the pinned tree's commit {base} is no longer below {}", repo.branch()))
            .detail("the first patch has to be based on unmodified upstream"),
    };
    error.hint(format!(
        "move your commits back: {git} rebase --onto espalier/edit/{} FIRST~1    # FIRST: your first commit",
        repo.base_name()
    ))
}
