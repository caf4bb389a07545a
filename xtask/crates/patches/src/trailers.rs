//! `cargo xtask trailers`: sets a trailer in many patches at once.

use std::collections::BTreeSet;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, find_patch, read_folder};
use espalier_core::sys::project::run_lock::Access;
use espalier_core::sys::project::stage::Stage;
use espalier_series as series;
use espalier_series::{Patch, SetWhich, TRAILER_KEYS, is_valid_trailer, set_trailer};
use serde_json::json;

use crate::lock_file;
use crate::ready::series_folder;

/// Options of `trailers`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Variant of `pins.toml`.
    pub variant: Option<Name>,
    /// Trailer to set, `'Key: value'`; repeatable.
    #[arg(long, value_name = "TRAILER", required = true)]
    pub set: Vec<String>,
    /// Only this patch, by number, file name or path; repeatable.
    #[arg(long = "patch", value_name = "NNNN")]
    pub patches: Vec<String>,
    /// Replace values that are already filled in.
    #[arg(long)]
    pub overwrite: bool,
    /// Print what would change.
    #[arg(long)]
    pub dry_run: bool,
}

/// Sets the trailers and writes the patches and their digests in the lock; the trees that the patches produce stay the
/// same.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let wanted: Vec<(&str, &str)> =
        options.set.iter().map(|set| read_setting(set, options)).collect::<Result<_>>()?;
    let which = if options.overwrite { SetWhich::All } else { SetWhich::Unfilled };
    let (_lock, pins) = context.begin(false, Access::Change)?;
    let variant = pins.variant(options.variant.as_deref())?;
    let folder = series_folder(variant)?;
    let before = SeriesFiles::of(read_folder(&context.layout, folder)?).patches;
    let chosen = chosen(&before, &options.patches)?;
    let is_chosen = |file: &PatchFile| chosen.contains(&file.file);
    let mut after = Vec::new();
    for file in &before {
        let bytes = if is_chosen(file) { set_all(file, &wanted, which)? } else { file.bytes.clone() };
        after.push(PatchFile::new(file.file.clone(), bytes));
    }
    refuse_wrong(after.iter().filter(|file| is_chosen(file)), &wanted)?;
    let changed: Vec<String> =
        before.iter().zip(&after).filter(|(old, new)| old != new).map(|(old, _)| old.file.clone()).collect();
    if !changed.is_empty() && !options.dry_run {
        let mut stage = Stage::begin(&context.layout)?;
        stage.replace_series(folder, &before, &after)?;
        lock_file::follow(context, &mut stage, before.iter().zip(&after))?;
        stage.commit(format!("the new trailers of {}", variant.name))?;
    }
    Ok(outcome(&changed, before.len(), options.dry_run))
}

fn read_setting<'a>(text: &'a str, options: &Options) -> Result<(&'a str, &'a str)> {
    let (key, value) = text.split_once(':').unwrap_or((text, ""));
    let (key, value) = (key.trim(), value.trim());
    let Some((known, allowed)) = TRAILER_KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key))
    else {
        let known = TRAILER_KEYS.map(|(key, _)| key).join(", ");
        let words = ["trailers"].into_iter().chain(options.variant.as_deref()).collect::<Vec<_>>().join(" ");
        return Err(Error::usage(format!("`{key}` is not a trailer that lint knows"))
            .hint(format!("use one of: {known}"))
            .hint(next_command(&words, &[("--set", Some("Upstream-Status: Pending"))])));
    };
    let is_plain = !value.chars().any(char::is_control);
    if is_plain && is_valid_trailer(known, value) {
        return Ok((known, value));
    }
    Err(Error::usage(format!("`{known}: {value}` is not allowed")).hint(format!("write {allowed}")))
}

/// Returns the paths of the patches with these names; of all when no name is given.
fn chosen(files: &[PatchFile], names: &[String]) -> Result<BTreeSet<String>> {
    if names.is_empty() {
        return Ok(files.iter().map(|file| file.file.clone()).collect());
    }
    let find = |name: &String| {
        let found = find_patch(files, name).and_then(|at| files.get(at));
        found.map(|file| file.file.clone()).ok_or_else(|| {
            Error::usage(format!("the series has no patch `{name}`"))
                .hint("name it by its number or its file name: --patch 0007")
        })
    };
    names.iter().map(find).collect()
}

/// Refuses a trailer that already has a value that lint does not allow: it would be left as it is, and look as if it
/// had been set.
fn refuse_wrong<'a>(files: impl Iterator<Item = &'a PatchFile>, wanted: &[(&str, &str)]) -> Result<()> {
    let mut wrong = Vec::new();
    for file in files {
        for trailer in file.parse()?.trailers {
            let key = wanted.iter().map(|(key, _)| *key).find(|key| key.eq_ignore_ascii_case(&trailer.key));
            if key.is_some_and(|key| !is_valid_trailer(key, &trailer.value)) {
                wrong.push(format!("{}: `{}: {}`", file.file, trailer.key, trailer.value));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let what = "some patches have a value already that lint does not allow; nothing was written";
    Err(Error::no(what)
        .detail(wrong.join("\n"))
        .hint("replace them too: run the same command with --overwrite"))
}

/// Returns the same change with another message, or an error: here, too, the ids must match.
fn set_all(file: &PatchFile, wanted: &[(&str, &str)], which: SetWhich) -> Result<Vec<u8>> {
    let old = file.parse()?;
    let mut now = file.clone();
    for (key, value) in wanted {
        let patch = now.parse()?;
        if let Some(bytes) = set_trailer(&now.bytes, &patch, key, value, which) {
            now.bytes = bytes;
        }
    }
    let new = Patch { body: old.body.clone(), ..now.parse()? };
    if !series::is_same_change(&old, &new) {
        return Err(Error::environment(format!("the trailers of `{}` cannot be set", file.file))
            .hint("set them by hand, with `cargo xtask edit`, `git rebase -i` and `export`"));
    }
    Ok(now.bytes)
}

fn outcome(changed: &[String], patches: usize, dry_run: bool) -> Outcome {
    let verb = if dry_run { "would change" } else { "changed" };
    let mut lines: Vec<String> = changed.iter().map(|file| format!("{verb}: {file}")).collect();
    lines.push(format!("{} of {patches} patches {verb}", changed.len()));
    Outcome::ok(lines.join("\n"), json!({ "changed": changed, "patches": patches, "dry_run": dry_run }))
}
