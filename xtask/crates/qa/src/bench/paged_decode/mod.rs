//! The paged decode bench: one sequence on a fresh server, then one and many in a pool nearly full of cached blocks.
//! Sequences share nothing, so that it measures the overhead of paging, or they share a prefix.
//!
//! Prompts are computed one after the other, then all are decoded at once; the server itself reports the tokens per
//! second of both.

mod against;
mod record;

use clap::Args;
use espalier_core::config::name::Name;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_modelgen::ModelSpec;
use record::Sample;
pub(super) use record::{Case, PagedDecode};
use serde::{Deserialize, Serialize};

use super::Rounds;
use super::record::{Head, Keep, Record};
use crate::serving::TimedServing;
use crate::serving::bench_fixture::{self, BenchFixture, Variants};
use crate::serving::kv_pool::Pool;
use crate::serving::load;
use crate::serving::prompts::{MAX_SEQUENCES, Prompts};
use crate::serving::test_server::{TestServer, chosen};

/// The requests that every server gets.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct Workload {
    /// Tokens of each prompt.
    #[arg(long, value_name = "N", default_value_t = 1600)]
    pub length: usize,
    /// Length of the shared prefix in tokens.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub shared: usize,
    /// Tokens to predict for each sequence.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub predict: usize,
    /// Cells of the pool.
    #[arg(long, value_name = "N", default_value_t = 32_768)]
    pub cells: usize,
    /// Values in a head of the model's attention.
    #[arg(long, value_name = "N", default_value_t = HEAD)]
    #[serde(default)]
    pub head: u64,
    /// KV cache type, or `K/V`; suffixes as in `bench kv-quality --cache`.
    #[arg(long, value_name = "TYPE", default_value = CACHE)]
    #[serde(default = "default_cache")]
    pub cache: String,
    /// Start with an empty pool instead of filling it first.
    #[arg(long)]
    #[serde(default)]
    pub fresh: bool,
}

/// Options of `bench paged-decode`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Number of rounds.
    #[command(flatten)]
    pub rounds: Rounds,
    /// Number of concurrent sequences, besides one alone.
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub sequences: usize,
    /// The requests.
    #[command(flatten)]
    pub workload: Workload,
    /// Variant to measure, against the one that it is gated against; default: that of `pins.toml`.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<Name>,
    /// Measure only this server: `stock-unified`, `paged` or `paged-plain`.
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<TestServer>,
    /// Number of threads, and whether to measure on a busy machine.
    #[command(flatten)]
    pub serving: TimedServing,
    /// Files to write.
    #[command(flatten)]
    pub keep: Keep,
}

/// Default head size.
pub const HEAD: u64 = 64;
/// Default cache type.
pub const CACHE: &str = "f16";

/// The cache type of records from before it could be chosen.
fn default_cache() -> String {
    CACHE.to_string()
}

/// Fraction of the pool that is filled before the sequences start.
const FILLED: f64 = 0.9;

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    check(options)?;
    let test_servers = test_servers(options)?;
    let spec = ModelSpec { head_dim: options.workload.head, ..ModelSpec::plain_70_million() };
    let (variants, serving) = (Variants::of(context, options.variant.as_ref())?, options.serving.into());
    let mut fixture = BenchFixture::prepare_of(context, variants, serving, &test_servers, &spec)?;
    let case = |(sequences, filled)| Case::new(sequences, filled, &test_servers);
    let mut cases: Vec<Case> = cases(options).into_iter().map(case).collect();
    fixture.rounds(options.rounds.count(), |fixture| {
        cases.iter_mut().try_for_each(|case| measure(fixture, options, case))
    })?;
    let head = Head::of_servers(context, &fixture)?;
    let record =
        Record { head, result: PagedDecode::new(options.sequences, options.workload.clone(), cases) };
    let outcome = record.finish(context, &options.keep)?;
    if options.keep.record {
        against::write(context, &record)?;
    }
    Ok(outcome)
}

/// Returns the cases: the number of sequences, and whether the pool is filled before.
fn cases(options: &Options) -> Vec<(usize, bool)> {
    match (options.workload.fresh, options.sequences) {
        (true, 1) => vec![(1, false)],
        (true, many) => vec![(1, false), (many, false)],
        (false, many) => vec![(1, false), (1, true), (many, true)],
    }
}

fn check(options: &Options) -> Result<()> {
    let Workload { length, shared, predict, cells, .. } = options.workload;
    let needed = options.sequences.saturating_mul(length.saturating_add(predict));
    let wrong = if !(1..MAX_SEQUENCES).contains(&options.sequences) {
        format!("`--sequences` takes a number from 1 to {}", MAX_SEQUENCES - 1)
    } else if length == 0 || predict < 2 {
        "`--length` has to be at least 1, `--predict` at least 2".to_string()
    } else if shared >= length {
        format!("`--shared` has to be less than the {length} tokens of a prompt")
    } else if needed > cells {
        format!("the sequences need {needed} cells, and `--cells` gives {cells}")
    } else {
        return Ok(());
    };
    Err(Error::usage(wrong).hint("cargo xtask bench paged-decode --help"))
}

fn test_servers(options: &Options) -> Result<Vec<TestServer>> {
    let those = [TestServer::StockUnified, TestServer::Paged, TestServer::PagedPlain];
    let found: Vec<TestServer> =
        chosen(&options.only).into_iter().filter(|one| those.contains(one)).collect();
    if found.is_empty() {
        return Err(Error::usage("no server under test is left: this bench compares stock-unified and ours")
            .hint("cargo xtask bench paged-decode --only stock-unified --only paged"));
    }
    Ok(found)
}

/// Measures every server once.
fn measure(fixture: &BenchFixture<'_>, options: &Options, case: &mut Case) -> Result<()> {
    let pool = (case.sequences, case.filled);
    for rates in &mut case.servers {
        let sample = sample(fixture, options, pool, rates.name)?;
        rates.push(sample);
    }
    case.compare();
    Ok(())
}

fn sample(
    fixture: &BenchFixture<'_>,
    options: &Options,
    (sequences, filled): (usize, bool),
    test_server: TestServer,
) -> Result<Sample> {
    let Workload { predict, cells, cache, .. } = &options.workload;
    let types = bench_fixture::cache_types(cache)?;
    let mut switches: Vec<&str> = types.iter().map(String::as_str).chain(["--flash-attn", "on"]).collect();
    if test_server == TestServer::StockUnified {
        // Otherwise it removes the prompts from the idle slots, and recomputes them while it answers.
        switches.push("--no-cache-idle-slots");
    }
    let server = fixture.server_with(test_server, options.sequences, *cells, &switches)?;
    if filled {
        for family in 0..fillers(options) {
            let filler = prompts(options, 1, FIRST_FILLER + family as u64);
            load::in_turn(&server, &filler.bodies_by_slot())?;
        }
    }
    let pool = Pool::if_paged(&server.get("/props")?.1)?;
    let prompts = prompts(options, sequences, 0);
    let computed = load::in_turn(&server, &prompts.bodies_by_slot())?;
    let wanted = Prompts { predict: *predict, ..prompts };
    let answers = load::at_once(&server, &wanted.bodies_by_slot())?.records;
    Ok(Sample {
        prompt_rate: load::prompt_rate(&computed),
        rate: answers.iter().map(|answer| answer.timings.decode_rate).sum(),
        computed: load::computed(&answers),
        filled: pool.map(|pool| pool.filled()),
    })
}

/// First family of filler prompts, distinct from the measured ones.
const FIRST_FILLER: u64 = 1;

fn fillers(options: &Options) -> usize {
    let cells = options.workload.cells as f64 * FILLED;
    (cells / options.workload.length as f64).ceil() as usize
}

/// Returns prompts that are answered with one token.
fn prompts(options: &Options, requests: usize, family: u64) -> Prompts {
    let Workload { length, shared, .. } = options.workload;
    Prompts { requests, prefix: shared, suffix: length - shared, predict: 1, family }
}

#[cfg(test)]
mod tests {
    use super::record::tests::workload;
    use super::*;

    fn options() -> Options {
        Options {
            rounds: Rounds { rounds: 1 },
            sequences: 16,
            workload: workload(),
            variant: None,
            only: Vec::new(),
            serving: TimedServing::default(),
            keep: Keep::default(),
        }
    }

    #[test]
    fn nine_tenths_of_the_pool_are_filled() {
        let options = options();
        let cells = fillers(&options) * options.workload.length;
        assert!((29_492..=options.workload.cells).contains(&cells), "{cells}");
    }

    #[test]
    fn prompts_have_no_common_beginning() {
        let all = prompts(&options(), 16, 0);
        let filler = prompts(&options(), 1, FIRST_FILLER);
        assert_eq!(all.prompt(3).len(), 1600);
        assert_ne!(all.prompt(3)[0], all.prompt(4)[0]);
        // Fillers differ from the second token on, so they share less than a block and the rest is private.
        assert_ne!(all.prompt(0)[1], filler.prompt(0)[1]);
    }

    #[test]
    fn prompts_that_share_begin_alike() {
        let workload = Workload { shared: 1500, ..workload() };
        let all = prompts(&Options { workload, ..options() }, 16, 0);
        assert_eq!((all.prompt(3).len(), &all.prompt(3)[..1500]), (1600, &all.prompt(4)[..1500]));
        assert_ne!(all.prompt(3)[1500], all.prompt(4)[1500]);
    }

    #[test]
    fn a_fresh_pool_is_not_filled() {
        assert_eq!(cases(&options()), [(1, false), (1, true), (16, true)]);
        let fresh = Options { workload: Workload { fresh: true, ..workload() }, ..options() };
        assert_eq!(cases(&fresh), [(1, false), (16, false)]);
        assert_eq!(cases(&Options { sequences: 1, ..fresh.clone() }), [(1, false)]);
    }

    #[test]
    fn workloads_that_do_not_fit_are_refused() {
        assert!(check(&options()).is_ok());
        let with = |workload| Options { workload, ..options() };
        let error = check(&with(Workload { cells: 1024, ..workload() })).unwrap_err();
        assert!(error.what.contains("need 26624 cells"), "{error}");
        let error = check(&with(Workload { shared: 1600, ..workload() })).unwrap_err();
        assert!(error.what.contains("less than the 1600 tokens"), "{error}");
        assert!(check(&Options { sequences: 256, ..options() }).is_err());
    }

    #[test]
    fn some_can_take_part() {
        let all_servers = [TestServer::StockUnified, TestServer::Paged, TestServer::PagedPlain];
        assert_eq!(test_servers(&options()).unwrap(), all_servers);
        assert!(test_servers(&Options { only: vec![TestServer::Stock], ..options() }).is_err());
    }
}
