//! `cargo xtask fuzz requests`: requests of growing size, each checked against a time and memory budget.
//!
//! `plan` draws rounds (pure), `play` starts servers and sends requests, `judge` checks them against the budget (pure).

pub mod judge;
pub mod plan;
mod play;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use espalier_core::context::{Context, Outcome};
use espalier_core::error::Result;

use self::judge::Budget;
use self::plan::Round;
use self::plan::family::Family;
use self::play::RequestFuzzFixture;
use self::report::{RequestFuzzReport, RequestRoundReport};
use super::{GATE_PATIENCE, Span, program_or_packaged};

/// Options of `fuzz requests`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Range of rounds to run.
    pub span: Span,
    /// The server; the packaged paged one if `None`.
    pub program: Option<PathBuf>,
    /// Family names; all if empty.
    pub families: Vec<String>,
    /// Maximum wait of another client in seconds; the request itself may take twice as long.
    pub patience: u32,
}

/// Runs rounds until the time is up; the exit code is 1 if there are findings.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let program = program_or_packaged(context, options.program.as_ref())?;
    let seeds = options.span.seeds();
    let report = play_seeds(context, program, options.patience, &options.families, seeds)?;
    let code = u8::from(report.findings() > 0);
    Ok(Outcome { code, ..Outcome::ok(report.text(), report.json()) })
}

/// Runs a round of each of these families, for the gate. Returns the findings, one line each.
pub fn find_with_families(context: &Context, program: PathBuf, names: &[&str]) -> Result<Vec<String>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
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
    let mut report = RequestFuzzReport::new(program.display().to_string());
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
        words: round.words(),
        server: fixture.words(round.duty()),
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
