//! Conversions of object ids and kinds from and to libgit2's; only this module uses libgit2's types.

use espalier_series::{Mode, ObjectId, ObjectKind};
use git2::{ObjectType, Oid};

/// Converts one of our ids for libgit2.
pub(in crate::sys) fn oid(id: ObjectId) -> Oid {
    // Fails only for a length other than 20 bytes.
    Oid::from_bytes(id.as_bytes()).unwrap_or(Oid::ZERO_SHA1)
}

/// Converts an id of libgit2.
pub(in crate::sys) fn object_id(oid: Oid) -> ObjectId {
    oid.as_bytes().try_into().map_or(ObjectId::ZERO, ObjectId::from_bytes)
}

/// Converts one of our object kinds for libgit2.
pub(in crate::sys) fn object_type(kind: ObjectKind) -> ObjectType {
    match kind {
        ObjectKind::Blob => ObjectType::Blob,
        ObjectKind::Tree => ObjectType::Tree,
        ObjectKind::Commit => ObjectType::Commit,
    }
}

/// Converts text of a commit; escapes whatever could control a terminal.
pub(in crate::sys) fn text(bytes: Option<&[u8]>) -> String {
    espalier_series::visible(&espalier_series::lossy(bytes.unwrap_or_default()))
}

/// A mode that git never writes is treated like a submodule: never patched.
pub(in crate::sys) fn mode_of(git_mode: u32) -> Mode {
    match git_mode {
        0o040_000 => Mode::Folder,
        0o100_644 | 0o100_664 => Mode::File,
        0o100_755 => Mode::Executable,
        0o120_000 => Mode::Symlink,
        _ => Mode::Submodule,
    }
}
