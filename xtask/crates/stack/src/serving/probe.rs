//! The probes of `ci/probe/`, compiled against the packaged libraries of one variant.

use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::flavors::DEFAULT_FLAVOR;
use crate::plan::layout::Layout;
use crate::sys::machine::{compilers, disk};

/// A program of `ci/probe/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Decodes a model and writes its logits.
    Logits,
    /// Reports the error of flash attention against a reference in double precision.
    Attention,
    /// Reports the quality loss of a model for a type of the KV cache.
    Quality,
}

impl Probe {
    /// Probes that the gate needs.
    pub const OF_THE_GATE: [Probe; 2] = [Probe::Logits, Probe::Attention];

    /// Path relative to the root.
    fn source(self) -> &'static str {
        match self {
            Probe::Logits => "ci/probe/probe.cpp",
            Probe::Attention => "ci/probe/attention.cpp",
            Probe::Quality => "ci/probe/quality.cpp",
        }
    }

    fn program(self, variant: &str) -> String {
        match self {
            Probe::Logits => format!("probe-{variant}"),
            Probe::Attention => format!("attention-{variant}"),
            Probe::Quality => format!("quality-{variant}"),
        }
    }

    fn libraries(self) -> &'static [&'static str] {
        match self {
            Probe::Logits | Probe::Quality => &["llama", "ggml", "ggml-base"],
            Probe::Attention => &["ggml", "ggml-base"],
        }
    }
}

/// Returns a probe's source. Without it, a gate would pass whatever was built.
///
/// # Errors
///
/// The source does not exist.
pub fn find(layout: &Layout, probe: Probe) -> Result<PathBuf> {
    let source = layout.root().join(probe.source());
    match disk::exists(&source) {
        true => Ok(source),
        false => Err(Error::usage(format!("no `{}`: the gate cannot compare builds", probe.source()))
            .hint("git checkout -- ci/probe")
            .hint("or gate nothing: take `gate = ...` from the variant in `pins.toml`")),
    }
}

/// Compiles a probe against the packaged libraries of one variant.
pub fn build(context: &Context, probe: Probe, variant: &str, folder: &Path) -> Result<PathBuf> {
    let source = find(&context.layout, probe)?;
    let libraries = context.layout.package(variant, DEFAULT_FLAVOR).join("lib");
    if !disk::exists(&libraries) {
        return Err(Error::usage(format!("{variant}-{DEFAULT_FLAVOR} is not built"))
            .hint(format!("cargo xtask build --variant {variant} --flavor {DEFAULT_FLAVOR}")));
    }
    let tree = context.layout.tree(variant);
    let program = folder.join(probe.program(variant));
    compilers::call(&compilers::compilers()?.cxx)
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&program)
        .arg(source)
        .arg(format!("-I{}", tree.join("include").display()))
        .arg(format!("-I{}", tree.join("ggml/include").display()))
        .args(named(&libraries, probe.libraries())?)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .success()?;
    Ok(program)
}

/// Returns the packaged libraries with these names: each exists there once, by the name that programs load.
fn named(folder: &Path, names: &[&str]) -> Result<Vec<PathBuf>> {
    let files = disk::files_below(folder)?;
    let find = |name: &&str| {
        let starts = [format!("lib{name}.so"), format!("lib{name}.dylib"), format!("lib{name}.0.")];
        let is_it = |file: &&PathBuf| {
            starts.iter().any(|start| file.to_str().is_some_and(|file| file.starts_with(start.as_str())))
        };
        let missing = || Error::no(format!("there is no `lib{name}` in `{}`", folder.display()));
        files.iter().find(is_it).map(|file| folder.join(file)).ok_or_else(missing)
    };
    names.iter().map(find).collect()
}
