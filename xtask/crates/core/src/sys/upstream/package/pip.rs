//! Source distributions of Python packages.
//!
//! Every command of pip that downloads a source distribution also runs its build backend, to get its metadata: code of
//! the package. The script of this module is pip's own `download` command without that step.

use std::path::{Path, PathBuf};

use crate::config::words::Sha256;
use crate::error::{Error, Result};
use crate::sys::machine::disk;
use crate::sys::machine::process::Run;
use crate::sys::machine::tools::{PIP_PATIENCE, pip_client};
use crate::sys::machine::watched::{Download, succeeded};
use crate::ui::{Ui, Unit};

const SCRIPT: &str = include_str!("pip_sdist.py");

const INSTALL: &str =
    "install Python 3 with pip (Debian: `apt-get install python3-pip`), or use another source";

/// The script's message for a machine without pip, or with one whose parts have other names.
const UNUSABLE: &str = "this pip cannot be used";

/// Downloads the source distribution `requirement`, `NAME==VERSION`, into `folder` and verifies its digest; returns
/// the archive. None of its code runs.
pub(super) fn download(
    folder: &Path,
    requirement: &str,
    sha256: &Sha256,
    bytes: Option<u64>,
    ui: &Ui,
) -> Result<PathBuf> {
    let (script, to) = (folder.join("pip_sdist.py"), folder.join("archive"));
    disk::create_folder(&to)?;
    disk::write_atomically(&script, SCRIPT.as_bytes())?;
    let run = Run::new("python3").install_hint(INSTALL).arg(&script);
    let run = pip_client(run, folder).args(["--no-binary", ":all:", "--dest"]).arg(&to);
    let run = run.args(["--", requirement, sha256.as_str()]);
    let (words, mut log) = (run.words(), Vec::new());
    let progress = &mut ui.progress(requirement, bytes, Unit::Bytes);
    let speech = |line: &str| Some(line.to_string());
    let pip = Download { program: "pip", folder: &to, patience: PIP_PATIENCE, progress, speech };
    let status = pip.run(run, &mut log)?;
    succeeded("pip", &words, status, &log).map_err(|error| {
        match log.iter().any(|line| line.contains(UNUSABLE)) {
            true => error.hint(INSTALL),
            false => error,
        }
    })?;
    verified(to.join("sdist.tar.gz"), requirement, sha256)
}

fn verified(archive: PathBuf, requirement: &str, sha256: &Sha256) -> Result<PathBuf> {
    if !disk::exists(&archive) {
        return Err(Error::environment("pip succeeded but downloaded no package"));
    }
    let found = disk::sha256_of_file(&archive)?;
    if found == sha256.as_str() {
        return Ok(archive);
    }
    Err(Error::no(format!("the source distribution {requirement} is not the pinned one"))
        .detail(format!("expected sha256 {}", sha256.as_str()))
        .detail(format!("found    sha256 {found}, {} bytes", disk::size(&archive)?))
        .hint(
            "do not trust this file: use another source, or correct `sha256` in `pins.toml` if that is wrong",
        ))
}
