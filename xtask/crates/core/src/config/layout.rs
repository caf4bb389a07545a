//! Paths of all files and folders, relative to the root. Everything generated is under `target/espalier/`.

use std::path::{Path, PathBuf};

use super::name::Name;
use super::pins::short_name;
use crate::error::Error;

/// The tiny trained model of the smoke test, relative to the root.
pub const SMOKE_MODEL: &str = "ci/models/espalier-draft.gguf";

/// Name of the folder that [`Layout::undo`] returns.
pub const UNDO: &str = "undo";

/// The paths of one project.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    /// Staging folder from which pins, lock and series are read instead of the root, if any.
    stage: Option<PathBuf>,
    /// Folder of generated files, when they cannot be under the root.
    generated: Option<PathBuf>,
    /// Folder of trees, build folders and packages, when they are not with the other generated files.
    made: Option<PathBuf>,
    /// Path from the user's current folder to the root; ends with a slash when it is not empty.
    path_to_root: String,
}

impl Layout {
    /// The project at `root` (the folder that has `pins.toml`).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into(), stage: None, generated: None, made: None, path_to_root: String::new() }
    }

    /// The same project for a user whose current folder is `here`: displayed paths can be typed there.
    #[must_use]
    pub fn seen_from(&self, here: &Path) -> Self {
        let path_to_root = match (self.root.strip_prefix(here), here.strip_prefix(&self.root)) {
            (Ok(down), _) => down.to_path_buf(),
            (_, Ok(up)) => up.components().map(|_| "..").collect(),
            _ => self.root.clone(),
        };
        let path_to_root = path_to_root.display().to_string();
        // A path that begins with `-` would be read as an option.
        let path_to_root =
            if path_to_root.starts_with('-') { format!("./{path_to_root}") } else { path_to_root };
        Layout {
            path_to_root: if path_to_root.is_empty() { path_to_root } else { path_to_root + "/" },
            ..self.clone()
        }
    }

    /// The same project with all generated files in the folder `generated`.
    #[must_use]
    pub fn generating_in(&self, generated: PathBuf) -> Self {
        Layout { generated: Some(generated), ..self.clone() }
    }

    /// The same project with trees, build folders and packages in the folder `made`.
    #[must_use]
    pub fn making_in(&self, made: PathBuf) -> Self {
        Layout { made: Some(made), ..self.clone() }
    }

    /// The same project with `pins.toml`, `espalier.lock` and every series read from `stage`, and the lock written
    /// there, so that a change can be built and tested before it is applied.
    #[must_use]
    pub fn staged(&self, stage: PathBuf) -> Self {
        Layout { stage: Some(stage), ..self.clone() }
    }

    fn staged_or_root(&self) -> &Path {
        self.stage.as_deref().unwrap_or(&self.root)
    }

    /// The folder that contains `pins.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `pins.toml`.
    pub fn pins(&self) -> PathBuf {
        self.staged_or_root().join("pins.toml")
    }

    /// The folder of a series, as `pins.toml` names it.
    pub fn series(&self, folder: &str) -> PathBuf {
        self.staged_or_root().join(folder)
    }

    /// A folder of overlay files, as `pins.toml` names it.
    pub fn overlay(&self, folder: &str) -> PathBuf {
        self.root.join(folder)
    }

    /// `espalier.lock`.
    pub fn lock(&self) -> PathBuf {
        self.staged_or_root().join("espalier.lock")
    }

    /// `ci/flavors.toml`.
    pub fn flavors(&self) -> PathBuf {
        self.root.join("ci/flavors.toml")
    }

    /// Folder of the flavors' build proofs.
    pub fn proofs(&self) -> PathBuf {
        self.root.join("ci/proofs")
    }

    /// `ci/toolchains.toml`.
    pub fn toolchain_pins(&self) -> PathBuf {
        self.root.join("ci/toolchains.toml")
    }

    /// `ci/models.toml`.
    pub fn model_pins(&self) -> PathBuf {
        self.root.join("ci/models.toml")
    }

    /// Pinned model weights, each in a folder `NAME-DIGEST`.
    pub fn models(&self) -> PathBuf {
        self.generated().join("models")
    }

    /// `ci/lint.toml`.
    pub fn lint_rules(&self) -> PathBuf {
        self.root.join("ci/lint.toml")
    }

    /// Folder of all generated files.
    pub fn generated(&self) -> PathBuf {
        self.generated.clone().unwrap_or_else(|| self.root.join("target/espalier"))
    }

    fn made(&self) -> PathBuf {
        self.made.clone().unwrap_or_else(|| self.generated())
    }

    /// Folder of the second build of `build --twice`.
    pub fn second(&self) -> PathBuf {
        self.generated().join("twice")
    }

    /// The one bare object store.
    pub fn store(&self) -> PathBuf {
        self.generated().join("store.git")
    }

    /// Staging folders for the files of changes that are tested before they are applied, one for each running command.
    pub fn stages(&self) -> PathBuf {
        self.generated().join("stage")
    }

    /// Folder of a decided change; the next command finishes it before it does anything else.
    pub fn pending(&self) -> PathBuf {
        self.generated().join("pending")
    }

    /// Record of the last change, with the files as they were before it.
    pub fn undo(&self) -> PathBuf {
        self.generated().join(UNDO)
    }

    /// Unfinished rebases, each in a folder with the name of the pin that moves.
    pub fn rebases(&self) -> PathBuf {
        self.generated().join("rebase")
    }

    /// The unfinished rebase of all series on `pin`.
    pub fn rebase(&self, pin: &Name) -> PathBuf {
        self.rebases().join(pin.as_str())
    }

    /// Recorded conflict resolutions of earlier rebases.
    pub fn resolutions(&self) -> PathBuf {
        self.generated().join("resolutions")
    }

    /// Scratch space; anything in it when a run starts is garbage left by a killed run.
    pub fn scratch(&self) -> PathBuf {
        self.generated().join("tmp")
    }

    /// Lock file: held shared while a command reads pins, patches and store, exclusively while one changes them.
    pub fn project_lock(&self) -> PathBuf {
        self.generated().join("project.lock")
    }

    /// Lock file: held while a command builds or changes anything under `target/espalier/`.
    pub fn run_lock(&self) -> PathBuf {
        self.generated().join("run.lock")
    }

    /// Installed pinned tools, each in a folder `NAME-VERSION`.
    pub fn tools(&self) -> PathBuf {
        self.generated().join("tools")
    }

    /// Toolchains assembled from pinned packages, each in a folder `NAME-DIGEST`. They are kept beside the other
    /// generated files because they are large and nothing in the project changes them.
    pub fn toolchains(&self) -> PathBuf {
        self.generated().with_file_name("toolchains")
    }

    /// Target directory of the nested cargo build called `name`.
    pub fn cargo_target(&self, name: &str) -> PathBuf {
        self.made().join("cargo").join(name)
    }

    /// The materialised tree of a variant.
    pub fn tree(&self, variant: &str) -> PathBuf {
        self.made().join("trees").join(variant)
    }

    /// Git index of what was last materialised in the variant's tree, with file times.
    pub fn tree_index(&self, variant: &Name) -> PathBuf {
        self.made().join("trees").join(format!("{variant}.index"))
    }

    /// The git repository in which a person edits the series of a variant.
    pub fn edit(&self, variant: &Name) -> PathBuf {
        self.generated().join("edit").join(variant.as_str())
    }

    /// Edit repositories that were replaced, each in a folder `VARIANT.NUMBER`.
    pub fn edits_before(&self) -> PathBuf {
        self.generated().join("edit-before")
    }

    /// Result of the variant's last successful apply on this machine, in lock format.
    pub fn applied(&self, variant: &Name) -> PathBuf {
        self.generated().join("applied").join(format!("{variant}.lock"))
    }

    /// CMake's build folder of a variant and flavor.
    pub fn build(&self, variant: &Name, flavor: &str) -> PathBuf {
        self.made().join("build").join(format!("{variant}-{flavor}"))
    }

    /// Marker file: exists once inputs with this digest were compiled with a compiler cache.
    pub fn compiled(&self, inputs: &str) -> PathBuf {
        self.generated().join("compiled").join(inputs)
    }

    /// Output of a build: `bin/`, `lib/` and `manifest.json`.
    pub fn package(&self, variant: &str, flavor: &str) -> PathBuf {
        self.made().join("dist").join(format!("{variant}-{flavor}"))
    }

    /// Output of `release`: archives, checksums and the install script.
    pub fn release(&self) -> PathBuf {
        self.generated().join("release")
    }

    /// The image layout of a package.
    pub fn image(&self, variant: &str, flavor: &str) -> PathBuf {
        self.generated().join("images").join(format!("{variant}-{flavor}"))
    }

    /// Built web pages, each in a folder with the id of the git tree of its sources.
    pub fn web_page(&self, tree: &str) -> PathBuf {
        self.generated().join("ui").join(tree)
    }

    /// Screenshots of a server's page in a browser.
    pub fn screenshots(&self, server: &str) -> PathBuf {
        self.generated().join("page").join(server)
    }

    /// The vision encoder of the server whose page is tested in a browser.
    pub fn page_vision(&self) -> PathBuf {
        self.generated().join("page/vision.gguf")
    }

    /// The full output of a long step.
    pub fn log(&self, name: &str) -> PathBuf {
        self.generated().join("logs").join(format!("{name}.log"))
    }

    /// Report of a pin move that failed.
    pub fn failed_sync(&self) -> PathBuf {
        self.generated().join("sync-report.md")
    }

    /// Results of a benchmark at a pin, kept in the repository: `extension` is `json` or `svg`.
    pub fn measurements(&self, bench: &str, pin: &str, extension: &str) -> PathBuf {
        let pin = short_name(pin).replace(['/', '\\'], "-");
        self.root.join("docs/measurements").join(format!("{bench}-{pin}.{extension}"))
    }

    /// The server of a package.
    pub fn server(&self, variant: &str, flavor: &str) -> PathBuf {
        self.package(variant, flavor).join(format!("bin/llama-server{}", std::env::consts::EXE_SUFFIX))
    }

    /// The tiny trained model that the smoke test loads.
    pub fn smoke_model(&self) -> PathBuf {
        self.root.join(SMOKE_MODEL)
    }

    /// Folder of the configuration that selects the upstream tests for the gate and their arguments.
    pub fn suites(&self) -> PathBuf {
        self.root.join("ci/suites")
    }

    /// Working folder of one side of such a suite, with its log.
    pub fn suite_work(&self, name: &str) -> PathBuf {
        self.generated().join("suites").join(name)
    }

    /// Record of the inputs of a step of `cargo xtask test` when it last passed.
    pub fn tested(&self, step: &str) -> PathBuf {
        self.generated().join("tested").join(step)
    }

    /// Formats `path` for display: relative to the user's current folder when it is inside the project.
    pub fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(inside) => format!("{}{}", self.path_to_root, inside.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// Returns `error` with every path inside the project displayed as by [`Layout::show`].
    #[must_use]
    pub fn show_in(&self, error: Error) -> Error {
        error.relative_to(&self.root.display().to_string(), &self.path_to_root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_where_one_stands() {
        let layout = Layout::new("/a/b");
        let shown = |here: &str| layout.seen_from(Path::new(here)).show(Path::new("/a/b/c.toml"));
        let shown_paths = ["/a/b", "/a", "/a/b/c/d", "/x"].map(shown);
        assert_eq!(shown_paths, ["c.toml", "b/c.toml", "../../c.toml", "/a/b/c.toml"]);
        assert_eq!(layout.seen_from(Path::new("/a/b/c")).show(Path::new("/z")), "/z");
        let dashed = Layout::new("/a/-p").seen_from(Path::new("/a"));
        assert_eq!(dashed.show(Path::new("/a/-p/c.toml")), "./-p/c.toml");
    }
}
