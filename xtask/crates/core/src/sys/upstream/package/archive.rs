//! Downloaded archives, read as untrusted data: the names in them are compared and never become paths on disk.

use std::borrow::Cow;
use std::cell::Cell;
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
    /// Whether its owner may execute it.
    pub is_executable: bool,
    /// Target of a symbolic link; empty for any other kind.
    pub target: Vec<u8>,
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
    /// A symbolic link.
    Symlink,
    /// A hard link, a device, or a sparse file.
    Other,
}

/// Maximum size of an unpacked archive in bytes: an archive of a few kilobytes can unpack to terabytes.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// Maximum size of what precedes the content of an entry, in bytes: its header, and its path and attributes if they are
/// long. The `tar` crate holds them in memory, whatever their size.
const HEAD_LIMIT: u64 = 1 << 20;

/// Maximum size of an extracted file in bytes: several times that of any release.
const FILE_LIMIT: u64 = 1 << 30;

/// Passes the entries of a `.tar.gz` to `visit`, in order, until it returns a value, and returns that.
pub(super) fn visit<T>(
    archive: &Path,
    mut visit: impl FnMut(Entry<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    let file = File::open(archive).map_err(|error| disk::explain("read", archive, &error))?;
    let head_left = Cell::new(HEAD_LIMIT);
    let unpacked = Limited { inner: GzDecoder::new(file), left: UNPACKED_LIMIT, head_left: &head_left };
    let mut tar = tar::Archive::new(unpacked);
    for entry in tar.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        head_left.set(u64::MAX);
        let kind = kind_of(&entry);
        // A note of the archiver, such as the commit that `git archive` packed.
        let is_note = entry.header().entry_type().is_pax_global_extensions();
        let found = if is_note { None } else { visit(described(&mut entry, kind))? };
        if found.is_some() {
            return Ok(found);
        }
        // The rest of the content does not count as a part of the next head. That of a sparse file may be endless.
        if kind != Kind::Other {
            io::copy(&mut entry, &mut io::sink()).map_err(|error| damaged(&error))?;
        }
        head_left.set(HEAD_LIMIT);
    }
    Ok(None)
}

fn described<'e, R: Read>(entry: &'e mut tar::Entry<'_, R>, kind: Kind) -> Entry<'e> {
    /// The owner's permission to execute a file.
    const EXECUTABLE: u32 = 0o100;
    let target = entry.link_name_bytes().filter(|_| kind == Kind::Symlink);
    Entry {
        path: entry.path_bytes().into_owned(),
        kind,
        is_executable: entry.header().mode().is_ok_and(|mode| mode & EXECUTABLE != 0),
        target: target.map(Cow::into_owned).unwrap_or_default(),
        size: entry.size(),
        content: entry,
    }
}

fn kind_of<R: Read>(entry: &tar::Entry<'_, R>) -> Kind {
    match entry.header().entry_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_symlink() => Kind::Symlink,
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

/// A stream that fails after `left` bytes, and after `head_left` of them, which the reader of the archive sets.
struct Limited<'h, R> {
    inner: R,
    left: u64,
    head_left: &'h Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| io::Error::other("it unpacks to too many bytes"))?;
        let left = self.head_left.get().checked_sub(bytes);
        self.head_left.set(left.ok_or_else(|| io::Error::other("a path in it is too long"))?);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, EntryType, Header};

    use super::*;

    #[test]
    fn a_stream_ends_with_an_error_at_its_limit() {
        let read = |left: u64, head: u64| {
            let head_left = &Cell::new(head);
            Limited { inner: &b"12345678"[..], left, head_left }.read_to_end(&mut Vec::new())
        };
        assert_eq!(read(8, 8).unwrap(), 8);
        assert_eq!(read(7, 8).unwrap_err().to_string(), "it unpacks to too many bytes");
        assert_eq!(read(8, 7).unwrap_err().to_string(), "a path in it is too long");
    }

    /// Returns the lengths of the paths in an archive with these entries: kind, size of the content, and path.
    fn lengths(entries: &[(EntryType, usize, &str)]) -> Result<Vec<usize>> {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tar.gz");
        let mut tar = Builder::new(GzEncoder::new(File::create(&archive).unwrap(), Compression::fast()));
        for (kind, size, path) in entries {
            let (mut header, content) = (Header::new_gnu(), vec![b'x'; *size]);
            header.set_entry_type(*kind);
            header.set_size(*size as u64);
            tar.append_data(&mut header, path, &content[..]).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        let mut lengths = Vec::new();
        let none = visit(&archive, |entry| {
            lengths.push(entry.path.len());
            Ok(None::<()>)
        });
        none.map(|_| lengths)
    }

    /// The `tar` crate reads a long path, and the attributes of an entry, before it returns the entry.
    #[test]
    fn a_head_has_a_limit_and_content_that_is_not_read_has_none() {
        let big = usize::try_from(2 * HEAD_LIMIT).unwrap();
        let long = "long-".repeat(1000) + "path";
        let good = [(EntryType::Regular, big, "a"), (EntryType::Regular, 1, long.as_str())];
        assert_eq!(lengths(&good).unwrap(), [1, long.len()]);
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let message = lengths(&[(kind, big, "a"), (EntryType::Regular, 1, "b")]).unwrap_err().to_string();
            assert!(message.contains("the package is damaged\n  a path in it is too long"), "{message}");
        }
    }
}
