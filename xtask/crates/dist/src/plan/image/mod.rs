//! An OCI image: its documents, and the assignment of files to layers.

pub mod documents;

use std::collections::BTreeMap;

use super::shipped::{MANIFEST, PROVENANCE, SBOM};

/// Folder of the package in an image.
pub const PACKAGE: &str = "opt/espalier";
/// The program that checks a server's health.
pub const HEALTH: &str = "usr/bin/espalier-health";
/// User id without an account on the host.
pub const USER: &str = "65532";

/// The entry at a path of a layer; `F` is the source of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<F> {
    /// A folder, with its mode.
    Folder(u32),
    /// A file copied from the machine.
    File(F),
    /// A world-readable text file.
    Text(String),
    /// A symbolic link, with its target.
    Link(String),
}

/// A layer: entries by path, without leading `/`. A folder precedes its content.
pub type Layer<F> = BTreeMap<String, Content<F>>;

/// The accounts that programs look up, and a folder for temporary files.
#[must_use]
pub fn accounts<F>() -> Layer<F> {
    let text = |text: String| Content::Text(text);
    [
        (
            "etc/passwd",
            text(format!(
                "root:x:0:0:root:/:/sbin/nologin\nespalier:x:{USER}:{USER}:espalier:/tmp:/sbin/nologin\n"
            )),
        ),
        ("etc/group", text(format!("root:x:0:\nespalier:x:{USER}:\n"))),
        ("tmp", Content::Folder(0o1777)),
    ]
    .map(|(path, content)| (path.to_string(), content))
    .into()
}

/// Adds the parent folders of all files to `layer`.
#[must_use]
pub fn with_folders<F>(mut layer: Layer<F>) -> Layer<F> {
    let paths: Vec<String> = layer.keys().cloned().collect();
    for path in paths {
        for (end, _) in path.match_indices('/') {
            layer.entry(path[..end].to_string()).or_insert(Content::Folder(0o755));
        }
    }
    layer
}

/// Whether a file of a package belongs to the last layer: modules, and the documents that differ between flavors. The
/// rest is the same in all flavors that share their programs, and so is its layer.
#[must_use]
pub fn is_of_one_flavor(path: &str) -> bool {
    [MANIFEST, SBOM, PROVENANCE].contains(&path) || (path.starts_with("bin/") && path.contains(".so"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_before_what_is_in_them() {
        let layer: Layer<()> = [("opt/a/b", Content::File(())), ("opt/a.b", Content::File(()))]
            .map(|(path, content)| (path.to_string(), content))
            .into();
        let paths: Vec<String> = with_folders(layer).into_keys().collect();
        assert_eq!(paths, ["opt", "opt/a", "opt/a.b", "opt/a/b"]);
    }

    #[test]
    fn shared_content_of_flavors_has_its_own_layer() {
        let ours = ["bin/libggml-cuda.so", "manifest.json", "sbom.cdx.json", "provenance.json"];
        assert!(ours.iter().all(|path| is_of_one_flavor(path)));
        let shared = ["bin/llama-server", "lib/libllama.so.0", "licenses/espalier/LICENSE"];
        assert!(!shared.iter().any(|path| is_of_one_flavor(path)));
    }
}
