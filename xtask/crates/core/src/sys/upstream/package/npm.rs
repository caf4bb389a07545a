//! Packages of the npm registry.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;
use crate::sys::machine::watched::{Download, PATIENCE, succeeded};
use crate::ui::{Ui, Unit};

/// Downloads `package`, a name with an exact version, into `folder` with the npm client, which verifies its digest;
/// returns the archive.
pub(super) fn download(folder: &Path, package: &str, bytes: Option<u64>, ui: &Ui) -> Result<PathBuf> {
    // A separate cache: its growth shows the progress, and it is removed afterwards.
    let run = Run::new("npm")
        .install_hint("install Node.js with npm (Debian: `apt-get install npm`), or use another source")
        .args(["pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", "--cache"])
        .arg(folder.join("cache"))
        .arg("--pack-destination")
        .arg(folder)
        .arg("--")
        .arg(package)
        .current_folder(folder);
    let (words, cache, mut log) = (run.words(), folder.join("cache/_cacache"), Vec::new());
    let progress = &mut ui.progress(package, bytes, Unit::Bytes);
    let npm = Download { program: "npm", folder: &cache, patience: PATIENCE, progress, speech: npm_words };
    let status = npm.run(run, &mut log)?;
    succeeded("npm", &words, status, &log)?;
    let archive = disk::files_below(folder)?
        .into_iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| Error::environment("npm succeeded but downloaded no package"))?;
    Ok(folder.join(archive))
}

fn npm_words(line: &str) -> Option<String> {
    Some(line.trim_start_matches("npm error ").trim_start_matches("npm ERR! ").to_string())
}
