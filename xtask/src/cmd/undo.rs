//! `cargo xtask undo`: restores patches, pins and lock as they were before the last change.

use std::collections::BTreeMap;

use clap::Args;
use espalier_core::config::paths::folder;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::plan::pending::PendingFile;
use espalier_core::sys::machine::disk;
use espalier_core::sys::project::run_lock::{self, Access};
use espalier_core::sys::project::undo::Undo;
use espalier_core::ui;
use serde_json::json;

/// Maximum number of files that are named one by one; more are counted by folder.
const FILES_NAMED: usize = 12;

/// Options of `undo`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Options {
    /// Print what would be restored.
    #[arg(long)]
    pub dry_run: bool,
}

/// Undoes the last change; if that was an undo, makes the undone change again.
///
/// # Errors
///
/// There is no such change, or a file of it was changed since.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let layout = &context.layout;
    if !disk::exists(&layout.undo()) {
        // Nothing is created in a folder without a project. An undone `init` leaves a record, and no pins.
        context.pins()?;
        Undo::prepare(layout)?;
    }
    let access = if options.dry_run { Access::Read } else { Access::Change };
    let _lock = run_lock::take(layout, &context.ui, access)?;
    let undo = Undo::prepare(layout)?;
    if !options.dry_run {
        undo.perform(layout)?;
    }
    Ok(outcome(context, &undo, options.dry_run))
}

fn outcome(context: &Context, undo: &Undo, dry_run: bool) -> Outcome {
    let pending = &undo.pending;
    let (removed, written): (Vec<&PendingFile>, Vec<&PendingFile>) =
        pending.changes().partition(|file| file.new.is_none());
    let [removed, written] =
        [removed, written].map(|files| files.into_iter().map(|file| file.path.as_str()).collect::<Vec<_>>());
    let mut lines = vec![format!("{}: {}", verb(pending.is_undo, dry_run), pending.what)];
    let is_short = written.len() + removed.len() <= FILES_NAMED;
    for (action, paths) in [("written", &written), ("removed", &removed)] {
        let shown: Vec<String> = match is_short {
            true => paths.iter().map(|path| (*path).to_string()).collect(),
            false => by_folder(paths),
        };
        lines.extend(shown.iter().map(|shown| format!("  {action}  {shown}")));
    }
    for variant in &undo.edits_left {
        let folder = context.layout.show(&context.layout.edit(variant));
        let edit = ui::hint(&format!("`cargo xtask edit {variant}`"));
        lines.push(format!("  left     {folder}, which was changed since: {edit} updates it"));
    }
    if !dry_run {
        let again = if pending.is_undo { "makes it again" } else { "undoes it again" };
        lines.push(format!("  next: cargo xtask undo    # {again}"));
    }
    let json = json!({
        "change": pending.what,
        "undone": pending.is_undo,
        "dry_run": dry_run,
        "written": written,
        "removed": removed,
        "edits_left": undo.edits_left,
    });
    Outcome::ok(lines.join("\n"), json)
}

/// Counts the files in each folder; a file that is alone in its folder is named.
fn by_folder(paths: &[&str]) -> Vec<String> {
    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in paths {
        folders.entry(folder(path)).or_default().push(path);
    }
    let shown = folders.into_iter().map(|(folder, files)| match files.as_slice() {
        [file] => (*file).to_string(),
        files if folder.is_empty() => files.join(", "),
        files => format!("{} files in {folder}", files.len()),
    });
    shown.collect()
}

fn verb(is_undo: bool, dry_run: bool) -> &'static str {
    match (is_undo, dry_run) {
        (true, false) => "undone",
        (true, true) => "would be undone",
        (false, false) => "made again",
        (false, true) => "would be made again",
    }
}

#[cfg(test)]
mod tests {
    use super::by_folder;

    #[test]
    fn many_files_are_counted_by_folder() {
        let paths =
            ["docs/syncs/a.md", "espalier.lock", "patches/b/1", "patches/b/2", "patches/c/1", "pins.toml"];
        let shown = ["espalier.lock, pins.toml", "docs/syncs/a.md", "2 files in patches/b", "patches/c/1"];
        assert_eq!(by_folder(&paths), shown);
    }
}
