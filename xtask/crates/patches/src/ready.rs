//! Preparing the edit repository for work, without losing work that is there.

use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Kind, Result};
use espalier_core::next_command::quoted;
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::edit_make::{self, EditPlace};
use espalier_core::sys::work_trees::edit_overlay;
use espalier_core::sys::work_trees::edit_repo::{EditRepo, Marks};

use super::commits::{SeriesCommits, make_commits};

/// Handling of work that is in the repository and in no patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Stop the command.
    Refuse,
    /// Keep it, and use the repository as it is.
    Keep,
    /// Move it away.
    Discard,
}

/// An edit repository that is ready for use.
pub struct Ready {
    /// The repository.
    pub repo: EditRepo,
    /// The series on disk, as commits.
    pub series: SeriesCommits,
    /// Its boundaries.
    pub marks: Marks,
    /// Whether it was created by this run.
    pub made: bool,
}

/// Opens the edit repository of `variant`, or creates it if there is none or the series on disk has changed since.
/// The caller holds the run lock.
pub fn ready(context: &Context, store: &Store, pins: &Pins, variant: &Variant, when: When) -> Result<Ready> {
    let folder = context.layout.edit(&variant.name);
    let there = if when == When::Discard { None } else { EditRepo::open(&folder, &variant.name)? };
    let marks = there.as_ref().and_then(EditRepo::marks);
    let work = there.as_ref().map(work_of).transpose()?.unwrap_or_default();
    if !work.is_empty() && (when == When::Refuse || marks.is_none()) {
        return Err(refusal(context, variant, &work));
    }
    let series = make_commits(context, store, pins, variant)?;
    if let (Some(repo), Some(marks)) = (there, marks)
        && (!work.is_empty() || is_current(&marks, &series))
    {
        link_overlay(context, &repo, &series)?;
        return Ok(Ready { repo, series, marks, made: false });
    }
    let marks = Marks { pin: series.pin, border: series.border, series: series.tip, made: series.tip };
    let before = context.layout.edit_before(&variant.name);
    let place = EditPlace { variant: &variant.name, folder, before, scratch: context.layout.scratch() };
    context.ui.status("Making", context.layout.show(&place.folder));
    let is_there = disk::exists(&place.folder);
    let repo = edit_make::make(store, &place, &marks)?;
    link_overlay(context, &repo, &series)?;
    if is_there {
        context.ui.status("Keeping", format!("{}: what was there", context.layout.show(&place.before)));
    }
    Ok(Ready { repo, series, marks, made: true })
}

/// Links the overlay: without it, a build there with kernels would lack what the patches call.
fn link_overlay(context: &Context, repo: &EditRepo, series: &SeriesCommits) -> Result<()> {
    let others = edit_overlay::link(repo, context.layout.root(), &series.stack.overlays)?;
    for path in others {
        let from = series.stack.overlays.iter().find(|file| file.path == path).map(|file| file.from.as_str());
        context.ui.warn(format!(
            "`{path}` in the edit repository is not `{}`, which brings it; export takes no overlay file from there",
            from.unwrap_or_default()
        ));
    }
    Ok(())
}

/// Whether the repository was created from the current series on disk.
fn is_current(marks: &Marks, series: &SeriesCommits) -> bool {
    marks.series == series.tip && marks.border == series.border && marks.pin == series.pin
}

/// Describes the work in the repository that is in no patch; empty if nothing would be lost.
pub fn work_of(repo: &EditRepo) -> Result<Vec<String>> {
    let mut work = Vec::new();
    if let Some(name) = repo.unfinished() {
        work.push(format!("{name} is in progress"));
    } else if let Some(name) = repo.elsewhere() {
        work.push(format!("{name} is checked out, not {}", repo.branch()));
    }
    let made = repo.marks().map(|marks| marks.made);
    if made.is_none() || repo.tip() != made {
        work.push(format!("{} has commits that are in no patch", repo.branch()));
    }
    work.extend(shown("changed", &repo.changed_files()?));
    work.extend(shown("kept", &repo.own_refs()?));
    Ok(work)
}

const SHOWN: usize = 10;

fn shown(label: &str, names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{label}: {name}")).collect();
    if names.len() > SHOWN {
        lines.push(format!("{label}: {} more", names.len() - SHOWN));
    }
    lines
}

fn refusal(context: &Context, variant: &Variant, work: &[String]) -> Error {
    let name = &variant.name;
    let folder = context.layout.show(&context.layout.edit(name));
    Error::new(Kind::Conflict, format!("`{folder}` has work that is in no patch; nothing was changed"))
        .detail(work.join("\n"))
        .hint(format!("continue it: cd {}", quoted(&folder)))
        .hint(format!("keep it: cargo xtask export {name}"))
        .hint(format!("discard it: cargo xtask edit {name} --discard"))
}

/// Returns the folder of a variant's own patches.
pub fn series_folder(variant: &Variant) -> Result<&str> {
    variant.patches.as_deref().ok_or_else(|| {
        Error::usage(format!("the variant `{}` has no series of its own to edit", variant.name))
            .hint(format!("give it one in `pins.toml`: patches = \"patches/{}\"", variant.name))
            .hint("or name a variant that has one: cargo xtask edit VARIANT")
    })
}
