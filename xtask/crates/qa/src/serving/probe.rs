//! The probes of `ci/probe/`, compiled against the packaged libraries of one variant.

use std::path::{Path, PathBuf};

use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::context::Context;
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_dist::packaged;
use espalier_dist::sys::compilers;
use serde_json::Value;

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

/// Returns a probe's source.
///
/// # Errors
///
/// The source does not exist.
pub fn find(context: &Context, probe: Probe) -> Result<PathBuf> {
    context.file_of_espalier(probe.source())
}

/// Compiles a probe against the packaged libraries of one variant, unless it is in `folder` and was compiled from the
/// same inputs.
///
/// # Errors
///
/// The variant is not built, or the compiler failed.
pub fn build(context: &Context, probe: Probe, variant: &str, folder: &Path) -> Result<PathBuf> {
    let source = find(context, probe)?;
    let package = context.layout.package(variant, DEFAULT_FLAVOR).join("lib");
    if !disk::exists(&package) {
        return Err(packaged::not_built(variant, DEFAULT_FLAVOR));
    }
    let tree = context.layout.tree(variant);
    let headers = [tree.join("include"), tree.join("ggml/include")];
    let libraries = named(&package, probe.libraries())?;
    let program = folder.join(probe.program(variant));
    let found = compilers::compilers()?;
    let compile = compilers::call(&found.cxx)
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&program)
        .arg(&source)
        .args(headers.iter().map(|folder| format!("-I{}", folder.display())))
        .args(&libraries)
        .arg(format!("-Wl,-rpath,{}", package.display()));
    let inputs = format!("{}\n{}\n", found.version, compile.words());
    let inputs = inputs + &digests(&source, &headers, &libraries)?;
    compile_if_changed(compile, &program, &inputs)?;
    Ok(program)
}

/// Runs a probe and returns numbers from the JSON that it prints; a value that is not positive is an error.
pub fn measure<const N: usize>(run: Run, keys: [&str; N]) -> Result<[f64; N]> {
    let words = run.words();
    let stdout = run.success()?;
    let mut numbers = [0.0; N];
    for (number, key) in numbers.iter_mut().zip(keys) {
        let missing = || Error::environment(format!("`{words}` printed no `{key}`"));
        *number = parse(&stdout, key).ok_or_else(missing)?;
    }
    Ok(numbers)
}

fn parse(stdout: &[u8], key: &str) -> Option<f64> {
    let report: Value = serde_json::from_slice(stdout).ok()?;
    report.get(key)?.as_f64().filter(|number| *number > 0.0)
}

/// Compiles `program`, unless the record beside it has these `inputs` and its own digest.
fn compile_if_changed(compile: Run, program: &Path, inputs: &str) -> Result<()> {
    let mut record = program.as_os_str().to_owned();
    record.push(".inputs");
    let record = PathBuf::from(record);
    let state = || -> Result<String> {
        Ok(format!("{inputs}{} the program\n", disk::digest_if_there(program)?.unwrap_or_default()))
    };
    if disk::read_if_there(&record)?.as_deref() == Some(state()?.as_bytes()) {
        return Ok(());
    }
    // First: if this run is killed while it compiles, the next one compiles.
    disk::remove_file(&record)?;
    compile.success()?;
    disk::write_atomically(&record, state()?.as_bytes())
}

/// Returns one line for each file that a probe is compiled from: its digest and its path.
fn digests(source: &Path, headers: &[PathBuf], libraries: &[PathBuf]) -> Result<String> {
    let beside = source.parent().map(headers_in).transpose()?.unwrap_or_default();
    let below = headers.iter().map(|folder| headers_in(folder)).collect::<Result<Vec<_>>>()?;
    let files = std::iter::once(source.to_path_buf()).chain(beside).chain(below.into_iter().flatten());
    let line = |file: PathBuf| -> Result<String> {
        Ok(format!("{} {}\n", disk::sha256_of_file(&file)?, file.display()))
    };
    files.chain(libraries.iter().cloned()).map(line).collect()
}

/// Returns the C headers below `folder`; none if it does not exist.
fn headers_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if !disk::exists(folder) {
        return Ok(Vec::new());
    }
    let files = disk::files_below(folder)?.into_iter();
    let headers = files.filter(|file| file.extension().is_some_and(|extension| extension == "h"));
    Ok(headers.map(|file| folder.join(file)).collect())
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

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_a_positive_number_was_measured() {
        assert_eq!(parse(b"{\"ms\":1500.0}", "ms"), Some(1500.0));
        assert!([&b"{\"ms\":0.0}"[..], b"{}", b"nothing"].iter().all(|stdout| parse(stdout, "ms").is_none()));
    }
}
