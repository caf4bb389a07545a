//! The upstream commit of a pin.

use std::fmt;

use espalier_series::ObjectId;

use crate::config::name::Name;

/// One upstream commit, by a name that always refers to the same commit: neither a branch nor an abbreviated id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// A release.
    Tag(TagName),
    /// The commit itself.
    Commit(ObjectId),
}

/// A tag name that is allowed in `pins.toml`: never a commit id, and nothing that git could interpret as more than a
/// name.
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

    /// Parses the output of `Display`: a full commit id is a commit, any other name is a tag. `None` for text that is
    /// neither.
    pub fn parse(text: &str) -> Option<Revision> {
        if let Ok(commit) = text.parse() {
            return Some(Revision::Commit(commit));
        }
        is_ref_name(text).then(|| Revision::Tag(TagName(text.to_string())))
    }
}

/// Number of digits of a commit id in texts and file names.
const SHORT_DIGITS: usize = 12;

/// Returns the name of a revision in titles, texts, conflict markers and file names: a full commit id is cut, any other
/// name is left as it is. Data, and commands that can be pasted, have the full id.
pub fn short_name(name: &str) -> &str {
    match name.parse::<ObjectId>() {
        Ok(_) => name.get(..SHORT_DIGITS).unwrap_or(name),
        Err(_) => name,
    }
}

/// Whether `name` can only be the name of a tag or a branch, not an option, range, path or search. Pins and command
/// lines accept the same names, so that a release given on a command line stays a tag in `pins.toml`.
pub(in crate::config) fn is_ref_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/+@#=".contains(&byte);
    !name.is_empty() && !name.starts_with('-') && !name.contains("..") && name.bytes().all(is_plain)
}

/// A variant name in place of a pin's revision.
impl From<&Name> for Revision {
    fn from(name: &Name) -> Revision {
        Revision::Tag(TagName(name.to_string()))
    }
}

/// A tag is shown by its name, a commit by its full id.
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
    fn only_a_full_commit_id_is_cut() {
        assert_eq!(short_name(&"0aceb8d1".repeat(5)), "0aceb8d10ace");
        for name in [
            "v1.0",
            "0aceb8d10aceb8d1",
            "release/v1.0-rc_1",
            "main~3",
            "a-branch-whose-name-is-forty-letters-long",
            "",
        ] {
            assert_eq!(short_name(name), name);
        }
    }

    #[test]
    fn a_revision_is_read_as_it_was_written() {
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
