//! The KV quality bench: the loss of model quality for each cache type. `ci/probe/quality.cpp` decodes one text with an
//! f16 cache and with another one, both with our attention, and looks for facts in it.

mod baseline;
mod cache;
mod progress;
mod record;

use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::config::models::MODEL_OF_CHECKS;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::{self, Run, Seen, Watch};
use espalier_core::sys::machine::{disk, load};
use espalier_core::sys::project::pinned_models;
use espalier_core::ui::Unit;
use espalier_dist::checked_packages::CheckedPackages;

use self::baseline::{Baseline, Compared, Tolerance};
pub(super) use self::record::KvQuality;
use self::record::Measured;
use super::record::{Head, Keep, Record};
use crate::serving::cache::Cache;
use crate::serving::probe::{self, Probe};
use crate::serving::switches::{ATTENTION, EDGE_LAYERS, RECENT, SINKS, with_feature};

/// Options of `bench kv-quality`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Model: a GGUF file, or a name of `ci/models.toml`; default: the one trained for this.
    #[arg(long, short, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Text to decode (UTF-8); default: a text about this project.
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Caches to compare with f16, as K/V; then +N for N layers at each end whose V stays at q8_0, ~N and ^N for N
    /// recent and N first tokens that are read in f16.
    #[arg(long = "cache", value_name = "K/V", value_delimiter = ',')]
    pub caches: Vec<Cache>,
    /// Tokens of context; repeatable.
    #[arg(long = "context", value_name = "N", value_delimiter = ',', default_values_t = CONTEXTS, value_parser = clap::value_parser!(u32).range(256..=1_048_576))]
    pub contexts: Vec<u32>,
    /// Chunks of text at each context.
    #[arg(long, value_name = "N", default_value_t = CHUNKS, value_parser = clap::value_parser!(u32).range(1..))]
    pub chunks: u32,
    /// Threads; default: all cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Measure only the values that `cargo xtask test` compares.
    #[arg(long, conflicts_with_all = ["model", "text", "caches", "contexts", "chunks"])]
    pub quick: bool,
    /// Measure only the values on real weights that `cargo xtask test` compares.
    #[arg(long, conflicts_with_all = ["model", "text", "caches", "contexts", "chunks", "quick"])]
    pub weights: bool,
    /// Fail where a cache is worse than in this result, a history or what `--json` printed.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Default contexts.
const CONTEXTS: [u32; 2] = [512, 2048];
/// Default number of chunks at each context.
const CHUNKS: u32 = 8;

impl Default for Options {
    fn default() -> Options {
        Options {
            model: None,
            text: None,
            caches: Vec::new(),
            contexts: CONTEXTS.to_vec(),
            chunks: CHUNKS,
            threads: None,
            quick: false,
            weights: false,
            baseline: None,
            keep: Keep::default(),
        }
    }
}

/// Scope of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Divergence, needles and rates.
    Everything,
    /// Divergence only, which takes a third of the time.
    Divergence,
}

/// Computation of the f16 side, which is the same beside every cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// With each cache: rates are measured alternately in all chunks.
    WithEach,
    /// Once for each context; the other caches read its results from a file, and rates are measured alternately in the
    /// last eighth of the chunks.
    Once,
}

/// The readings to take: those that the options describe, or one of two sets that are always the same.
struct Readings {
    /// A GGUF file; the committed model if `None`.
    model: Option<PathBuf>,
    /// The text to decode; the committed text if `None`.
    text: Option<PathBuf>,
    /// Caches to compare with f16.
    caches: Vec<Cache>,
    /// Tokens per chunk of text, and of the context that contains the needles.
    contexts: Vec<usize>,
    /// Number of chunks at each context.
    chunks: usize,
    /// Largest allowed increase over the baseline.
    tolerance: Tolerance,
    extent: Extent,
    base: Base,
}

impl Readings {
    fn of(options: &Options) -> Readings {
        match options {
            Options { quick: true, .. } => Readings::quick(),
            Options { weights: true, .. } => Readings::on_weights(),
            _ => Readings::described(options),
        }
    }

    fn described(options: &Options) -> Readings {
        let Options { model, text, caches, contexts, chunks, .. } = options;
        Readings {
            model: model.clone(),
            text: text.clone(),
            caches: if caches.is_empty() { cache::usual() } else { caches.clone() },
            contexts: contexts.iter().map(|context| *context as usize).collect(),
            chunks: *chunks as usize,
            base: Base::WithEach,
            ..Readings::quick()
        }
    }

    /// Returns the readings on real weights that `cargo xtask test` compares with `ci/kv-quality-weights.json`: seven
    /// types, in one chunk. The top 1 % of 256 predictions is two of them, so the 99th percentile is not compared.
    fn on_weights() -> Readings {
        let caches = cache::each_type_once();
        let (model, tolerance) = (Some(PathBuf::from(MODEL_OF_CHECKS)), Tolerance::OF_FEW_PREDICTIONS);
        Readings { model, caches, chunks: 1, tolerance, extent: Extent::Divergence, ..Readings::quick() }
    }

    /// Returns the few readings that `cargo xtask test` compares with `ci/kv-quality.json`: each code once. The 99th
    /// percentile needs this many chunks: with four, a different order of summation in the same attention moved it by
    /// a fifth.
    fn quick() -> Readings {
        Readings {
            model: None,
            text: None,
            caches: cache::each_code_once(),
            contexts: vec![512],
            chunks: 32,
            tolerance: Tolerance::default(),
            extent: Extent::Everything,
            base: Base::Once,
        }
    }
}

/// Path of the model that was trained for this bench, relative to the root.
const MODEL: &str = "ci/models/espalier-retrieval.gguf";
/// Path of the text that it decodes, relative to the root.
const TEXT: &str = "ci/models/text.txt";

/// Returns the name of that model, as records have it.
pub(super) fn default_model() -> &'static str {
    MODEL.rsplit('/').next().and_then(|file| file.strip_suffix(".gguf")).unwrap_or(MODEL)
}

/// Measures and prints a table; with a baseline, fails if a cache has become worse.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    // Read first, before minutes of measuring.
    let baseline = options.baseline.as_deref().map(Baseline::read).transpose()?;
    let readings = Readings::of(options);
    let threads = options.threads.unwrap_or_else(load::cores);
    let result = measure(context, &readings, threads)?;
    let head = Head { threads: Some(threads), ..Head::at_pin(context)? };
    let record = Record { head, result };
    let outcome = record.finish(context, &options.keep)?;
    match baseline {
        None => Ok(outcome),
        Some(baseline) => held(&baseline.compare(&record.result, readings.tolerance)?, outcome),
    }
}

fn held(compared: &Compared, outcome: Outcome) -> Result<Outcome> {
    if compared.worse.is_empty() {
        let text =
            format!("{}\n{} readings, none worse than the baseline\n", outcome.text, compared.readings);
        return Ok(Outcome { text, ..outcome });
    }
    let what =
        format!("{} of {} readings are worse than the baseline", compared.worse.len(), compared.readings);
    Err(Error::no(what)
        .detail(compared.worse.join("\n"))
        .hint("where that is intended, record it: cargo xtask bench kv-quality --quick --json > ci/kv-quality.json")
        .hint("or, on real weights: cargo xtask bench kv-quality --weights --json > ci/kv-quality-weights.json"))
}

fn measure(context: &Context, readings: &Readings, threads: usize) -> Result<KvQuality> {
    let pins = context.pins()?;
    let variant = pins.variant(None)?;
    CheckedPackages::begin(context, &pins, &[variant])?;
    let model = model_of(context, readings.model.as_deref())?;
    let text = readings.text.clone().map_or_else(|| context.file_of_espalier(TEXT), Ok)?;
    let (model_digest, text_digest) = (disk::sha256_of_file(&model)?, disk::sha256_of_file(&text)?);
    let folder = context.layout.generated().join("bench");
    disk::create_folder(&folder)?;
    let program = probe::build(context, Probe::Quality, &variant.name, &folder)?;
    let (chunks, extent) = (readings.chunks, readings.extent);
    let scratch = (readings.base == Base::Once).then(|| disk::scratch_folder(&folder, "kv-quality"));
    let scratch = scratch.transpose()?;
    let file = scratch.as_ref().map(|scratch| scratch.path().join("f16"));
    let digests = format!("model {model_digest}, text {text_digest}");
    let base = file.as_deref().map(|file| SharedBase { file, digests: &digests });
    let asking = Asking { program: &program, model: &model, text: &text, chunks, threads, extent, base };
    let measured = measure_all(context, &asking, &readings.contexts, &readings.caches)
        .map_err(|error| disk::blame_full_disk(&folder, error))?;
    let contexts = readings.contexts.clone();
    let name = model.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(KvQuality { name, model: model_digest, text: text_digest, contexts, chunks, measured })
}

/// Returns the file that was given, or the pinned model of this name, or the committed model.
fn model_of(context: &Context, given: Option<&Path>) -> Result<PathBuf> {
    let Some(given) = given else { return context.file_of_espalier(MODEL) };
    let models = context.models()?;
    let pinned = given.to_str().and_then(|name| models.models.get_key_value(name));
    match pinned {
        Some((name, model)) if !disk::exists(given) => {
            pinned_models::provide(name, model, &context.layout, context.offline, &context.ui)?.file()
        }
        _ => Ok(given.to_path_buf()),
    }
}

/// Measures every cache at every context, and shows the progress in tokens of context and an estimate of the remaining
/// time.
fn measure_all(
    context: &Context,
    asking: &Asking<'_>,
    lengths: &[usize],
    caches: &[Cache],
) -> Result<Vec<Measured>> {
    let at_length = |length: usize| (0..caches.len()).map(move |at| (length, at));
    let each: Vec<(usize, usize)> = lengths.iter().copied().flat_map(at_length).collect();
    let total: usize = each.iter().map(|(length, at)| asking.steps(*length, *at)).sum();
    let mut progress = context.ui.progress("measuring", Some(total as u64), Unit::Steps);
    let (mut measured, mut before) = (Vec::new(), 0);
    for (length, at) in each {
        let (cache, steps) = (&caches[at], asking.steps(length, at));
        context.ui.status("Measuring", format!("{cache} at {length} tokens"));
        progress.note(&format!("{cache} at {length} tokens,"));
        let advance = |part: f64| progress.set(before + (part * steps as f64) as u64);
        measured.push(asking.measure((cache, at), length, advance)?);
        before += steps as u64;
    }
    Ok(measured)
}

/// The parameters shared by the measurements of all caches.
struct Asking<'a> {
    program: &'a Path,
    model: &'a Path,
    text: &'a Path,
    chunks: usize,
    threads: usize,
    extent: Extent,
    base: Option<SharedBase<'a>>,
}

/// A file of the f16 side's results, which the first measurement at each context writes.
struct SharedBase<'a> {
    file: &'a Path,
    /// Digests of the model and the text: the probe refuses a file with other ones.
    digests: &'a str,
}

impl Asking<'_> {
    /// Returns the steps of progress of the cache with index `at`: one that reads the f16 side computes half as much as
    /// the first, which writes it.
    fn steps(&self, length: usize, at: usize) -> usize {
        if self.base.is_some() && at == 0 { 2 * length } else { length }
    }

    /// Measures one cache, given with its index; `advance` receives the fraction that is done.
    fn measure(
        &self,
        (cache, at): (&Cache, usize),
        length: usize,
        mut advance: impl FnMut(f64),
    ) -> Result<Measured> {
        let run = self.probe((cache, at), length);
        let words = run.words();
        let (mut answer, mut log) = (String::new(), Vec::new());
        let status = run.watch(|seen| {
            if let Seen::Line(line) = seen {
                match progress::part(line) {
                    Some(part) => advance(part),
                    None if line.starts_with('{') => answer = line.to_string(),
                    None => log.push(line.to_string()),
                }
            }
            Watch::GoOn
        })?;
        if !status.success() {
            return Err(process::failed(&words, status, &log.join("\n")));
        }
        Measured::read(cache, &answer)
            .map_err(|error| Error::no(format!("`{words}` printed no result")).detail(error))
    }

    fn probe(&self, (cache, at): (&Cache, usize), length: usize) -> Run {
        let run = Run::new(self.program)
            .arg("--model")
            .arg(self.model)
            .arg("--text")
            .arg(self.text)
            .args(["--keys", &cache.keys, "--values", &cache.values])
            .args(["--context", &length.to_string(), "--chunks", &self.chunks.to_string()])
            .args(["--threads", &self.threads.to_string()])
            .args(match self.extent {
                Extent::Everything => &[][..],
                Extent::Divergence => &["--haystacks", "0", "--decode", "0"],
            });
        with_feature(self.with_base(run, at), Some(ATTENTION))
            .env(EDGE_LAYERS, cache.edge_layers.to_string())
            .env(RECENT, cache.recent.to_string())
            .env(SINKS, cache.sinks.to_string())
    }

    fn with_base(&self, run: Run, at: usize) -> Run {
        let Some(base) = &self.base else { return run };
        let flag = if at == 0 { "--write-base" } else { "--read-base" };
        run.args(["--digests", base.digests]).arg(flag).arg(base.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(base: Option<SharedBase<'_>>) -> Asking<'_> {
        let [program, model, text] = ["quality", "m", "t"].map(Path::new);
        Asking { program, model, text, chunks: 8, threads: 2, extent: Extent::Everything, base }
    }

    fn words(asking: &Asking<'_>, at: usize) -> String {
        asking.probe((&"q8_0/turbo4".parse().unwrap(), at), 512).words()
    }

    #[test]
    fn the_first_cache_writes_the_f16_side_and_the_others_read_it() {
        let shared = asking(Some(SharedBase { file: Path::new("f16"), digests: "digests" }));
        assert!(words(&shared, 0).ends_with("--digests digests --write-base f16"), "{}", words(&shared, 0));
        assert!(words(&shared, 1).ends_with("--digests digests --read-base f16"), "{}", words(&shared, 1));
        assert_eq!([0, 1, 2].map(|at| shared.steps(512, at)), [1024, 512, 512]);
        let alone = asking(None);
        assert!([0, 1].iter().all(|at| !words(&alone, *at).contains("-base")));
        assert_eq!([0, 1].map(|at| alone.steps(512, at)), [512, 512]);
    }
}
