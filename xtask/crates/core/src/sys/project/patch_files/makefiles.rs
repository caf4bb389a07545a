//! Makefiles beside patches: what they change in the sources, no patch has.

use std::path::{Path, PathBuf};

use espalier_series::read_makefile;

use super::names::{files_in, has_ending, name_of, text_of};
use crate::error::Result;

/// Names of folders that have patches, and belong to the package in the folder above.
const OF_PACKAGES: [&str; 2] = ["patches", "files"];

/// The makefile of a Debian package.
const OF_DEBIAN: &str = "debian/rules";

/// Returns the changes by the makefiles of the package whose patches are in `folder`, each with its file and line.
pub(super) fn changes_beside(folder: &Path) -> Result<Vec<String>> {
    let mut changes = Vec::new();
    for file in makefiles_of(folder)? {
        let is_of_debian = file.ends_with(OF_DEBIAN);
        let name = if is_of_debian { OF_DEBIAN.to_string() } else { name_of(&file) };
        match text_of(&file) {
            Ok(text) => changes.extend(read_makefile(&text).into_iter().map(|change| match change.line {
                Some(line) => format!("{name}:{line}: {}", change.text),
                None => format!("{name}: {}", change.text),
            })),
            Err(error) => {
                changes.push(format!("{name}: it was not read, and may change files: {}", error.what))
            }
        }
    }
    Ok(changes)
}

/// Debian has `debian/rules`, the BSDs and OpenWrt a `Makefile` above the folder, buildroot a `NAME.mk` in it.
fn makefiles_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let above = folder.parent().filter(|_| OF_PACKAGES.contains(&name_of(folder).as_str()));
    if let Some(debian) = above.filter(|above| name_of(above) == "debian") {
        return Ok(vec![debian.join("rules")].into_iter().filter(|rules| rules.is_file()).collect());
    }
    let mut files = files_in(folder)?;
    // The folder above is not a part of what is imported: it may be any folder.
    files.extend(above.and_then(|above| files_in(above).ok()).unwrap_or_default());
    let names = ["Makefile", "makefile", "GNUmakefile"];
    files.retain(|file| names.contains(&name_of(file).as_str()) || has_ending(file, &["mk"]));
    Ok(files)
}
