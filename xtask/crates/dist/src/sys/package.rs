//! Assembling a package: `bin/`, `lib/`, `manifest.json`, completely or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::owned;
use serde::Serialize;

use crate::plan::manifest::{Manifest, Stamp};
use crate::plan::shipped::{self, Origin, library_names, provenance, sbom};

/// The contents of a package.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The package that provides the programs and libraries, for a build that makes only modules; a build with its
    /// own programs has none.
    pub host: Option<PathBuf>,
    /// The build folder with the compiler's output.
    pub built: PathBuf,
    /// Programs, by target name.
    pub programs: Vec<String>,
    /// Backend modules, by target name, which a program looks for beside itself; `*` matches any ending.
    pub modules: Vec<String>,
    /// Other files, each with its path in the package.
    pub others: Vec<(PathBuf, &'static str)>,
    /// Texts, by their path in the package.
    pub texts: BTreeMap<String, Vec<u8>>,
}

/// Copies programs, modules and every library that was built into a new folder, writes its documents, and swaps it
/// in.
///
/// # Errors
///
/// A module was not built, or the disk is full.
pub fn assemble(contents: &Contents, package: &Path, mut manifest: Manifest, origin: &Origin) -> Result<()> {
    let parent = package.parent().unwrap_or(Path::new("."));
    let scratch = disk::scratch_folder(parent, &format!("{}package", disk::TEMPORARY_PREFIX))?;
    let new = scratch.path().join("new");
    disk::create_folder(&new.join("lib"))?;
    for (from, to) in contents.files()? {
        disk::copy(&from, &new.join(to))?;
    }
    for (path, text) in &contents.texts {
        disk::write_atomically(&new.join(path), text)?;
    }
    manifest.files = digests(&new)?;
    describe(&new, &mut manifest, origin)?;
    swap(&new, package, &scratch.path().join("old"))
}

/// Each document lists the files written before it: the SBOM the binaries, the provenance those and the SBOM, the
/// manifest all of them.
fn describe(new: &Path, manifest: &mut Manifest, origin: &Origin) -> Result<()> {
    let digest = write_json(new, shipped::SBOM, &sbom::document(origin, manifest))?;
    manifest.files.insert(shipped::SBOM.to_string(), digest);
    let digest = write_json(new, shipped::PROVENANCE, &provenance::statement(origin, manifest))?;
    manifest.files.insert(shipped::PROVENANCE.to_string(), digest);
    write_json(new, shipped::MANIFEST, manifest).map(drop)
}

/// Writes `value` and returns the digest of the file.
fn write_json(folder: &Path, name: &str, value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::environment(format!("`{name}` cannot be written: {error}")))?;
    let text = format!("{text}\n");
    disk::write_atomically(&folder.join(name), text.as_bytes())?;
    Ok(disk::sha256(text.as_bytes()))
}

impl Contents {
    /// Returns the source and the path in the package of each file.
    fn files(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let mut files = self.files_of_host()?;
        for program in &self.programs {
            let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
            files.push((self.built.join(&name), Path::new("bin").join(name)));
        }
        files.extend(self.others.iter().map(|(file, path)| (file.clone(), PathBuf::from(path))));
        let built = libraries(&self.built)?;
        for pattern in &self.modules {
            if !built.keys().any(|library| is_module(library, pattern)) {
                return Err(Error::no(format!("the module `{pattern}` was not built"))
                    .hint("`modules` of `ci/flavors.toml` names CMake's targets"));
            }
        }
        for (library, file) in built {
            let is_module = is_one_of(&library, &self.modules);
            // If a build makes only modules, its libraries are the host's, which the package already has.
            if is_module || self.host.is_none() {
                let folder = if is_module { "bin" } else { "lib" };
                files.push((file, Path::new(folder).join(library)));
            }
        }
        Ok(files)
    }

    /// Returns the files of the host package, except those that describe only that package.
    fn files_of_host(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let Some(host) = &self.host else { return Ok(Vec::new()) };
        let documents = [shipped::MANIFEST, shipped::SBOM, shipped::PROVENANCE].map(Path::new);
        let files = disk::files_below(host)?.into_iter().filter(|file| !documents.contains(&file.as_path()));
        Ok(files.map(|file| (host.join(&file), file)).collect())
    }
}

/// Whether a library is one of the modules in `modules`.
#[must_use]
pub fn is_one_of(library: &Path, modules: &[String]) -> bool {
    modules.iter().any(|pattern| is_module(library, pattern))
}

/// Whether a library matches `pattern`: both `libggml-rpc.so` and `ggml-rpc.dll` match `ggml-rpc`.
fn is_module(library: &Path, pattern: &str) -> bool {
    let Some(stem) = library.file_stem().and_then(|stem| stem.to_str()) else { return false };
    let name = stem.strip_prefix("lib").unwrap_or(stem);
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// Two renames: a kill between them leaves no package, and the next run assembles it again.
fn swap(new: &Path, package: &Path, old: &Path) -> Result<()> {
    if disk::exists(package) {
        owned::rename(package, old)?;
    }
    owned::rename(new, package)
}

/// Returns each library once, by the name that programs load, with the file that it resolves to.
fn libraries(built: &Path) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut names: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for file in disk::files_below(built)? {
        let Some(name) = file.to_str().filter(|name| is_library(name)) else { continue };
        let path = built.join(&file);
        let real = path.canonicalize().map_err(|error| disk::explain("look at", &path, &error))?;
        names.entry(real).or_default().push(name.to_string());
    }
    let kept = |(real, names): (PathBuf, Vec<String>)| {
        library_names::asked_for(&names).map(|name| (PathBuf::from(name), real.clone()))
    };
    Ok(names.into_iter().filter_map(kept).collect())
}

fn is_library(name: &str) -> bool {
    [".so", ".dylib", ".dll"].iter().any(|mark| name.contains(mark))
}

/// Returns the sha256 of every file below `folder`, by its path in it.
pub fn digests(folder: &Path) -> Result<BTreeMap<String, String>> {
    let files = disk::files_below(folder)?;
    files
        .into_iter()
        .map(|file| Ok((file.display().to_string(), disk::sha256_of_file(&folder.join(&file))?)))
        .collect()
}

/// Records that the package is complete and passed the smoke test.
pub fn write_stamp(package: &Path, stamp: &Path, inputs: &str, sources: &str) -> Result<()> {
    let files = disk::files_below(package)?;
    let files = files
        .into_iter()
        .filter_map(|file| Some((file.display().to_string(), look(&package.join(&file))?)))
        .collect();
    let stamp_value = Stamp { inputs: inputs.to_string(), sources: sources.to_string(), files };
    let text = serde_json::to_vec(&stamp_value)
        .map_err(|error| Error::environment(format!("the stamp cannot be written: {error}")))?;
    disk::write_atomically(stamp, &text)
}

/// Reads a stamp; `None` if there is none, or one of another version of this tool.
pub fn read_stamp(stamp: &Path) -> Result<Option<Stamp>> {
    let text = disk::read_if_there(stamp)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

/// Whether every file of the package is unchanged since it was stamped.
pub fn is_as_stamped(package: &Path, stamp: &Stamp) -> bool {
    !stamp.files.is_empty() && stamp.files.iter().all(|(file, seen)| look(&package.join(file)) == Some(*seen))
}

fn look(path: &Path) -> Option<(u64, u128)> {
    let meta = fs::symlink_metadata(path).ok()?;
    let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((meta.len(), since.as_nanos()))
}
