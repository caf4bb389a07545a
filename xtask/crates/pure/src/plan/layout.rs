//! Where everything lies, relative to the root. All that is generated is under `target/espalier/`.

use std::path::{Path, PathBuf};

use super::name::Name;
use crate::error::Error;

/// The paths of one project.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    /// Where pins, lock and series are, when they are not where they belong yet.
    stage: Option<PathBuf>,
    /// Everything that is generated, when it cannot be under the root.
    generated: Option<PathBuf>,
    /// What is made of a tree, when it is not among everything else that is generated.
    made: Option<PathBuf>,
    /// What leads from where a person stands to the root; ends with a slash when it is not empty.
    way: String,
}

impl Layout {
    /// The project at `root` (the folder that has `pins.toml`).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into(), stage: None, generated: None, made: None, way: String::new() }
    }

    /// The same project, for a person who stands in the folder `here`: what is shown can be typed there.
    #[must_use]
    pub fn seen_from(&self, here: &Path) -> Self {
        let way = match (self.root.strip_prefix(here), here.strip_prefix(&self.root)) {
            (Ok(down), _) => down.to_path_buf(),
            (_, Ok(up)) => up.components().map(|_| "..").collect(),
            _ => self.root.clone(),
        };
        let way = way.display().to_string();
        Layout { way: if way.is_empty() { way } else { way + "/" }, ..self.clone() }
    }

    /// The same project with everything that is generated in the folder `generated`.
    #[must_use]
    pub fn generating_in(&self, generated: PathBuf) -> Self {
        Layout { generated: Some(generated), ..self.clone() }
    }

    /// The same project with trees, build folders and packages in the folder `made`.
    #[must_use]
    pub fn making_in(&self, made: PathBuf) -> Self {
        Layout { made: Some(made), ..self.clone() }
    }

    /// The same project with `pins.toml`, `espalier.lock` and every series read from `stage`, and the lock
    /// written there: a change is built and tried before it is made.
    #[must_use]
    pub fn staged(&self, stage: PathBuf) -> Self {
        Layout { stage: Some(stage), ..self.clone() }
    }

    fn staged_or_root(&self) -> &Path {
        self.stage.as_deref().unwrap_or(&self.root)
    }

    /// The folder that has `pins.toml`.
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

    /// What commands showed of flavors.
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

    /// The kernels crate.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    /// Everything that we generate.
    pub fn generated(&self) -> PathBuf {
        self.generated.clone().unwrap_or_else(|| self.root.join("target/espalier"))
    }

    fn made(&self) -> PathBuf {
        self.made.clone().unwrap_or_else(|| self.generated())
    }

    /// Where `build --twice` builds for the second time.
    pub fn second(&self) -> PathBuf {
        self.generated().join("twice")
    }

    /// The one bare object store.
    pub fn store(&self) -> PathBuf {
        self.generated().join("store.git")
    }

    /// Where the files of a change are collected that is tried before it happens.
    pub fn stage(&self) -> PathBuf {
        self.generated().join("stage")
    }

    /// A change that is decided; the next command finishes it before it does anything else.
    pub fn pending(&self) -> PathBuf {
        self.generated().join("pending")
    }

    /// Unfinished rebases, each in a folder with the name of the pin that moves.
    pub fn rebases(&self) -> PathBuf {
        self.generated().join("rebase")
    }

    /// The unfinished rebase of all series on `pin`.
    pub fn rebase(&self, pin: &Name) -> PathBuf {
        self.rebases().join(pin.as_str())
    }

    /// How conflicts of earlier rebases were solved.
    pub fn resolutions(&self) -> PathBuf {
        self.generated().join("resolutions")
    }

    /// Scratch space; whatever lies here when a run starts is garbage of a run that was killed.
    pub fn scratch(&self) -> PathBuf {
        self.generated().join("tmp")
    }

    /// Shared while a command reads pins, patches and store; held alone while one changes them.
    pub fn project_lock(&self) -> PathBuf {
        self.generated().join("project.lock")
    }

    /// Held while a command builds or changes anything under `target/espalier/`.
    pub fn run_lock(&self) -> PathBuf {
        self.generated().join("run.lock")
    }

    /// Pinned tools that were installed, each in a folder `NAME-VERSION`.
    pub fn tools(&self) -> PathBuf {
        self.generated().join("tools")
    }

    /// Compilers made of pinned packages, each in a folder `NAME-DIGEST`: beside what is generated, because they are
    /// large, and nothing in the project changes them.
    pub fn toolchains(&self) -> PathBuf {
        self.generated().with_file_name("toolchains")
    }

    /// A target directory of its own for the nested cargo called `name`.
    pub fn cargo_target(&self, name: &str) -> PathBuf {
        self.made().join("cargo").join(name)
    }

    /// The materialised tree of a variant.
    pub fn tree(&self, variant: &str) -> PathBuf {
        self.made().join("trees").join(variant)
    }

    /// What was last materialised there: a git index, with the times of the files.
    pub fn tree_index(&self, variant: &Name) -> PathBuf {
        self.made().join("trees").join(format!("{variant}.index"))
    }

    /// The git repository in which a person edits the series of a variant.
    pub fn edit(&self, variant: &Name) -> PathBuf {
        self.generated().join("edit").join(variant.as_str())
    }

    /// The edit repository of a variant that the one in use took the place of.
    pub fn edit_before(&self, variant: &Name) -> PathBuf {
        self.generated().join("edit-before").join(variant.as_str())
    }

    /// What the last successful apply of a variant gave, on this machine.
    pub fn applied(&self, variant: &Name) -> PathBuf {
        self.generated().join("applied").join(format!("{variant}.lock"))
    }

    /// CMake's build folder of a variant and flavor.
    pub fn build(&self, variant: &Name, flavor: &str) -> PathBuf {
        self.made().join("build").join(format!("{variant}-{flavor}"))
    }

    /// Is there once what has this digest was compiled with a compiler cache.
    pub fn compiled(&self, inputs: &str) -> PathBuf {
        self.generated().join("compiled").join(inputs)
    }

    /// What a build gives: `bin/`, `lib/` and `manifest.json`.
    pub fn package(&self, variant: &str, flavor: &str) -> PathBuf {
        self.made().join("dist").join(format!("{variant}-{flavor}"))
    }

    /// What `release` gives: archives, sums, the script that installs one.
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

    /// What the page of a server looked like in a browser.
    pub fn screenshots(&self, server: &str) -> PathBuf {
        self.generated().join("page").join(server)
    }

    /// The vision encoder of the server whose page is used in a browser.
    pub fn page_vision(&self) -> PathBuf {
        self.generated().join("page/vision.gguf")
    }

    /// The full output of a long step.
    pub fn log(&self, name: &str) -> PathBuf {
        self.generated().join("logs").join(format!("{name}.log"))
    }

    /// The report of a move of the pin that did not happen.
    pub fn failed_sync(&self) -> PathBuf {
        self.generated().join("sync-report.md")
    }

    /// What a bench measured at a pin, kept with the project: `extension` is `json` or `svg`.
    pub fn measurements(&self, bench: &str, pin: &str, extension: &str) -> PathBuf {
        let pin = pin.replace(['/', '\\'], "-");
        self.root.join("docs/measurements").join(format!("{bench}-{pin}.{extension}"))
    }

    /// The server of a package.
    pub fn server(&self, variant: &str, flavor: &str) -> PathBuf {
        self.package(variant, flavor).join(format!("bin/llama-server{}", std::env::consts::EXE_SUFFIX))
    }

    /// The tiny trained model that the smoke test loads.
    pub fn smoke_model(&self) -> PathBuf {
        self.root.join("ci/models/espalier-draft.gguf")
    }

    /// What decides which of upstream's own tests the gate runs, and how.
    pub fn suites(&self) -> PathBuf {
        self.root.join("ci/suites")
    }

    /// Where one side of such a suite runs and leaves its log.
    pub fn suite_work(&self, name: &str) -> PathBuf {
        self.generated().join("suites").join(name)
    }

    /// What a step of `cargo xtask test` had read when it last passed.
    pub fn tested(&self, step: &str) -> PathBuf {
        self.generated().join("tested").join(step)
    }

    /// `path` as people should see and type it: from where they stand when it is inside of the project.
    pub fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(inside) => format!("{}{}", self.way, inside.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// `error` with every path inside of the project shown so.
    #[must_use]
    pub fn show_in(&self, error: Error) -> Error {
        error.relative_to(&self.root.display().to_string(), &self.way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_from_where_one_stands() {
        let layout = Layout::new("/a/b");
        let shown = |here: &str| layout.seen_from(Path::new(here)).show(Path::new("/a/b/c.toml"));
        let ways = ["/a/b", "/a", "/a/b/c/d", "/x"].map(shown);
        assert_eq!(ways, ["c.toml", "b/c.toml", "../../c.toml", "/a/b/c.toml"]);
        assert_eq!(layout.seen_from(Path::new("/a/b/c")).show(Path::new("/z")), "/z");
    }
}
