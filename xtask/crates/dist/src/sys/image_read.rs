//! The package in an image layout, read without extracting anything: an image is untrusted.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;

use espalier_core::config::words::Sha256;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use serde_json::Value;

use super::archive::{ArchiveError, explained, take};
use crate::plan::image::PACKAGE;
use crate::plan::image::documents::{BLOBS, INDEX, LAYOUT, labels_of};
use crate::plan::shipped::Contents;

/// Maximum size of a document of an image, in bytes.
const DOCUMENT_LIMIT: u64 = 4 << 20;

/// Whether `folder` is an image layout.
#[must_use]
pub fn is_image(folder: &Path) -> bool {
    disk::exists(&folder.join(LAYOUT))
}

/// Returns the package in the only image of a layout, and its labels. Every blob must have the digest that its name
/// states, and be referenced by the image.
///
/// # Errors
///
/// Check failed: a blob has another digest, is missing or unreferenced; a layer is damaged.
pub fn read(folder: &Path) -> Result<(Contents, Value)> {
    let mut named = BTreeSet::new();
    let index = document(&folder.join(INDEX), INDEX)?;
    let [entry] = index["manifests"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(Error::no(format!("`{INDEX}` does not name one image")));
    };
    let manifest = blob(folder, entry, &mut named)?;
    let manifest = document(&folder.join(BLOBS).join(&manifest), &manifest)?;
    let config = blob(folder, &manifest["config"], &mut named)?;
    let config = document(&folder.join(BLOBS).join(&config), &config)?;
    let layers = manifest["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let diffs = config["rootfs"]["diff_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
    if layers.is_empty() || layers.len() != diffs.len() {
        return Err(Error::no("the image's manifest and its configuration have not the same layers"));
    }
    let mut contents = Contents::default();
    for (layer, diff) in layers.iter().zip(diffs) {
        let name = blob(folder, layer, &mut named)?;
        read_layer(&folder.join(BLOBS).join(&name), &name, diff, &mut contents)?;
    }
    for file in disk::files_in(&folder.join(BLOBS))? {
        if !named.contains(&file) {
            contents.others.push(format!("the blob `{file}` is named by nothing"));
        }
    }
    Ok((contents, labels_of(&config)))
}

fn document(path: &Path, name: &str) -> Result<Value> {
    let damaged = |why: String| Error::no(format!("`{name}` of the image cannot be read")).detail(why);
    if disk::exists(path) && disk::size(path)? > DOCUMENT_LIMIT {
        return Err(damaged("it is too long".to_string()));
    }
    let bytes = disk::read_if_there(path)?.ok_or_else(|| damaged("it is missing".to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))
}

/// Verifies the blob that `entry` describes and returns its name.
fn blob(folder: &Path, entry: &Value, named: &mut BTreeSet<String>) -> Result<String> {
    let digest = entry["digest"].as_str().unwrap_or_default();
    let name = digest.strip_prefix("sha256:").and_then(|name| Sha256::try_from(name.to_string()).ok());
    let name =
        name.ok_or_else(|| Error::no(format!("the image names a blob `{}`", digest.escape_debug())))?;
    let path = folder.join(BLOBS).join(name.as_str());
    if !disk::exists(&path) {
        return Err(Error::no(format!("the blob `{}` is missing", name.as_str())));
    }
    let (size, found) = (disk::size(&path)?, disk::sha256_of_file(&path)?);
    if found != name.as_str() || entry["size"] != size {
        return Err(Error::no(format!("the blob `{}` is another file", name.as_str()))
            .detail(format!("found sha256 {found}, {size} bytes")));
    }
    named.insert(name.as_str().to_string());
    Ok(name.as_str().to_string())
}

fn read_layer(path: &Path, name: &str, diff: &Value, contents: &mut Contents) -> Result<()> {
    let open = || {
        let file = std::fs::File::open(path).map_err(|error| disk::explain("read", path, &error))?;
        Ok::<_, Error>(flate2::read::MultiGzDecoder::new(io::BufReader::new(file)))
    };
    let tar = disk::sha256_of(&mut open()?).map_err(|error| explained(name, ArchiveError::Io(error)))?;
    if *diff != format!("sha256:{tar}") {
        return Err(Error::no(format!("the layer `{name}` is not the one of the configuration"))
            .detail(format!("found sha256 {tar}")));
    }
    members(open()?, contents).map_err(|why| explained(name, why))
}

/// Reads the members that belong to the package. A layer that deletes or replaces a file of another one is
/// recorded as a finding: our images have none.
fn members(stream: impl Read, contents: &mut Contents) -> std::result::Result<(), ArchiveError> {
    let mut tar = tar::Archive::new(stream);
    for entry in tar.entries()? {
        let mut entry = entry?;
        let bytes = entry.path_bytes().into_owned();
        let path =
            String::from_utf8(bytes).map_err(|_| ArchiveError::Hostile("a name is not UTF-8".to_string()))?;
        let Some(below) = path.trim_start_matches("./").strip_prefix(PACKAGE) else { continue };
        let below = below.trim_matches('/').to_string();
        match entry.header().entry_type() {
            tar::EntryType::Directory => {}
            tar::EntryType::Regular if !contents.files.contains_key(&below) => {
                take(&mut entry, &below, contents)?
            }
            tar::EntryType::Regular => contents.others.push(format!("`{below}` is in two layers")),
            _ => contents.others.push(format!("`{below}` is a link, a device or a pipe")),
        }
    }
    Ok(())
}
