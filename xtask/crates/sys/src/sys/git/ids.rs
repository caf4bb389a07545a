//! Object ids and kinds as libgit2 has them. Outside of this room they are ours.

use git2::{ObjectType, Oid};

use crate::series::{Mode, ObjectId, ObjectKind};

/// An id of ours, for libgit2.
pub(in crate::sys) fn oid(id: ObjectId) -> Oid {
    // It is refused only when it has not 20 bytes.
    Oid::from_bytes(id.as_bytes()).unwrap_or(Oid::ZERO_SHA1)
}

/// An id from libgit2.
pub(in crate::sys) fn object_id(oid: Oid) -> ObjectId {
    oid.as_bytes().try_into().map_or(ObjectId::ZERO, ObjectId::from_bytes)
}

/// A kind of ours, for libgit2.
pub(in crate::sys) fn object_type(kind: ObjectKind) -> ObjectType {
    match kind {
        ObjectKind::Blob => ObjectType::Blob,
        ObjectKind::Tree => ObjectType::Tree,
        ObjectKind::Commit => ObjectType::Commit,
    }
}

/// Whatever a commit says, it must not steer a terminal.
pub(in crate::sys) fn text(bytes: Option<&[u8]>) -> String {
    crate::series::visible(&crate::series::lossy(bytes.unwrap_or_default()))
}

/// A mode that git does not write is as untouchable as a submodule.
pub(in crate::sys) fn mode_of(git_mode: u32) -> Mode {
    match git_mode {
        0o040_000 => Mode::Folder,
        0o100_644 | 0o100_664 => Mode::File,
        0o100_755 => Mode::Executable,
        0o120_000 => Mode::Symlink,
        _ => Mode::Submodule,
    }
}
