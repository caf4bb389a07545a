//! Unpacking of untrusted archives: no member may escape the folder, and sizes are limited.

use std::io::Read;
use std::path::Path;

use espalier_core::config::toolchains::member::{Kind, from_the_top, place};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;

use super::Work;

/// Maximum unpacked size of one archive, in bytes: several times the largest known one.
const BYTES_LIMIT: u64 = 4 << 30;

/// Maximum number of members of one archive.
const MEMBERS_LIMIT: u64 = 200_000;

impl Work<'_> {
    /// Unpacks a `.crate`: a folder `NAME-VERSION` in a gzipped tar.
    pub(super) fn unpack_crate(&self, file: &Path) -> Result<()> {
        let open = std::fs::File::open(file).map_err(|error| disk::explain("read", file, &error))?;
        unpack(flate2::read::GzDecoder::new(open), file, self.folder, Top::OfAFolder)
    }

    /// Unpacks the files that a `.deb` would install: dpkg-deb converts them to a tar, whatever their compression.
    pub(super) fn unpack_deb(&self, file: &Path) -> Result<()> {
        let run = Run::new("dpkg-deb").arg("--fsys-tarfile").arg(file);
        let run = run.install_hint("install dpkg (Debian: it is always there)");
        run.read_stdout(|stdout| unpack(stdout, file, self.folder, Top::OfAMachine))
    }

    /// Returns an error if a link below `folder` leads out of it.
    pub(super) fn audit(&self, folder: &Path) -> Result<()> {
        let real = folder.canonicalize().map_err(|error| disk::explain("read", folder, &error))?;
        for file in disk::files_below(folder)? {
            let leads_to = folder.join(&file).canonicalize();
            if leads_to.is_ok_and(|target| !target.starts_with(&real)) {
                return Err(Error::no(format!("`{}` leads out of the toolchain's folder", file.display())));
            }
        }
        Ok(())
    }
}

/// The root that absolute links of an archive refer to.
#[derive(Clone, Copy)]
enum Top {
    OfAFolder,
    OfAMachine,
}

/// Unpacks a tar stream, called `archive` in messages, into `folder`.
fn unpack(stream: impl Read, archive: &Path, folder: &Path, top: Top) -> Result<()> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let damaged = |error: std::io::Error| {
        Error::environment(format!("`{name}` is damaged")).detail(disk::reason(&error))
    };
    let mut tar = tar::Archive::new(stream);
    tar.set_preserve_mtime(false);
    let (mut bytes, mut members) = (0, 0);
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        bytes += entry.size();
        members += 1;
        if bytes > BYTES_LIMIT || members > MEMBERS_LIMIT {
            return Err(Error::no(format!(
                "`{name}` is refused: more than {BYTES_LIMIT} bytes or {MEMBERS_LIMIT} members"
            )));
        }
        take(&mut entry, folder, top).map_err(|why| refused(&name, why))?;
    }
    Ok(())
}

/// Result of unpacking one member.
type Taken<T> = std::result::Result<T, UnpackError>;

/// Reason why a member was not unpacked.
enum UnpackError {
    Hostile(String),
    Io(std::io::Error),
}

impl From<std::io::Error> for UnpackError {
    fn from(error: std::io::Error) -> UnpackError {
        UnpackError::Io(error)
    }
}

fn refused(archive: &str, why: UnpackError) -> Error {
    match why {
        UnpackError::Hostile(why) => Error::no(format!("`{archive}` is refused: {why}")),
        UnpackError::Io(error) => {
            Error::environment(format!("could not unpack `{archive}`")).detail(disk::reason(&error))
        }
    }
}

fn take<R: Read>(entry: &mut tar::Entry<'_, R>, folder: &Path, top: Top) -> Taken<()> {
    let bytes = entry.path_bytes().into_owned();
    let path = text(&bytes)?;
    let target = entry.link_name_bytes().map(|target| target.into_owned()).unwrap_or_default();
    let target = text(&target)?;
    if let (tar::EntryType::Symlink, Top::OfAMachine) = (entry.header().entry_type(), top)
        && let Some(target) = from_the_top(path, target)
    {
        return link(path, &target, folder);
    }
    let kind = match entry.header().entry_type() {
        tar::EntryType::Directory => Kind::Folder,
        tar::EntryType::Regular | tar::EntryType::Continuous => Kind::File,
        tar::EntryType::Symlink => Kind::Link(target),
        tar::EntryType::Link => Kind::SameAs(target),
        // Attributes of the members that follow; the library has read them already.
        tar::EntryType::XGlobalHeader => return Ok(()),
        _ => Kind::Other,
    };
    let to = folder.join(place(path, kind).map_err(UnpackError::Hostile)?);
    if kind == Kind::Folder {
        return Ok(std::fs::create_dir_all(to)?);
    }
    // The library checks again: it follows the links on the path, and refuses to write outside.
    match entry.unpack_in(folder)? {
        true => Ok(()),
        false => Err(UnpackError::Hostile(format!("`{path}` leads out of the folder"))),
    }
}

/// Unpacks a synthetic link: it passes the same checks, ours and the library's, as members of the archive.
fn link(path: &str, target: &str, folder: &Path) -> Taken<()> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_mode(0o777);
    header.set_size(0);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_link(&mut header, path, target)?;
    let bytes = tar.into_inner()?;
    let mut tar = tar::Archive::new(&bytes[..]);
    for entry in tar.entries()? {
        take(&mut entry?, folder, Top::OfAFolder)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Taken<&str> {
    std::str::from_utf8(bytes).map_err(|_| UnpackError::Hostile("a name in it is not UTF-8".to_string()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;

    use super::{Top, unpack};

    /// Returns a tar with one member of a kind that the library itself would not write.
    fn tar_of(path: &str, kind: tar::EntryType, target: &str, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        header.set_cksum();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append(&header, content).unwrap();
        tar.into_inner().unwrap()
    }

    /// Unpacks several archives into one folder, one after the other, and returns the message of the first error.
    fn error_of(archives: &[Vec<u8>]) -> (tempfile::TempDir, String) {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("toolchain");
        std::fs::create_dir(&folder).unwrap();
        let unpack = |archive: &Vec<u8>| unpack(&archive[..], Path::new("p.deb"), &folder, Top::OfAFolder);
        let message = archives.iter().map(unpack).find_map(Result::err);
        (outer, message.map_or_else(String::new, |error| error.to_string()))
    }

    #[test]
    fn files_folders_and_links_are_unpacked() {
        let (outer, message) = error_of(&[
            tar_of("./usr/bin/", tar::EntryType::Directory, "", b""),
            tar_of("./usr/bin/cc", tar::EntryType::Regular, "", b"program"),
            tar_of("./usr/cc", tar::EntryType::Symlink, "bin/cc", b""),
            tar_of("./usr/same", tar::EntryType::Link, "usr/bin/cc", b""),
        ]);
        assert_eq!(message, "");
        for name in ["usr/bin/cc", "usr/cc", "usr/same"] {
            assert_eq!(
                std::fs::read(outer.path().join("toolchain").join(name)).unwrap(),
                b"program",
                "{name}"
            );
        }
        use std::os::unix::fs::PermissionsExt;
        let mode = outer.path().join("toolchain/usr/cc").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn a_link_from_the_top_of_the_machine_stays_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let unpack =
            |archive: Vec<u8>| unpack(&archive[..], Path::new("p.deb"), folder.path(), Top::OfAMachine);
        unpack(tar_of("./lib/ld.so", tar::EntryType::Regular, "", b"loader")).unwrap();
        unpack(tar_of("./lib64/ld.so", tar::EntryType::Symlink, "/lib/ld.so", b"")).unwrap();
        assert_eq!(std::fs::read(folder.path().join("lib64/ld.so")).unwrap(), b"loader");
        let message = unpack(tar_of("./l", tar::EntryType::Symlink, "/../x", b"")).unwrap_err().to_string();
        assert!(message.contains("the link `l` leads out of the folder"), "{message}");
    }

    #[test]
    fn nothing_is_written_outside() {
        let file = |path: &str| tar_of(path, tar::EntryType::Regular, "", b"x");
        let link = |path: &str, target: &str| tar_of(path, tar::EntryType::Symlink, target, b"");
        let cases = [
            vec![file("../outside")],
            vec![file("a/../../outside")],
            vec![file("/tmp/espalier-outside")],
            vec![link("l", "..")],
            vec![link("l", "/tmp")],
            vec![tar_of("l", tar::EntryType::Link, "../outside", b"")],
            vec![tar_of("l", tar::EntryType::Char, "", b"")],
            vec![tar_of("l", tar::EntryType::Fifo, "", b"")],
            // Each of these two links leads to the top; only in combination do they escape.
            vec![
                link("a", "b"),
                file("b/x"),
                link("b/up", ".."),
                link("b/up/up", ".."),
                file("b/up/up/outside"),
            ],
        ];
        for archives in cases {
            let (outer, message) = error_of(&archives);
            assert!(
                message.contains("`p.deb` is refused") || message.contains("could not unpack"),
                "{message}"
            );
            assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn truncated_and_oversized_members_are_reported() {
        let whole = tar_of("a", tar::EntryType::Regular, "", &[7; 2000]);
        let (_, message) = error_of(&[whole[..1500].to_vec()]);
        assert!(message.starts_with("error: could not unpack `p.deb`"), "{message}");
        let mut header = tar::Header::new_ustar();
        header.set_path("a").unwrap();
        header.set_size(5 << 30);
        header.set_cksum();
        let (_, message) = error_of(&[header.as_bytes().to_vec()]);
        assert!(message.contains("`p.deb` is refused: more than 4294967296 bytes"), "{message}");
    }
}
