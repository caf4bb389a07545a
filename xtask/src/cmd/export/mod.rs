//! `cargo xtask export`: the commits of an edit repository, back to patch files.

mod choose;
mod collect;
mod written;

use serde_json::json;

use choose::{Existing, Exported, choose};
use collect::collect;
use written::write_patches;

use crate::context::{Context, Outcome};
use crate::error::{Error, Kind, Result};
use crate::plan::pins::{Pins, Variant};
use crate::series::{SeriesEntry, series_order};
use crate::stack::commits::{SeriesCommits, commits_of, make_commits};
use crate::stack::ready::series_folder;
use crate::stack::{apply, lock_file};
use crate::sys::edit_repo::{EditCommit, EditRepo, Marks};
use crate::sys::inputs::{Inputs, PatchFile, read_stack};
use crate::sys::pending_series::{self, NewSeries};
use crate::sys::store::Store;
use crate::sys::{disk, run_lock};

/// Options of `export`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Variant name; the default one when none is given.
    pub variant: Option<String>,
    /// Say what would be written and write nothing.
    pub dry_run: bool,
}

/// Writes the series of a variant from the commits of its edit repository.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(options.variant.as_deref())?;
    let folder = series_folder(variant)?;
    let _lock = run_lock::take(context)?;
    let store = Store::open(&context.layout.store())?;
    let repo = open(context, variant)?;
    let before = make_commits(context, &store, &pins, variant)?;
    let collected = collect(&repo, variant, &before)?;
    store.read_also(&repo.git_dir().join("objects"))?;
    let written = write_patches(context, &repo, &collected, &before.inputs.overlays)?;
    let exported = choose(&store, &existing(&before)?, &collected.commits, written)?;
    let inputs = inputs_after(folder, &before, &exported);
    let after = prove(&store, &pins, variant, (inputs, before.parents), &collected.commits)?;
    if !options.dry_run {
        if context.locked {
            // Refused before anything is written, when the lock would have to change.
            lock_file::update(context, &variant.name, &after.locked)?;
        }
        repo.write_commit(&store, after.tip)?;
        let marks = Marks { series: after.tip, made: collected.tip, ..collected.marks };
        write(context, variant, folder, &before, &exported, marks)?;
        repo.offer_message(None)?;
        update_locks(context, &store, &pins, variant)?;
    }
    Ok(outcome(variant, folder, &before, &exported, options.dry_run))
}

fn open(context: &Context, variant: &Variant) -> Result<EditRepo> {
    let name = &variant.name;
    let folder = context.layout.edit(name);
    EditRepo::open(&folder, name)?.ok_or_else(|| {
        Error::usage(format!("there is no `{}` to export from", context.layout.show(&folder)))
            .hint(format!("cargo xtask edit {name}    # makes it"))
    })
}

/// The variant's own patch files as they are on disk.
fn own_files(before: &SeriesCommits) -> &[PatchFile] {
    &before.inputs.patches[before.parents..]
}

fn existing(before: &SeriesCommits) -> Result<Vec<Existing>> {
    let files = own_files(before);
    let names: Vec<&str> = files.iter().map(PatchFile::name).collect();
    // It was checked when it was read.
    let entries = series_order(&names).unwrap_or_default();
    let read = |(file, entry): (&PatchFile, SeriesEntry)| {
        Ok(Existing { patch: file.parse()?, bytes: file.bytes.clone(), name: entry.name, slug: entry.slug })
    };
    files.iter().zip(entries).map(read).collect()
}

/// Applies the exported series strictly, in memory: the tree after each patch must be its commit's.
fn prove(
    store: &Store,
    pins: &Pins,
    variant: &Variant,
    inputs: (Inputs, usize),
    commits: &[EditCommit],
) -> Result<SeriesCommits> {
    let (inputs, parents) = inputs;
    let conflict = |error: Error| Error { kind: Kind::Conflict, ..error };
    let after = commits_of(store, pins, variant, inputs, parents).map_err(conflict)?;
    for (commit, locked) in commits.iter().zip(&after.locked.patches[parents..]) {
        if commit.tree.to_string() != locked.tree {
            let what = format!("the patch of {} would make another tree", commit.describe());
            return Err(Error::new(Kind::Conflict, what)
                .detail(format!("commit: {}\npatch:  {}", commit.tree, locked.tree))
                .hint("nothing was written; this is a fault of this tool"));
        }
    }
    Ok(after)
}

fn inputs_after(folder: &str, before: &SeriesCommits, exported: &[Exported]) -> Inputs {
    let own = exported.iter().map(|patch| PatchFile {
        file: format!("{folder}/{}", patch.name),
        sha256: disk::sha256(&patch.bytes),
        bytes: patch.bytes.clone(),
    });
    let patches = before.inputs.patches[..before.parents].iter().cloned().chain(own).collect();
    Inputs { patches, overlays: before.inputs.overlays.clone() }
}

/// All files of the series and the marks of the edit repository, as one change.
fn write(
    context: &Context,
    variant: &Variant,
    folder: &str,
    before: &SeriesCommits,
    exported: &[Exported],
    marks: Marks,
) -> Result<()> {
    let digest = |file: &PatchFile| (file.name().to_string(), file.sha256.clone());
    let file = |patch: &Exported| (patch.name.clone(), patch.bytes.clone());
    let series = NewSeries {
        variant: &variant.name,
        folder,
        before: own_files(before).iter().map(digest).collect(),
        files: exported.iter().map(file).collect(),
        marks: Some(marks),
    };
    pending_series::replace(&context.layout, &series)
}

/// The lock's entries of the variant and of all that extend it. One that no longer applies is told: it has
/// to be mended in a series of its own.
fn update_locks(context: &Context, store: &Store, pins: &Pins, variant: &Variant) -> Result<()> {
    let extends = |other: &&Variant| pins.stack(other).iter().any(|below| below.name == variant.name);
    for other in pins.variants.values().filter(extends) {
        let inputs = read_stack(&context.layout, &pins.stack(other))?;
        match apply::apply_inputs(store, other, pins.pin_of(other), &inputs) {
            Ok(applied) => lock_file::update(context, &other.name, &applied.locked)?,
            Err(_) => context.ui.warn(format!(
                "{} extends {} and does not apply any more\n  next: cargo xtask status --variant {}",
                other.name, variant.name, other.name
            )),
        }
    }
    Ok(())
}

fn outcome(
    variant: &Variant,
    folder: &str,
    before: &SeriesCommits,
    exported: &[Exported],
    dry_run: bool,
) -> Outcome {
    let stays = |name: &str| exported.iter().any(|patch| patch.was.as_deref() == Some(name));
    let removed: Vec<&str> =
        own_files(before).iter().map(PatchFile::name).filter(|name| !stays(name)).collect();
    let changes: Vec<String> = exported.iter().filter_map(Exported::describe).collect();
    let mut lines = vec![summary(folder, exported.len(), changes.len() + removed.len(), dry_run)];
    lines.extend(changes.into_iter().map(|change| format!("  {change}")));
    lines.extend(removed.iter().map(|name| format!("  gone     {name}")));
    let patches: Vec<serde_json::Value> = exported.iter().map(Exported::to_json).collect();
    let json = json!({ "variant": variant.name, "folder": folder, "patches": patches, "gone": removed });
    Outcome::ok(lines.join("\n"), json)
}

fn summary(folder: &str, patches: usize, changes: usize, dry_run: bool) -> String {
    match (changes, dry_run) {
        (0, _) => format!("{folder}: {patches} patches, nothing changed"),
        (_, true) => format!("{folder}: {patches} patches; this would change:"),
        (_, false) => format!("{folder}: {patches} patches; changed:"),
    }
}
