//! Work in an edit repository that is in no patch, and the commands that keep it.

use espalier_core::config::pins::Variant;
use espalier_core::context::Context;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::{git_in, quoted};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::work_trees::edit_hidden;
use espalier_core::sys::work_trees::edit_repo::{EditRepo, Unfinished, short};

use crate::commits::SeriesCommits;

/// Work that would be lost with the repository; empty if there is none.
#[derive(Debug, Default)]
pub struct Work {
    lines: Vec<String>,
    /// Hints: for each kind of work the command that keeps it.
    keep: Vec<String>,
    /// Whether the branch has commits that `export` can write.
    has_commits: bool,
}

impl Work {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn add(&mut self, lines: Vec<String>, keep: &str) {
        if !lines.is_empty() && !self.keep.iter().any(|known| known == keep) {
            self.keep.push(keep.to_string());
        }
        self.lines.extend(lines);
    }

    /// Returns the error that names the work. `on_disk` is the series on disk, if it has changed since the repository
    /// was created: it is written beside the user's commits, so that they can be rebased onto it.
    pub fn refusal(
        self,
        context: &Context,
        variant: &Variant,
        (store, repo): (&Store, &EditRepo),
        on_disk: Option<&SeriesCommits>,
    ) -> Error {
        let name = &variant.name;
        let ways = match (self.has_commits, on_disk) {
            (false, _) => Vec::new(),
            (true, None) => vec![format!("keep them: cargo xtask export {name}")],
            (true, Some(series)) => match rebase_onto(store, repo, series) {
                Ok(rebase) => vec![rebase, format!("then: cargo xtask export {name}")],
                Err(error) => return error,
            },
        };
        let folder = context.layout.show(repo.folder());
        let what = format!("`{folder}` has work that is in no patch; nothing was changed");
        let error = Error::new(Kind::Conflict, what).detail(self.lines.join("\n"));
        let error = match on_disk {
            Some(_) => error.detail("the patches on disk have changed since it was made"),
            None => error,
        };
        let error = error.hint(format!("look at it: {} status", repo.git_words()));
        let error = self.keep.into_iter().chain(ways).fold(error, Error::hint);
        let before = context.layout.show(&context.layout.edits_before());
        error.hint(format!(
            "discard it: cargo xtask edit {name} --discard    # it moves to {before}/, until `gc` removes it"
        ))
    }
}

/// Writes the series on disk to the repository, and returns the hint that rebases the user's commits onto it.
fn rebase_onto(store: &Store, repo: &EditRepo, series: &SeriesCommits) -> Result<String> {
    let made = repo.marks().map(|marks| marks.made);
    let base = repo.base_of_own();
    // Commits that replace those of patches, as after `git commit --amend`, may change nothing but a message: none of
    // them may vanish.
    let is_rewritten = base.is_some_and(|base| !repo.has(base));
    let keep = if is_rewritten { " --reapply-cherry-picks --empty=keep" } else { "" };
    let base = base.filter(|base| Some(*base) != made);
    let base = base.map_or_else(|| "espalier/edit/made".to_string(), short);
    repo.offer_series(store, series.tip)?;
    let (git, branch) = (repo.git_words(), repo.branch());
    Ok(format!(
        "rebase them onto these patches: {git} rebase{keep} --onto espalier/edit/next {base} {branch}"
    ))
}

/// Returns the work that git reports.
pub fn of(repo: &EditRepo) -> Result<Work> {
    let (git, branch) = (repo.git_words(), repo.branch());
    let save = format!("save its commits: {git} bundle create SOMEWHERE HEAD --all    # {ABSOLUTE}");
    let mut work = Work::default();
    if let Some(Unfinished { name, end }) = repo.unfinished() {
        work.add(vec![format!("{name} is in progress")], &format!("end it: {git} {end}"));
    } else if let Some(name) = repo.elsewhere() {
        work.add(vec![format!("{name} is checked out, not {branch}")], &save);
    }
    let changed = shown("changed", &repo.changed_files()?);
    work.add(changed, &format!("commit them: {git} add --all && {git} commit"));
    let commits = || vec![format!("{branch} has commits that are in no patch")];
    match repo.marks().map(|marks| marks.made) {
        None => work.add(commits(), &save),
        made if repo.tip() == made => {}
        Some(_) => {
            work.has_commits = true;
            work.lines.extend(commits());
        }
    }
    let (stash, refs): (Vec<String>, Vec<String>) =
        repo.own_refs()?.into_iter().partition(|name| name == "stash");
    work.add(shown("kept", &stash), &format!("apply it: {git} stash pop    # then commit it"));
    work.add(shown("kept", &refs), &save);
    Ok(work)
}

/// Returns the work that git does not report, because the user has excluded it.
pub fn hidden(repo: &EditRepo) -> Result<Work> {
    let lines = [
        shown("hidden from git", &edit_hidden::flagged_files(repo)?),
        shown("ignored", &edit_hidden::untracked_files(repo)?),
        shown("linked work tree", &edit_hidden::linked_work_trees(repo.folder())),
    ];
    let list =
        format!("list it: {} ls-files -v --others --exclude-per-directory=.gitignore", repo.git_words());
    Ok(Work { lines: lines.concat(), keep: vec![list], ..Work::default() })
}

/// Refuses to replace a repository that other work trees belong to: they would be left without one.
pub fn refuse_linked(context: &Context, variant: &Variant) -> Result<()> {
    let path = context.layout.edit(&variant.name);
    let linked = edit_hidden::linked_work_trees(&path);
    if linked.is_empty() {
        return Ok(());
    }
    let folder = context.layout.show(&path);
    let what = format!("`{folder}` is the repository of other work trees too; nothing was changed");
    let error = Error::new(Kind::Conflict, what).detail(linked.join("\n"));
    let remove = |linked: &String| {
        let git = git_in(&folder);
        let branch = format!("edit/{}", variant.name);
        format!("once its commits are on {branch}: {git} worktree remove {}", quoted(linked))
    };
    Err(linked.iter().map(remove).fold(error, Error::hint))
}

/// git takes a relative path from its own folder.
const ABSOLUTE: &str = "SOMEWHERE: an absolute path";

const SHOWN: usize = 10;

fn shown(label: &str, names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{label}: {name}")).collect();
    if names.len() > SHOWN {
        lines.push(format!("{label}: {} more", names.len() - SHOWN));
    }
    lines
}
