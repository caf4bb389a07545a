//! The probe of `ci/probe/`: compiled against the packaged libraries of one variant, and run on one model.

use std::path::{Path, PathBuf};

use super::cases::Case;
use super::{ENABLE, FLAVOR};
use crate::cmd::Context;
use crate::error::{Error, Result};
use crate::plan::layout::Layout;
use crate::sys::process::{self, Run};
use crate::sys::{compilers, disk};

/// The program that prints logits, relative to the root.
const PROBE: &str = "ci/probe/probe.cpp";

/// What the probe of one build said of one model.
pub struct Logits {
    /// f32, native byte order.
    pub bytes: Vec<u8>,
    /// Our own lines on stderr.
    pub said: String,
}

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
    let libraries = context.layout.package(variant, FLAVOR).join("lib");
    if !disk::exists(&libraries) {
        return Err(Error::usage(format!("{variant}-{FLAVOR} is not built"))
            .hint(format!("cargo xtask build --variant {variant} --flavor {FLAVOR}")));
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

/// Decodes `model` with `enabled` switched on; the logits go through the file `out`.
pub fn logits(probe: &Path, model: &Path, out: &Path, case: &Case, enabled: Option<&str>) -> Result<Logits> {
    let run = Run::new(probe)
        .args(["--prompt", "12", "--steps", "8", "--threads", "2", "--ragged", "--seqs"])
        .arg(case.sequences.to_string())
        .arg("--model")
        .arg(model)
        .arg("--out")
        .arg(out);
    let run = enabled.into_iter().fold(run.without_env(ENABLE), |run, feature| run.env(ENABLE, feature));
    let words = run.words();
    let finished = run.finish()?;
    if !finished.status.success() {
        return Err(process::failed(&words, finished.status, &finished.stderr));
    }
    let bytes = disk::read(out)?;
    disk::remove_file(out)?;
    if bytes.is_empty() {
        return Err(Error::no(format!("`{words}` wrote no logits")));
    }
    Ok(Logits { bytes, said: ours(&finished.stderr) })
}

fn ours(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("espalier:")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::ours;

    #[test]
    fn only_our_own_lines_are_read() {
        assert_eq!(ours("load: x\nespalier: y\n"), "espalier: y");
    }
}
