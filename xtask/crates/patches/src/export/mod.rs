//! `cargo xtask export`: converts the commits of an edit repository back to patch files.

mod choose;
mod collect;
mod written;

use choose::{Existing, Exported, choose};
use clap::Args;
use collect::collect;
use espalier_core::config::lock::LockedFile;
use espalier_core::config::name::Name;
use espalier_core::config::overlay::OverlayFile;
use espalier_core::config::pins::Variant;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Kind, Result};
use espalier_core::sys::git::store::Store;
use espalier_core::sys::project::inputs::PatchFile;
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::project::stage::Stage;
use espalier_core::sys::work_trees::edit_repo::{EditCommit, EditRepo, Marks};
use espalier_series::{Patch, SeriesEntry, series_order};
use serde_json::json;
use written::write_patches;

use crate::commits::{SeriesCommits, commits_of, make_commits};
use crate::lock_file;
use crate::ready::series_folder;
use crate::rebase::descendants;
use crate::stack::Stack;

/// Options of `export`.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    pub variant: Option<Name>,
    /// Print what would be written.
    #[arg(long)]
    pub dry_run: bool,
}

/// Writes the series of a variant from the commits of its edit repository.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let access = if options.dry_run { Access::Read } else { Access::Change };
    let (_lock, pins) = context.begin(false, access)?;
    let variant = pins.variant(options.variant.as_deref())?;
    let folder = series_folder(variant)?;
    let store = Store::open(&context.layout.store())?;
    let repo = open(context, variant)?;
    let before = make_commits(context, &store, &pins, variant)?;
    let collected = collect(&repo, variant, &before)?;
    store.read_also(&repo.git_dir().join("objects"))?;
    let written = write_patches(context, &repo, &collected, &before.stack.overlays)?;
    let exported = choose(&store, &existing(&before), &collected.commits, written)?;
    let own = exported.iter().map(|new| PatchFile::new(format!("{folder}/{}", new.name), new.bytes.clone()));
    let after = prove(&store, &before.stack, own, &collected.commits)?;
    let overlays = changed_overlays(context, &after)?;
    let begin = if options.dry_run { Stage::begin_trial } else { Stage::begin };
    let mut stage = begin(&context.layout)?;
    stage.keep_series(pins.series_folders())?;
    stage.replace_series(folder, before.stack.own_files(), after.stack.own_files())?;
    if options.dry_run {
        descendants::preview(context, &mut stage, (&store, &pins), variant, &after.locked)?;
    } else {
        descendants::stage(context, &mut stage, (&store, &pins), variant, &after.locked)?;
        repo.write_commit(&store, after.tip)?;
        stage.set_marks(&variant.name, &Marks { series: after.tip, made: collected.tip, ..collected.marks });
        stage.take_offer(&variant.name);
        stage.commit(format!("the export of {}", variant.name))?;
    }
    Ok(outcome((variant, folder), &before, &exported, &overlays, options.dry_run))
}

/// Returns the overlay files that differ from the lock. No commit has them, and the lock follows them.
fn changed_overlays(context: &Context, after: &SeriesCommits) -> Result<Vec<String>> {
    let lock = lock_file::read(context)?.unwrap_or_default();
    let Some(locked) = lock.variants.get(after.stack.variant.name.as_str()) else { return Ok(Vec::new()) };
    let is_locked = |file: &OverlayFile| {
        let of_file = |entry: &&LockedFile| entry.path == file.path;
        locked.overlays.iter().find(of_file) == after.locked.overlays.iter().find(of_file)
    };
    let changed = after.stack.overlays.iter().filter(|file| !is_locked(file));
    Ok(changed.map(|file| file.from.clone()).collect())
}

fn open(context: &Context, variant: &Variant) -> Result<EditRepo> {
    let name = &variant.name;
    let folder = context.layout.edit(name);
    EditRepo::open(&folder, name)?.ok_or_else(|| {
        Error::usage(format!("there is no `{}` to export from", context.layout.show(&folder)))
            .hint(format!("cargo xtask edit {name}    # makes it"))
    })
}

fn existing(before: &SeriesCommits) -> Vec<Existing> {
    let files = before.stack.own_files();
    let names: Vec<&str> = files.iter().map(PatchFile::name).collect();
    // The order was checked when the series was read.
    let entries = series_order(&names).unwrap_or_default();
    let own = files.iter().zip(before.stack.own_patches());
    let read = |((file, patch), entry): ((&PatchFile, &Patch), SeriesEntry)| Existing {
        patch: patch.clone(),
        bytes: file.bytes.clone(),
        name: entry.name,
        slug: entry.slug,
    };
    own.zip(entries).map(read).collect()
}

/// Applies the exported series strictly, in memory, and checks that the tree after each patch is its commit's.
fn prove(
    store: &Store,
    before: &Stack,
    own: impl Iterator<Item = PatchFile>,
    commits: &[EditCommit],
) -> Result<SeriesCommits> {
    let conflict = |error: Error| Error { kind: Kind::Conflict, ..error };
    let after = before.with_own(own).and_then(|stack| commits_of(store, stack)).map_err(conflict)?;
    for (commit, locked) in commits.iter().zip(after.locked.patches.iter().skip(before.parents)) {
        if commit.tree.to_string() != locked.tree {
            let what = format!("the patch of {} would produce a different tree", commit.describe());
            return Err(Error::new(Kind::Conflict, what)
                .detail(format!("commit: {}\npatch:  {}", commit.tree, locked.tree))
                .hint("nothing was written; this is a bug in this tool; please report it"));
        }
    }
    Ok(after)
}

fn outcome(
    (variant, folder): (&Variant, &str),
    before: &SeriesCommits,
    exported: &[Exported],
    overlays: &[String],
    dry_run: bool,
) -> Outcome {
    let stays = |name: &str| exported.iter().any(|patch| patch.was.as_deref() == Some(name));
    let removed: Vec<&str> =
        before.stack.own_files().iter().map(PatchFile::name).filter(|name| !stays(name)).collect();
    let changes: Vec<String> = exported.iter().filter_map(Exported::describe).collect();
    let mut lines = vec![summary(folder, exported.len(), changes.len() + removed.len(), dry_run)];
    lines.extend(changes.into_iter().map(|change| format!("  {change}")));
    lines.extend(removed.iter().map(|name| format!("  gone     {name}")));
    let follows = if dry_run { "would follow" } else { "follows" };
    let overlay = |file: &String| format!("  overlay  {file}: in no patch; espalier.lock {follows}");
    lines.extend(overlays.iter().map(overlay));
    let patches: Vec<serde_json::Value> = exported.iter().map(Exported::to_json).collect();
    let json = json!({ "variant": variant.name, "folder": folder, "patches": patches, "gone": removed,
        "overlays": overlays });
    Outcome::ok(lines.join("\n"), json)
}

fn summary(folder: &str, patches: usize, changes: usize, dry_run: bool) -> String {
    match (changes, dry_run) {
        (0, _) => format!("{folder}: {patches} patches, nothing changed"),
        (_, true) => format!("{folder}: {patches} patches; this would change:"),
        (_, false) => format!("{folder}: {patches} patches; changed:"),
    }
}
