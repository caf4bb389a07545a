//! Reproducible archives: sorted, owned by root, with one fixed time and plain modes, in a gzip without information
//! about where it was made.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use sha2::{Digest, Sha256};

use crate::plan::image::documents::{Blob, Sealed};
use crate::plan::image::{Content, Layer};

/// Modification time of every file: 1980-01-01, the earliest that every file system can store.
const TIME: u64 = 315_532_800;

/// Writes `members` to `archive`, in their order.
///
/// # Errors
///
/// A file cannot be read, or the disk is full.
pub fn write(members: &Layer<PathBuf>, archive: &Path) -> Result<Sealed> {
    let fail = |error: io::Error| disk::explain("write", archive, &error);
    let file = Counted::new(BufWriter::new(File::create(archive).map_err(fail)?));
    // 255 means "unknown operating system".
    let gzip = flate2::GzBuilder::new().mtime(0).operating_system(255);
    let gzip = gzip.write(file, flate2::Compression::new(6));
    let mut tar = tar::Builder::new(Counted::new(gzip));
    for (path, content) in members {
        append(&mut tar, path, content, &fail)?;
    }
    let plain = tar.into_inner().map_err(fail)?;
    let (gzip, tar_sha256, tar_bytes) = plain.end();
    let mut zipped = gzip.finish().map_err(fail)?;
    zipped.flush().map_err(fail)?;
    let (_, sha256, bytes) = zipped.end();
    Ok(Sealed { blob: Blob { sha256, bytes }, tar_sha256, tar_bytes })
}

fn append<W: Write>(
    tar: &mut tar::Builder<W>,
    path: &str,
    content: &Content<PathBuf>,
    fail: &impl Fn(io::Error) -> espalier_core::error::Error,
) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header.set_mode(0o644);
    match content {
        Content::Folder(mode) => {
            header.set_entry_type(tar::EntryType::Directory);
            header.set_mode(*mode);
            tar.append_data(&mut header, format!("{path}/"), io::empty()).map_err(fail)
        }
        Content::File(from) => {
            let bytes = disk::read(from)?;
            header.set_size(bytes.len() as u64);
            header.set_mode(if disk::is_executable(from) { 0o755 } else { 0o644 });
            tar.append_data(&mut header, path, &bytes[..]).map_err(fail)
        }
        Content::Text(text) => {
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, path, text.as_bytes()).map_err(fail)
        }
        Content::Link(target) => {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_mode(0o777);
            tar.append_link(&mut header, path, target).map_err(fail)
        }
    }
}

/// Returns every file and link below `folder`, at `top` in an archive.
///
/// # Errors
///
/// The metadata of a file cannot be read, or its name is not UTF-8.
pub fn below(folder: &Path, top: &str) -> Result<Layer<PathBuf>> {
    let mut layer = Layer::new();
    for file in disk::files_below(folder)? {
        let path = folder.join(&file);
        let Some(name) = file.to_str() else {
            return Err(Error::no(format!("the name of `{}` is not UTF-8", path.display())));
        };
        let name = name.replace(std::path::MAIN_SEPARATOR, "/");
        let name = if top.is_empty() { name } else { format!("{top}/{name}") };
        layer.insert(name, content(path)?);
    }
    Ok(layer)
}

/// Returns the content of a link or a file.
///
/// # Errors
///
/// The link cannot be read.
pub fn content(path: PathBuf) -> Result<Content<PathBuf>> {
    Ok(disk::link_target(&path)?.map_or(Content::File(path), Content::Link))
}

/// A writer that computes the digest and the size of the data written through it.
struct Counted<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W> Counted<W> {
    fn new(inner: W) -> Self {
        Counted { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn end(self) -> (W, String, u64) {
        let digits = self.hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        (self.inner, digits, self.bytes)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_in_these_words() {
        let member = [("a".to_string(), Content::Text("x".repeat(1 << 16)))];
        let message = write(&member.into(), Path::new("/dev/full")).unwrap_err().to_string();
        assert!(message.contains("free some disk space"), "{message}");
    }
}
