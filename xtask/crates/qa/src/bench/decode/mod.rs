//! The decode bench: our CPU kernels for gated delta nets and q8_0 weights against a separate build of stock, on a whole model, in turn.

mod record;

use std::path::{Path, PathBuf};

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::sys::machine::disk;
use espalier_core::sys::machine::process::Run;
use espalier_modelgen::{Architecture, DeltaNet, ModelSpec, WeightType};
use serde::{Deserialize, Serialize};

use self::record::Rates;
pub(super) use self::record::{Case, Decode};
use super::Rounds;
use super::record::{Head, Keep, Record};
use crate::serving::bench_fixture::{Variants, look_around, timed_builds};
use crate::serving::probe::{self, Probe};
use crate::serving::switches::{FEATURE, GDN_RECURRENCE, MUL_MAT, with_feature};
use crate::serving::{Serving, TimedServing};
use crate::sys::models;

/// The features that a user enables for such a model.
pub(super) const FEATURES: [&str; 3] = [FEATURE, GDN_RECURRENCE, MUL_MAT];

/// Tokens of each prompt.
const PROMPT: u32 = 64;

/// Tokens that each sequence decodes in one run.
const STEPS: u32 = 12;

/// Default types of the weights.
const WEIGHTS: [&str; 2] = ["q8_0", "q4_0"];

/// Default numbers of sequences.
const SEQUENCES: [u32; 3] = [1, 8, 32];

/// The models and their sequences.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct Workload {
    /// Types of the model's weights, separated by commas.
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    #[arg(default_values = WEIGHTS, value_parser = ["f16", "q8_0", "q4_0"])]
    pub weights: Vec<String>,
    /// Numbers of sequences that are decoded at once, separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    #[arg(default_values_t = SEQUENCES, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub sequences: Vec<u32>,
}

/// Options of `bench decode`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// The models and their sequences.
    #[command(flatten)]
    pub workload: Workload,
    /// Features to enable in our build, separated by commas.
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    #[arg(default_values = FEATURES, value_parser = FEATURES)]
    pub features: Vec<String>,
    /// Variant to measure, against the one that it is gated against; default: that of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Measures and prints a table for each model and number of sequences; the exit code is 1 if a goal is missed.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let serving = Serving::from(options.serving);
    let variants = Variants::of(context, options.variant.as_ref())?;
    let builds = timed_builds(context, &[variants.stock.as_str(), variants.ours.as_str()])?;
    let load = look_around(context, serving)?;
    let folder = context.layout.generated().join("bench");
    disk::create_folder(&folder)?;
    let mut bench = Bench {
        context,
        serving,
        stock: probe::build(context, Probe::Logits, &variants.stock, &folder)?,
        ours: probe::build(context, Probe::Logits, &variants.ours, &folder)?,
        model: folder.join("model.gguf"),
        threads: serving.threads.unwrap_or_else(|| load.free_cores()),
        is_quiet: load.is_quiet(),
        features: options.features.join(","),
    };
    let cases = bench.measure_all(&options.workload, options.rounds.count())?;
    let head = Head {
        pin: builds.pin,
        variant: variants.named(),
        trees: builds.trees,
        threads: Some(bench.threads),
        quiet: Some(bench.is_quiet),
        ..Head::at_pin(context)?
    };
    let result = Decode::judged(options.workload.clone(), bench.features, cases);
    Record { head, result }.finish(context, &options.keep)
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

/// The programs under test, and the file with the model.
struct Bench<'a> {
    context: &'a Context,
    serving: Serving,
    stock: PathBuf,
    ours: PathBuf,
    model: PathBuf,
    threads: usize,
    is_quiet: bool,
    /// As `ESPALIER_ENABLE` lists them.
    features: String,
}

impl Bench<'_> {
    /// Removes the model whether or not a measurement fails, and before it one of a run that was killed: it is large.
    fn measure_all(&mut self, workload: &Workload, rounds: u32) -> Result<Vec<Case>> {
        disk::remove_file(&self.model)?;
        let cases = self.measure_each(workload, rounds);
        let removed = disk::remove_file(&self.model);
        cases.and_then(|cases| removed.map(|()| cases))
    }

    fn measure_each(&mut self, workload: &Workload, rounds: u32) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for weights in
            WeightType::ALL.iter().filter(|one| workload.weights.iter().any(|name| name == one.name()))
        {
            models::write(&self.model, &spec(*weights))?;
            for sequences in &workload.sequences {
                let mut case = Case::new(weights.name(), *sequences);
                self.context.ui.status("Measuring", case.title());
                self.is_quiet &= look_around(self.context, self.serving)?.is_quiet();
                for _ in 0..rounds {
                    self.add_round(&mut case)?;
                }
                cases.push(case);
            }
        }
        Ok(cases)
    }

    fn add_round(&self, case: &mut Case) -> Result<()> {
        let sequences = case.sequences;
        self.measure(&self.ours, Some(self.features.as_str()), sequences, &mut case.enabled)?;
        self.measure(&self.stock, None, sequences, &mut case.stock)?;
        self.measure(&self.ours, None, sequences, &mut case.disabled)
    }

    /// Adds the rates of one run, as the probe measured them inside the process.
    fn measure(&self, probe: &Path, feature: Option<&str>, sequences: u32, rates: &mut Rates) -> Result<()> {
        let numbers = [
            ("--prompt", PROMPT.to_string()),
            ("--steps", STEPS.to_string()),
            ("--seqs", sequences.to_string()),
            ("--threads", self.threads.to_string()),
        ];
        let run =
            numbers.iter().fold(Run::new(probe), |run, (name, number)| run.args([*name, number.as_str()]));
        let run = with_feature(run.arg("--model").arg(&self.model), feature);
        let [decode, prompt] = probe::measure(run, ["decode_tps_median", "prompt_tps_median"])?;
        rates.push(decode, prompt);
        Ok(())
    }
}
