//! The rule for overlays: a path that upstream has, or that a patch touches, is an error naming both.

use crate::error::{Error, Result};

/// One file of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayFile {
    /// Path in the tree, with `/`.
    pub path: String,
    /// Path relative to the root, for messages.
    pub from: String,
    /// The content.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// Who else has a path that an overlay brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The pinned tree has it.
    Upstream {
        /// The tag of the pin.
        tag: String,
    },
    /// A patch touches it.
    Patch {
        /// The patch file.
        file: String,
    },
    /// An earlier overlay brings it.
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

/// Refuses the first overlay file whose path `owner_of` says belongs to somebody else.
pub fn check_overlay(files: &[OverlayFile], owner_of: impl Fn(&str) -> Option<Owner>) -> Result<()> {
    for file in files {
        if let Some(owner) = owner_of(&file.path) {
            return Err(Error::no(format!("the overlay file `{}` would replace `{}`", file.from, file.path))
                .detail(format!("{owner}; an overlay brings only paths that nobody else has"))
                .hint(format!("rename `{}`, or make the change in a patch", file.from)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clash_names_both() {
        let file = OverlayFile {
            path: "src/llama.cpp".into(),
            from: "overlay/shim/src/llama.cpp".into(),
            bytes: Vec::new(),
            executable: false,
        };
        let files = [file];
        let owner = |path: &str| (path == "src/llama.cpp").then(|| Owner::Upstream { tag: "v1".into() });
        let error = check_overlay(&files, owner).unwrap_err().to_string();
        assert!(
            error.contains("overlay/shim/src/llama.cpp") && error.contains("upstream v1 has it"),
            "{error}"
        );
        assert!(check_overlay(&files, |_| None).is_ok());
    }
}
