//! The HTTP endpoints of the fake server.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use super::config::Config;
use super::engine::Engine;
use super::pool::BLOCK;
use super::request::{End, Event, RequestParameters};
use super::text::{Choice, MARKER, Text};
use super::{http, slots};

/// The server: its configuration, the connected clients, and the engine.
pub struct Fake {
    pub config: Arc<Config>,
    engine: Mutex<Engine>,
    asked: Condvar,
    /// Number of requests so far.
    count: AtomicUsize,
    /// Scale of the adapter for requests that name none.
    own_scale: Mutex<f64>,
}

/// Duration of a step when several requests can run: long enough for them to overlap.
const STEP: Duration = Duration::from_micros(100);

impl Fake {
    pub fn new(config: Config) -> Fake {
        let config = Arc::new(config);
        Fake {
            engine: Mutex::new(Engine::new(Arc::clone(&config))),
            own_scale: Mutex::new(if config.has("--lora") { 1.0 } else { 0.0 }),
            config,
            asked: Condvar::new(),
            count: AtomicUsize::new(0),
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap()
    }

    /// Runs steps forever.
    pub fn compute(&self) {
        loop {
            self.asked.wait_while(self.engine(), |engine| engine.is_idle()).unwrap().step();
            match self.config.slots() {
                1 => std::thread::yield_now(),
                _ => std::thread::sleep(STEP),
            }
        }
    }

    pub fn reply(&self, mut stream: TcpStream) {
        let Some(asked) = http::read(&stream) else { return };
        let (path, action) = asked.path.split_once("?action=").unwrap_or((&asked.path, ""));
        if path == "/metrics" && self.config.has("--metrics") {
            return http::reply_text(&mut stream, 200, "Content-Type: text/plain\r\n", &self.metrics());
        }
        let (status, body) = match path {
            "/health" => (200, json!({ "status": "ok" })),
            "/props" => (200, self.props()),
            "/slots" => (200, slots::list(&mut self.engine())),
            "/slots/0" => (200, slots::act(&mut self.engine(), &self.config, action, &asked.body)),
            "/lora-adapters" => (200, self.set_own_scale(&asked.body)),
            "/completion" => match self.complete(&asked.key, &asked.body, &mut stream) {
                Some(answer) => answer,
                None => return,
            },
            "/embedding" => (200, json!([])),
            "/v1/completions" => self.choices(&asked.key, &asked.body),
            _ => (404, json!({})),
        };
        http::reply(&mut stream, status, &body);
    }

    fn props(&self) -> Value {
        let mut props = json!({ "media_marker": MARKER });
        if self.config.is_paged() {
            props["kv_pool"] = self.pool();
        }
        props
    }

    fn pool(&self) -> Value {
        let engine = self.engine();
        let pool = &engine.pool;
        // The gate waits seconds for the block of each server, so only those with one slot and an f16 cache hold one.
        let is_f16 = self.config.value("-ctk").is_none_or(|kind| kind == "f16");
        let may_hold = self.config.slots() == 1 && is_f16;
        let held = usize::from(may_hold && self.config.is_broken("holds a block"));
        let count = self.config.cells() / BLOCK;
        let mut metrics = json!({ "block_count": count, "block_size": BLOCK, "blocks_used": pool.used() + held,
            "blocks_used_peak": pool.peak, "blocks_retained": pool.retained(),
            "blocks_empty": count.saturating_sub(pool.used() + pool.retained()), "evicted_blocks": pool.evicted });
        if self.config.own_windows && !self.config.is_broken("keeps one size") {
            metrics["window_block_count"] = 20.into();
            metrics["window_blocks_used"] = (pool.used() + held).into();
        }
        if !self.config.value("--api-key").is_some_and(|keys| keys.contains(',')) {
            let hits = if self.config.is_broken("shares nothing") { 0 } else { engine.hits };
            let name = if self.config.is_broken("renames a count") { "found_tokens" } else { "hit_tokens" };
            metrics["queried_tokens"] = engine.queried.into();
            metrics[name] = hits.into();
        }
        metrics
    }

    /// Returns the metrics of snapshots. Each that was restored takes one mebibyte.
    fn metrics(&self) -> String {
        let hits = self.engine().snapshot_hits;
        let bytes = hits << 20;
        format!("llamacpp:kv_snapshot_bytes {bytes}\nllamacpp:kv_snapshot_hits_total {hits}\n")
    }

    fn set_own_scale(&self, body: &Value) -> Value {
        if !self.config.is_broken("forgets the own scale") {
            *self.own_scale.lock().unwrap() = scale_of(body).unwrap();
        }
        json!({ "success": true })
    }

    /// Answers `/completion`; returns `None` if the answer was streamed.
    fn complete(&self, key: &str, body: &Value, stream: &mut TcpStream) -> Option<(u16, Value)> {
        if let Some(refusal) = self.refusal(body) {
            return Some((500, json!({ "error": { "message": refusal } })));
        }
        let (tell, heard) = channel();
        let wanted = RequestParameters { tell: vec![tell], ..self.wanted(key, body, "n_predict") };
        if let Err(refusal) = self.ask(wanted) {
            return Some(refusal);
        }
        if body["stream"] == true {
            self.stream(&heard, stream);
            return None;
        }
        Some(self.whole(&heard))
    }

    /// Returns the error of a fault that fails immediately.
    fn refusal(&self, body: &Value) -> Option<&'static str> {
        let config = &self.config;
        let number = 1 + self.count.fetch_add(1, Ordering::SeqCst);
        if config.breaks("dies", true) && number == 20 {
            eprintln!("GGML_ASSERT(t_start == 0) failed");
            std::process::exit(7);
        }
        let in_a_crowd = config.is_broken("stock refuses") && config.slots() == 16 && number == 2;
        let is_long = body["return_progress"] == true;
        if in_a_crowd
            || config.breaks("refuses", true)
            || config.breaks("refuses streams", true) && body["stream"] == true && !is_long
            || config.breaks("refuses long prompts", true) && is_long
        {
            return Some("the KV cache is broken");
        }
        let after_refusing = config.is_broken("ends after refusing") && config.has("512");
        after_refusing.then_some("the KV cache is gone")
    }

    fn wanted(&self, key: &str, body: &Value, predict: &str) -> RequestParameters {
        let config = &self.config;
        let scale = scale_of(&body["lora"]).unwrap_or_else(|| *self.own_scale.lock().unwrap());
        let scale = if config.is_broken("ignores adapters") { 0.0 } else { scale };
        let forgets_key = config.is_broken("forgets the key")
            || config.is_broken("forgets the key of a slot") && config.retains_sequences();
        let key = if forgets_key { "" } else { key };
        let salt = if config.is_broken("forgets the salt") { &Value::Null } else { &body["cache_salt"] };
        let adapter = if config.is_broken("forgets the adapter") { 0.0 } else { scale };
        RequestParameters {
            text: Text::of(&body["prompt"], scale, config),
            owner: format!("{key} {salt} {adapter}"),
            predict: usize::try_from(body[predict].as_u64().unwrap_or(1)).unwrap(),
            shares: body["cache_prompt"] != false || config.is_broken("forgets cache_prompt"),
            slot: body["id_slot"].as_u64().map(|slot| usize::try_from(slot).unwrap()),
            tell: Vec::new(),
        }
    }

    /// Passes the request to the engine, or returns the error for one that can never be admitted.
    fn ask(&self, wanted: RequestParameters) -> Result<(), (u16, Value)> {
        let mut engine = self.engine();
        if !engine.fits(&wanted) {
            return Err((400, json!({ "error": { "message": "it needs more KV blocks than there are" } })));
        }
        engine.ask(wanted);
        self.asked.notify_one();
        Ok(())
    }

    /// Sends event by event, until the client disconnects.
    fn stream(&self, heard: &Receiver<Event>, stream: &mut TcpStream) {
        if http::begin(stream).is_err() {
            return;
        }
        for event in heard {
            let message = match event {
                Event::Progress(processed) => json!({ "prompt_progress": { "processed": processed } }),
                Event::Token(choice) => json!({ "tokens": [choice.token], "stop": false }),
                Event::End(end) => self.timings(&end, json!({ "tokens": [], "stop": true })),
                Event::Refused(_, words) => json!({ "error": { "message": words } }),
            };
            if http::send(stream, &message).is_err() {
                return;
            }
        }
    }

    fn whole(&self, heard: &Receiver<Event>) -> (u16, Value) {
        let mut choices = Vec::new();
        for event in heard {
            match event {
                Event::Progress(_) => {}
                Event::Token(choice) => choices.push(choice),
                Event::Refused(status, words) => return (status, json!({ "error": { "message": words } })),
                Event::End(end) => {
                    let tokens: Vec<u64> = choices.iter().map(|choice| choice.token).collect();
                    let places: Vec<Value> = choices.iter().map(likeliest).collect();
                    let body = json!({ "tokens": tokens, "completion_probabilities": places });
                    return (200, self.timings(&end, body));
                }
            }
        }
        (500, json!({}))
    }

    fn timings(&self, end: &End, mut body: Value) -> Value {
        body["stop_type"] = end.stop_type.into();
        body["timings"] = json!({ "cache_n": end.found, "prompt_n": end.computed, "prompt_ms": 1.0,
            "predicted_per_second": 100.0 });
        if self.config.is_broken("says no prompt_n") {
            body["timings"].as_object_mut().unwrap().remove("prompt_n");
        }
        if let Some((drafted, accepted)) = end.drafts {
            body["timings"]["draft_n"] = drafted.into();
            body["timings"]["draft_n_accepted"] = accepted.into();
        }
        body
    }

    /// Answers `/v1/completions`.
    fn choices(&self, key: &str, body: &Value) -> (u16, Value) {
        let count = body["n"].as_u64().unwrap_or(1);
        let (tell, heard): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        let wanted = RequestParameters { tell, ..self.wanted(key, body, "max_tokens") };
        match self.ask(wanted) {
            Err(_) if self.config.is_broken("takes all") => (200, json!({ "choices": [] })),
            Err(refusal) => refusal,
            Ok(()) => {
                let answers = heard.iter().map(|heard| choice(&self.whole(heard).1));
                let most = if self.config.is_broken("answers once") { 1 } else { usize::MAX };
                (200, json!({ "choices": answers.take(most).collect::<Vec<_>>() }))
            }
        }
    }
}

/// Returns one number for the scales of all adapters that a request names.
fn scale_of(adapters: &Value) -> Option<f64> {
    let scale = |one: &Value| Some(one["scale"].as_f64()? * 1000.0_f64.powf(one["id"].as_f64()?));
    adapters.as_array()?.iter().map(scale).sum()
}

fn likeliest(choice: &Choice) -> Value {
    let one = |(id, logprob): &(u64, f64)| json!({ "id": id, "logprob": logprob });
    json!({ "top_logprobs": choice.likeliest.iter().map(one).collect::<Vec<_>>() })
}

/// Converts an answer of `/completion` to the format of `/v1/completions`.
fn choice(answer: &Value) -> Value {
    let tokens = answer["tokens"].as_array().into_iter().flatten();
    json!({ "logprobs": { "content": tokens.map(|token| json!({ "id": token })).collect::<Vec<_>>() } })
}
