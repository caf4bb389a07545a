//! The steps of a run, as `--dry-run` prints them.

use std::fmt;

/// One step of a build, printed so that a person can check it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Fetch the pinned objects into the store.
    Fetch {
        /// Upstream and tag.
        pin: String,
        /// Sources in the order in which they are tried; empty when the pin is present already.
        sources: Vec<String>,
    },
    /// Apply the series and the overlays in memory.
    Apply {
        /// Patch files in order.
        patches: Vec<String>,
        /// Overlay files.
        overlays: usize,
        /// The locked final tree when nothing changed since it was applied.
        unchanged: Option<String>,
    },
    /// Write the changed files of the final tree to disk.
    Materialise {
        /// Folder relative to the root.
        folder: String,
    },
    /// Stop: the package is up to date.
    Current {
        /// Folder relative to the root.
        package: String,
    },
    /// Build the web page, once for all variants and flavors.
    Page {
        /// Its sources, relative to the tree, and how they are used.
        what: String,
        /// Command lines; empty when the page is built already or left out.
        commands: Vec<String>,
    },
    /// Build a static library of Rust.
    Library {
        /// Name of its folder.
        name: &'static str,
        /// Command line.
        command: String,
    },
    /// Create the series as commits in a separate repository.
    Edit {
        /// Folder relative to the root.
        folder: String,
    },
    /// Run CMake.
    Configure {
        /// Command line.
        command: String,
    },
    /// Run Ninja.
    Compile {
        /// Command line.
        command: String,
    },
    /// Put programs, libraries and the manifest together.
    Package {
        /// Folder relative to the root.
        folder: String,
    },
    /// Start the built server and send it a request.
    Smoke {
        /// The model, relative to the root.
        model: String,
    },
    /// Build a second time and compare.
    Again {
        /// Folder of the second build, relative to the root.
        folder: String,
    },
}

/// The order of a page that has to be built, among the steps after it.
const PAGE_ORDER: &str =
    "at the same time as the steps up to compile, which then compiles it into the programs";

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Fetch { pin, sources } if sources.is_empty() => write!(out, "fetch        {pin}: there"),
            Step::Fetch { pin, sources } => {
                write!(out, "fetch        {pin}, first of: {}", sources.join("; "))
            }
            Step::Apply { unchanged: Some(tree), .. } => write!(out, "apply        unchanged: tree {tree}"),
            Step::Apply { patches, overlays, .. } => {
                write!(out, "apply        {} patches, {overlays} overlay files", patches.len())?;
                patches.iter().try_for_each(|patch| write!(out, "\n             {patch}"))
            }
            Step::Materialise { folder } => write!(out, "materialise  {folder}"),
            Step::Current { package } => write!(out, "current      {package}"),
            Step::Edit { folder } => write!(out, "edit         {folder}"),
            Step::Page { what, commands } => {
                write!(out, "page         {what}")?;
                commands.iter().try_for_each(|command| write!(out, "\n             {command}"))?;
                if commands.is_empty() { Ok(()) } else { write!(out, "\n             {PAGE_ORDER}") }
            }
            Step::Library { name, command } => write!(out, "{name:<12} {command}"),
            Step::Configure { command } => write!(out, "configure    {command}"),
            Step::Compile { command } => write!(out, "compile      {command}"),
            Step::Package { folder } => write!(out, "package      {folder}"),
            Step::Again { folder } => {
                write!(out, "again        from scratch in {folder}, and compare every byte")
            }
            Step::Smoke { model } => write!(out, "smoke        answer a prompt with {model}"),
        }
    }
}
