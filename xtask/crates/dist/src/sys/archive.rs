//! Packages as archives: written so that the same files yield the same bytes, and read without extracting anything,
//! since an archive is untrusted.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use espalier_core::config::toolchains::member::{Kind, place};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;

use super::sealed_tar;
use crate::plan::shipped::{Contents, MANIFEST, PROVENANCE, SBOM};

/// Maximum unpacked size of one archive, in bytes: several times the largest known one.
const BYTES_LIMIT: u64 = 8 << 30;
/// Maximum number of members of one archive.
const MEMBERS_LIMIT: u64 = 100_000;
/// Maximum size of a text of a package that is read, in bytes.
const TEXT_LIMIT: u64 = 64 << 20;

/// Reads the package in a folder. Entries that are not regular files are recorded as such, not followed.
///
/// # Errors
///
/// A file cannot be read.
pub fn read_folder(folder: &Path) -> Result<Contents> {
    let mut contents = Contents::default();
    for file in disk::files_below(folder)? {
        let path = folder.join(&file);
        let name = file.display().to_string().replace('\\', "/");
        let meta = fs::symlink_metadata(&path).map_err(|error| disk::explain("look at", &path, &error))?;
        if !meta.is_file() {
            contents.others.push(format!("`{name}` is a link, a device or a pipe"));
            continue;
        }
        contents.files.insert(name.clone(), disk::sha256_of_file(&path)?);
        if is_text(&name) && meta.len() <= TEXT_LIMIT {
            contents.texts.insert(name, disk::read(&path)?);
        }
    }
    Ok(contents)
}

fn is_text(name: &str) -> bool {
    [MANIFEST, SBOM, PROVENANCE].contains(&name)
}

/// Reads the package in an archive; also returns the name of its one top folder.
///
/// # Errors
///
/// Check failed: a member leads out of its folder, is a link or a device, or occurs twice; data follows the end.
/// Environment error: the archive cannot be read, or is truncated.
pub fn read_archive(archive: &Path) -> Result<(String, Contents)> {
    let file = fs::File::open(archive).map_err(|error| disk::explain("read", archive, &error))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    read(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))).map_err(|why| explained(&name, why))
}

/// Returns the error for a refusal while reading the archive called `name`.
pub(super) fn explained(name: &str, why: ArchiveError) -> Error {
    match why {
        ArchiveError::Hostile(why) => Error::no(format!("`{name}` is refused: {why}")),
        ArchiveError::Io(error) => {
            Error::no(format!("`{name}` is damaged or not an archive")).detail(disk::reason(&error))
        }
    }
}

/// Reason why an archive is not read to its end.
pub(super) enum ArchiveError {
    Hostile(String),
    Io(io::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> ArchiveError {
        ArchiveError::Io(error)
    }
}

fn read(stream: impl Read) -> std::result::Result<(String, Contents), ArchiveError> {
    let (mut contents, mut tops, mut seen) = (Contents::default(), BTreeSet::new(), BTreeSet::new());
    let (mut bytes, mut members) = (0, 0);
    let mut tar = tar::Archive::new(stream);
    for entry in tar.entries()? {
        let mut entry = entry?;
        bytes += entry.size();
        members += 1;
        if bytes > BYTES_LIMIT || members > MEMBERS_LIMIT {
            return Err(ArchiveError::Hostile(format!(
                "more than {BYTES_LIMIT} bytes or {MEMBERS_LIMIT} members"
            )));
        }
        let (path, is_folder) = checked(&entry)?;
        let (top, below) = path.split_once('/').unwrap_or((&path, ""));
        tops.insert(top.to_string());
        // On some file systems names that differ only in case are the same file.
        if !seen.insert(path.to_lowercase()) {
            return Err(ArchiveError::Hostile(format!("`{path}` is in it twice")));
        }
        match (is_folder, below) {
            (true, _) => {}
            (false, "") => return Err(ArchiveError::Hostile(format!("`{path}` is in no folder"))),
            (false, below) => take(&mut entry, below, &mut contents)?,
        }
    }
    refuse_rest(tar.into_inner())?;
    match (tops.pop_first(), tops.pop_first()) {
        (Some(top), None) => Ok((top, contents)),
        (top, _) => Err(ArchiveError::Hostile(format!(
            "it has {} folders at its top",
            if top.is_some() { "several" } else { "no" }
        ))),
    }
}

/// Returns the path of a member, and whether it is a folder; refuses anything but files and folders.
fn checked<R: Read>(entry: &tar::Entry<'_, R>) -> std::result::Result<(String, bool), ArchiveError> {
    let bytes = entry.path_bytes().into_owned();
    let path =
        String::from_utf8(bytes).map_err(|_| ArchiveError::Hostile("a name is not UTF-8".to_string()))?;
    let kind = match entry.header().entry_type() {
        tar::EntryType::Directory => Kind::Folder,
        tar::EntryType::Regular => Kind::File,
        tar::EntryType::Symlink | tar::EntryType::Link => {
            return Err(ArchiveError::Hostile(format!("`{path}` is a link")));
        }
        _ => Kind::Other,
    };
    if path.chars().any(char::is_control) || path.starts_with('/') {
        return Err(ArchiveError::Hostile(format!(
            "`{}` is not a path inside a folder",
            path.escape_debug()
        )));
    }
    if entry.header().mode()? & 0o7000 != 0 {
        return Err(ArchiveError::Hostile(format!("`{path}` would run as another user")));
    }
    let inside = place(&path, kind).map_err(ArchiveError::Hostile)?;
    Ok((inside.to_string(), kind == Kind::Folder))
}

/// Adds a file to `contents`, with its text if it is one of those that describe the package.
pub(super) fn take<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    below: &str,
    contents: &mut Contents,
) -> std::result::Result<(), ArchiveError> {
    if is_text(below) && entry.size() <= TEXT_LIMIT {
        let mut text = Vec::new();
        entry.read_to_end(&mut text)?;
        contents.files.insert(below.to_string(), disk::sha256(&text));
        contents.texts.insert(below.to_string(), text);
    } else {
        contents.files.insert(below.to_string(), disk::sha256_of(entry)?);
    }
    Ok(())
}

/// Refuses data after the end of the archive: another program may read on where this one stops.
fn refuse_rest(mut stream: impl Read) -> std::result::Result<(), ArchiveError> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count if buffer[..count].iter().any(|byte| *byte != 0) => {
                return Err(ArchiveError::Hostile("data after its end".to_string()));
            }
            _ => {}
        }
    }
}

/// Writes the package in `folder` as an archive whose one folder is `top`.
///
/// # Errors
///
/// A file cannot be read, or the disk is full.
pub fn write(folder: &Path, top: &str, archive: &Path) -> Result<()> {
    sealed_tar::write(&sealed_tar::below(folder, top)?, archive).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Returns a member as an attacker writes it: the library would refuse most of these.
    fn member(path: &str, kind: tar::EntryType, mode: u32, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..164].copy_from_slice(b"p/other");
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        let padding = vec![0; content.len().next_multiple_of(512) - content.len()];
        [header.as_bytes(), content, &padding].concat()
    }

    fn file(path: &str) -> Vec<u8> {
        member(path, tar::EntryType::Regular, 0o644, b"x")
    }

    fn zipped(tar: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(tar).unwrap();
        writer.finish().unwrap()
    }

    fn result_of(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.tar.gz");
        std::fs::write(&path, bytes).unwrap();
        let message =
            read_archive(&path).map_or_else(|error| error.to_string(), |(top, _)| format!("read {top}"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was written");
        message
    }

    /// Terminates a tar as its format requires.
    fn archive(members: &[Vec<u8>]) -> Vec<u8> {
        zipped(&[members.concat(), vec![0; 1024]].concat())
    }

    #[test]
    fn hostile_archives_are_refused_and_nothing_is_written() {
        use tar::EntryType;
        let of_kind = |kind| member("p/a", kind, 0o644, b"");
        let cases: [(&str, Vec<Vec<u8>>); 14] = [
            ("`p/../../a` is not a path inside", vec![file("p/../../a")]),
            ("`../a` is not a path inside", vec![file("../a")]),
            ("`/etc/a` is not a path inside", vec![file("/etc/a")]),
            ("is not a path inside", vec![file("p/a\nb")]),
            ("is not a path inside", vec![file("p\\a")]),
            ("`p/a` is a link", vec![of_kind(EntryType::Symlink)]),
            ("`p/a` is a link", vec![of_kind(EntryType::Link)]),
            ("`p/a` is neither a file", vec![of_kind(EntryType::Char)]),
            ("`p/a` is neither a file", vec![of_kind(EntryType::Fifo)]),
            ("`p/a` would run as another user", vec![member("p/a", EntryType::Regular, 0o4755, b"")]),
            ("`p/A` is in it twice", vec![file("p/a"), file("p/A")]),
            ("it has several folders at its top", vec![file("p/a"), file("q/a")]),
            ("it has no folders at its top", vec![]),
            ("`a` is in no folder", vec![file("a")]),
        ];
        for (why, members) in cases {
            let message = result_of(&archive(&members));
            assert!(message.contains("`p.tar.gz` is refused: ") && message.contains(why), "{why}: {message}");
        }
        assert_eq!(result_of(&archive(&[file("p/a"), file("p/b/c")])), "read p");
    }

    #[test]
    fn archives_that_other_programs_would_read_further_are_refused() {
        let whole = archive(&[file("p/a")]);
        let behind = zipped(&[file("p/a"), vec![0; 1024], file("p/b")].concat());
        assert!(result_of(&behind).contains("data after its end"));
        let second = [whole.clone(), archive(&[file("p/../b")])].concat();
        assert!(result_of(&second).contains("data after its end"));
        // The first part has no end marker, so a second one continues the same tar.
        let joined = [zipped(&file("p/a")), archive(&[file("p/../b")])].concat();
        assert!(result_of(&joined).contains("`p/../b` is not a path inside"), "{}", result_of(&joined));
    }

    #[test]
    fn truncated_and_invalid_archives_are_reported() {
        let whole = archive(&[member("p/a", tar::EntryType::Regular, 0o644, &[7; 5000])]);
        for bytes in [&whole[..whole.len() / 2], b"not an archive", &[]] {
            let message = result_of(bytes);
            assert!(
                message.contains("`p.tar.gz` is damaged or not an archive") || message.contains("no folders"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        std::fs::create_dir_all(package.join("bin")).unwrap();
        for name in ["z", "bin/b", "bin/a"] {
            std::fs::write(package.join(name), name).unwrap();
        }
        let once = |name: &str| {
            let path = folder.path().join(name);
            write(&package, "top", &path).unwrap();
            std::fs::read(path).unwrap()
        };
        let first = once("first");
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(package.join("z")).unwrap().set_modified(old).unwrap();
        assert_eq!(first, once("second"));
        let (top, contents) = read_archive(&folder.path().join("first")).unwrap();
        assert_eq!((top.as_str(), contents), ("top", read_folder(&package).unwrap()));
    }
}
