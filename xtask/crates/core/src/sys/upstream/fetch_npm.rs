//! Fetching a git bundle from a package of the npm registry.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;
use crate::sys::machine::watched::{Download, PATIENCE, succeeded};
use crate::ui::{Ui, Unit};

/// Downloads a package with the npm client, which verifies its digest, and extracts one file.
pub(super) fn fetch_npm(
    scratch: &Path,
    package: &str,
    version: &str,
    member: &str,
    bytes: Option<u64>,
    ui: &Ui,
) -> Result<PathBuf> {
    let folder = scratch.join("npm");
    disk::create_folder(&folder)?;
    // A separate cache: its growth shows the progress, and it is removed afterwards.
    let run = Run::new("npm")
        .install_hint("install Node.js with npm (Debian: `apt-get install npm`), or use another source")
        .args(["pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", "--cache"])
        .arg(folder.join("cache"))
        .arg("--pack-destination")
        .arg(&folder)
        .arg("--")
        .arg(format!("{package}@{version}"))
        .current_folder(&folder);
    let (words, cache, mut said) = (run.words(), folder.join("cache/_cacache"), Vec::new());
    let progress = &mut ui.progress(&format!("{package}@{version}"), bytes, Unit::Bytes);
    let npm = Download { program: "npm", folder: &cache, patience: PATIENCE, progress, speech: npm_words };
    let status = npm.run(run, &mut said)?;
    succeeded("npm", &words, status, &said)?;
    let archive = disk::files_below(&folder)?
        .into_iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| Error::environment("npm ended well and left no package"))?;
    take_member(&folder.join(archive), member, &scratch.join("source.bundle"))
}

fn npm_words(line: &str) -> Option<String> {
    Some(line.trim_start_matches("npm error ").trim_start_matches("npm ERR! ").to_string())
}

/// Maximum size of the extracted file in bytes: several times that of any release.
const MEMBER_LIMIT: u64 = 1 << 30;

/// Writes one member of a `.tgz` to `to`; nothing else of the archive is unpacked.
fn take_member(archive: &Path, member: &str, to: &Path) -> Result<PathBuf> {
    let fail =
        |error: std::io::Error| Error::environment("the package is damaged").detail(disk::reason(&error));
    let file = std::fs::File::open(archive).map_err(|error| disk::explain("read", archive, &error))?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    for entry in tar.entries().map_err(fail)? {
        let mut entry = entry.map_err(fail)?;
        if entry.path_bytes().as_ref() != member.as_bytes() || !entry.header().entry_type().is_file() {
            continue;
        }
        if entry.size() > MEMBER_LIMIT {
            return Err(Error::no(format!("`{member}` in the package claims {} bytes", entry.size())));
        }
        let mut out = std::fs::File::create(to).map_err(|error| disk::explain("write", to, &error))?;
        std::io::copy(&mut entry, &mut out).map_err(|error| disk::explain("unpack", to, &error))?;
        return Ok(to.to_path_buf());
    }
    Err(Error::environment(format!("the package has no `{member}`")))
}
