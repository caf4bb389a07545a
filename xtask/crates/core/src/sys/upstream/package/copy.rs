//! Copies the objects of a git repository in an archive to a repository of our own.
//!
//! The repository in the archive is untrusted, so git never runs in it, and nothing of it gets a path on disk by its
//! own name. Packs are indexed again, and the ids of all objects are computed. Its configuration, hooks, alternates,
//! grafts and the indexes of its packs are not read; its references are read as ids.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use espalier_series::{ObjectId, lossy};
use flate2::read::ZlibDecoder;
use git2::{Indexer, ObjectType, Odb, Repository};

use super::archive::{self, Entry, Kind};
use super::limits::{LINK, add, rejected};
use super::parts::{Position, RepositoryFile, id_in_packed_refs, id_in_ref, part, position};
use crate::error::{Error, Result};
use crate::sys::git::ids::object_id;
use crate::sys::git::store::write_failed;
use crate::sys::machine::disk;

/// Limits of a repository: several times the values of any release of an upstream.
#[derive(Clone, Copy)]
struct Limits {
    /// Number of packs.
    packs: u64,
    /// Number of objects in packs.
    packed_objects: u64,
    /// Size of all packs in bytes.
    packed_bytes: u64,
    /// Number of loose objects.
    loose_objects: u64,
    /// Size of one unpacked loose object in bytes; it is held in memory.
    loose_bytes: u64,
    /// Size of all unpacked loose objects in bytes.
    all_loose_bytes: u64,
    /// Size of a file of references in bytes.
    ref_bytes: u64,
}

const LIMITS: Limits = Limits {
    packs: 64,
    packed_objects: 1_000_000,
    packed_bytes: 1 << 30,
    loose_objects: 100_000,
    loose_bytes: 256 << 20,
    all_loose_bytes: 1 << 30,
    ref_bytes: 16 << 20,
};

/// The commits that a repository names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// The commit that is checked out.
    pub head: Option<ObjectId>,
    /// The object of the requested tag.
    pub tag: Option<ObjectId>,
}

/// Copies the objects of the repository at `member` of `archive`, a path below its top folder, to the empty repository
/// `to`. Returns the commits that it names for the tag `revision`.
///
/// # Errors
///
/// Something in the repository is not as git writes it, is a link, or exceeds a limit. `to` is then incomplete.
pub(super) fn copy_objects(archive: &Path, member: &str, revision: &str, to: &Path) -> Result<Names> {
    copy_within(LIMITS, archive, member, revision, to)
}

fn copy_within(limits: Limits, archive: &Path, member: &str, revision: &str, to: &Path) -> Result<Names> {
    let repository = Repository::open_bare(to).map_err(|error| write_failed(&error))?;
    let odb = repository.odb().map_err(|error| write_failed(&error))?;
    let packs = to.join("objects/pack");
    let mut copier =
        Copier { limits, member, revision, odb, packs, names: Names::default(), used: Used::default() };
    archive::visit(archive, |entry| copier.take(entry).map(|()| None::<()>))?;
    if copier.used.packs + copier.used.loose_objects == 0 {
        return Err(Error::environment(format!("the package has no git repository `{member}`")));
    }
    Ok(copier.names)
}

/// Amounts copied so far, in the units of [`Limits`].
#[derive(Default)]
struct Used {
    packs: u64,
    packed_objects: u64,
    packed_bytes: u64,
    loose_objects: u64,
    all_loose_bytes: u64,
}

struct Copier<'a> {
    limits: Limits,
    member: &'a str,
    revision: &'a str,
    odb: Odb<'a>,
    packs: PathBuf,
    names: Names,
    used: Used,
}

impl Copier<'_> {
    fn take(&mut self, entry: Entry<'_>) -> Result<()> {
        let name = lossy(&entry.path).into_owned();
        let part = match position(&name, self.member) {
            Position::Inside(path) => part(path, self.revision).map_err(|why| rejected(&name, why))?,
            Position::Around => RepositoryFile::UnusedObject,
            Position::Elsewhere => return Ok(()),
        };
        match (part, entry.kind) {
            (RepositoryFile::Unused, _) | (_, Kind::Folder) | (RepositoryFile::UnusedObject, Kind::File) => {
                Ok(())
            }
            (_, Kind::Symlink | Kind::Other) => Err(rejected(&name, LINK)),
            (RepositoryFile::Pack, Kind::File) => self.take_pack(&name, entry),
            (RepositoryFile::Loose(id), Kind::File) => self.take_loose(&name, id, entry),
            (RepositoryFile::Head | RepositoryFile::Tag | RepositoryFile::PackedRefs, Kind::File) => {
                self.take_name(&name, part, entry)
            }
        }
    }

    /// Indexes a pack; its name and the index beside it do not matter.
    fn take_pack(&mut self, name: &str, entry: Entry<'_>) -> Result<()> {
        /// Each piece costs a few system calls.
        const PIECE: usize = 1 << 20;
        let mut header = [0; PACK_HEADER];
        entry.content.read_exact(&mut header).map_err(|error| damaged(name, &disk::reason(&error)))?;
        self.count_pack(name, entry.size, objects_in(&header))?;
        let mut pack = Indexer::new(None, &self.packs, 0, false).map_err(|error| write_failed(&error))?;
        let mut piece = vec![0; PIECE];
        piece[..PACK_HEADER].copy_from_slice(&header);
        let mut length = PACK_HEADER;
        while length > 0 {
            pack.write_all(&piece[..length]).map_err(|error| damaged(name, &disk::reason(&error)))?;
            length = entry.content.read(&mut piece).map_err(|error| archive::damaged(&error))?;
        }
        pack.commit().map(drop).map_err(|error| damaged(name, error.message()))
    }

    fn count_pack(&mut self, name: &str, bytes: u64, objects: u64) -> Result<()> {
        let Copier { limits, used, .. } = self;
        add(name, &mut used.packs, 1, limits.packs, "packs")?;
        add(name, &mut used.packed_bytes, bytes, limits.packed_bytes, "bytes of packs")?;
        add(name, &mut used.packed_objects, objects, limits.packed_objects, "objects in packs")
    }

    /// Writes a loose object if its id is the one in its name.
    fn take_loose(&mut self, name: &str, id: ObjectId, entry: Entry<'_>) -> Result<()> {
        let Copier { limits, used, .. } = self;
        add(name, &mut used.loose_objects, 1, limits.loose_objects, "loose objects")?;
        let mut bytes = Vec::new();
        let unpacked = ZlibDecoder::new(entry.content).take(limits.loose_bytes + 1).read_to_end(&mut bytes);
        let size = unpacked.map_err(|error| damaged(name, &disk::reason(&error)))?;
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        add(name, &mut 0, size, limits.loose_bytes, "bytes in a loose object")?;
        add(name, &mut used.all_loose_bytes, size, limits.all_loose_bytes, "bytes of loose objects")?;
        let (kind, content) =
            loose_object(&bytes).ok_or_else(|| damaged(name, "it is not an object of git"))?;
        let real = self.odb.write(kind, content).map(object_id).map_err(|error| write_failed(&error))?;
        if real == id {
            return Ok(());
        }
        Err(rejected(name, &format!("is the object {real}")))
    }

    fn take_name(&mut self, name: &str, part: RepositoryFile, entry: Entry<'_>) -> Result<()> {
        add(name, &mut 0, entry.size, self.limits.ref_bytes, "bytes of references")?;
        let mut content = Vec::new();
        entry.content.read_to_end(&mut content).map_err(|error| archive::damaged(&error))?;
        let content = lossy(&content);
        match part {
            RepositoryFile::Head => self.names.head = id_in_ref(&content),
            RepositoryFile::Tag => self.names.tag = id_in_ref(&content),
            // A reference in a file of its own is newer.
            _ => self.names.tag = self.names.tag.or_else(|| id_in_packed_refs(&content, self.revision)),
        }
        Ok(())
    }
}

/// Size of the header of a pack: `PACK`, its version and the number of its objects.
const PACK_HEADER: usize = 12;

/// Returns the number of objects that a pack claims; libgit2 allocates memory for as many.
fn objects_in(header: &[u8; PACK_HEADER]) -> u64 {
    let [.., a, b, c, d] = *header;
    u64::from(u32::from_be_bytes([a, b, c, d]))
}

/// Splits an unpacked loose object into its kind and its content: `KIND SIZE`, a NUL, the content.
fn loose_object(bytes: &[u8]) -> Option<(ObjectType, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (kind, size) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    let content = &bytes[end + 1..];
    let kind = match kind {
        "blob" => ObjectType::Blob,
        "tree" => ObjectType::Tree,
        "commit" => ObjectType::Commit,
        "tag" => ObjectType::Tag,
        _ => return None,
    };
    (size.parse() == Ok(content.len())).then_some((kind, content))
}

/// Returns the error for a file of the repository that cannot be read.
fn damaged(name: &str, why: &str) -> Error {
    Error::environment(format!("`{name}` in the package is damaged")).detail(why.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use tempfile::TempDir;

    use super::*;

    /// The id of the blob `x\n`.
    const ID: &str = "587be6b4c3f93f93c489c0111bba5596147a26cb";

    const SMALL: Limits = Limits {
        packs: 1,
        packed_objects: 10,
        packed_bytes: 1000,
        loose_objects: 1,
        loose_bytes: 100,
        all_loose_bytes: 100,
        ref_bytes: 100,
    };

    fn loose(id: &str) -> String {
        format!("objects/{}/{}", &id[..2], &id[2..])
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(bytes).unwrap();
        zlib.finish().unwrap()
    }

    /// A pack that claims so many objects and has none.
    fn pack(objects: u32) -> Vec<u8> {
        [&b"PACK\0\0\0\x02"[..], &objects.to_be_bytes()].concat()
    }

    /// Copies a repository with these files.
    fn copied(files: &[(&str, Vec<u8>)]) -> Result<(TempDir, Names)> {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tar.gz");
        let gzip = GzEncoder::new(File::create(&archive).unwrap(), Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("p-1/.git/{path}"), &content[..]).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
        let to = folder.path().join("to");
        Repository::init_bare(&to).unwrap();
        copy_within(SMALL, &archive, ".git", "v1", &to).map(|names| (folder, names))
    }

    fn refused(files: &[(&str, Vec<u8>)]) -> String {
        copied(files).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_loose_object_is_copied_under_its_own_id() {
        let id = "0aceb8d1".repeat(5);
        let files = [
            (loose(ID), deflated(b"blob 2\0x\n")),
            ("HEAD".to_string(), format!("{id}\n").into_bytes()),
            ("config".to_string(), b"[core]\n\tfsmonitor = false\n".to_vec()),
        ];
        let files = files.each_ref().map(|(path, content)| (path.as_str(), content.clone()));
        let (folder, names) = copied(&files).unwrap();
        assert_eq!(names, Names { head: id.parse().ok(), tag: None });
        let copy = Repository::open_bare(folder.path().join("to")).unwrap();
        assert_eq!(copy.find_blob(git2::Oid::from_str(ID).unwrap()).unwrap().content(), b"x\n");
    }

    #[test]
    fn a_loose_object_with_another_id_is_rejected() {
        let other = "1".repeat(40);
        let message = refused(&[(loose(&other).as_str(), deflated(b"blob 2\0x\n"))]);
        assert!(message.contains(&format!("is the object {ID}")), "{message}");
        for bytes in [&b"blob 3\0x\n"[..], b"blob 2", b"file 2\0x\n", b""] {
            let message = refused(&[(loose(ID).as_str(), deflated(bytes))]);
            assert!(message.contains("is damaged\n  it is not an object of git"), "{message}");
        }
        assert!(refused(&[(loose(ID).as_str(), b"no zlib".to_vec())]).contains("is damaged"));
    }

    #[test]
    fn everything_has_a_limit() {
        let (one, other) = (loose(ID), loose(&"1".repeat(40)));
        let (one, other, object) = (one.as_str(), other.as_str(), deflated(b"blob 2\0x\n"));
        let name = format!("objects/pack/pack-{ID}.pack");
        let name = name.as_str();
        let two = [(one, object.clone()), (other, object)];
        let big = [(one, deflated(&[b'x'; 101]))];
        let many = [(name, pack(u32::MAX))];
        let long = [(name, [pack(1), vec![0; 1000]].concat())];
        let head = [("HEAD", vec![b'0'; 101])];
        for (message, limit) in [
            (refused(&two), "2 loose objects, expected at most 1"),
            (refused(&big), "101 bytes in a loose object, expected at most 100"),
            (refused(&many), "4294967295 objects in packs, expected at most 10"),
            (refused(&long), "1012 bytes of packs, expected at most 1000"),
            (refused(&head), "101 bytes of references, expected at most 100"),
        ] {
            assert!(message.contains(&format!("exceeds a limit: {limit}")), "{message}");
        }
    }

    #[test]
    fn a_pack_without_its_objects_is_damaged() {
        let name = format!("objects/pack/pack-{ID}.pack");
        let message = refused(&[(name.as_str(), pack(1))]);
        assert!(
            message.starts_with("error: `p-1/.git/objects/pack/pack-587b") && message.contains("is damaged"),
            "{message}"
        );
        assert!(refused(&[(name.as_str(), b"PACK".to_vec())]).contains("is damaged"));
    }

    #[test]
    fn a_package_without_a_repository_says_so() {
        let message = refused(&[("config", Vec::new())]);
        assert!(message.contains("the package has no git repository `.git`"), "{message}");
    }
}
