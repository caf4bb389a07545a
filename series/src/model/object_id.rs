//! Git object ids.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha1::{Digest, Sha1};

/// The kind of a git object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// The content of a file.
    Blob,
    /// A folder.
    Tree,
    /// A commit.
    Commit,
}

impl ObjectKind {
    /// Returns git's name for it.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Blob => "blob",
            ObjectKind::Tree => "tree",
            ObjectKind::Commit => "commit",
        }
    }
}

/// The id of a git object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

impl ObjectId {
    /// The null id, which git writes if there is no object.
    pub const ZERO: ObjectId = ObjectId([0; 20]);

    /// Computes the id of an object of `kind` with this content.
    ///
    /// Plain SHA-1, several times faster than libgit2's, which also detects collision attacks. Detection would add
    /// nothing here: an attacker who could plant a collision in a patch wrote both contents, and the lock holds the
    /// sha256 of every patch. Fetched objects are hashed by git itself.
    pub fn of(kind: ObjectKind, bytes: &[u8]) -> ObjectId {
        let mut hasher = Sha1::new();
        hasher.update(format!("{} {}\0", kind.name(), bytes.len()));
        hasher.update(bytes);
        ObjectId(hasher.finalize().into())
    }

    /// Computes the id of a file's content.
    pub fn of_blob(bytes: &[u8]) -> ObjectId {
        ObjectId::of(ObjectKind::Blob, bytes)
    }

    /// Creates an id from its 20 bytes.
    pub const fn from_bytes(bytes: [u8; 20]) -> ObjectId {
        ObjectId(bytes)
    }

    /// Returns its 20 bytes.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Returns whether it is [`ObjectId::ZERO`].
    pub fn is_zero(&self) -> bool {
        *self == ObjectId::ZERO
    }
}

/// The error for text that is not the 40 hexadecimal digits of an object id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnObjectId;

impl fmt::Display for NotAnObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object id has 40 hexadecimal digits")
    }
}

impl FromStr for ObjectId {
    type Err = NotAnObjectId;

    fn from_str(text: &str) -> Result<ObjectId, NotAnObjectId> {
        let mut bytes = [0; 20];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NotAnObjectId);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(ObjectId(bytes))
    }
}

fn digit(character: u8) -> Result<u8, NotAnObjectId> {
    let value = char::from(character).to_digit(16).ok_or(NotAnObjectId)?;
    u8::try_from(value).map_err(|_| NotAnObjectId)
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::{NotAnObjectId, ObjectId, ObjectKind};

    #[test]
    fn ids_are_those_of_git() {
        let kinds = [(ObjectKind::Blob, git2::ObjectType::Blob), (ObjectKind::Tree, git2::ObjectType::Tree)];
        for bytes in [&b""[..], b"hello\n", &[0u8; 100_000]] {
            for (kind, of_git) in kinds {
                let by_git = git2::Oid::hash_object(of_git, bytes).unwrap();
                assert_eq!(ObjectId::of(kind, bytes).to_string(), by_git.to_string());
            }
        }
    }

    #[test]
    fn a_text_is_read_whole_or_not_at_all() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(text.parse::<ObjectId>().unwrap().to_string(), text);
        assert_eq!(text.to_uppercase().parse::<ObjectId>().unwrap().to_string(), text);
        for bad in
            ["", "0123", &text[1..], &format!("{text}0"), &text.replace('f', "g"), &text.replace('0', "+")]
        {
            assert_eq!(bad.parse::<ObjectId>(), Err(NotAnObjectId), "{bad}");
        }
    }
}
