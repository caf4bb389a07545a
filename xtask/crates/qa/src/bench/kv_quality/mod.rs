//! The KV quality bench: the loss of model quality for each cache type. `ci/probe/quality.cpp` decodes one text with an
//! f16 cache and with another one, both with our attention, and looks for facts in it.

mod baseline;
mod cache;
mod measurements;
mod progress;
mod report;

use std::path::{Path, PathBuf};

use espalier_core::config::models::MODEL_OF_CHECKS;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::process::{self, Run, Seen, Watch};
use espalier_core::sys::machine::{disk, load};
use espalier_core::sys::project::pinned_models;
use espalier_core::ui::Unit;

pub use self::baseline::Tolerance;
use self::baseline::{Baseline, Compared};
use self::measurements::{KvQualityRun, Measured};
use super::history::History;
use super::record::{Keep, Recorded};
pub use crate::serving::cache::Cache;
use crate::serving::probe::{self, Probe};
use crate::serving::switches::{ATTENTION, EDGE_LAYERS, RECENT, SINKS, with_feature};

/// Options of `bench kv-quality`.
#[derive(Clone, Debug)]
pub struct Options {
    /// A GGUF file; the committed model when none is given.
    pub model: Option<PathBuf>,
    /// The text to decode; the committed text when none is given.
    pub text: Option<PathBuf>,
    /// Caches to compare with f16; the default ones when the list is empty.
    pub caches: Vec<Cache>,
    /// Tokens per chunk of text, and of the context that contains the needles.
    pub contexts: Vec<usize>,
    /// Number of chunks at each context.
    pub chunks: usize,
    /// Number of threads; one per core when none is given.
    pub threads: Option<usize>,
    /// An earlier result to compare with.
    pub baseline: Option<PathBuf>,
    /// Largest allowed increase over that result.
    pub tolerance: Tolerance,
    /// Whether needles and rates are measured, in addition to the divergence.
    pub extent: Extent,
    /// Computation of the f16 side.
    pub base: Base,
    /// Files to write.
    pub keep: Keep,
}

/// Scope of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Divergence, needles and rates.
    #[default]
    Everything,
    /// Divergence only, which takes a third of the time.
    Divergence,
}

/// Computation of the f16 side, which is the same beside every cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// With each cache: rates are measured alternately in all chunks.
    #[default]
    WithEach,
    /// Once for each context; the other caches read its results from a file, and rates are measured alternately in the
    /// last eighth of the chunks.
    Once,
}

impl Options {
    /// Returns the options for the readings on real weights that `cargo xtask test` compares with
    /// `ci/kv-quality-weights.json`: each type once, in one chunk. The top 1 % of 256 predictions is two of them, so
    /// the 99th percentile is not compared.
    #[must_use]
    pub fn on_weights() -> Options {
        let caches = cache::each_type_once();
        let (model, tolerance) = (Some(PathBuf::from(MODEL_OF_CHECKS)), Tolerance::OF_FEW_PREDICTIONS);
        Options { model, caches, chunks: 1, tolerance, extent: Extent::Divergence, ..Options::quick() }
    }

    /// Returns the options for the few readings that `cargo xtask test` compares with `ci/kv-quality.json`: each code
    /// once. The 99th percentile needs this many chunks: with four, a different order of summation in the same
    /// attention moved it by a fifth.
    #[must_use]
    pub fn quick() -> Options {
        let caches = cache::each_code_once();
        let (contexts, chunks) = (vec![512], 32);
        let (model, text, threads, baseline, keep) = (None, None, None, None, Keep::default());
        let (tolerance, extent, base) = (Tolerance::default(), Extent::default(), Base::Once);
        Options { model, text, caches, contexts, chunks, threads, baseline, tolerance, extent, base, keep }
    }
}

/// Path of the model that was trained for this bench, relative to the root.
const MODEL: &str = "ci/models/espalier-retrieval.gguf";
/// Path of the text that it decodes, relative to the root.
const TEXT: &str = "ci/models/text.txt";

const HISTORY: History =
    History { bench: "kv-quality", identity: &["model", "text", "contexts", "chunks", "processor"] };

/// Measures and prints a table; with a baseline, fails if a cache has become worse.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    // Read first, before minutes of measuring.
    let baseline = options.baseline.as_deref().map(Baseline::read).transpose()?;
    let found = measure(context, options)?;
    let pins = context.pins()?;
    let pin = &pins.pin_of(pins.variant(None)?).revision.to_string();
    let (text, run) = (report::text(&found), found.to_json());
    let plot = report::plot(&found).svg();
    let recorded =
        Recorded { history: HISTORY, pin, run: run.clone(), shape: HISTORY.bench.to_string(), plot };
    recorded.write(context, &options.keep)?;
    match baseline {
        None => Ok(Outcome::ok(text, run)),
        Some(baseline) => held(&baseline.compare(&found, options.tolerance)?, text, run),
    }
}

fn held(compared: &Compared, text: String, run: serde_json::Value) -> Result<Outcome> {
    if compared.worse.is_empty() {
        let text = format!("{text}\n{} readings, none worse than the baseline\n", compared.readings);
        return Ok(Outcome::ok(text, run));
    }
    let what =
        format!("{} of {} readings are worse than the baseline", compared.worse.len(), compared.readings);
    Err(Error::no(what)
        .detail(compared.worse.join("\n"))
        .hint("where that is intended, record it: cargo xtask bench kv-quality --quick --json > ci/kv-quality.json")
        .hint("or, on real weights: cargo xtask bench kv-quality --weights --json > ci/kv-quality-weights.json"))
}

fn measure(context: &Context, options: &Options) -> Result<KvQualityRun> {
    let model = model_of(context, options.model.as_deref())?;
    let text = options.text.clone().map_or_else(|| context.file_of_espalier(TEXT), Ok)?;
    let (model_digest, text_digest) = (disk::sha256_of_file(&model)?, disk::sha256_of_file(&text)?);
    let folder = context.layout.generated().join("bench");
    disk::create_folder(&folder)?;
    let variant = context.pins()?.variant(None)?.name.to_string();
    let program = probe::build(context, Probe::Quality, &variant, &folder)?;
    let caches = if options.caches.is_empty() { cache::usual() } else { options.caches.clone() };
    let threads = options.threads.unwrap_or_else(load::cores);
    let (chunks, extent) = (options.chunks, options.extent);
    let scratch = (options.base == Base::Once).then(|| disk::scratch_folder(&folder, "kv-quality"));
    let scratch = scratch.transpose()?;
    let file = scratch.as_ref().map(|scratch| scratch.path().join("f16"));
    let digests = format!("model {model_digest}, text {text_digest}");
    let base = file.as_deref().map(|file| SharedBase { file, digests: &digests });
    let asking = Asking { program: &program, model: &model, text: &text, chunks, threads, extent, base };
    let measured = measure_all(context, &asking, &options.contexts, &caches)
        .map_err(|error| disk::blame_full_disk(&folder, error))?;
    let (contexts, chunks, processor) = (options.contexts.clone(), options.chunks, load::processor());
    let name = model.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(KvQualityRun {
        name,
        model: model_digest,
        text: text_digest,
        contexts,
        chunks,
        threads,
        processor,
        measured,
    })
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
        let (mut answer, mut said) = (String::new(), Vec::new());
        let status = run.watch(|seen| {
            if let Seen::Line(line) = seen {
                match progress::part(line) {
                    Some(part) => advance(part),
                    None if line.starts_with('{') => answer = line.to_string(),
                    None => said.push(line.to_string()),
                }
            }
            Watch::GoOn
        })?;
        if !status.success() {
            return Err(process::failed(&words, status, &said.join("\n")));
        }
        Measured::read(cache, &answer)
            .map_err(|error| Error::no(format!("`{words}` said something else than a result")).detail(error))
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
