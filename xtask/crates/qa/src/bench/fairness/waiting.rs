//! The scenario `waiting`: one long stream, and prompts that cannot fit while it runs.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_core::error::{Error, Result};
use espalier_core::http::Request;
use espalier_core::sys::net::client::{Held, stop_if};
use espalier_core::sys::net::server::Server;
use espalier_modelgen::ModelSpec;

use super::report::Measured;
use super::side::Side;
use super::token_times::{self, OfModel, Pair, Part};
use super::traffic::{joined, stream_of, until_taken};
use crate::serving::bench_fixture::BenchFixture;
use crate::serving::cases;
use crate::serving::streamed;

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
const LEAST_ROUNDS: usize = 3;

/// Returns the spec of the second model, which the bench generates: 30 million weights.
pub(super) fn spec() -> ModelSpec {
    ModelSpec { n_layer: 6, n_vocab: 12_000, ..ModelSpec::plain_70_million() }
}

/// The trained model was trained on short sequences, and a server refuses longer ones without this override.
const LONG_TEXTS: [&str; 2] = ["--override-kv", "qwen3.context_length=int:32768"];

/// Measures the trained model and the one of [`spec`], each for `seconds`.
pub(super) fn measure(
    fixture: &BenchFixture<'_>,
    side: &Side,
    tiny: &Path,
    seconds: u32,
) -> Result<Measured> {
    let models: [(&'static str, &Path, &[&str]); 2] =
        [("tiny", tiny, &LONG_TEXTS), ("30 M", &fixture.model, &[])];
    let of_model = |(model, path, arguments): (&'static str, &Path, &[&str])| {
        let start = || side.server(fixture, path, SLOTS, CELLS, arguments);
        Ok(OfModel { model, pairs: pairs(&start, seconds)? })
    };
    let found = models.into_iter().map(of_model).collect::<Result<Vec<_>>>()?;
    Ok(token_times::measured(&found))
}

type Start<'a> = &'a dyn Fn() -> Result<Server>;

fn pairs(start: Start<'_>, seconds: u32) -> Result<Vec<Pair>> {
    let begin = Instant::now();
    let mut found = Vec::new();
    while found.len() < LEAST_ROUNDS * WAITING.len() || begin.elapsed().as_secs() < seconds.into() {
        found.extend(round(start)?);
    }
    Ok(found)
}

/// Measures one stream beside an increasing number of waiting requests, then one alone at the same tokens.
fn round(start: Start<'_>) -> Result<Vec<Pair>> {
    let (beside, ranges) = with_stream(start, beside_more_and_more)?;
    let last = ranges.iter().map(|range| range.end).max().unwrap_or_default();
    let (alone, ()) = with_stream(start, |_, stream| stream.wait_for(last))?;
    let pair = |(waiting, range): (usize, Range<usize>)| Pair {
        waiting,
        beside: Part::of(&beside, range.clone()),
        alone: Part::of(&alone, range),
    };
    Ok(WAITING.into_iter().zip(ranges).map(pair).collect())
}

/// Returns the arrival times of a stream's tokens. Each stream has a fresh server: a busy one takes long to notice that
/// clients have disconnected, and computes their requests meanwhile.
fn with_stream<T>(
    start: Start<'_>,
    measure: impl FnOnce(&Server, &Stream) -> Result<T>,
) -> Result<(Vec<Duration>, T)> {
    let (server, stream) = (start()?, Stream::default());
    let measured = std::thread::scope(|threads| {
        let client = threads.spawn(|| stream.listen(&server));
        let measured = stream.wait_for(WARMING_UP).and_then(|()| measure(&server, &stream));
        stream.is_enough.store(true, Ordering::Relaxed);
        joined(client)??;
        measured
    })?;
    Ok((stream.times(), measured))
}

/// Returns, for each number of waiting requests, the range of tokens that arrived meanwhile.
fn beside_more_and_more(server: &Server, stream: &Stream) -> Result<Vec<Range<usize>>> {
    let (mut held, mut ranges) = (Vec::new(), Vec::new());
    for waiting in WAITING {
        held.extend(send_long_prompts(server, held.len()..waiting)?);
        until_taken(server, waiting + 1)?;
        std::thread::sleep(SETTLING);
        ranges.push(stream.phase()?);
        until_taken(server, waiting + 1)?;
    }
    Ok(ranges)
}

fn send_long_prompts(server: &Server, numbers: Range<usize>) -> Result<Vec<Held>> {
    let request = |number| cases::request_for(&cases::numbered_prompt(1 + number as u64, LONG_PROMPT), 1);
    numbers.map(|number| server.post_and_hold("/completion", &request(number))).collect()
}

/// The stream whose tokens are timed.
#[derive(Default)]
struct Stream {
    times: Mutex<Vec<Duration>>,
    is_enough: AtomicBool,
    has_ended: AtomicBool,
}

impl Stream {
    fn listen(&self, server: &Server) -> Result<()> {
        let begin = Instant::now();
        let request = stream_of(&cases::numbered_prompt(0, STREAM_PROMPT), PREDICTED);
        let request = Request::post("/completion", request);
        let answered = server.follow(&request, streamed::LIMIT, |event| {
            if event["stop"] == false {
                self.with_times(|times| times.push(begin.elapsed()));
            }
            stop_if(self.is_enough.load(Ordering::Relaxed))
        });
        self.has_ended.store(true, Ordering::Relaxed);
        match answered? {
            (200, _) => Ok(()),
            (status, body) => Err(Error::no(format!("the stream returned {status}: {body}"))),
        }
    }

    fn with_times<T>(&self, change: impl FnOnce(&mut Vec<Duration>) -> T) -> T {
        change(&mut self.times.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn times(&self) -> Vec<Duration> {
        self.with_times(|times| times.clone())
    }

    fn count(&self) -> usize {
        self.with_times(|times| times.len())
    }

    /// Waits for the next [`PHASE`] inter-token times and returns the range of their tokens.
    fn phase(&self) -> Result<Range<usize>> {
        let from = self.count();
        let to = from + PHASE + 1;
        self.wait_for(to)?;
        Ok(from..to)
    }

    fn wait_for(&self, count: usize) -> Result<()> {
        while self.count() < count {
            if self.has_ended.load(Ordering::Relaxed) {
                return Err(Error::no(format!("the stream ended after {} tokens", self.count()))
                    .detail("everything has to be measured before it fills the pool"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prompt_fits_alone_and_never_beside_the_stream() {
        const { assert!(LONG_PROMPT + 1 < CELLS && STREAM_PROMPT + LONG_PROMPT > CELLS) };
        assert_eq!((CELLS % 256, WAITING.iter().max()), (0, Some(&(SLOTS - 1))));
        assert!(spec().n_context as usize >= CELLS && PREDICTED > 20 * PHASE);
    }

    #[test]
    fn a_phase_waits_for_its_tokens() {
        let stream = Stream::default();
        stream.with_times(|times| times.push(Duration::ZERO));
        std::thread::scope(|threads| {
            let phase = threads.spawn(|| stream.phase());
            while !phase.is_finished() {
                stream.with_times(|times| times.push(Duration::ZERO));
            }
            assert_eq!(phase.join().unwrap().unwrap().len(), PHASE + 1);
        });
        stream.has_ended.store(true, Ordering::Relaxed);
        assert!(stream.wait_for(usize::MAX).unwrap_err().what.starts_with("the stream ended after"));
    }
}
