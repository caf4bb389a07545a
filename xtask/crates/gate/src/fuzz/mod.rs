//! `cargo xtask fuzz`: random requests to servers, with whatever a seed says.
//!
//! Here `fuzz servers`: the paged server against itself unpaged. `requests` is `fuzz requests`.
//!
//! `plan` draws (pure), `play` starts servers and sends clients, `judge` says what is wrong (pure).

pub mod judge;
pub mod plan;
mod play;
mod report;
pub mod requests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use plan::Round;
use play::Arena;
use report::{Report, RoundReport};

use crate::context::{Context, Outcome};
use crate::error::{Error, Result};
use crate::plan::flavors::DEFAULT_FLAVOR;
use crate::sys::machine::disk;

/// Which rounds are played.
#[derive(Clone, Debug)]
pub struct Span {
    /// No round begins after so many minutes.
    pub minutes: u32,
    /// The first seed; the next rounds have the next ones.
    pub seed: u64,
    /// No more rounds than these.
    pub rounds: Option<u64>,
}

impl Span {
    /// The seeds, from now on; the first round is played however late it is.
    fn seeds(&self) -> impl Iterator<Item = u64> {
        let Span { minutes, seed: first, rounds } = *self;
        let (begin, limit) = (Instant::now(), Duration::from_secs(u64::from(minutes) * 60));
        (first..).take_while(move |seed| {
            let number = seed - first;
            rounds.is_none_or(|rounds| number < rounds) && (number == 0 || begin.elapsed() < limit)
        })
    }
}

/// Options of `fuzz servers`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which rounds are played.
    pub span: Span,
    /// The server; the packaged paged one when none is given.
    pub program: Option<PathBuf>,
    /// How long a client waits in silence, in seconds, when nothing was asked before.
    pub patience: u32,
}

/// Plays rounds until the time is over; the exit code is 1 when anything was found.
pub fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let program = program_or_packaged(context, options.program.as_ref())?;
    let report = play_seeds(context, program, options.patience, options.span.seeds())?;
    let code = u8::from(report.findings() > 0);
    Ok(Outcome { code, ..Outcome::ok(report.text(), report.json()) })
}

/// The server that was named, or the packaged paged one.
///
/// # Errors
///
/// It does not exist.
fn program_or_packaged(context: &Context, program: Option<&PathBuf>) -> Result<PathBuf> {
    let program = match program {
        Some(program) => program.clone(),
        None => context.layout.server(&context.pins()?.variant(None)?.name, DEFAULT_FLAVOR),
    };
    if !disk::exists(&program) {
        let what = format!("there is no server at `{}`", context.layout.show(&program));
        return Err(Error::surroundings(what).hint("cargo xtask build"));
    }
    Ok(program)
}

/// The rounds of these seeds with this program: for the gate. Gives what was found, a line each.
pub fn find_with_seeds(context: &Context, program: PathBuf, seeds: &[u64]) -> Result<Vec<String>> {
    let report = play_seeds(context, program, GATE_PATIENCE, seeds.iter().copied())?;
    Ok(report.lines())
}

/// Seconds: the gate runs on machines that are busy.
const GATE_PATIENCE: u32 = 30;

fn play_seeds(
    context: &Context,
    program: PathBuf,
    patience: u32,
    seeds: impl Iterator<Item = u64>,
) -> Result<Report> {
    let patience = Duration::from_secs(u64::from(patience));
    let shown = program.display().to_string();
    let mut arena = Arena::prepare(context, program, patience)?;
    let mut report = Report::new(shown);
    for seed in seeds {
        let round = Round::draw(seed);
        context.ui.status("Playing", format!("seed {seed}: {:?}", round.server.theme));
        let begin = Instant::now();
        let evidence = arena.play(&round)?;
        let findings = judge::judge(&round, &evidence, patience);
        report.rounds.push(RoundReport {
            seed,
            theme: format!("{:?}", round.server.theme),
            server: arena.words(&round.server),
            actions: evidence.played.len(),
            tally: judge::tally::of(&evidence),
            took: begin.elapsed(),
            findings,
        });
        // At once: who stops a long run has seen everything until then.
        if let Some(text) = report.findings_of_last() {
            context.ui.warn(text);
        }
    }
    Ok(report)
}
