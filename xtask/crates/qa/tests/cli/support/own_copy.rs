//! A copy of this repository's own pins, patches and lock, for tests that run documented commands on them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Output, files, git, program_path};

/// The copy, with the pin's objects, which are copied or fetched.
pub struct OwnCopy {
    folder: tempfile::TempDir,
}

impl OwnCopy {
    /// Makes a copy, as a repository with one commit.
    pub fn new() -> OwnCopy {
        let copy = OwnCopy { folder: tempfile::tempdir().unwrap() };
        let (here, root) = (files::of_this_repository(""), copy.root());
        for name in ["pins.toml", "espalier.lock"] {
            files::write(&root.join(name), std::fs::read(here.join(name)).unwrap());
        }
        for name in ["patches", "overlay", "ci"] {
            files::copy_folder(&here.join(name), &root.join(name));
        }
        git::git(&root, &["init", "--quiet"]);
        git::commit(&root, "The project");
        let store = here.join("target/espalier/store.git");
        if store.exists() {
            files::copy_folder(&store, &root.join("target/espalier/store.git"));
        }
        copy.run(&["fetch"]).success();
        copy
    }

    /// Returns the root of the copy.
    pub fn root(&self) -> PathBuf {
        self.beside("copy")
    }

    /// Returns the path of `name` in the folder that the copy is in.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the folder of a variant's edit repository.
    pub fn edit_folder(&self, variant: &str) -> PathBuf {
        self.root().join("target/espalier/edit").join(variant)
    }

    /// Runs the tool in the copy. A fetch, where one is needed, uses the network clients of this machine as they are
    /// configured.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier-qa"));
        command.args(arguments).current_dir(self.root()).env("PATH", program_path::with_build_tools());
        command.env_remove("GITHUB_TOKEN").env_remove("GH_TOKEN");
        Output::new(&command.output().unwrap(), &[])
    }

    /// Returns the changes of pins, patches and lock since the copy was made, a line each; empty without any.
    pub fn kept(&self) -> String {
        git::git(&self.root(), &["status", "--porcelain", "--", "pins.toml", "patches", "espalier.lock"])
    }

    /// Returns the tag or commit of this repository's first pin, which the others are generations of.
    pub fn pin() -> String {
        first_value(&files::of_this_repository("pins.toml"), &["tag = \"", "commit = \""])
    }

    /// Returns the tree of that pin.
    pub fn pin_tree() -> String {
        first_value(&files::of_this_repository("pins.toml"), &["tree = \""])
    }
}

/// Returns the value in the first line of a file that starts with one of `keys`.
fn first_value(file: &Path, keys: &[&str]) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let value = |line: &str| {
        let value = keys.iter().find_map(|key| line.strip_prefix(key))?;
        Some(value.trim_end_matches('"').to_string())
    };
    text.lines().find_map(value).unwrap()
}
