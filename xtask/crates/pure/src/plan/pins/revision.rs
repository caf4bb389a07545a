//! Which upstream commit a pin stands for.

use std::fmt;

use crate::plan::name::Name;
use crate::series::ObjectId;

/// One upstream commit, by a name that means the same commit for everybody: a branch is none, and a part of an id
/// is none either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// A release.
    Tag(TagName),
    /// The commit itself.
    Commit(ObjectId),
}

/// The name of a tag, as `pins.toml` may have it: never a commit id, and nothing that git could take for more than
/// a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagName(String);

impl TagName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TagName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Revision {
    /// Its key in `pins.toml`.
    pub fn key(&self) -> &'static str {
        match self {
            Revision::Tag(_) => "tag",
            Revision::Commit(_) => "commit",
        }
    }

    /// What `Display` wrote: a full commit id is a commit, any other name is a tag. Nothing for what can be neither.
    pub fn parse(text: &str) -> Option<Revision> {
        if let Ok(commit) = text.parse() {
            return Some(Revision::Commit(commit));
        }
        is_ref_name(text).then(|| Revision::Tag(TagName(text.to_string())))
    }
}

/// Whether `name` can be the name of a tag or a branch and nothing else: no option, range, path or search. Pins and
/// command lines accept the same names, so that a release that a command line can name stays a tag in `pins.toml`.
pub(in crate::plan) fn is_ref_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@#=".contains(&byte);
    !name.is_empty() && !name.starts_with('-') && !name.contains("..") && name.bytes().all(is_plain)
}

/// A variant in the place of a pin.
impl From<&Name> for Revision {
    fn from(name: &Name) -> Revision {
        Revision::Tag(TagName(name.to_string()))
    }
}

/// A tag is its name, a commit its full id.
impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Revision::Tag(tag) => tag.fmt(out),
            Revision::Commit(commit) => commit.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let id = "0aceb8d1".repeat(5);
        assert!(matches!(Revision::parse(&id), Some(Revision::Commit(_))));
        for tag in ["release/v1.0-rc_1", "v1.0+cu12", "v1@x", "v1#2", "v1=2"] {
            assert!(matches!(Revision::parse(tag), Some(Revision::Tag(_))), "{tag}");
        }
        for text in [id.as_str(), "v1.0", "0aceb8d1", "v1.0+cu12"] {
            assert_eq!(Revision::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "v1 0", "v1^{tree}", "a:b", "v1\n", "-x", "a..b", "v1@{1}"] {
            assert_eq!(Revision::parse(text), None, "{text:?}");
        }
    }
}
