//! `cargo xtask gate`: a variant against stock. Its parts are logits, byte by byte, on random models (here), the
//! servers' answers (`server_gate`) and upstream's own tests (`suite_gate`).
//!
//! With every feature off all bytes must be stock's. With `gdn-flat-output` on they must be too, and
//! the variant must say for which weights it kept the stock shape: otherwise a feature that never
//! switches on would pass.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::server_gate::{self, promises};
use super::{Context, Outcome, fuzz, suite_gate};
use crate::error::{Error, Result};
use crate::modelgen::{Architecture, ModelSpec, WeightType};
use crate::sys::process::Run;
use crate::sys::{compilers, disk, models};

/// Options of `gate`.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Variant name; the default one when none is given.
    pub variant: Option<String>,
    /// The parts to run; all when empty.
    pub only: Vec<Part>,
    /// Promises by name or item, all when empty; only for that part.
    pub promises: Vec<String>,
    /// The server that is held to the promises; the packaged one when none is given. Only for that part.
    pub program: Option<PathBuf>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Logits, byte by byte.
    Logits,
    /// The servers' answers, token by token, and the promises.
    Servers,
    /// What the paged server promises; no stock server is needed.
    Promises,
    /// How upstream's own tests end.
    Suites,
}

impl Part {
    /// Every part; the promises are in that of the servers.
    pub const ALL: [Part; 3] = [Part::Logits, Part::Servers, Part::Suites];
    /// The parts that need no program but the packaged ones.
    pub const OF_PACKAGES: [Part; 2] = [Part::Logits, Part::Servers];
}

const REFERENCE: &str = "stock";
const FLAVOR: &str = "cpu";
/// The program that prints logits, relative to the root.
pub const PROBE: &str = "ci/probe/probe.cpp";
/// The feature that is compared.
pub const FEATURE: &str = "gdn-flat-output";

/// One comparison: a model, and how it is decoded.
struct Case {
    architecture: Architecture,
    weights: WeightType,
    sequences: u32,
}

impl Case {
    fn name(&self) -> String {
        format!("{} {} {} sequences", self.architecture.name(), self.weights.name(), self.sequences)
    }

    /// Where the kernels allow the flat shape; elsewhere stock's is kept, and that is said.
    fn may_be_flat(&self) -> bool {
        matches!(self.weights, WeightType::Q8_0 | WeightType::Q4_0)
    }

    fn has_delta_net(&self) -> bool {
        self.architecture.has_delta_net()
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for architecture in Architecture::ALL {
        for weights in [WeightType::F16, WeightType::Q8_0, WeightType::Q4_0] {
            for sequences in [1, 5, 8] {
                cases.push(Case { architecture, weights, sequences });
            }
        }
    }
    cases
}

/// Runs the parts that were asked for.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let pins = context.pins()?;
    let variant = pins.variant(options.variant.as_deref())?.name.clone();
    if options.only == [Part::Promises] {
        return hold_to_promises(context, &variant, options);
    }
    if options.program.is_some() || !options.promises.is_empty() {
        return Err(Error::usage("`--program` and `--promise` belong to the promises")
            .hint("cargo xtask gate --only promises"));
    }
    let parts = if options.only.is_empty() { &Part::ALL[..] } else { &options.only };
    compare(context, REFERENCE, &variant, parts)
}

/// Compares two builds of one tree by their names; the canary's have names that `pins.toml` does not know, so that
/// no suite can be built for them.
pub fn compare(context: &Context, reference: &str, variant: &str, parts: &[Part]) -> Result<Outcome> {
    let mut text = vec![format!("{variant} against {reference}:")];
    let mut json = json!({ "variant": variant });
    for part in parts {
        let outcome = match part {
            Part::Logits => compare_logits(context, reference, variant)?,
            Part::Servers => compare_servers(context, reference, variant)?,
            Part::Promises => {
                return Err(Error::usage("the promises come with the servers, or alone")
                    .hint("cargo xtask gate --only promises"));
            }
            Part::Suites => compare_suites(context, reference, variant)?,
        };
        text.push(outcome.text);
        merge(&mut json, outcome.json);
    }
    Ok(Outcome::ok(text.join("\n"), json))
}

fn merge(json: &mut Value, more: Value) {
    if let (Value::Object(all), Value::Object(more)) = (json, more) {
        all.extend(more);
    }
}

/// Compares every case, off and on; goes on after a difference.
fn compare_logits(context: &Context, reference: &str, variant: &str) -> Result<Outcome> {
    let gate = Gate::prepare(context, reference, variant)?;
    let cases = cases();
    let mut failures = Vec::new();
    let mut progress =
        context.ui.progress("comparing", u64::try_from(cases.len()).ok(), crate::ui::Unit::Steps);
    for (done, case) in (1u64..).zip(&cases) {
        failures.extend(gate.compare(case)?);
        progress.set(done);
    }
    drop(progress);
    if !failures.is_empty() {
        let what =
            format!("{variant} differs from {reference} in {} of {} cases", failures.len(), cases.len());
        return Err(Error::no(what).detail(failures.join("\n")).hint(
            "a patch that says `Numerics: identical` changed a bit: `cargo xtask apply` without it finds which",
        ));
    }
    let text = format!("logits: {} cases, off and on, all bytes equal", cases.len());
    Ok(Outcome::ok(text, json!({ "cases": cases.len() })))
}

fn hold_to_promises(context: &Context, variant: &str, options: &Options) -> Result<Outcome> {
    let packaged = || context.layout.server(variant, FLAVOR);
    let program = options.program.clone().unwrap_or_else(packaged);
    if !disk::exists(&program) {
        return Err(Error::usage(format!("there is no server `{}`", context.layout.show(&program)))
            .hint(format!("cargo xtask build --variant {variant} --flavor {FLAVOR}")));
    }
    Ok(promises::outcome(&promises::look(context, &program, &options.promises)?))
}

fn compare_suites(context: &Context, reference: &str, variant: &str) -> Result<Outcome> {
    let compared = suite_gate::compare(context, reference, variant)?;
    Ok(Outcome::ok(compared.summary(), json!({ "suites": compared.to_json() })))
}

/// Rounds of the fuzzer that are over soon: tenants, kept slots, drafts, choices, boundaries, streams, and two that once
/// found something: drafts in a small batch (17), and free slots that nobody was given (5).
const SEEDS: [u64; 7] = [1, 2, 5, 7, 8, 9, 17];

fn compare_servers(context: &Context, reference: &str, variant: &str) -> Result<Outcome> {
    let server = |variant: &str| context.layout.server(variant, FLAVOR);
    let mut compared = server_gate::compare(context, server(reference), server(variant))?;
    compared.failures.extend(server_gate::inputs::unlisted(&context.layout, variant)?);
    compared.failures.extend(fuzz::find_with_seeds(context, server(variant), &SEEDS)?);
    compared.failures.extend(compared.too_many_near_ties());
    if compared.failures.is_empty() && compared.same > 0 {
        let text = format!(
            "paged servers: {} answers in stock's tokens, {} left them at a near tie (stock its own: {})",
            compared.same, compared.near_ties, compared.stock
        );
        return Ok(Outcome::ok(text, json!({ "servers": compared.to_json() })));
    }
    let what = format!(
        "the servers of {variant} and {reference} answer differently: {} answers the same, {} near ties, {} wrong",
        compared.same,
        compared.near_ties,
        compared.failures.len()
    );
    Err(Error::no(what).detail(compared.failures.join("\n")))
}

struct Gate {
    reference: PathBuf,
    variant: PathBuf,
    folder: PathBuf,
}

impl Gate {
    fn prepare(context: &Context, reference: &str, variant: &str) -> Result<Gate> {
        let folder = context.layout.generated().join("gate");
        disk::create_folder(&folder)?;
        context.ui.status("Building", "the probe against both builds");
        Ok(Gate {
            reference: build_probe(context, reference, &folder)?,
            variant: build_probe(context, variant, &folder)?,
            folder,
        })
    }

    /// Everything that is wrong with one case.
    fn compare(&self, case: &Case) -> Result<Vec<String>> {
        let model = self.model(case)?;
        let stock = self.logits(&self.reference, &model, case, false)?;
        let off = self.logits(&self.variant, &model, case, false)?;
        let on = self.logits(&self.variant, &model, case, true)?;
        disk::remove_file(&model)?;
        let mut failures = Vec::new();
        for (name, run) in [("off", &off), ("on", &on)] {
            if let Some(at) = first_difference(&stock.bytes, &run.bytes) {
                failures.push(format!("{}, {name}: byte {at} of {} differs", case.name(), stock.bytes.len()));
            }
        }
        let kept_shape = on.said.contains("espalier:");
        if case.has_delta_net() && case.sequences > 1 && kept_shape == case.may_be_flat() {
            let expected = if case.may_be_flat() { "flatten it" } else { "say that it kept the stock shape" };
            failures.push(format!("{}, on: expected to {expected}; said: {}", case.name(), on.said.trim()));
        }
        Ok(failures)
    }

    fn model(&self, case: &Case) -> Result<PathBuf> {
        let path = self.folder.join("model.gguf");
        models::write(&path, &ModelSpec::small(case.architecture, case.weights))?;
        Ok(path)
    }

    fn logits(&self, probe: &Path, model: &Path, case: &Case, enabled: bool) -> Result<Logits> {
        let out = self.folder.join("logits.bin");
        let run = Run::new(probe)
            .args(["--prompt", "12", "--steps", "8", "--threads", "2", "--ragged", "--seqs"])
            .arg(case.sequences.to_string())
            .arg("--model")
            .arg(model)
            .arg("--out")
            .arg(&out);
        let run = if enabled { run.env(ENABLE, FEATURE) } else { run.without_env(ENABLE) };
        let words = run.words();
        let finished = run.finish()?;
        if !finished.status.success() {
            return Err(crate::sys::process::failed(&words, finished.status, &finished.stderr));
        }
        let bytes = disk::read(&out)?;
        disk::remove_file(&out)?;
        if bytes.is_empty() {
            return Err(Error::no(format!("`{words}` wrote no logits")));
        }
        Ok(Logits { bytes, said: ours(&finished.stderr) })
    }
}

/// Names the features to switch on.
pub const ENABLE: &str = "ESPALIER_ENABLE";

/// Switches a server's paged KV cache on, as `--kv-paged` does.
pub const PAGED: &str = "LLAMA_KV_PAGED";

/// Somebody's own switches would make one side into another.
pub fn without_features(run: Run) -> Run {
    run.without_env(ENABLE).without_env(PAGED)
}

struct Logits {
    bytes: Vec<u8>,
    said: String,
}

fn ours(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("espalier:")).collect();
    lines.join("\n")
}

/// The first byte that differs; the shorter length when one is the start of the other.
fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    let differing = left.iter().zip(right).position(|(left, right)| left != right);
    differing.or_else(|| (left.len() != right.len()).then(|| left.len().min(right.len())))
}

/// Compiles the probe against the packaged libraries of one variant.
pub fn build_probe(context: &Context, variant: &str, folder: &Path) -> Result<PathBuf> {
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
        .arg(context.layout.root().join(PROBE))
        .arg(format!("-I{}", tree.join("include").display()))
        .arg(format!("-I{}", tree.join("ggml/include").display()))
        .arg(format!("-L{}", libraries.display()))
        .args(["-lllama", "-lggml", "-lggml-base"])
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .success()?;
    Ok(probe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_found_wherever_it_is() {
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"abd"), Some(2));
        assert_eq!(first_difference(b"abc", b"ab"), Some(2));
        assert_eq!(first_difference(b"", b"a"), Some(0));
    }

    #[test]
    fn only_our_own_lines_are_read() {
        assert_eq!(ours("load: x\nespalier: y\n"), "espalier: y");
    }
}
