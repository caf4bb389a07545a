//! Room is given in the order of arrival: nobody stands still while later ones are answered.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::cases;
use super::asking::{ANYBODY, ask, plain, with};
use super::meanwhile::meanwhile;
use super::stage::{Model, Stage};
use super::tenants::MOMENT;
use crate::error::{Error, Result};
use crate::sys::server::Server;

/// Four of these fit into 16 blocks when they begin, and not when they end.
const SMALL: [&str; 5] = ["-np", "4", "-c", "1024", "--kv-paged"];
const PROMPT: usize = 200;
const GROWN: usize = 100;

/// More than there are slots.
const CLIENTS: u64 = 6;

/// How long they go on asking.
const TIME: Duration = Duration::from_secs(6);

/// Requests that may be answered between two tokens of a stream: those that were before it, all of a round, and some for
/// a client that is held up itself.
const MOST_BETWEEN: u64 = 4 * CLIENTS;

/// What the clients know of each other.
#[derive(Default)]
struct Crowd {
    answered: AtomicU64,
    numbers: AtomicU64,
    may_end: AtomicBool,
}

/// What one stream saw.
#[derive(Debug, Default)]
struct Seen {
    /// The most requests that were answered between two of its tokens.
    overtaken: u64,
    /// The longest silence after its first token.
    silence: Duration,
    /// From its request to its end.
    took: Duration,
    /// Whether it came to its end.
    is_whole: bool,
}

impl Crowd {
    fn ask(&self, server: &Server) -> Result<Seen> {
        let number = 1 + self.numbers.fetch_add(1, Ordering::SeqCst);
        let prompt = cases::numbered_prompt(number, PROMPT);
        let request = with(with(plain(&prompt, GROWN), "stream", true), "cache_prompt", false);
        let (mut seen, begin) = (Seen::default(), Instant::now());
        let mut before = None;
        server.read_lines("/completion", &request, ANYBODY, |line| {
            let (now, answered) = (Instant::now(), self.answered.load(Ordering::SeqCst));
            if line.starts_with("data:") {
                let (then, as_many) = before.replace((now, answered)).unwrap_or((now, answered));
                seen.overtaken = seen.overtaken.max(answered - as_many);
                seen.silence = seen.silence.max(now - then);
            }
            seen.is_whole |= line.contains("\"stop\":true");
            ControlFlow::Continue(())
        })?;
        self.answered.fetch_add(1, Ordering::SeqCst);
        seen.took = begin.elapsed();
        Ok(seen)
    }

    fn go_on_asking(&self, server: &Server) -> Result<Vec<Seen>> {
        let mut all = Vec::new();
        while !self.may_end.load(Ordering::SeqCst) {
            all.push(self.ask(server)?);
        }
        Ok(all)
    }

    /// All clients go on asking while `act` works.
    fn during<T>(&self, server: &Server, act: impl FnOnce() -> Result<T>) -> Result<(Vec<Seen>, T)> {
        std::thread::scope(|threads| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| threads.spawn(|| self.go_on_asking(server))).collect();
            let acted = act();
            self.may_end.store(true, Ordering::SeqCst);
            let mut all = Vec::new();
            for client in clients {
                all.extend(client.join().unwrap_or_else(|_| Err(Error::surroundings("asking failed")))?);
            }
            Ok((all, acted?))
        })
    }
}

/// No stream is silent while request after request that came later is answered.
pub fn no_stream_stands_still(stage: &mut Stage<'_>) -> Result<()> {
    let server = stage.serve(Model::Trained, &SMALL)?;
    let (all, ()) = Crowd::default().during(&server, || {
        std::thread::sleep(TIME);
        Ok(())
    })?;
    let preempted = server.said()?.matches("preempted with").count();
    stage.must(preempted > 0, || format!("did not occur: {} requests, and none was preempted", all.len()));
    let broken = all.iter().filter(|seen| !seen.is_whole).count();
    stage.must(broken == 0, || format!("{broken} of {} streams did not come to their end", all.len()));
    let overtaken = all.iter().map(|seen| seen.overtaken).max().unwrap_or_default();
    stage.must(overtaken <= MOST_BETWEEN, || {
        format!("{overtaken} of {} requests were answered between two tokens of a stream", all.len())
    });
    let (silence, most) = (all.iter().map(|seen| seen.silence).max().unwrap_or_default(), most_silence(&all));
    stage.must(silence <= most, || format!("a stream was silent for {silence:.1?}, {most:.1?} are enough"));
    Ok(())
}

/// Two seconds, or more on a machine on which a request takes long.
fn most_silence(all: &[Seen]) -> Duration {
    let mut took: Vec<Duration> = all.iter().map(|seen| seen.took).collect();
    took.sort_unstable();
    let median = took.get(took.len() / 2).copied().unwrap_or_default();
    (10 * median).max(Duration::from_secs(2))
}

/// Requests that may be answered while a prompt waits that needs much room in a certain slot: those that were before
/// it, and those that are before it in that slot.
const MOST_BEFORE: u64 = 10 * CLIENTS;

/// A prompt that needs most of the pool, and a slot that is asked last, gets its turn.
pub fn long_prompt_in_turn(stage: &mut Stage<'_>) -> Result<()> {
    let server = stage.serve(Model::Trained, &SMALL)?;
    let crowd = Crowd::default();
    let long = plain(&cases::numbered_prompt(0, 700), 1);
    let (_, (answer, overtook)) = crowd.during(&server, || {
        std::thread::sleep(10 * MOMENT);
        let before = crowd.answered.load(Ordering::SeqCst);
        let answer = ask(&server, &with(long, "id_slot", 3));
        Ok((answer, crowd.answered.load(Ordering::SeqCst) - before))
    })?;
    let status = answer.as_ref().map_or(0, |(status, _)| *status);
    stage.must(status == 200 && overtook <= MOST_BEFORE, || {
        let answer = answer.map_or_else(|error| error.to_string(), |(status, _)| status.to_string());
        format!("{overtook} later requests were answered before a prompt of 11 blocks, which was answered {answer}")
    });
    Ok(())
}

/// The largest budget there is bounds nothing, and stops nothing.
pub fn largest_prefill_budget(stage: &mut Stage<'_>) -> Result<()> {
    for budget in ["64", "2147483647"] {
        let server =
            stage.serve(Model::Trained, &["-np", "2", "-c", "8192", "--kv-paged", "--prefill-budget", budget])?;
        let stream = plain(&cases::numbered_prompt(1, 10), 3900);
        let long = with(plain(&cases::numbered_prompt(2, 1000), 1), "cache_prompt", false);
        let (heard, (before, in_time)) = meanwhile(&server, &stream, |running| {
            let before = !running.is_over();
            let (status, body): (u16, Value) = ask(&server, &long)?;
            stage.must(status == 200, || format!("budget {budget}: the prompt was answered {status}: {body}"));
            Ok((before, !running.is_over()))
        })?;
        stage.must(before, || format!("did not occur: the stream was over after {} tokens", heard.tokens));
        stage.must(in_time, || format!("budget {budget}: the prompt waited until the stream was over"));
    }
    Ok(())
}
