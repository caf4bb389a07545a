//! Preparing the edit repository for work, without losing work that is there.

mod work;

use espalier_core::config::pins::{Pins, Variant};
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::machine::disk;
use espalier_core::sys::work_trees::edit_make::{self, EditPlace};
use espalier_core::sys::work_trees::edit_overlay;
use espalier_core::sys::work_trees::edit_repo::{EditRepo, Marks};
use work::Work;

use crate::commits::{SeriesCommits, make_commits};

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
    let series = make_commits(context, store, pins, variant);
    let Some(repo) = there else { return make(context, store, variant, series?) };
    let marks = match &series {
        Ok(series) => up_to_date_marks(&repo, series)?,
        Err(_) => repo.marks(),
    };
    let is_up_to_date = |series: &SeriesCommits| marks.is_some_and(|marks| is_current(&marks, series));
    let found = work::of(&repo)?;
    if !found.is_empty() && (when == When::Refuse || marks.is_none()) {
        let changed = series.as_ref().ok().filter(|series| marks.is_some() && !is_up_to_date(series));
        return Err(found.refusal(context, variant, (store, &repo), changed));
    }
    let series = series?;
    let is_used = is_up_to_date(&series) || !found.is_empty();
    let hidden = if is_used { Work::default() } else { work::hidden(&repo)? };
    if !hidden.is_empty() && when == When::Refuse {
        work::refuse_linked(context, variant)?;
        return Err(hidden.refusal(context, variant, (store, &repo), None));
    }
    let marks = marks.filter(|_| is_used || !hidden.is_empty());
    let Some(marks) = marks else { return make(context, store, variant, series) };
    link_overlay(context, &repo, &series)?;
    Ok(Ready { repo, series, marks, made: false })
}

/// Creates the repository; one that is there is kept as a whole elsewhere.
fn make(context: &Context, store: &Store, variant: &Variant, series: SeriesCommits) -> Result<Ready> {
    let layout = &context.layout;
    let folder = layout.edit(&variant.name);
    work::refuse_linked(context, variant)?;
    let before = edit_make::place_before(&layout.edits_before(), &variant.name);
    let place = EditPlace { variant: &variant.name, folder, before, scratch: layout.scratch() };
    context.ui.status("Creating", layout.show(&place.folder));
    let is_there = disk::exists(&place.folder);
    let marks = series.marks();
    let repo = edit_make::make(store, &place, &marks)?;
    link_overlay(context, &repo, &series)?;
    if is_there {
        let before = layout.show(&place.before);
        context.ui.status("Keeping", format!("the previous repository as {before} until `gc` removes it"));
    }
    Ok(Ready { repo, series, marks, made: true })
}

/// Returns the marks. If the user has rebased the branch onto the series on disk, they are moved there first.
fn up_to_date_marks(repo: &EditRepo, series: &SeriesCommits) -> Result<Option<Marks>> {
    let marks = repo.marks();
    if marks.is_none_or(|marks| is_current(&marks, series)) || !repo.is_rebased_onto(series.tip) {
        return Ok(marks);
    }
    repo.set_marks(&series.marks())?;
    Ok(Some(series.marks()))
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
    marks.series == series.tip && marks.base == series.base && marks.pin == series.pin
}

/// Returns the folder of a variant's own patches.
///
/// # Errors
///
/// It has none, or, on a generation, they are those of another variant.
pub fn series_folder(variant: &Variant) -> Result<&str> {
    if let Some(like) = &variant.like {
        let what =
            format!("`{}` has the patches of `{like}`, on the generation {}", variant.name, variant.pin);
        return Err(Error::usage(what)
            .hint(format!("change them for all generations: cargo xtask edit {like}"))
            .hint(format!(
                "change one for this generation alone: cargo xtask rebase --variant {} --edit NNNN",
                variant.name
            )));
    }
    variant.patches.as_deref().ok_or_else(|| {
        Error::usage(format!("the variant `{}` has no series of its own to edit", variant.name))
            .hint(format!("give it one in `pins.toml`: patches = \"patches/{}\"", variant.name))
            .hint("or name a variant that has one: cargo xtask edit VARIANT")
    })
}
