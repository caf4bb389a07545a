//! An OCI image layout on disk, layers and documents, written completely or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::config::paths::file_name;
use espalier_core::config::words::Inside;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::{disk, owned};
use serde_json::Value;

use super::sealed_tar;
use crate::plan::image::documents::{
    BLOBS, Blob, INDEX, LAYOUT, Naming, Sealed, config, index, layout, manifest,
};
use crate::plan::image::{Content, Layer, PACKAGE, is_of_one_flavor, with_folders};
use crate::plan::linked::{self, Named};
use crate::plan::manifest::Manifest;

/// The contents of an image, layer by layer.
#[derive(Clone, Debug, Default)]
pub struct Layers(Vec<Layer<PathBuf>>);

/// Returns a layer with the listed files of the toolchain in `folder`: path in the image to path in the toolchain.
///
/// # Errors
///
/// One of `files` does not exist.
pub fn runtime(folder: &Path, files: &BTreeMap<Inside, Inside>) -> Result<Layer<PathBuf>> {
    let mut layer = Layer::new();
    for (to, from) in files {
        let path = folder.join(from.as_str());
        if path.is_dir() {
            layer.extend(sealed_tar::below(&path, to.as_str())?);
        } else if disk::exists(&path) {
            layer.insert(to.to_string(), sealed_tar::content(path)?);
        } else {
            return Err(Error::environment(format!("the toolchain has no `{from}`"))
                .hint("fix `runtime` in ci/flavors.toml"));
        }
    }
    Ok(layer)
}

/// A written image.
#[derive(Clone, Debug)]
pub struct Written {
    /// sha256 of its manifest, which identifies it in registries.
    pub sha256: String,
    /// Its layers.
    pub layers: Vec<Sealed>,
}

impl Layers {
    /// Arranges the layers: the folder `base` with `accounts`; `runtime`, unless it is empty; the part of `package`
    /// that flavors share, and `health` as the program [`crate::plan::image::HEALTH`]; the rest of `package`.
    ///
    /// # Errors
    ///
    /// A folder cannot be read, or has a name that is not UTF-8.
    pub fn new(
        base: (&Path, Layer<PathBuf>),
        runtime: Layer<PathBuf>,
        health: &Path,
        package: &Path,
    ) -> Result<Layers> {
        let (base, accounts) = base;
        let mut first = sealed_tar::below(base, "")?;
        first.extend(accounts);
        let (last, mut middle): (Layer<PathBuf>, Layer<PathBuf>) = sealed_tar::below(package, PACKAGE)?
            .into_iter()
            .partition(|(path, _)| is_of_one_flavor(&path[PACKAGE.len() + 1..]));
        middle.insert(crate::plan::image::HEALTH.to_string(), Content::File(health.to_path_buf()));
        let layers = [first, runtime, middle, last].into_iter().filter(|layer| !layer.is_empty());
        Ok(Layers(layers.map(with_folders).collect()))
    }

    /// Returns the libraries that programs of the image link and that the image lacks.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn unanswered(&self) -> Result<Vec<String>> {
        let Some((base, rest)) = self.0.split_first() else { return Ok(Vec::new()) };
        let mut ours = Vec::new();
        for layer in rest {
            ours.extend(linked_in(layer)?);
        }
        Ok(linked::unanswered(&ours, &linked_in(base)?))
    }

    /// Writes an image of these layers to the folder `to`, replacing its content.
    ///
    /// # Errors
    ///
    /// The disk is full: then `to` is unchanged.
    pub fn write(
        &self,
        package: &Manifest,
        naming: Naming<'_>,
        scratch: &Path,
        to: &Path,
    ) -> Result<Written> {
        let scratch = disk::scratch_folder(scratch, "image")?;
        let new = scratch.path().join("new");
        let blobs = new.join(BLOBS);
        disk::create_folder(&blobs)?;
        let mut layers = Vec::new();
        for layer in &self.0 {
            let file = blobs.join("layer");
            let sealed = sealed_tar::write(layer, &file)?;
            owned::rename(&file, &blobs.join(&sealed.blob.sha256))?;
            layers.push(sealed);
        }
        let config = write_blob(&blobs, &config(package, naming, &layers))?;
        let manifest = write_blob(&blobs, &manifest(&config, &layers))?;
        disk::write_atomically(&new.join(INDEX), &bytes(&index(package, &manifest)))?;
        disk::write_atomically(&new.join(LAYOUT), &bytes(&layout()))?;
        if let Some(parent) = to.parent() {
            disk::create_folder(parent)?;
        }
        if disk::exists(to) {
            owned::rename(to, &scratch.path().join("old"))?;
        }
        owned::rename(&new, to)?;
        Ok(Written { sha256: manifest.sha256, layers })
    }
}

fn write_blob(blobs: &Path, document: &Value) -> Result<Blob> {
    let bytes = bytes(document);
    let sha256 = disk::sha256(&bytes);
    disk::write_atomically(&blobs.join(&sha256), &bytes)?;
    Ok(Blob { sha256, bytes: bytes.len() as u64 })
}

fn bytes(document: &Value) -> Vec<u8> {
    format!("{document}\n").into_bytes()
}

/// Returns the libraries that programs and libraries of a layer link; a link counts as the library that it leads to.
fn linked_in(layer: &Layer<PathBuf>) -> Result<Vec<Named>> {
    let mut found = Vec::new();
    for (path, content) in layer {
        let file = match content {
            Content::File(file) => file.clone(),
            _ => continue,
        };
        let damaged = |why: String| Error::no(format!("`{path}` is not a program that can be read: {why}"));
        if let Some(linked) = linked::read(&disk::read(&file)?).map_err(damaged)? {
            found.push((path.clone(), linked));
        }
    }
    for (path, content) in layer {
        let Content::Link(target) = content else { continue };
        let real = file_name(target);
        let same = found.iter().find(|(other, _)| file_name(other) == real);
        if let Some((_, linked)) = same.cloned() {
            found.push((path.clone(), linked));
        }
    }
    Ok(found)
}
