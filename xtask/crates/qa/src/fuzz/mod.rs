//! `cargo xtask fuzz`: random requests to servers, reproducible from a seed.
//!
//! This module is `fuzz servers`: the paged server against the same server unpaged. `requests` is `fuzz requests`.
//!
//! `plan` draws rounds (pure), `play` starts servers and runs clients, `judge` reports violations (pure).

pub mod judge;
pub mod plan;
mod play;
mod report;
pub mod requests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use espalier_core::config::flavors::DEFAULT_FLAVOR;
use espalier_core::context::{Context, Outcome};
use espalier_core::error::{Error, Result};
use espalier_core::next_command::next_command;
use espalier_core::sys::machine::disk;
use espalier_core::ui;
use espalier_dist::checked_packages::CheckedPackages;
use plan::Round;
use plan::model::ModelKind;
use play::FuzzFixture;
use report::{FuzzReport, RoundReport};

/// The fuzzer to run.
#[derive(Clone, Debug, Subcommand)]
pub enum Fuzzer {
    /// Compare the paged server with the same one unpaged: random options, random clients, every answer judged.
    Servers(Options),
    /// Send grammars, schemas, lists and bodies of growing size, and enforce a time and memory budget on each.
    Requests(requests::Options),
}

/// Options of `fuzz servers`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Start no new round after N minutes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub minutes: u32,
    /// Seed of the first round; each round after it adds 1.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Maximum number of rounds; those that `--model` skips count.
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// Run only the rounds that support this model, and use it in them; default: all rounds, each with the model that
    /// its seed selects.
    #[arg(long, value_enum, value_name = "NAME")]
    pub model: Option<ModelKind>,
    /// `llama-server` to test; default: the packaged one.
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Seconds without data after which a client counts as stalled; longer while other requests are ahead of its own.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub patience: u32,
}

/// Runs rounds until the time is up; the exit code is 1 if there are findings.
pub fn run(context: &Context, what: &Fuzzer) -> Result<Outcome> {
    match what {
        Fuzzer::Servers(options) => fuzz_servers(context, options),
        Fuzzer::Requests(options) => requests::run(context, options),
    }
}

/// Returns the seeds of at most `rounds` rounds. No round starts after `minutes`, which count from this call, but the
/// first always runs.
fn seeds(minutes: u32, first: u64, rounds: Option<u64>) -> impl Iterator<Item = u64> {
    let (begin, limit) = (Instant::now(), Duration::from_secs(u64::from(minutes) * 60));
    (first..).take_while(move |seed| {
        let number = seed - first;
        rounds.is_none_or(|rounds| number < rounds) && (number == 0 || begin.elapsed() < limit)
    })
}

fn fuzz_servers(context: &Context, options: &Options) -> Result<Outcome> {
    let Options { minutes, seed, rounds, patience, model, .. } = *options;
    let program = program_or_packaged(context, options.program.as_ref())?;
    let report = play_seeds(context, program, patience, model, seeds(minutes, seed, rounds))?;
    let code = u8::from(report.findings() > 0);
    Ok(Outcome { code, ..Outcome::ok(report.text(), report.json()) })
}

/// Returns the given server, or the packaged paged one.
///
/// # Errors
///
/// It does not exist, or the packaged one is not of the current sources.
fn program_or_packaged(context: &Context, program: Option<&PathBuf>) -> Result<PathBuf> {
    let program = match program {
        Some(program) => program.clone(),
        None => {
            let pins = context.pins()?;
            let variant = pins.variant(None)?;
            CheckedPackages::begin(context, &pins, &[variant])?;
            context.layout.server(&variant.name, DEFAULT_FLAVOR)
        }
    };
    if !disk::exists(&program) {
        let what = format!("there is no server at `{}`", context.layout.show(&program));
        return Err(Error::environment(what).hint("cargo xtask build"));
    }
    Ok(program)
}

/// Runs the rounds of these seeds with this program, for the gate. Returns the findings, one line each, and what none
/// of the rounds has tested although it should.
pub fn find_with_seeds(context: &Context, program: PathBuf, seeds: &[u64]) -> Result<Vec<String>> {
    let report = play_seeds(context, program, GATE_PATIENCE, None, seeds.iter().copied())?;
    Ok([report.lines(), report.unreached()].concat())
}

/// Patience in seconds: long, because the gate runs on busy machines.
const GATE_PATIENCE: u32 = 30;

fn play_seeds(
    context: &Context,
    program: PathBuf,
    patience: u32,
    model: Option<ModelKind>,
    seeds: impl Iterator<Item = u64>,
) -> Result<FuzzReport> {
    let patience = Duration::from_secs(u64::from(patience));
    let shown = program.display().to_string();
    let mut fixture = FuzzFixture::prepare(context, program, patience)?;
    let flags = [("--program", Some(shown.as_str())), ("--model", model.map(ModelKind::name))];
    let command = next_command("fuzz servers", &flags);
    let mut report = FuzzReport::new(ui::hint(&command));
    let rounds = seeds.map(|seed| Round::draw_for(seed, model));
    for round in rounds.filter(|round| model.is_none_or(|model| round.server.model == model)) {
        let (seed, theme) = (round.seed, format!("{:?}", round.server.theme));
        let name = round.server.model.name();
        context.ui.status("Playing", format!("seed {seed}: {theme}, {name}"));
        let begin = Instant::now();
        let evidence = fixture.play(&round)?;
        let findings = judge::judge(&round, &evidence, patience);
        report.rounds.push(RoundReport {
            seed,
            theme,
            model: name,
            server: fixture.words(&round.server),
            actions: evidence.played.len(),
            tally: judge::tally::of(&evidence),
            expected: round.server.expected_events(),
            took: begin.elapsed(),
            findings,
        });
        // Report at once, so that an interrupted run has shown all findings so far.
        if let Some(text) = report.findings_of_last() {
            context.ui.warn(text);
        }
    }
    Ok(report)
}
