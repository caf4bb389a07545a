//! Makes the files below a folder of an archive a commit of a repository of our own.
//!
//! The archive is untrusted. None of its paths becomes a path on disk: each has to pass the rule for paths in patches,
//! and becomes a name in a git tree. Links are never followed; a symbolic link becomes the blob that git has for it.

use std::collections::BTreeMap;
use std::path::Path;

use espalier_series::{ObjectId, RepoPath, TargetRefusal, describe_refusal, first_collision, lossy, utf8};
use git2::{ObjectType, Odb, Repository};

use super::archive::{self, Entry, Kind};
use super::limits::{LINK, add, rejected};
use super::parts::{Position, position};
use crate::error::{Error, Result};
use crate::sys::git::ids::object_id;
use crate::sys::git::store::write_failed;
use crate::sys::git::tree_object::{Entry as TreeEntry, write_trees};
use crate::sys::git::unverified::commit_of_files;
use crate::sys::upstream::fetch_git::set_incoming;

/// Limits of the files: several times the values of any release of an upstream.
#[derive(Clone, Copy)]
struct Limits {
    /// Number of files.
    files: u64,
    /// Size of a file in bytes; it is held in memory.
    file_bytes: u64,
    /// Size of all files in bytes.
    all_bytes: u64,
    /// Length of all paths in bytes, each counted once for each of its folders: they are compared folder by folder.
    path_bytes: u64,
}

const LIMITS: Limits =
    Limits { files: 100_000, file_bytes: 256 << 20, all_bytes: 1 << 30, path_bytes: 64 << 20 };

/// Writes the files below `folder` of `archive`, a path below its top folder, to the empty repository `to`, which then
/// serves one commit of them, without parents, as [`INCOMING`](crate::sys::git::store::INCOMING).
///
/// # Errors
///
/// A path is not allowed in a tree, or collides with another one; something is neither a file nor a folder nor a
/// symbolic link within the tree; or a limit is exceeded. `to` is then incomplete.
pub(super) fn copy_files(archive: &Path, folder: &str, to: &Path) -> Result<()> {
    copy_within(LIMITS, archive, folder, to).map(drop)
}

fn copy_within(limits: Limits, archive: &Path, folder: &str, to: &Path) -> Result<ObjectId> {
    let repository = Repository::open_bare(to).map_err(|error| write_failed(&error))?;
    let odb = repository.odb().map_err(|error| write_failed(&error))?;
    let mut copier =
        Copier { limits, folder, odb: &odb, top: None, files: BTreeMap::new(), used: Used::default() };
    archive::visit(archive, |entry| copier.take(entry).map(|()| None::<()>))?;
    let tree = copier.write_tree()?;
    let commit = write(&odb, ObjectType::Commit, commit_of_files(tree).as_bytes())?;
    set_incoming(to, commit).map_err(|error| write_failed(&error))?;
    Ok(tree)
}

fn write(odb: &Odb<'_>, kind: ObjectType, bytes: &[u8]) -> Result<ObjectId> {
    odb.write(kind, bytes).map(object_id).map_err(|error| write_failed(&error))
}

/// Amounts copied so far, in the units of [`Limits`].
#[derive(Default)]
struct Used {
    files: u64,
    all_bytes: u64,
    path_bytes: u64,
}

struct Copier<'a> {
    limits: Limits,
    folder: &'a str,
    odb: &'a Odb<'a>,
    /// The top folder of the first file.
    top: Option<Vec<u8>>,
    files: BTreeMap<RepoPath, TreeEntry>,
    used: Used,
}

impl Copier<'_> {
    fn take(&mut self, entry: Entry<'_>) -> Result<()> {
        let name = lossy(&entry.path).into_owned();
        match (position(&name, self.folder), entry.kind) {
            (Position::Elsewhere, _) | (_, Kind::Folder) | (Position::Around, Kind::File) => Ok(()),
            (Position::Around, _) | (_, Kind::Other) => Err(rejected(&name, LINK)),
            (Position::Inside(""), _) => Err(rejected(&name, "is not a folder")),
            (Position::Inside(path), _) => {
                let path = self.checked_path(&name, &entry.path, path)?;
                self.take_file(&name, path, entry)
            }
        }
    }

    /// Returns the path in the tree of the file at `whole` in the archive; `path` is the part below the folder.
    fn checked_path(&mut self, name: &str, whole: &[u8], path: &str) -> Result<RepoPath> {
        utf8(whole).map_err(|_| rejected(name, "has a path that is not UTF-8"))?;
        let whole = whole.strip_prefix(b"./").unwrap_or(whole);
        let checked = RepoPath::new(whole).and_then(|_| RepoPath::new(path.as_bytes()));
        let checked = checked.map_err(|refusal| rejected(name, &format!("has {refusal}")))?;
        let top = whole.split(|byte| *byte == b'/').next().unwrap_or_default();
        if self.top.get_or_insert_with(|| top.to_vec()).as_slice() != top {
            return Err(rejected(name, "is below another top folder than the files before it"));
        }
        Ok(checked)
    }

    fn take_file(&mut self, name: &str, path: RepoPath, entry: Entry<'_>) -> Result<()> {
        let Copier { limits, used, .. } = self;
        let length = path.as_bytes().len() * (1 + path.folders().count());
        add(name, &mut used.files, 1, limits.files, "files")?;
        add(name, &mut used.path_bytes, as_u64(length), limits.path_bytes, "bytes of paths and folders")?;
        let (mode, content) = match entry.kind {
            Kind::Symlink => (SYMLINK, target_within_tree(name, &path, entry.target)?),
            _ if entry.is_executable => (EXECUTABLE, read(name, entry, limits.file_bytes)?),
            _ => (FILE, read(name, entry, limits.file_bytes)?),
        };
        add(name, &mut used.all_bytes, as_u64(content.len()), limits.all_bytes, "bytes of files")?;
        let id = write(self.odb, ObjectType::Blob, &content)?;
        match self.files.insert(path, TreeEntry { mode, id }) {
            None => Ok(()),
            Some(_) => Err(rejected(name, "occurs twice")),
        }
    }

    /// Writes the tree of all files and returns its id.
    fn write_tree(&self) -> Result<ObjectId> {
        if self.files.is_empty() {
            return Err(Error::environment(format!("the package has no files in `{}`", self.folder)));
        }
        let paths: Vec<&RepoPath> = self.files.keys().collect();
        if let Some((path, refusal)) = first_collision(&paths) {
            return Err(rejected(&path.to_string(), &describe_collision(&refusal)));
        }
        let files: Vec<(Vec<u8>, TreeEntry)> =
            self.files.iter().map(|(path, entry)| (path.as_bytes().to_vec(), *entry)).collect();
        write_trees(&files, &mut |tree: &[u8]| write(self.odb, ObjectType::Tree, tree))
    }
}

/// Modes of git.
const FILE: u32 = 0o100_644;
const EXECUTABLE: u32 = 0o100_755;
const SYMLINK: u32 = 0o120_000;

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

fn read(name: &str, entry: Entry<'_>, limit: u64) -> Result<Vec<u8>> {
    add(name, &mut 0, entry.size, limit, "bytes in a file")?;
    let mut content = Vec::new();
    entry.content.read_to_end(&mut content).map_err(|error| archive::damaged(&error))?;
    Ok(content)
}

/// Returns the target of the symbolic link at `path`, which may not lead out of the tree. `..` is allowed only at its
/// beginning: behind the name of another link it would lead elsewhere.
fn target_within_tree(name: &str, path: &RepoPath, target: Vec<u8>) -> Result<Vec<u8>> {
    let mut rest = target.as_slice();
    let mut folders = path.folders().count();
    while let Some(below) = rest.strip_prefix(b"../") {
        folders =
            folders.checked_sub(1).ok_or_else(|| rejected(name, "is a link that leads out of the tree"))?;
        rest = below;
    }
    match RepoPath::new(rest) {
        Ok(_) => Ok(target),
        Err(refusal) => Err(rejected(name, &format!("is a link to {refusal}"))),
    }
}

fn describe_collision(refusal: &TargetRefusal) -> String {
    match refusal {
        TargetRefusal::CaseCollision { with } => format!("differs from `{with}` in case only"),
        TargetRefusal::FileAndFolder { with } => format!("is below `{with}`, which is a file"),
        other => format!("cannot be in a tree: {}", describe_refusal(other)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, EntryType, Header};
    use tempfile::TempDir;

    use super::*;
    use crate::sys::git::tree_object::id_of_files;

    const SMALL: Limits = Limits { files: 4, file_bytes: 100, all_bytes: 150, path_bytes: 100 };

    /// An entry: its path below the folder, its kind and its mode, and its content, or the target of a link.
    type Made<'a> = (&'a str, EntryType, u32, &'a str);

    fn file(path: &str) -> Made<'_> {
        file_with(path, "x\n")
    }

    fn file_with<'a>(path: &'a str, text: &'a str) -> Made<'a> {
        (path, EntryType::Regular, 0o644, text)
    }

    fn link<'a>(path: &'a str, target: &'a str) -> Made<'a> {
        (path, EntryType::Symlink, 0o777, target)
    }

    /// Copies the files of a package with these entries.
    fn copied(entries: &[Made<'_>]) -> Result<(TempDir, ObjectId)> {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tar.gz");
        let mut tar = Builder::new(GzEncoder::new(File::create(&archive).unwrap(), Compression::fast()));
        for (path, kind, mode, text) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(*mode);
            let path = format!("p-1/vendor/x/{path}");
            if kind.is_file() {
                header.set_size(text.len() as u64);
                tar.append_data(&mut header, path, text.as_bytes()).unwrap();
            } else {
                header.set_size(0);
                tar.append_link(&mut header, path, text).unwrap();
            }
        }
        tar.into_inner().unwrap().finish().unwrap();
        let to = folder.path().join("to");
        Repository::init_bare(&to).unwrap();
        copy_within(SMALL, &archive, "vendor/x", &to).map(|tree| (folder, tree))
    }

    fn refused(entries: &[Made<'_>]) -> String {
        copied(entries).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn files_and_links_become_the_tree_that_git_has_for_them() {
        let script = ("bin/run", EntryType::Regular, 0o755, "x\n");
        let private = ("a", EntryType::Regular, 0o640, "x\n");
        let (folder, tree) = copied(&[link("bin/a", "../a"), private, script]).unwrap();
        let blob = |mode: u32, text: &str| TreeEntry {
            mode,
            id: ObjectId::of(espalier_series::ObjectKind::Blob, text.as_bytes()),
        };
        let expected = [
            (b"a".to_vec(), blob(0o100_644, "x\n")),
            (b"bin/a".to_vec(), blob(0o120_000, "../a")),
            (b"bin/run".to_vec(), blob(0o100_755, "x\n")),
        ];
        assert_eq!(tree, id_of_files(&expected));
        let repo = Repository::open_bare(folder.path().join("to")).unwrap();
        let commit = repo.find_reference(crate::sys::git::store::INCOMING).unwrap().peel_to_commit().unwrap();
        assert_eq!((object_id(commit.tree_id()), commit.parent_count()), (tree, 0));
        assert_eq!(repo.find_blob(crate::sys::git::ids::oid(blob(0, "../a").id)).unwrap().content(), b"../a");
    }

    #[test]
    fn everything_has_a_limit() {
        let long = "x".repeat(101);
        let half = "x".repeat(76);
        let deep = "a/".repeat(10) + "b";
        for (message, limit) in [
            (refused(&["a", "b", "c", "d", "e"].map(file)), "5 files, expected at most 4"),
            (refused(&[file_with("a", &long)]), "101 bytes in a file, expected at most 100"),
            (
                refused(&[file_with("a", &half), file_with("b", &half)]),
                "152 bytes of files, expected at most 150",
            ),
            (refused(&[file(&deep)]), "231 bytes of paths and folders, expected at most 100"),
        ] {
            assert!(message.contains(&format!("exceeds a limit: {limit}")), "{message}");
        }
    }

    #[test]
    fn a_link_leads_to_a_place_in_the_tree_or_is_rejected() {
        for (path, target) in [("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a", "b/c")] {
            assert!(copied(&[link(path, target)]).is_ok(), "{path} -> {target}");
        }
        for (path, target, why) in [
            ("a", "/etc/passwd", "is a link to an absolute path"),
            ("a", "../b", "is a link that leads out of the tree"),
            ("a/b", "../../c", "is a link that leads out of the tree"),
            ("a/b", "..", "is a link to a path with a `.` or `..` component"),
            ("a/b", "c/../../../d", "is a link to a path with a `.` or `..` component"),
            ("a/b", "../.git/config", "is a link to a path into `.git`"),
        ] {
            let message = refused(&[link(path, target)]);
            assert!(message.contains(why), "{path} -> {target}: {message}");
        }
        let message = refused(&[("a", EntryType::Link, 0o644, "b")]);
        assert!(
            message.contains("`p-1/vendor/x/a` in the package is a link, a device or a sparse file"),
            "{message}"
        );
    }

    #[test]
    fn names_that_collide_are_rejected() {
        for (entries, why) in [
            ([file("a"), file("a")], "`p-1/vendor/x/a` in the package occurs twice"),
            ([file("a/b"), file("A/c")], "`a/b` in the package differs from `A` in case only"),
            ([file("a"), file("a/b")], "`a/b` in the package is below `a`, which is a file"),
            ([link("a", "c"), file("a/b")], "`a/b` in the package is below `a`, which is a file"),
        ] {
            let message = refused(&entries);
            assert!(message.contains(why), "{why}: {message}");
        }
    }

    #[test]
    fn a_package_without_the_folder_says_so() {
        let message = refused(&[]);
        assert!(message.contains("the package has no files in `vendor/x`"), "{message}");
    }
}
