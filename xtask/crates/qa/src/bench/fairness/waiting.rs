//! The scenario `waiting`: one long stream, and prompts that cannot fit while it runs.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use espalier_core::error::{Error, Result};
use espalier_core::sys::machine::threads::result_of;
use espalier_core::sys::net::client::Held;
use espalier_core::sys::net::server::Server;
use espalier_modelgen::ModelSpec;

use super::binary::Binary;
use super::record::Measured;
use super::token_times::{self, OfModel, Pair};
use super::traffic::until_taken;
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::cases;
use crate::serving::load::{self, Patience, Progress};
use crate::serving::request_record::RequestRecord;

/// Numbers of waiting requests, ascending: later ones are added to those that wait already.
const WAITING: [usize; 2] = [8, 32];

/// One slot for each waiting request, and one for the stream.
const SLOTS: usize = 33;

/// Size of the pool, a multiple of the unit to which llama.cpp rounds a context.
const CELLS: usize = 23_808;

/// Tokens of the stream's prompt: from its first token on, [`LONG_PROMPT`] does not fit beside it.
const STREAM_PROMPT: usize = 8_000;

/// Tokens of the waiting prompts.
const LONG_PROMPT: usize = 16_000;

/// Upper limit of the stream's answer; it is stopped before.
const PREDICTED: usize = CELLS - STREAM_PROMPT - 100;

/// Tokens per measured phase.
const PHASE: usize = 300;

/// Tokens of a stream before measuring starts.
const WARMING_UP: usize = 20;

/// Delay between the moment at which all requests wait and the start of the measurement.
const SETTLING: Duration = Duration::from_millis(300);

/// Minimum number of rounds for each number of waiting requests.
const MIN_ROUNDS: usize = 3;

/// Returns the spec of the second model, which the bench generates: 30 million weights.
pub(super) fn spec() -> ModelSpec {
    ModelSpec { n_layer: 6, n_vocab: 12_000, ..ModelSpec::plain_70_million() }
}

/// The trained model was trained on short sequences, and a server refuses longer ones without this override.
const LONG_TEXTS: [&str; 2] = ["--override-kv", "qwen3.context_length=int:32768"];

/// Measures the trained model and the one of [`spec`], each for `seconds`.
pub(super) fn measure(
    fixture: &BenchFixture<'_>,
    binary: &Binary,
    tiny: &Path,
    seconds: u32,
) -> Result<Measured> {
    let models: [(&'static str, &Path, &[&str]); 2] =
        [("tiny", tiny, &LONG_TEXTS), ("30 M", &fixture.model, &[])];
    let of_model = |(model, path, arguments): (&'static str, &Path, &[&str])| {
        let start = || binary.server(fixture, path, SLOTS, CELLS, arguments);
        Ok(OfModel { model, pairs: pairs(&start, seconds)? })
    };
    let found = models.into_iter().map(of_model).collect::<Result<Vec<_>>>()?;
    Ok(token_times::measured(&found))
}

type Start<'a> = &'a dyn Fn() -> Result<Server>;

fn pairs(start: Start<'_>, seconds: u32) -> Result<Vec<Pair>> {
    let begin = Instant::now();
    let mut found = Vec::new();
    while found.len() < MIN_ROUNDS * WAITING.len() || begin.elapsed().as_secs() < seconds.into() {
        found.extend(round(start)?);
    }
    Ok(found)
}

/// Measures one stream beside an increasing number of waiting requests, then one alone at the same tokens.
fn round(start: Start<'_>) -> Result<Vec<Pair>> {
    let (beside, ranges) = with_stream(start, beside_more_and_more)?;
    let last = ranges.iter().map(|range| range.end).max().unwrap_or_default();
    let (alone, ()) = with_stream(start, |_, stream| wait_for(stream, last))?;
    let pair = |(waiting, range): (usize, Range<usize>)| Pair {
        waiting,
        beside: beside.inter_token_latencies(range.clone()),
        alone: alone.inter_token_latencies(range),
    };
    Ok(WAITING.into_iter().zip(ranges).map(pair).collect())
}

/// Returns the record of a stream. Each stream has a fresh server: a busy one takes long to notice that clients have
/// disconnected, and computes their requests meanwhile.
fn with_stream<T>(
    start: Start<'_>,
    measure: impl FnOnce(&Server, &Progress) -> Result<T>,
) -> Result<(RequestRecord, T)> {
    let (server, progress) = (start()?, Progress::default());
    let request = cases::stream_of(&cases::numbered_prompt(0, STREAM_PROMPT), PREDICTED);
    let (record, measured) = std::thread::scope(|threads| {
        let stream = || Ok(load::follow(&server, Instant::now(), &request, Patience::Whole, &progress));
        let client = threads.spawn(stream);
        let measured = wait_for(&progress, WARMING_UP).and_then(|()| measure(&server, &progress));
        progress.stop();
        result_of(client).map(|record| (record, measured))
    })?;
    match &record.error {
        Some(words) => Err(Error::no(format!("the stream failed: {words}"))),
        None => Ok((record, measured?)),
    }
}

/// Returns, for each number of waiting requests, the range of tokens that arrived meanwhile.
fn beside_more_and_more(server: &Server, stream: &Progress) -> Result<Vec<Range<usize>>> {
    let (mut held, mut ranges) = (Vec::new(), Vec::new());
    for waiting in WAITING {
        held.extend(send_long_prompts(server, held.len()..waiting)?);
        until_taken(server, waiting + 1)?;
        std::thread::sleep(SETTLING);
        ranges.push(phase(stream)?);
        until_taken(server, waiting + 1)?;
    }
    Ok(ranges)
}

fn send_long_prompts(server: &Server, numbers: Range<usize>) -> Result<Vec<Held>> {
    let request = |number| cases::request_for(&cases::numbered_prompt(1 + number as u64, LONG_PROMPT), 1);
    numbers.map(|number| server.post_and_hold("/completion", &request(number))).collect()
}

/// Waits for the next [`PHASE`] inter-token times and returns the range of their tokens.
fn phase(stream: &Progress) -> Result<Range<usize>> {
    let from = stream.tokens();
    let to = from + PHASE + 1;
    wait_for(stream, to)?;
    Ok(from..to)
}

fn wait_for(stream: &Progress, count: usize) -> Result<()> {
    while stream.tokens() < count {
        if stream.has_ended() {
            return Err(Error::no(format!("the stream ended after {} tokens", stream.tokens()))
                .detail("everything has to be measured before it fills the pool"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_long_prompt_fits_alone_and_never_beside_the_stream() {
        const { assert!(LONG_PROMPT + 1 < CELLS && STREAM_PROMPT + LONG_PROMPT > CELLS) };
        assert_eq!((CELLS % 256, WAITING.iter().max()), (0, Some(&(SLOTS - 1))));
        assert!(spec().n_context as usize >= CELLS && PREDICTED > 20 * PHASE);
    }

    #[test]
    fn a_phase_waits_for_its_tokens() {
        let stream = Progress::default();
        let phase = std::thread::scope(|threads| {
            let phase = threads.spawn(|| phase(&stream));
            while !phase.is_finished() {
                stream.tokens.fetch_add(1, Ordering::Relaxed);
            }
            phase.join().unwrap().unwrap()
        });
        assert_eq!(phase.len(), PHASE + 1);
        stream.has_ended.store(true, Ordering::Relaxed);
        assert!(wait_for(&stream, usize::MAX).unwrap_err().what.starts_with("the stream ended after"));
    }
}
