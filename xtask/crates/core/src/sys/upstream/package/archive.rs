//! Downloaded archives, read as untrusted data: the names in them are compared and never become paths on disk.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::error::{Error, Result};
use crate::sys::machine::disk;

/// One entry of an archive.
pub(super) struct Entry<'a> {
    /// Its path, as the archive spells it.
    pub path: Vec<u8>,
    /// Its kind.
    pub kind: Kind,
    /// Size in bytes, as the archive claims it.
    pub size: u64,
    /// Its content.
    pub content: &'a mut dyn Read,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link, a device, or a sparse file.
    Other,
}

/// Maximum size of an unpacked archive in bytes: an archive of a few kilobytes can unpack to terabytes.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// Maximum size of an extracted file in bytes: several times that of any release.
const FILE_LIMIT: u64 = 1 << 30;

/// Passes the entries of a `.tar.gz` to `visit`, in order, until it returns a value, and returns that.
pub(super) fn visit<T>(
    archive: &Path,
    mut visit: impl FnMut(Entry<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let file = File::open(archive).map_err(|error| disk::explain("read", archive, &error))?;
    let mut tar = tar::Archive::new(Limited { inner: GzDecoder::new(file), left: UNPACKED_LIMIT });
    for entry in tar.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        // A note of the archiver, such as the commit that `git archive` packed.
        if entry.header().entry_type().is_pax_global_extensions() {
            continue;
        }
        let (path, kind, size) = (entry.path_bytes().into_owned(), kind_of(&entry), entry.size());
        if let Some(found) = visit(Entry { path, kind, size, content: &mut entry })? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn kind_of<R: Read>(entry: &tar::Entry<'_, R>) -> Kind {
    match entry.header().entry_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        _ => Kind::Other,
    }
}

/// Returns the error for an archive that cannot be read.
pub(super) fn damaged(error: &io::Error) -> Error {
    Error::environment("the package is damaged").detail(disk::reason(error))
}

/// Writes the file `member` of a `.tar.gz` to `to`; nothing else of the archive is unpacked.
pub(super) fn take_file(archive: &Path, member: &str, to: &Path) -> Result<PathBuf> {
    let taken = visit(archive, |entry| {
        if entry.path != member.as_bytes() || entry.kind != Kind::File {
            return Ok(None);
        }
        if entry.size > FILE_LIMIT {
            return Err(Error::no(format!("`{member}` in the package claims {} bytes", entry.size)));
        }
        let mut out = File::create(to).map_err(|error| disk::explain("write", to, &error))?;
        io::copy(entry.content, &mut out).map_err(|error| disk::explain("unpack", to, &error))?;
        Ok(Some(to.to_path_buf()))
    })?;
    taken.ok_or_else(|| Error::environment(format!("the package has no `{member}`")))
}

/// A stream that fails after `left` bytes.
struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = u64::try_from(count).ok().and_then(|count| self.left.checked_sub(count));
        self.left = left.ok_or_else(|| io::Error::other("it unpacks to too many bytes"))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_with_an_error_at_its_limit() {
        let read = |left: u64| Limited { inner: &b"12345678"[..], left }.read_to_end(&mut Vec::new());
        assert_eq!(read(8).unwrap(), 8);
        assert_eq!(read(7).unwrap_err().to_string(), "it unpacks to too many bytes");
    }
}
