//! The decode bench: a variant's features against a separate build of stock, on a whole model, run in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::process::Run;
use espalier_core::sys::machine::{disk, load};
use espalier_modelgen::{Architecture, DeltaNet, ModelSpec, WeightType};
use serde_json::json;

use super::timing::{Times, table, to_json};
use crate::serving::probe::{self, Probe};
use crate::serving::switches;
use crate::sys::models;

/// Tokens that each sequence decodes in one run.
const STEPS: u32 = 12;

/// Measures decoding of 8 sequences with a gated delta net model, in q8_0 and q4_0.
pub fn run(context: &Context, rounds: u32) -> Result<Outcome> {
    load::refuse_busy()?;
    let folder = context.layout.generated().join("bench");
    disk::create_folder(&folder)?;
    let variant = context.pins()?.variant(None)?.name.clone();
    let stock = probe::build(context, Probe::Logits, "stock", &folder)?;
    let ours = probe::build(context, Probe::Logits, &variant, &folder)?;
    let (mut text, mut json) = (Vec::new(), Vec::new());
    for weights in [WeightType::Q8_0, WeightType::Q4_0] {
        let model = folder.join("model.gguf");
        models::write(&model, &spec(weights))?;
        for sequences in [1, 8] {
            let title =
                format!("qwen35 {}, {sequences} sequences, {STEPS} tokens each, 1 thread", weights.name());
            context.ui.status("Measuring", &title);
            let contest = Contest { stock: &stock, ours: &ours, model: &model, sequences };
            let times = contest.measure(rounds)?;
            text.push(table(&title, &times));
            json.push(to_json(&title, &times));
        }
        disk::remove_file(&model)?;
    }
    Ok(Outcome::ok(text.join("\n"), json!(json)))
}

/// Returns four layers in the shape of a 2 B model (d 2048, value heads 32 of 128), with a small vocabulary.
fn spec(weights: WeightType) -> ModelSpec {
    ModelSpec {
        n_layer: 4,
        n_embd: 2048,
        n_ff: 6144,
        n_vocab: 4096,
        n_head: 8,
        n_head_kv: 2,
        head_dim: 256,
        delta_net: DeltaNet {
            head_dim: 128,
            n_key_heads: 16,
            n_value_heads: 32,
            conv_kernel: 4,
            full_attention_interval: 4,
        },
        ..ModelSpec::small(Architecture::Qwen35, weights)
    }
}

struct Contest<'a> {
    stock: &'a PathBuf,
    ours: &'a PathBuf,
    model: &'a Path,
    sequences: u32,
}

impl Contest<'_> {
    fn measure(&self, rounds: u32) -> Result<Vec<Times>> {
        let runs = [
            ("gdn-flat-output on", self.ours, true),
            ("stock", self.stock, false),
            ("features off", self.ours, false),
        ];
        let mut all: Vec<Times> = runs.iter().map(|(name, ..)| Times::new(name)).collect();
        for _ in 0..rounds {
            for (times, (_, probe, enabled)) in all.iter_mut().zip(runs) {
                times.push(self.decode_time(probe, enabled)?);
            }
        }
        Ok(all)
    }

    /// Returns the time of the decode steps alone, as the probe measured it inside the process.
    fn decode_time(&self, probe: &Path, enabled: bool) -> Result<Duration> {
        let run = Run::new(probe)
            .args(["--prompt", "4", "--threads", "1", "--seqs"])
            .arg(self.sequences.to_string())
            .args(["--steps", &STEPS.to_string(), "--model"])
            .arg(self.model);
        let run = switches::with_feature(run, enabled.then_some(switches::FEATURE));
        let rate = probe::measure(run, "decode_tps_median")?;
        Ok(Duration::from_secs_f64(f64::from(STEPS * self.sequences) / rate))
    }
}
