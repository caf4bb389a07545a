//! The probe of `ci/probe/`, compiled against the packaged libraries of one variant.

use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::plan::flavors::DEFAULT_FLAVOR;
use crate::plan::layout::Layout;
use crate::sys::machine::{compilers, disk};

/// The program that prints logits, relative to the root.
const PROBE: &str = "ci/probe/probe.cpp";

/// The probe's source. A gate without it would pass whatever was built.
///
/// # Errors
///
/// It is not there.
pub fn find_probe(layout: &Layout) -> Result<PathBuf> {
    let probe = layout.root().join(PROBE);
    match disk::exists(&probe) {
        true => Ok(probe),
        false => Err(Error::usage(format!("no `{PROBE}`: the gate cannot compare logits"))
            .hint("git checkout -- ci/probe")
            .hint("or gate nothing: take `gate = ...` from the variant in `pins.toml`")),
    }
}

/// Compiles the probe against the packaged libraries of one variant.
pub fn build_probe(context: &Context, variant: &str, folder: &Path) -> Result<PathBuf> {
    let source = find_probe(&context.layout)?;
    let libraries = context.layout.package(variant, DEFAULT_FLAVOR).join("lib");
    if !disk::exists(&libraries) {
        return Err(Error::usage(format!("{variant}-{DEFAULT_FLAVOR} is not built"))
            .hint(format!("cargo xtask build --variant {variant} --flavor {DEFAULT_FLAVOR}")));
    }
    let tree = context.layout.tree(variant);
    let probe = folder.join(format!("probe-{variant}"));
    compilers::call(&compilers::compilers()?.cxx)
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&probe)
        .arg(source)
        .arg(format!("-I{}", tree.join("include").display()))
        .arg(format!("-I{}", tree.join("ggml/include").display()))
        .arg(format!("-L{}", libraries.display()))
        .args(["-lllama", "-lggml", "-lggml-base"])
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .success()?;
    Ok(probe)
}
