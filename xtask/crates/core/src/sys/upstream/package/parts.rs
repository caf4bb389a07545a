//! Files of an untrusted repository in an archive, by their names: which of them are read, and as what.

use espalier_series::ObjectId;

/// The position of a path of an archive relative to a repository in it, or to a folder of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position<'a> {
    /// A folder around it.
    Around,
    /// In it, with the path there; its own folder has an empty path.
    Inside(&'a str),
    /// Anywhere else.
    Elsewhere,
}

/// Returns the position of `path` relative to the folder at `member`, a path below the top folder of the archive.
pub(super) fn position<'a>(path: &'a str, member: &str) -> Position<'a> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let Some((_, path)) = path.split_once('/').filter(|(_, rest)| !rest.is_empty()) else {
        return Position::Around;
    };
    match path.strip_prefix(member) {
        Some("") => return Position::Inside(""),
        Some(rest) if rest.starts_with('/') => return Position::Inside(&rest[1..]),
        _ => {}
    }
    let is_around = member.strip_prefix(path.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    if is_around { Position::Around } else { Position::Elsewhere }
}

/// A file of the repository, by its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepositoryFile {
    /// The checked-out commit.
    Head,
    /// The requested tag.
    Tag,
    /// A list of references.
    PackedRefs,
    /// A pack of objects.
    Pack,
    /// One object, whose name claims this id.
    Loose(ObjectId),
    /// Not read: configuration, hooks, the work tree's index, derived files beside packs.
    Unused,
    /// As unused, and at a place where only files and folders may be.
    UnusedObject,
}

/// Returns the use of the file at `path` in the repository from which the tag `revision` is requested.
///
/// # Errors
///
/// The reason to reject the repository, as the end of a sentence.
pub(super) fn part(path: &str, revision: &str) -> Result<RepositoryFile, &'static str> {
    let names: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    if !path.is_empty() && names.iter().any(|name| matches!(*name, "" | "." | "..")) {
        return Err("leads out of its folder");
    }
    Ok(match names[..] {
        ["HEAD"] => RepositoryFile::Head,
        ["packed-refs"] => RepositoryFile::PackedRefs,
        ["refs", "tags", ..] if path == format!("refs/tags/{revision}") => RepositoryFile::Tag,
        ["objects", "info", "alternates" | "http-alternates"] => {
            return Err("borrows the objects of another repository");
        }
        ["objects", "pack", name] if is_pack(name) => RepositoryFile::Pack,
        ["objects", folder, name] if folder.len() == 2 => {
            format!("{folder}{name}").parse().map_or(RepositoryFile::UnusedObject, RepositoryFile::Loose)
        }
        [""] | ["objects", ..] => RepositoryFile::UnusedObject,
        _ => RepositoryFile::Unused,
    })
}

fn is_pack(name: &str) -> bool {
    let checksum = name.strip_prefix("pack-").and_then(|rest| rest.strip_suffix(".pack"));
    checksum.is_some_and(|checksum| checksum.parse::<ObjectId>().is_ok())
}

/// Returns the id in the content of a reference; `None` for a reference to another reference.
pub(super) fn id_in_ref(content: &str) -> Option<ObjectId> {
    content.trim_end().parse().ok()
}

/// Returns the id of a tag in the content of `packed-refs`.
pub(super) fn id_in_packed_refs(content: &str, tag: &str) -> Option<ObjectId> {
    let mut refs = content.lines().filter_map(|line| line.split_once(' '));
    refs.find(|(_, name)| name.strip_prefix("refs/tags/") == Some(tag))?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_and_references_are_read() {
        let id = "0aceb8d1".repeat(5);
        let pack = format!("objects/pack/pack-{id}.pack");
        let loose = format!("objects/{}/{}", &id[..2], &id[2..]);
        let read = |path: &str| part(path, "v1");
        assert_eq!(read("HEAD"), Ok(RepositoryFile::Head));
        assert_eq!(read("packed-refs"), Ok(RepositoryFile::PackedRefs));
        assert_eq!(read("refs/tags/v1"), Ok(RepositoryFile::Tag));
        assert_eq!(read(&pack), Ok(RepositoryFile::Pack));
        assert_eq!(read(&loose), Ok(RepositoryFile::Loose(id.parse().unwrap())));
        for path in
            ["config", "hooks/post-checkout", "shallow", "info/grafts", "refs/tags/v2", "modules/x/HEAD"]
        {
            assert_eq!(read(path), Ok(RepositoryFile::Unused), "{path}");
        }
        let others = [
            "",
            "objects",
            "objects/",
            "objects/pack",
            "objects/info/packs",
            "objects/info/commit-graph",
            "objects/pack/tmp_pack_x",
            "objects/pack/pack-0.pack",
            "objects/0a/tmp_obj_x",
            "objects/0a/b/c",
        ];
        for path in others.into_iter().chain([pack.replace(".pack", ".idx").as_str()]) {
            assert_eq!(read(path), Ok(RepositoryFile::UnusedObject), "{path}");
        }
    }

    #[test]
    fn paths_outside_the_repository_are_rejected() {
        for path in ["objects/../../x", "..", "objects/pack/./x", "objects//pack", "refs/tags/../../HEAD"] {
            assert_eq!(part(path, "v1"), Err("leads out of its folder"), "{path}");
        }
        for path in ["objects/info/alternates", "objects/info/http-alternates"] {
            assert_eq!(part(path, "v1"), Err("borrows the objects of another repository"), "{path}");
        }
    }

    #[test]
    fn a_path_is_in_the_repository_around_it_or_elsewhere() {
        let member = ".git/modules/x";
        for path in ["p-1", "p-1/", "./p-1/.git", "p-1/.git/modules", "p-1/.git/modules/"] {
            assert_eq!(position(path, member), Position::Around, "{path}");
        }
        for (path, inside) in [
            ("p-1/.git/modules/x", ""),
            ("p-1/.git/modules/x/", ""),
            ("p-1/.git/modules/x/HEAD", "HEAD"),
            ("./p-1/.git/modules/x/objects/../y", "objects/../y"),
        ] {
            assert_eq!(position(path, member), Position::Inside(inside), "{path}");
        }
        for path in ["p-1/.git/modules/xy/HEAD", "p-1/src/a.c", "p-1/../.git/modules/x/HEAD", "p-1/.gitx"] {
            assert_eq!(position(path, member), Position::Elsewhere, "{path}");
        }
    }

    #[test]
    fn references_are_read_as_ids_only() {
        let id = "0aceb8d1".repeat(5);
        assert_eq!(id_in_ref(&format!("{id}\n")), id.parse().ok());
        for content in ["ref: refs/heads/main\n", "", "/etc/passwd\n"] {
            assert_eq!(id_in_ref(content), None, "{content}");
        }
        let other = "1".repeat(40);
        let packed =
            format!("# pack-refs with: peeled\n{other} refs/heads/v1\n{id} refs/tags/v1\n^{other}\n");
        assert_eq!(id_in_packed_refs(&packed, "v1"), id.parse().ok());
        assert_eq!(id_in_packed_refs(&packed, "v2"), None);
    }
}
