//! Room is given in the order of arrival: nobody stands still while later ones are answered.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::super::cases;
use super::asking::{ask, plain, with};
use super::meanwhile::meanwhile;
use super::stage::{Model, Stage};
use super::tenants::MOMENT;
use crate::error::{Error, Result};
use crate::sys::net::Caller;
use crate::sys::server::Server;

/// A pool of 16 blocks.
const SMALL: [&str; 5] = ["-np", "4", "-c", "1024", "--kv-paged"];

/// Clients that go on asking; three of their requests run at once, beside a slot that is asked last.
const CLIENTS: u64 = 5;

/// Tokens of their prompts and answers: four blocks and soon five.
const FLOOD: (usize, usize) = (250, 20);

/// Requests after which they stop.
const ENOUGH: u64 = 250;

/// Requests that may be answered between two tokens of a stream: those that were before it, all of a round, and some for
/// a client that is held up itself.
const MOST_BETWEEN: u64 = 5 * CLIENTS;

/// What the clients know of each other.
#[derive(Default)]
struct Crowd {
    answered: AtomicU64,
    numbers: AtomicU64,
}

/// What one stream saw.
#[derive(Debug, Default)]
struct Seen {
    /// The most requests that were answered between two of its tokens.
    overtaken: u64,
    /// Whether it came to its end.
    is_whole: bool,
}

impl Crowd {
    fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.answered() >= ENOUGH
    }

    /// A request that no other has asked.
    fn request(&self, (prompt, answer): (usize, usize)) -> Value {
        let number = 1 + self.numbers.fetch_add(1, Ordering::SeqCst);
        with(plain(&cases::numbered_prompt(number, prompt), answer), "cache_prompt", false)
    }

    fn follow(&self, server: &Server, request: Value) -> Result<Seen> {
        let mut seen = Seen::default();
        let mut before = None;
        server.read_lines("/completion", &with(request, "stream", true), PATIENT, |line| {
            if line.starts_with("data:") {
                let now = self.answered();
                seen.overtaken = seen.overtaken.max(now - before.replace(now).unwrap_or(now));
            }
            seen.is_whole |= line.contains("\"stop\":true");
            ControlFlow::Continue(())
        })?;
        Ok(seen)
    }

    fn go_on_asking(&self, server: &Server) -> Result<()> {
        while !self.is_over() {
            let (status, body) = server.post_text("/completion", &self.request(FLOOD).to_string(), PATIENT)?;
            if status != 200 {
                return Err(Error::no(format!("one of the crowd was answered {status}")).detail(body.to_string()));
            }
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// All clients go on asking while `act` works.
    fn during<T>(&self, server: &Server, act: impl FnOnce() -> Result<T>) -> Result<T> {
        std::thread::scope(|threads| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| threads.spawn(|| self.go_on_asking(server))).collect();
            let acted = act()?;
            for client in clients {
                client.join().unwrap_or_else(|_| Err(Error::surroundings("asking failed")))?;
            }
            Ok(acted)
        })
    }
}

/// What is counted here are requests, which may take their time on a machine that is busy.
const PATIENT: Caller<'_> = Caller { key: None, limit: Duration::from_secs(60) };

/// No stream is silent while request after request that came later is answered. It is in the slot that is asked last,
/// and has to give way in some of its visits.
pub fn no_stream_stands_still(stage: &mut Stage<'_>) -> Result<()> {
    let server = stage.serve(Model::Trained, &SMALL)?;
    let crowd = Crowd::default();
    let mut all = Vec::new();
    crowd.during(&server, || {
        while !crowd.is_over() {
            all.push(crowd.follow(&server, with(crowd.request((40, 150)), "id_slot", 3))?);
        }
        Ok(())
    })?;
    let preempted = server.said()?.matches("preempted with").count();
    stage.must(preempted > 0, || format!("did not occur: none of {} streams was preempted", all.len()));
    let broken = all.iter().filter(|seen| !seen.is_whole).count();
    stage.must(broken == 0, || format!("{broken} of {} streams did not come to their end", all.len()));
    let overtaken = all.iter().map(|seen| seen.overtaken).max().unwrap_or_default();
    stage.must(overtaken <= MOST_BETWEEN, || {
        format!("{overtaken} requests were answered between two tokens of one of {} streams", all.len())
    });
    Ok(())
}

/// Requests that may be answered while a prompt waits that needs much room in a certain slot: those that were before
/// it, and those that are before it in that slot.
const MOST_BEFORE: u64 = 10 * CLIENTS;

/// A prompt that needs most of the pool, and a slot that is asked last, gets its turn.
pub fn long_prompt_in_turn(stage: &mut Stage<'_>) -> Result<()> {
    let server = stage.serve(Model::Trained, &SMALL)?;
    let crowd = Crowd::default();
    let overtook = crowd.during(&server, || {
        while crowd.answered() < 2 * CLIENTS {
            std::thread::sleep(MOMENT / 5);
        }
        let before = crowd.answered();
        let seen = crowd.follow(&server, with(crowd.request((700, 1)), "id_slot", 3))?;
        stage.must(seen.is_whole, || "the long prompt was not answered".to_string());
        Ok(crowd.answered() - before)
    })?;
    stage.must(overtook <= MOST_BEFORE, || {
        format!("{overtook} requests were answered before a prompt of 11 blocks, by when no others came any more")
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
