//! `cargo xtask fuzz requests`: requests of growing size, each checked against a time and memory budget.
//!
//! `plan` draws rounds (pure), `play` starts servers and sends requests, `judge` checks them against the budget (pure).

pub mod judge;
pub mod plan;
mod play;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;
use espalier_core::next_command::next_command;
use espalier_core::ui;

use self::judge::Budget;
use self::plan::family::Family;
use self::plan::{Round, regressions};
use self::play::RequestFuzzFixture;
use self::report::{RequestFuzzReport, RequestRoundReport};
use super::{GATE_PATIENCE, program_or_packaged, seeds};

/// Options of `fuzz requests`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Start no new round after N minutes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: u32,
    /// Seed of the first round; each round after it adds 1.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Maximum number of rounds.
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// `llama-server` to test; default: the packaged one.
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Only this family of requests, such as `grammar-range`; repeatable.
    #[arg(long = "family", value_name = "NAME")]
    pub families: Vec<String>,
    /// Seconds within which a second client has to be answered; the request itself gets twice as long.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub patience: u32,
}

/// Runs rounds until the time is up; the exit code is 1 if there are findings.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let program = program_or_packaged(context, options.program.as_ref())?;
    let seeds = seeds(options.minutes, options.seed, options.rounds);
    let report = play_seeds(context, program, options.patience, &options.families, seeds)?;
    let code = u8::from(report.findings() > 0);
    Ok(Outcome { code, ..Outcome::ok(report.text(), report.json()) })
}

/// Runs a round of each of the gate's families. Returns the findings, one line each.
pub fn find_for_gate(context: &Context, program: PathBuf) -> Result<Vec<String>> {
    let names: Vec<String> = regressions::FAMILIES.iter().map(|name| (*name).to_string()).collect();
    let seeds = 0..names.len() as u64;
    Ok(play_seeds(context, program, GATE_PATIENCE, &names, seeds)?.lines())
}

fn play_seeds(
    context: &Context,
    program: PathBuf,
    patience: u32,
    names: &[String],
    seeds: impl Iterator<Item = u64>,
) -> Result<RequestFuzzReport> {
    let families: Vec<&'static Family> = match names.is_empty() {
        true => plan::families().collect(),
        false => names.iter().map(|name| plan::family(name)).collect::<Result<_>>()?,
    };
    let budget = Budget::with_patience(Duration::from_secs(u64::from(patience)));
    let shown = program.display().to_string();
    let command = next_command("fuzz requests", &[("--program", Some(&shown))]);
    let mut report = RequestFuzzReport::new(ui::hint(&command));
    let fixture = RequestFuzzFixture::prepare(context, program, budget)?;
    for seed in seeds {
        let round = Round::draw(seed, &families);
        context.ui.status("Playing", format!("seed {seed}: {}", round.words()));
        report.rounds.push(play_round(&fixture, &round, names, &budget)?);
        // Report at once: a long run may be interrupted.
        if let Some(text) = report.findings_of_last() {
            context.ui.warn(text);
        }
    }
    Ok(report)
}

fn play_round(
    fixture: &RequestFuzzFixture,
    round: &Round,
    names: &[String],
    budget: &Budget,
) -> Result<RequestRoundReport> {
    let begin = Instant::now();
    let evidence = fixture.play(round)?;
    let findings = judge::judge(round, &evidence, budget);
    let report = RequestRoundReport {
        seed: round.seed,
        chosen: names.to_vec(),
        families: round.names(),
        words: round.words(),
        server: fixture.words(round.task()),
        accepted: None,
        refused: None,
        slowest: Duration::ZERO,
        other: Duration::ZERO,
        growth: 0,
        took: begin.elapsed(),
        findings,
    };
    Ok(report.summarize(&evidence))
}
