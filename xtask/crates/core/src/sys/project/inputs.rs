//! Reading the inputs of variants: patches and overlay files.

use std::path::Path;

use espalier_series as series;
use espalier_series::{ParseError, Patch};

use crate::config::layout::Layout;
use crate::config::overlay::OverlayFile;
use crate::config::paths;
use crate::config::pins::Variant;
use crate::error::{Error, Result};
use crate::sys::machine::{disk, owned};

/// One patch file on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchFile {
    /// Path relative to the root, with `/`.
    pub file: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// sha256 of its content.
    pub sha256: String,
}

impl PatchFile {
    /// Creates the file at `file` with this content.
    pub fn new(file: String, bytes: Vec<u8>) -> PatchFile {
        PatchFile { file, sha256: disk::sha256(&bytes), bytes }
    }

    /// Returns the file's name without its folder.
    pub fn name(&self) -> &str {
        paths::file_name(&self.file)
    }

    /// Returns the folder that contains the file.
    pub fn folder(&self) -> &str {
        paths::folder(&self.file)
    }

    /// Whether `name`, from a command line, refers to this patch: its number with or without leading zeros, its file
    /// name or its path. A number or a file name can also match a parent's patch: see [`find_patch`].
    fn is_called(&self, name: &str) -> bool {
        let number = paths::patch_number(&self.file);
        let is_number = || number.parse::<u32>().is_ok_and(|number| name.parse() == Ok(number));
        self.file == name || self.name() == name || is_number()
    }

    /// Returns the generation, if this is the sibling of a patch.
    pub fn generation(&self) -> Option<String> {
        series::series_entry(self.name())?.generation
    }

    /// Returns the path of the sibling of this patch in `generation`.
    pub fn sibling_in(&self, generation: &str) -> Option<String> {
        let entry = series::series_entry(self.name())?;
        Some(format!("{}/{}", self.folder(), entry.sibling_in(generation)))
    }

    /// Parses the text without an error message for people. A sibling may have a reason instead of a diff.
    pub fn try_parse(&self) -> std::result::Result<Patch, ParseError> {
        match self.generation() {
            Some(_) => series::parse_sibling(self.name(), &self.bytes),
            None => series::parse(self.name(), &self.bytes),
        }
    }

    /// Parses the patch; the error for malformed text names the file and the line.
    pub fn parse(&self) -> Result<Patch> {
        self.try_parse().map_err(|error| {
            Error::usage(format!("cannot parse `{}`", self.file))
                .detail(error.to_string())
                .hint("cargo xtask lint    # names all such patches, and the way to bring them in")
        })
    }
}

/// Returns the index of the patch `name` among `files`, which are in the order in which they apply, parents first.
/// Every series counts from 0001, so a bare number refers to the last series that has it: the variant's own before
/// its parents'.
pub fn find_patch(files: &[PatchFile], name: &str) -> Option<usize> {
    files.iter().rposition(|file| file.is_called(name))
}

/// Reads the overlays of `stack` alone, the oldest ancestor first.
pub fn read_overlays(layout: &Layout, stack: &[&Variant]) -> Result<Vec<OverlayFile>> {
    let mut overlays = Vec::new();
    for folder in stack.iter().flat_map(|variant| &variant.overlays) {
        overlays.extend(read_overlay(layout, folder)?);
    }
    Ok(overlays)
}

/// The patches of a series, and the siblings that take their places on generations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesFiles {
    /// The patches, in the order in which they apply.
    pub patches: Vec<PatchFile>,
    /// The siblings, of all generations.
    pub siblings: Vec<PatchFile>,
}

impl SeriesFiles {
    /// Separates the siblings from the patches.
    pub fn of(files: Vec<PatchFile>) -> SeriesFiles {
        let (siblings, patches) = files.into_iter().partition(|file: &PatchFile| file.generation().is_some());
        SeriesFiles { patches, siblings }
    }
}

/// Reads the series in `folder` with its siblings; their names must be valid for a series.
pub fn read_series(layout: &Layout, folder: &str) -> Result<SeriesFiles> {
    let names = look_into(layout, folder)?.patches;
    check_names(folder, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(SeriesFiles::of(read_folder(layout, folder)?))
}

fn check_names(folder: &str, names: &[&str]) -> Result<()> {
    series::series_order(names).map(drop).map_err(|findings| {
        let lines: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.patch, finding.message)).collect();
        let error = Error::usage(format!("`{folder}` is not a series")).detail(lines.join("\n"));
        findings.first().map(|first| error.clone().hint(first.hint.clone())).unwrap_or(error)
    })
}

/// Contents of the folder of a series: paths relative to it.
#[derive(Clone, Debug, Default)]
pub struct SeriesFolder {
    /// Files that look like patches, whether or not their names are valid for a series.
    pub patches: Vec<String>,
    /// Files of editors, git or people, which are not read.
    pub others: Vec<String>,
    /// Whether the folder does not exist.
    pub missing: bool,
}

/// Lists the folder of a series. A missing one counts as empty: git cannot store an empty folder.
pub fn look_into(layout: &Layout, folder: &str) -> Result<SeriesFolder> {
    let path = layout.series(folder);
    if !disk::exists(&path) {
        return Ok(SeriesFolder { missing: true, ..SeriesFolder::default() });
    }
    let (patches, others): (Vec<_>, Vec<_>) =
        disk::files_below(&path)?.into_iter().partition(|file| is_patch(file));
    let others = others.iter().map(|file| file.display().to_string()).collect();
    let patches = patches.iter().map(|file| slashed(file)).collect::<Result<_>>()?;
    Ok(SeriesFolder { patches, others, missing: false })
}

/// Whether a file in the folder of a series is meant as a patch.
pub fn is_patch(file: &Path) -> bool {
    series::looks_like_a_patch(&file.to_string_lossy())
}

/// Returns every patch and sibling in the folder of a series, by name, whether or not the names are valid for a series.
pub fn read_folder(layout: &Layout, folder: &str) -> Result<Vec<PatchFile>> {
    let path = layout.series(folder);
    let names = look_into(layout, folder)?.patches;
    names
        .iter()
        .map(|name| {
            let bytes = read_own(layout, &path.join(name), &format!("{folder}/{name}"))?;
            Ok(PatchFile::new(format!("{folder}/{name}"), bytes))
        })
        .collect()
}

fn read_overlay(layout: &Layout, folder: &str) -> Result<Vec<OverlayFile>> {
    let root = layout.overlay(folder);
    if !disk::exists(&root) {
        return Err(Error::usage(format!("`pins.toml` names the folder `{folder}`, which is not there"))
            .hint(format!("mkdir -p {folder}")));
    }
    disk::files_below(&root)?
        .iter()
        .map(|file| {
            let path = slashed(file)?;
            let on_disk = root.join(&path);
            let bytes = read_own(layout, &on_disk, &format!("{folder}/{path}"))?;
            let executable = disk::is_executable(&on_disk);
            Ok(OverlayFile { from: format!("{folder}/{path}"), path, bytes, executable })
        })
        .collect()
}

/// Refuses a link that leads out of the project: it would make a file of this machine part of what is built and
/// shipped.
fn read_own(layout: &Layout, path: &Path, name: &str) -> Result<Vec<u8>> {
    let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(layout.root()));
    if is_inside || owned::is_ours(path) {
        return disk::read(path);
    }
    Err(Error::usage(format!("`{name}` is, or is reached through, a link that leads out of the project"))
        .hint("replace the link with a copy of what it points to"))
}

fn slashed(path: &Path) -> Result<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    parts
        .map(|parts| parts.join("/"))
        .ok_or_else(|| Error::usage(format!("the file name `{}` is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use super::{PatchFile, find_patch};

    #[test]
    fn a_patch_has_several_names() {
        let files =
            ["patches/base/0001-a.patch", "patches/base/0003-b.patch", "patches/paged/0001-slug.patch"];
        let files = files.map(|file| PatchFile::new(file.to_string(), Vec::new()));
        for (name, at) in [
            ("1", 2),
            ("0001", 2),
            ("0001-slug.patch", 2),
            ("patches/paged/0001-slug.patch", 2),
            ("patches/base/0001-a.patch", 0),
            ("0001-a.patch", 0),
            ("3", 1),
        ] {
            assert_eq!(find_patch(&files, name), Some(at), "{name}");
        }
        for name in ["2", "0", "slug", "paged", "", "0001-", "patches/base"] {
            assert_eq!(find_patch(&files, name), None, "{name}");
        }
    }
}
