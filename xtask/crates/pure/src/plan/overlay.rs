//! The rule for overlays: a path that exists upstream or that a patch touches is an error that names both files.

use std::collections::BTreeMap;

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
    /// The pinned tree contains it.
    Upstream {
        /// The tag of the pin.
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

impl std::fmt::Display for Owner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Owner::Upstream { tag } => write!(out, "upstream {tag} has it"),
            Owner::Patch { file } => write!(out, "{file} touches it"),
            Owner::Overlay { from } => write!(out, "{from} brings it too"),
        }
    }
}

/// The error for an overlay file whose path has another provider; it names both.
pub fn refusal(file: &OverlayFile, owner: &Owner) -> Error {
    Error::no(format!("the overlay file `{}` would replace `{}`", file.from, file.path))
        .detail(format!("{owner}; an overlay may only add paths that nothing else provides"))
        .hint(format!("rename `{}`, or make the change in a patch", file.from))
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
        let error = refusal(&file, &Owner::Upstream { tag: "v1".into() }).to_string();
        assert!(
            error.contains("overlay/shim/src/llama.cpp") && error.contains("upstream v1 has it"),
            "{error}"
        );
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
