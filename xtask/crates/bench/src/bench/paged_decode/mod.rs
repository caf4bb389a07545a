//! The paged decode bench: what paging costs when nothing is shared. One sequence on a fresh server, one and
//! many in a pool that is nearly full of what earlier requests left.
//!
//! Prompts are computed one after the other, then all are answered at once; tokens a second, of both, are the
//! server's own figures.

mod report;

use report::{Case, Found, Rates, Sample};

use super::history::History;
use super::record::{Keep, Recorded};
use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::modelgen::ModelSpec;
use crate::serving::Serving;
use crate::serving::answer::{self, Answer};
use crate::serving::arena::Arena;
use crate::serving::contestant::{Contestant, chosen};
use crate::serving::kv_pool::Pool;
use crate::serving::prompts::{MOST_SEQUENCES, Prompts};
use crate::sys::machine::load;
use crate::sys::net::server::Server;

/// Options of `bench paged-decode`.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often each contestant runs; they run in turn.
    pub rounds: u32,
    /// How many sequences at once.
    pub sequences: usize,
    /// Tokens of each prompt.
    pub length: usize,
    /// Tokens that each is answered with.
    pub predict: usize,
    /// Cells of the pool.
    pub cells: usize,
    /// Contestants, stock-unified and paged; both when there are none.
    pub only: Vec<Contestant>,
    /// Threads, and whether a busy machine will do.
    pub serving: Serving,
    /// What to write.
    pub keep: Keep,
}

/// The share of the pool that is filled before the sequences come.
const FILLED: f64 = 0.9;

const HISTORY: History = History {
    bench: "paged-decode",
    identity: &["trees", "processor", "threads", "sequences", "length", "predict", "cells"],
};

/// Measures and prints a table.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    check(options)?;
    let contestants = contestants(options)?;
    let mut arena = Arena::prepare(context, options.serving, &contestants, &ModelSpec::plain_70_million())?;
    let mut cases = [(1, false), (1, true), (options.sequences, true)]
        .map(|(sequences, filled)| Case::new(sequences, filled, &contestants));
    for round in 1..=options.rounds.max(1) {
        arena.before_round()?;
        context.ui.status("Measuring", format!("round {round} of {}", options.rounds.max(1)));
        for case in &mut cases {
            let (sequences, filled) = (case.sequences, case.filled);
            for rates in &mut case.rates {
                rates.rounds.push(measure(&arena, options, sequences, filled, rates)?);
            }
        }
    }
    let found = Found {
        builds: arena.builds.clone(),
        processor: load::processor(),
        threads: arena.threads,
        quiet: arena.quiet,
        length: options.length,
        predict: options.predict,
        cells: options.cells,
        cases: cases.to_vec(),
    };
    let recorded = Recorded {
        history: HISTORY,
        pin: &found.builds.pin,
        run: report::json(&found),
        shape: format!("paged-decode-{}x{}", options.sequences, options.length),
        plot: report::svg(&found),
    };
    recorded.write(context, &options.keep)?;
    Ok(Outcome::ok(report::text(&found), report::json(&found)))
}

fn check(options: &Options) -> Result<()> {
    let needed = options.sequences.saturating_mul(options.length.saturating_add(options.predict));
    let wrong = if !(1..MOST_SEQUENCES).contains(&options.sequences) {
        format!("`--sequences` takes a number from 1 to {}", MOST_SEQUENCES - 1)
    } else if options.length == 0 || options.predict < 2 {
        "`--length` wants a number from 1, `--predict` one from 2".to_string()
    } else if needed > options.cells {
        format!("the sequences need {needed} cells, and `--cells` gives {}", options.cells)
    } else {
        return Ok(());
    };
    Err(Error::usage(wrong).hint("cargo xtask bench paged-decode --help"))
}

fn contestants(options: &Options) -> Result<Vec<Contestant>> {
    let ours = [Contestant::StockUnified, Contestant::Paged];
    let found: Vec<Contestant> = chosen(&options.only).into_iter().filter(|one| ours.contains(one)).collect();
    if found.is_empty() {
        return Err(Error::usage("no contestant is left: this bench compares stock-unified and paged")
            .hint("cargo xtask bench paged-decode --only stock-unified --only paged"));
    }
    Ok(found)
}

fn measure(
    arena: &Arena<'_>,
    options: &Options,
    sequences: usize,
    filled: bool,
    rates: &Rates,
) -> Result<Sample> {
    let server = arena.server(rates.contestant, options.sequences, options.cells)?;
    if filled {
        for family in 0..fillers(options) {
            let filler = Prompts { requests: 1, ..prompts(options, 1, FIRST_FILLER + family as u64) };
            ask_one_by_one(&server, filler)?;
        }
    }
    let before = pool_of(&server)?;
    let computed = ask_one_by_one(&server, prompts(options, sequences, 0))?;
    let wanted = Prompts { predict: options.predict, ..prompts(options, sequences, 0) };
    let answers = answer::parse_all(&server.post_at_once("/completion", &wanted.bodies())?.answers)?;
    Ok(sample(&computed, &answers, before))
}

/// Other prompts than the ones that are measured.
const FIRST_FILLER: u64 = 1;

fn fillers(options: &Options) -> usize {
    let cells = options.cells as f64 * FILLED;
    (cells / options.length as f64).ceil() as usize
}

/// Prompts that have nothing in common, to be computed and answered with one token.
fn prompts(options: &Options, requests: usize, family: u64) -> Prompts {
    Prompts { requests, prefix: 0, suffix: options.length, predict: 1, family }
}

fn ask_one_by_one(server: &Server, prompts: Prompts) -> Result<Vec<Answer>> {
    let ask = |body| {
        let (status, answer) = server.post("/completion", body)?;
        answer::parse(status, &answer)
    };
    prompts.bodies().iter().map(ask).collect()
}

fn pool_of(server: &Server) -> Result<Option<Pool>> {
    Pool::if_paged(&server.get("/props")?.1)
}

fn sample(prompts: &[Answer], answers: &[Answer], before: Option<Pool>) -> Sample {
    Sample {
        prompt_rate: answer::prompt_rate(prompts),
        rate: answers.iter().map(|answer| answer.decode_rate).sum(),
        computed: answer::computed(answers),
        filled: before.map(|pool| pool.filled()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            rounds: 1,
            sequences: 16,
            length: 1600,
            predict: 64,
            cells: 32_768,
            only: Vec::new(),
            serving: Serving::default(),
            keep: Keep::default(),
        }
    }

    #[test]
    fn nine_tenths_of_the_pool_are_filled() {
        let options = options();
        let cells = fillers(&options) * options.length;
        assert!((29_492..=options.cells).contains(&cells), "{cells}");
    }

    #[test]
    fn prompts_have_no_common_beginning() {
        let all = prompts(&options(), 16, 0);
        let filler = prompts(&options(), 1, FIRST_FILLER);
        assert_eq!(all.prompt(3).len(), 1600);
        assert_ne!(all.prompt(3)[0], all.prompt(4)[0]);
        // Fillers begin alike, so that they share less than a block and the rest is their own.
        assert_ne!(all.prompt(0)[1], filler.prompt(0)[1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(check(&options()).is_ok());
        let error = check(&Options { cells: 1024, ..options() }).unwrap_err();
        assert!(error.what.contains("need 26624 cells"), "{error}");
        assert!(check(&Options { sequences: 256, ..options() }).is_err());
    }

    #[test]
    fn only_two_can_take_part() {
        assert_eq!(contestants(&options()).unwrap(), [Contestant::StockUnified, Contestant::Paged]);
        assert!(contestants(&Options { only: vec![Contestant::Stock], ..options() }).is_err());
    }
}
