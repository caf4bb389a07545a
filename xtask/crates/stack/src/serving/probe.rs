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
        .args(named(&libraries, &["llama", "ggml", "ggml-base"])?)
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .success()?;
    Ok(probe)
}

/// The packaged libraries called so: each has one name there, the one that programs ask for when they start.
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
