//! The automatic fixes: numbers, names that do not match the subject, a missing final newline.

use std::collections::BTreeSet;

use espalier_core::config::pins::Pins;
use espalier_core::context::Context;
use espalier_core::error::Result;
use espalier_core::sys::project::inputs::{PatchFile, SeriesFiles, read_folder};
use espalier_core::sys::project::stage::Stage;
use espalier_series as series;
use espalier_series::slug_from_subject;

use crate::lock_file;

/// Fixes the series of every variant, as one change; returns a description of each fix. The caller holds the run lock.
pub fn fix_all(context: &Context, pins: &Pins, dry_run: bool) -> Result<Vec<String>> {
    let mut stage = Stage::begin(&context.layout)?;
    let mut all = Vec::new();
    for folder in pins.series_folders().collect::<BTreeSet<_>>() {
        let files = SeriesFiles::of(read_folder(&context.layout, folder)?).patches;
        let fixed = fix(folder, &files).filter(|fixed| *fixed != files);
        if let Some(fixed) = fixed {
            stage.replace_series(folder, &files, &fixed)?;
            all.extend(files.into_iter().zip(fixed));
        }
    }
    let done: Vec<String> = all.iter().filter_map(|(file, fixed)| describe(file, fixed)).collect();
    if !done.is_empty() && !dry_run {
        lock_file::follow(context, &mut stage, all.iter().map(|(file, fixed)| (file, fixed)))?;
        stage.commit("the fixes of lint".to_string())?;
    }
    Ok(done)
}

/// Returns the fixed files, or `None` when a name has no number: only the author knows where that patch belongs. Two
/// patches with the same number keep the order of their names.
fn fix(folder: &str, files: &[PatchFile]) -> Option<Vec<PatchFile>> {
    let is_numbered = |file: &PatchFile| series::series_entry(file.name()).is_some();
    let fixed = (1..).zip(files).map(|(at, file)| fix_file(folder, at, file));
    files.iter().all(is_numbered).then(|| fixed.collect())
}

fn fix_file(folder: &str, number: usize, file: &PatchFile) -> PatchFile {
    let name = file.name();
    let slug = series::series_entry(name).map(|entry| entry.slug).unwrap_or_default();
    let bytes = with_final_newline(name, &file.bytes);
    let slug = match series::parse(name, &bytes) {
        Ok(patch) if !series::slug_fits(name, &patch.subject) => slug_from_subject(&patch.subject),
        _ => slug,
    };
    PatchFile::new(format!("{folder}/{number:04}-{slug}.patch"), bytes)
}

/// Adds the newline only when that leaves the parsed patch the same: inside a hunk it would change the last line.
fn with_final_newline(name: &str, bytes: &[u8]) -> Vec<u8> {
    let ended = [bytes, b"\n"].concat();
    let is_same = || series::parse(name, bytes).is_ok_and(|old| series::parse(name, &ended) == Ok(old));
    if bytes.ends_with(b"\n") || !is_same() { bytes.to_vec() } else { ended }
}

fn describe(file: &PatchFile, fixed: &PatchFile) -> Option<String> {
    let renamed = file.file != fixed.file;
    let ended = file.bytes != fixed.bytes;
    let mut words = file.file.clone();
    if renamed {
        words += &format!(" -> {}", fixed.name());
    }
    if ended {
        words += ", final newline added";
    }
    (renamed || ended).then_some(words)
}
