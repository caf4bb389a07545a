//! Upstream's web page, built from its sources: once for each tree of sources, in a folder that is renamed into place
//! when complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use espalier_core::config::layout::Layout;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, owned, scratch};

use super::package::digests;
use crate::plan::web_page::Record;
use crate::sys::node::{self, Node};

/// Our files that are copied into the upstream sources, each with the upstream file that it takes precedence over.
const RECIPE: [(&str, &str, Option<&str>); 4] = [
    ("svelte.config.js", include_str!("svelte.config.js"), Some("svelte.config.upstream.js")),
    ("vite.config.ts", include_str!("vite.config.ts"), Some("vite.config.upstream.ts")),
    ("espalier.icons.mjs", include_str!("espalier.icons.mjs"), None),
    ("espalier.notices.mjs", include_str!("espalier.notices.mjs"), None),
];

/// The licences of everything in the page.
const NOTICES: &str = "notices.txt";

/// Returns the digest of everything that determines how a page is built.
pub fn recipe() -> String {
    disk::sha256(RECIPE.map(|(name, text, _)| format!("{name}\n{text}")).concat().as_bytes())
}

/// Returns the page of the sources `tree`, if it was built.
pub fn built(layout: &Layout, tree: &str) -> Result<Option<Record>> {
    let Some(text) = disk::read_if_there(&layout.web_page(tree).join("page.json"))? else { return Ok(None) };
    // A record that cannot be parsed is from another version of this tool: the page is built again.
    let record = serde_json::from_slice::<Record>(&text).ok();
    Ok(record.filter(|record| record.recipe == recipe() && record.tree == tree))
}

/// Returns the path of the licences of a built page.
pub fn notices(layout: &Layout, tree: &str) -> PathBuf {
    layout.web_page(tree).join(NOTICES)
}

/// Minimum free memory for building the page in memory: the copy and npm's cache have 0.9 GB in 56,000 files, and
/// removing them from a disk can take minutes.
const REQUIRED_BYTES: u64 = 4 << 30;

/// A copy of the sources in which a page is built; it vanishes when dropped.
pub struct BuildFolder {
    scratch: tempfile::TempDir,
    tree: String,
    node: Node,
}

impl BuildFolder {
    /// Copies `sources`, which are the tree `tree`, and adds our configuration, which takes precedence over
    /// upstream's.
    ///
    /// # Errors
    ///
    /// The disk is full, or upstream's page is configured in a way that ours does not support.
    pub fn set_up(layout: &Layout, sources: &Path, tree: &str, node: Node) -> Result<BuildFolder> {
        let in_memory = scratch::in_memory_of(layout, REQUIRED_BYTES);
        let scratch = in_memory.map_or_else(|| disk::scratch_folder(&layout.scratch(), "page"), Ok)?;
        let build_folder = BuildFolder { scratch, tree: tree.to_string(), node };
        disk::create_folder(&build_folder.home())?;
        let folder = build_folder.folder();
        disk::copy_folder(sources, &folder)?;
        // Tailwind skips what a `.gitignore` of a parent folder names, which includes all of `target/`: `.git` marks
        // the folder as a repository root.
        disk::create_folder(&folder.join(".git"))?;
        for (name, text, upstreams) in RECIPE {
            if let Some(upstreams) = upstreams {
                if !disk::exists(&folder.join(name)) {
                    return Err(Error::no(format!(
                        "upstream's web page has no `{name}`, which ours builds on"
                    )));
                }
                owned::rename(&folder.join(name), &folder.join(upstreams))?;
            }
            disk::write_atomically(&folder.join(name), text.as_bytes())?;
        }
        Ok(build_folder)
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("ui")
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// Returns the command that installs the packages for the build.
    pub fn install(&self) -> Result<Run> {
        node::install(&self.folder(), &self.home())
    }

    /// Returns the command that builds the page.
    pub fn build(&self) -> Run {
        node::script("build", &self.folder(), &self.home())
            .env("ESPALIER_PAGE_VERSION", &self.tree)
            .env("ESPALIER_PAGE_NOTICES", self.scratch.path().join(NOTICES))
    }

    /// Keeps the built page, completely or not at all.
    ///
    /// # Errors
    ///
    /// The build succeeded without producing a page.
    pub fn keep(self, layout: &Layout) -> Result<Record> {
        let dist = self.folder().join("dist");
        for file in [dist.join("index.html"), self.scratch.path().join(NOTICES)] {
            if disk::read_if_there(&file)?.is_none_or(|bytes| bytes.is_empty()) {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                return Err(Error::no(format!("the web page was built without a word, and has no `{name}`")));
            }
        }
        let scratch = disk::scratch_folder(&layout.scratch(), "page")?;
        let made = scratch.path().join("made");
        disk::copy_folder(&dist, &made.join("dist"))?;
        disk::copy(&self.scratch.path().join(NOTICES), &made.join(NOTICES))?;
        let files = digests(&made.join("dist"))?;
        let record =
            Record { tree: self.tree.clone(), recipe: recipe(), node: self.node.version.to_string(), files };
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Error::environment(format!("`page.json` cannot be written: {error}")))?;
        disk::write_atomically(&made.join("page.json"), format!("{text}\n").as_bytes())?;
        let folder = layout.web_page(&self.tree);
        // Built with another recipe, if it exists.
        owned::remove_folder(&folder)?;
        disk::create_folder(folder.parent().unwrap_or(&folder))?;
        owned::rename(&made, &folder)?;
        Ok(record)
    }
}

/// Returns the folder in which upstream's CMake looks for a prebuilt page.
fn place_in(build: &Path) -> PathBuf {
    build.join("tools/ui/dist")
}

/// Puts a built page, or none, where the build in the folder `build` expects it; files that are up to date are not
/// rewritten.
///
/// # Errors
///
/// A file of the page differs from what was built.
pub fn place(layout: &Layout, record: Option<&Record>, build: &Path) -> Result<()> {
    let to = place_in(build);
    let Some(record) = record else { return owned::remove_folder(&to) };
    let from = layout.web_page(&record.tree);
    for (file, digest) in &record.files {
        let bytes = disk::read_if_there(&from.join("dist").join(file))?.unwrap_or_default();
        if disk::sha256(&bytes) != *digest {
            let folder = layout.show(&from);
            return Err(Error::environment(format!(
                "`{file}` of the built web page in `{folder}` was changed"
            ))
            .hint(format!("rm -rf {folder}    # it is built again")));
        }
        disk::write_if_changed(&to.join(file), &bytes)?;
    }
    remove_others(&to, &record.files)
}

fn remove_others(folder: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    let there = disk::files_below(folder)?.into_iter();
    let mut others = there.filter(|file| !files.contains_key(&file.display().to_string()));
    others.try_for_each(|file| disk::remove_file(&folder.join(file)))
}
