//! What a machine can mend: numbers, names that do not go with the subject, a missing last line end.

use std::collections::{BTreeMap, BTreeSet};

use crate::context::Context;
use crate::error::Result;
use crate::plan::name::Name;
use crate::plan::pins::Pins;
use crate::series::{self, slug_from_subject};
use crate::sys::disk;
use crate::sys::inputs::{PatchFile, read_folder};
use crate::sys::pending_series::{self, NewSeries};

/// A patch file as it should be.
struct Mended {
    name: String,
    bytes: Vec<u8>,
}

/// Mends the series of every variant; gives what was done, in words. The caller holds the run lock.
pub fn fix_all(context: &Context, pins: &Pins, dry_run: bool) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let mut seen = BTreeSet::new();
    for variant in pins.variants.values() {
        let Some(folder) = variant.patches.as_deref().filter(|folder| seen.insert(*folder)) else { continue };
        let files = read_folder(&context.layout, folder)?;
        let Some(mended) = mend(&files) else { continue };
        let changes: Vec<String> =
            files.iter().zip(&mended).filter_map(|(file, mended)| describe(folder, file, mended)).collect();
        if !changes.is_empty() && !dry_run {
            write(context, &variant.name, folder, &files, mended)?;
        }
        done.extend(changes);
    }
    Ok(done)
}

/// Nothing when a name has no number: only a person knows where that patch belongs. Two patches with the
/// same number keep the order of their names.
fn mend(files: &[PatchFile]) -> Option<Vec<Mended>> {
    let is_numbered = |file: &PatchFile| series::series_entry(file.name()).is_some();
    files.iter().all(is_numbered).then(|| (1..).zip(files).map(|(at, file)| mend_file(at, file)).collect())
}

fn mend_file(number: usize, file: &PatchFile) -> Mended {
    let name = file.name();
    let slug = series::series_entry(name).map(|entry| entry.slug).unwrap_or_default();
    let bytes = with_final_newline(name, &file.bytes);
    let slug = match series::parse(name, &bytes) {
        Ok(patch) if !series::slug_fits(name, &patch.subject) => slug_from_subject(&patch.subject),
        _ => slug,
    };
    Mended { name: format!("{number:04}-{slug}.patch"), bytes }
}

/// Only when it changes nothing but the text: a last line of a hunk would be another line.
fn with_final_newline(name: &str, bytes: &[u8]) -> Vec<u8> {
    let ended = [bytes, b"\n"].concat();
    let is_same = || series::parse(name, bytes).is_ok_and(|old| series::parse(name, &ended) == Ok(old));
    if bytes.ends_with(b"\n") || !is_same() { bytes.to_vec() } else { ended }
}

fn describe(folder: &str, file: &PatchFile, mended: &Mended) -> Option<String> {
    let renamed = file.name() != mended.name;
    let ended = file.bytes != mended.bytes;
    let mut words = format!("{folder}/{}", file.name());
    if renamed {
        words += &format!(" -> {}", mended.name);
    }
    if ended {
        words += ", its last line ends now";
    }
    (renamed || ended).then_some(words)
}

fn write(
    context: &Context,
    variant: &Name,
    folder: &str,
    files: &[PatchFile],
    mended: Vec<Mended>,
) -> Result<()> {
    let before: BTreeMap<String, String> =
        files.iter().map(|file| (file.name().to_string(), disk::sha256(&file.bytes))).collect();
    let files = mended.into_iter().map(|file| (file.name, file.bytes)).collect();
    pending_series::replace(&context.layout, &NewSeries { variant, folder, before, files, marks: None })
}
