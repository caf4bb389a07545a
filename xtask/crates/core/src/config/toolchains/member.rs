//! Checks the members of an archive before they are unpacked: only files, folders and links are allowed, and none may
//! lead out of the folder.

/// The type of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A folder.
    Folder,
    /// A file.
    File,
    /// A symbolic link, with its target.
    Link(&'a str),
    /// A hard link to an earlier member, whose path is relative to the top of the archive.
    SameAs(&'a str),
    /// A device, a pipe, or an unknown type.
    Other,
}

/// Returns the path of a member below the folder that it is unpacked into.
///
/// # Errors
///
/// A sentence that states why the member is rejected.
pub fn place<'a>(path: &'a str, kind: Kind<'_>) -> Result<&'a str, String> {
    let path = inside(path)?;
    match kind {
        Kind::Folder | Kind::File => Ok(path),
        Kind::SameAs(other) => inside(other).map(|_| path),
        Kind::Link(target) if stays(path, target) => Ok(path),
        Kind::Link(target) => Err(format!("the link `{path}` leads out of the folder, to `{target}`")),
        Kind::Other => Err(format!("`{path}` is neither a file, a folder nor a link")),
    }
}

/// Rewrites the absolute target of the link at `path`, in an archive whose top stands for `/`, as a relative one:
/// `/lib/x` becomes a path up to the top, which stays inside whatever folder the archive is unpacked into.
#[must_use]
pub fn from_the_top(path: &str, target: &str) -> Option<String> {
    let rest = target.strip_prefix('/')?;
    let path = inside(path).ok()?;
    Some("../".repeat(path.matches('/').count()) + rest)
}

/// Strips the leading `./` and the trailing `/` that archives use, and rejects paths that lead out of the folder.
fn inside(path: &str) -> Result<&str, String> {
    let plain = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let leads_out = |part: &str| matches!(part, "" | "." | "..");
    if matches!(plain, "" | ".") {
        return Ok("");
    }
    if plain.split('/').any(leads_out) || plain.contains(['\\', '\0']) {
        return Err(format!("`{path}` is not a path inside a folder"));
    }
    Ok(plain)
}

/// Whether a link stays inside: `..` is allowed only at the start, and at most as often as there are folders above the
/// link. The rest can then lead out only through another link, to which the same rule applies.
fn stays(path: &str, target: &str) -> bool {
    let folders = path.matches('/').count();
    let ups = target.split('/').take_while(|part| *part == "..").count();
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let rest: Vec<&str> = target.split('/').skip(ups).collect();
    ups <= folders && rest.iter().all(|part| is_plain(part)) && !target.contains(['\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::{Kind, from_the_top, place};

    #[test]
    fn members_inside_the_folder_are_accepted() {
        assert_eq!(place("./usr/bin/x", Kind::File), Ok("usr/bin/x"));
        assert_eq!(place("./", Kind::Folder), Ok(""));
        assert_eq!(place("usr/lib/", Kind::Folder), Ok("usr/lib"));
        assert_eq!(place("usr/lib/l.so", Kind::Link("l.so.1")), Ok("usr/lib/l.so"));
        assert_eq!(place("usr/lib/l.so", Kind::Link("../../lib/l.so.1")), Ok("usr/lib/l.so"));
        assert_eq!(place("b", Kind::SameAs("./a")), Ok("b"));
    }

    #[test]
    fn members_outside_the_folder_are_refused() {
        let cases = [
            ("../x", Kind::File),
            ("a/../../x", Kind::File),
            ("/etc/passwd", Kind::File),
            ("a//b", Kind::File),
            ("a\\b", Kind::File),
            ("l", Kind::Link("/etc")),
            ("l", Kind::Link("..")),
            ("a/l", Kind::Link("../..")),
            ("a/l", Kind::Link("b/../../..")),
            ("l", Kind::Link("")),
            ("l", Kind::SameAs("../x")),
            ("dev/null", Kind::Other),
        ];
        for (path, kind) in cases {
            assert!(place(path, kind).is_err(), "{path} {kind:?}");
        }
    }

    #[test]
    fn the_top_of_a_machine_is_the_top_of_the_folder() {
        let lib = from_the_top("./lib64/ld.so.2", "/lib/x/ld.so.2").unwrap();
        assert_eq!(lib, "../lib/x/ld.so.2");
        assert_eq!(place("lib64/ld.so.2", Kind::Link(&lib)), Ok("lib64/ld.so.2"));
        assert_eq!(from_the_top("l", "/etc/passwd").as_deref(), Some("etc/passwd"));
        assert_eq!(from_the_top("a/l", "../b"), None);
        // An invalid path stays invalid: the rewritten target is checked like any other.
        let out = from_the_top("l", "/../x").unwrap();
        assert!(place("l", Kind::Link(&out)).is_err());
    }
}
