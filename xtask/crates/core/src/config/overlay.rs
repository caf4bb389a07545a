//! The rule for overlays: a path that exists upstream or that a patch touches is an error that names both files.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::error::Error;

/// One file of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayFile {
    /// Path in the tree, with `/`.
    pub path: String,
    /// Path relative to the root, for messages.
    pub from: String,
    /// The content.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// The other provider of a path that an overlay adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The upstream tree contains it.
    Upstream {
        /// The name of its commit, such as the tag of the pin.
        tag: String,
    },
    /// A patch touches it.
    Patch {
        /// The patch file.
        file: String,
    },
    /// An earlier overlay provides it.
    Overlay {
        /// The other file, relative to the root.
        from: String,
    },
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Upstream { tag } => write!(out, "upstream {tag} has it"),
            Owner::Patch { file } => write!(out, "{file} touches it"),
            Owner::Overlay { from } => write!(out, "{from} also provides it"),
        }
    }
}

/// An overlay file whose path has another provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Clash {
    /// The file, relative to the root.
    pub file: String,
    /// Its path in the tree.
    pub path: String,
    /// The other provider, as a clause.
    pub owner: String,
}

impl Clash {
    /// The clash of `file` with `owner`.
    #[must_use]
    pub fn new(file: &OverlayFile, owner: &Owner) -> Clash {
        Clash { file: file.from.clone(), path: file.path.clone(), owner: owner.to_string() }
    }

    /// The error; it names both providers.
    #[must_use]
    pub fn refusal(&self) -> Error {
        let Clash { file, path, owner } = self;
        Error::no(format!("the overlay file `{file}` would replace `{path}`"))
            .detail(format!("{owner}; an overlay may only add paths that nothing else provides"))
            .hint(format!("rename `{file}`, or make the change in a patch"))
    }
}

/// The text of the error, for a report.
impl fmt::Display for Clash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { what, details, hints, .. } = self.refusal();
        write!(out, "{what}")?;
        details.iter().try_for_each(|detail| write!(out, "\n  {detail}"))?;
        hints.iter().try_for_each(|hint| write!(out, "\n  next: {hint}"))
    }
}

/// `1 overlay file is in the way`, `2 overlay files are in the way`.
#[must_use]
pub fn in_the_way(clashes: &[Clash]) -> String {
    match clashes.len() {
        1 => "1 overlay file is in the way".to_string(),
        files => format!("{files} overlay files are in the way"),
    }
}

/// Returns the first two overlay files that cannot coexist: their paths differ at most in case, or one is a folder of
/// the other.
pub fn clash_between(files: &[OverlayFile]) -> Option<(&OverlayFile, Owner)> {
    let mut seen: BTreeMap<String, &OverlayFile> = BTreeMap::new();
    for file in files {
        if let Some(other) = seen.insert(file.path.to_ascii_lowercase(), file) {
            return Some((file, Owner::Overlay { from: other.from.clone() }));
        }
    }
    files.iter().find_map(|file| {
        let path = file.path.to_ascii_lowercase();
        let other = path.match_indices('/').find_map(|(at, _)| seen.get(&path[..at]))?;
        Some((file, Owner::Overlay { from: other.from.clone() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, from: &str) -> OverlayFile {
        OverlayFile { path: path.into(), from: from.into(), bytes: Vec::new(), executable: false }
    }

    #[test]
    fn a_refusal_names_both() {
        let file = file("src/llama.cpp", "overlay/shim/src/llama.cpp");
        let clash = Clash::new(&file, &Owner::Upstream { tag: "v1".into() });
        insta::assert_snapshot!(clash.to_string(), @"
        the overlay file `overlay/shim/src/llama.cpp` would replace `src/llama.cpp`
          upstream v1 has it; an overlay may only add paths that nothing else provides
          next: rename `overlay/shim/src/llama.cpp`, or make the change in a patch
        ");
        assert_eq!(clash.refusal().to_string(), format!("error: {clash}"));
    }

    #[test]
    fn overlays_clash_in_any_case_and_as_file_and_folder() {
        let clash = |left: &str, right: &str| {
            clash_between(&[file(left, "one"), file(right, "two")]).map(|(file, _)| file.from.clone())
        };
        assert_eq!(clash("a/b", "A/B").as_deref(), Some("two"));
        assert_eq!(clash("a/b/c", "a/B").as_deref(), Some("one"));
        assert_eq!(clash("a/b", "a/b/c").as_deref(), Some("two"));
        assert_eq!(clash("a/b", "a/bc"), None);
    }
}
