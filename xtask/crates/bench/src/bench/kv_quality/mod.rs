//! The KV quality bench: what types of the cache cost a model. `ci/probe/quality.cpp` decodes one text with an f16 cache
//! and with another one, both with our attention, and looks for facts in it.

mod baseline;
mod cache;
mod found;
mod report;

use std::path::{Path, PathBuf};

use self::baseline::Baseline;
use self::found::{Found, Measured};
use super::history::History;
use super::record::{Keep, Recorded};
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
pub use crate::serving::cache::Cache;
use crate::serving::probe::{self, Probe};
use crate::serving::switches::{ATTENTION, EDGE_LAYERS, RECENT, SINKS, with_feature};
use crate::sys::machine::process::Run;
use crate::sys::machine::{disk, load};

/// Options of `bench kv-quality`.
#[derive(Clone, Debug)]
pub struct Options {
    /// A GGUF file; the committed one when there is none.
    pub model: Option<PathBuf>,
    /// What is decoded; the committed text when there is none.
    pub text: Option<PathBuf>,
    /// Caches to be compared with f16; the usual ones when there are none.
    pub caches: Vec<Cache>,
    /// Tokens of a chunk of text, and of what the needles are in.
    pub contexts: Vec<usize>,
    /// Chunks at each context.
    pub chunks: usize,
    /// Threads; all cores when there are none.
    pub threads: Option<usize>,
    /// A result to be held against.
    pub baseline: Option<PathBuf>,
    /// What to write.
    pub keep: Keep,
}

impl Options {
    /// The few readings that `cargo xtask test` holds against `ci/kv-quality.json`: each code once. Chunks are as many as
    /// the last hundredth needs: of four, other sums in the same attention moved it by a fifth.
    #[must_use]
    pub fn quick() -> Options {
        let caches = cache::each_code_once();
        let (contexts, chunks) = (vec![512], 32);
        let (model, text, threads, baseline, keep) = (None, None, None, None, Keep::default());
        Options { model, text, caches, contexts, chunks, threads, baseline, keep }
    }
}

/// The model that was trained for this, relative to the root.
const MODEL: &str = "ci/models/espalier-retrieval.gguf";
/// What it reads, relative to the root.
const TEXT: &str = "ci/models/text.txt";

const HISTORY: History =
    History { bench: "kv-quality", identity: &["model", "text", "contexts", "chunks", "processor"] };

/// Measures and prints a table; with a baseline, fails where a cache has become worse.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    // Before minutes of measuring.
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
        Some(baseline) => held(&baseline, &found, text, run),
    }
}

fn held(baseline: &Baseline, found: &Found, text: String, run: serde_json::Value) -> Result<Outcome> {
    let compared = baseline.compare(found)?;
    if compared.worse.is_empty() {
        let text = format!("{text}\n{} readings, none worse than the baseline\n", compared.readings);
        return Ok(Outcome::ok(text, run));
    }
    let what =
        format!("{} of {} readings are worse than the baseline", compared.worse.len(), compared.readings);
    Err(Error::no(what).detail(compared.worse.join("\n")).hint(
        "cargo xtask bench kv-quality --quick --json > ci/kv-quality.json    # where that is meant to be so",
    ))
}

fn measure(context: &Context, options: &Options) -> Result<Found> {
    let (model, text) =
        (given(context, options.model.as_ref(), MODEL), given(context, options.text.as_ref(), TEXT));
    let (model_digest, text_digest) = (disk::sha256_of_file(&model)?, disk::sha256_of_file(&text)?);
    let folder = context.layout.generated().join("bench");
    disk::create_folder(&folder)?;
    let variant = context.pins()?.variant(None)?.name.to_string();
    let program = probe::build(context, Probe::Quality, &variant, &folder)?;
    let caches = if options.caches.is_empty() { cache::usual() } else { options.caches.clone() };
    let asking = Asking { program: &program, model: &model, text: &text, chunks: options.chunks };
    let threads = options.threads.unwrap_or_else(load::cores);
    let mut measured = Vec::new();
    for length in &options.contexts {
        for cache in &caches {
            context.ui.status("Measuring", format!("{cache} at {length} tokens"));
            measured.push(asking.measure(cache, *length, threads)?);
        }
    }
    let (contexts, chunks, processor) = (options.contexts.clone(), options.chunks, load::processor());
    let name = model.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Found { name, model: model_digest, text: text_digest, contexts, chunks, threads, processor, measured })
}

fn given(context: &Context, path: Option<&PathBuf>, usual: &str) -> PathBuf {
    path.cloned().unwrap_or_else(|| context.layout.root().join(usual))
}

/// What is asked of each cache.
struct Asking<'a> {
    program: &'a Path,
    model: &'a Path,
    text: &'a Path,
    chunks: usize,
}

impl Asking<'_> {
    fn measure(&self, cache: &Cache, length: usize, threads: usize) -> Result<Measured> {
        let run = Run::new(self.program)
            .arg("--model")
            .arg(self.model)
            .arg("--text")
            .arg(self.text)
            .args(["--keys", &cache.keys, "--values", &cache.values])
            .args(["--context", &length.to_string(), "--chunks", &self.chunks.to_string()])
            .args(["--threads", &threads.to_string()]);
        let run = with_feature(run, Some(ATTENTION))
            .env(EDGE_LAYERS, cache.edge_layers.to_string())
            .env(RECENT, cache.recent.to_string())
            .env(SINKS, cache.sinks.to_string());
        let words = run.words();
        Measured::read(cache, &String::from_utf8_lossy(&run.success()?))
            .map_err(|error| Error::no(format!("`{words}` said something else than a result")).detail(error))
    }
}
